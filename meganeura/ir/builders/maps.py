"""Elementwise operations, with NumPy's broadcasting and the promotion of types."""

from __future__ import annotations

from collections.abc import Sequence

from meganeura.ir import shapes
from meganeura.ir.builders.nodes import Operand, apply, as_node, at_users_line, constant
from meganeura.ir.builders.views import broadcast_to
from meganeura.ir.dtypes import DType, bool_, f32, i32, promote, u32
from meganeura.ir.graph import Node, Shape


def cast(x: Node, dtype: DType) -> Node:
    """x in another type; a scalar constant is converted at once."""
    if x.dtype is dtype:
        return x
    if x.op.name == "constant" and x.size == 1:
        return constant(x.attr("value").array, dtype)
    return apply("cast", x, dtype=dtype)


@at_users_line
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


@at_users_line
def where(condition: Operand, a: Operand, b: Operand) -> Node:
    """a where the condition holds, else b."""
    test = as_node(condition)
    test = test if test.dtype is bool_ else ne(test, 0)
    x, y = meet([a, b])
    shape = shapes.broadcast(test.shape, x.shape)
    return apply("where", broadcast_to(test, shape), broadcast_to(x, shape), broadcast_to(y, shape))


def iota(shape: Shape, axis: int) -> Node:
    """The index along an axis, as i32, in a tensor of that shape."""
    return apply("iota", shape=tuple(shape), axis=axis % len(shape))


def random_bits(seed: Node, shape: Shape, stream: int) -> Node:
    """Counter-based random bits, u32: the same for the same seed, stream and index on every
    device.
    """
    return apply("random", broadcast_to(cast(seed, u32), tuple(shape)), stream=stream)
