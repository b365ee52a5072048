"""Gradient rules of the operations that move or gather elements, and of reductions."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from meganeura.ir import build
from meganeura.ir.dtypes import i32
from meganeura.ir.graph import Node, Shape

Gradients = tuple[Node | None, ...]


def _kept(node: Node) -> Shape:
    """The shape of a reduction with its axes kept as 1."""
    axes = node.attr("axes")
    return tuple(1 if i in axes else n for i, n in enumerate(node.inputs[0].shape))


def _spread(g: Node, node: Node) -> Node:
    """A value for each result of a reduction, repeated over the elements that it came from."""
    return build.broadcast_to(build.reshape(g, _kept(node)), node.inputs[0].shape)


def _sum(node: Node, g: Node) -> Gradients:
    return (_spread(g, node),)


def _to_first(node: Node, g: Node, found: Node) -> Node:
    """g at the element whose index over the reduced axes is `found`, 0 elsewhere."""
    shape = node.inputs[0].shape
    position, stride = None, 1
    for axis in reversed(node.attr("axes")):
        along = build.iota(shape, axis)
        along = along if stride == 1 else build.mul(along, stride)
        position = along if position is None else build.add(position, along)
        stride *= shape[axis]
    assert position is not None
    return build.where(build.eq(position, _spread(found, node)), _spread(g, node), 0.0)


def _reduce_max(node: Node, g: Node) -> Gradients:
    return (_to_first(node, g, build.argmax(node.inputs[0], node.attr("axes"))),)


def _reduce_min(node: Node, g: Node) -> Gradients:
    return (_to_first(node, g, build.argmax(build.neg(node.inputs[0]), node.attr("axes"))),)


def _reshape(node: Node, g: Node) -> Gradients:
    return (build.reshape(g, node.inputs[0].shape),)


def _permute(node: Node, g: Node) -> Gradients:
    axes = node.attr("axes")
    return (build.permute(g, sorted(range(len(axes)), key=lambda i: axes[i])),)


def _expand(node: Node, g: Node) -> Gradients:
    source = node.inputs[0].shape
    grown = tuple(i for i, n in enumerate(source) if n != node.shape[i])
    return (build.sum_(g, grown, keepdims=True),)


def _slice(node: Node, g: Node) -> Gradients:
    """Steps become gaps of zeros; what a negative step turned is turned back first."""
    start, step = node.attr("start"), node.attr("step")
    for axis, n in enumerate(node.inputs[0].shape):
        g = _unsliced(g, axis, start[axis], step[axis], n)
    return (g,)


def _unsliced(g: Node, axis: int, start: int, step: int, size: int) -> Node:
    count = g.shape[axis]
    rank = len(g.shape)

    def along(value: int, other: Shape | int) -> Shape:
        return tuple(
            value if i == axis else (other if isinstance(other, int) else other[i])
            for i in range(rank)
        )

    if step < 0 and count:
        g = build.slice_(g, along(count - 1, 0), along(-1, g.shape), along(-1, 1))
        start, step = start + (count - 1) * step, -step
    if step > 1 and count:
        before, after = g.shape[:axis], g.shape[axis + 1 :]
        apart = build.reshape(g, (*before, count, 1, *after))
        gaps = tuple(step - 1 if i == axis + 1 else 0 for i in range(rank + 1))
        joined = build.reshape(
            build.pad(apart, (0,) * (rank + 1), gaps), (*before, count * step, *after)
        )
        g = build.slice_(joined, (0,) * rank, along((count - 1) * step + 1, g.shape), (1,) * rank)
    return build.pad(g, along(start, 0), along(size - start - g.shape[axis], 0))


def _pad(node: Node, g: Node) -> Gradients:
    low, shape = node.attr("low"), node.inputs[0].shape
    stop = tuple(a + n for a, n in zip(low, shape, strict=True))
    return (build.slice_(g, low, stop, (1,) * len(shape)),)


def _taps(node: Node) -> tuple[int, ...]:
    """The last axes, those of the window."""
    k, rank = len(node.attr("stride")), len(node.shape)
    return tuple(range(rank - k, rank))


def _windows(node: Node, g: Node) -> Gradients:
    """Each element collects from every window that covered it."""
    (x,) = node.inputs
    k = len(node.attr("size"))
    covered = build.apply(
        "unwindows",
        g,
        shape=x.shape[len(x.shape) - k :],
        stride=node.attr("stride"),
        padding=node.attr("padding"),
        dilation=node.attr("dilation"),
    )
    return (build.sum_(covered, _taps(covered)),)


def _unwindows(node: Node, g: Node) -> Gradients:
    """For each window and tap what the element there, seen by the same tap, got: the diagonal of
    windows.
    """
    source = node.inputs[0].shape
    k = len(node.attr("shape"))
    lead, counts, size = source[: -2 * k], source[-2 * k : -k], source[-k:]
    n = len(lead)
    taps_first = build.permute(g, (*range(n), *range(n + k, n + 2 * k), *range(n, n + k)))
    seen = build.windows(
        taps_first, size, node.attr("stride"), node.attr("padding"), node.attr("dilation")
    )
    # [..., taps, counts, taps]: keep where both taps agree.
    wide = (*lead, *size, *counts, *size)
    same = None
    for axis in range(k):
        equal = build.eq(build.iota(wide, n + axis), build.iota(wide, n + 2 * k + axis))
        same = equal if same is None else build.and_(same, equal)
    assert same is not None
    seen = _cropped(seen, n + k, counts)
    return (build.sum_(build.where(same, seen, 0.0), tuple(range(n, n + k))),)


def _cropped(x: Node, axis: int, sizes: Shape) -> Node:
    """The first `sizes` elements of the axes from `axis` on."""
    stop = (*x.shape[:axis], *sizes, *x.shape[axis + len(sizes) :])
    return build.slice_(x, (0,) * len(stop), stop, (1,) * len(stop))


def _gather(node: Node, g: Node) -> Gradients:
    x, index = node.inputs
    axis = node.attr("axis")
    size = x.shape[axis]
    inside = build.minimum(index, max(size - 1, 0))
    if index.dtype is i32:
        inside = build.maximum(inside, 0)
    return build.scatter_add(g, inside, size, axis), None


def _scatter_add(node: Node, g: Node) -> Gradients:
    updates, index = node.inputs
    axis, size = node.attr("axis"), node.attr("size")
    inside = build.lt(index, size)
    if index.dtype is i32:
        inside = build.and_(inside, build.ge(index, 0))
    after = len(updates.shape) - axis - len(index.shape)
    wide = build.reshape(inside, (*(1,) * axis, *index.shape, *(1,) * after))
    return build.where(wide, build.gather(g, index, axis), 0.0), None


RULES: Mapping[str, Callable[[Node, Node], Gradients]] = {
    "sum": _sum,
    "reduce_max": _reduce_max,
    "reduce_min": _reduce_min,
    "reshape": _reshape,
    "permute": _permute,
    "expand": _expand,
    "slice": _slice,
    "pad": _pad,
    "windows": _windows,
    "unwindows": _unwindows,
    "gather": _gather,
    "scatter_add": _scatter_add,
}
