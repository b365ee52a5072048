"""Every operation's value against independent NumPy, at odd and empty shapes, in float64 and 32."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from meganeura.ir import build
from meganeura.ir.dtypes import bool_, f16, f32, i32, u32
from meganeura.ir.graph import Node
from meganeura.ir.ops import OPS
from tests.pure.ir.support import SHAPES, Array, agree, numbers, run


def each(function: Callable[[float], float]) -> Callable[[Array], Array]:
    """Plain Python, element by element."""
    return lambda x: np.array([function(v) for v in x.ravel()], np.float64).reshape(x.shape)


def away(x: Node) -> Node:
    return build.add(0.5, build.abs_(x))


def away_(x: Array) -> Array:
    return 0.5 + np.abs(x)


UNARY: dict[str, tuple[Callable[[Node], Node], Callable[[Array], Any]]] = {
    "neg": (build.neg, lambda x: 0 - x),
    "abs": (build.abs_, lambda x: np.where(x < 0, -x, x)),
    "exp": (build.exp, each(math.exp)),
    "log": (lambda x: build.log(away(x)), lambda x: each(math.log)(away_(x))),
    "sqrt": (lambda x: build.sqrt(away(x)), lambda x: away_(x) ** 0.5),
    "rsqrt": (lambda x: build.rsqrt(away(x)), lambda x: away_(x) ** -0.5),
    "recip": (lambda x: build.recip(away(x)), lambda x: 1 / away_(x)),
    "sin": (build.sin, each(math.sin)),
    "cos": (build.cos, each(math.cos)),
    "tanh": (build.tanh, each(math.tanh)),
    "erf": (build.erf, each(math.erf)),
    "floor": (lambda x: build.floor(build.mul(x, 3.0)), lambda x: each(math.floor)(x * 3)),
    "sign": (build.sign, lambda x: (x > 0) * 1.0 - (x < 0) * 1.0),
    "cast": (lambda x: build.cast(build.mul(x, 3.0), i32), lambda x: each(int)(x * 3)),
    "not": (lambda x: build.not_(build.gt(x, 0.0)), lambda x: x <= 0),
}

BINARY: dict[str, tuple[Callable[[Node, Node], Node], Callable[[Array, Array], Any]]] = {
    "add": (build.add, lambda a, b: a + b),
    "sub": (build.sub, lambda a, b: a - b),
    "mul": (build.mul, lambda a, b: a * b),
    "div": (lambda a, b: build.div(a, away(b)), lambda a, b: a / away_(b)),
    "mod": (lambda a, b: build.mod(a, away(b)), lambda a, b: a - away_(b) * np.floor(a / away_(b))),
    "pow": (lambda a, b: build.pow_(away(a), b), lambda a, b: np.exp(b * np.log(away_(a)))),
    "max": (build.maximum, lambda a, b: np.where(a > b, a, b)),
    "min": (build.minimum, lambda a, b: np.where(a < b, a, b)),
    "lt": (build.lt, lambda a, b: a < b),
    "le": (build.le, lambda a, b: a <= b),
    "gt": (build.gt, lambda a, b: a > b),
    "ge": (build.ge, lambda a, b: a >= b),
    "eq": (
        lambda a, b: build.eq(build.sign(a), build.sign(b)),
        lambda a, b: np.sign(a) == np.sign(b),
    ),
    "ne": (
        lambda a, b: build.ne(build.sign(a), build.sign(b)),
        lambda a, b: np.sign(a) != np.sign(b),
    ),
    "and": (
        lambda a, b: build.and_(build.gt(a, 0), build.gt(b, 0)),
        lambda a, b: (a > 0) & (b > 0),
    ),
    "or": (lambda a, b: build.or_(build.gt(a, 0), build.gt(b, 0)), lambda a, b: (a > 0) | (b > 0)),
    "where": (
        lambda a, b: build.where(build.gt(a, b), a, 7.0),
        lambda a, b: np.where(a > b, a, 7.0),
    ),
}


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str, shape: tuple[int, ...]) -> None:
    agree(*UNARY[name], numbers(shape))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", BINARY)
def test_binary(name: str, shape: tuple[int, ...]) -> None:
    agree(*BINARY[name], numbers(shape, 1), numbers(shape, 2))


@pytest.mark.parametrize(
    "shapes", [((3,), (2, 3)), ((2, 1), (1, 3)), ((), (5,)), ((2, 0), (1, 1))], ids=str
)
@pytest.mark.parametrize("name", BINARY)
def test_broadcasting(name: str, shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    agree(*BINARY[name], numbers(shapes[0], 1), numbers(shapes[1], 2))


REDUCTIONS: dict[str, tuple[Any, Any]] = {
    "sum": (build.sum_, np.sum),
    "mean": (build.mean, np.mean),
    "max": (build.max_, np.max),
    "min": (build.min_, np.min),
}


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2)], ids=str)
@pytest.mark.parametrize("shape", [(1, 3, 5), (17, 2, 127), (2, 5, 1)], ids=str)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name: str, shape: tuple[int, ...], axis: Any) -> None:
    function, oracle = REDUCTIONS[name]
    agree(lambda x: function(x, axis), lambda x: oracle(x, axis=axis), numbers(shape))
    agree(
        lambda x: function(x, axis, keepdims=True),
        lambda x: oracle(x, axis=axis, keepdims=True),
        numbers(shape),
    )


def test_reductions_over_nothing() -> None:
    nothing = numbers((2, 0))
    assert run(lambda x: build.sum_(x, 1), nothing).tolist() == [0, 0]
    lowest = float(np.finfo(np.float32).min)
    assert run(lambda x: build.max_(x, 1), nothing).tolist() == [lowest] * 2
    assert run(lambda x: build.min_(x, 1), nothing).tolist() == [-lowest] * 2
    assert run(lambda x: build.argmax(x, 1), nothing).tolist() == [0, 0]
    assert np.isnan(run(lambda x: build.mean(x, 1), nothing)).all()
    for function in (build.sum_, build.max_, build.argmax):
        assert run(lambda x, f=function: f(x, 0), nothing).shape == (0,)


def test_argmax_takes_the_first_of_equals_over_several_axes() -> None:
    x = np.array([[[0.0, 3.0], [1.0, 3.0]], [[3.0, 2.0], [3.0, 0.0]]])
    assert run(lambda x: build.argmax(x, (0, 2)), x).tolist() == [1, 1]
    assert run(build.argmax, x).tolist() == 1
    assert run(lambda x: build.argmax(x, 1, keepdims=True), x).tolist() == [[[1, 0]], [[0, 0]]]


@pytest.mark.parametrize("k", [0, 1, 3, 17, 127])
@pytest.mark.parametrize("lead", [((), ()), ((2,), (2,)), ((2, 1), (1, 3)), ((), (4,))], ids=str)
def test_matmul(k: int, lead: Any) -> None:
    def by_hand(a: Array, b: Array) -> Array:
        return np.asarray((a[..., :, :, None] * b[..., None, :, :]).sum(-2))

    agree(build.matmul, by_hand, numbers((*lead[0], 5, k), 1), numbers((*lead[1], k, 3), 2))


def test_matmul_of_vectors() -> None:
    agree(build.matmul, lambda a, b: (a * b).sum(), numbers((7,), 1), numbers((7,), 2))
    agree(build.matmul, lambda a, b: (a[:, None] * b).sum(0), numbers((7,), 1), numbers((7, 3), 2))
    agree(build.matmul, lambda a, b: (a * b).sum(1), numbers((3, 7), 1), numbers((7,), 2))


def conv_by_hand(x: Array, w: Array, stride: Any, pads: Any, dilation: Any, groups: int) -> Array:
    """Convolution as seven loops."""
    padded = np.pad(x, [(0, 0), (0, 0), *pads])
    (n, _, h, v), (o, c, kh, kw) = padded.shape, w.shape
    oh = (h - dilation[0] * (kh - 1) - 1) // stride[0] + 1
    ow = (v - dilation[1] * (kw - 1) - 1) // stride[1] + 1
    out = np.zeros((n, o, oh, ow))
    for b, f, i, j in np.ndindex(n, o, oh, ow):
        for ch, y, z in np.ndindex(c, kh, kw):
            channel = f // (o // groups) * c + ch
            row, column = i * stride[0] + y * dilation[0], j * stride[1] + z * dilation[1]
            out[b, f, i, j] += padded[b, channel, row, column] * w[f, ch, y, z]
    return out


@pytest.mark.parametrize(
    "case",
    [
        ((2, 3, 4, 5), (2, 3, 1, 1), (1, 1), ((0, 0), (0, 0)), (1, 1), 1),
        ((1, 2, 5, 5), (3, 2, 3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), 1),
        ((2, 2, 7, 6), (2, 2, 3, 2), (2, 3), ((1, 0), (0, 2)), (1, 1), 1),
        ((2, 4, 5, 5), (6, 2, 2, 2), (1, 1), ((0, 0), (0, 0)), (2, 1), 2),
        ((1, 3, 4, 4), (3, 1, 3, 3), (1, 1), ((1, 1), (1, 1)), (1, 1), 3),
        ((0, 2, 4, 4), (2, 2, 3, 3), (1, 1), ((0, 0), (0, 0)), (1, 1), 1),
        ((3, 1, 1, 1), (1, 1, 1, 1), (1, 1), ((0, 0), (0, 0)), (1, 1), 1),
    ],
    ids=str,
)
def test_conv2d(case: Any) -> None:
    image, filters, *geometry = case
    agree(
        lambda x, w: build.conv2d(x, w, *geometry),
        lambda x, w: conv_by_hand(x, w, *geometry),
        numbers(image, 1),
        numbers(filters, 2),
    )


VIEWS: dict[str, tuple[Callable[[Node], Node], Callable[[Array], Any]]] = {
    "reshape": (lambda x: build.reshape(x, (4, -1)), lambda x: x.reshape(4, 6)),
    "permute": (lambda x: build.permute(x, (2, 0, 1)), lambda x: np.moveaxis(x, 2, 0)),
    "permute from the end": (
        lambda x: build.permute(x, (-1, 0, 1)),
        lambda x: np.moveaxis(x, 2, 0),
    ),
    "transpose": (build.transpose, lambda x: np.swapaxes(x, 1, 2)),
    "expand": (
        lambda x: build.broadcast_to(build.reshape(x, (2, 3, 4, 1)), (5, 2, 3, 4, 2)),
        lambda x: np.stack([np.stack([x, x], -1)] * 5),
    ),
    "slice": (
        lambda x: build.slice_(x, (0, 2, 3), (2, -1, 0), (1, -1, -2)),
        lambda x: x[:, ::-1, 3:0:-2],
    ),
    "pad": (
        lambda x: build.pad(x, (0, 1, 2), (1, 0, 0), 9.0),
        lambda x: np.pad(x, ((0, 1), (1, 0), (2, 0)), constant_values=9.0),
    ),
    "concat": (
        lambda x: build.concat([x, build.neg(x)], -1),
        lambda x: np.concatenate([x, -x], -1),
    ),
    "gather": (lambda x: build.gather(x, [[2, 0]], 1), lambda x: x[:, [[2, 0]]]),
    "gather out of range": (lambda x: build.gather(x, [-1, 9], 1), lambda x: x[:, [0, 2]]),
    "scatter_add": (
        lambda x: build.scatter_add(x, [1, 1, 9], 3, 1),
        lambda x: np.stack([0 * x[:, 0], x[:, 0] + x[:, 1], 0 * x[:, 0]], 1),
    ),
    "detach": (build.detach, lambda x: x),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_and_gathers(name: str) -> None:
    agree(*VIEWS[name], numbers((2, 3, 4)))


def test_windows_are_the_slices_of_the_padded_tensor() -> None:
    x = numbers((2, 5, 4))
    padded = np.pad(x, ((0, 0), (1, 0), (0, 2)), constant_values=-1.0)
    value = run(lambda x: build.windows(x, (2, 3), (2, 1), ((1, 0), (0, 2)), (3, 1), -1.0), x)
    assert value.shape == (2, 2, 4, 2, 3)
    for i, j in np.ndindex(2, 4):
        expected = padded[:, i * 2 : i * 2 + 4 : 3, j : j + 3]
        np.testing.assert_array_equal(value[:, i, j], expected)


def test_unwindows_tells_each_element_its_windows() -> None:
    """Scattering by hand: every window's tap is found at the element that it read."""
    size, stride, padding, dilation = (2, 2), (2, 1), ((1, 0), (0, 1)), (1, 2)
    g = numbers((3, 3, 3, 2, 2))
    value = run(
        lambda g: build.apply(
            "unwindows", g, shape=(5, 4), stride=stride, padding=padding, dilation=dilation
        ),
        g,
    )
    expected = np.zeros((3, 5, 4, 2, 2))
    for i, j, y, z in np.ndindex(3, 3, *size):
        row = i * stride[0] + y * dilation[0] - padding[0][0]
        column = j * stride[1] + z * dilation[1] - padding[1][0]
        if 0 <= row < 5 and 0 <= column < 4:
            expected[:, row, column, y, z] = g[:, i, j, y, z]
    np.testing.assert_array_equal(value, expected)


