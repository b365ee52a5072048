"""The pass that always runs: duplicates, identities, constants, dead code; names and places."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from meganeura import trace
from meganeura.ir import build
from meganeura.ir.dtypes import bool_, f32, i32
from meganeura.ir.graph import Graph, Node
from meganeura.rewrite import simplify
from tests.pure.rewrite.graphs import difference, digits_step, random_graphs, transformer


def simplified(node: Node) -> Node:
    return simplify(Graph((("y", node),))).outputs[0][1]


x = build.input_("x", (2, 3))
n = build.input_("n", (2, 3), i32)
c = build.input_("c", (2, 3), bool_)

IDENTITIES: dict[str, tuple[Callable[[], Node], Node]] = {
    "x + 0": (lambda: build.add(x, 0.0), x),
    "0 + x": (lambda: build.add(0.0, x), x),
    "x - 0": (lambda: build.sub(x, 0.0), x),
    "x * 1": (lambda: build.mul(x, 1.0), x),
    "1 * x": (lambda: build.mul(1.0, x), x),
    "x / 1": (lambda: build.div(x, 1.0), x),
    "x ** 1": (lambda: build.apply("pow", x, build.broadcast_to(build.constant(1.0), (2, 3))), x),
    "--x": (lambda: build.neg(build.neg(x)), x),
    "not not c": (lambda: build.not_(build.not_(c)), c),
    "n * 1": (lambda: build.mul(n, 1), n),
    "where(true, x, y)": (lambda: build.where(True, x, build.exp(x)), x),
    "where(false, y, x)": (lambda: build.where(False, build.exp(x), x), x),
    "where(c, x, x)": (lambda: build.where(c, x, x), x),
    "where(1 < 2, x, y)": (lambda: build.where(build.lt(1.0, 2.0), x, build.exp(x)), x),
    "permute undone": (lambda: build.permute(build.permute(x, (1, 0)), (1, 0)), x),
    "reshape undone": (lambda: build.reshape(build.reshape(x, (6,)), (2, 3)), x),
    "x * (3 - 2)": (lambda: build.mul(x, build.sub(build.constant(3.0), 2.0)), x),
}


@pytest.mark.parametrize("name", IDENTITIES)
def test_identities(name: str) -> None:
    make, expected = IDENTITIES[name]
    assert simplified(make()) is expected


def test_views_of_a_kind_become_one() -> None:
    y = build.input_("y", (1, 2, 3))
    for made, wanted in (
        (build.reshape(build.reshape(y, (6,)), (3, 2)), build.reshape(y, (3, 2))),
        (
            build.permute(build.permute(y, (1, 2, 0)), (1, 0, 2)),
            build.permute(y, (2, 1, 0)),
        ),
    ):
        result = simplified(made)
        assert result.op is wanted.op
        assert result.inputs[0] is y
        assert result.attrs == wanted.attrs
    one = build.input_("one", (1, 1))
    twice = build.apply("expand", build.apply("expand", one, shape=(1, 3)), shape=(2, 3))
    assert simplified(twice).inputs[0] is one


def test_equal_nodes_from_different_lines_become_one_at_the_first() -> None:
    first = build.exp(x)
    second = build.exp(x)
    assert first is not second
    graph = simplify(Graph((("s", build.add(first, second)),)))
    assert [node.op.name for node in graph.nodes] == ["input", "exp", "add"]
    assert graph.nodes[1] is first


def test_the_forward_node_lends_its_place() -> None:
    with trace.phase("backward", x):
        backward = build.exp(x)
    forward = build.exp(x)
    graph = simplify(Graph((("g", build.neg(backward)), ("y", build.neg(forward)))))
    (exp,) = [node for node in graph.nodes if node.op.name == "exp"]
    assert exp is forward


def test_a_name_is_kept_whichever_node_stays() -> None:
    first = build.exp(x)
    second = build.exp(x).with_name("hidden")
    graph = simplify(Graph((("s", build.add(first, second)),)))
    (exp,) = [node for node in graph.nodes if node.op.name == "exp"]
    assert exp.name == "hidden"
    assert exp.origin == replace(first.origin, name="hidden")


def test_operands_of_commutative_operations_may_come_in_either_order() -> None:
    y = build.input_("y", (2, 3))
    graph = Graph((("s", build.sub(build.mul(x, y), build.mul(y, x))),))
    assert len(simplify(graph).nodes) == 4


def test_constants_are_computed() -> None:
    a = build.constant(np.arange(6.0).reshape(2, 3))
    result = simplified(build.exp(build.add(a, 1.0)))
    assert result.op.name == "constant"
    expected = np.exp(np.arange(6.0, dtype=np.float32) + 1)
    np.testing.assert_allclose(result.attr("value").array, expected.reshape(2, 3), rtol=1e-6)


def test_a_number_repeated_often_stays_a_number() -> None:
    wide = build.mul(
        build.broadcast_to(build.constant(2.0), (1000, 1000)),
        build.broadcast_to(build.constant(3.0), (1000, 1000)),
    )
    result = simplified(build.add(build.input_("big", (1000, 1000)), wide))
    values = [node for node in Graph((("y", result),)).nodes if node.op.name == "constant"]
    assert [v.attr("value").array.item() for v in values] == [6.0]


def test_large_constants_are_left_alone() -> None:
    large = build.constant(np.ones((100, 100)) * np.arange(100.0))
    assert simplified(build.exp(large)).op.name == "exp"


def test_random_numbers_are_not_folded() -> None:
    seed = build.constant(np.uint32(3))
    bits = build.apply("random", build.broadcast_to(seed, (4,)), stream=1)
    assert simplified(bits).op.name == "random"


def test_dead_code_goes_and_updates_keep_their_leaves() -> None:
    w = build.parameter("w", (2, 3), None)
    new = build.add(build.mul(w, 1.0), build.mul(x, 0.5))
    graph = Graph((("y", build.where(True, w, build.exp(x))),), ((w, new),))
    after = simplify(graph)
    assert after.outputs == (("y", w),)
    assert after.updates[0][0] is w
    assert "exp" not in [node.op.name for node in after.nodes]
    assert difference(graph, after) == 0.0


def test_what_is_simple_comes_back_as_the_same_object() -> None:
    graph = simplify(
        simplify(digits_step(batch=8))
    )  # a number that became simple is seen next time
    assert simplify(graph) is graph


def test_casts_to_the_own_type_and_integers() -> None:
    assert simplified(build.apply("cast", x, dtype=f32)) is x
    assert simplified(build.add(n, 0)) is n


@settings(max_examples=100, deadline=None)
@given(random_graphs())
def test_random_graphs_keep_their_results(graph: Graph) -> None:
    after = simplify(graph)
    assert len(after.nodes) <= len(graph.nodes)
    assert difference(graph, after) < 1e-6
    assert simplify(after) is after


def test_networks_keep_their_results() -> None:
    for graph in (digits_step(batch=4), transformer(1, training=True)):
        after = simplify(graph)
        assert len(after.nodes) < len(graph.nodes)
        assert difference(graph, after) < 1e-6
