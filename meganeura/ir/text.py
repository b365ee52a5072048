"""The text form of a graph: one node a line, in an order and with numbers that depend on the graph
alone.
"""

from __future__ import annotations

from typing import Any

from meganeura.ir.graph import Graph, Node


def text(graph: Graph) -> str:
    """The graph as people read it; equal graphs have equal texts.

    >>> from meganeura.ir import build
    >>> x = build.input_("x", (2, 3))
    >>> print(text(Graph((("y", build.sum_(build.mul(x, x), 1)),))))
    %0 = input "x" : f32[2, 3]
    %1 = mul %0 %0 : f32[2, 3]
    %2 = sum %1 axes=(1,) : f32[2]
    output "y" = %2
    """
    numbers = {node: index for index, node in enumerate(graph.nodes)}
    lines = [line(node, numbers) for node in graph.nodes]
    lines += [f'output "{name}" = %{numbers[node]}' for name, node in graph.outputs]
    lines += [f'update "{leaf.name}" = %{numbers[node]}' for leaf, node in graph.updates]
    return "\n".join(lines)


def line(node: Node, numbers: dict[Node, int]) -> str:
    """One node: number, operation, operands, attributes, type, and the place in the model."""
    words = [f"%{numbers[node]} = {node.op.name}"]
    if node.op.kind == "leaf" and node.op.name != "constant":
        words.append(f'"{node.name}"')
    words += [f"%{numbers[operand]}" for operand in node.inputs]
    words += [f"{key}={_show(value)}" for key, value in node.attrs if key not in _IMPLIED]
    words.append(f": {node.dtype}{list(node.shape)}")
    remark = _remark(node)
    return " ".join(words) + (f"  # {remark}" if remark else "")


_IMPLIED = ("name", "dtype", "shape")


def _show(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else repr(value)


def _remark(node: Node) -> str:
    origin = node.origin
    words = ["/".join((*origin.scope, *origin.composite))]
    if origin.phase != "forward":
        words.append(origin.phase)
    if origin.name is not None:
        words.append(f'"{origin.name}"')
    return " ".join(w for w in words if w)
