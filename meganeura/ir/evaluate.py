"""Evaluating a graph in NumPy: in float32 as the device would, or in float64 as the oracle."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from meganeura.errors import FeedError
from meganeura.ir.graph import Array, Graph, Node, topological


def convert(array: Any, node: Node, real: Any = None) -> Array:
    """An array in the type of the node, floats in `real` where it is given."""
    dtype = real if real is not None and node.dtype.is_float else node.dtype.numpy
    return np.asarray(array, dtype=dtype)


def evaluate_nodes(
    roots: Iterable[Node], values: Mapping[Node, Any], real: Any = None
) -> dict[Node, Array]:
    """Values of all nodes that the roots need.

    `values` gives those of inputs, parameters and states (and may give any other node's). `real` is
    np.float64 for the oracle.
    """
    known: dict[Node, Array] = {n: convert(v, n, real) for n, v in values.items()}
    for node in topological(roots, known):
        if node.op.kind == "leaf" and node.op.name != "constant":
            raise FeedError(
                f"no value for the {node.op.name} {node.name!r}",
                expected=f"{list(node.shape)} {node.dtype}",
                got="nothing",
                origin=node.origin,
            )
        if node.op.name == "constant":
            known[node] = convert(node.attr("value").array, node, real)
        else:
            value = node.op.numpy(node, *(known[n] for n in node.inputs))
            known[node] = convert(value, node, real)
    return known


def evaluate(graph: Graph, feeds: Mapping[str, Any], real: Any = None) -> dict[str, Array]:
    """Outputs by name, from values of inputs, parameters and states by name.

    >>> from meganeura.ir import build
    >>> x = build.input_("x", (2,))
    >>> evaluate(Graph((("y", build.mul(x, 3.0)),)), {"x": [1, 2]})["y"].tolist()
    [3.0, 6.0]
    """
    named = {n.name: n for n in graph.nodes if n.op.kind == "leaf" and n.op.name != "constant"}
    values = {named[name]: value for name, value in feeds.items() if name in named}
    known = evaluate_nodes(graph.roots, values, real)
    return {name: known[node] for name, node in graph.outputs}
