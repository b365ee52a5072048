"""What nodes are called in the pictures: the user's names, then his variables, then a sign."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable

from meganeura.ir.graph import Node

SIGNS = {
    "add": "+", "sub": "−", "mul": "×", "div": "÷", "mod": "mod", "pow": "^", "matmul": "dot",
    "sum": "Σ", "reduce_max": "max", "reduce_min": "min", "lt": "<", "le": "≤", "gt": ">",
    "ge": "≥", "eq": "=", "ne": "≠", "recip": "1 ÷", "rsqrt": "1 ÷ √", "sqrt": "√",
    "conv2d": "conv", "conv2d_input": "conv, dX", "conv2d_weight": "conv, dW",
    "scatter_add": "scatter +",
}  # fmt: skip
_ASSIGNED = re.compile(r"\s*([^\W\d]\w*)\s*=[^=]")


def base(node: Node) -> Node:
    """What a chain of views looks at."""
    while node.op.kind == "view" and node.inputs:
        node = node.inputs[0]
    return node


def number(node: Node) -> str | None:
    """The value of a scalar constant in short, or None."""
    node = base(node)
    if node.op.name != "constant" or node.size != 1:
        return None
    value = node.attr("value").array.item()
    return str(value) if isinstance(value, bool | int) else f"{value:.3g}"


def short(name: str) -> str:
    """The last part of a dotted name."""
    return name.rsplit(".", 1)[-1]


def signature(node: Node) -> Hashable:
    """What a node keeps when a pass rebuilds it: operation, shape and origin."""
    origin = node.origin
    return (node.op.name, node.shape, origin.source, origin.scope, origin.composite, origin.phase)


class Labels:
    """The labels of one graph's nodes."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self._variable: dict[Hashable, str] = {}
        self._single: dict[Node, str] = {}
        self._gradients: dict[Node, str] = {}
        ordered = list(nodes)
        self._find_variables(ordered)
        self._find_single(ordered)
        self._find_gradients(ordered)

    def _find_variables(self, nodes: list[Node]) -> None:
        """The last forward node of a line `h = ...` is called h."""
        last: dict[tuple[str, int, str], Node] = {}
        for node in nodes:
            source = node.origin.source
            if source is None or node.origin.phase != "forward" or node.op.kind == "leaf":
                continue
            found = _ASSIGNED.match(source.text)
            if found:
                last[source.cell, source.line, found.group(1)] = node
        self._variable = {signature(node): name for (_, _, name), node in last.items()}

    def _find_single(self, nodes: list[Node]) -> None:
        """A composite that has become one operation is called by its own name."""
        groups: dict[object, list[Node]] = {}
        for node in nodes:
            origin = node.origin
            if (
                origin.composite
                and origin.phase == "forward"
                and node.op.kind not in ("leaf", "view")
            ):
                groups.setdefault((origin.composite, origin.source, origin.scope), []).append(node)
        for members in groups.values():
            if len(members) == 1:
                self._single[members[0]] = members[0].origin.composite[-1]

    def _find_gradients(self, nodes: list[Node]) -> None:
        """What the update of a parameter takes from the backward pass is its gradient."""
        for node in nodes:
            param = node.origin.forward
            if node.origin.phase != "update" or param is None or param.name is None:
                continue
            for operand in map(base, node.inputs):
                if operand.origin.phase == "backward":
                    self._gradients.setdefault(operand, f"d {param.name}")

    def tensor(self, node: Node) -> str:
        """The name of the value: the user's, his variable's, a gradient's, or what made it."""
        node = base(node)
        if node.name is not None:
            return str(node.name)
        known = self._variable.get(signature(node)) or self._gradients.get(node)
        return known or self._gradient(node) or self.node(node)

    def _gradient(self, node: Node) -> str | None:
        """The gradient of the only operand that has the node's shape is called d and its name."""
        forward = node.origin.forward
        if node.origin.phase != "backward" or forward is None:
            return None
        alike = dict.fromkeys(base(i) for i in forward.inputs if i.shape == node.shape)
        operands = [i for i in alike if i.op.name != "constant"]
        # A sum hands its gradient on unchanged, so its own name serves as well.
        if len(operands) != 1 and forward.op.name in ("add", "sub") and forward.shape == node.shape:
            operands = [forward]
        if len(operands) != 1:
            return None
        name = operands[0].name or self._variable.get(signature(operands[0]))
        return f"d {name}" if name else f"d({self.node(operands[0])})"

    def node(self, node: Node) -> str:
        """The operation in a few letters: + b, × 0.9, dot, relu."""
        if node.op.kind == "leaf":
            return str(node.name) if node.name else (number(node) or "constant")
        if node in self._single:
            return self._single[node]
        sign = SIGNS.get(node.op.name, node.op.name)
        if node.op.name == "cast":
            return f"to {node.dtype}"
        if len(node.inputs) != 2 or node.op.kind != "map":
            return sign
        left, right = (self._operand(i) for i in node.inputs)
        if right is not None:
            return f"{sign} {right}"
        return f"{left} {sign}" if left is not None else sign

    def _operand(self, node: Node) -> str | None:
        """A number, or a parameter that is added or multiplied: worth naming in the label."""
        value = number(node)
        if value is not None:
            return value
        leaf = base(node)
        return short(str(leaf.name)) if leaf.op.name == "parameter" else None
