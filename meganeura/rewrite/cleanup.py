"""Simplification: the cheap pass that always runs. Equal nodes become one, identities and dead code
go, small constants are computed.

One sweep from the leaves numbers the values (Cocke and Schwartz, 1970); a second builds what the
roots need. Where two nodes are equal the forward one lends its place in the user's code, and a name
is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from meganeura.ir import build
from meganeura.ir.constant import Value
from meganeura.ir.graph import Array, Attrs, Graph, Node, Op, topological
from meganeura.ir.ops import OPS
from meganeura.trace import note, stage

FOLD_LIMIT = 4096
"""Constants of up to so many elements are computed now."""

KEPT = frozenset({"expand", "effect", "random"})
"""Never computed now: repetition costs nothing, and random bits are cheaper made than read."""


@dataclass(eq=False, slots=True)
class Entry:
    """A value: the operation on earlier values that makes it, the node whose place and name it
    takes, and the one number that all its elements are, where that is known.
    """

    op: Op
    inputs: tuple[int, ...]
    attrs: Attrs
    sample: Node
    best: Node
    scalar: Any
    name: str | None = None


class Values:
    """Numbered values, each once."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._known: dict[Any, int] = {}

    def number(
        self, node: Node, op: Op, inputs: tuple[int, ...], attrs: Attrs, sample: Node
    ) -> int:
        """The number of a value; `node` is where it comes from."""
        key = (op, inputs, attrs)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = len(self.entries)
            number = self._scalar(op, inputs, sample)
            self.entries.append(Entry(op, inputs, attrs, sample, node, number))
        entry = self.entries[found]
        if node is not entry.best:
            entry.best = min(entry.best, node, key=_rank)
        return found

    def _scalar(self, op: Op, inputs: tuple[int, ...], sample: Node) -> Any:
        if op.name == "constant":
            array = sample.attr("value").array
            return array.reshape(-1)[0] if array.size == 1 else None
        repeats = op.name in ("reshape", "expand", "permute", "slice")
        return self.entries[inputs[0]].scalar if repeats else None

    def scalar(self, number: int) -> Any:
        """The one number that all elements are, seen through views that repeat or move elements;
        else None.
        """
        return self.entries[number].scalar

    def known(self, number: int) -> bool:
        """True for a constant, and for a number under views."""
        entry = self.entries[number]
        return entry.scalar is not None or entry.op.name == "constant"

    def array(self, number: int) -> Array | None:
        """All elements, when they are constants and not too many."""
        sample = self.entries[number].sample
        if sample.size > FOLD_LIMIT:
            return None
        scalar = self.scalar(number)
        if scalar is not None:
            return np.full(sample.shape, scalar)
        return np.asarray(sample.attr("value").array) if sample.op.name == "constant" else None


def _rank(node: Node) -> tuple[bool, int]:
    """Which of equal nodes lends its place: the forward one, then the earlier."""
    return node.origin.phase != "forward", node.serial


@stage("simplify")
def simplify(graph: Graph) -> Graph:
    """A graph with duplicates, identities, computable constants and dead code -> the same graph
    without them.

    >>> from meganeura.ir import build
    >>> x = build.input_("x", (2,))
    >>> simplify(Graph((("y", build.mul(build.add(x, 0.0), 1.0)),))).outputs[0][1] is x
    True
    """
    values = Values()
    where: dict[Node, int] = {}
    for node in topological(graph.roots):
        number = _reduced(values, node, tuple(where[n] for n in node.inputs))
        where[node] = number
        entry = values.entries[number]
        if entry.op.kind != "leaf" or entry.op.name == "constant":
            entry.name = entry.name or node.origin.name
    built: dict[int, Node] = {}

    def new(root: Node) -> Node:
        return _build(values, where[root], built)

    outputs = tuple((name, new(n)) for name, n in graph.outputs)
    updates = tuple((leaf, new(n)) for leaf, n in graph.updates)
    after = Graph(outputs, updates)
    if after.outputs == graph.outputs and after.updates == graph.updates:
        after = graph
    note("nodes", (len(graph.nodes), len(after.nodes)))
    return after


def _reduced(values: Values, node: Node, inputs: tuple[int, ...]) -> int:
    """The number of a node's value, after identities and folding."""
    same = _identity(values, node, inputs)
    if same is not None:
        return same
    op, attrs, sample = node.op, node.attrs, node
    merged = _merged_views(values, node, inputs)
    if merged is not None:
        if isinstance(merged, int):
            return merged
        sample, inputs = merged
        op, attrs = sample.op, sample.attrs
    folded = _folded(values, sample, inputs)
    if folded is not None:
        return _number_all(values, node, folded)
    if "commutative" in op.traits and _known(values, op, inputs[::-1], attrs):
        inputs = inputs[::-1]
    return values.number(node, op, inputs, attrs, sample)


def _known(values: Values, op: Op, inputs: tuple[int, ...], attrs: Attrs) -> bool:
    return (op, inputs, attrs) in values._known


ZERO_RIGHT = frozenset({"add", "sub"})
ONE_RIGHT = frozenset({"mul", "div", "pow"})


