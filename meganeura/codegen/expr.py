"""Folding node expressions into WGSL statements.

An emitter writes the value of a node at an index, in one lane or in four neighbouring ones. Views
move the index, maps become
expressions, stored tensors become loads; four lanes whose addresses are neighbours become one
vector load.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from meganeura.codegen.names import Names
from meganeura.errors import SpecError
from meganeura.ir import index as ix
from meganeura.ir.dtypes import DType
from meganeura.ir.graph import Node
from meganeura.ir.index import Indices

Lanes = tuple[Indices, ...]


@dataclass
class Buffers:
    """The buffers that a kernel's text touches; `vectors` are declared as arrays of vec4."""

    names: Names
    targets: Mapping[Node, Node]
    vectors: frozenset[Node] | None = None
    vector_use: set[Node] = field(default_factory=set)
    scalar_load: set[Node] = field(default_factory=set)
    scalar_store: set[Node] = field(default_factory=set)
    read: dict[Node, None] = field(default_factory=dict)
    written: dict[Node, None] = field(default_factory=dict)

    def buffer(self, node: Node) -> Node:
        """The node whose buffer a stored node lies in: a leaf, when it is that leaf's new value."""
        return self.targets.get(node, node)

    def is_vector(self, node: Node) -> bool:
        """Whether the buffer is declared as vec4; on the first pass everything may be."""
        return self.vectors is None or node in self.vectors

    def settle(self) -> frozenset[Node]:
        """The buffers to declare as vec4, once the uses are known."""
        return frozenset(self.vector_use - self.scalar_store)

    @property
    def mixed(self) -> bool:
        """Whether some buffer is used both ways, which its declaration must be known for."""
        return bool(self.vector_use & (self.scalar_load | self.scalar_store))


@dataclass(frozen=True)
class Line:
    """A line of WGSL and the node that it computes."""

    text: str
    node: Node | None = None


