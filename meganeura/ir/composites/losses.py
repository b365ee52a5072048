"""Losses. Each takes `reduction="mean"`, `"sum"` or `"none"`."""

from __future__ import annotations

import math

from meganeura.errors import DTypeError, OptionError, ShapeError
from meganeura.ir import build
from meganeura.ir.build import Operand
from meganeura.ir.composites.activations import as_float, logsumexp, softplus
from meganeura.ir.composites.named import named
from meganeura.ir.dtypes import i32, u32
from meganeura.ir.graph import Node
from meganeura.ir.shapes import show
from meganeura.ir.source import here


def reduce_loss(losses: Node, reduction: str) -> Node:
    """The mean or the sum of all losses, or each of them."""
    if reduction == "mean":
        return build.mean(losses)
    if reduction == "sum":
        return build.sum_(losses)
    if reduction == "none":
        return losses
    raise OptionError(
        "a loss is reduced in one of three ways",
        expected='reduction="mean", "sum" or "none"',
        got=f"reduction={reduction!r}",
        origin=here(),
    )


@named("cross_entropy")
def cross_entropy(logits: Operand, labels: Operand, reduction: str = "mean") -> Node:
    """Minus the log-probability of integer labels [...] under logits [..., C].

    The log-sum-exp of a row less its logit at the label: one pass over the row forward, and softmax
    less one-hot backward. A label that is no class makes the loss NaN, which training reports with
    this line, rather than a number that looks right.
    """
    scores, target = as_float(logits), build.as_node(labels)
    if target.dtype not in (i32, u32):
        raise DTypeError(
            "cross_entropy takes integer labels",
            expected="i32 or u32",
            got=target.dtype.name,
            hint="cast them, as in labels.cast(mg.i32)",
            origin=here(),
        )
    if not scores.shape or scores.shape[:-1] != target.shape:
        raise ShapeError(
            f"cross_entropy of logits {show(scores.shape)} and labels {show(target.shape)}",
            expected="logits [..., C] and labels [...]",
            got=f"{show(scores.shape)} and {show(target.shape)}",
            hint="one label for each row of logits",
            origin=here(),
        )
    column = build.iota(scores.shape, -1)
    at = build.reshape(build.cast(target, i32), (*target.shape, 1))
    picked = build.sum_(build.where(build.eq(column, at), scores, 0.0), -1)
    known = build.and_(build.ge(target, 0), build.lt(target, scores.shape[-1]))
    picked = build.where(known, picked, math.nan)
    return reduce_loss(build.sub(logsumexp(scores, -1), picked), reduction)


def _fitting(name: str, prediction: Operand, target: Operand) -> tuple[Node, Node]:
    a, b = as_float(prediction), as_float(target)
    if a.shape != b.shape:
        raise ShapeError(
            f"{name} of {show(a.shape)} and {show(b.shape)}",
            expected="prediction and target of one shape",
            got=f"{show(a.shape)} and {show(b.shape)}",
            hint="reshape one of them; a loss does not broadcast",
            origin=here(),
        )
    return a, b


@named("bce_with_logits")
def bce_with_logits(logits: Operand, targets: Operand, reduction: str = "mean") -> Node:
    """Binary cross-entropy of targets in [0, 1] under logits of the same shape."""
    z, t = _fitting("bce_with_logits", logits, targets)
    return reduce_loss(build.sub(softplus(z), build.mul(z, t)), reduction)


@named("mse")
def mse(prediction: Operand, target: Operand, reduction: str = "mean") -> Node:
    """The squared difference."""
    a, b = _fitting("mse", prediction, target)
    difference = build.sub(a, b)
    return reduce_loss(build.mul(difference, difference), reduction)


@named("l1")
def l1(prediction: Operand, target: Operand, reduction: str = "mean") -> Node:
    """The absolute difference; its gradient where both are equal is 0."""
    a, b = _fitting("l1", prediction, target)
    return reduce_loss(build.abs_(build.sub(a, b)), reduction)
