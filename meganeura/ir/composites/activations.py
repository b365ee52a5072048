"""Activations, softmax and its kin, over primitive operations.

Gradients come from the primitives, so each is written in a form whose own derivative is right and
finite everywhere: softplus at 0, sigmoid far below 0, softmax of large numbers.
"""

from __future__ import annotations

import math

from meganeura.errors import OptionError
from meganeura.ir import build
from meganeura.ir.build import Axis, Operand
from meganeura.ir.composites.named import named
from meganeura.ir.dtypes import f16, f32
from meganeura.ir.graph import Node
from meganeura.ir.source import here


def as_float(x: Operand) -> Node:
    """A float tensor: integers and bools become f32."""
    node = build.as_node(x)
    return node if node.dtype.is_float else build.cast(node, f32)


@named("relu")
def relu(x: Operand) -> Node:
    """max(x, 0); its gradient at 0 is 0."""
    return build.maximum(as_float(x), 0.0)


@named("sigmoid")
def sigmoid(x: Operand) -> Node:
    """1 / (1 + exp(-x)); below -80 (f16: -10) it is constant, so that exp(-x) stays finite."""
    node = as_float(x)
    floor = -10.0 if node.dtype is f16 else -80.0
    return build.recip(build.add(1.0, build.exp(build.neg(build.maximum(node, floor)))))


@named("silu")
def silu(x: Operand) -> Node:
    """x * sigmoid(x), also called swish."""
    node = as_float(x)
    return build.mul(node, sigmoid(node))


@named("gelu")
def gelu(x: Operand, approximate: str = "none") -> Node:
    """x times the normal distribution's share below x: exact by erf, or by tanh (Hendrycks and
    Gimpel, 2016).
    """
    node = as_float(x)
    if approximate == "none":
        share = build.add(1.0, build.erf(build.mul(node, math.sqrt(0.5))))
    elif approximate == "tanh":
        cubic = build.add(node, build.mul(0.044715, build.pow_(node, 3)))
        share = build.add(1.0, build.tanh(build.mul(math.sqrt(2.0 / math.pi), cubic)))
    else:
        raise OptionError(
            "gelu has two forms",
            expected='approximate="none" or approximate="tanh"',
            got=f"approximate={approximate!r}",
            origin=here(),
        )
    return build.mul(build.mul(0.5, node), share)


@named("softplus")
def softplus(x: Operand) -> Node:
    """log(1 + exp(x)), as the log-sum-exp of x and 0; its gradient is sigmoid(x), at 0 too."""
    node = as_float(x)
    top = build.detach(build.maximum(node, 0.0))
    total = build.add(build.exp(build.sub(node, top)), build.exp(build.neg(top)))
    return build.add(build.log(total), top)


def _shifted(x: Node, axis: Axis) -> tuple[Node, Node]:
    """x less its greatest element over the axes, and that element, kept as axes of 1."""
    top = build.detach(build.max_(x, axis, keepdims=True))
    return build.sub(x, top), top


@named("softmax")
def softmax(x: Operand, axis: Axis = -1) -> Node:
    """exp(x) over its sum along the axis; the maximum is subtracted first."""
    shifted, _ = _shifted(as_float(x), axis)
    weights = build.exp(shifted)
    return build.div(weights, build.sum_(weights, axis, keepdims=True))


@named("log_softmax")
def log_softmax(x: Operand, axis: Axis = -1) -> Node:
    """The logarithm of softmax, without forming it."""
    shifted, _ = _shifted(as_float(x), axis)
    total = build.sum_(build.exp(shifted), axis, keepdims=True)
    return build.sub(shifted, build.log(total))


@named("logsumexp")
def logsumexp(x: Operand, axis: Axis = -1, keepdims: bool = False) -> Node:
    """log(sum(exp(x))) along the axis; the maximum is subtracted first."""
    node = as_float(x)
    shifted, top = _shifted(node, axis)
    total = build.sum_(build.exp(shifted), axis, keepdims)
    return build.add(build.log(total), build.reshape(top, total.shape))
