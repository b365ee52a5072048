"""The beginning: an operation at the user's line, leaves, and operands that become nodes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np

from meganeura.errors import DTypeError, MeganeuraError
from meganeura.ir.constant import Value
from meganeura.ir.dtypes import DType, bool_, f32, i32, of_array, u32
from meganeura.ir.graph import Node, Op, Shape
from meganeura.ir.ops import OPS
from meganeura.ir.source import Origin, here

P = ParamSpec("P")
R = TypeVar("R")
Operand = Node | float | int | bool | np.ndarray[Any, Any] | Sequence[Any]
Axis = int | tuple[int, ...] | None

AUTOMATIC = 1 << 16
"""Random streams from here on are numbered by `ir.mode.bind`; below they are the user's own."""


def apply(op: str | Op, *inputs: Node, **attrs: Any) -> Node:
    """The node of an operation; a shape or type that does not fit is reported at the user's
    line.
    """
    row = OPS[op] if isinstance(op, str) else op
    origin = here()
    try:
        return Node.make(row, inputs, attrs, origin)
    except MeganeuraError as error:
        raise located(error, origin) from None


def located(error: MeganeuraError, origin: Origin) -> MeganeuraError:
    """The same error, saying where, when it did not yet."""
    if error.origin is not None:
        return error
    return type(error)(
        error.what, expected=error.expected, got=error.got, hint=error.hint, origin=origin
    )


def at_users_line(function: Callable[P, R]) -> Callable[P, R]:
    """An error that a builder raises itself also says where the user called it."""

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except MeganeuraError as error:
            raise located(error, here()) from None

    return run


def input_(name: str, shape: Shape, dtype: DType = f32) -> Node:
    """A feed: a tensor whose value comes with each call."""
    return apply("input", name=name, shape=tuple(shape), dtype=dtype)


def parameter(
    name: str, shape: Shape, init: Any, dtype: DType = f32, trainable: bool = True
) -> Node:
    """A tensor that lives on the device and that training changes; `init` makes its first value."""
    return apply(
        "parameter", name=name, shape=tuple(shape), dtype=dtype, init=init, trainable=trainable
    )


def state(name: str, shape: Shape, dtype: DType = f32) -> Node:
    """A tensor that lives on the device beside the parameters, such as a moment; it starts
    at zero.
    """
    return apply("state", name=name, shape=tuple(shape), dtype=dtype)


@at_users_line
def constant(value: Any, dtype: DType | None = None) -> Node:
    """A tensor whose value is known now."""
    array = np.asarray(value)
    dtype = dtype or of_array(array)
    if array.size and array.dtype.kind in "iu" and dtype in (i32, u32):
        _check_fits(array, dtype)
    return apply("constant", value=Value(array.astype(dtype.numpy)), dtype=dtype)


def _check_fits(array: np.ndarray[Any, Any], dtype: DType) -> None:
    limits = np.iinfo(dtype.numpy)  # type: ignore[type-var] # only integers come here
    low, high = int(array.min()), int(array.max())
    if low < limits.min or high > limits.max:
        raise DTypeError(
            f"a number does not fit into {dtype}",
            expected=f"integers from {limits.min} to {limits.max}",
            got=f"integers from {low} to {high}" if array.size > 1 else str(low),
            hint="use floats, as in mg.constant(array, mg.f32)",
        )


def as_node(value: Operand, like: DType | None = None) -> Node:
    """A node as it is; a number in the type of its companion; an array as a constant."""
    if isinstance(value, Node):
        return value
    if isinstance(value, (bool, np.bool_)):
        return constant(value, bool_ if like is None or like is bool_ else like)
    if isinstance(value, (int, np.integer)):
        return constant(value, i32 if like is None or like is bool_ else like)
    if isinstance(value, (float, np.floating)):
        return constant(value, like if like is not None and like.is_float else f32)
    return constant(value)


def detach(x: Node) -> Node:
    """x as a value: no gradient flows through it."""
    return apply("detach", x)


def effect(value: Node, leaf: Node, new: Node) -> Node:
    """`value`, with the note that a training step also sets the parameter or state `leaf`
    to `new`.
    """
    return apply("effect", value, leaf, new)


def dedicated(name: str, shape: Shape, dtype: DType) -> Node:
    """An input that the system itself feeds: one for the process, whichever line asks for it."""
    return Node.make(OPS["input"], (), {"name": name, "shape": shape, "dtype": dtype}, Origin())


def training() -> Node:
    """The bool that is true in a training step; `ir.mode.bind` makes it a constant."""
    return dedicated("meganeura.training", (), bool_)


def seed() -> Node:
    """The u32 that the training loop feeds from its seed and step, for dropout."""
    return dedicated("meganeura.seed", (), u32)
