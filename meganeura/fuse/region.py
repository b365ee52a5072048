"""Regions: the nodes that one kernel computes, and where in its space each of them lies."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from meganeura.ir import index as ix
from meganeura.ir.graph import Node, Shape
from meganeura.ir.index import Indices

Kind = Literal["map", "reduce", "matmul"]
Space = Literal["tile", "row", "element"]


@dataclass(frozen=True)
class Member:
    """A node that the kernel holds in registers.

    Its index is that of `via` (moved by the node, when it is a view), or the start of its space:
    `tile` is the space of a map or a
    matmul, `row` that of a reduction's results, `element` that of its operand.
    """

    node: Node
    space: Space
    via: Node | None = None


@dataclass(frozen=True)
class Space3:
    """The iteration space of a region: its shape, and for reductions the shape of the operand and
    the reduced axes.
    """

    shape: Shape
    operand: Shape = ()
    axes: tuple[int, ...] = ()

    @property
    def rows(self) -> int:
        """Number of results."""
        return math.prod(self.shape)

    @property
    def length(self) -> int:
        """Terms of each result of a reduction."""
        return math.prod(self.operand[a] for a in self.axes) if self.operand else 1

    def element(self, row: Indices, term: ix.Index) -> Indices:
        """The index into the operand of term number `term` of a result."""
        inner = ix.unflatten(term, tuple(self.operand[a] for a in self.axes))
        kept, reduced = iter(row), iter(inner)
        return tuple(
            next(reduced) if a in self.axes else next(kept) for a in range(len(self.operand))
        )


@dataclass(frozen=True)
class Region:
    """One kernel before it has a tile: what it computes, reads and stores.

    `anchors` are the reductions (in order of their phases) or the matmul; a map region has none.
    `roots` are stored nodes in
    the order of their buffers; `updates` pairs leaves with the roots that are stored into them in
    place.
    """

    index: int
    kind: Kind
    space: Space3
    anchors: tuple[Node, ...]
    members: tuple[Member, ...]
    roots: tuple[Node, ...]
    inputs: tuple[Node, ...]
    nodes: tuple[Node, ...]
    phases: tuple[tuple[Node, ...], ...] = ()
    updates: tuple[tuple[Node, Node], ...] = ()

    @property
    def label(self) -> str:
        """What it does, as `matmul + add + max`."""
        names = [n.op.name for n in self.nodes if n.op.kind not in ("leaf", "view")]
        composites = [n.origin.composite[0] for n in self.nodes if n.origin.composite]
        short = (
            list(dict.fromkeys(composites))
            if len(names) > 4 and composites
            else list(dict.fromkeys(names))
        )
        label = " + ".join(short[:4]) if short else "copy"
        return label + (" …" if len(short) > 4 else "")

    @property
    def phase(self) -> str:
        """The phase most of its stored nodes belong to: an update makes the kernel an update only
        if nothing else is done.
        """
        phases = [n.origin.phase for n in (self.anchors or self.roots)]
        return next((p for p in ("forward", "backward", "update") if p in phases), "forward")

    def bases(self, row: Indices, term: ix.Index | None = None) -> dict[Space, Indices]:
        """The start of each space for a result (and a term of a reduction)."""
        found: dict[Space, Indices] = {"tile": row, "row": row}
        if term is not None:
            found["element"] = self.space.element(row, term)
        return found

    def places(self, bases: Mapping[Space, Indices]) -> dict[Node, Indices]:
        """The index of every member whose space has a start."""
        at: dict[Node, Indices] = {}
        for member in self.members:
            if member.via is None:
                if member.space in bases:
                    at[member.node] = bases[member.space]
            elif member.via in at:
                at[member.node] = move(member.node, at[member.via])
        return at


def move(node: Node, at: Indices) -> Indices:
    """The index of a node that shares the place of an operand."""
    if node.op.kind != "view":
        return at
    moved = ix.write(node, at)
    assert moved is not None, node
    return moved
