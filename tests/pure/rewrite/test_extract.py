"""Extraction against brute force: the cheapest choice of e-nodes, shared ones counted once."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import assume, given, settings

from meganeura.ir import build
from meganeura.ir.graph import Graph, Node
from meganeura.rewrite import default_cost, simplify
from meganeura.rewrite.egraph import ENode
from meganeura.rewrite.extract import Selection
from meganeura.rewrite.rules import RULES
from meganeura.rewrite.saturate import Limits
from meganeura.rewrite.solve import Settings, Solution, solve
from tests.pure.rewrite.graphs import random_graphs

SETTINGS = Settings(RULES, default_cost, Limits())
MOST = 20_000


def cheapest(solution: Solution, roots: Sequence[int]) -> float | None:
    """The least cost of all choices without circles; None when there are too many to try."""
    graph, selection = solution.selection.graph, solution.selection
    best = float("inf")
    stack: list[tuple[dict[int, ENode], tuple[int, ...], float]] = [({}, tuple(roots), 0.0)]
    tried = 0
    while stack:
        choice, pending, cost = stack.pop()
        tried += 1
        if tried > MOST:
            return None
        pending = tuple(c for c in pending if c not in choice)
        if cost >= best:
            continue
        if not pending:
            chosen = Selection(graph, (), default_cost, choice, selection.prices)
            best = cost if chosen.order(roots) is not None else best
            continue
        for enode in graph.classes[pending[-1]].nodes:
            more = (*pending[:-1], *map(graph.find, enode.children))
            stack.append(({**choice, pending[-1]: enode}, more, cost + selection.price(enode)))
    return best


@settings(max_examples=80, deadline=None)
@given(random_graphs())
def test_small_graphs_are_extracted_at_the_least_cost(graph: Graph) -> None:
    graph = simplify(graph)
    solution = solve(graph.roots, SETTINGS)
    best = cheapest(solution, [solution.index(n) for n in graph.roots])
    assume(best is not None)
    assert best is not None
    assert solution.selection.total <= best * (1 + 1e-9) + 1e-6


def test_the_total_is_the_cost_of_the_graph_that_is_built() -> None:
    x = build.input_("x", (64, 64))
    shared = build.exp(build.neg(x))
    graph = Graph((("y", build.add(build.mul(shared, 3.0), build.tanh(shared))),))
    solution = solve(graph.roots, SETTINGS)
    built = solution.build({})
    nodes: Sequence[Node] = Graph((("y", built[solution.index(graph.roots[0])]),)).nodes
    assert abs(solution.selection.total - sum(map(default_cost, nodes))) < 1e-6
