"""Normalisations and dropout."""

from __future__ import annotations

import itertools
import math

from meganeura.errors import OptionError, ShapeError
from meganeura.ir import build
from meganeura.ir.build import Axis, Operand
from meganeura.ir.composites.activations import as_float
from meganeura.ir.composites.named import named
from meganeura.ir.dtypes import u32
from meganeura.ir.graph import Node, Shape
from meganeura.ir.shapes import show
from meganeura.ir.source import here

_calls = itertools.count()


@named("var")
def var(x: Operand, axis: Axis = None, keepdims: bool = False, correction: int = 0) -> Node:
    """The mean squared distance from the mean, over n - correction."""
    node = as_float(x)
    centred = build.sub(node, build.mean(node, axis, keepdims=True))
    total = build.sum_(build.mul(centred, centred), axis, keepdims)
    count = node.size // max(total.size, 1) - correction
    return build.div(total, float(count))


def _normalised(x: Node, axis: Axis, eps: float) -> Node:
    centred = build.sub(x, build.mean(x, axis, keepdims=True))
    variance = build.mean(build.mul(centred, centred), axis, keepdims=True)
    return build.mul(centred, build.rsqrt(build.add(variance, eps)))


def _scaled(x: Node, weight: Operand | None, bias: Operand | None) -> Node:
    x = x if weight is None else build.mul(x, weight)
    return x if bias is None else build.add(x, bias)


def _last(shape: Shape, axes: int) -> tuple[int, ...]:
    return tuple(range(len(shape) - axes, len(shape)))


@named("layer_norm")
def layer_norm(
    x: Operand,
    weight: Operand | None = None,
    bias: Operand | None = None,
    eps: float = 1e-5,
    axes: int = 1,
) -> Node:
    """Zero mean and unit variance over the last axes, then times weight, plus bias (Ba et al.,
    2016).
    """
    node = as_float(x)
    return _scaled(_normalised(node, _last(node.shape, axes), eps), weight, bias)


@named("rms_norm")
def rms_norm(x: Operand, weight: Operand | None = None, eps: float = 1e-6, axes: int = 1) -> Node:
    """x over its root mean square along the last axes, times weight (Zhang and Sennrich, 2019)."""
    node = as_float(x)
    square = build.mean(build.mul(node, node), _last(node.shape, axes), keepdims=True)
    return _scaled(build.mul(node, build.rsqrt(build.add(square, eps))), weight, None)


def _per_channel(value: Operand | None, rank: int) -> Node | None:
    """[C] as [C, 1, ..., 1], to go with [N, C, ...]."""
    if value is None:
        return None
    node = build.as_node(value)
    return build.reshape(node, (*node.shape, *(1,) * (rank - 2)))


@named("group_norm")
def group_norm(
    x: Operand,
    groups: int,
    weight: Operand | None = None,
    bias: Operand | None = None,
    eps: float = 1e-5,
) -> Node:
    """[N, C, ...] normalised within each group of channels, then scaled by channel (Wu and He,
    2018).
    """
    node = as_float(x)
    rank = len(node.shape)
    if rank < 2 or groups < 1 or node.shape[1] % groups:
        raise ShapeError(
            f"group_norm of {show(node.shape)} in {groups} groups",
            expected="[N, C, ...] with C divisible by the groups",
            got=show(node.shape),
            origin=here(),
        )
    n, c = node.shape[:2]
    split = build.reshape(node, (n, groups, (c // groups) * math.prod(node.shape[2:])))
    normal = build.reshape(_normalised(split, -1, eps), node.shape)
    return _scaled(normal, _per_channel(weight, rank), _per_channel(bias, rank))


@named("batch_norm")
def batch_norm(
    x: Operand,
    weight: Operand | None,
    bias: Operand | None,
    running_mean: Node,
    running_var: Node,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Node:
    """[N, C, ...] normalised by channel (Ioffe and Szegedy, 2015).

    Training uses the statistics of the batch and moves the running ones towards them by `momentum`
    (the variance over n - 1, as PyTorch does); inference uses the running ones.
    """
    node = as_float(x)
    rank = len(node.shape)
    if rank < 2 or running_mean.shape != node.shape[1:2]:
        raise ShapeError(
            f"batch_norm of {show(node.shape)} with statistics {show(running_mean.shape)}",
            expected="[N, C, ...] and statistics [C]",
            got=f"{show(node.shape)} and {show(running_mean.shape)}",
            origin=here(),
        )
    axes = tuple(i for i in range(rank) if i != 1)
    count = node.size // max(node.shape[1], 1)
    average = build.mean(node, axes, keepdims=True)
    deviation = build.sub(node, average)
    batch_mean = build.reshape(average, running_mean.shape)
    batch_var = build.mean(build.mul(deviation, deviation), axes)
    training = build.training()
    mean = build.where(training, batch_mean, running_mean)
    variance = build.where(training, batch_var, running_var)
    scale = _per_channel(build.rsqrt(build.add(variance, eps)), rank)
    middle = _per_channel(mean, rank)
    assert scale is not None and middle is not None
    normal = build.mul(build.sub(node, middle), scale)
    result = _scaled(normal, _per_channel(weight, rank), _per_channel(bias, rank))
    unbiased = build.mul(batch_var, count / max(count - 1, 1))
    for leaf, new in ((running_mean, batch_mean), (running_var, unbiased)):
        moved = build.add(leaf, build.mul(momentum, build.sub(build.detach(new), leaf)))
        result = build.effect(result, leaf, moved)
    return result


@named("dropout")
def dropout(x: Operand, rate: float = 0.5) -> Node:
    """In training each element is 0 with probability `rate`, else x / (1 - rate); in inference x.

    The mask depends on the step's seed, the place in the graph and the index alone: equal on every
    device.
    """
    node = as_float(x)
    if not 0.0 <= rate < 1.0:
        raise OptionError(
            "dropout's rate is a probability below 1",
            expected="0 <= rate < 1",
            got=f"rate={rate}",
            origin=here(),
        )
    if rate == 0.0:
        return node
    bits = build.random_bits(build.seed(), node.shape, build.AUTOMATIC + next(_calls) % (1 << 30))
    keep = build.ge(bits, build.constant(round(rate * 2**32), u32))
    kept = build.where(keep, build.mul(node, 1.0 / (1.0 - rate)), 0.0)
    return build.where(build.training(), kept, node)