class Emitter:
    """Writes statements into one function."""

    def __init__(
        self, buffers: Buffers, stored: frozenset[Node], known: Mapping[Node, str], depth: int = 1
    ) -> None:
        self.buffers = buffers
        self.stored = stored
        self.known = known
        self.lines: list[Line] = []
        self.depth = depth
        self.lane: int | None = None
        self._memo: list[dict[tuple[Node, Lanes, int | None], str]] = [{}]
        self._count = 0

    def put(self, text: str, node: Node | None = None) -> None:
        """A line at the present depth."""
        self.lines.append(Line("  " * self.depth + text, node))

    def fresh(self) -> str:
        """A new local name."""
        self._count += 1
        return f"v{self._count - 1}"

    def open(self, head: str) -> None:
        """Begins a block; what is computed inside is not visible after it."""
        self.put(head + " {")
        self.depth += 1
        self._memo.append({})

    def close(self) -> None:
        """Ends the block."""
        self._memo.pop()
        self.depth -= 1
        self.put("}")

    def value(self, node: Node, at: Lanes) -> str:
        """An expression or name for the node at the lanes' indices."""
        if node in self.known:
            return self._register(node, len(at))
        if node.op.name == "constant" and node.size == 1:
            return literal(node, len(at))
        if len(at) == 4 and at[0] == at[1] == at[2] == at[3]:
            return f"{vector(node.dtype)}({self.value(node, at[:1])})"
        found = self._find(node, at)
        if found is not None:
            return found
        for below in reversed(self._chain(node, at)):
            if self._find(below, at) is None:
                self._memo[-1][(below, at, self.lane)] = self._compute(below, at)
        return self._memo[-1][(node, at, self.lane)]

    def _find(self, node: Node, at: Lanes) -> str | None:
        """The name of a value that is there already."""
        key = (node, at, self.lane)
        for memo in reversed(self._memo):
            found = memo.get(key)
            if found is not None:
                return found
        return None

    def _chain(self, node: Node, at: Lanes) -> list[Node]:
        """The node and the maps that it is made of at the same place, operands last: long chains
        are written from their far end, so that nothing recurses deeply.
        """
        found: dict[Node, None] = {}
        stack = [node]
        while stack:
            current = stack.pop()
            if current in found or self._find(current, at) is not None:
                continue
            found[current] = None
            if current.op.kind == "map" and current not in self.stored:
                stack.extend(
                    n for n in current.inputs if n.op.kind == "map" and n not in self.known
                )
        return list(found)

    def _register(self, node: Node, lanes: int) -> str:
        name = self.known[node]
        if name.startswith("state."):
            return name if lanes == 1 else f"{vector(node.dtype)}({name})"
        return name if lanes == 4 else f"{name}[{self.lane}]" if self.lane is not None else name

    def _compute(self, node: Node, at: Lanes) -> str:
        kind = node.op.kind
        if kind == "leaf" or node in self.stored:
            return self._load(node, at)
        if kind == "view":
            return self._view(node, at)
        if kind == "gather":
            return self._gather(node, at)
        if kind != "map":
            raise SpecError(
                f"a {node.op.name} is neither stored nor in registers",
                expected="a fused region that holds it",
                got=repr(node),
                origin=node.origin,
            )
        return self._map(node, at)

    def _each(self, node: Node, at: Lanes) -> str:
        """Four lanes one by one."""
        parts = []
        before = self.lane
        for lane, single in enumerate(at):
            self.lane = lane
            parts.append(self.value(node, (single,)))
        self.lane = before
        return self._let(node, f"{vector(node.dtype)}({', '.join(parts)})")

    def _let(self, node: Node, expression: str) -> str:
        name = self.fresh()
        self.put(f"let {name} = {expression};", node)
        return name

    def _view(self, node: Node, at: Lanes) -> str:
        reads = [ix.read(node, single) for single in at]
        guards = reads[0].guards
        if any(r.guards != guards for r in reads):
            return self._each(node, at)
        inner = tuple(r.indices for r in reads)
        if not guards:
            return self.value(node.inputs[0], inner)
        dtype, name = node.dtype, self.fresh()
        kind = dtype.wgsl if len(at) == 1 else vector(dtype)
        fill = f"{kind}({number(reads[0].fill, dtype)})"
        if any(g.impossible for g in guards):
            return fill
        self.put(f"var {name} = {fill};", node)
        self.open("if (" + " && ".join(ix.condition(g) for g in guards) + ")")
        self.put(f"{name} = {self.value(node.inputs[0], inner)};", node)
        self.close()
        return name

    def _gather(self, node: Node, at: Lanes) -> str:
        if len(at) == 4:
            return self._gather_lanes(node, at)
        axis, rank = node.attr("axis"), len(node.inputs[1].shape)
        source, (single,) = node.inputs[0], at
        count = source.shape[axis]
        raw = self.value(node.inputs[1], (single[axis : axis + rank],))
        name = self.fresh()
        self.put(f"let {name} = {clamped(raw, node)};", node)
        place = (
            *single[:axis],
            ix.var(name, count) if count > 1 else ix.ZERO,
            *single[axis + rank :],
        )
        return self.value(source, (place,))

    def _gather_lanes(self, node: Node, at: Lanes) -> str:
        """Neighbours in the same row of the table are one vector load; others go one by one."""
        axis, rank = node.attr("axis"), len(node.inputs[1].shape)
        first = at[0][axis : axis + rank]
        if any(single[axis : axis + rank] != first for single in at[1:]):
            return self._each(node, at)
        source = node.inputs[0]
        count = source.shape[axis]
        raw = self.value(node.inputs[1], (first,))
        name = self.fresh()
        self.put(f"let {name} = {clamped(raw, node)};", node)
        row = ix.var(name, count)
        return self.value(source, tuple((*s[:axis], row, *s[axis + rank :]) for s in at))

    def _map(self, node: Node, at: Lanes) -> str:
        special = {"iota": self._iota, "random": self._random, "cast": self._cast}.get(node.op.name)
        if special is not None:
            return special(node, at)
        operands = [self.value(n, at) for n in node.inputs]
        if node.op.name in ("max", "min") and node.dtype.is_float:
            return self._let(node, extreme(node, operands))
        text = node.op.wgsl
        if not text.startswith("mg_"):
            return self._let(node, text.format(*operands))
        if len(at) == 4:
            text = text.replace("(", "4(", 1)
        if node.dtype.name != "f16":
            return self._let(node, text.format(*operands))
        wide, half = ("f32", "f16") if len(at) == 1 else ("vec4<f32>", "vec4<f16>")
        inner = text.format(*(f"{wide}({o})" for o in operands))
        return self._let(node, f"{half}({inner})")

    def _iota(self, node: Node, at: Lanes) -> str:
        axis = node.attr("axis")
        parts = [f"i32({ix.text(single[axis])})" for single in at]
        return parts[0] if len(at) == 1 else self._let(node, f"vec4<i32>({', '.join(parts)})")

    def _random(self, node: Node, at: Lanes) -> str:
        if len(at) == 4:
            return self._each(node, at)
        seed = self.value(node.inputs[0], at)
        index = ix.text(ix.flatten(at[0], node.shape))
        return self._let(node, f"mg_random({index}, {seed}, {node.attr('stream')}u)")

    def _cast(self, node: Node, at: Lanes) -> str:
        inner = self.value(node.inputs[0], at)
        kind = node.dtype.wgsl if len(at) == 1 else vector(node.dtype)
        return self._let(node, f"{kind}({inner})")

    def _load(self, node: Node, at: Lanes) -> str:
        buffer = self.buffers.buffer(node)
        self.buffers.read.setdefault(buffer)
        flats = [ix.flatten(single, node.shape) for single in at]
        name = self.buffers.names.of(buffer)
        if len(at) == 4:
            if neighbours(flats) and self.buffers.is_vector(buffer):
                self.buffers.vector_use.add(buffer)
                return self._let(
                    node, from_storage(f"{name}[{ix.text(ix.div(flats[0], 4))}]", node.dtype, 4)
                )
            return self._each(node, at)
        self.buffers.scalar_load.add(buffer)
        if self.buffers.vectors is not None and buffer in self.buffers.vectors:
            place = f"[{ix.text(ix.div(flats[0], 4))}][{ix.text(ix.mod(flats[0], 4))}]"
        else:
            place = f"[{ix.text(flats[0])}]"
        return self._let(node, from_storage(name + place, node.dtype, 1))

    def store(self, node: Node, at: Lanes, value: str) -> None:
        """Writes a root into its buffer."""
        buffer = self.buffers.buffer(node)
        self.buffers.written.setdefault(buffer)
        name = self.buffers.names.of(buffer)
        flats = [ix.flatten(single, node.shape) for single in at]
        if len(at) == 4 and neighbours(flats) and self.buffers.is_vector(buffer):
            self.buffers.vector_use.add(buffer)
            self.put(
                f"{name}[{ix.text(ix.div(flats[0], 4))}] = {to_storage(value, node.dtype, 4)};",
                node,
            )
            return
        self.buffers.scalar_store.add(buffer)
        for lane, flat in enumerate(flats):
            part = value if len(at) == 1 else f"{value}[{lane}]"
            self.put(f"{name}[{ix.text(flat)}] = {to_storage(part, node.dtype, 1)};", node)


