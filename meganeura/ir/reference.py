"""What each operation means, in NumPy: the oracle, and the arithmetic of the NumPy device.

Each function takes the node and the values of its operands. Floats keep the precision of the
operands, so the same rows evaluate a graph in float32 or in float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from meganeura.ir.dtypes import bool_
from meganeura.ir.graph import Array, Node

_erf = np.frompyfunc(math.erf, 1, 1)


def elementwise(function: Callable[..., Any]) -> Callable[..., Array]:
    """A NumPy function of the operands alone as a row's reference."""

    def run(node: Node, *operands: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(function(*operands))

    return run


def no_value(node: Node, *operands: Array) -> Array:
    """A leaf has no meaning of its own: its value must be fed."""
    raise KeyError(node.name)


def constant(node: Node, real: type[np.floating[Any]] | None = None) -> Array:
    """The value that the constant holds."""
    return np.asarray(node.attr("value").array)


def rsqrt(x: Array) -> Array:
    """One over the square root."""
    return np.asarray(1 / np.sqrt(x))


def erf(x: Array) -> Array:
    """The error function, exact in float64."""
    return np.asarray(_erf(x), dtype=x.dtype)


def cast(node: Node, x: Array) -> Array:
    """Conversion; a float that becomes a float keeps the precision of the evaluation."""
    dtype = node.attr("dtype")
    if dtype is bool_:
        return np.asarray(x != 0)
    if dtype.is_float and x.dtype == np.float64:
        return x
    with np.errstate(invalid="ignore"):
        return x.astype(dtype.numpy)


def iota(node: Node) -> Array:
    """The index along an axis, as int32."""
    shape, axis = node.attr("shape"), node.attr("axis")
    line = np.arange(shape[axis], dtype=np.int32)
    return np.broadcast_to(line.reshape([-1 if i == axis else 1 for i in range(len(shape))]), shape)


def random_bits(node: Node, seed: Array) -> Array:
    """32 random bits an element: PCG3D (Jarzynski and Olano, 2020) of (index, seed, stream)."""
    index = np.arange(node.size, dtype=np.uint32).reshape(node.shape)
    v = [index, seed.astype(np.uint32), np.full_like(index, node.attr("stream"))]
    with np.errstate(over="ignore"):
        v = [x * np.uint32(1664525) + np.uint32(1013904223) for x in v]
        for turn in range(2):
            v[0] = v[0] + v[1] * v[2]
            v[1] = v[1] + v[2] * v[0]
            v[2] = v[2] + v[0] * v[1]
            if turn == 0:
                v = [x ^ (x >> np.uint32(16)) for x in v]
    return v[0]


def reduce_sum(node: Node, x: Array) -> Array:
    """The sum over the axes; pairwise, in the precision of the operand."""
    return np.asarray(np.sum(x, axis=node.attr("axes"), dtype=x.dtype))


def reduce_max(node: Node, x: Array) -> Array:
    """The greatest over the axes; the lowest finite number when there is none."""
    return np.asarray(np.max(x, axis=node.attr("axes"), initial=lowest(x.dtype)))


def reduce_min(node: Node, x: Array) -> Array:
    """The least over the axes; the greatest finite number when there is none."""
    return np.asarray(np.min(x, axis=node.attr("axes"), initial=-lowest(x.dtype)))


def lowest(dtype: np.dtype[Any]) -> Any:
    """The start of a maximum: the lowest finite number of the type (of float32 for wider
    floats).
    """
    if dtype.kind == "f":
        return float(np.finfo(np.float32 if dtype != np.float16 else np.float16).min)
    return -(2**31 - 1) if dtype.kind == "i" else 0


def argmax(node: Node, x: Array) -> Array:
    """The index of the first greatest element, counted over the reduced axes in order."""
    axes = node.attr("axes")
    kept = [i for i in range(x.ndim) if i not in axes]
    count = math.prod(x.shape[a] for a in axes)
    if count == 0 or x.size == 0:
        return np.zeros(node.shape, np.int32)
    flat = x.transpose([*kept, *axes]).reshape(*node.shape, count)
    return np.asarray(np.argmax(flat, axis=-1)).astype(np.int32)


def reshape(node: Node, x: Array) -> Array:
    """The same elements in another shape."""
    return x.reshape(node.shape)


def permute(node: Node, x: Array) -> Array:
    """The axes in another order."""
    return x.transpose(node.attr("axes"))


def expand(node: Node, x: Array) -> Array:
    """Sizes of 1 repeated."""
    return np.broadcast_to(x, node.shape)


def slice_(node: Node, x: Array) -> Array:
    """`start:stop:step` on each axis; a stop of -1 with a negative step means through the first
    element.
    """
    spans = zip(node.attr("start"), node.attr("stop"), node.attr("step"), strict=True)
    return x[tuple(slice(a, None if b < 0 else b, s) for a, b, s in spans)]


def pad(node: Node, x: Array) -> Array:
    """The tensor with a border of one value."""
    widths = list(zip(node.attr("low"), node.attr("high"), strict=True))
    return np.pad(x, widths, constant_values=node.attr("value"))


def windows(node: Node, x: Array) -> Array:
    """Every window of the last axes, as a gather by index."""
    size, stride, dilation = node.attr("size"), node.attr("stride"), node.attr("dilation")
    padding, k = node.attr("padding"), len(node.attr("size"))
    lead = x.ndim - k
    padded = np.pad(x, [(0, 0)] * lead + list(padding), constant_values=node.attr("value"))
    counts = node.shape[lead : lead + k]
    index = []
    for axis in range(k):
        at = (
            np.arange(counts[axis])[:, None] * stride[axis]
            + np.arange(size[axis])[None] * dilation[axis]
        )
        around = [1] * (2 * k)
        around[axis], around[k + axis] = counts[axis], size[axis]
        index.append(at.reshape(around))
    return padded[(..., *index)]


def unwindows(node: Node, g: Array) -> Array:
    """The windows seen from the elements that they covered; 0 where no window did."""
    shape, stride, dilation = node.attr("shape"), node.attr("stride"), node.attr("dilation")
    padding, k = node.attr("padding"), len(node.attr("shape"))
    lead = g.ndim - 2 * k
    counts, size = g.shape[lead : lead + k], g.shape[lead + k :]
    index: list[Array] = []
    valid: Any = np.True_
    for axis in range(k):
        at = (
            np.arange(shape[axis])[:, None]
            + padding[axis][0]
            - np.arange(size[axis])[None] * dilation[axis]
        )
        ok = (at % stride[axis] == 0) & (at >= 0) & (at // stride[axis] < counts[axis])
        around = [1] * (2 * k)
        around[axis], around[k + axis] = shape[axis], size[axis]
        index.append(np.where(ok, at // stride[axis], 0).reshape(around))
        valid = valid & ok.reshape(around)
    taps = [
        np.arange(s).reshape([-1 if i == k + a else 1 for i in range(2 * k)])
        for a, s in enumerate(size)
    ]
    place: tuple[Any, ...] = (..., *index, *taps)
    return np.where(valid, g[place], np.zeros((), g.dtype))


def matmul(node: Node, a: Array, b: Array) -> Array:
    """The matrix product over the last two axes."""
    return np.asarray(np.matmul(a, b))


def conv2d(node: Node, x: Array, w: Array) -> Array:
    """Cross-correlation, as deep learning calls convolution: windows of the image times the
    filters.
    """
    groups, (o, c, kh, kw) = node.attr("groups"), w.shape
    n, (oh, ow) = x.shape[0], node.shape[2:]
    columns = _columns(node, x, w.shape[2:], (oh, ow)).reshape(n, groups, c, oh, ow, kh, kw)
    filters = w.reshape(groups, o // groups, c, kh, kw)
    result = np.einsum("ngcyxhw,gochw->ngoyx", columns, filters, optimize=True)
    return np.asarray(result.reshape(node.shape))


def conv2d_weight(node: Node, x: Array, g: Array) -> Array:
    """How conv2d changes with its filters: windows of the image times the gradient."""
    groups, size = node.attr("groups"), node.attr("size")
    n, o, oh, ow = g.shape
    columns = _columns(node, x, size, (oh, ow))
    columns = columns.reshape(n, groups, node.shape[1], oh, ow, *size)
    gradient = g.reshape(n, groups, o // groups, oh, ow)
    result = np.einsum("ngcyxhw,ngoyx->gochw", columns, gradient, optimize=True)
    return np.asarray(result.reshape(node.shape))


def conv2d_input(node: Node, g: Array, w: Array) -> Array:
    """How conv2d changes with its image: each tap adds its share where it was read."""
    groups, (o, c, kh, kw) = node.attr("groups"), w.shape
    (sy, sx), (dy, dx) = node.attr("stride"), node.attr("dilation")
    (top, bottom), (left, right) = node.attr("padding")
    n, _, oh, ow = g.shape
    height, width = node.attr("shape")
    out = np.zeros((n, node.shape[1], height + top + bottom, width + left + right), g.dtype)
    gradient = g.reshape(n, groups, o // groups, oh, ow)
    filters = w.reshape(groups, o // groups, c, kh, kw)
    for y in range(kh):
        for x in range(kw):
            part = np.einsum("ngoyx,goc->ngcyx", gradient, filters[..., y, x], optimize=True)
            rows = slice(y * dy, y * dy + (oh - 1) * sy + 1, sy)
            columns = slice(x * dx, x * dx + (ow - 1) * sx + 1, sx)
            out[:, :, rows, columns] += part.reshape(n, node.shape[1], oh, ow)
    return out[:, :, top : top + height, left : left + width]


def _columns(node: Node, x: Array, size: tuple[int, ...], counts: tuple[int, ...]) -> Array:
    """Windows of an image, [N, C, OH, OW, KH, KW]."""
    stride, dilation = node.attr("stride"), node.attr("dilation")
    padded = np.pad(x, [(0, 0), (0, 0), *node.attr("padding")])
    at = [
        np.arange(counts[a])[:, None] * stride[a] + np.arange(size[a])[None] * dilation[a]
        for a in (0, 1)
    ]
    return padded[:, :, at[0][:, None, :, None], at[1][None, :, None, :]]


def gather(node: Node, x: Array, index: Array) -> Array:
    """Elements along an axis by index; an index out of range is clamped to the nearest."""
    axis = node.attr("axis")
    return np.take(x, np.clip(index.astype(np.int64), 0, max(x.shape[axis] - 1, 0)), axis=axis)


def scatter_add(node: Node, updates: Array, index: Array) -> Array:
    """The sum of the updates that name each place; an index out of range adds nothing."""
    axis, size = node.attr("axis"), node.attr("size")
    rank = index.ndim
    rows = np.moveaxis(updates, range(axis, axis + rank), range(rank)).reshape(
        index.size, node.size // size if size else 0
    )
    flat = index.reshape(-1).astype(np.int64)
    ok = (flat >= 0) & (flat < size)
    out = np.zeros((size, rows.shape[1]), updates.dtype)
    np.add.at(out, flat[ok], rows[ok])
    rest = (*updates.shape[:axis], *updates.shape[axis + rank :])
    return np.moveaxis(out.reshape(size, *rest), 0, axis)


def detach(node: Node, x: Array) -> Array:
    """The value; only gradients see a difference."""
    return x


def effect(node: Node, value: Array, leaf: Array, new: Array) -> Array:
    """The value; the update is collected elsewhere."""
    return value