def _identity(values: Values, node: Node, inputs: tuple[int, ...]) -> int | None:
    """An operand that the node is equal to: x + 0, x * 1, -(-x), where(true, a, b), a view that
    moves nothing.
    """
    name = node.op.name
    if name == "where":
        return _branch(values, node, inputs)
    if len(inputs) == 2 and node.op.kind == "map":
        return _neutral(values, node, inputs)
    if len(inputs) != 1:
        return None
    inner = values.entries[inputs[0]]
    if name in ("neg", "not") and inner.op is node.op:
        return inner.inputs[0]
    if name in ("reshape", "expand", "pad", "slice") and inner.sample.shape == node.shape:
        return inputs[0] if name != "slice" or _whole(node) else None
    if name == "cast" and inner.sample.dtype is node.dtype:
        return inputs[0]
    if name == "permute" and node.attr("axes") == tuple(range(len(node.shape))):
        return inputs[0]
    return None


def _whole(node: Node) -> bool:
    return all(step == 1 for step in node.attr("step"))


def _branch(values: Values, node: Node, inputs: tuple[int, ...]) -> int | None:
    condition = values.scalar(inputs[0])
    if inputs[1] == inputs[2]:
        return inputs[1]
    return None if condition is None else inputs[1] if condition else inputs[2]


def _neutral(values: Values, node: Node, inputs: tuple[int, ...]) -> int | None:
    neutral = 0 if node.op.name in ZERO_RIGHT else 1 if node.op.name in ONE_RIGHT else None
    if neutral is None:
        return None
    if values.scalar(inputs[1]) == neutral:
        return inputs[0]
    if "commutative" in node.op.traits and values.scalar(inputs[0]) == neutral:
        return inputs[1]
    return None


def _merged_views(
    values: Values, node: Node, inputs: tuple[int, ...]
) -> tuple[Node, tuple[int, ...]] | int | None:
    """One view for two of a kind, as a sample and its operand, or the operand itself when they undo
    each other.
    """
    if node.op.kind != "view" or len(inputs) != 1:
        return None
    inner = values.entries[inputs[0]]
    if inner.op is not node.op or node.op.name not in ("reshape", "expand", "permute"):
        return None
    base = values.entries[inner.inputs[0]].sample
    attrs: Mapping[str, Any] = dict(node.attrs)
    if node.op.name == "permute":
        attrs = {"axes": tuple(inner.sample.attr("axes")[a] for a in node.attr("axes"))}
        if attrs["axes"] == tuple(range(len(node.shape))):
            return inner.inputs[0]
    elif base.shape == node.shape:
        return inner.inputs[0]
    return Node.make(OPS[node.op.name], (base,), attrs, node.origin), inner.inputs


def _folded(values: Values, node: Node, inputs: tuple[int, ...]) -> Node | None:
    """A constant in place of an operation on small constants; a number for all elements stays one
    number under views.
    """
    if node.size == 0 and inputs and node.op.name != "effect":
        return _constant(node, np.zeros((), np.float64))  # nothing is computed, whatever it was
    if not inputs or not all(values.known(n) for n in inputs) or node.op.name in KEPT:
        return None
    scalars = [values.scalar(n) for n in inputs]
    if node.op.kind == "map" and all(s is not None for s in scalars):
        one = node.op.numpy(node, *(np.reshape(s, (1,) * len(node.shape)) for s in scalars))
        return _constant(node, np.reshape(one, ()))
    if node.size > FOLD_LIMIT:
        return None
    operands = [values.array(n) for n in inputs]
    arrays = [a for a in operands if a is not None]
    return _constant(node, node.op.numpy(node, *arrays)) if len(arrays) == len(operands) else None


def _constant(node: Node, result: Array) -> Node:
    """The constant, repeated to the shape of the node that it replaces."""
    attrs = {"value": Value(result.astype(node.dtype.numpy)), "dtype": node.dtype}
    constant = Node.make(OPS["constant"], (), attrs, replace(node.origin, name=None))
    return build.broadcast_to(constant, node.shape)


def _number_all(values: Values, node: Node, folded: Node) -> int:
    numbers: dict[Node, int] = {}
    for part in topological([folded]):
        operands = tuple(numbers[n] for n in part.inputs)
        numbers[part] = values.number(node, part.op, operands, part.attrs, part)
    return numbers[folded]


def _build(values: Values, number: int, built: dict[int, Node]) -> Node:
    stack = [number]
    while stack:
        at = stack[-1]
        entry = values.entries[at]
        missing = [n for n in entry.inputs if n not in built]
        if missing:
            stack.extend(reversed(missing))
            continue
        stack.pop()
        if at not in built:
            built[at] = _node(entry, tuple(built[n] for n in entry.inputs))
    return built[number]


def _node(entry: Entry, inputs: tuple[Node, ...]) -> Node:
    best, op = entry.best, entry.op
    if op.kind == "leaf" and op.name != "constant":
        return best if best.op is op else entry.sample
    origin = (
        best.origin if best.origin.name == entry.name else replace(best.origin, name=entry.name)
    )
    if best.op is op and best.attrs == entry.attrs and best.origin is origin:
        return best.with_inputs(inputs)
    return Node.make(op, inputs, dict(entry.attrs), origin)
