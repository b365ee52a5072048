"""Binding a graph to training or to inference.

`before -> after`: a graph with the leaf "meganeura.training", with updates noted beside values, and
with values cut off from gradients, to the same graph for one of the two uses, in which nothing of
this is left.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from meganeura.errors import NameClashError
from meganeura.ir.build import AUTOMATIC, constant, seed, training
from meganeura.ir.dtypes import bool_, u32
from meganeura.ir.graph import Graph, Node, topological
from meganeura.trace import stage

_TRANSPARENT = ("reshape", "expand", "permute", "slice")


def bind(graph: Graph, training: bool) -> Graph:
    """The graph for a training step or for inference.

    Choices that depend on the training flag alone are taken, effects become updates (in training)
    or vanish, automatic random streams are numbered in the order of the graph, so that the same
    program is the same however often it was built.

    >>> from meganeura.ir import build, composites
    >>> x = build.input_("x", (4,))
    >>> y = composites.dropout(x, 0.5)
    >>> bind(Graph((("y", y),)), training=False).outputs[0][1] is x
    True
    """
    return _bind(graph, training)


@stage("bind")
def _bind(graph: Graph, is_training: bool) -> Graph:
    chosen = {training(): constant(np.bool_(is_training), bool_)}
    if not is_training:  # a gradient may still mention a mask, times zero
        chosen[seed()] = constant(0, u32)
    streams = _streams(graph)
    updates: dict[Node, Node] = {}

    def change(node: Node, inputs: tuple[Node, ...]) -> Node:
        if node in chosen:
            return chosen[node]
        if node.op.name in _CHANGES:
            return _CHANGES[node.op.name](node, inputs, is_training, updates)
        if node.op.name == "random" and node in streams:
            attrs = {**dict(node.attrs), "stream": streams[node]}
            return Node.make(node.op, inputs, attrs, node.origin)
        return node.with_inputs(inputs)

    bound = graph.rebuild(change)
    return Graph(bound.outputs, (*bound.updates, *updates.items()))


Change = Callable[[Node, tuple[Node, ...], bool, dict[Node, Node]], Node]


def _where(
    node: Node, inputs: tuple[Node, ...], is_training: bool, updates: dict[Node, Node]
) -> Node:
    known = _known(inputs[0])
    if known is None:
        return node.with_inputs(inputs)
    return _named_as(inputs[1] if known else inputs[2], node)


def _named_as(value: Node, node: Node) -> Node:
    """The value, under the name that the user gave to the node it stands for."""
    name = node.origin.name
    if name is None or value.name == name or value.op.kind == "leaf":
        return value
    return value.with_name(name)


def _detach(
    node: Node, inputs: tuple[Node, ...], is_training: bool, updates: dict[Node, Node]
) -> Node:
    return _named_as(inputs[0], node)


def _effect(
    node: Node, inputs: tuple[Node, ...], is_training: bool, updates: dict[Node, Node]
) -> Node:
    value, leaf, new = inputs
    if is_training:
        if updates.get(leaf, new) is not new:
            raise NameClashError(
                f"{leaf.name} would be updated twice in one training step",
                expected="one update",
                got="two",
                hint="give the second layer a name of its own",
                origin=node.origin,
            )
        updates[leaf] = new
    return _named_as(value, node)


_CHANGES: dict[str, Change] = {"where": _where, "detach": _detach, "effect": _effect}


def _known(condition: Node) -> bool | None:
    """The value of a condition that is one constant seen through views and negations."""
    turned = False
    while condition.op.name in _TRANSPARENT or condition.op.name == "not":
        turned ^= condition.op.name == "not"
        condition = condition.inputs[0]
    if condition.op.name != "constant" or condition.size != 1:
        return None
    return bool(condition.attr("value").array.item()) ^ turned


def _streams(graph: Graph) -> dict[Node, int]:
    """A number for each automatic random stream: its place in the order of the graph."""
    found = [
        n
        for n in topological(graph.roots)
        if n.op.name == "random" and n.attr("stream") >= AUTOMATIC
    ]
    numbers: dict[int, int] = {}
    for node in found:
        numbers.setdefault(node.attr("stream"), AUTOMATIC + len(numbers))
    return {node: numbers[node.attr("stream")] for node in found}
