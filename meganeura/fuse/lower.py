"""From operations to the three loop forms: everything becomes maps, views, reductions and matrix
products.

A convolution is a matrix product that reads its image through the view `windows`; the views are
folded into the load hooks of the
matmul kernel, so nothing is copied (implicit GEMM). A product with one row or column is a
reduction; a long one over few results is
split, so that more of the machine works on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from meganeura.ir import build
from meganeura.ir.graph import Graph, Node
from meganeura.target import Target
from meganeura.trace import Build, note, rebuilding, stage

SPLIT_REDUCE = 8192
"""A reduction longer than this, over few results, is made in two launches."""


Split = Callable[[int, int, int, int, Target], int]
"""In how many parts to sum a product of (count, m, n, k): a divisor of k."""


@dataclass(frozen=True)
class Machine:
    """What lowering must know of the floors above: the target, and when a product is split."""

    target: Target
    split: Split


@stage("lower")
def lower(graph: Graph, target: Target, split: Split) -> Graph:
    """Convolutions, scatters, thin and long products -> matmul, reduce, map and view nodes, at the
    same origins.
    """
    machine = Machine(target, split)
    counts: dict[str, int] = {}

    def change(node: Node, inputs: tuple[Node, ...]) -> Node:
        rule = _RULES.get(node.op.name)
        if rule is None:
            return node.with_inputs(inputs)
        origin = node.origin
        with rebuilding(Build(origin.scope, origin.composite, origin.phase, origin.forward, node)):
            result = rule(node, inputs, machine)
        if result is None:
            return node.with_inputs(inputs)
        counts[node.op.name] = counts.get(node.op.name, 0) + 1
        return result.with_name(origin.name) if origin.name else result

    lowered = graph.rebuild(change)
    note("lowered", counts)
    return lowered


def _conv2d(node: Node, inputs: tuple[Node, ...], machine: Machine) -> Node:
    """Filters [G, O/G, C/G*KH*KW] by windows [G, C/G*KH*KW, N*OH*OW]."""
    x, w = inputs
    groups, (n, o, oh, ow) = node.attr("groups"), node.shape
    c = w.shape[1]
    patches = _windows(node, x, w.shape[2:], groups)
    columns = build.reshape(patches, (groups, math.prod(w.shape[1:]), n * oh * ow))
    filters = build.reshape(w, (groups, o // groups, c * w.shape[2] * w.shape[3]))
    product = _matmul_or_less(filters, columns, machine)
    apart = build.reshape(product, (groups, o // groups, n, oh, ow))
    return build.reshape(build.permute(apart, (2, 0, 1, 3, 4)), node.shape)


def _windows(node: Node, x: Node, size: tuple[int, ...], groups: int) -> Node:
    """Windows of an image as [G, C/G, KH, KW, N, OH, OW]."""
    n, channels = x.shape[:2]
    seen = build.windows(
        x, tuple(size), node.attr("stride"), node.attr("padding"), node.attr("dilation")
    )
    oh, ow = seen.shape[2:4]
    split = build.reshape(seen, (n, groups, channels // groups, oh, ow, *size))
    return build.permute(split, (1, 2, 5, 6, 0, 3, 4))


def _conv2d_input(node: Node, inputs: tuple[Node, ...], machine: Machine) -> Node:
    """Filters [G, C/G, O/G*KH*KW] by the gradient seen from the image [G, O/G*KH*KW, N*H*W]."""
    g, w = inputs
    groups, (n, channels, height, width) = node.attr("groups"), node.shape
    o, c, kh, kw = w.shape
    attrs = {name: node.attr(name) for name in ("shape", "stride", "padding", "dilation")}
    taps = build.apply("expand", build.reshape(g, (*g.shape, 1, 1)), shape=(*g.shape, kh, kw))
    seen = build.apply("unwindows", taps, **attrs)
    split = build.reshape(seen, (n, groups, o // groups, height, width, kh, kw))
    columns = build.reshape(
        build.permute(split, (1, 2, 5, 6, 0, 3, 4)),
        (groups, o // groups * kh * kw, n * height * width),
    )
    filters = build.permute(build.reshape(w, (groups, o // groups, c, kh, kw)), (0, 2, 1, 3, 4))
    rows = build.reshape(filters, (groups, c, o // groups * kh * kw))
    product = _matmul_or_less(rows, columns, machine)
    apart = build.reshape(product, (groups, c, n, height, width))
    return build.reshape(build.permute(apart, (2, 0, 1, 3, 4)), (n, channels, height, width))


def _conv2d_weight(node: Node, inputs: tuple[Node, ...], machine: Machine) -> Node:
    """Gradient [G, O/G, N*OH*OW] by windows [G, N*OH*OW, C/G*KH*KW]."""
    x, g = inputs
    groups, size = node.attr("groups"), node.attr("size")
    n, o, oh, ow = g.shape
    c = node.shape[1]
    patches = build.reshape(
        _windows(node, x, size, groups), (groups, c * size[0] * size[1], n * oh * ow)
    )
    split = build.permute(build.reshape(g, (n, groups, o // groups, oh, ow)), (1, 2, 0, 3, 4))
    rows = build.reshape(split, (groups, o // groups, n * oh * ow))
    product = _matmul_or_less(rows, build.transpose(patches), machine)
    return build.reshape(product, node.shape)


def _matmul_or_less(a: Node, b: Node, machine: Machine) -> Node:
    return _matmul_rule(build.matmul(a, b), (a, b), machine)


def _matmul_rule(node: Node, inputs: tuple[Node, ...], machine: Machine) -> Node:
    """[..., M, K] by [..., K, N] as one batch axis; thin ones as a reduction, deep ones split along
    K.
    """
    a, b = inputs
    *batch, m, k = a.shape
    n, count = b.shape[-1], math.prod(batch)
    if min(m, n, k, count) == 0:
        return build.broadcast_to(build.constant(0.0, node.dtype), node.shape)
    if k == 1 or min(m, n) == 1:
        return _thin(a, b)
    a3, b3 = build.reshape(a, (count, m, k)), build.reshape(b, (count, k, n))
    parts = machine.split(count, m, n, k, machine.target)
    if parts == 1:
        return build.reshape(build.apply("matmul", a3, b3), node.shape)
    a4 = build.permute(build.reshape(a3, (count, m, parts, k // parts)), (0, 2, 1, 3))
    b4 = build.reshape(b3, (count, parts, k // parts, n))
    partial = build.apply(
        "matmul",
        build.reshape(a4, (count * parts, m, k // parts)),
        build.reshape(b4, (count * parts, k // parts, n)),
    )
    total = build.sum_(build.reshape(partial, (count, parts, m, n)), 1)
    return build.reshape(total, node.shape)


def _thin(a: Node, b: Node) -> Node:
    """A product with one row, one column or one term, as a sum of products."""
    *batch, m, k = a.shape
    n = b.shape[-1]
    left = build.broadcast_to(build.reshape(a, (*batch, m, k, 1)), (*batch, m, k, n))
    right = build.broadcast_to(build.reshape(b, (*batch, 1, k, n)), (*batch, m, k, n))
    return build.sum_(build.mul(left, right), len(batch) + 1)


def _scatter_add(node: Node, inputs: tuple[Node, ...], machine: Machine) -> Node:
    """Each place sums the updates that name it: no atomics, so the same bits every time."""
    updates, index = inputs
    axis, size, rank = node.attr("axis"), node.attr("size"), len(index.shape)
    before, after = updates.shape[:axis], updates.shape[axis + rank :]
    flat = build.reshape(updates, (*before, 1, index.size, *after))
    wide = (*before, size, index.size, *after)
    names = build.reshape(index, (*(1,) * len(before), 1, index.size, *(1,) * len(after)))
    place = build.cast(build.iota(wide, len(before)), index.dtype)
    chosen = build.where(
        build.eq(build.broadcast_to(names, wide), place), build.broadcast_to(flat, wide), 0
    )
    return build.sum_(chosen, len(before) + 1)


def _sum(node: Node, inputs: tuple[Node, ...], machine: Machine) -> Node | None:
    """A long sum over few results in two steps."""
    (x,) = inputs
    axes = node.attr("axes")
    length = math.prod(x.shape[a] for a in axes)
    rows = node.size
    kept = [i for i in range(len(x.shape)) if i not in axes]
    if length == 0:
        return build.broadcast_to(build.constant(0, node.dtype), node.shape)
    side_by_side = 1 if len(x.shape) - 1 in axes else 32
    parts = _parts(length, math.ceil(rows / side_by_side), machine.target)
    if parts == 1:
        return None
    moved = build.reshape(build.permute(x, (*kept, *axes)), (rows, parts, length // parts))
    partial = build.sum_(build.permute(moved, (1, 0, 2)), 2)
    return build.reshape(build.sum_(partial, 0), node.shape)


def _argmax(node: Node, inputs: tuple[Node, ...], machine: Machine) -> Node | None:
    """Over nothing the index is 0."""
    if inputs[0].size or not node.size:
        return None
    return build.broadcast_to(build.constant(0, node.dtype), node.shape)


def _parts(length: int, groups: int, target: Target) -> int:
    """How many parts of a sum give every unit a few workgroups: a power of two that divides it."""
    if length < SPLIT_REDUCE or groups >= target.units:
        return 1
    parts = 1
    while (
        parts * 2 * groups <= target.units * 8
        and length % (parts * 2) == 0
        and length // (parts * 2) >= 256
    ):
        parts *= 2
    return parts


_RULES = {
    "conv2d": _conv2d,
    "conv2d_input": _conv2d_input,
    "conv2d_weight": _conv2d_weight,
    "matmul": _matmul_rule,
    "scatter_add": _scatter_add,
    "sum": _sum,
    "argmax": _argmax,
}
