"""Evaluating one expression, in float64 or as the device would, for the tests of the IR."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from meganeura.ir import build
from meganeura.ir.dtypes import of_array
from meganeura.ir.evaluate import evaluate_nodes
from meganeura.ir.graph import Node

Array = np.ndarray[Any, Any]
SHAPES: list[tuple[int, ...]] = [
    (),
    (1,),
    (3,),
    (5,),
    (17,),
    (127,),
    (0,),
    (2, 3, 5),
    (1, 17),
    (3, 0, 2),
]


def numbers(shape: tuple[int, ...], seed: int = 0) -> Array:
    """Normally distributed numbers that float32 holds exactly."""
    drawn = np.random.default_rng(seed).normal(size=shape)
    return np.asarray(drawn, np.float32).astype(np.float64)


def run(function: Callable[..., Node], *arrays: Array, real: Any = np.float64) -> Array:
    """The function's value on arrays that are fed, floats in `real`."""
    leaves = [
        build.input_(f"x{i}", np.shape(a), of_array(np.asarray(a))) for i, a in enumerate(arrays)
    ]
    node = function(*leaves)
    result = evaluate_nodes([node], dict(zip(leaves, arrays, strict=True)), real)[node]
    assert result.shape == node.shape, (result.shape, node.shape)
    expected = real if real is not None and node.dtype.is_float else node.dtype.numpy
    assert result.dtype == expected, (result.dtype, expected)
    return result


def agree(function: Callable[..., Node], oracle: Callable[..., Any], *arrays: Array) -> None:
    """The function equals the independent one in float64 closely, and in float32 as it can."""
    expected = np.asarray(oracle(*arrays))
    for real, tolerance in ((np.float64, 1e-6), (None, 3e-5)):
        with np.errstate(all="ignore"):
            value = run(function, *arrays, real=real)
        assert value.shape == expected.shape, (value.shape, expected.shape)
        np.testing.assert_allclose(value, expected, rtol=tolerance, atol=tolerance)
