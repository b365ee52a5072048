"""Layers as functions: each makes its parameters under its name, and returns the result.

A layer called twice with one name on one line of code is one layer with shared parameters; on two
lines it is a name clash.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from meganeura.errors import ShapeError
from meganeura.ir import build, composites
from meganeura.ir.initial import FanIn, Normal
from meganeura.ir.shapes import show
from meganeura.ir.source import here
from meganeura.tensor.leaves import as_tensor, parameter, scope
from meganeura.tensor.tensor import Tensor, TensorLike

Sizes = int | Sequence[int]


def _need_axes(layer: str, x: Tensor, count: int, expected: str) -> None:
    if x.ndim < count:
        raise ShapeError(
            f"{layer} of {show(x.shape)}", expected=expected, got=show(x.shape), origin=here()
        )


def linear(
    x: TensorLike, features: int, *, name: str, bias: bool = True, init: Any = None
) -> Tensor:
    """[..., inputs] to [..., features]: x @ w + b.

    Parameters "name.w" [inputs, features] and "name.b" [features], both uniform within 1 /
    sqrt(inputs) as in PyTorch.

    >>> import meganeura as mg
    >>> mg.nn.linear(mg.input("x", (128, 64)), 10, name="out").shape
    (128, 10)
    """
    tensor = as_tensor(x)
    _need_axes("linear", tensor, 1, "[..., inputs]")
    inputs = tensor.shape[-1]
    with scope(name):
        w = parameter("w", (inputs, features), FanIn(inputs) if init is None else init)
        result = tensor @ w
        return result + parameter("b", (features,), FanIn(inputs)) if bias else result


def conv2d(
    x: TensorLike,
    channels: int,
    size: Sizes,
    stride: Sizes = 1,
    padding: int | Sequence[Any] = 0,
    dilation: Sizes = 1,
    groups: int = 1,
    *,
    name: str,
    bias: bool = True,
    init: Any = None,
) -> Tensor:
    """[N, C, H, W] to [N, channels, OH, OW] by filters of `size`.

    Parameters "name.w" [channels, C/groups, KH, KW] and "name.b" [channels], uniform within 1 /
    sqrt(C/groups * KH * KW).
    """
    tensor = as_tensor(x)
    _need_axes("conv2d", tensor, 4, "[N, C, H, W]")
    kernel = build.pair(size)
    shape = (channels, tensor.shape[1] // max(groups, 1), *kernel)
    fan = FanIn(math.prod(shape[1:]))
    with scope(name):
        w = parameter("w", shape, fan if init is None else init)
        result = Tensor(build.conv2d(tensor.node, w.node, stride, padding, dilation, groups))
        return result + parameter("b", (channels,), fan).reshape(-1, 1, 1) if bias else result


def embedding(
    index: TensorLike, entries: int, features: int, *, name: str, init: Any = None
) -> Tensor:
    """Integers [...] to rows [..., features] of "name.w" [entries, features], normal at first.

    An index out of range reads the nearest row, the first or the last, and that row gets its
    gradient. A row that is named several times gets the sum of their gradients, one that is not
    named gets 0.

    >>> import meganeura as mg
    >>> mg.nn.embedding(mg.input("tokens", (4, 16), mg.i32), 1000, 64, name="tokens_table").shape
    (4, 16, 64)
    """
    with scope(name):
        w = parameter("w", (entries, features), Normal() if init is None else init)
        return w[as_tensor(index)]


def layer_norm(x: TensorLike, *, name: str, eps: float = 1e-5, bias: bool = True) -> Tensor:
    """Zero mean and unit variance along the last axis, times "name.w" (ones), plus "name.b"
    (zeros).
    """
    tensor = as_tensor(x)
    _need_axes("layer_norm", tensor, 1, "[..., features]")
    features = tensor.shape[-1:]
    with scope(name):
        w = parameter("w", features, 1.0)
        b = parameter("b", features, 0.0).node if bias else None
        return Tensor(composites.layer_norm(tensor.node, w.node, b, eps))


def rms_norm(x: TensorLike, *, name: str, eps: float = 1e-6) -> Tensor:
    """x over its root mean square along the last axis, times "name.w" (ones)."""
    tensor = as_tensor(x)
    _need_axes("rms_norm", tensor, 1, "[..., features]")
    with scope(name):
        w = parameter("w", tensor.shape[-1:], 1.0)
        return Tensor(composites.rms_norm(tensor.node, w.node, eps))


def group_norm(x: TensorLike, groups: int, *, name: str, eps: float = 1e-5) -> Tensor:
    """[N, C, ...] normalised within each group of channels, times "name.w" [C], plus
    "name.b" [C].
    """
    tensor = as_tensor(x)
    _need_axes("group_norm", tensor, 2, "[N, C, ...]")
    channels = tensor.shape[1:2]
    with scope(name):
        w, b = parameter("w", channels, 1.0), parameter("b", channels, 0.0)
        return Tensor(composites.group_norm(tensor.node, groups, w.node, b.node, eps))


def batch_norm(x: TensorLike, *, name: str, momentum: float = 0.1, eps: float = 1e-5) -> Tensor:
    """[N, C, ...] normalised by channel, times "name.w", plus "name.b".

    Training uses the batch's statistics and moves "name.mean" and "name.var" towards them;
    inference uses those two.
    """
    tensor = as_tensor(x)
    _need_axes("batch_norm", tensor, 2, "[N, C, ...]")
    channels = tensor.shape[1:2]
    with scope(name):
        w, b = parameter("w", channels, 1.0), parameter("b", channels, 0.0)
        mean = parameter("mean", channels, 0.0, trainable=False)
        var = parameter("var", channels, 1.0, trainable=False)
        result = composites.batch_norm(
            tensor.node, w.node, b.node, mean.node, var.node, momentum, eps
        )
        return Tensor(result)


def dropout(x: TensorLike, rate: float = 0.5) -> Tensor:
    """In training each element is 0 with probability `rate`, else x / (1 - rate); in
    inference x.
    """
    return Tensor(composites.dropout(as_tensor(x).node, rate))
