"""Nodes and graphs: immutable, hash-consed, so that "unchanged" is `is` and a snapshot costs
nothing.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal
from weakref import WeakValueDictionary

import numpy as np

from meganeura.ir.dtypes import DType
from meganeura.ir.source import Origin

Shape = tuple[int, ...]
Attrs = tuple[tuple[str, Hashable], ...]
Array = np.ndarray[Any, Any]
Kind = Literal["leaf", "map", "view", "reduce", "contract", "gather"]


@dataclass(frozen=True, eq=False)
class Op:
    """One row of the table of operations: all that is known of an operation alone.

    `infer(inputs, attrs)` gives shape and dtype or raises; `numpy(node, *arrays)` is the reference
    meaning; `wgsl` is an expression with `{0}`, `{1}` for the operands; `flops` counts per element
    of the result (of the input for reductions). `gradient` is the rule that an operation of one's
    own brings along; those of the table have theirs in `autodiff`.
    """

    name: str
    kind: Kind
    arity: int
    infer: Callable[[tuple[Node, ...], Mapping[str, Any]], tuple[Shape, DType]]
    numpy: Callable[..., Array]
    wgsl: str = ""
    flops: int = 1
    traits: frozenset[str] = frozenset()
    gradient: Callable[[Node, Node], tuple[Node | None, ...]] | None = None

    def __repr__(self) -> str:
        return self.name


class Node:
    """An application of an operation to nodes; two equal ones are one object.

    Made by `Node.make` only. `attrs` are hashable; `serial` numbers nodes in order of creation.
    """

    __slots__ = ("__weakref__", "attrs", "dtype", "inputs", "op", "origin", "serial", "shape")

    op: Op
    inputs: tuple[Node, ...]
    attrs: Attrs
    shape: Shape
    dtype: DType
    origin: Origin
    serial: int

    @staticmethod
    def make(op: Op, inputs: tuple[Node, ...], attrs: Mapping[str, Any], origin: Origin) -> Node:
        """The one node for this operation, operands, attributes and origin; shapes are checked on
        creation.
        """
        packed = tuple(sorted(attrs.items()))
        key = (op, tuple(map(id, inputs)), packed, origin)
        found = _interned.get(key)
        if found is not None:
            return found
        shape, dtype = op.infer(inputs, attrs)
        node = object.__new__(Node)
        for field_name, value in (
            ("op", op),
            ("inputs", inputs),
            ("attrs", packed),
            ("shape", shape),
            ("dtype", dtype),
            ("origin", origin),
            ("serial", next(_serials)),
        ):
            object.__setattr__(node, field_name, value)
        _interned[key] = node
        return node

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"nodes are immutable: cannot set {name}")

    def attr(self, name: str) -> Any:
        """The attribute's value; KeyError when the operation has none of that name."""
        for key, value in self.attrs:
            if key == name:
                return value
        raise KeyError(f"{self.op.name} has no attribute {name!r}")

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes in a storage buffer."""
        return self.size * self.dtype.bytes

    @property
    def name(self) -> str | None:
        """The user's name: of an input, parameter or state, or given by `named`."""
        if self.op.kind == "leaf" and self.op.name != "constant":
            return str(self.attr("name"))
        return self.origin.name

    def with_inputs(self, inputs: tuple[Node, ...]) -> Node:
        """The same operation at the same place, on other operands."""
        if all(a is b for a, b in zip(inputs, self.inputs, strict=True)):
            return self
        return Node.make(self.op, inputs, dict(self.attrs), self.origin)

    def with_name(self, name: str) -> Node:
        """The same node under a user's name."""
        return Node.make(self.op, self.inputs, dict(self.attrs), replace(self.origin, name=name))

    def __repr__(self) -> str:
        label = f" {self.name!r}" if self.name else ""
        return f"<{self.op.name}{label} {list(self.shape)} {self.dtype}>"


# Hash-consing needs one table for the process; entries die with their nodes.
_interned: WeakValueDictionary[Any, Node] = WeakValueDictionary()
_serials = itertools.count()


def topological(roots: Iterable[Node], known: Container[Node] = ()) -> tuple[Node, ...]:
    """All nodes that the roots need, operands first, in an order that depends on the graph
    alone; nothing that is `known`, nor what only that needs.
    """
    done: dict[Node, None] = {}
    for root in roots:
        stack: list[tuple[Node, Iterator[Node]]] = [(root, iter(root.inputs))]
        if root in done or root in known:
            continue
        while stack:
            node, rest = stack[-1]
            following = next((n for n in rest if n not in done and n not in known), None)
            if following is not None:
                stack.append((following, iter(following.inputs)))
            else:
                stack.pop()
                done.setdefault(node)
    return tuple(done)


@dataclass(frozen=True)
class Graph:
    """A program before it is scheduled: named outputs, and new values for leaves that live on the
    device.
    """

    outputs: tuple[tuple[str, Node], ...]
    updates: tuple[tuple[Node, Node], ...] = ()

    @property
    def roots(self) -> tuple[Node, ...]:
        """Everything that must be computed."""
        return tuple(n for _, n in self.outputs) + tuple(n for _, n in self.updates)

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes, operands first."""
        return topological((*self.roots, *(leaf for leaf, _ in self.updates)))

    def leaves(self, op: str) -> tuple[Node, ...]:
        """The leaves of one operation: "input", "parameter", "state" or "constant", in order of
        creation.
        """
        return tuple(sorted((n for n in self.nodes if n.op.name == op), key=lambda n: n.serial))

    @property
    def inputs(self) -> tuple[Node, ...]:
        """The feeds, in order of creation."""
        return self.leaves("input")

    @property
    def parameters(self) -> tuple[Node, ...]:
        """The parameters, in order of creation."""
        return self.leaves("parameter")

    def text(self) -> str:
        """The graph as text: one node a line, the same for the same graph."""
        from meganeura.ir.text import text

        return text(self)

    @cached_property
    def users(self) -> dict[Node, tuple[Node, ...]]:
        """For each node the nodes that read it, each once, in topological order."""
        users: dict[Node, list[Node]] = {n: [] for n in self.nodes}
        for node in self.nodes:
            for operand in dict.fromkeys(node.inputs):
                users[operand].append(node)
        return {n: tuple(u) for n, u in users.items()}

    def rebuild(self, change: Callable[[Node, tuple[Node, ...]], Node]) -> Graph:
        """The graph with each node replaced by `change(node, new operands)`; leaves of updates
        stay.
        """
        new: dict[Node, Node] = {}
        for node in topological(self.roots):
            new[node] = change(node, tuple(new[n] for n in node.inputs))
        return Graph(
            tuple((name, new[n]) for name, n in self.outputs),
            tuple((leaf, new[n]) for leaf, n in self.updates),
        )
