"""Views: the same elements seen in another shape, order or window."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from meganeura.errors import ShapeError
from meganeura.ir import shapes
from meganeura.ir.builders.nodes import apply, at_users_line
from meganeura.ir.graph import Node, Shape
from meganeura.ir.source import here


def reshape(x: Node, shape: Shape) -> Node:
    """The same elements in another shape; one size may be -1."""
    shape = tuple(int(n) for n in shape)
    if shape.count(-1) == 1:
        rest = math.prod(n for n in shape if n != -1)
        shape = tuple((x.size // rest if rest else 0) if n == -1 else n for n in shape)
    return x if shape == x.shape else apply("reshape", x, shape=shape)


def permute(x: Node, axes: Sequence[int]) -> Node:
    """The axes in another order."""
    rank = len(x.shape)
    order = tuple(a + rank if -rank <= a < 0 else a for a in axes)
    return x if order == tuple(range(len(x.shape))) else apply("permute", x, axes=order)


def transpose(x: Node) -> Node:
    """The last two axes exchanged."""
    rank = len(x.shape)
    if rank < 2:
        raise ShapeError(
            "transpose needs two axes",
            expected="[..., m, n]",
            got=shapes.show(x.shape),
            origin=here(),
        )
    return permute(x, (*range(rank - 2), rank - 1, rank - 2))


def broadcast_to(x: Node, shape: Shape) -> Node:
    """x repeated to the shape, by NumPy's rules."""
    if x.shape == shape:
        return x
    padded = (1,) * (len(shape) - len(x.shape)) + x.shape
    return apply("expand", reshape(x, padded), shape=shape)


def slice_(x: Node, start: Shape, stop: Shape, step: Shape) -> Node:
    """`start:stop:step` on each axis, as `slice.indices` gives them."""
    empty = [len(range(a, b, s)) == 0 for a, b, s in zip(start, stop, step, strict=True)]
    start = tuple(0 if e else a for a, e in zip(start, empty, strict=True))
    stop = tuple(0 if e else b for b, e in zip(stop, empty, strict=True))
    step = tuple(1 if e else s for s, e in zip(step, empty, strict=True))
    if start == (0,) * len(start) and stop == x.shape and step == (1,) * len(step):
        return x
    return apply("slice", x, start=start, stop=stop, step=step)


def pad(x: Node, low: Shape, high: Shape, value: float = 0.0) -> Node:
    """A border of `value` on each axis."""
    if len(low) != len(x.shape) or len(high) != len(low) or min((*low, *high), default=0) < 0:
        raise ShapeError(
            f"pad of {shapes.show(x.shape)}",
            expected="two widths of at least 0 for each axis",
            got=str(list(zip(low, high, strict=False))),
            origin=here(),
        )
    return (
        x
        if not any(low) and not any(high)
        else apply("pad", x, low=low, high=high, value=float(value))
    )


def windows(
    x: Node,
    size: Shape,
    stride: Shape,
    padding: tuple[tuple[int, int], ...],
    dilation: Shape,
    value: float = 0.0,
) -> Node:
    """[..., H, W] to [..., OH, OW, KH, KW]: every window of the last axes; `value` outside."""
    return apply(
        "windows",
        x,
        size=size,
        stride=stride,
        padding=padding,
        dilation=dilation,
        value=float(value),
    )


@at_users_line
def pair(value: int | Sequence[int]) -> tuple[int, int]:
    """One number for both axes, or one each."""
    if isinstance(value, int):
        return value, value
    if len(value) != 2 or not all(isinstance(n, (int, np.integer)) for n in value):
        raise ShapeError(
            "one number for both axes, or one each", expected="n or (n, m)", got=str(value)
        )
    return int(value[0]), int(value[1])


@at_users_line
def padding_pairs(value: int | Sequence[Any]) -> tuple[tuple[int, int], tuple[int, int]]:
    """Padding as ((top, bottom), (left, right)) from one number, one an axis, or pairs."""
    sides = (value, value) if isinstance(value, int) else tuple(value)
    pairs = tuple(map(pair, sides))
    if len(pairs) != 2 or min(map(min, pairs)) < 0:
        raise ShapeError(
            "padding is not negative, and of two axes",
            expected="n, (n, m) or ((top, bottom), (left, right))",
            got=str(value),
        )
    return pairs[0], pairs[1]
