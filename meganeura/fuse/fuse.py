"""The fusion pass: a lowered graph becomes regions, one for each kernel."""

from __future__ import annotations

from dataclasses import dataclass

from meganeura.fuse.grow import Group, Growth, grow
from meganeura.fuse.inplace import unsafe
from meganeura.fuse.region import Region
from meganeura.fuse.store import Floats, Stores, computed, map_groups
from meganeura.ir import build
from meganeura.ir.graph import Graph, Node
from meganeura.target import Target
from meganeura.trace import Build, note, rebuilding, stage


@dataclass(frozen=True)
class Fused:
    """A graph cut into regions.

    `stored` maps each named output to the node whose buffer holds it (the output itself, or what it
    is a reshape of).
    """

    graph: Graph
    regions: tuple[Region, ...]
    holders: tuple[tuple[str, Node], ...]
    updates: tuple[tuple[Node, Node], ...]

    @property
    def names(self) -> dict[str, Node]:
        """Computed tensors by the user's names, with what holds their values."""
        named = {n.origin.name: holder(n) for n in self.graph.nodes if n.origin.name is not None}
        return named | {name: node for name, node in self.holders if node.op.kind != "leaf"}


@stage("fuse")
def fuse(graph: Graph, target: Target, enabled: bool = True) -> Fused:
    """A lowered graph -> regions: each a kernel; with `enabled=False` one for each operation."""
    graph = _own_values(graph)
    fused = _bound(graph, target, enabled, frozenset())
    refused: set[Node] = set()
    while more := unsafe(fused.graph, list(fused.regions)):
        refused |= more
        copied = {leaf: _copy(value) for leaf, value in graph.updates if leaf in refused}
        values = tuple((leaf, copied.get(leaf, value)) for leaf, value in graph.updates)
        fused = _bound(Graph(graph.outputs, values), target, enabled, frozenset(copied.values()))
    note("regions", len(fused.regions))
    note("operations", sum(n.op.kind not in ("leaf", "view") for n in graph.nodes))
    note("copied", sorted(str(leaf.name) for leaf in refused))
    return fused


def _bound(graph: Graph, target: Target, enabled: bool, copies: frozenset[Node]) -> Fused:
    """Regions that bind no more buffers than the target allows: those that do are taken apart."""
    apart = copies
    while True:
        fused = _cut(graph, target, enabled, apart)
        wide = [r for r in fused.regions if buffers(r) > target.storage_buffers]
        moved = frozenset(n for r in wide for n in _half(r)) - apart
        if not moved:
            return fused
        apart |= moved


def buffers(region: Region) -> int:
    """Storage buffers that a region's kernel binds."""
    return len(
        {*region.inputs, *region.roots}
        - {value for leaf, value in region.updates if leaf in region.inputs}
    )


def _half(region: Region) -> tuple[Node, ...]:
    """What a region can give up, to be computed by itself: the later half of the maps that it
    stores, or of its reductions, or a map half way.
    """
    maps = tuple(n for n in region.roots if n.op.kind in ("map", "gather"))
    if maps and len(region.roots) > 1:
        return maps[len(maps) // 2 :]
    if len(region.anchors) > 1:
        return region.anchors[len(region.anchors) // 2 :]
    inner = [n for n in region.nodes if n.op.kind == "map" and n not in region.roots]
    return tuple(inner[len(inner) // 2 :][:1])


def _cut(graph: Graph, target: Target, enabled: bool, apart: frozenset[Node]) -> Fused:
    """The regions of a graph; outputs, new values and what a copy copies are stored, and so are
    those `apart`, each by a launch of its own.
    """
    copied = tuple(c.inputs[0] for _, c in graph.updates if c in apart)
    roots = (*graph.roots, *copied)
    wanted = frozenset(holder(n) for n in roots if holder(n).op.kind != "leaf") | apart
    growth = grow(graph, target, enabled, wanted, apart)
    floats = Floats(graph, growth, enabled, wanted)
    map_groups(graph, growth, floats, apart)
    stores = Stores(growth, wanted, enabled)
    regions = _regions(growth, stores, {value: leaf for leaf, value in graph.updates})
    return Fused(
        graph, tuple(regions), tuple((name, holder(n)) for name, n in graph.outputs), graph.updates
    )


def holder(node: Node) -> Node:
    """The node whose buffer holds the value: a reshape shares the buffer of its operand."""
    while node.op.name == "reshape":
        node = node.inputs[0]
    return node


def _copy(node: Node) -> Node:
    """The same value as a node of its own."""
    origin = node.origin
    with rebuilding(Build(origin.scope, origin.composite, "update", origin.forward, node)):
        zero = 0 if node.dtype.name != "bool" else False
        name = "or" if node.dtype.name == "bool" else "add"
        return build.apply(
            name, node, build.broadcast_to(build.constant(zero, node.dtype), node.shape)
        )


def _own_values(graph: Graph) -> Graph:
    """Each updated leaf gets a value node of its own, that is neither a leaf nor a reshape nor
    another's value.
    """
    taken: set[Node] = set()
    updates = []
    for leaf, value in graph.updates:
        plain = (
            value.op.kind in ("leaf", "view")
            or value in taken
            or any(value is n for _, n in graph.outputs)
        )
        updates.append((leaf, _copy(value) if plain else value))
        taken.add(updates[-1][1])
    return Graph(graph.outputs, tuple(updates))


def _regions(growth: Growth, stores: Stores, updates: dict[Node, Node]) -> list[Region]:
    regions: list[Region] = []
    for group in growth.groups:
        roots = [n for n in group.members if n in stores.stored]
        if roots:
            regions.append(_region(len(regions), group, roots, growth, stores, updates))
    return regions


def _region(
    index: int,
    group: Group,
    roots: list[Node],
    growth: Growth,
    stores: Stores,
    updates: dict[Node, Node],
) -> Region:
    nodes, inputs = computed(group, roots, stores.stored, growth.home)
    inside = set(nodes)
    anchors = tuple(a for a in group.anchors if a in inside)
    members = tuple(m for m in group.members.values())
    return Region(
        index=index,
        kind=group.kind,
        space=group.space,
        anchors=anchors,
        members=members,
        roots=tuple(roots),
        inputs=tuple(inputs),
        nodes=tuple(nodes),
        phases=_phases(anchors, nodes) if group.kind == "reduce" else (),
        updates=tuple((updates[value], value) for value in roots if value in updates),
    )


def _phases(anchors: tuple[Node, ...], nodes: list[Node]) -> tuple[tuple[Node, ...], ...]:
    """Reductions that can run in one loop over the terms, in the order in which they need each
    other.
    """
    level: dict[Node, int] = {}
    for node in nodes:
        below = max((level[n] for n in node.inputs if n in level), default=0)
        level[node] = below + (node in anchors)
    depth = max((level[a] for a in anchors), default=0)
    return tuple(tuple(a for a in anchors if level[a] == d) for d in range(1, depth + 1))
