"""What rewriting tells those who watch: rules that matched, the e-graph, why it stopped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from meganeura.ir.graph import Node
from meganeura.rewrite.cost import bytes_moved, flops
from meganeura.rewrite.egraph import EClass, ENode
from meganeura.rewrite.saturate import Match
from meganeura.rewrite.stamp import Part
from meganeura.trace import note


def report(parts: Sequence[Part]) -> None:
    """Notes the rules with their matches, the e-graph, the rounds, and why saturation stopped."""
    note("rules", rules_table(parts))
    note("egraph", drawing(parts))
    note("iterations", max(part.solution.saturation.iterations for part in parts))
    note("stopped", _stopped(parts))
    note("parts", [_size(part) for part in parts])


def _stopped(parts: Sequence[Part]) -> str:
    """Why the part stopped that took the longest; one that met a limit before one that did not."""
    saturations = [part.solution.saturation for part in parts]
    return max(saturations, key=lambda s: (s.stopped.startswith("stopped"), s.iterations)).stopped


def _size(part: Part) -> dict[str, Any]:
    saturation = part.solution.saturation
    return {
        "copies": part.copies,
        "nodes": len(part.solution.classes),
        "enodes": saturation.graph.added,
        "stopped": saturation.stopped,
    }


def rules_table(parts: Sequence[Part]) -> list[dict[str, Any]]:
    """One row for each rule that found something, with each match and whether the cost chose it."""
    rows: dict[str, dict[str, Any]] = {}
    for part in parts:
        used = _used(part)
        for number, match in enumerate(part.solution.saturation.matches):
            row = rows.setdefault(match.rule.name, _row(match))
            entry = _entry(part, match, number in used)
            row["matches"].append(entry)
            if entry["applied"]:
                row["applied"] += part.copies
                row["saved_flops"] += entry["saved_flops"] * part.copies
                row["saved_bytes"] += entry["saved_bytes"] * part.copies
    return list(rows.values())


def _row(match: Match) -> dict[str, Any]:
    return {
        "rule": match.rule.name,
        "group": match.rule.group,
        "english": match.rule.english,
        "equation": match.rule.equation,
        "matches": [],
        "applied": 0,
        "saved_flops": 0.0,
        "saved_bytes": 0.0,
    }


def _used(part: Part) -> set[int]:
    """The matches that the chosen terms go back to, also by way of terms that were left again."""
    solution = part.solution
    graph, matches = solution.selection.graph, solution.saturation.matches
    ends = {solution.selection.choice[step.index] for step in solution.steps}
    used = {number for number, match in enumerate(matches) if _chosen(part, match)}
    used |= {enode.match for enode in ends if enode.match is not None}
    pending = sorted(used)
    while pending:
        for root in matches[pending.pop()].roots:
            made = root.match
            if made is not None and made not in used and graph.find(root.owner) in part.built:
                used.add(made)
                pending.append(made)
    return used


def _chosen(part: Part, match: Match) -> bool:
    """True when every term that the match found gave way to what it led to."""
    selection = part.solution.selection
    for root, result in zip(match.roots, match.results, strict=True):
        index = selection.graph.find(root.owner)
        chosen = selection.choice.get(index)
        if index not in part.built or chosen is root or chosen not in result:
            return False
    return True


def _entry(part: Part, match: Match, applied: bool) -> dict[str, Any]:
    find = part.solution.selection.graph.find
    after = [part.built.get(find(root.owner)) for root in match.roots]
    before = [part.stands_for.get(n, n) for n in match.before if n is not None]
    left, right = _amount(match.template.left), _amount(match.template.right)
    return {
        "before": [n.serial for n in before],
        "after": [n.serial for n in after if n is not None],
        "lines": [place for n in before if (place := n.origin.where()) is not None],
        "applied": applied,
        "iteration": match.iteration,
        "copies": part.copies,
        "saved_flops": left[0] - right[0],
        "saved_bytes": left[1] - right[1],
    }


def _amount(side: tuple[Node, ...]) -> tuple[float, float]:
    """Flops and bytes of one side of a match, each node once."""
    seen: dict[Node, None] = {}
    stack = list(side)
    while stack:
        node = stack.pop()
        if node not in seen:
            seen[node] = None
            stack.extend(node.inputs)
    return sum(map(flops, seen)), sum(map(bytes_moved, seen))


def drawing(parts: Sequence[Part]) -> dict[str, Any]:
    """The classes with several e-nodes and those that they read, as plain data for a picture.

    Numbers of classes are unique over the parts: those of a later part come after.
    """
    classes: list[dict[str, Any]] = []
    first = 0
    for number, part in enumerate(parts):
        graph = part.solution.selection.graph
        wide = [i for i in sorted(graph.classes) if len(graph.classes[i].nodes) > 1]
        shown = dict.fromkeys(wide)
        for index in wide:
            for enode in graph.classes[index].nodes:
                shown.update((graph.find(c), None) for c in enode.children)
        for index in sorted(shown):
            classes.append({**_class(part, graph.classes[index], first), "part": number})
        first += graph.added
    graphs = [part.solution.selection.graph for part in parts]
    return {
        "classes": classes,
        "total_classes": sum(len(graph.classes) for graph in graphs),
        "total_enodes": sum(len(c.nodes) for graph in graphs for c in graph.classes.values()),
        "cost": sum(part.solution.selection.total * part.copies for part in parts),
    }


def _class(part: Part, eclass: EClass, first: int) -> dict[str, Any]:
    selection = part.solution.selection
    chosen = selection.choice.get(eclass.index) if eclass.index in selection.reads else None
    return {
        "id": first + eclass.index,
        "shape": list(eclass.shape),
        "dtype": eclass.dtype.name,
        "name": eclass.named.name if eclass.named is not None else None,
        "node": _serial(part, eclass.origin),
        "enodes": [_enode(part, e, first, e is chosen) for e in eclass.nodes],
    }


def _serial(part: Part, node: Node | None) -> int | None:
    return part.stands_for.get(node, node).serial if node is not None else None


def _enode(part: Part, enode: ENode, first: int, chosen: bool) -> dict[str, Any]:
    matches = part.solution.saturation.matches
    return {
        "op": enode.op.name,
        "children": [first + c for c in part.solution.selection.operands(enode)],
        "cost": part.solution.selection.price(enode),
        "extracted": chosen,
        "rule": matches[enode.match].rule.name if enode.match is not None else None,
        "node": _serial(part, enode.original),
    }
