"""Pooling: windows of the last two axes, reduced."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from meganeura.errors import ShapeError
from meganeura.ir import build
from meganeura.ir.build import Operand
from meganeura.ir.composites.activations import as_float
from meganeura.ir.composites.named import named
from meganeura.ir.dtypes import f16
from meganeura.ir.graph import Node
from meganeura.ir.shapes import show
from meganeura.ir.source import here

Sizes = int | Sequence[int]


def _windows(
    name: str,
    x: Operand,
    size: Sizes,
    stride: Sizes | None,
    padding: int | Sequence[object],
    dilation: Sizes,
    low: bool,
) -> tuple[Node, tuple[tuple[int, int], tuple[int, int]]]:
    node = as_float(x)
    if len(node.shape) < 2:
        raise ShapeError(
            f"{name} of {show(node.shape)}",
            expected="[..., H, W]",
            got=show(node.shape),
            origin=here(),
        )
    kernel, steps = build.pair(size), build.pair(size if stride is None else stride)
    if min(*kernel, *steps, *build.pair(dilation)) < 1:
        raise ShapeError(
            f"{name}: size, stride and dilation are at least 1",
            expected=">= 1",
            got=f"size {kernel}, stride {steps}, dilation {build.pair(dilation)}",
            origin=here(),
        )
    around = build.padding_pairs(padding)
    lowest = float(np.finfo(np.float16 if node.dtype is f16 else np.float32).min)
    value = lowest if low else 0.0
    return build.windows(node, kernel, steps, around, build.pair(dilation), value), around


@named("max_pool2d")
def max_pool2d(
    x: Operand,
    size: Sizes,
    stride: Sizes | None = None,
    padding: int | Sequence[object] = 0,
    dilation: Sizes = 1,
) -> Node:
    """The greatest element of each window of [..., H, W]; the gradient goes to the first of
    equals.
    """
    found, _ = _windows("max_pool2d", x, size, stride, padding, dilation, low=True)
    return build.max_(found, (-2, -1))


@named("avg_pool2d")
def avg_pool2d(
    x: Operand,
    size: Sizes,
    stride: Sizes | None = None,
    padding: int | Sequence[object] = 0,
    count_include_pad: bool = True,
) -> Node:
    """The mean of each window of [..., H, W]; padding counts as zeros, or not at all."""
    found, around = _windows("avg_pool2d", x, size, stride, padding, 1, low=False)
    if count_include_pad or not any(map(any, around)):
        return build.mean(found, (-2, -1))
    kernel, steps = build.pair(size), build.pair(size if stride is None else stride)
    inside = [
        [
            sum(p[0] <= o * s + t < p[0] + n for t in range(k))
            for o in range(found.shape[len(found.shape) - 4 + axis])
        ]
        for axis, (n, k, s, p) in enumerate(
            zip(build.as_node(x).shape[-2:], kernel, steps, around, strict=True)
        )
    ]
    counts = np.outer(inside[0], inside[1]).astype(np.float32)
    share = build.constant(1.0 / np.maximum(counts, 1), found.dtype)
    return build.mul(build.sum_(found, (-2, -1)), share)
