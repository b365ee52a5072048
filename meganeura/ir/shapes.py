"""Shape rules: from the shapes of the operands and the attributes to the shape of the result."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import zip_longest

import numpy as np

from meganeura.errors import ShapeError

Shape = tuple[int, ...]
Pairs = tuple[tuple[int, int], ...]


def show(shape: Shape) -> str:
    """A shape as people write it: ``[128, 64]``."""
    return str(list(shape))


def broadcast(*shapes: Shape) -> Shape:
    """NumPy's broadcasting of shapes; ShapeError names the axis that does not fit."""
    result: list[int] = []
    for position, sizes in enumerate(zip_longest(*(reversed(s) for s in shapes), fillvalue=1)):
        wide = {n for n in sizes if n != 1}
        if len(wide) > 1:
            raise ShapeError(
                "shapes do not broadcast: " + " and ".join(map(show, shapes)),
                expected=f"equal sizes, or 1, on axis {-1 - position}",
                got=" and ".join(str(n) for n in sizes),
                hint="reshape one operand, or add an axis with x[:, None]",
            )
        result.append(wide.pop() if wide else 1)
    return tuple(reversed(result))


def axes_of(axis: int | tuple[int, ...] | None, rank: int) -> tuple[int, ...]:
    """Axes as sorted non-negative numbers; None means all."""
    if axis is None:
        return tuple(range(rank))
    axes = tuple(axis) if isinstance(axis, Iterable) else (axis,)
    for a in axes:
        if not isinstance(a, (int, np.integer)):
            raise ShapeError(
                "an axis is a whole number", expected="such as 0, -1 or (0, 1)", got=repr(axis)
            )
        if not -rank <= a < rank:
            raise ShapeError(
                f"axis {a} is out of range",
                expected=f"an axis from {-rank} to {rank - 1}",
                got=str(a),
                hint=f"the tensor has {rank} axes",
            )
    unique = sorted({a % rank for a in axes})
    if len(unique) != len(axes):
        raise ShapeError("an axis is named twice", expected="distinct axes", got=str(axes))
    return tuple(unique)


def reduced(shape: Shape, axes: tuple[int, ...]) -> Shape:
    """The shape without the reduced axes."""
    return tuple(n for i, n in enumerate(shape) if i not in axes)


def reshaped(source: Shape, shape: Shape) -> Shape:
    """The new shape, when it holds as many elements."""
    if min(shape, default=0) < 0:
        raise ShapeError(
            f"cannot reshape {show(source)} to {show(shape)}",
            expected="sizes of at least 0, and -1 at most once",
            got=show(shape),
        )
    if math.prod(source) != math.prod(shape):
        raise ShapeError(
            f"cannot reshape {show(source)} to {show(shape)}",
            expected=f"{math.prod(source)} elements",
            got=f"{math.prod(shape)} elements",
        )
    return shape


def permuted(source: Shape, axes: tuple[int, ...]) -> Shape:
    """The sizes in the new order of axes."""
    if sorted(axes) != list(range(len(source))):
        raise ShapeError(
            f"cannot permute {show(source)} by {axes}",
            expected=f"each of the axes 0 to {len(source) - 1} once",
            got=str(axes),
        )
    return tuple(source[a] for a in axes)


def expanded(source: Shape, shape: Shape) -> Shape:
    """The wider shape, when only sizes of 1 grow."""
    fits = len(source) == len(shape) and all(
        s in (1, n) for s, n in zip(source, shape, strict=True)
    )
    if not fits:
        raise ShapeError(
            f"cannot expand {show(source)} to {show(shape)}",
            expected="equal sizes, or 1",
            got=show(source),
        )
    return shape


def sliced(source: Shape, start: Shape, stop: Shape, step: Shape) -> Shape:
    """Sizes after `start:stop:step` on each axis (already normalised, as `slice.indices` gives
    them).
    """
    return tuple(len(range(a, b, s)) for a, b, s in zip(start, stop, step, strict=True))


def padded(source: Shape, low: Shape, high: Shape, value: float) -> Shape:
    """Sizes with `low` and `high` elements added on each axis."""
    return tuple(n + a + b for n, a, b in zip(source, low, high, strict=True))


