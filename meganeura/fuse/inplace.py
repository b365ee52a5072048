"""Updates in place: which leaves may be overwritten by the kernel that makes their new value."""

from __future__ import annotations

from meganeura.fuse.grow import Group
from meganeura.fuse.region import Region, Space
from meganeura.ir import index as ix
from meganeura.ir.graph import Graph, Node
from meganeura.ir.index import Indices

Reads = dict[Node, set[Indices | None]]
"""The places at which a region reads its inputs; None for one that is not known."""


def unsafe(graph: Graph, regions: list[Region]) -> set[Node]:
    """Leaves whose new value must be made in a buffer of its own and copied at the end.

    The others are written in place: their kernel reads the leaf only where it writes it, and every
    other reader can run before.
    """
    maker = {root: r.index for r in regions for root in r.roots}
    readers: dict[Node, set[int]] = {}
    later: dict[int, set[int]] = {r.index: set() for r in regions}
    for region in regions:
        for node in region.inputs:
            readers.setdefault(node, set()).add(region.index)
            if node in maker and maker[node] != region.index:
                later[maker[node]].add(region.index)
    known: dict[int, Accesses] = {}
    refused: set[Node] = set()
    for leaf, value in graph.updates:
        writer = maker[value]
        others = readers.get(leaf, set()) - {writer}
        if writer not in known:
            known[writer] = Accesses(regions[writer])
        if not known[writer].pointwise(leaf, value) or _reaches(writer, others, later):
            refused.add(leaf)
        else:
            for reader in others:
                later[reader].add(writer)
    return refused


def _reaches(start: int, goals: set[int], later: dict[int, set[int]]) -> bool:
    """Whether any of the goals must run after `start`."""
    found: set[int] = set()
    stack = [start] if goals else []
    while stack:
        for region in later[stack.pop()] - found:
            if region in goals:
                return True
            found.add(region)
            stack.append(region)
    return False


class Accesses:
    """Where a region reads its inputs, and where it writes its roots."""

    def __init__(self, region: Region) -> None:
        self.region = region
        group = Group(-1, region.kind, region.space)
        bases: dict[Space, Indices] = {"tile": group.row, "row": group.row}
        if region.kind == "reduce":
            bases["element"] = group.element
        self.at = region.places(bases)
        self.space = {m.node: m.space for m in region.members}
        self._inside = set(region.nodes)
        self.reads: Reads = {}
        self.reads_last: Reads = {}
        for anchor in region.anchors:
            for operand in anchor.inputs:
                self._read(operand, group.element if region.kind == "reduce" else None, self.reads)
        for root in region.roots:
            last = self.space[root] == "element"
            self._read(root, self.at[root], self.reads_last if last else self.reads)

    def pointwise(self, leaf: Node, value: Node) -> bool:
        """Whether the region reads the leaf only at the element of the value that it writes, and
        not after: what a reduction writes for each term comes after what it writes for the row.
        """
        if self.space[value] == "row" and leaf in self.reads_last:
            return False
        places = self.reads.get(leaf, set()) | self.reads_last.get(leaf, set())
        return places <= {self.at[value]}

    def _read(self, start: Node, at: Indices | None, reads: Reads) -> None:
        """Adds what computing `start` at a place (None for any) reads."""
        seen: set[tuple[Node, Indices | None]] = set()
        stack = [(start, at)]
        while stack:
            node, where = item = stack.pop()
            if item in seen:
                continue
            seen.add(item)
            if node not in self._inside:
                reads.setdefault(node, set()).add(where)
            elif node.op.kind == "view" and where is not None:
                stack.append((node.inputs[0], ix.read(node, where).indices))
            elif node not in self.region.anchors:
                known = where if node.op.kind == "map" else None
                stack.extend((n, known) for n in node.inputs)