def extreme(node: Node, operands: list[str]) -> str:
    """The greater or lesser of two floats, NaN where one is: WGSL's `max` may drop it, and a relu
    would then hide what has gone wrong before it.
    """
    x, y = reversed(operands) if _is_number(node.inputs[0]) else operands
    sign = "<" if node.op.name == "max" else ">"
    chosen = f"select({x}, {y}, {x} {sign} {y})"  # x where x is NaN
    if any(map(_is_number, node.inputs)):
        return chosen
    return f"select({chosen}, {y}, !({y} == {y}))"


def _is_number(node: Node) -> bool:
    """A constant of one element, perhaps repeated."""
    while node.op.kind == "view":
        node = node.inputs[0]
    return node.op.name == "constant" and node.size == 1


def clamped(index: str, node: Node) -> str:
    """A gather's index, the nearest one where there is none."""
    last = node.inputs[0].shape[node.attr("axis")] - 1
    if node.inputs[1].dtype.name == "u32":
        return f"min({index}, {last}u)"
    return f"u32(clamp({index}, 0, {last}))"


def vector(dtype: DType) -> str:
    """The WGSL type of four lanes."""
    return f"vec4<{dtype.wgsl}>"


def neighbours(flats: list[ix.Index]) -> bool:
    """True when four addresses are one aligned vector."""
    first = flats[0]
    return first.divides(4) and all(f == ix.add(first, ix.const(j)) for j, f in enumerate(flats))


def from_storage(place: str, dtype: DType, lanes: int) -> str:
    """A load; bools lie in buffers as 0 and 1."""
    if dtype.name != "bool":
        return place
    return f"({place} != 0u)" if lanes == 1 else f"({place} != vec4<u32>(0u))"


def to_storage(value: str, dtype: DType, lanes: int) -> str:
    """What is written for a value; bools lie in buffers as 0 and 1."""
    if dtype.name != "bool":
        return value
    return (
        f"select(0u, 1u, {value})"
        if lanes == 1
        else f"select(vec4<u32>(0u), vec4<u32>(1u), {value})"
    )


def literal(node: Node, lanes: int) -> str:
    """A constant of one element, as text."""
    text = number(node.attr("value").array.reshape(-1)[0], node.dtype)
    return text if lanes == 1 else f"{vector(node.dtype)}({text})"


def number(value: float, dtype: DType) -> str:
    """A number in WGSL's syntax; what is not finite by its bits."""
    if dtype.name == "bool":
        return "true" if value else "false"
    if dtype.name == "i32":
        return f"i32({int(value)})" if int(value) >= -(2**31) + 1 else "(-2147483647i - 1i)"
    if dtype.name == "u32":
        return f"{int(value)}u"
    single = np.float32(value) if dtype.name == "f32" else np.float16(value)
    if not np.isfinite(single):
        bits = int(np.float32(value).view(np.uint32))
        return f"bitcast<f32>({bits:#x}u)"
    text = repr(float(single)) if dtype.name == "f16" else str(single)
    text = text if any(c in text for c in ".e") else text + ".0"
    return f"f16({text})" if dtype.name == "f16" else f"({text})" if text.startswith("-") else text
