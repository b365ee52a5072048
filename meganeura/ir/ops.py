"""The table of operations: each row says what an operation is, alone.

Relations between operations (gradients, rewrite rules, kernels) stand in tables upstairs. A
student's own operation is one more row, made with `elementwise(...)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from meganeura.errors import DTypeError, ShapeError
from meganeura.ir import reference as ref
from meganeura.ir import shapes
from meganeura.ir.dtypes import DType, bool_, f32, i32, u32
from meganeura.ir.graph import Node, Op, Shape

Attributes = Mapping[str, Any]

PURE = frozenset[str]()
COMMUTES = frozenset({"commutative", "associative"})


def _require(
    condition: bool, name: str, expected: str, got: str, hint: str = "cast it, as in x.cast(mg.f32)"
) -> None:
    if not condition:
        raise DTypeError(f"{name} does not take {got}", expected=expected, got=got, hint=hint)


def _same(name: str, inputs: tuple[Node, ...]) -> Shape:
    shape = inputs[0].shape
    for other in inputs[1:]:
        if other.shape != shape:
            raise ShapeError(
                f"{name} needs operands of one shape",
                expected=str(list(shape)),
                got=str(list(other.shape)),
            )
    return shape


def _infer_float(name: str) -> Any:
    def infer(inputs: tuple[Node, ...], attrs: Attributes) -> tuple[Shape, DType]:
        for node in inputs:
            _require(node.dtype.is_float, name, "a float tensor", node.dtype.name)
        return _same(name, inputs), inputs[0].dtype

    return infer


def _infer_number(name: str) -> Any:
    def infer(inputs: tuple[Node, ...], attrs: Attributes) -> tuple[Shape, DType]:
        for node in inputs:
            _require(node.dtype is not bool_, name, "a tensor of numbers", node.dtype.name)
        first = inputs[0].dtype
        _require(
            all(n.dtype is first for n in inputs),
            name,
            f"operands of {first}",
            inputs[-1].dtype.name,
        )
        return _same(name, inputs), first

    return infer


def _infer_compare(name: str) -> Any:
    def infer(inputs: tuple[Node, ...], attrs: Attributes) -> tuple[Shape, DType]:
        first = inputs[0].dtype
        _require(inputs[1].dtype is first, name, f"operands of {first}", inputs[1].dtype.name)
        return _same(name, inputs), bool_

    return infer


_COMPARED = "compare it, as in x != 0"


def _infer_logic(name: str) -> Any:
    def infer(inputs: tuple[Node, ...], attrs: Attributes) -> tuple[Shape, DType]:
        for node in inputs:
            _require(node.dtype is bool_, name, "bool tensors", node.dtype.name, _COMPARED)
        return _same(name, inputs), bool_

    return infer


def _infer_where(inputs: tuple[Node, ...], attrs: Attributes) -> tuple[Shape, DType]:
    condition, a, b = inputs
    _require(condition.dtype is bool_, "where", "a bool condition", condition.dtype.name, _COMPARED)
    _require(a.dtype is b.dtype, "where", f"branches of {a.dtype}", b.dtype.name)
    return _same("where", inputs), a.dtype


def elementwise(
    name: str,
    arity: int,
    numpy: Any,
    wgsl: str,
    *,
    flops: int = 1,
    traits: frozenset[str] = PURE,
    numbers: bool = False,
) -> Op:
    """A row for an elementwise operation on floats (or on any numbers): NumPy function and WGSL
    expression.
    """
    infer = (_infer_number if numbers else _infer_float)(name)
    return Op(name, "map", arity, infer, ref.elementwise(numpy), wgsl, flops, traits)


def _compare(name: str, numpy: Any, symbol: str) -> Op:
    return Op(
        name, "map", 2, _infer_compare(name), ref.elementwise(numpy), f"({{0}} {symbol} {{1}})"
    )


def _leaf(name: str, infer: Any) -> Op:
    return Op(name, "leaf", 0, infer, ref.no_value, flops=0)


def _declared(inputs: tuple[Node, ...], attrs: Attributes) -> tuple[Shape, DType]:
    return attrs["shape"], attrs["dtype"]


def _infer_constant(inputs: tuple[Node, ...], attrs: Attributes) -> tuple[Shape, DType]:
    return attrs["value"].shape, attrs["dtype"]


INPUT = _leaf("input", _declared)
PARAMETER = _leaf("parameter", _declared)
STATE = _leaf("state", _declared)
CONSTANT = Op("constant", "leaf", 0, _infer_constant, ref.constant, flops=0)

_UNARY = [
    elementwise("neg", 1, np.negative, "(-{0})", numbers=True),
    elementwise("abs", 1, np.abs, "abs({0})", numbers=True),
    elementwise("exp", 1, np.exp, "exp({0})"),
    elementwise("log", 1, np.log, "log({0})"),
    elementwise("sqrt", 1, np.sqrt, "sqrt({0})"),
    elementwise("rsqrt", 1, ref.rsqrt, "inverseSqrt({0})"),
    elementwise("recip", 1, np.reciprocal, "(1.0 / {0})"),
    elementwise("sin", 1, np.sin, "sin({0})"),
    elementwise("cos", 1, np.cos, "cos({0})"),
    elementwise("tanh", 1, np.tanh, "mg_tanh({0})"),
    elementwise("erf", 1, ref.erf, "mg_erf({0})", flops=12),
    elementwise("floor", 1, np.floor, "floor({0})"),
    elementwise("sign", 1, np.sign, "mg_sign({0})"),
]
_BINARY = [
    elementwise("add", 2, np.add, "({0} + {1})", traits=COMMUTES, numbers=True),
    elementwise("sub", 2, np.subtract, "({0} - {1})", numbers=True),
    elementwise("mul", 2, np.multiply, "({0} * {1})", traits=COMMUTES, numbers=True),
    elementwise("div", 2, np.divide, "({0} / {1})"),
    elementwise("mod", 2, np.mod, "mg_mod({0}, {1})", flops=3),
    elementwise("pow", 2, np.power, "mg_pow({0}, {1})", flops=4),
    elementwise("max", 2, np.maximum, "max({0}, {1})", traits=COMMUTES, numbers=True),
    elementwise("min", 2, np.minimum, "min({0}, {1})", traits=COMMUTES, numbers=True),
]
_COMPARE = [
    _compare("lt", np.less, "<"),
    _compare("le", np.less_equal, "<="),
    _compare("gt", np.greater, ">"),
    _compare("ge", np.greater_equal, ">="),
    _compare("eq", np.equal, "=="),
    _compare("ne", np.not_equal, "!="),
]
_LOGIC = [
    Op(
        "and",
        "map",
        2,
        _infer_logic("and"),
        ref.elementwise(np.logical_and),
        "({0} & {1})",
        traits=COMMUTES,
    ),
    Op(
        "or",
        "map",
        2,
        _infer_logic("or"),
        ref.elementwise(np.logical_or),
        "({0} | {1})",
        traits=COMMUTES,
    ),
    Op("not", "map", 1, _infer_logic("not"), ref.elementwise(np.logical_not), "(!{0})"),
]


def _infer_cast(inputs: tuple[Node, ...], attrs: Attributes) -> tuple[Shape, DType]:
    return inputs[0].shape, attrs["dtype"]


def _infer_iota(inputs: tuple[Node, ...], attrs: Attributes) -> tuple[Shape, DType]:
    return attrs["shape"], i32


def _infer_random(inputs: tuple[Node, ...], attrs: Attributes) -> tuple[Shape, DType]:
    seed = inputs[0]
    _require(seed.dtype is u32, "random", "a u32 seed", seed.dtype.name)
    return seed.shape, u32


_OTHER_MAPS = [
    Op("where", "map", 3, _infer_where, ref.elementwise(np.where), "select({2}, {1}, {0})"),
    Op("cast", "map", 1, _infer_cast, ref.cast, "cast", 0),
    Op("iota", "map", 0, _infer_iota, ref.iota, "iota", 0),
    Op("random", "map", 1, _infer_random, ref.random_bits, "random", 8),
]


def _infer_reduce(dtype: DType | None) -> Any:
    def infer(inputs: tuple[Node, ...], attrs: Attributes) -> tuple[Shape, DType]:
        (x,) = inputs
        _require(x.dtype is not bool_, "a reduction", "a tensor of numbers", x.dtype.name)
        return shapes.reduced(x.shape, attrs["axes"]), dtype or x.dtype

    return infer


REDUCTIONS = [
    Op("sum", "reduce", 1, _infer_reduce(None), ref.reduce_sum),
    Op("reduce_max", "reduce", 1, _infer_reduce(None), ref.reduce_max),
    Op("reduce_min", "reduce", 1, _infer_reduce(None), ref.reduce_min),
    Op("argmax", "reduce", 1, _infer_reduce(i32), ref.argmax),
]


def _view(name: str, infer: Any, numpy: Any) -> Op:
    def typed(inputs: tuple[Node, ...], attrs: Attributes) -> tuple[Shape, DType]:
        return infer(inputs[0].shape, **attrs), inputs[0].dtype

    return Op(name, "view", 1, typed, numpy, flops=0)


VIEWS = [
    _view("reshape", shapes.reshaped, ref.reshape),
    _view("permute", shapes.permuted, ref.permute),
    _view("expand", shapes.expanded, ref.expand),
    _view("slice", shapes.sliced, ref.slice_),
    _view("pad", shapes.padded, ref.pad),
    _view("windows", shapes.windows, ref.windows),
    _view("unwindows", shapes.unwindows, ref.unwindows),
]


def _infer_matmul(inputs: tuple[Node, ...], attrs: Attributes) -> tuple[Shape, DType]:
    a, b = inputs
    _require(a.dtype.is_float, "matmul", "float operands", a.dtype.name)
    _require(b.dtype is a.dtype, "matmul", f"operands of {a.dtype}", b.dtype.name)
    return shapes.matmul(a.shape, b.shape), a.dtype


def _infer_conv(rule: Any) -> Any:
    def infer(inputs: tuple[Node, ...], attrs: Attributes) -> tuple[Shape, DType]:
        a, b = inputs
        _require(a.dtype.is_float, "conv2d", "float operands", a.dtype.name)
        _require(b.dtype is a.dtype, "conv2d", f"operands of {a.dtype}", b.dtype.name)
        return rule(a.shape, b.shape, **attrs), a.dtype

    return infer


CONTRACTIONS = [
    Op("matmul", "contract", 2, _infer_matmul, ref.matmul, flops=2),
    Op("conv2d", "contract", 2, _infer_conv(shapes.conv2d), ref.conv2d, flops=2),
    Op("conv2d_input", "contract", 2, _infer_conv(shapes.conv2d_input), ref.conv2d_input, flops=2),
    Op(
        "conv2d_weight",
        "contract",
        2,
        _infer_conv(shapes.conv2d_weight),
        ref.conv2d_weight,
        flops=2,
    ),
]


_TO_INT = "cast it, as in x.cast(mg.i32)"


def _infer_gather(inputs: tuple[Node, ...], attrs: Attributes) -> tuple[Shape, DType]:
    x, index = inputs
    _require(index.dtype in (i32, u32), "gather", "integer indices", index.dtype.name, _TO_INT)
    return shapes.gathered(x.shape, index.shape, attrs["axis"]), x.dtype


def _infer_scatter(inputs: tuple[Node, ...], attrs: Attributes) -> tuple[Shape, DType]:
    updates, index = inputs
    _require(index.dtype in (i32, u32), "scatter_add", "integer indices", index.dtype.name, _TO_INT)
    return shapes.scattered(updates.shape, index.shape, attrs["axis"], attrs["size"]), updates.dtype


def _infer_effect(inputs: tuple[Node, ...], attrs: Attributes) -> tuple[Shape, DType]:
    value, leaf, new = inputs
    if leaf.shape != new.shape or leaf.dtype is not new.dtype:
        raise ShapeError(
            "the new value does not fit", expected=str(list(leaf.shape)), got=str(list(new.shape))
        )
    return value.shape, value.dtype


EFFECT = Op("effect", "view", 3, _infer_effect, ref.effect, flops=0)
"""`value`, noting that training also sets `leaf` to `new`; `ir.mode` takes it out before compiling.
"""


def _infer_detach(inputs: tuple[Node, ...], attrs: Attributes) -> tuple[Shape, DType]:
    return inputs[0].shape, inputs[0].dtype


DETACH = Op("detach", "view", 1, _infer_detach, ref.detach, flops=0)
"""The value, through which no gradient flows; `ir.mode` takes it out before anything is compiled.
"""

GATHERS = [
    Op("gather", "gather", 2, _infer_gather, ref.gather, flops=0),
    Op("scatter_add", "gather", 2, _infer_scatter, ref.scatter_add),
]

OPS: Mapping[str, Op] = {
    row.name: row
    for row in [
        *(INPUT, PARAMETER, STATE, CONSTANT),
        *_UNARY,
        *_BINARY,
        *_COMPARE,
        *_LOGIC,
        *_OTHER_MAPS,
        *REDUCTIONS,
        *VIEWS,
        *CONTRACTIONS,
        *GATHERS,
        EFFECT,
        DETACH,
    ]
}

__all__ = ["CONSTANT", "INPUT", "OPS", "PARAMETER", "STATE", "elementwise", "f32"]
