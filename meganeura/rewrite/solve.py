"""One graph, or one block of it, through the e-graph: what was found, what was chosen, how to build
it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from meganeura.ir.graph import Node, topological
from meganeura.rewrite.egraph import EGraph
from meganeura.rewrite.extract import Selection, extract
from meganeura.rewrite.recipe import Step, build, recipe
from meganeura.rewrite.rule import Rule
from meganeura.rewrite.saturate import Limits, Saturation, saturate


@dataclass(frozen=True)
class Settings:
    """What a solution depends on beside the graph."""

    rules: Sequence[Rule]
    cost: Callable[[Node], float]
    limits: Limits


@dataclass(eq=False)
class Solution:
    """The cheapest terms for some roots."""

    saturation: Saturation
    selection: Selection
    steps: list[Step]
    classes: dict[Node, int]

    def build(self, stands_for: Mapping[Node, Node]) -> dict[int, Node]:
        """The nodes by class; see `recipe.build`."""
        return build(self.steps, stands_for)

    def index(self, node: Node) -> int:
        """The class of a node of the graph that was solved."""
        return self.selection.graph.find(self.classes[node])


def solve(roots: Sequence[Node], settings: Settings) -> Solution:
    """Saturates and extracts the graph of the roots."""
    egraph = EGraph()
    egraph.add_graph(topological(roots))
    saturation = saturate(egraph, settings.rules, settings.limits)
    selection = extract(saturation, [egraph.class_of[n] for n in roots], settings.cost)
    steps = recipe(egraph.class_of, selection, roots, saturation.matches)
    return Solution(saturation, selection, steps, egraph.class_of)
