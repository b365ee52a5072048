"""Elementwise operations and products: gradients in the middle of a graph, of both orders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from meganeura.ir import build
from meganeura.ir.dtypes import f16, f32, i32
from meganeura.ir.graph import Node
from tests.pure.autodiff.numeric import check_gradients


def positive(x: Node) -> Node:
    """Into the domain of log, sqrt and powers."""
    return build.add(0.6, build.mul(x, x))


UNARY: dict[str, Callable[[Node], Node]] = {
    "neg": build.neg,
    "abs": build.abs_,
    "exp": build.exp,
    "log": lambda x: build.log(positive(x)),
    "sqrt": lambda x: build.sqrt(positive(x)),
    "rsqrt": lambda x: build.rsqrt(positive(x)),
    "recip": lambda x: build.recip(positive(x)),
    "sin": build.sin,
    "cos": build.cos,
    "tanh": build.tanh,
    "erf": build.erf,
    "cast": lambda x: build.cast(build.mul(build.cast(x, f16), 2.0), f32),
    "floor (no gradient)": lambda x: build.mul(x, build.floor(build.mul(3.0, x))),
    "sign (no gradient)": lambda x: build.mul(x, build.sign(x)),
    "x to 2": lambda x: build.pow_(x, 2),
    "x to 3": lambda x: build.pow_(x, 3),
    "x to 4.0": lambda x: build.pow_(x, 4.0),
    "positive to -1.5": lambda x: build.pow_(positive(x), -1.5),
    "2 to x": lambda x: build.pow_(2.0, x),
    "x four times": lambda x: build.mul(build.add(x, x), build.mul(x, x)),
}

BINARY: dict[str, Callable[[Node, Node], Node]] = {
    "add": build.add,
    "sub": build.sub,
    "mul": build.mul,
    "div": lambda a, b: build.div(a, positive(b)),
    "mod": lambda a, b: build.mod(build.mul(3.0, a), positive(b)),
    "pow": lambda a, b: build.pow_(positive(a), b),
    "max": build.maximum,
    "min": build.minimum,
    "where": lambda a, b: build.where(build.gt(a, 0.1), build.mul(a, b), build.sin(b)),
}

SHAPES = [(), (1,), (5,), (2, 3), (0,)]
PAIRS = [((3,), (3,)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((), (2, 2)), ((2, 0), (1, 1))]


def numbers(shape: tuple[int, ...], seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).normal(size=shape)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str, shape: tuple[int, ...]) -> None:
    check_gradients(UNARY[name], numbers(shape))


@pytest.mark.parametrize("shapes", PAIRS, ids=str)
@pytest.mark.parametrize("name", BINARY)
def test_binary(name: str, shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    check_gradients(BINARY[name], numbers(shapes[0], 1), numbers(shapes[1], 2))


@pytest.mark.parametrize(
    "shapes",
    [
        ((3, 4), (4, 2)),
        ((2, 3, 4), (2, 4, 5)),
        ((2, 3, 4), (4, 5)),
        ((3, 1, 2, 3), (2, 3, 1)),
        ((4,), (4, 3)),
        ((3, 4), (4,)),
        ((4,), (4,)),
        ((1, 1), (1, 1)),
        ((2, 0), (0, 3)),
        ((0, 3), (3, 2)),
    ],
    ids=str,
)
def test_matmul(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    check_gradients(build.matmul, numbers(shapes[0], 3), numbers(shapes[1], 4))


def test_an_integer_stops_the_gradient() -> None:
    check_gradients(
        lambda x: build.mul(x, build.cast(build.cast(build.mul(5.0, x), i32), f32)), numbers((4,))
    )


def test_detach_stops_the_gradient() -> None:
    from meganeura.autodiff import backward
    from tests.pure.autodiff.numeric import value_of

    x = build.input_("x", (3,))
    y = build.sum_(build.mul(x, build.detach(build.mul(x, x))))
    gradient = value_of(backward(y, [x])[x], {x: np.array([1.0, 2.0, 3.0])})
    assert gradient.tolist() == [1.0, 4.0, 9.0]


def gradient_at(function: Callable[[Node], Node], values: list[float]) -> list[float]:
    from meganeura.autodiff import backward
    from tests.pure.autodiff.numeric import value_of

    x = build.input_("x", (len(values),))
    gradient = backward(build.sum_(function(x)), [x])[x]
    result: list[float] = value_of(gradient, {x: np.array(values)}).tolist()
    return result


def test_gradients_where_there_is_a_kink() -> None:
    assert gradient_at(lambda x: build.maximum(x, 0.0), [-1.0, 0.0, 2.0]) == [0.0, 0.0, 1.0]
    assert gradient_at(build.abs_, [-1.0, 0.0, 2.0]) == [-1.0, 0.0, 1.0]
    assert gradient_at(lambda x: build.pow_(x, 1.5), [0.0, 4.0]) == [0.0, 3.0]
    assert gradient_at(lambda x: build.pow_(x, 0.0), [0.0, 4.0]) == [0.0, 0.0]
    assert gradient_at(lambda x: build.pow_(0.0, x), [1.0, 2.0]) == [0.0, 0.0]


def test_between_equals_the_second_takes_the_gradient() -> None:
    from meganeura.autodiff import backward
    from tests.pure.autodiff.numeric import value_of

    a, b = build.input_("a", (1,)), build.input_("b", (1,))
    for function in (build.maximum, build.minimum):
        found = backward(build.sum_(function(a, b)), [a, b])
        values = {a: np.ones(1), b: np.ones(1)}
        assert [value_of(found[n], values).item() for n in (a, b)] == [0.0, 1.0]
