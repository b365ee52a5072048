"""Where values come from: feeds, parameters, constants."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from meganeura import trace
from meganeura.errors import DTypeError, OptionError, ShapeError
from meganeura.ir import build
from meganeura.ir.dtypes import DType, as_dtype, f32
from meganeura.ir.graph import Shape
from meganeura.ir.initial import as_initial
from meganeura.ir.source import here
from meganeura.tensor.tensor import Tensor, TensorLike, node_of


def sizes_of(shape: Any) -> Shape:
    """A shape from one number or several; ShapeError when they are no sizes."""
    one = isinstance(shape, (int, np.integer))
    sizes = (shape,) if one or not isinstance(shape, Iterable) else tuple(shape)
    if not all(isinstance(n, (int, np.integer)) and n >= 0 for n in sizes):
        raise ShapeError(
            "a shape is made of whole numbers",
            expected="a tuple such as (128, 64)",
            got=str(shape),
            hint="the batch has a fixed size too: compile once for each size",
            origin=here(),
        )
    return tuple(map(int, sizes))


def checked_name(name: Any) -> str:
    """The name, when it is a word of the user's; OptionError otherwise."""
    if not isinstance(name, str) or not name or name.startswith("meganeura."):
        raise OptionError(
            "a tensor's name is a word",
            expected='text such as "x", that does not start with "meganeura."',
            got=repr(name),
            hint='the name comes first: mg.input("x", (128, 64))',
            origin=here(),
        )
    return name


def input(name: str, shape: Sequence[int] = (), dtype: DType | str = f32) -> Tensor:
    """A feed: its value comes with each call of the program, by this name.

    >>> import meganeura as mg
    >>> mg.input("y", (128,), mg.i32).dtype
    i32
    """
    return Tensor(build.input_(checked_name(name), sizes_of(shape), as_dtype(dtype)))


def parameter(
    name: str,
    shape: Sequence[int] | None = None,
    init: Any = 0.0,
    *,
    dtype: DType | str = f32,
    trainable: bool = True,
) -> Tensor:
    """A tensor that stays on the device between calls, and that training changes if `trainable`.

    `init` is a number, an array, or one of `mg.init`: a recipe whose numbers depend on the seed and
    the name alone. Inside `mg.scope("block")` the name becomes "block.name". An array gives the
    shape, where none is given.
    """
    if shape is None:
        shape = getattr(init, "shape", None)
        if shape is None:
            raise DTypeError(
                f"the parameter {name!r} has no shape",
                expected="a shape, or an array as init",
                got="neither",
                hint=f"write mg.parameter({name!r}, (64, 10))",
                origin=here(),
            )
    sizes = sizes_of(shape)
    full = ".".join((*trace.current_build().scope, checked_name(name)))
    recipe = as_initial(init, sizes)
    return Tensor(build.parameter(full, sizes, recipe, as_dtype(dtype), trainable))


def constant(value: Any, dtype: DType | str | None = None) -> Tensor:
    """A tensor whose numbers are known now; float64 becomes f32, int64 becomes i32."""
    return Tensor(build.constant(value, None if dtype is None else as_dtype(dtype)))


def zeros(shape: Sequence[int], dtype: DType | str = f32) -> Tensor:
    """Zeros."""
    return full(shape, 0, dtype)


def ones(shape: Sequence[int], dtype: DType | str = f32) -> Tensor:
    """Ones."""
    return full(shape, 1, dtype)


def full(shape: Sequence[int], value: float | int | bool, dtype: DType | str = f32) -> Tensor:
    """One number everywhere."""
    return Tensor(build.broadcast_to(build.constant(value, as_dtype(dtype)), sizes_of(shape)))


def arange(size: int) -> Tensor:
    """0 to size - 1, as i32."""
    return Tensor(build.iota(sizes_of(size)[:1], 0))


def as_tensor(value: TensorLike) -> Tensor:
    """A tensor as it is; a number or an array as a constant."""
    return value if isinstance(value, Tensor) else Tensor(build.as_node(node_of(value)))


@contextmanager
def scope(name: str) -> Iterator[None]:
    """What is made inside belongs to the named part of the model; parameters get the name as a
    prefix.
    """
    with trace.scope(name):
        yield
