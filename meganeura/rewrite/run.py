"""The pass: a graph becomes an e-graph, rules fill it, the cost decides, a graph comes out."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence

from meganeura.errors import OptionError
from meganeura.ir.graph import Graph, Node
from meganeura.rewrite.cost import default_cost
from meganeura.rewrite.outline import find_blocks
from meganeura.rewrite.report import report
from meganeura.rewrite.rule import Rule
from meganeura.rewrite.rules import RULES
from meganeura.rewrite.saturate import Limits
from meganeura.rewrite.solve import Settings, solve
from meganeura.rewrite.stamp import Part, solve_in_parts
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
    outline: bool = True,
) -> Graph:
    """A graph -> an equal graph of less cost, by equality saturation.

    `rules_off` names rules that may not fire; `cost` prices one node in any unit (default: bytes);
    `outline=False` solves a graph of repeated blocks as a whole. Outputs, updates and leaves stay
    what they are, names stay where a node of that value stays. Without rules the graph comes back
    as it is. Raises OptionError for a rule that does not exist. A rule's `use` says where it needs
    a cost that knows the device.
    """
    _check_names(rules_off, rules)
    active = [rule for rule in rules if rule.name not in rules_off] if enabled else []
    if cost is None:
        uses = ("always",) if _trains(graph) else ("always", "inference")
        active = [rule for rule in active if rule.use in uses]
    if not active:
        return graph
    settings = Settings(active, cost or default_cost, limits)
    blocks = find_blocks(graph) if outline else []
    found = solve_in_parts(graph, blocks, settings) if blocks else None
    after, parts = found if found is not None else _whole(graph, settings)
    report(parts)
    return after


def _check_names(names: frozenset[str], rules: Sequence[Rule]) -> None:
    known = {rule.name for rule in rules} | {rule.name for rule in RULES}
    for name in sorted(names - known):
        close = difflib.get_close_matches(name, sorted(known), 1)
        raise OptionError(
            f"no rewrite rule is named {name!r}",
            expected="a name from docs/rules.md",
            got=repr(name),
            hint=f"did you mean {close[0]!r}?" if close else "program.passes lists what matched",
        )


def _trains(graph: Graph) -> bool:
    return bool(graph.updates) or any(n.origin.phase == "backward" for n in graph.nodes)


def _whole(graph: Graph, settings: Settings) -> tuple[Graph, list[Part]]:
    solution = solve(graph.roots, settings)
    built = solution.build({})
    after = Graph(
        tuple((name, built[solution.index(n)]) for name, n in graph.outputs),
        tuple((leaf, built[solution.index(n)]) for leaf, n in graph.updates),
    )
    return after, [Part(solution, 1, {}, built)]
