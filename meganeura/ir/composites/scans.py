"""Cumulative sums."""

from __future__ import annotations

import numpy as np

from meganeura.ir import build, shapes
from meganeura.ir.build import Operand
from meganeura.ir.composites.named import named
from meganeura.ir.dtypes import bool_, i32
from meganeura.ir.graph import Node

BLOCK = 64
"""The longest axis of floats that one triangular product sums: a tile of the matmul."""
BLOCK_OF_INTEGERS = 16
"""The same for integers, which no matmul takes: each result looks at this many elements."""


@named("cumsum")
@build.at_users_line
def cumsum(x: Operand, axis: int, exclusive: bool = False, reverse: bool = False) -> Node:
    """The sum of all elements up to each place along an axis; bools count as i32.

    `exclusive` leaves the place's own element out; `reverse` sums from the end. Floats are
    multiplied by a triangular matrix of ones. A long axis is cut into blocks, and each gets what
    the ones before it sum to, found in the same way: the work is BLOCK multiplications an element,
    whatever the length (Blelloch, 1990). An infinity or a NaN spreads over its whole block.
    """
    node = build.as_node(x)
    node = build.cast(node, i32) if node.dtype is bool_ else node
    rank = len(node.shape)
    place = shapes.axes_of(axis, rank)[0]
    order = [*(i for i in range(rank) if i != place), place]
    result = _along_last(build.permute(node, order), exclusive, reverse)
    return build.permute(result, [order.index(i) for i in range(rank)])


def _along_last(x: Node, exclusive: bool, reverse: bool) -> Node:
    *lead, n = x.shape
    width = BLOCK if x.dtype.is_float else BLOCK_OF_INTEGERS
    if n <= width:
        return _in_block(x, exclusive, reverse)
    blocks = -(-n // width)
    around = (0,) * len(lead)
    padded = build.pad(x, (*around, 0), (*around, blocks * width - n))
    apart = build.reshape(padded, (*lead, blocks, width))
    before = _along_last(build.sum_(apart, -1), True, reverse)
    inside = _in_block(apart, exclusive, reverse)
    total = build.add(inside, build.reshape(before, (*lead, blocks, 1)))
    line = build.reshape(total, (*lead, blocks * width))
    return build.slice_(line, (*around, 0), (*lead, n), (1,) * (len(lead) + 1))


def _in_block(x: Node, exclusive: bool, reverse: bool) -> Node:
    """By one product with a triangle [from, to]; for integers as a masked sum."""
    n = x.shape[-1]
    triangle = np.triu(np.ones((n, n), bool), 1 if exclusive else 0)
    triangle = triangle.T if reverse else triangle
    if x.dtype.is_float:
        return build.matmul(x, build.constant(triangle, x.dtype))
    wide = build.reshape(x, (*x.shape[:-1], 1, n))
    return build.sum_(build.where(build.constant(triangle.T), wide, 0), -1)
