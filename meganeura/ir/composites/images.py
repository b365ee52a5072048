"""Images made larger and smaller: transposed convolution, resizing, adaptive pooling."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from meganeura.errors import OptionError, ShapeError
from meganeura.ir import build
from meganeura.ir.build import Operand
from meganeura.ir.composites.activations import as_float
from meganeura.ir.composites.named import named
from meganeura.ir.dtypes import i32
from meganeura.ir.graph import Array, Node
from meganeura.ir.shapes import show
from meganeura.ir.source import here

Sizes = int | Sequence[int]


@named("conv_transpose2d")
def conv_transpose2d(
    x: Operand,
    w: Operand,
    stride: Sizes = 1,
    padding: int | Sequence[object] = 0,
    output_padding: Sizes = 0,
    dilation: Sizes = 1,
    groups: int = 1,
) -> Node:
    """[N, C, H, W] by [C, O/groups, KH, KW] to [N, O, OH, OW]: how conv2d's gradient moves.

    OH = (H - 1) * stride - padding + dilation * (KH - 1) + output_padding + 1, the padding of both
    sides together. `output_padding`, less than the stride, chooses among the sizes that conv2d
    takes to H.
    """
    image, filters = as_float(x), as_float(w)
    steps, spread, extra = build.pair(stride), build.pair(dilation), build.pair(output_padding)
    around = build.padding_pairs(padding)
    _check_transposed(image, filters, groups)
    _check_steps(steps, spread, extra)
    axes = zip(image.shape[2:], filters.shape[2:], steps, around, spread, extra, strict=True)
    shape = tuple((n - 1) * s - sum(p) + d * (k - 1) + e + 1 for n, k, s, p, d, e in axes)
    if min(*shape, *image.shape[2:]) < 1:
        raise ShapeError(
            f"conv_transpose2d of {show(image.shape)} leaves no image",
            expected="a height and a width of at least 1",
            got=show(shape),
            hint="use less padding",
            origin=here(),
        )
    image, filters = _one_type(image, filters)
    return build.apply(
        "conv2d_input",
        image,
        filters,
        shape=shape,
        stride=steps,
        padding=around,
        dilation=spread,
        groups=groups,
    )


def _one_type(x: Node, w: Node) -> tuple[Node, Node]:
    """Both in the type in which they meet."""
    dtype = build.mul(build.constant(1, x.dtype), build.constant(1, w.dtype)).dtype
    return build.cast(x, dtype), build.cast(w, dtype)


def _check_transposed(x: Node, w: Node, groups: int) -> None:
    fits = len(x.shape) == len(w.shape) == 4 and groups > 0
    if not fits or x.shape[1] != w.shape[0] or x.shape[1] % groups:
        raise ShapeError(
            f"conv_transpose2d of {show(x.shape)} and {show(w.shape)} in {groups} groups",
            expected="[N, C, H, W] and [C, O/groups, KH, KW], with C divisible by the groups",
            got=f"{show(x.shape)} and {show(w.shape)}",
            origin=here(),
        )


def _check_steps(steps: tuple[int, int], spread: tuple[int, int], extra: tuple[int, int]) -> None:
    fits = min(*steps, *spread) >= 1 and all(0 <= e < s for e, s in zip(extra, steps, strict=True))
    if not fits:
        raise ShapeError(
            "conv_transpose2d: stride and dilation are at least 1, output_padding below the stride",
            expected="0 <= output_padding < stride",
            got=f"stride {steps}, dilation {spread}, output_padding {extra}",
            origin=here(),
        )


@named("resize")
def resize(x: Operand, size: Sizes, mode: str = "nearest", align_corners: bool = False) -> Node:
    """[..., H, W] at another size, each axis by itself.

    "nearest" takes the element at floor(place * H / OH). "bilinear" weighs the two nearest, by a
    product with a constant matrix [OH, H]; with `align_corners` the outermost elements of both lie
    on each other, without it their outer edges. Neither smooths when it shrinks.
    """
    node, sizes = _image("resize", x, size)
    if mode not in ("nearest", "bilinear") or (align_corners and mode == "nearest"):
        raise OptionError(
            "resize has two modes, and corners to align in one",
            expected='mode="nearest", or mode="bilinear" with or without align_corners',
            got=f"mode={mode!r}, align_corners={align_corners}",
            origin=here(),
        )
    rank = len(node.shape)
    if mode == "bilinear":
        rows, columns = (
            _bilinear(n, m, align_corners) for n, m in zip(node.shape[-2:], sizes, strict=True)
        )
        return _weighed(node, rows, columns)
    for axis, m in zip((rank - 2, rank - 1), sizes, strict=True):
        node = _nearest(node, axis, m)
    return node


@named("adaptive_avg_pool2d")
def adaptive_avg_pool2d(x: Operand, size: Sizes) -> Node:
    """[..., H, W] to [..., OH, OW] by means: place i of OH covers the rows from floor(i * H / OH)
    to ceil((i + 1) * H / OH).
    """
    node, sizes = _image("adaptive_avg_pool2d", x, size)
    (h, w), (oh, ow) = node.shape[-2:], sizes
    if h % oh == 0 and w % ow == 0:
        tiles = build.reshape(node, (*node.shape[:-2], oh, h // oh, ow, w // ow))
        return build.mean(tiles, (-3, -1))
    return _weighed(node, _means(h, oh), _means(w, ow))


def _image(name: str, x: Operand, size: Sizes) -> tuple[Node, tuple[int, int]]:
    node, sizes = as_float(x), build.pair(size)
    if len(node.shape) < 2 or min(*node.shape[-2:], *sizes) < 1:
        raise ShapeError(
            f"{name} of {show(node.shape)} to {show(sizes)}",
            expected="[..., H, W], and a height and a width of at least 1 on both sides",
            got=f"{show(node.shape)} to {show(sizes)}",
            origin=here(),
        )
    return node, sizes


def _nearest(x: Node, axis: int, m: int) -> Node:
    n = x.shape[axis]
    if m == n:
        return x
    if m % n == 0:  # each element several times: a view, whose gradient is a sum
        shape = (*x.shape[: axis + 1], 1, *x.shape[axis + 1 :])
        wide = (*x.shape[: axis + 1], m // n, *x.shape[axis + 1 :])
        result = build.broadcast_to(build.reshape(x, shape), wide)
        return build.reshape(result, (*x.shape[:axis], m, *x.shape[axis + 1 :]))
    return build.gather(x, build.constant(np.arange(m) * n // m, i32), axis)


def _bilinear(n: int, m: int, align_corners: bool) -> Array:
    """The weights [m, n] of n elements in each of m places."""
    if align_corners:
        at = np.arange(m) * ((n - 1) / max(m - 1, 1))
    else:
        at = ((np.arange(m) + 0.5) * (n / m) - 0.5).clip(0.0, n - 1)
    low = np.floor(at).astype(int).clip(0, n - 1)
    share = at - low
    weights = np.zeros((m, n))
    weights[np.arange(m), low] = 1.0 - share
    weights[np.arange(m), np.minimum(low + 1, n - 1)] += share
    return weights


def _means(n: int, m: int) -> Array:
    """The weights [m, n] of n elements in the means of m places."""
    place = np.arange(m)[:, None]
    start, stop = place * n // m, -(-(place + 1) * n // m)
    inside = (np.arange(n) >= start) & (np.arange(n) < stop)
    return inside / (stop - start)


def _weighed(x: Node, rows: Array, columns: Array) -> Node:
    """x [..., H, W] by constant weights [OH, H] and [OW, W]."""
    wide = build.matmul(x, build.constant(columns.T, x.dtype))
    turned = build.matmul(build.transpose(wide), build.constant(rows.T, x.dtype))
    return build.transpose(turned)
