"""Updates in place: which leaves may be overwritten by the kernel that makes their new value."""

from __future__ import annotations

from meganeura.fuse.grow import Group
from meganeura.fuse.region import Region, Space
from meganeura.ir import index as ix
from meganeura.ir.graph import Graph, Node
from meganeura.ir.index import Indices


def unsafe(graph: Graph, regions: list[Region]) -> set[Node]:
    """Leaves whose new value must be made in a buffer of its own and copied at the end.

    The others are written in place: their kernel reads the leaf only where it writes it, and every
    other reader can run before.
    """
    maker = {root: r.index for r in regions for root in r.roots}
    after = {r.index: {maker[n] for n in r.inputs if n in maker} - {r.index} for r in regions}
    refused: set[Node] = set()
    for leaf, value in graph.updates:
        writer = maker[value]
        readers = {r.index for r in regions if leaf in r.inputs} - {writer}
        if readers & _reached_from(writer, after) or not _pointwise(regions[writer], leaf, value):
            refused.add(leaf)
        else:
            after[writer] |= readers
    return refused


def _reached_from(start: int, after: dict[int, set[int]]) -> set[int]:
    """Every region that must run after `start`."""
    before: dict[int, list[int]] = {}
    for later, earlier in after.items():
        for region in earlier:
            before.setdefault(region, []).append(later)
    found: set[int] = set()
    stack = [start]
    while stack:
        for region in before.get(stack.pop(), ()):
            if region not in found:
                found.add(region)
                stack.append(region)
    return found


def _pointwise(region: Region, leaf: Node, value: Node) -> bool:
    """Whether the region reads the leaf only at the element of the value that it writes."""
    if leaf not in region.inputs:
        return True
    group = Group(-1, region.kind, region.space)
    bases: dict[Space, Indices] = {"tile": group.row, "row": group.row}
    if region.kind == "reduce":
        bases["element"] = group.element
    at = region.places(bases)
    starts = [(n, at[n]) for n in region.roots if n in at]
    for anchor in region.anchors:
        if anchor.op.kind == "reduce":
            starts.append((anchor.inputs[0], group.element))
        elif any(_touches(region, n, leaf) for n in anchor.inputs):
            return False
    return value in at and all(_reads_at(region, n, i, leaf, at[value]) for n, i in starts)


def _reads_at(region: Region, start: Node, at: Indices, leaf: Node, place: Indices) -> bool:
    """Whether computing `start` at `at` reads the leaf at `place` only."""
    inside, seen = set(region.nodes), set()
    stack = [(start, at)]
    while stack:
        item = stack.pop()
        node, where = item
        if item in seen or (node is not leaf and node not in inside):
            continue
        seen.add(item)
        if node is leaf:
            if where != place:
                return False
        elif node.op.kind == "view":
            stack.append((node.inputs[0], ix.read(node, where).indices))
        elif node.op.kind == "map":
            stack.extend((n, where) for n in node.inputs)
        elif node.op.kind == "gather" and _touches(region, node, leaf):
            return False
    return True


def _touches(region: Region, start: Node, leaf: Node) -> bool:
    """Whether the region's computation of a node reads the leaf at all."""
    inside, seen = set(region.nodes), set()
    stack = [start]
    while stack:
        node = stack.pop()
        if node is leaf:
            return True
        if node in inside and node not in seen:
            seen.add(node)
            stack.extend(node.inputs)
    return False
