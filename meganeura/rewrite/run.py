"""The pass: a graph becomes an e-graph, rules fill it, the cost decides, a graph comes out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from meganeura.ir.graph import Graph, Node
from meganeura.rewrite.cost import default_cost
from meganeura.rewrite.egraph import EGraph
from meganeura.rewrite.extract import extract, rebuild
from meganeura.rewrite.report import report
from meganeura.rewrite.rule import Rule
from meganeura.rewrite.rules import RULES
from meganeura.rewrite.saturate import Limits, saturate
from meganeura.trace import stage


@stage("rewrite")
def rewrite(
    graph: Graph,
    *,
    rules_off: frozenset[str] = frozenset(),
    enabled: bool = True,
    cost: Callable[[Node], float] | None = None,
    limits: Limits = Limits(),  # noqa: B008  # frozen
    rules: Sequence[Rule] = RULES,
) -> Graph:
    """A graph -> an equal graph of less cost, by equality saturation.

    `rules_off` names rules that may not fire; `cost` prices one node in any unit (default: bytes).
    Outputs, updates and leaves stay what they are, names stay where a node of that value stays.
    Without rules the graph comes back as it is.
    """
    active = [rule for rule in rules if rule.name not in rules_off] if enabled else []
    if not active:
        return graph
    egraph = EGraph()
    egraph.add_graph(graph.nodes)
    saturation = saturate(egraph, active, limits)
    roots = [egraph.class_of[node] for node in graph.roots]
    selection = extract(saturation, roots, cost or default_cost)
    after, built = rebuild(graph, egraph.class_of, selection, saturation.matches)
    report(saturation, selection, built)
    return after
