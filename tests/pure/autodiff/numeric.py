"""Checking gradients: central differences on the same graph, in float64, element by element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from meganeura.autodiff import backward
from meganeura.ir import build
from meganeura.ir.evaluate import evaluate_nodes
from meganeura.ir.graph import Node

Array = np.ndarray[Any, Any]
Function = Callable[..., Node]

STEP = 1e-5
RNG_SEED = 20260


def value_of(node: Node, values: dict[Node, Array]) -> Array:
    """The value of one node, floats in float64."""
    return evaluate_nodes([node], values, np.float64)[node]


def central_differences(scalar: Node, leaf: Node, values: dict[Node, Array]) -> Array:
    """How the scalar changes with each element of the leaf."""
    start = np.array(values[leaf], np.float64)
    result = np.zeros(start.shape)
    for place in np.ndindex(*start.shape):
        sides = []
        for sign in (1.0, -1.0):
            moved = start.copy()
            moved[place] += sign * STEP
            sides.append(float(value_of(scalar, {**values, leaf: moved})))
        result[place] = (sides[0] - sides[1]) / (2.0 * STEP)
    return result


def middle(function: Function, leaves: Sequence[Node]) -> Node:
    """The function in the middle of a graph: a coefficient and a nonlinearity on either side."""
    before = [
        build.add(build.mul(0.9, x), build.mul(0.25, build.sin(build.mul(1.7, x)))) for x in leaves
    ]
    y = function(*before)
    weights = np.random.default_rng(RNG_SEED).normal(size=y.shape)
    after = build.add(build.mul(1.3, build.tanh(build.mul(0.4, y))), build.mul(0.2, y))
    return build.mul(0.7, build.sum_(build.mul(after, weights)))


def check_gradients(
    function: Function, *arrays: Array, order: int = 2, tolerance: float = 2e-6
) -> None:
    """Every gradient of the function, of both orders, against central differences."""
    leaves = [build.input_(f"x{i}", np.shape(a)) for i, a in enumerate(arrays)]
    values = {n: np.array(a, np.float64) for n, a in zip(leaves, arrays, strict=True)}
    scalar = middle(function, leaves)
    for turn in range(order):
        found = backward(scalar, leaves)
        for leaf in leaves:
            assert found[leaf].shape == leaf.shape
            assert found[leaf].dtype is leaf.dtype
            expected = central_differences(scalar, leaf, values)
            scale = max(1.0, float(np.abs(expected).max(initial=0.0)))
            np.testing.assert_allclose(
                value_of(found[leaf], values), expected, rtol=0, atol=tolerance * scale
            )
        if turn + 1 < order:
            rng = np.random.default_rng(RNG_SEED + 1)
            parts = [
                build.sum_(build.mul(build.sin(g), rng.normal(size=g.shape)))
                for g in found.values()
            ]
            scalar = parts[0]
            for part in parts[1:]:
                scalar = build.add(scalar, part)
