"""Gradients of einsum, scans, ranks, images and order, in the middle of a graph, batch over 1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from meganeura.autodiff import backward
from meganeura.ir import build
from meganeura.ir import composites as c
from meganeura.ir.dtypes import i32
from meganeura.ir.graph import Node
from meganeura.tensor.indexing import indexed
from tests.pure.autodiff.numeric import central_differences, check_gradients, middle, value_of


def numbers(shape: tuple[int, ...], seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).normal(size=shape)


EQUATIONS: list[tuple[str, tuple[tuple[int, ...], ...]]] = [
    ("bij,bjk->bik", ((2, 2, 3), (2, 3, 2))),
    ("bhtd,bhsd->bhts", ((2, 1, 2, 3), (2, 1, 3, 3))),
    ("bii->ib", ((2, 3, 3),)),
    ("ij,k->i", ((2, 3), (2,))),
    ("bi,bi->bi", ((2, 3), (2, 3))),
    ("ij,jk,kl->li", ((2, 3), (3, 2), (2, 2))),
]


@pytest.mark.parametrize(("equation", "shapes"), EQUATIONS, ids=str)
def test_einsum(equation: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    arrays = [numbers(s, i) for i, s in enumerate(shapes)]
    check_gradients(lambda *n: c.einsum(equation, *n), *arrays)


BY_PLACE = build.constant([[[4], [9]], [[0], [1]], [[7], [300]]], i32)

ONE: dict[str, Callable[[Node], Node]] = {
    "cumsum": lambda x: c.cumsum(x, 2),
    "cumsum exclusive": lambda x: c.cumsum(x, 0, exclusive=True),
    "cumsum reverse": lambda x: c.cumsum(x, 1, reverse=True),
    "topk": lambda x: c.topk(x, 2)[0],
    "topk of another axis": lambda x: c.topk(x, 2, 0)[0],
    "flip": lambda x: c.flip(x, (0, 2)),
    "roll": lambda x: c.roll(x, (1, -1), (0, 2)),
    "roll as a line": lambda x: c.roll(x, 5),
    "tril": lambda x: c.tril(x, 1),
    "triu": c.triu,
    "where": lambda x: build.where(build.gt(indexed(x, (0, 0)), 0.0), x, build.mul(x, x)),
    "rotary": c.rotary_embedding,
    "rotary interleaved": lambda x: c.rotary_embedding(x, None, 100.0, True),
    "rotary by position": lambda x: c.rotary_embedding(x, build.reshape(BY_PLACE, (3, 2))),
    "nearest": lambda x: c.resize(x, (3, 5)),
    "nearest repeated": lambda x: c.resize(x, (4, 8)),
    "bilinear": lambda x: c.resize(x, (3, 5), "bilinear"),
    "bilinear by corners": lambda x: c.resize(x, (5, 3), "bilinear", True),
    "adaptive_avg_pool2d": lambda x: c.adaptive_avg_pool2d(x, (2, 3)),
    "adaptive_avg_pool2d in tiles": lambda x: c.adaptive_avg_pool2d(x, (1, 2)),
    "steps": lambda x: indexed(x, (slice(None, None, -2), None, Ellipsis, slice(3, 0, -2))),
    "one element": lambda x: indexed(x, (slice(None), -1, slice(1, None, 2), None)),
}


@pytest.mark.parametrize("name", ONE)
def test_functions_of_one_tensor(name: str) -> None:
    check_gradients(ONE[name], numbers((3, 2, 4)))


def test_a_long_cumsum_and_a_long_topk() -> None:
    check_gradients(lambda x: c.cumsum(x, 1), numbers((2, 67)), order=1)
    check_gradients(lambda x: c.topk(x, 3)[0], numbers((2, 67)), order=1)


def test_topk_gives_the_gradient_to_the_first_of_equals() -> None:
    for n in (6, 70):
        x = build.input_("x", (n,))
        values = {x: np.array([1.0, 3.0, 3.0, 2.0, 3.0, 0.0] + [-1.0] * (n - 6))}
        first, second = (indexed(c.topk(x, 2)[0], i) for i in (0, 1))
        loss = build.add(build.mul(5.0, first), build.mul(7.0, second))
        found = value_of(backward(loss, [x])[x], values)
        assert found.tolist() == [0, 5, 7] + [0] * (n - 3)


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"stride": (2, 1), "padding": ((1, 0), (0, 1)), "output_padding": (1, 0)},
        {"groups": 2, "dilation": 2},
    ],
    ids=str,
)
def test_conv_transpose2d(how: dict[str, Any]) -> None:
    x, w = numbers((2, 2, 2, 3), 1), numbers((2, 1, 2, 2), 2)
    check_gradients(lambda x, w: c.conv_transpose2d(x, w, **how), x, w)


def test_rows_that_are_read_several_times_or_never() -> None:
    """The gradient of a table: the sum over those who read a row; the nearest row out of range."""
    index = np.array([[1, 4, 1], [1, 0, 99], [-3, 4, 1]], np.int32)
    table, rows = build.input_("table", (6, 2)), build.input_("rows", index.shape, i32)
    values = {table: numbers((6, 2)), rows: index}
    scalar = middle(lambda t: build.gather(t, rows, 0), [table])
    found = value_of(backward(scalar, [table])[table], values)
    expected = central_differences(scalar, table, values)
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6)
    assert (found[[2, 3]] == 0).all()
    plain = backward(build.sum_(build.gather(table, rows, 0)), [table])[table]
    assert value_of(plain, values)[:, 0].tolist() == [2, 4, 0, 0, 2, 1]


def test_scatter_add_of_repeated_and_strange_places() -> None:
    index = np.array([1, 1, -1, 3, 1, 2], np.int32)
    updates, places = build.input_("u", (2, 6)), build.input_("i", (6,), i32)
    values = {updates: numbers((2, 6)), places: index}
    scalar = middle(lambda u: build.scatter_add(u, places, 3, 1), [updates])
    found = value_of(backward(scalar, [updates])[updates], values)
    expected = central_differences(scalar, updates, values)
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6)
    assert (found[:, [2, 3]] == 0).all() and (found[:, [0, 1, 4, 5]] != 0).all()
