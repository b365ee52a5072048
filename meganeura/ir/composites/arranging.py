"""Elements turned, rotated and masked by their place."""

from __future__ import annotations

from collections.abc import Sequence

from meganeura.errors import ShapeError
from meganeura.ir import build, shapes
from meganeura.ir.build import Axis, Operand
from meganeura.ir.composites.named import named
from meganeura.ir.dtypes import bool_
from meganeura.ir.graph import Node
from meganeura.ir.source import here


@named("flip")
@build.at_users_line
def flip(x: Operand, axis: Axis = None) -> Node:
    """The elements in the opposite order along the axes; along all when none is named."""
    node = build.as_node(x)
    turned = shapes.axes_of(axis, len(node.shape))
    start = tuple(n - 1 if i in turned else 0 for i, n in enumerate(node.shape))
    stop = tuple(-1 if i in turned else n for i, n in enumerate(node.shape))
    step = tuple(-1 if i in turned else 1 for i in range(len(node.shape)))
    return build.slice_(node, start, stop, step)


@named("roll")
@build.at_users_line
def roll(x: Operand, shift: int | Sequence[int], axis: Axis = None) -> Node:
    """Each element moved by `shift` places; what leaves at one end comes back at the other.

    Without an axis the elements are one line, as in NumPy; several axes take one shift each.
    """
    node = build.as_node(x)
    if axis is None:
        line = build.reshape(node, (node.size,))
        return build.reshape(roll(line, shift, 0), node.shape)
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    shifts = (shift,) * len(axes) if isinstance(shift, int) else tuple(shift)
    if len(shifts) != len(axes):
        raise ShapeError(
            "roll takes one shift for each axis",
            expected=f"{len(axes)} shifts for the axes {axes}",
            got=str(shifts),
            origin=here(),
        )
    for one, by in zip(axes, shifts, strict=True):
        node = _rolled(node, by, shapes.axes_of(one, len(node.shape))[0])
    return node


def _rolled(x: Node, shift: int, axis: int) -> Node:
    n = x.shape[axis]
    cut = -shift % n if n else 0
    if not cut:
        return x
    ones, rank = (1,) * len(x.shape), range(len(x.shape))
    first = build.slice_(
        x, (0,) * len(rank), tuple(cut if i == axis else x.shape[i] for i in rank), ones
    )
    last = build.slice_(x, tuple(cut if i == axis else 0 for i in rank), x.shape, ones)
    return build.concat([last, first], axis)


@named("tril")
def tril(x: Operand, k: int = 0) -> Node:
    """[..., M, N] with zeros above the diagonal `k`; 1 is the one above the main diagonal."""
    node = _matrices("tril", x)
    return _kept(node, build.le(_offset(node), k))


@named("triu")
def triu(x: Operand, k: int = 0) -> Node:
    """[..., M, N] with zeros below the diagonal `k`; 1 is the one above the main diagonal."""
    node = _matrices("triu", x)
    return _kept(node, build.ge(_offset(node), k))


def _matrices(name: str, x: Operand) -> Node:
    node = build.as_node(x)
    if len(node.shape) < 2:
        raise ShapeError(
            f"{name} of {shapes.show(node.shape)}",
            expected="[..., M, N]",
            got=shapes.show(node.shape),
            origin=here(),
        )
    return node


def _offset(x: Node) -> Node:
    """How far each place of a matrix lies above the main diagonal."""
    matrix = x.shape[-2:]
    return build.sub(build.iota(matrix, 1), build.iota(matrix, 0))


def _kept(x: Node, where: Node) -> Node:
    return build.where(where, x, build.constant(False, bool_) if x.dtype is bool_ else 0)
