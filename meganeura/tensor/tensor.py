"""The tensor that users hold: a frozen handle of a node, with NumPy's operators and indexing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from meganeura.errors import DTypeError, NameClashError, ShapeError
from meganeura.ir import build
from meganeura.ir.build import Axis, Operand
from meganeura.ir.dtypes import DType, as_dtype
from meganeura.ir.graph import Array, Node, Shape
from meganeura.ir.source import here
from meganeura.tensor.indexing import indexed


@dataclass(frozen=True, eq=False, repr=False, slots=True, weakref_slot=True)
class Tensor:
    """A value of the program that is being written: shape and type now, numbers when it runs.

    Operators, broadcasting and indexing are NumPy's. `==` and its kin compare elements.

    >>> import meganeura as mg
    >>> x = mg.input("x", (2, 3))
    >>> (x * 2 + 1).shape
    (2, 3)
    """

    # More than 15 methods, because every operator of Python is one.

    node: Node

    __array_ufunc__ = None  # so that array + tensor asks the tensor
    __array_priority__ = 1000

    @property
    def shape(self) -> Shape:
        """The sizes of the axes."""
        return self.node.shape

    @property
    def dtype(self) -> DType:
        """The data type."""
        return self.node.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.node.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.node.size

    @property
    def name(self) -> str | None:
        """The name that the user gave, if any."""
        return self.node.name

    def __repr__(self) -> str:
        label = f" {self.name!r}" if self.name else ""
        where = self.node.origin.where()
        place = f", {where}" if where else ""
        return f"<Tensor{label} {list(self.shape)} {self.dtype}: {self.node.op.name}{place}>"

    def named(self, name: str) -> Tensor:
        """The same value under a name, by which it can be read and shown."""
        if self.node.op.kind == "leaf" and self.node.op.name != "constant":
            if self.node.name == name:
                return self
            raise NameClashError(
                f"the {self.node.op.name} {self.node.name!r} has a name already",
                expected=self.node.name,
                got=name,
                hint=f"name the output instead, as in mg.compile({{{name!r}: tensor}})",
                origin=here(),
            )
        return Tensor(self.node.with_name(name))

    def numpy(self) -> Array:
        """Compiles and runs what leads to this tensor, on the default device.

        FeedError when it depends on an input, whose value only a call can give.
        """
        from meganeura.tensor.running import run

        return run(self.node)

    def item(self) -> float | int | bool:
        """The only element, as a Python number; runs as `numpy` does."""
        result: float | int | bool = self.numpy().item()
        return result

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """`np.asarray(tensor)` is `tensor.numpy()`."""
        return np.asarray(self.numpy(), dtype)

    def cast(self, dtype: DType | str) -> Tensor:
        """The values in another type: floats to integers by dropping the fraction."""
        return Tensor(build.cast(self.node, as_dtype(dtype)))

    def reshape(self, *shape: int | Sequence[int]) -> Tensor:
        """The same elements in another shape; one size may be -1."""
        return Tensor(build.reshape(self.node, _numbers(shape)))

    def permute(self, *axes: int | Sequence[int]) -> Tensor:
        """The axes in another order; without arguments reversed."""
        order = _numbers(axes) or tuple(reversed(range(self.ndim)))
        return Tensor(build.permute(self.node, order))

    transpose = permute

    @property
    def T(self) -> Tensor:
        """The last two axes exchanged."""
        return Tensor(build.transpose(self.node))

    def expand(self, *shape: int | Sequence[int]) -> Tensor:
        """Repeated to a shape, by NumPy's rules of broadcasting."""
        return Tensor(build.broadcast_to(self.node, _numbers(shape)))

    def sum(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        """The sum over the axes."""
        return Tensor(build.sum_(self.node, axis, keepdims))

    def mean(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        """The mean over the axes."""
        return Tensor(build.mean(self.node, axis, keepdims))

    def max(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        """The greatest over the axes."""
        return Tensor(build.max_(self.node, axis, keepdims))

    def min(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        """The least over the axes."""
        return Tensor(build.min_(self.node, axis, keepdims))

    def argmax(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        """The index of the first greatest element, i32."""
        return Tensor(build.argmax(self.node, axis, keepdims))

    def __getitem__(self, key: Any) -> Tensor:
        """NumPy's basic indexing, or rows by a tensor of integers."""
        return Tensor(indexed(self.node, key.node if isinstance(key, Tensor) else key))

    def __len__(self) -> int:
        if not self.shape:
            raise ShapeError("a scalar has no length", expected="at least one axis", got="[]")
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        return iter([self[i] for i in range(len(self))])

    def __bool__(self) -> bool:
        raise DTypeError(
            "a tensor is neither true nor false: its numbers are not known yet",
            expected="mg.where(condition, a, b) for a choice by element",
            got=f"a Python condition on {list(self.shape)} {self.dtype}",
            hint="or run it first: bool(tensor.numpy().all())",
            origin=here(),
        )

    def __hash__(self) -> int:
        return hash(self.node)

    def __neg__(self) -> Tensor:
        return Tensor(build.neg(self.node))

    def __abs__(self) -> Tensor:
        return Tensor(build.abs_(self.node))

    def __invert__(self) -> Tensor:
        return Tensor(build.not_(self.node))

    def __add__(self, other: TensorLike) -> Tensor:
        return Tensor(build.add(self.node, node_of(other)))

    def __radd__(self, other: TensorLike) -> Tensor:
        return Tensor(build.add(node_of(other), self.node))

    def __sub__(self, other: TensorLike) -> Tensor:
        return Tensor(build.sub(self.node, node_of(other)))

    def __rsub__(self, other: TensorLike) -> Tensor:
        return Tensor(build.sub(node_of(other), self.node))

    def __mul__(self, other: TensorLike) -> Tensor:
        return Tensor(build.mul(self.node, node_of(other)))

    def __rmul__(self, other: TensorLike) -> Tensor:
        return Tensor(build.mul(node_of(other), self.node))

    def __truediv__(self, other: TensorLike) -> Tensor:
        return Tensor(build.div(self.node, node_of(other)))

    def __rtruediv__(self, other: TensorLike) -> Tensor:
        return Tensor(build.div(node_of(other), self.node))

    def __mod__(self, other: TensorLike) -> Tensor:
        return Tensor(build.mod(self.node, node_of(other)))

    def __rmod__(self, other: TensorLike) -> Tensor:
        return Tensor(build.mod(node_of(other), self.node))

    def __pow__(self, other: TensorLike) -> Tensor:
        return Tensor(build.pow_(self.node, node_of(other)))

    def __rpow__(self, other: TensorLike) -> Tensor:
        return Tensor(build.pow_(node_of(other), self.node))

    def __matmul__(self, other: TensorLike) -> Tensor:
        return Tensor(build.matmul(self.node, node_of(other)))

    def __rmatmul__(self, other: TensorLike) -> Tensor:
        return Tensor(build.matmul(node_of(other), self.node))

    def __lt__(self, other: TensorLike) -> Tensor:
        return Tensor(build.lt(self.node, node_of(other)))

    def __le__(self, other: TensorLike) -> Tensor:
        return Tensor(build.le(self.node, node_of(other)))

    def __gt__(self, other: TensorLike) -> Tensor:
        return Tensor(build.gt(self.node, node_of(other)))

    def __ge__(self, other: TensorLike) -> Tensor:
        return Tensor(build.ge(self.node, node_of(other)))

    def __eq__(self, other: TensorLike) -> Tensor:  # type: ignore[override] # elementwise, as NumPy
        return Tensor(build.eq(self.node, node_of(other)))

    def __ne__(self, other: TensorLike) -> Tensor:  # type: ignore[override] # elementwise, as NumPy
        return Tensor(build.ne(self.node, node_of(other)))

    def __and__(self, other: TensorLike) -> Tensor:
        return Tensor(build.and_(self.node, node_of(other)))

    def __or__(self, other: TensorLike) -> Tensor:
        return Tensor(build.or_(self.node, node_of(other)))


TensorLike = Tensor | Operand


def node_of(value: TensorLike) -> Operand:
    """What the builders take: the node of a tensor, or the value as it is."""
    return value.node if isinstance(value, Tensor) else value


def _numbers(values: Sequence[int | Sequence[int]]) -> tuple[int, ...]:
    """Sizes given one by one, or as one sequence."""
    if len(values) == 1 and not isinstance(values[0], (int, np.integer)):
        return tuple(int(v) for v in values[0])
    return tuple(int(v) for v in values)  # type: ignore[arg-type] # each is a number here
