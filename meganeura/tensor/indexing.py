"""Indexing as NumPy's basic indexing: integers, slices with steps, None, Ellipsis; and rows by a
tensor of integers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from meganeura.errors import DTypeError, ShapeError
from meganeura.ir import build
from meganeura.ir.dtypes import bool_
from meganeura.ir.graph import Node
from meganeura.ir.shapes import show
from meganeura.ir.source import here


def indexed(x: Node, key: Any) -> Node:
    """`x[key]`."""
    if isinstance(key, (Node, np.ndarray, list)):
        return _rows(x, build.as_node(key))
    keys = _complete(x, key if isinstance(key, tuple) else (key,))
    start, stop, step, shape = [], [], [], []
    axis = 0
    for part in keys:
        if part is None:
            shape.append(1)
            continue
        size = x.shape[axis]
        a, b, s, kept = _span(part, size, axis, x)
        start.append(a)
        stop.append(b)
        step.append(s)
        if kept:
            shape.append(len(range(a, b, s)))
        axis += 1
    taken = build.slice_(x, tuple(start), tuple(stop), tuple(step))
    return build.reshape(taken, tuple(shape))


def _rows(x: Node, index: Node) -> Node:
    if index.dtype is bool_:
        raise DTypeError(
            "a mask cannot index: how many elements it keeps is not known before it runs",
            expected="integers, slices, or a tensor of integers",
            got=f"{show(index.shape)} bool",
            hint="use mg.where(mask, x, 0)",
            origin=here(),
        )
    if not x.shape:
        raise ShapeError("a scalar cannot be indexed", expected="at least one axis", origin=here())
    return build.gather(x, index, 0)


def _complete(x: Node, keys: tuple[Any, ...]) -> tuple[Any, ...]:
    """The keys with Ellipsis, or the missing end, replaced by full slices."""
    rank = len(x.shape)
    used = sum(1 for k in keys if k is not None and k is not Ellipsis)
    if used > rank:
        raise ShapeError(
            f"too many indices for {show(x.shape)}",
            expected=f"at most {rank}",
            got=str(used),
            origin=here(),
        )
    dots = [i for i, k in enumerate(keys) if k is Ellipsis]
    if len(dots) > 1:
        raise ShapeError(
            "an index may hold one ...", expected="one", got=str(len(dots)), origin=here()
        )
    at = dots[0] if dots else len(keys)
    return (*keys[:at], *[slice(None)] * (rank - used), *keys[at + 1 :])


def _span(part: Any, size: int, axis: int, x: Node) -> tuple[int, int, int, bool]:
    """Start, stop, step, and whether the axis stays."""
    if isinstance(part, slice):
        if part.step == 0:
            raise ShapeError("a slice cannot have step 0", expected="another step", origin=here())
        try:
            return (*part.indices(size), True)
        except TypeError as error:
            raise DTypeError(
                "a slice is made of whole numbers",
                expected="such as x[1:], x[::2]",
                got=str(part),
                origin=here(),
            ) from error
    if isinstance(part, (int, np.integer)) and not isinstance(part, (bool, np.bool_)):
        place = int(part)
        if not -size <= place < size:
            raise ShapeError(
                f"index {place} is out of range on axis {axis} of {show(x.shape)}",
                expected=f"from {-size} to {size - 1}",
                got=str(place),
                origin=here(),
            )
        place %= size
        return place, place + 1, 1, False
    raise DTypeError(
        f"cannot index with {type(part).__name__}",
        expected="integers, slices, None, ..., or one tensor of integers",
        got=repr(part),
        hint="gather along another axis with mg.gather(x, index, axis)",
        origin=here(),
    )
