"""What rewriting tells those who watch: rules that matched, the e-graph, why it stopped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from meganeura.ir.graph import Node
from meganeura.rewrite.cost import bytes_moved, flops
from meganeura.rewrite.egraph import EClass, ENode
from meganeura.rewrite.extract import Selection
from meganeura.rewrite.saturate import Match, Saturation
from meganeura.trace import note


def report(saturation: Saturation, selection: Selection, built: Mapping[int, Node]) -> None:
    """Notes the rules with their matches, the e-graph, the rounds, and why saturation stopped."""
    note("rules", rules_table(saturation, selection, built))
    note("egraph", drawing(saturation, selection))
    note("iterations", saturation.iterations)
    note("stopped", saturation.stopped)
    note("cost", selection.total)


def rules_table(
    saturation: Saturation, selection: Selection, built: Mapping[int, Node]
) -> list[dict[str, Any]]:
    """One row for each rule that found something, with each match and whether the cost chose it."""
    rows: dict[str, dict[str, Any]] = {}
    for match in saturation.matches:
        row = rows.get(match.rule.name)
        if row is None:
            row = rows[match.rule.name] = {
                "rule": match.rule.name,
                "group": match.rule.group,
                "english": match.rule.english,
                "equation": match.rule.equation,
                "matches": [],
                "applied": 0,
                "saved_flops": 0.0,
                "saved_bytes": 0.0,
            }
        entry = _match_entry(match, selection, built)
        row["matches"].append(entry)
        if entry["applied"]:
            row["applied"] += 1
            row["saved_flops"] += entry["saved_flops"]
            row["saved_bytes"] += entry["saved_bytes"]
    return list(rows.values())


def _match_entry(match: Match, selection: Selection, built: Mapping[int, Node]) -> dict[str, Any]:
    graph = selection.graph
    after: list[int] = []
    applied = True
    for root, result in zip(match.roots, match.results, strict=True):
        index = graph.find(root.owner)
        node = built.get(index)
        chosen = selection.choice.get(index)
        applied = applied and node is not None and chosen is not root and chosen in result
        if node is not None:
            after.append(node.serial)
    before = [n for n in match.before if n is not None]
    left, right = _amount(match.template.left), _amount(match.template.right)
    return {
        "before": [n.serial for n in before],
        "after": after,
        "lines": [place for n in before if (place := n.origin.where()) is not None],
        "applied": applied,
        "iteration": match.iteration,
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


def drawing(saturation: Saturation, selection: Selection) -> dict[str, Any]:
    """The classes with several e-nodes and those that they read, as plain data for a picture."""
    graph = selection.graph
    wide = [i for i in sorted(graph.classes) if len(graph.classes[i].nodes) > 1]
    shown = dict.fromkeys(wide)
    for index in wide:
        for enode in graph.classes[index].nodes:
            shown.update((graph.find(c), None) for c in enode.children)
    classes = [_class(graph.classes[i], saturation, selection) for i in sorted(shown)]
    return {
        "classes": classes,
        "total_classes": len(graph.classes),
        "total_enodes": sum(len(c.nodes) for c in graph.classes.values()),
        "cost": selection.total,
    }


def _class(eclass: EClass, saturation: Saturation, selection: Selection) -> dict[str, Any]:
    chosen = selection.choice.get(eclass.index) if eclass.index in selection.reads else None
    return {
        "id": eclass.index,
        "shape": list(eclass.shape),
        "dtype": eclass.dtype.name,
        "name": eclass.name,
        "node": eclass.origin.serial if eclass.origin is not None else None,
        "enodes": [_enode(e, saturation, selection, e is chosen) for e in eclass.nodes],
    }


def _enode(
    enode: ENode, saturation: Saturation, selection: Selection, chosen: bool
) -> dict[str, Any]:
    return {
        "op": enode.op.name,
        "children": selection.operands(enode),
        "cost": selection.price(enode),
        "extracted": chosen,
        "rule": saturation.matches[enode.match].rule.name if enode.match is not None else None,
        "node": enode.original.serial if enode.original is not None else None,
    }
