"""Elementwise functions, reductions, products and shapes, tensor to tensor. Broadcasting is
NumPy's.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from meganeura.errors import ShapeError
from meganeura.ir import build
from meganeura.ir.build import Axis
from meganeura.ir.composites import concat as _concat
from meganeura.ir.composites import one_hot as _one_hot
from meganeura.ir.composites import split as _split
from meganeura.ir.composites import stack as _stack
from meganeura.ir.composites import var as _var
from meganeura.ir.dtypes import DType, as_dtype, f32
from meganeura.ir.source import here
from meganeura.tensor.leaves import as_tensor
from meganeura.tensor.tensor import Tensor, TensorLike, node_of


def neg(x: TensorLike) -> Tensor:
    """Minus x."""
    return Tensor(build.neg(node_of(x)))


def abs(x: TensorLike) -> Tensor:
    """The absolute value; its gradient at 0 is 0."""
    return Tensor(build.abs_(node_of(x)))


def exp(x: TensorLike) -> Tensor:
    """e to the x."""
    return Tensor(build.exp(node_of(x)))


def log(x: TensorLike) -> Tensor:
    """The natural logarithm."""
    return Tensor(build.log(node_of(x)))


def sqrt(x: TensorLike) -> Tensor:
    """The square root."""
    return Tensor(build.sqrt(node_of(x)))


def rsqrt(x: TensorLike) -> Tensor:
    """One over the square root."""
    return Tensor(build.rsqrt(node_of(x)))


def recip(x: TensorLike) -> Tensor:
    """One over x."""
    return Tensor(build.recip(node_of(x)))


def sin(x: TensorLike) -> Tensor:
    """The sine, in radians."""
    return Tensor(build.sin(node_of(x)))


def cos(x: TensorLike) -> Tensor:
    """The cosine, in radians."""
    return Tensor(build.cos(node_of(x)))


def tanh(x: TensorLike) -> Tensor:
    """The hyperbolic tangent."""
    return Tensor(build.tanh(node_of(x)))


def erf(x: TensorLike) -> Tensor:
    """The error function."""
    return Tensor(build.erf(node_of(x)))


def floor(x: TensorLike) -> Tensor:
    """The greatest whole number not above x; it has no gradient."""
    return Tensor(build.floor(node_of(x)))


def sign(x: TensorLike) -> Tensor:
    """-1, 0 or 1; it has no gradient."""
    return Tensor(build.sign(node_of(x)))


def maximum(a: TensorLike, b: TensorLike) -> Tensor:
    """The greater of a and b; between equals the gradient goes to b."""
    return Tensor(build.maximum(node_of(a), node_of(b)))


def minimum(a: TensorLike, b: TensorLike) -> Tensor:
    """The lesser of a and b; between equals the gradient goes to b."""
    return Tensor(build.minimum(node_of(a), node_of(b)))


def pow(a: TensorLike, b: TensorLike) -> Tensor:
    """a to the power of b."""
    return Tensor(build.pow_(node_of(a), node_of(b)))


def where(condition: TensorLike, a: TensorLike, b: TensorLike) -> Tensor:
    """a where the condition holds, else b, element by element."""
    return Tensor(build.where(node_of(condition), node_of(a), node_of(b)))


def clip(x: TensorLike, low: float, high: float) -> Tensor:
    """x held between two numbers; outside them the gradient is 0."""
    return minimum(maximum(x, low), high)


def sum(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The sum over the axes; all when none is named."""
    return Tensor(build.sum_(node_of(x), axis, keepdims))


def mean(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The mean over the axes."""
    return Tensor(build.mean(node_of(x), axis, keepdims))


def max(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The greatest over the axes; the gradient goes to the first of equals."""
    return Tensor(build.max_(node_of(x), axis, keepdims))


def min(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The least over the axes; the gradient goes to the first of equals."""
    return Tensor(build.min_(node_of(x), axis, keepdims))


def argmax(x: TensorLike, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The index of the first greatest element, i32, counted over the axes in order."""
    return Tensor(build.argmax(node_of(x), axis, keepdims))


def var(x: TensorLike, axis: Axis = None, keepdims: bool = False, correction: int = 0) -> Tensor:
    """The variance over the axes: squared distances from the mean, over n - correction."""
    return Tensor(_var(node_of(x), axis, keepdims, correction))


def matmul(a: TensorLike, b: TensorLike) -> Tensor:
    """The matrix product, as `a @ b`."""
    return Tensor(build.matmul(node_of(a), node_of(b)))


def conv2d(
    x: TensorLike,
    w: TensorLike,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] | Sequence[Sequence[int]] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Tensor:
    """Images [N, C, H, W] by filters [O, C/groups, KH, KW] to [N, O, OH, OW]: cross-correlation.

    `padding` is one number, one for each axis, or ((top, bottom), (left, right)).
    """
    return Tensor(build.conv2d(node_of(x), node_of(w), stride, padding, dilation, groups))


def concat(parts: Sequence[TensorLike], axis: int = 0) -> Tensor:
    """Tensors one behind another along an axis."""
    return Tensor(_concat([node_of(p) for p in parts], axis))


def stack(parts: Sequence[TensorLike], axis: int = 0) -> Tensor:
    """Tensors of one shape side by side along a new axis."""
    return Tensor(_stack([node_of(p) for p in parts], axis))


def split(x: TensorLike, sizes: int | Sequence[int], axis: int = 0) -> tuple[Tensor, ...]:
    """Equal parts, or parts of the given sizes, along an axis."""
    return tuple(map(Tensor, _split(node_of(x), sizes, axis)))


def pad(x: TensorLike, widths: Sequence[tuple[int, int]], value: float = 0.0) -> Tensor:
    """A border of one value: (before, after) for each axis."""
    pairs = np.asarray(widths if widths != [] else np.zeros((0, 2), np.int32))
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise ShapeError(
            "pad takes two whole numbers for each axis",
            expected="such as [(1, 1), (0, 0)]",
            got=repr(widths),
            origin=here(),
        )
    low, high = (tuple(int(n) for n in side) for side in pairs.T)
    return Tensor(build.pad(as_tensor(x).node, low, high, value))


def gather(x: TensorLike, index: TensorLike, axis: int = 0) -> Tensor:
    """Elements along an axis by integer index; an index out of range is clamped to the nearest."""
    return Tensor(build.gather(as_tensor(x).node, node_of(index), axis))


def scatter_add(updates: TensorLike, index: TensorLike, size: int, axis: int = 0) -> Tensor:
    """Zeros of `size` along an axis, with each update added at its index; out of range adds
    nothing.
    """
    return Tensor(build.scatter_add(as_tensor(updates).node, node_of(index), size, axis))


def one_hot(labels: TensorLike, classes: int, dtype: DType | str = f32) -> Tensor:
    """Integers [...] as [..., classes]: 1 at the label, 0 elsewhere."""
    return Tensor(_one_hot(node_of(labels), classes, as_dtype(dtype)))


def detach(x: TensorLike) -> Tensor:
    """x as a value: no gradient flows through it."""
    return Tensor(build.detach(as_tensor(x).node))
