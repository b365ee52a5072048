"""Rule sets that would never end stop at their limits and say what grew; adversaries stay right."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from meganeura.ir import build
from meganeura.ir.build import add, exp, mul, neg, sub, tanh
from meganeura.ir.graph import Graph, Node, topological
from meganeura.rewrite.cost import default_cost
from meganeura.rewrite.rule import Equation, Rule, positive, rule
from meganeura.rewrite.run import rewrite
from meganeura.rewrite.saturate import Limits, Saturation
from meganeura.rewrite.solve import Settings, solve
from tests.pure.rewrite.graphs import difference


@rule("Negation comes in pairs, for ever.")
def more_negations(a: Node) -> Equation:
    return exp(a), exp(neg(neg(a)))


@rule("Nothing is added, for ever.")
def more_zeros(a: Node) -> Equation:
    return tanh(a), tanh(sub(add(a, a), a))


@rule("Sums associate.")
def associate(a: Node, b: Node, c: Node) -> Equation:
    return add(add(a, b), c), add(a, add(b, c))


@rule("Products distribute.")
def distribute(a: Node, b: Node, c: Node) -> Equation:
    return mul(add(a, b), c), add(mul(a, c), mul(b, c))


@rule("Products come together.")
def collect(a: Node, b: Node, c: Node) -> Equation:
    return add(mul(a, c), mul(b, c)), mul(add(a, b), c)


@rule("A product of equals is doubled in the exponent.")
def split(a: Node) -> Equation:
    return exp(a), mul(exp(mul(a, 0.5)), exp(mul(a, 0.5)))


def terms() -> Graph:
    x, y, z, w = (build.input_(name, (3, 2)) for name in "xyzw")
    total = add(add(add(x, y), add(z, w)), mul(add(x, z), add(y, w)))
    return Graph((("p", exp(total)), ("q", tanh(add(total, exp(x))))))


def saturated(rules: Sequence[Rule], limits: Limits) -> tuple[Graph, Graph, Saturation]:
    graph = terms()
    solution = solve(graph.roots, Settings(rules, default_cost, limits))
    built = solution.build({})
    after = Graph(tuple((name, built[solution.index(n)]) for name, n in graph.outputs))
    return graph, after, solution.saturation


def test_a_rule_set_that_never_ends_says_who_grew_it() -> None:
    graph, after, result = saturated((more_negations,), Limits(nodes=200))
    assert result.stopped == (
        "stopped at its limit of 12 rounds in round 12; grown by more_negations (72)"
    )
    assert after.outputs == graph.outputs


def test_the_limit_of_nodes_names_the_rules_by_growth() -> None:
    rules = (more_zeros, associate, distribute, collect)
    graph, after, result = saturated(rules, Limits(nodes=300))
    assert result.stopped.startswith("stopped at its limit of 300 added e-nodes in round 3; ")
    names = [name for name, _ in result.grown.most_common()]
    assert result.stopped.endswith(
        "grown by " + ", ".join(f"{n} ({result.grown[n]:,})" for n in names[:3])
    )
    assert difference(graph, after) < 1e-12


def test_the_limit_of_seconds() -> None:
    _, _, result = saturated((associate, distribute), Limits(seconds=0.0))
    assert result.stopped.startswith("stopped at its limit of 0 s in round 1; grown by ")


def test_the_limit_of_matches_only_delays() -> None:
    _, _, fast = saturated((associate,), Limits(iterations=40))
    _, _, slow = saturated((associate,), Limits(iterations=400, matches=40))
    assert fast.stopped.startswith("saturated after ")
    assert slow.stopped.startswith("saturated after ")
    assert slow.iterations > fast.iterations
    assert len(slow.graph.classes) == len(fast.graph.classes)


@pytest.mark.parametrize("nodes", [1, 10, 100, 1000])
def test_adversaries_do_not_change_results(nodes: int) -> None:
    rules = (more_negations, more_zeros, associate, distribute, collect, split)
    graph, after, _ = saturated(rules, Limits(nodes=nodes))
    assert difference(graph, after) < 1e-9
    again = saturated(rules, Limits(nodes=nodes))[1]
    assert [n.op.name for n in again.nodes] == [n.op.name for n in after.nodes]


def test_views_that_undo_each_other_do_not_make_a_circle() -> None:
    x = build.input_("x", (2, 3))
    node = x
    for _ in range(6):
        node = build.permute(node, (1, 0))
        node = neg(node)
    graph = Graph((("y", node),))
    after = rewrite(graph)
    assert difference(graph, after) == 0.0
    assert len(topological(after.roots)) < len(topological(graph.roots))


def test_a_rule_whose_left_side_is_no_operation_is_refused() -> None:
    @rule("Everything is its double negation.")
    def anything(a: Node) -> Equation:
        return a, neg(neg(a))

    with pytest.raises(ValueError) as caught:
        _ = anything.pattern
    assert str(caught.value) == ("the left side of a rule must apply an operation to its operands")


def test_a_rule_that_hides_a_parameter_is_refused() -> None:
    @rule("The second operand appears from nowhere.", where=positive("b"))
    def from_nowhere(a: Node, b: Node) -> Equation:
        return exp(a), exp(add(a, sub(b, b)))

    with pytest.raises(ValueError) as caught:
        _ = from_nowhere.pattern
    assert str(caught.value) == ("rule from_nowhere: no sample shows all of a, b on its left side")
