"""Building nodes: one function for each operation, with NumPy's broadcasting and the promotion of
types.

These are the words in which composites, gradients and rewrite rules are written.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np

from meganeura.errors import DTypeError, MeganeuraError, ShapeError
from meganeura.ir import shapes
from meganeura.ir.constant import Value
from meganeura.ir.dtypes import DType, bool_, f32, i32, of_array, promote, u32
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


def _at_users_line(function: Callable[P, R]) -> Callable[P, R]:
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


@_at_users_line
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


@_at_users_line
def meet(operands: Sequence[Operand]) -> list[Node]:
    """Operands in one type and one shape."""
    known = [n.dtype for n in operands if isinstance(n, Node)]
    like = known[0] if known else None
    for dtype in known[1:]:
        like = promote(like, dtype) if like is not None else dtype
    nodes = [as_node(n, like) for n in operands]
    dtype = nodes[0].dtype
    for node in nodes[1:]:
        dtype = promote(dtype, node.dtype)
    shape = shapes.broadcast(*(n.shape for n in nodes))
    return [broadcast_to(cast(n, dtype), shape) for n in nodes]


def _unary(name: str, x: Operand) -> Node:
    return apply(name, as_node(x))


def _float(name: str, x: Operand) -> Node:
    node = as_node(x)
    return apply(name, node if node.dtype.is_float else cast(node, f32))


def neg(x: Operand) -> Node:
    """Minus x; for u32 modulo 2**32."""
    node = as_node(x)
    return sub(0, node) if node.dtype is u32 else apply("neg", node)


def abs_(x: Operand) -> Node:
    """The absolute value."""
    return _unary("abs", x)


def exp(x: Operand) -> Node:
    """e to the x."""
    return _float("exp", x)


def log(x: Operand) -> Node:
    """The natural logarithm."""
    return _float("log", x)


def sqrt(x: Operand) -> Node:
    """The square root."""
    return _float("sqrt", x)


def rsqrt(x: Operand) -> Node:
    """One over the square root."""
    return _float("rsqrt", x)


def recip(x: Operand) -> Node:
    """One over x."""
    return _float("recip", x)


def sin(x: Operand) -> Node:
    """The sine, in radians."""
    return _float("sin", x)


def cos(x: Operand) -> Node:
    """The cosine, in radians."""
    return _float("cos", x)


def tanh(x: Operand) -> Node:
    """The hyperbolic tangent."""
    return _float("tanh", x)


def erf(x: Operand) -> Node:
    """The error function."""
    return _float("erf", x)


def floor(x: Operand) -> Node:
    """The greatest whole number not above x."""
    return _float("floor", x)


def sign(x: Operand) -> Node:
    """-1, 0 or 1."""
    return _float("sign", x)


def _binary(name: str, a: Operand, b: Operand) -> Node:
    x, y = meet([a, b])
    return apply(name, x, y)


def _number(name: str, a: Operand, b: Operand) -> Node:
    x, y = meet([a, b])
    if x.dtype is bool_:
        x, y = cast(x, i32), cast(y, i32)
    return apply(name, x, y)


def _real(name: str, a: Operand, b: Operand) -> Node:
    x, y = meet([a, b])
    if not x.dtype.is_float:
        x, y = cast(x, f32), cast(y, f32)
    return apply(name, x, y)


def add(a: Operand, b: Operand) -> Node:
    """a + b."""
    return _number("add", a, b)


def sub(a: Operand, b: Operand) -> Node:
    """a - b."""
    return _number("sub", a, b)


def mul(a: Operand, b: Operand) -> Node:
    """a times b."""
    return _number("mul", a, b)


def div(a: Operand, b: Operand) -> Node:
    """a over b; integers become floats, as in NumPy."""
    return _real("div", a, b)


def mod(a: Operand, b: Operand) -> Node:
    """The remainder with the sign of b, as in Python; integers become floats."""
    return _real("mod", a, b)


def pow_(a: Operand, b: Operand) -> Node:
    """a to the power of b; small whole exponents become products."""
    if isinstance(b, (int, float)) and isinstance(a, Node) and a.dtype.is_float:
        if b == 2:
            return mul(a, a)
        if b == 1:
            return a
        if b == 0.5:
            return sqrt(a)
        if b == -1:
            return recip(a)
        if b == 3:
            return mul(mul(a, a), a)
    return _real("pow", a, b)


def maximum(a: Operand, b: Operand) -> Node:
    """The greater of a and b."""
    return _number("max", a, b)


def minimum(a: Operand, b: Operand) -> Node:
    """The lesser of a and b."""
    return _number("min", a, b)


def lt(a: Operand, b: Operand) -> Node:
    """a < b."""
    return _binary("lt", a, b)


def le(a: Operand, b: Operand) -> Node:
    """a <= b."""
    return _binary("le", a, b)


def gt(a: Operand, b: Operand) -> Node:
    """a > b."""
    return _binary("gt", a, b)


def ge(a: Operand, b: Operand) -> Node:
    """a >= b."""
    return _binary("ge", a, b)


def eq(a: Operand, b: Operand) -> Node:
    """a == b."""
    return _binary("eq", a, b)


def ne(a: Operand, b: Operand) -> Node:
    """a != b."""
    return _binary("ne", a, b)


def and_(a: Operand, b: Operand) -> Node:
    """Both; operands are bool."""
    return _binary("and", a, b)


def or_(a: Operand, b: Operand) -> Node:
    """Either; operands are bool."""
    return _binary("or", a, b)


def not_(a: Operand) -> Node:
    """The opposite; the operand is bool."""
    return _unary("not", a)


@_at_users_line
def where(condition: Operand, a: Operand, b: Operand) -> Node:
    """a where the condition holds, else b."""
    test = as_node(condition)
    test = test if test.dtype is bool_ else ne(test, 0)
    x, y = meet([a, b])
    shape = shapes.broadcast(test.shape, x.shape)
    return apply("where", broadcast_to(test, shape), broadcast_to(x, shape), broadcast_to(y, shape))


def cast(x: Node, dtype: DType) -> Node:
    """x in another type; a scalar constant is converted at once."""
    if x.dtype is dtype:
        return x
    if x.op.name == "constant" and x.size == 1:
        return constant(x.attr("value").array, dtype)
    return apply("cast", x, dtype=dtype)


def iota(shape: Shape, axis: int) -> Node:
    """The index along an axis, as i32, in a tensor of that shape."""
    return apply("iota", shape=tuple(shape), axis=axis % len(shape))


def random_bits(seed: Node, shape: Shape, stream: int) -> Node:
    """Counter-based random bits, u32: the same for the same seed, stream and index on every
    device.
    """
    return apply("random", broadcast_to(cast(seed, u32), tuple(shape)), stream=stream)


@_at_users_line
def _axes(axis: Axis, node: Node) -> tuple[int, ...]:
    return shapes.axes_of(axis, len(node.shape))


def _reduce(name: str, x: Operand, axis: Axis, keepdims: bool) -> Node:
    node = as_node(x)
    if node.dtype is bool_:
        node = cast(node, i32)
    axes = _axes(axis, node)
    if not axes and name != "argmax":
        return node
    result = apply(name, node, axes=axes)
    if not keepdims:
        return result
    return reshape(result, tuple(1 if i in axes else n for i, n in enumerate(node.shape)))


def sum_(x: Operand, axis: Axis = None, keepdims: bool = False) -> Node:
    """The sum over the axes."""
    return _reduce("sum", x, axis, keepdims)


def max_(x: Operand, axis: Axis = None, keepdims: bool = False) -> Node:
    """The greatest over the axes; the lowest finite number over none."""
    return _reduce("reduce_max", x, axis, keepdims)


def min_(x: Operand, axis: Axis = None, keepdims: bool = False) -> Node:
    """The least over the axes; the greatest finite number over none."""
    return _reduce("reduce_min", x, axis, keepdims)


def argmax(x: Operand, axis: Axis = None, keepdims: bool = False) -> Node:
    """The index of the first greatest element, i32, counted over the reduced axes in order."""
    return _reduce("argmax", x, axis, keepdims)


def mean(x: Operand, axis: Axis = None, keepdims: bool = False) -> Node:
    """The mean over the axes; NaN over none, as in NumPy."""
    node = as_node(x)
    axes = _axes(axis, node)
    count = math.prod(node.shape[a] for a in axes)
    total = sum_(node if node.dtype.is_float else cast(node, f32), axes, keepdims)
    return mul(total, 1.0 / count) if count else div(total, 0.0)


def _factors(a: Operand, b: Operand) -> tuple[Node, Node]:
    """The operands of a product as floats of one type, with an axis each at least."""
    x, y = as_node(a), as_node(b)
    if not x.shape or not y.shape:
        raise ShapeError(
            "matmul takes no scalars",
            got=f"{shapes.show(x.shape)} and {shapes.show(y.shape)}",
            expected="at least one axis each",
            hint="use * for a product by a number",
        )
    dtype = promote(x.dtype, y.dtype)
    dtype = dtype if dtype.is_float else f32
    return cast(x, dtype), cast(y, dtype)


@_at_users_line
def matmul(a: Operand, b: Operand) -> Node:
    """The matrix product, with vectors and broadcast leading axes as NumPy's `@`."""
    x, y = _factors(a, b)
    if len(x.shape) > 2 and len(y.shape) == 2 and x.shape[-1] == y.shape[0]:
        # One matrix for a whole batch: one product, whose gradients are single products too.
        lead = x.shape[:-1]
        flat = apply("matmul", reshape(x, (math.prod(lead), x.shape[-1])), y)
        return reshape(flat, (*lead, y.shape[1]))
    row, column = len(x.shape) == 1, len(y.shape) == 1
    x2 = reshape(x, (1, *x.shape)) if row else x
    y2 = reshape(y, (*y.shape, 1)) if column else y
    if x2.shape[-1] == y2.shape[-2]:
        batch = shapes.broadcast(x2.shape[:-2], y2.shape[:-2])
        x2 = broadcast_to(x2, (*batch, *x2.shape[-2:]))
        y2 = broadcast_to(y2, (*batch, *y2.shape[-2:]))
    result = apply("matmul", x2, y2)
    if row:
        result = reshape(result, (*result.shape[:-2], result.shape[-1]))
    return reshape(result, result.shape[:-1]) if column else result


