"""Joining, splitting, encoding, and random tensors."""

from __future__ import annotations

from collections.abc import Sequence

from meganeura.errors import DTypeError, OptionError, ShapeError
from meganeura.ir import build
from meganeura.ir.build import Operand
from meganeura.ir.composites.named import named
from meganeura.ir.dtypes import DType, f32, i32, promote, u32
from meganeura.ir.graph import Node, Shape
from meganeura.ir.shapes import show
from meganeura.ir.source import here


@named("concat")
def concat(parts: Sequence[Operand], axis: int = 0) -> Node:
    """Tensors one behind another along an axis, in the type in which all meet."""
    nodes = [build.as_node(p) for p in parts]
    for node in nodes[1:]:
        common = promote(nodes[0].dtype, node.dtype)
        nodes = [build.cast(n, common) for n in nodes]
    return build.concat(nodes, axis)


@named("stack")
def stack(parts: Sequence[Operand], axis: int = 0) -> Node:
    """Tensors of one shape side by side along a new axis."""
    nodes = [build.as_node(p) for p in parts]
    shape = nodes[0].shape if nodes else ()
    place = axis if axis >= 0 else axis + len(shape) + 1
    if not 0 <= place <= len(shape):
        raise ShapeError(
            f"axis {axis} is out of range",
            expected=f"an axis from {-len(shape) - 1} to {len(shape)}",
            got=str(axis),
            origin=here(),
        )
    wider = [build.reshape(n, (*n.shape[:place], 1, *n.shape[place:])) for n in nodes]
    return concat(wider, place)


@named("split")
def split(x: Operand, sizes: int | Sequence[int], axis: int = 0) -> tuple[Node, ...]:
    """Equal parts, or parts of the given sizes, along an axis."""
    node = build.as_node(x)
    place = axis % len(node.shape) if node.shape else 0
    total = node.shape[place] if node.shape else 0
    parts = [total // max(sizes, 1)] * sizes if isinstance(sizes, int) else list(sizes)
    if sum(parts) != total or not node.shape or min(parts, default=-1) < 0:
        raise ShapeError(
            f"cannot split axis {axis} of {show(node.shape)} into {sizes}",
            expected=f"sizes that add up to {total}",
            got=f"{sum(parts)}",
            origin=here(),
        )
    result, offset = [], 0
    for n in parts:
        start = tuple(offset if i == place else 0 for i in range(len(node.shape)))
        stop = tuple(offset + n if i == place else m for i, m in enumerate(node.shape))
        result.append(build.slice_(node, start, stop, (1,) * len(node.shape)))
        offset += n
    return tuple(result)


@named("one_hot")
def one_hot(labels: Operand, classes: int, dtype: DType = f32) -> Node:
    """Integers [...] as [..., classes]: 1 at the label, 0 elsewhere."""
    node = build.as_node(labels)
    if node.dtype not in (i32, u32):
        raise DTypeError(
            "one_hot takes integer labels",
            expected="i32 or u32",
            got=node.dtype.name,
            hint="cast them, as in labels.cast(mg.i32)",
            origin=here(),
        )
    if classes < 0:
        raise ShapeError(
            "one_hot of less than no classes", expected=">= 0", got=str(classes), origin=here()
        )
    column = build.iota((*node.shape, classes), -1)
    return build.cast(
        build.eq(column, build.reshape(build.cast(node, i32), (*node.shape, 1))), dtype
    )


def _bits(shape: Shape, seed: Operand, stream: int) -> Node:
    if not 0 <= stream < build.AUTOMATIC:
        raise OptionError(
            "a random stream is a small number",
            expected=f"0 <= stream < {build.AUTOMATIC}",
            got=f"stream={stream}",
            origin=here(),
        )
    key = seed if isinstance(seed, Node) else build.constant(seed, u32)
    return build.random_bits(key, shape, stream)


@named("uniform")
def uniform(
    shape: Shape, low: float = 0.0, high: float = 1.0, *, seed: Operand = 0, stream: int = 0
) -> Node:
    """Numbers in [low, high), the same for the same seed, stream and index on every device."""
    share = build.mul(build.cast(_bits(shape, seed, stream), f32), 2.0**-32)
    share = build.minimum(share, 1.0 - 2.0**-24)
    return build.add(low, build.mul(high - low, share))


@named("normal")
def normal(
    shape: Shape, mean: float = 0.0, std: float = 1.0, *, seed: Operand = 0, stream: int = 0
) -> Node:
    """Normally distributed numbers, by Box and Muller's transform."""
    share = build.mul(build.cast(_bits((2, *shape), seed, stream), f32), 2.0**-32)
    first, second = split(share, 2)
    radius = build.sqrt(build.mul(-2.0, build.log(build.maximum(first, 2.0**-32))))
    angle = build.cos(build.mul(6.283185307179586, second))
    return build.add(mean, build.mul(std, build.reshape(build.mul(radius, angle), tuple(shape))))
