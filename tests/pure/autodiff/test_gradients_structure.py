"""Reductions, views, convolutions, gathers: gradients in the middle of a graph, batch over 1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from meganeura.autodiff import backward
from meganeura.ir import build
from meganeura.ir.composites import concat, split, stack
from meganeura.ir.graph import Node
from meganeura.tensor.indexing import indexed
from tests.pure.autodiff.numeric import check_gradients, value_of


def numbers(shape: tuple[int, ...], seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).normal(size=shape)


REDUCTIONS = {"sum": build.sum_, "mean": build.mean, "max": build.max_, "min": build.min_}
AXES: list[Any] = [None, 0, -1, (0, 2), (1, 2), (0, 1, 2), ()]


@pytest.mark.parametrize("axes", AXES, ids=str)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name: str, axes: Any) -> None:
    check_gradients(lambda x: REDUCTIONS[name](x, axes), numbers((2, 3, 4)))


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_keep_axes_and_take_empty_ones(name: str) -> None:
    check_gradients(lambda x: REDUCTIONS[name](x, 1, keepdims=True), numbers((2, 3)))
    if name != "mean":
        check_gradients(lambda x: REDUCTIONS[name](x, 1), numbers((2, 0)))
    check_gradients(lambda x: REDUCTIONS[name](x, 1), numbers((0, 2)))


@pytest.mark.parametrize("reduce", [build.max_, build.min_])
def test_the_first_of_equal_extrema_takes_the_gradient(reduce: Any) -> None:
    x = build.input_("x", (2, 2, 2))
    found = backward(build.sum_(reduce(x, (0, 2))), [x])[x]
    gradient = value_of(found, {x: np.ones((2, 2, 2))})
    assert gradient.tolist() == [[[1, 0], [1, 0]], [[0, 0], [0, 0]]]


VIEWS: dict[str, Callable[[Node], Node]] = {
    "reshape": lambda x: build.reshape(x, (4, -1)),
    "permute": lambda x: build.permute(x, (2, 0, 1)),
    "expand": lambda x: build.broadcast_to(build.reshape(x, (1, 2, 3, 4, 1)), (2, 2, 3, 4, 2)),
    "pad": lambda x: build.pad(x, (0, 1, 2), (1, 0, 3), 0.5),
    "one element": lambda x: indexed(x, (1, 2, 3)),
    "one row": lambda x: indexed(x, 1),
    "slice": lambda x: indexed(x, (slice(None), slice(1, 3), slice(2))),
    "step 2": lambda x: indexed(x, (slice(None), slice(0, 3, 2), slice(1, None, 2))),
    "step 3": lambda x: indexed(x, (Ellipsis, slice(None, None, 3))),
    "step -1": lambda x: indexed(x, (slice(None, None, -1), Ellipsis, slice(None, None, -1))),
    "step -2": lambda x: indexed(x, (slice(None), slice(None, None, -2), slice(2, 0, -2))),
    "no element": lambda x: indexed(x, (slice(None), slice(2, 1), slice(3, 0))),
    "new axis": lambda x: indexed(x, (None, Ellipsis, None, 0)),
    "concat": lambda x: concat([x, build.sin(x), x], 1),
    "stack": lambda x: stack([x, build.exp(x)], -1),
    "split": lambda x: build.mul(*split(x, [2, 2], 2)),
    "rows": lambda x: build.gather(x, [1, 0, 1]),
    "columns": lambda x: build.gather(x, [[3, 3], [0, 1]], 2),
    "rows out of range": lambda x: build.gather(x, [-5, 9, 1], 1),
    "scatter_add": lambda x: build.scatter_add(x, [2, 0, 2], 4, 1),
    "scatter_add out of range": lambda x: build.scatter_add(x, [-1, 0, 7], 2, 1),
    "scatter_add over two axes": lambda x: build.scatter_add(x, [[0, 1, 2], [2, 2, 2]], 3, 0),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_and_gathers(name: str) -> None:
    check_gradients(VIEWS[name], numbers((2, 3, 4)))


@pytest.mark.parametrize("name", ["reshape", "permute", "pad", "concat", "step -1"])
def test_views_of_nothing(name: str) -> None:
    check_gradients(VIEWS[name], numbers((2, 0, 4)))


WINDOWS: list[Any] = [
    ((2,), (1,), ((0, 0),), (1,)),
    ((3,), (2,), ((1, 0),), (1,)),
    ((2,), (3,), ((0, 2),), (2,)),
    ((2, 2), (1, 1), ((0, 0), (0, 0)), (1, 1)),
    ((2, 3), (2, 1), ((1, 0), (0, 1)), (1, 1)),
    ((2, 2), (1, 2), ((0, 1), (1, 1)), (2, 1)),
    ((1, 1), (2, 2), ((0, 0), (0, 0)), (1, 1)),
]


@pytest.mark.parametrize("geometry", WINDOWS, ids=str)
def test_windows_and_their_reverse(geometry: Any) -> None:
    size, stride, padding, dilation = geometry
    x = numbers((2, 4, 3) if len(size) == 2 else (2, 5))
    check_gradients(lambda x: build.windows(x, size, stride, padding, dilation), x)

    seen = build.windows(build.input_("x", x.shape), size, stride, padding, dilation)

    def back(g: Node) -> Node:
        shape = x.shape[-len(size) :]
        return build.apply(
            "unwindows", g, shape=shape, stride=stride, padding=padding, dilation=dilation
        )

    check_gradients(back, numbers(seen.shape), order=2 if len(size) == 1 else 1)


CONVOLUTIONS: list[Any] = [
    # image, filters, stride, padding, dilation, groups
    ((2, 2, 3, 3), (3, 2, 1, 1), 1, 0, 1, 1),
    ((2, 2, 4, 3), (2, 2, 3, 2), 1, 1, 1, 1),
    ((1, 2, 5, 5), (2, 2, 3, 3), 2, 1, 1, 1),
    ((2, 1, 5, 4), (1, 1, 2, 2), (2, 1), ((0, 1), (2, 0)), (1, 2), 1),
    ((2, 4, 3, 3), (4, 2, 2, 2), 1, 0, 1, 2),
    ((1, 3, 3, 3), (3, 1, 2, 2), 1, (1, 0), 1, 3),
    ((1, 1, 6, 6), (1, 1, 2, 2), 3, 0, 2, 1),
    ((0, 2, 3, 3), (2, 2, 2, 2), 1, 0, 1, 1),
]


@pytest.mark.parametrize("case", CONVOLUTIONS, ids=str)
def test_conv2d(case: Any) -> None:
    image, filters, stride, padding, dilation, groups = case

    def convolve(x: Node, w: Node) -> Node:
        return build.conv2d(x, w, stride, padding, dilation, groups)

    check_gradients(convolve, numbers(image, 5), numbers(filters, 6))
