"""Reductions, products and convolutions, joining, gathering and scattering."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from meganeura.errors import DTypeError, ShapeError
from meganeura.ir import shapes
from meganeura.ir.builders.maps import cast, div, iota, lt, mul, where
from meganeura.ir.builders.nodes import Axis, Operand, apply, as_node, at_users_line
from meganeura.ir.builders.views import broadcast_to, pad, padding_pairs, pair, reshape
from meganeura.ir.dtypes import bool_, f32, i32, promote
from meganeura.ir.graph import Node
from meganeura.ir.source import here


@at_users_line
def _axes(axis: Axis, node: Node) -> tuple[int, ...]:
    return shapes.axes_of(axis, len(node.shape))


def _reduce(name: str, x: Operand, axis: Axis, keepdims: bool) -> Node:
    node = as_node(x)
    if node.dtype is bool_:
        node = cast(node, i32)
    axes = _axes(axis, node)
    if not axes and name != "argmax":
        return node
    result = apply(name, node, axes=axes)
    if not keepdims:
        return result
    return reshape(result, tuple(1 if i in axes else n for i, n in enumerate(node.shape)))


def sum_(x: Operand, axis: Axis = None, keepdims: bool = False) -> Node:
    """The sum over the axes."""
    return _reduce("sum", x, axis, keepdims)


def max_(x: Operand, axis: Axis = None, keepdims: bool = False) -> Node:
    """The greatest over the axes; the lowest finite number over none."""
    return _reduce("reduce_max", x, axis, keepdims)


def min_(x: Operand, axis: Axis = None, keepdims: bool = False) -> Node:
    """The least over the axes; the greatest finite number over none."""
    return _reduce("reduce_min", x, axis, keepdims)


def argmax(x: Operand, axis: Axis = None, keepdims: bool = False) -> Node:
    """The index of the first greatest element, i32, counted over the reduced axes in order."""
    return _reduce("argmax", x, axis, keepdims)


def mean(x: Operand, axis: Axis = None, keepdims: bool = False) -> Node:
    """The mean over the axes; NaN over none, as in NumPy."""
    node = as_node(x)
    axes = _axes(axis, node)
    count = math.prod(node.shape[a] for a in axes)
    total = sum_(node if node.dtype.is_float else cast(node, f32), axes, keepdims)
    return mul(total, 1.0 / count) if count else div(total, 0.0)


def _factors(a: Operand, b: Operand) -> tuple[Node, Node]:
    """The operands of a product as floats of one type, with an axis each at least."""
    x, y = as_node(a), as_node(b)
    if not x.shape or not y.shape:
        raise ShapeError(
            "matmul takes no scalars",
            got=f"{shapes.show(x.shape)} and {shapes.show(y.shape)}",
            expected="at least one axis each",
            hint="use * for a product by a number",
        )
    dtype = promote(x.dtype, y.dtype)
    dtype = dtype if dtype.is_float else f32
    return cast(x, dtype), cast(y, dtype)


@at_users_line
def matmul(a: Operand, b: Operand) -> Node:
    """The matrix product, with vectors and broadcast leading axes as NumPy's `@`."""
    x, y = _factors(a, b)
    if len(x.shape) > 2 and len(y.shape) == 2 and x.shape[-1] == y.shape[0]:
        # One matrix for a whole batch: one product, whose gradients are single products too.
        lead = x.shape[:-1]
        flat = apply("matmul", reshape(x, (math.prod(lead), x.shape[-1])), y)
        return reshape(flat, (*lead, y.shape[1]))
    row, column = len(x.shape) == 1, len(y.shape) == 1
    x2 = reshape(x, (1, *x.shape)) if row else x
    y2 = reshape(y, (*y.shape, 1)) if column else y
    if x2.shape[-1] == y2.shape[-2]:
        batch = shapes.broadcast(x2.shape[:-2], y2.shape[:-2])
        x2 = broadcast_to(x2, (*batch, *x2.shape[-2:]))
        y2 = broadcast_to(y2, (*batch, *y2.shape[-2:]))
    result = apply("matmul", x2, y2)
    if row:
        result = reshape(result, (*result.shape[:-2], result.shape[-1]))
    return reshape(result, result.shape[:-1]) if column else result


def conv2d(
    x: Operand,
    w: Operand,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[Any] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Node:
    """[N, C, H, W] by [O, C/groups, KH, KW] to [N, O, OH, OW]: cross-correlation."""
    if min(*pair(stride), *pair(dilation), groups) < 1:
        raise ShapeError(
            "conv2d: stride, dilation and groups are at least 1",
            expected=">= 1",
            got=f"stride {stride}, dilation {dilation}, groups {groups}",
            origin=here(),
        )
    return apply(
        "conv2d",
        as_node(x),
        as_node(w),
        stride=pair(stride),
        padding=padding_pairs(padding),
        dilation=pair(dilation),
        groups=groups,
    )


@at_users_line
def concat(parts: Sequence[Node], axis: int) -> Node:
    """The parts one behind another along an axis."""
    if not parts:
        raise ShapeError(
            "concat needs at least one tensor", expected="one or more", got="none", origin=here()
        )
    axis = shapes.axes_of(axis, len(parts[0].shape))[0]
    first = parts[0].shape
    for other in parts[1:]:
        rest = (*other.shape[:axis], *other.shape[axis + 1 :])
        if len(other.shape) != len(first) or rest != (*first[:axis], *first[axis + 1 :]):
            raise ShapeError(
                "concat: shapes differ beside the axis",
                expected=shapes.show(first),
                got=shapes.show(other.shape),
                hint=f"only axis {axis} may differ",
                origin=here(),
            )
    total = sum(p.shape[axis] for p in parts)
    shape = (*first[:axis], total, *first[axis + 1 :])
    position = iota(shape, axis)
    result, offset = None, 0
    for part in parts:
        n = part.shape[axis]
        low = tuple(offset if i == axis else 0 for i in range(len(shape)))
        high = tuple(total - offset - n if i == axis else 0 for i in range(len(shape)))
        moved = pad(part, low, high)
        result = moved if result is None else where(lt(position, offset), result, moved)
        offset += n
    assert result is not None
    return result


def gather(x: Node, index: Operand, axis: int = 0) -> Node:
    """Elements of x along an axis, by index; out of range is clamped."""
    return apply("gather", x, as_node(index, i32), axis=_axes(axis, x)[0])


def scatter_add(updates: Node, index: Operand, size: int, axis: int = 0) -> Node:
    """Zeros of `size` along an axis, with each update added at its index; out of range adds
    nothing.
    """
    if not updates.dtype.is_float and updates.dtype is bool_:
        raise DTypeError(
            "scatter_add does not take bool", expected="numbers", got="bool", origin=here()
        )
    if size < 0:
        raise ShapeError(
            "scatter_add to an axis of less than no places",
            expected="size >= 0",
            got=str(size),
            origin=here(),
        )
    return apply("scatter_add", updates, as_node(index, i32), axis=axis, size=size)
