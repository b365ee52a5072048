"""Every rule from its own text: equal sides, equal gradients, and one leads to the other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from meganeura.autodiff import backward
from meganeura.ir import build
from meganeura.ir.dtypes import DType, bool_, i32, u32
from meganeura.ir.evaluate import evaluate_nodes
from meganeura.ir.graph import Node, topological
from meganeura.rewrite.document import rules_page
from meganeura.rewrite.egraph import EGraph
from meganeura.rewrite.pattern import matches
from meganeura.rewrite.rule import Rule, placeholder
from meganeura.rewrite.rules import RULES
from meganeura.rewrite.saturate import Limits, saturate

SEEDS = range(12)
TOLERANCE = 2e-6  # numbers that a rule computes are float32 constants


def operands(sides: Sequence[Node]) -> list[Node]:
    return [n for n in topological(sides) if n.op.name == "input"]


def draw_values(rule: Rule, leaves: Sequence[Node], seed: int) -> dict[Node, np.ndarray[Any, Any]]:
    """Random operands from the rule's own domain."""
    rng = np.random.default_rng(seed)
    values: dict[Node, np.ndarray[Any, Any]] = {}
    for leaf in leaves:
        low, high = rule.where.domain.get(str(leaf.name), (-2.0, 2.0))
        uniform = rng.uniform(low, high, leaf.shape)
        values[leaf] = np.asarray(uniform > 0) if leaf.dtype is bool_ else np.asarray(uniform)
    return values


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.name)
def test_both_sides_are_equal(rule: Rule) -> None:
    checked = 0
    for seed in SEEDS:
        sides = rule.sides(rule.sample(seed))
        if sides is None:
            continue
        left, right = sides
        values = draw_values(rule, operands(left + right), seed)
        known = evaluate_nodes(left + right, values, np.float64)
        for a, b in zip(left, right, strict=True):
            np.testing.assert_allclose(known[b], known[a], rtol=TOLERANCE, atol=TOLERANCE)
        checked += 1
    assert checked >= len(SEEDS) // 2


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.name)
def test_both_sides_have_equal_gradients(rule: Rule) -> None:
    for seed in SEEDS[:4]:
        sides = rule.sides(rule.sample(seed))
        if sides is None or not sides[0][0].dtype.is_float:
            continue
        leaves = [n for n in operands(sides[0]) if n.dtype.is_float]
        rng = np.random.default_rng(seed)
        weights = [rng.normal(size=n.shape) for n in sides[0]]
        values = draw_values(rule, operands(sides[0] + sides[1]), seed)
        found: list[list[np.ndarray[Any, Any]]] = []
        for side in sides:
            terms = [build.sum_(build.mul(n, w)) for n, w in zip(side, weights, strict=True)]
            loss = terms[0]
            for term in terms[1:]:
                loss = build.add(loss, term)
            gradients = backward(loss, leaves)
            roots = [gradients[n] for n in leaves]
            known = evaluate_nodes(roots, values, np.float64)
            found.append([known[n] for n in roots])
        for a, b in zip(*found, strict=True):
            np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [i32, u32], ids=str)
@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.name)
def test_integers_wrap_around_alike(rule: Rule, dtype: DType) -> None:
    """Where a rule fires on integers, both sides are equal to the bit, at the extremes too."""
    for seed in SEEDS[:6]:
        arguments = {
            name: placeholder(name, value.shape, dtype) if rule.kinds[name] == "Node" else value
            for name, value in rule.sample(seed).items()
            if name != rule.many
        }
        sides = rule.sides(arguments) if rule.many is None else None
        if sides is None or not fires_on(rule, sides[0][0]):
            continue
        rng = np.random.default_rng(seed)
        extremes = np.iinfo(np.int32 if dtype is i32 else np.uint32)
        values: dict[Node, np.ndarray[Any, Any]] = {}
        for leaf in operands(sides[0] + sides[1]):
            low, high = rule.where.domain.get(str(leaf.name), (-4, 5))
            drawn = rng.integers(max(int(low), int(extremes.min)), int(high) + 1, leaf.shape)
            edge = rng.choice([extremes.min, extremes.max, extremes.min + 1], leaf.shape)
            free = str(leaf.name) not in rule.where.domain
            mixed = np.where((rng.random(leaf.shape) < 0.4) & free, edge, drawn)
            values[leaf] = mixed > 0 if leaf.dtype is bool_ else mixed.astype(leaf.dtype.numpy)
        known = evaluate_nodes(sides[0] + sides[1], values)
        for a, b in zip(*sides, strict=True):
            np.testing.assert_array_equal(known[b], known[a])


def fires_on(rule: Rule, left: Node) -> bool:
    """True when the left side, all of integers, is what the rule looks for."""
    if any(n.dtype.is_float for n in topological([left])):
        return False
    graph = EGraph()
    graph.add_graph(topological([left]))
    root = graph.cls(graph.class_of[left]).nodes[0]
    for bound in matches(graph, rule.pattern, root):
        kinds = rule.kinds.items()
        found = {n: graph.cls(bound[n]) if k in ("Node", "Bool") else bound[n] for n, k in kinds}
        return rule.where.test(found) or bool(rule.where.domain)
    return False


def proved(rule: Rule, leaf: Node) -> Node:
    """An operand of the leaf's shape that the analysis can place in the rule's domain."""
    span = rule.where.domain.get(str(leaf.name))
    if leaf.dtype is bool_ or span is None:
        return leaf
    low, high = span
    number = build.cast(build.input_(f"{leaf.name}.int", leaf.shape, i32), leaf.dtype)
    return build.maximum(build.minimum(number, high), low)


def rebuilt(roots: Sequence[Node], change: dict[Node, Node]) -> list[Node]:
    for node in topological(roots):
        if node not in change:
            change[node] = node.with_inputs(tuple(change[n] for n in node.inputs))
    return [change[n] for n in roots]


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.name)
def test_the_left_side_leads_to_the_right(rule: Rule) -> None:
    fired = 0
    for seed in SEEDS:
        sides = rule.sides(rule.sample(seed))
        if sides is None:
            continue
        leaves = operands(sides[0] + sides[1])
        if any(0 in n.shape for n in leaves):
            continue
        change = {leaf: proved(rule, leaf) for leaf in leaves}
        left, right = rebuilt(sides[0], change), rebuilt(sides[1], change)
        graph = EGraph()
        graph.add_graph(topological(left))
        saturate(graph, (rule,), Limits(iterations=3))
        graph.add_graph(topological(right))
        for a, b in zip(left, right, strict=True):
            assert graph.find(graph.class_of[a]) == graph.find(graph.class_of[b]), (seed, a, b)
        fired += 1
    assert fired


def test_names_are_unique_and_english_is_a_sentence() -> None:
    assert len({rule.name for rule in RULES}) == len(RULES)
    assert all(r.english[0].isupper() and r.english.endswith(".") for r in RULES)
    assert len({rule.english for rule in RULES}) == len(RULES)


def test_the_page_of_rules_is_current(root: Path) -> None:
    page = (root / "docs" / "rules.md").read_text()
    assert page == rules_page(), (
        "write it anew: python -m meganeura.rewrite.document > docs/rules.md"
    )
