"""The gradient of every operation: a table from name to rule.

`rule(node, g)` gives, for each operand, the gradient of a scalar by it, from the gradient `g` by
the node; None where there is none. Rules use ordinary operations, so gradients have gradients.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from meganeura.autodiff import structure
from meganeura.ir import build
from meganeura.ir.graph import Node

Gradients = tuple[Node | None, ...]
Rule = Callable[[Node, Node], Gradients]


def _neg(node: Node, g: Node) -> Gradients:
    return (build.neg(g),)


def _abs(node: Node, g: Node) -> Gradients:
    return (build.mul(g, build.sign(node.inputs[0])),)


def _exp(node: Node, g: Node) -> Gradients:
    return (build.mul(g, node),)


def _log(node: Node, g: Node) -> Gradients:
    return (build.div(g, node.inputs[0]),)


def _sqrt(node: Node, g: Node) -> Gradients:
    return (build.div(build.mul(0.5, g), node),)


def _rsqrt(node: Node, g: Node) -> Gradients:
    return (build.mul(build.mul(-0.5, g), build.mul(node, build.mul(node, node))),)


def _recip(node: Node, g: Node) -> Gradients:
    return (build.neg(build.mul(g, build.mul(node, node))),)


def _sin(node: Node, g: Node) -> Gradients:
    return (build.mul(g, build.cos(node.inputs[0])),)


def _cos(node: Node, g: Node) -> Gradients:
    return (build.neg(build.mul(g, build.sin(node.inputs[0]))),)


def _tanh(node: Node, g: Node) -> Gradients:
    return (build.mul(g, build.sub(1.0, build.mul(node, node))),)


def _erf(node: Node, g: Node) -> Gradients:
    (x,) = node.inputs
    slope = build.mul(2.0 / math.sqrt(math.pi), build.exp(build.neg(build.mul(x, x))))
    return (build.mul(g, slope),)


def _add(node: Node, g: Node) -> Gradients:
    return g, g


def _sub(node: Node, g: Node) -> Gradients:
    return g, build.neg(g)


def _mul(node: Node, g: Node) -> Gradients:
    a, b = node.inputs
    return build.mul(g, b), build.mul(g, a)


def _div(node: Node, g: Node) -> Gradients:
    _, b = node.inputs
    share = build.div(g, b)
    return share, build.neg(build.mul(share, node))


def _mod(node: Node, g: Node) -> Gradients:
    a, b = node.inputs
    return g, build.neg(build.mul(g, build.floor(build.div(a, b))))


def _pow(node: Node, g: Node) -> Gradients:
    """By the base b*a**(b-1), 0 where b is 0; by the exponent a**b * log(a), 0 where a is not
    positive.
    """
    a, b = node.inputs
    slope = build.mul(b, build.pow_(a, build.sub(b, 1.0)))
    by_base = build.where(build.eq(b, 0.0), 0.0, build.mul(g, slope))
    positive = build.gt(a, 0.0)
    logarithm = build.log(build.where(positive, a, 1.0))
    return by_base, build.mul(g, build.where(positive, build.mul(node, logarithm), 0.0))


def _max(node: Node, g: Node) -> Gradients:
    """Between equals the second operand takes it all, so that relu = max(x, 0) has gradient
    0 at 0. Against a constant the result itself tells who won, so that x need not be kept.
    """
    a, b = node.inputs
    first = build.gt(node if _is_constant(b) else a, b)
    return build.where(first, g, 0.0), build.where(first, 0.0, g)


def _is_constant(node: Node) -> bool:
    """A constant, perhaps seen through views."""
    while node.op.kind == "view":
        node = node.inputs[0]
    return node.op.name == "constant"


def _min(node: Node, g: Node) -> Gradients:
    first = build.lt(*node.inputs)
    return build.where(first, g, 0.0), build.where(first, 0.0, g)


def _where(node: Node, g: Node) -> Gradients:
    condition = node.inputs[0]
    return None, build.where(condition, g, 0.0), build.where(condition, 0.0, g)


def _cast(node: Node, g: Node) -> Gradients:
    (x,) = node.inputs
    return (build.cast(g, x.dtype) if x.dtype.is_float else None,)


def _matmul(node: Node, g: Node) -> Gradients:
    a, b = node.inputs
    return build.matmul(g, build.transpose(b)), build.matmul(build.transpose(a), g)


def _geometry(node: Node) -> dict[str, object]:
    return {key: node.attr(key) for key in ("stride", "padding", "dilation", "groups")}


def _conv2d(node: Node, g: Node) -> Gradients:
    x, w = node.inputs
    geometry = _geometry(node)
    return (
        build.apply("conv2d_input", g, w, shape=x.shape[2:], **geometry),
        build.apply("conv2d_weight", x, g, size=w.shape[2:], **geometry),
    )


def _conv2d_input(node: Node, g: Node) -> Gradients:
    upstream, w = node.inputs
    geometry = _geometry(node)
    return (
        build.apply("conv2d", g, w, **geometry),
        build.apply("conv2d_weight", g, upstream, size=w.shape[2:], **geometry),
    )


def _conv2d_weight(node: Node, g: Node) -> Gradients:
    x, upstream = node.inputs
    geometry = _geometry(node)
    return (
        build.apply("conv2d_input", upstream, g, shape=x.shape[2:], **geometry),
        build.apply("conv2d", x, g, **geometry),
    )


def _effect(node: Node, g: Node) -> Gradients:
    return g, None, None


RULES: Mapping[str, Rule] = {
    "neg": _neg,
    "abs": _abs,
    "exp": _exp,
    "log": _log,
    "sqrt": _sqrt,
    "rsqrt": _rsqrt,
    "recip": _recip,
    "sin": _sin,
    "cos": _cos,
    "tanh": _tanh,
    "erf": _erf,
    "add": _add,
    "sub": _sub,
    "mul": _mul,
    "div": _div,
    "mod": _mod,
    "pow": _pow,
    "max": _max,
    "min": _min,
    "where": _where,
    "cast": _cast,
    "matmul": _matmul,
    "conv2d": _conv2d,
    "conv2d_input": _conv2d_input,
    "conv2d_weight": _conv2d_weight,
    "effect": _effect,
    **structure.RULES,
}

EXEMPT: Mapping[str, str] = {
    **dict.fromkeys(("input", "parameter", "state", "constant"), "a leaf has no operands"),
    **dict.fromkeys(("floor", "sign"), "constant between its steps: the gradient is 0"),
    **dict.fromkeys(("lt", "le", "gt", "ge", "eq", "ne"), "the result is bool"),
    **dict.fromkeys(("and", "or", "not"), "the operands are bool"),
    "argmax": "the result is an integer",
    "iota": "it has no operands",
    "random": "the operand is an integer",
    "detach": "this is what it is for",
}
