"""Growing groups: reductions and matrix products start one; maps join where their operands already
lie in registers.

A node may join when every value that it takes from the group is at exactly the place where the
group has it, which the propagation of
indices decides, and when nothing else that it needs waits for the group.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from meganeura.fuse.region import Kind, Member, Space, Space3, move
from meganeura.ir import index as ix
from meganeura.ir.graph import Graph, Node
from meganeura.ir.index import Indices
from meganeura.target import Target

CHEAP = frozenset(
    {"neg", "abs", "add", "sub", "mul", "max", "min", "where", "cast", "not", "and", "or", "iota"}
) | {*("lt", "le", "gt", "ge", "eq", "ne")}
"""Maps that a reader rather computes again than loads, when their operands are at hand."""

SMALL = 32768
"""Elements up to which one workgroup a row is fast enough, however few the rows."""


MOST_SUMS = 8
"""Reductions of one kernel: each takes a register, and all wait for the last of their operands."""


@dataclass(eq=False)
class Group:
    """A region that still grows; `waits` are the groups that run before it, as bits by number."""

    number: int
    kind: Kind
    space: Space3
    anchors: list[Node] = field(default_factory=list)
    members: dict[Node, Member] = field(default_factory=dict)
    at: dict[Node, Indices] = field(default_factory=dict)
    sources: set[Node] = field(default_factory=set)
    waits: int = 0

    @property
    def bit(self) -> int:
        """The group in a set of groups; a probe, whose number is negative, is in none."""
        return 1 << self.number if self.number >= 0 else 0

    @cached_property
    def row(self) -> Indices:
        """The place of a result, in loop variables."""
        return tuple(ix.var(f"r{axis}", n) for axis, n in enumerate(self.space.shape))

    @cached_property
    def element(self) -> Indices:
        """The place of a term, in loop variables."""
        kept = iter(self.row)
        shape, axes = self.space.operand, self.space.axes
        return tuple(
            ix.var(f"t{a}", shape[a]) if a in axes else next(kept) for a in range(len(shape))
        )

    def hold(self, node: Node, space: Space, at: Indices, via: Node | None = None) -> None:
        """The node is in registers at that place."""
        self.members[node] = Member(node, space, via)
        self.at[node] = at


class Growth:
    """All groups of a graph while they grow, and what waits for what."""

    def __init__(self, graph: Graph, target: Target, kept: frozenset[Node] = frozenset()) -> None:
        self.graph, self.target, self.kept = graph, target, kept
        self.groups: list[Group] = []
        self.home: dict[Node, Group] = {}
        self._needs: dict[Node, int] = {}
        self._same: dict[Space3, list[Group]] = {}

    def needs(self, node: Node) -> int:
        """The groups whose values the node takes, directly or through nodes that float, as bits."""
        home = self.home.get(node)
        if home is not None:
            return home.bit
        found = self._needs.get(node)
        if found is None:
            found = self.needs_of(node)
            self._needs[node] = found
        return found

    def needs_of(self, node: Node) -> int:
        """The groups whose values the node's operands take."""
        found = 0
        for operand in node.inputs:
            found |= self.needs(operand)
        return found

    def _groups(self, bits: int) -> Iterator[Group]:
        """The groups of a set."""
        while bits:
            lowest = bits & -bits
            yield self.groups[lowest.bit_length() - 1]
            bits ^= lowest

    def forget(self) -> None:
        """Forgets what floating nodes need, before some of them find a home."""
        self._needs.clear()

    def start(self, node: Node, kind: Kind, space: Space3) -> Group:
        """A new group around a node."""
        group = self.found(kind, space)
        group.anchors.append(node)
        self.join(node, group, "row" if kind == "reduce" else "tile", group.row)
        if kind == "reduce":
            self.reads(node.inputs[0], group.element, group)
        return group

    def found(self, kind: Kind, space: Space3) -> Group:
        """A new group with nothing in it."""
        group = Group(len(self.groups), kind, space)
        self.groups.append(group)
        self._same.setdefault(space, []).append(group)
        return group

    def alike(self, kind: Kind, space: Space3) -> Iterator[Group]:
        """Groups of a kind over the same space, the latest first."""
        return (g for g in reversed(self._same.get(space, ())) if g.kind == kind)

    def join(
        self, node: Node, group: Group, space: Space, at: Indices, via: Node | None = None
    ) -> None:
        """The node becomes part of the group."""
        group.hold(node, space, at, via)
        self.home[node] = group
        self.also_waits(group, self.needs_of(node) & ~group.bit)

    def also_waits(self, group: Group, on: int) -> None:
        """The group, and whatever waits for it, turns out to need others."""
        if not on & ~group.waits:
            return
        group.waits |= on
        for other in self._groups(on):
            group.waits |= other.waits
        bit = group.bit
        for other in self.groups:
            if other.waits & bit:
                other.waits |= group.waits

    def may_wait(self, node: Node, group: Group) -> bool:
        """True when nothing that the node needs from elsewhere waits for the group."""
        elsewhere = self._groups(self.needs_of(node) & ~group.bit)
        return not any(other.waits & group.bit for other in elsewhere)

    def reads(self, node: Node, at: Indices, group: Group) -> bool:
        """Whether what the node needs of the group at `at` is in its registers; full-size sources
        are remembered.
        """
        seen: dict[tuple[Node, Indices], bool] = {}

        def visit(n: Node, where: Indices) -> bool:
            if (n, where) in seen:
                return seen[(n, where)]
            for below in reversed(self._chain(n)):
                if (below, where) not in seen:
                    seen[(below, where)] = True
                    seen[(below, where)] = check(below, where)
            return seen[(n, where)]

        def check(n: Node, where: Indices) -> bool:
            if n in group.at:
                return group.at[n] == where
            if n in self.home or n.op.kind == "leaf":
                group.sources.update(m for m in self._made_of(n) if m.size > 1)
                return True
            if self._comes_after(n, group):
                return False
            return all(visit(i, there) for i, there in operands(n, where))

        return visit(node, at)

    def _comes_after(self, node: Node, group: Group) -> bool:
        """Whether a floating node can only be read when the group is done: it lies in memory, or
        looks up a table, and is made from what the group makes.
        """
        stored = node if node in self.kept else node.inputs[0] if node.op.kind == "gather" else None
        return stored is not None and bool(self.needs(stored) & group.bit)

    def _chain(self, node: Node) -> list[Node]:
        """The node and the floating maps that it is made of at the same place, operands last: long
        chains are looked at from their far end, so that nothing recurses deeply.
        """
        found: dict[Node, None] = {}
        stack = [node]
        while stack:
            current = stack.pop()
            if current not in found:
                found[current] = None
                if current.op.kind == "map" and current not in self.home:
                    stack.extend(n for n in current.inputs if n.shape == current.shape)
        return list(found)

    def _made_of(self, node: Node) -> tuple[Node, ...]:
        """A tensor, and what a cheap one is made of: that may be read in its place."""
        return (node, *node.inputs) if node.op.name in CHEAP else (node,)

    def reads_all(self, node: Node, at: Indices, group: Group) -> bool:
        """As `reads`, for the operands of a node that would be computed at `at`."""
        table = node.inputs[0] if node.op.kind == "gather" else None
        if table is not None and self.needs(table) & group.bit:
            return False
        return all(self.reads(n, there, group) for n, there in operands(node, at))


