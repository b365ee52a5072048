"""What the analysis claims is true of what NumPy computes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings

from meganeura.ir import build
from meganeura.ir.dtypes import f32, i32
from meganeura.ir.evaluate import evaluate_nodes
from meganeura.ir.graph import Graph, Node, topological
from meganeura.ir.ops import OPS
from meganeura.rewrite.egraph import EGraph
from meganeura.rewrite.facts import MAPS, NUMBER, Facts
from tests.pure.rewrite.graphs import feeds_for, random_graphs

INF = math.inf
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -3.0, 1e-30, 1e30, -1e30, INF, -INF, math.nan])


def facts_of(node: Node) -> Facts:
    graph = EGraph()
    graph.add_graph(topological([node]))
    return graph.cls(graph.class_of[node]).facts


def assert_true(facts: Facts, value: np.ndarray) -> None:
    numbers = value[~np.isnan(value)] if value.dtype.kind == "f" else value
    assert facts.nan or numbers.size == value.size
    if numbers.size:
        assert facts.lo <= float(numbers.min()) * (1 - 1e-6) + 1e-30 or facts.lo <= numbers.min()
        assert facts.hi >= numbers.max() or facts.hi >= float(numbers.max()) * (1 - 1e-6)


@settings(max_examples=100, deadline=None)
@given(random_graphs())
def test_every_node_of_a_random_graph_is_in_its_range(graph: Graph) -> None:
    egraph = EGraph()
    egraph.add_graph(graph.nodes)
    named = {str(n.name): n for n in graph.leaves("input")}
    values = {named[name]: value for name, value in feeds_for(graph).items()}
    for node, value in evaluate_nodes(graph.roots, values).items():
        assert_true(egraph.cls(egraph.class_of[node]).facts, value)


UNARY = [n for n in MAPS if OPS[n].arity == 1 and OPS[n].kind == "map" and n not in ("not", "cast")]
BINARY = [n for n in MAPS if OPS[n].arity == 2 and n not in ("and", "or")]
RANGES = ((-INF, INF), (0.0, INF), (0.25, 8.0), (-8.0, -0.25), (-2.0, 3.0), (0.0, 0.0))


def ranged(name: str, low: float, high: float) -> tuple[Node, np.ndarray]:
    """An operand whose range the analysis knows, and special values for it."""
    x = build.input_(name, SPECIAL.shape)
    node = x if low == -INF else build.maximum(x, low)
    node = node if high == INF else build.minimum(node, high)
    return node, np.roll(SPECIAL, 3 if name == "y" else 0).astype(np.float32)


@pytest.mark.parametrize("name", UNARY)
def test_unary_operations_on_special_numbers(name: str) -> None:
    for low, high in RANGES:
        x, values = ranged("x", low, high)
        node = build.apply(name, x)
        leaf = topological([x])[0] if x.inputs else x
        leaves = [n for n in topological([node]) if n.op.name == "input"]
        known = evaluate_nodes([node], dict.fromkeys(leaves, values))
        assert leaf in known
        assert_true(facts_of(node), known[node])


@pytest.mark.parametrize("name", BINARY)
def test_binary_operations_on_special_numbers(name: str) -> None:
    for first in RANGES:
        for second in RANGES:
            x, _ = ranged("x", *first)
            y, _ = ranged("y", *second)
            node = build.apply(name, x, y)
            leaves = [n for n in topological([node]) if n.op.name == "input"]
            for shift in range(SPECIAL.size):
                values = {
                    n: np.roll(SPECIAL, shift if n.name == "y" else 0).astype(np.float32)
                    for n in leaves
                }
                known = evaluate_nodes([node], values)
                assert_true(facts_of(node), known[node])


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda x: build.mul(x, x), Facts(0.0, INF, True)),
        (lambda x: build.exp(x), Facts(0.0, INF, True)),
        (lambda x: build.add(1.0, build.exp(x)), Facts(1.0 - 2.0**-22, INF, True)),
        (lambda x: build.mean(build.mul(x, x)), Facts(0.0, INF, True)),
        (lambda x: build.tanh(x), Facts(-1.0, 1.0, True)),
        (lambda x: build.cast(build.lt(x, 0.0), f32), Facts(0.0, 1.0, False)),
        (lambda x: build.iota((5,), 0), Facts(0.0, 4.0, False)),
        (lambda x: build.constant(np.array([1.0, 3.0])), Facts(1.0, 3.0, False)),
        (lambda x: build.pad(build.exp(x), (1,), (1,)), Facts(0.0, INF, True)),
    ],
)
def test_some_facts(make: object, expected: Facts) -> None:
    assert callable(make)
    assert facts_of(make(build.input_("x", (5,)))) == expected


def test_integers_that_may_wrap_around_are_unknown() -> None:
    n = build.input_("n", (5,), i32)
    assert facts_of(build.mul(n, n)) == Facts(-(2.0**31), 2.0**31 - 1, False)


def test_a_number_too_small_for_the_type_is_zero() -> None:
    x = build.constant(1e-30)
    assert facts_of(build.mul(x, build.mul(x, 1.0))).lo == 0.0


def test_ranges_leave_room_for_rounding() -> None:
    x = build.maximum(build.minimum(build.input_("x", (5,)), 0.2), 0.1)
    total = facts_of(build.add(x, x))
    assert total.lo < 2 * np.float32(0.1) < 2 * np.float32(0.2) < total.hi
    assert total.hi < 0.41


def test_facts_meet() -> None:
    assert Facts(0.0, INF, True).meet(Facts(-1.0, 1.0, False)) == Facts(0.0, 1.0, False)
    assert NUMBER.value is None
    assert Facts(2.0, 2.0, False).value == 2.0
    assert Facts(2.0, 2.0, True).value is None