def test_iota() -> None:
    assert run(lambda: build.iota((2, 3), 1)).tolist() == [[0, 1, 2]] * 2
    assert run(lambda: build.iota((2, 3), -2)).tolist() == [[0] * 3, [1] * 3]
    assert run(lambda: build.iota((0,), 0)).tolist() == []


def test_integers_stay_integers() -> None:
    a, b = np.array([5, -7], np.int32), np.array([3, 2], np.int32)
    assert run(build.add, a, b).tolist() == [8, -5]
    assert run(build.neg, a).tolist() == [-5, 7]
    assert run(build.div, a, b).tolist() == [5 / 3, -3.5]
    assert run(build.mod, a, b).tolist() == [2.0, 1.0]
    assert run(build.sum_, a).dtype == np.int32
    assert run(build.neg, np.array([1, 0], np.uint32)).tolist() == [2**32 - 1, 0]


def test_conversions() -> None:
    x = np.array([-1.7, 0.0, 2.9])
    assert run(lambda x: build.cast(x, i32), x).tolist() == [-1, 0, 2]
    assert run(lambda x: build.cast(x, bool_), x).tolist() == [True, False, True]
    assert run(lambda x: build.cast(build.gt(x, 0.0), f32), x).tolist() == [0, 0, 1]
    assert run(lambda x: build.cast(x, f16), x, real=None).dtype == np.float16
    assert run(lambda x: build.sum_(build.gt(x, -9.0)), x).tolist() == 3