def operands(node: Node, at: Indices) -> list[tuple[Node, Indices]]:
    """What a node reads for its element `at`, and where; not the table of a gather, which it reads
    anywhere.
    """
    if node.op.kind == "view":
        return [(node.inputs[0], ix.read(node, at).indices)]
    if node.op.kind == "gather":
        axis, rank = node.attr("axis"), len(node.inputs[1].shape)
        return [(node.inputs[1], at[axis : axis + rank])]
    return [(operand, at) for operand in node.inputs]


def grow(
    graph: Graph,
    target: Target,
    fuse: bool,
    kept: frozenset[Node] = frozenset(),
    apart: frozenset[Node] = frozenset(),
) -> Growth:
    """Groups around every reduction and product, with the maps that fit their registers.

    `kept` nodes lie in memory whatever reads them; none of `apart` joins a group.
    """
    growth = Growth(graph, target, kept)
    for node in graph.nodes:
        growth.needs(node)
        if node.op.kind == "contract":
            growth.start(node, "matmul", Space3(node.shape))
        elif node.op.kind == "reduce":
            _reduction(growth, node, fuse and node not in apart)
        elif node.op.kind != "leaf" and fuse and node not in apart:
            _epilogue(growth, node)
    return growth


def _reduction(growth: Growth, node: Node, fuse: bool) -> None:
    """A reduction joins another over the same terms when it uses its result, or reads the same
    tensors; else it starts a group.
    """
    (x,) = node.inputs
    space = Space3(node.shape, x.shape, node.attr("axes"))
    wide: set[Node] | None = None
    for group in growth.alike("reduce", space) if fuse else ():
        if wide is None:
            wide = {n for n in _sources(growth, node, group) if n.size >= x.size}
        if _can_share(growth, node, group, wide):
            group.anchors.append(node)
            growth.join(node, group, "row", group.row)
            return
    growth.start(node, "reduce", space)


def _can_share(growth: Growth, node: Node, group: Group, wide: set[Node]) -> bool:
    if len(group.anchors) == MOST_SUMS:
        return False
    if not (growth.needs(node) & group.bit or wide & group.sources):
        return False
    if not growth.may_wait(node, group):
        return False
    before = set(group.sources)
    if growth.reads(node.inputs[0], group.element, group):
        return True
    group.sources = before
    return False


def _sources(growth: Growth, node: Node, group: Group) -> set[Node]:
    """The tensors that a reduction would read in the space of a group, all from memory."""
    probe = Group(-1, "reduce", group.space)
    growth.reads(node.inputs[0], probe.element, probe)
    return probe.sources


def _epilogue(growth: Growth, node: Node) -> None:
    """A map, gather or view joins the latest group of its operands that has it at one place."""
    candidates = sorted(
        {growth.home[n] for n in node.inputs if n in growth.home},
        key=lambda g: g.number,
        reverse=True,
    )
    for group in candidates:
        place = _place(growth, node, group)
        if place is not None and growth.may_wait(node, group):
            space, at, via = place
            if growth.reads_all(node, at, group):
                growth.join(node, group, space, at, via)
                return


def _place(growth: Growth, node: Node, group: Group) -> tuple[Space, Indices, Node | None] | None:
    """Where in a group a node would be computed: at the place of an operand, or spread over a row's
    terms.
    """
    if node.op.name == "expand":
        if (
            group.kind != "reduce"
            or node.shape != group.space.operand
            or not _worth_a_row(group, growth.target)
        ):
            return None
        return "element", group.element, None
    if node.op.kind == "view":
        operand = node.inputs[0]
        if ix.write(node, group.at[operand]) is None:
            return None
        return group.members[operand].space, move(node, group.at[operand]), operand
    if node.op.kind == "gather":
        return None
    for operand in node.inputs:
        if operand in group.at:
            return group.members[operand].space, group.at[operand], operand
    return None


def _worth_a_row(group: Group, target: Target) -> bool:
    """Writing the terms from the reduction's own workgroups pays when there are enough of them."""
    rows = group.space.rows
    return rows >= target.units or rows * group.space.length <= SMALL
