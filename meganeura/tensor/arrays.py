"""Functions made of several operations, tensor to tensor: sums by letters, scans, ranks, order."""

from __future__ import annotations

from collections.abc import Sequence

from meganeura.ir import composites
from meganeura.ir.build import Axis
from meganeura.tensor.tensor import Tensor, TensorLike, node_of


def einsum(equation: str, *operands: TensorLike) -> Tensor:
    """The sum of products that an equation over the axes' letters names.

    A letter names an axis of one size wherever it stands; twice in one operand it is the diagonal.
    Letters that the result lacks are summed; without "->" the result has, in the order of the
    alphabet, the letters that stand once. Operands are joined from left to right, by matmul where
    an axis is summed. ShapeError when letters and axes do not fit.

    >>> import meganeura as mg
    >>> mg.einsum("bij,bjk->bik", mg.zeros((2, 3, 4)), mg.zeros((2, 4, 5))).shape
    (2, 3, 5)
    """
    return Tensor(composites.einsum(equation, *map(node_of, operands)))


def cumsum(x: TensorLike, axis: int, exclusive: bool = False, reverse: bool = False) -> Tensor:
    """The sum of all elements up to each place along an axis; bools count as i32.

    `exclusive` leaves the place's own element out; `reverse` sums from the end. Floats go through a
    triangular matmul, a long axis in blocks of 64: the work for an element does not grow with the
    length. An infinity or a NaN spreads over its whole block.

    >>> import meganeura as mg
    >>> mg.cumsum(mg.ones((2, 3)), axis=1).shape
    (2, 3)
    """
    return Tensor(composites.cumsum(node_of(x), axis, exclusive, reverse))


def topk(x: TensorLike, k: int, axis: int = -1) -> tuple[Tensor, Tensor]:
    """The k greatest elements along an axis, greatest first, and their indices, i32.

    The first of equals comes first; the gradient goes to the elements chosen. Nothing is sorted: up
    to 64 elements all pairs are compared at once, a longer axis takes k rounds. There is no order
    with NaN. ShapeError unless 1 <= k <= the axis's size.

    >>> import meganeura as mg
    >>> values, indices = mg.topk(mg.zeros((4, 10)), 3)
    >>> values.shape, indices.dtype
    ((4, 3), i32)
    """
    values, indices = composites.topk(node_of(x), k, axis)
    return Tensor(values), Tensor(indices)


def flip(x: TensorLike, axis: Axis = None) -> Tensor:
    """The elements in the opposite order along the axes; along all when none is named."""
    return Tensor(composites.flip(node_of(x), axis))


def roll(x: TensorLike, shift: int | Sequence[int], axis: Axis = None) -> Tensor:
    """Each element moved by `shift` places; what leaves at one end comes back at the other.

    Without an axis the elements are one line, as in NumPy; several axes take one shift each.
    """
    return Tensor(composites.roll(node_of(x), shift, axis))


def tril(x: TensorLike, k: int = 0) -> Tensor:
    """[..., M, N] with zeros above the diagonal `k`; 1 is the one above the main diagonal."""
    return Tensor(composites.tril(node_of(x), k))


def triu(x: TensorLike, k: int = 0) -> Tensor:
    """[..., M, N] with zeros below the diagonal `k`; 1 is the one above the main diagonal."""
    return Tensor(composites.triu(node_of(x), k))


def rotary_embedding(
    x: TensorLike,
    positions: TensorLike | None = None,
    base: float = 10000.0,
    interleaved: bool = False,
) -> Tensor:
    """[..., T, D] with the pair i of features turned by position * base**(-2i / D).

    A pair is (i, i + D/2), or with `interleaved` (2i, 2i + 1). `positions` are 0 to T - 1, or
    numbers that broadcast to [..., T] (whole ones are exact to 65536). (Su et al., 2021.)

    >>> import meganeura as mg
    >>> mg.rotary_embedding(mg.zeros((2, 8, 128, 64))).shape
    (2, 8, 128, 64)
    """
    place = None if positions is None else node_of(positions)
    return Tensor(composites.rotary_embedding(node_of(x), place, base, interleaved))
