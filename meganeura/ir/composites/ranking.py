"""The greatest k elements, found without sorting."""

from __future__ import annotations

from meganeura.errors import DTypeError, ShapeError
from meganeura.ir import build, shapes
from meganeura.ir.build import Operand
from meganeura.ir.composites.named import named
from meganeura.ir.dtypes import bool_, f16, i32, u32
from meganeura.ir.graph import Node
from meganeura.ir.source import here

SHORT = 64
"""Up to this length every pair is compared at once; a longer axis takes k rounds."""


@named("topk")
@build.at_users_line
def topk(x: Operand, k: int, axis: int = -1) -> tuple[Node, Node]:
    """The k greatest elements along an axis, greatest first, and their indices, i32.

    The first of equals comes first; the gradient goes to the elements chosen. On a short axis an
    element's rank is the number of those that come before it, all pairs compared at once; on a long
    one each of k rounds finds the element that follows the last. There is no order with NaN.
    """
    node = build.as_node(x)
    place = shapes.axes_of(axis, len(node.shape))[0] if node.shape else 0
    _check(node, k, place)
    rank = len(node.shape)
    order = [*(i for i in range(rank) if i != place), place]
    rows = build.permute(node, order)
    found = _by_rank(rows, k) if node.shape[place] <= SHORT else _by_rounds(rows, k)
    back = [order.index(i) for i in range(rank)]
    return build.permute(_chosen(rows, found), back), build.permute(found, back)


def _check(x: Node, k: int, axis: int) -> None:
    if x.dtype is bool_:
        raise DTypeError("topk does not take bool", expected="numbers", got="bool", origin=here())
    n = x.shape[axis] if x.shape else 0
    if not 1 <= k <= n:
        raise ShapeError(
            f"topk of {shapes.show(x.shape)} along axis {axis}",
            expected=f"1 <= k <= {n}" if n else "at least one element along the axis",
            got=f"k={k}",
            origin=here(),
        )


def _chosen(x: Node, index: Node) -> Node:
    """x [..., n] at index [..., k]: a sum with one term, whose gradient needs no scatter."""
    *lead, n = x.shape
    k = index.shape[-1]
    wide = (*lead, k, n)
    chosen = build.eq(build.iota(wide, -1), build.reshape(index, (*lead, k, 1)))
    return build.sum_(build.where(chosen, build.reshape(x, (*lead, 1, n)), 0), -1)


def _by_rank(x: Node, k: int) -> Node:
    """The index of each rank below k, from [..., n]."""
    *lead, n = x.shape
    pairs = (*lead, n, n)  # [..., own, other]
    own = build.broadcast_to(build.reshape(x, (*lead, n, 1)), pairs)
    other = build.broadcast_to(build.reshape(x, (*lead, 1, n)), pairs)
    earlier = build.lt(build.iota(pairs, -1), build.iota(pairs, -2))
    before = build.or_(build.gt(other, own), build.and_(build.eq(other, own), earlier))
    ranks = build.reshape(build.sum_(before, -1), (*lead, 1, n))
    wide = (*lead, k, n)
    holds = build.eq(ranks, build.iota(wide, -2))
    return build.sum_(build.where(holds, build.iota(wide, -1), 0), -1)


def _by_rounds(x: Node, k: int) -> Node:
    """The index of each rank below k, from [..., n]: each round takes what follows the last."""
    lowest = _lowest(x)
    held = build.maximum(x, lowest)  # -inf ranks as the lowest number, which marks what is out
    place = build.iota(x.shape, -1)
    open_: Node | None = None
    found: list[Node] = []
    for _ in range(k):
        top = build.max_(held if open_ is None else build.where(open_, held, lowest), -1, True)
        at_top = build.eq(held, top)
        first = build.argmax(
            at_top if open_ is None else build.and_(open_, at_top), -1, keepdims=True
        )
        later = build.and_(build.eq(held, top), build.gt(place, first))
        open_ = build.or_(build.lt(held, top), later)
        found.append(first)
    return build.concat(found, -1)


def _lowest(x: Node) -> Node:
    if x.dtype.is_float:
        return build.constant(-65504.0 if x.dtype is f16 else -3.4028234663852886e38, x.dtype)
    return build.constant(0 if x.dtype is u32 else -(2**31) + 1, i32 if x.dtype is i32 else u32)