def test_promotion() -> None:
    x, n = build.input_("x", (2,)), build.input_("n", (2,), i32)
    half, flag = build.input_("h", (2,), f16), build.input_("f", (2,), bool_)
    assert build.add(x, n).dtype is f32
    assert build.add(half, n).dtype is f16
    assert build.add(half, x).dtype is f32
    assert build.add(half, 1.5).dtype is f16
    assert build.add(n, 1).dtype is i32
    assert build.add(n, 1.5).dtype is f32
    assert build.add(flag, flag).dtype is i32
    assert build.mul(flag, x).dtype is f32
    assert build.where(flag, n, 0).dtype is i32
    assert build.add(build.input_("u", (2,), u32), 1).dtype is u32


def test_small_powers_are_products() -> None:
    x = build.input_("x", (2,))
    assert build.pow_(x, 2).op.name == "mul"
    assert build.pow_(x, 1) is x
    assert build.pow_(x, 0.5).op.name == "sqrt"
    assert build.pow_(x, -1).op.name == "recip"


COVERED_ELSEWHERE = {
    "input": "a leaf",
    "parameter": "a leaf",
    "state": "a leaf",
    "constant": "a leaf",
    "random": "test_random.py",
    "effect": "test_mode.py",
    "conv2d_input": "against central differences, with conv2d",
    "conv2d_weight": "against central differences, with conv2d",
}


def test_every_operation_is_tested() -> None:
    names = set(UNARY) | set(BINARY) | set(REDUCTIONS) | set(VIEWS) | set(COVERED_ELSEWHERE)
    names |= {"argmax", "reduce_max", "reduce_min", "matmul", "conv2d", "iota"}
    names |= {"windows", "unwindows"}
    assert set(OPS) <= names


def test_one_matrix_for_a_batch_is_one_product() -> None:
    x, w = build.input_("x", (2, 5, 7)), build.input_("w", (7, 3))
    y = build.matmul(x, w)
    assert y.shape == (2, 5, 3)
    assert y.inputs[0].op.name == "matmul"
    assert y.inputs[0].shape == (10, 3)


def test_products_of_integers_and_halves() -> None:
    n, h = build.input_("n", (2, 2), i32), build.input_("h", (2, 2), f16)
    assert build.matmul(n, n).dtype is f32
    assert build.matmul(n, h).dtype is f16
    assert build.matmul(h, n).dtype is f16