def pair(value: int | Sequence[int]) -> tuple[int, int]:
    """One number for both axes, or one each."""
    return (value, value) if isinstance(value, int) else (int(value[0]), int(value[1]))


def padding_pairs(value: int | Sequence[Any]) -> tuple[tuple[int, int], tuple[int, int]]:
    """Padding as ((top, bottom), (left, right)) from one number, one an axis, or pairs."""
    if isinstance(value, int):
        return (value, value), (value, value)
    first, second = value
    return pair(first), pair(second)


def conv2d(
    x: Operand,
    w: Operand,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[Any] = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Node:
    """[N, C, H, W] by [O, C/groups, KH, KW] to [N, O, OH, OW]: cross-correlation."""
    if min(*pair(stride), *pair(dilation), groups) < 1:
        raise ShapeError(
            "conv2d: stride, dilation and groups are at least 1",
            expected=">= 1",
            got=f"stride {stride}, dilation {dilation}, groups {groups}",
            origin=here(),
        )
    return apply(
        "conv2d",
        as_node(x),
        as_node(w),
        stride=pair(stride),
        padding=padding_pairs(padding),
        dilation=pair(dilation),
        groups=groups,
    )


def windows(
    x: Node,
    size: Shape,
    stride: Shape,
    padding: tuple[tuple[int, int], ...],
    dilation: Shape,
    value: float = 0.0,
) -> Node:
    """[..., H, W] to [..., OH, OW, KH, KW]: every window of the last axes; `value` outside."""
    return apply(
        "windows",
        x,
        size=size,
        stride=stride,
        padding=padding,
        dilation=dilation,
        value=float(value),
    )


def reshape(x: Node, shape: Shape) -> Node:
    """The same elements in another shape; one size may be -1."""
    shape = tuple(int(n) for n in shape)
    if -1 in shape:
        rest = math.prod(n for n in shape if n != -1)
        shape = tuple((x.size // rest if rest else 0) if n == -1 else n for n in shape)
    return x if shape == x.shape else apply("reshape", x, shape=shape)


def permute(x: Node, axes: Sequence[int]) -> Node:
    """The axes in another order."""
    rank = len(x.shape)
    order = tuple(a + rank if -rank <= a < 0 else a for a in axes)
    return x if order == tuple(range(len(x.shape))) else apply("permute", x, axes=order)


def transpose(x: Node) -> Node:
    """The last two axes exchanged."""
    rank = len(x.shape)
    if rank < 2:
        raise ShapeError(
            "transpose needs two axes",
            expected="[..., m, n]",
            got=shapes.show(x.shape),
            origin=here(),
        )
    return permute(x, (*range(rank - 2), rank - 1, rank - 2))


def broadcast_to(x: Node, shape: Shape) -> Node:
    """x repeated to the shape, by NumPy's rules."""
    if x.shape == shape:
        return x
    padded = (1,) * (len(shape) - len(x.shape)) + x.shape
    return apply("expand", reshape(x, padded), shape=shape)


def slice_(x: Node, start: Shape, stop: Shape, step: Shape) -> Node:
    """`start:stop:step` on each axis, as `slice.indices` gives them."""
    empty = [len(range(a, b, s)) == 0 for a, b, s in zip(start, stop, step, strict=True)]
    start = tuple(0 if e else a for a, e in zip(start, empty, strict=True))
    stop = tuple(0 if e else b for b, e in zip(stop, empty, strict=True))
    step = tuple(1 if e else s for s, e in zip(step, empty, strict=True))
    if start == (0,) * len(start) and stop == x.shape and step == (1,) * len(step):
        return x
    return apply("slice", x, start=start, stop=stop, step=step)


def pad(x: Node, low: Shape, high: Shape, value: float = 0.0) -> Node:
    """A border of `value` on each axis."""
    return (
        x
        if not any(low) and not any(high)
        else apply("pad", x, low=low, high=high, value=float(value))
    )


@_at_users_line
def concat(parts: Sequence[Node], axis: int) -> Node:
    """The parts one behind another along an axis."""
    if not parts:
        raise ShapeError(
            "concat needs at least one tensor", expected="one or more", got="none", origin=here()
        )
    axis = shapes.axes_of(axis, len(parts[0].shape))[0]
    first = parts[0].shape
    for other in parts[1:]:
        rest = (*other.shape[:axis], *other.shape[axis + 1 :])
        if len(other.shape) != len(first) or rest != (*first[:axis], *first[axis + 1 :]):
            raise ShapeError(
                "concat: shapes differ beside the axis",
                expected=shapes.show(first),
                got=shapes.show(other.shape),
                hint=f"only axis {axis} may differ",
                origin=here(),
            )
    total = sum(p.shape[axis] for p in parts)
    shape = (*first[:axis], total, *first[axis + 1 :])
    position = iota(shape, axis)
    result, offset = None, 0
    for part in parts:
        n = part.shape[axis]
        low = tuple(offset if i == axis else 0 for i in range(len(shape)))
        high = tuple(total - offset - n if i == axis else 0 for i in range(len(shape)))
        moved = pad(part, low, high)
        result = moved if result is None else where(lt(position, offset), result, moved)
        offset += n
    assert result is not None
    return result


def gather(x: Node, index: Operand, axis: int = 0) -> Node:
    """Elements of x along an axis, by index; out of range is clamped."""
    return apply("gather", x, as_node(index, i32), axis=_axes(axis, x)[0])


def scatter_add(updates: Node, index: Operand, size: int, axis: int = 0) -> Node:
    """Zeros of `size` along an axis, with each update added at its index; out of range adds
    nothing.
    """
    if not updates.dtype.is_float and updates.dtype is bool_:
        raise DTypeError(
            "scatter_add does not take bool", expected="numbers", got="bool", origin=here()
        )
    return apply("scatter_add", updates, as_node(index, i32), axis=axis, size=size)


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
