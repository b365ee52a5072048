"""Growing groups: reductions and matrix products start one; maps join where their operands already
lie in registers.

A node may join when every value that it takes from the group is at exactly the place where the
group has it, which the propagation of
indices decides, and when nothing else that it needs waits for the group.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

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


@dataclass(eq=False)
class Group:
    """A region that still grows."""

    number: int
    kind: Kind
    space: Space3
    anchors: list[Node] = field(default_factory=list)
    members: dict[Node, Member] = field(default_factory=dict)
    at: dict[Node, Indices] = field(default_factory=dict)
    sources: set[Node] = field(default_factory=set)
    waits: set[Group] = field(default_factory=set)

    @property
    def row(self) -> Indices:
        """The place of a result, in loop variables."""
        return tuple(ix.var(f"r{axis}", n) for axis, n in enumerate(self.space.shape))

    @property
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

    def __init__(self, graph: Graph, target: Target) -> None:
        self.graph = graph
        self.target = target
        self.groups: list[Group] = []
        self.home: dict[Node, Group] = {}
        self._needs: dict[Node, frozenset[Group]] = {}

    def needs(self, node: Node) -> frozenset[Group]:
        """The groups whose values the node takes, directly or through nodes that float."""
        if node in self.home:
            return frozenset((self.home[node],))
        found = self._needs.get(node)
        if found is None:
            found = (
                frozenset().union(*(self.needs(n) for n in node.inputs))
                if node.inputs
                else frozenset()
            )
            self._needs[node] = found
        return found

    def forget(self) -> None:
        """Forgets what floating nodes need, after one of them found a home."""
        self._needs.clear()

    def start(self, node: Node, kind: Kind, space: Space3) -> Group:
        """A new group around a node."""
        group = Group(len(self.groups), kind, space, [node])
        group.hold(node, "row" if kind == "reduce" else "tile", group.row)
        self.groups.append(group)
        self.home[node] = group
        self._wait(group, node)
        if kind == "reduce":
            self.reads(node.inputs[0], group.element, group)
        return group

    def join(
        self, node: Node, group: Group, space: Space, at: Indices, via: Node | None = None
    ) -> None:
        """The node becomes part of the group."""
        group.hold(node, space, at, via)
        self.home[node] = group
        self._wait(group, node)

    def _wait(self, group: Group, node: Node) -> None:
        needed = {h for n in node.inputs for h in self.needs(n)} - {group}
        group.waits |= needed | {w for h in needed for w in h.waits}
        for other in self.groups:
            if group in other.waits:
                other.waits |= group.waits

    def also_waits(self, group: Group, on: Group) -> None:
        """The group turns out to need another one."""
        group.waits |= {on} | on.waits
        for other in self.groups:
            if group in other.waits:
                other.waits |= group.waits

    def may_wait(self, node: Node, group: Group) -> bool:
        """True when nothing that the node needs from elsewhere waits for the group."""
        needed = {h for n in node.inputs for h in self.needs(n)} - {group}
        return all(group not in h.waits for h in needed)

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
                self._source(n, group, lambda: [visit(i, where) for i in n.inputs])
                return True
            if n.op.kind == "view":
                return visit(n.inputs[0], ix.read(n, where).indices)
            if n.op.kind == "gather":
                return group not in self.needs(n.inputs[0]) and visit(
                    n.inputs[1], gather_index(n, where)
                )
            return all(visit(i, where) for i in n.inputs)

        return visit(node, at)

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

    def _source(self, node: Node, group: Group, look_through: Callable[[], object]) -> None:
        """Remembers a tensor that the group reads, and what a cheap one is made of."""
        if node.size > 1:
            group.sources.add(node)
        if node.op.name in CHEAP:
            look_through()

    def reads_all(self, node: Node, at: Indices, group: Group) -> bool:
        """As `reads`, for the operands of a node that would be computed at `at`."""
        if node.op.kind == "view":
            return self.reads(node.inputs[0], ix.read(node, at).indices, group)
        if node.op.kind == "gather":
            return group not in self.needs(node.inputs[0]) and self.reads(
                node.inputs[1], gather_index(node, at), group
            )
        return all(self.reads(n, at, group) for n in node.inputs)


def gather_index(node: Node, at: Indices) -> Indices:
    """The index into a gather's index tensor."""
    axis, rank = node.attr("axis"), len(node.inputs[1].shape)
    return at[axis : axis + rank]


def grow(graph: Graph, target: Target, fuse: bool, apart: frozenset[Node] = frozenset()) -> Growth:
    """Groups around every reduction and product, with the maps that fit their registers; none of
    `apart` joins.
    """
    growth = Growth(graph, target)
    for node in graph.nodes:
        growth.needs(node)
        if node.op.kind == "contract":
            growth.start(node, "matmul", Space3(node.shape))
        elif node.op.kind == "reduce":
            _reduction(growth, node, fuse)
        elif node.op.kind != "leaf" and fuse and node not in apart:
            _epilogue(growth, node)
    return growth


def _reduction(growth: Growth, node: Node, fuse: bool) -> None:
    space = Space3(node.shape, node.inputs[0].shape, node.attr("axes"))
    for group in reversed(growth.groups) if fuse else ():
        if group.kind == "reduce" and _can_share(growth, node, group, space):
            group.anchors.append(node)
            growth.join(node, group, "row", group.row)
            return
    growth.start(node, "reduce", space)


def _can_share(growth: Growth, node: Node, group: Group, space: Space3) -> bool:
    """A reduction joins another over the same terms when it uses its result, or reads the same
    tensors.
    """
    if (group.space.operand, group.space.axes) != (space.operand, space.axes):
        return False
    if not growth.may_wait(node, group):
        return False
    (x,) = node.inputs
    before = set(group.sources)
    fits = growth.reads(x, group.element, group)
    related = group in growth.needs(x) or _common_source(growth, x, group, before)
    if not (fits and related):
        group.sources = before
    return fits and related


def _common_source(growth: Growth, x: Node, group: Group, before: set[Node]) -> bool:
    probe = Group(-1, "reduce", group.space)
    growth.reads(x, group.element, probe)
    wide = {n for n in probe.sources if n.size >= x.size}
    return bool(wide & before)


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