def window_count(n: int, size: int, stride: int, pad: tuple[int, int], dilation: int) -> int:
    """How many windows fit on an axis of `n` elements."""
    return max((n + pad[0] + pad[1] - dilation * (size - 1) - 1) // stride + 1, 0)


def windows(
    source: Shape, size: Shape, stride: Shape, padding: Pairs, dilation: Shape, value: float
) -> Shape:
    """[..., H, W] to [..., OH, OW, KH, KW]: every window of the last axes."""
    k = len(size)
    if len(source) < k:
        raise ShapeError("too few axes for the window", expected=f"at least {k}", got=show(source))
    counts = tuple(map(window_count, source[-k:], size, stride, padding, dilation))
    if min(counts, default=1) < 1:
        reach = tuple(d * (s - 1) + 1 for s, d in zip(size, dilation, strict=True))
        raise ShapeError(
            "the window is larger than the padded input",
            expected=f"at least {show(reach)}",
            got=show(tuple(n + p[0] + p[1] for n, p in zip(source[-k:], padding, strict=True))),
            hint="add padding, or use a smaller window",
        )
    return (*source[:-k], *counts, *size)


def unwindows(source: Shape, shape: Shape, stride: Shape, padding: Pairs, dilation: Shape) -> Shape:
    """[..., OH, OW, KH, KW] to [..., H, W, KH, KW]: for each element the windows that covered it, 0
    where none.
    """
    k = len(shape)
    return (*source[: -2 * k], *shape, *source[-k:])


def matmul(a: Shape, b: Shape) -> Shape:
    """[..., M, K] by [..., K, N], with equal leading axes."""
    if len(a) < 2 or len(b) < 2 or a[-1] != b[-2] or a[:-2] != b[:-2]:
        raise ShapeError(
            f"matmul of {show(a)} and {show(b)}",
            expected="[..., m, k] by [..., k, n] with one k",
            got=f"k of {a[-1] if a else '-'} and {b[-2] if len(b) > 1 else '-'}",
            hint="check the layer before, or transpose an operand with .T",
        )
    return (*a[:-1], b[-1])


def conv2d(
    x: Shape, w: Shape, stride: Shape, padding: Pairs, dilation: Shape, groups: int
) -> Shape:
    """[N, C, H, W] by [O, C/groups, KH, KW] to [N, O, OH, OW]."""
    if len(x) != 4 or len(w) != 4:
        raise ShapeError(
            "conv2d takes images and filters of four axes",
            expected="[N, C, H, W] and [O, C/groups, KH, KW]",
            got=f"{show(x)} and {show(w)}",
        )
    if x[1] != w[1] * groups or w[0] % groups:
        raise ShapeError(
            f"conv2d of {show(x)} and {show(w)} in {groups} groups",
            expected=f"{w[1] * groups} input channels, and output channels divisible by {groups}",
            got=f"{x[1]} input and {w[0]} output channels",
        )
    spatial = windows(x, w[2:], stride, padding, dilation, 0.0)[2:4]
    return (x[0], w[0], *spatial)


def conv2d_input(
    g: Shape, w: Shape, shape: Shape, stride: Shape, padding: Pairs, dilation: Shape, groups: int
) -> Shape:
    """The gradient of conv2d by its image: [N, O, OH, OW] by [O, C/groups, KH, KW] to [N,
    C, H, W].
    """
    return (g[0], w[1] * groups, *shape)


def conv2d_weight(
    x: Shape, g: Shape, size: Shape, stride: Shape, padding: Pairs, dilation: Shape, groups: int
) -> Shape:
    """The gradient of conv2d by its filters: [N, C, H, W] by [N, O, OH, OW] to [O, C/groups, KH,
    KW].
    """
    return (g[1], x[1] // groups, *size)


def gathered(source: Shape, index: Shape, axis: int) -> Shape:
    """The axis is replaced by the axes of the index."""
    if source[axis] == 0 and 0 not in index:
        raise ShapeError(
            "gather from an axis without elements",
            expected=f"at least one element on axis {axis}",
            got=show(source),
        )
    return (*source[:axis], *index, *source[axis + 1 :])


def scattered(updates: Shape, index: Shape, axis: int, size: int) -> Shape:
    """The axes of the index, at `axis`, are replaced by one of `size`."""
    found = updates[axis : axis + len(index)]
    if found != index:
        raise ShapeError(
            "scatter_add: the updates do not match the index", expected=show(index), got=show(found)
        )
    return (*updates[:axis], size, *updates[axis + len(index) :])
