"""Composites: gradients in the middle of a graph, batch over 1, and at the places that are hard."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from meganeura.autodiff import backward
from meganeura.ir import build
from meganeura.ir import composites as c
from meganeura.ir.dtypes import i32
from meganeura.ir.evaluate import evaluate_nodes
from meganeura.ir.graph import Graph, Node
from meganeura.ir.mode import bind
from tests.pure.autodiff.numeric import central_differences, check_gradients, middle, value_of


def numbers(shape: tuple[int, ...], seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).normal(size=shape)


LABELS = build.constant([[0, 2], [3, 3], [1, 0]], i32)

ONE: dict[str, Callable[[Node], Node]] = {
    "relu": c.relu,
    "sigmoid": c.sigmoid,
    "silu": c.silu,
    "gelu by erf": c.gelu,
    "gelu by tanh": lambda x: c.gelu(x, "tanh"),
    "softplus": c.softplus,
    "softmax": c.softmax,
    "softmax of another axis": lambda x: c.softmax(x, 0),
    "log_softmax": c.log_softmax,
    "logsumexp": c.logsumexp,
    "logsumexp of two axes": lambda x: c.logsumexp(x, (0, 2), keepdims=True),
    "var": lambda x: c.var(x, 1, correction=1),
    "cross_entropy": lambda x: c.cross_entropy(x, LABELS),
    "cross_entropy sum": lambda x: c.cross_entropy(x, LABELS, "sum"),
    "cross_entropy none": lambda x: c.cross_entropy(x, LABELS, "none"),
    "layer_norm": c.layer_norm,
    "layer_norm of two axes": lambda x: c.layer_norm(x, axes=2),
    "rms_norm": c.rms_norm,
    "group_norm": lambda x: c.group_norm(build.permute(x, (0, 2, 1)), 2),
    "max_pool2d": lambda x: c.max_pool2d(x, 2, 1),
    "max_pool2d padded": lambda x: c.max_pool2d(x, 2, 2, 1),
    "max_pool2d dilated": lambda x: c.max_pool2d(x, (1, 2), 1, 0, (1, 2)),
    "avg_pool2d": lambda x: c.avg_pool2d(x, (2, 3), 1),
    "avg_pool2d padded": lambda x: c.avg_pool2d(x, 2, 2, 1),
    "avg_pool2d without padding": lambda x: c.avg_pool2d(x, 2, 2, 1, count_include_pad=False),
}


@pytest.mark.parametrize("name", ONE)
def test_composites_of_one_tensor(name: str) -> None:
    check_gradients(ONE[name], numbers((3, 2, 4)), tolerance=5e-6)


@pytest.mark.parametrize("loss", [c.bce_with_logits, c.mse, c.l1])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_losses(loss: Any, reduction: str) -> None:
    check_gradients(lambda a, b: loss(a, b, reduction), numbers((3, 2), 1), numbers((3, 2), 2))


def test_norms_by_their_scales() -> None:
    x, w, b = numbers((3, 4), 1), numbers((4,), 2), numbers((4,), 3)
    check_gradients(c.layer_norm, x, w, b, tolerance=5e-6)
    check_gradients(c.rms_norm, x, w, tolerance=5e-6)
    image = numbers((2, 4, 2, 2), 4)
    check_gradients(lambda x, w, b: c.group_norm(x, 2, w, b), image, w, b, tolerance=5e-6)


@pytest.mark.parametrize("training", [True, False])
def test_batch_norm(training: bool) -> None:
    mean = build.parameter("mean", (3,), None, trainable=False)
    var = build.parameter("var", (3,), None, trainable=False)
    leaves = [build.input_(n, s) for n, s in (("x", (4, 3, 2)), ("w", (3,)), ("b", (3,)))]
    scalar = middle(lambda x, w, b: c.batch_norm(x, w, b, mean, var), leaves)
    found = backward(scalar, leaves)
    graph = bind(Graph((("loss", scalar), *((n.name or "", found[n]) for n in leaves))), training)
    nodes = dict(graph.outputs)
    values = {n: numbers(n.shape, i) for i, n in enumerate(leaves)}
    values |= {mean: numbers((3,), 7), var: np.array([0.5, 1.5, 2.0])}
    for leaf in leaves:
        expected = central_differences(nodes["loss"], leaf, values)
        gradient = value_of(nodes[leaf.name or ""], values)
        np.testing.assert_allclose(gradient, expected, rtol=0, atol=5e-6)


def test_dropout_passes_the_gradient_of_what_it_keeps() -> None:
    x = build.input_("x", (64,))
    scalar = middle(lambda x: c.dropout(x, 0.3), [x])
    graph = bind(Graph((("loss", scalar), ("g", backward(scalar, [x])[x]))), training=True)
    nodes = dict(graph.outputs)
    values = {x: numbers((64,)), build.seed(): np.array(5, np.uint32)}
    gradient = value_of(nodes["g"], values)
    expected = central_differences(nodes["loss"], x, values)
    np.testing.assert_allclose(gradient, expected, rtol=0, atol=1e-6)
    assert 5 < (gradient == 0).sum() < 35


def gradient32(function: Callable[[Node], Node], values: list[float]) -> list[float]:
    """The gradient of the sum, in float32 as the device computes it."""
    x = build.input_("x", (len(values),))
    found = backward(build.sum_(function(x)), [x])[x]
    result: list[float] = evaluate_nodes([found], {x: values})[found].tolist()
    return result


def test_gradients_at_zero() -> None:
    assert gradient32(c.softplus, [0.0]) == [0.5]
    assert gradient32(c.sigmoid, [0.0]) == [0.25]
    assert gradient32(c.silu, [0.0]) == [0.5]
    assert gradient32(c.gelu, [0.0]) == [0.5]
    assert gradient32(lambda x: c.bce_with_logits(x, np.ones(1)), [0.0]) == [-0.5]


def test_gradients_far_from_zero_are_finite_in_float32() -> None:
    far = [-1e4, -100.0, 100.0, 1e4]
    assert gradient32(c.sigmoid, far) == pytest.approx([0.0] * 4, abs=1e-30)
    assert gradient32(c.softplus, far) == [0.0, pytest.approx(np.exp(-100.0), abs=1e-44), 1.0, 1.0]
    assert gradient32(c.silu, far) == pytest.approx([0.0, 0.0, 1.0, 1.0], abs=1e-30)
    for function in (c.gelu, lambda x: c.gelu(x, "tanh")):
        assert np.isfinite(gradient32(function, far)).all()
    assert np.isfinite(gradient32(lambda x: c.log_softmax(x), far)).all()


def test_doubling_a_coefficient_doubles_the_gradients() -> None:
    x = build.input_("x", (3, 4))
    labels = build.constant([0, 1, 3], i32)
    values = {x: numbers((3, 4))}
    losses: list[Callable[[Node], Node]] = [
        build.sum_,
        build.mean,
        lambda x: c.cross_entropy(x, labels),
        lambda x: c.bce_with_logits(x, np.ones((3, 4))),
        lambda x: c.mse(x, np.ones((3, 4))),
    ]
    for loss in losses:
        once, twice = (
            value_of(backward(build.mul(k, loss(build.sin(x))), [x])[x], values) for k in (0.5, 1.0)
        )
        np.testing.assert_array_equal(twice, 2 * once)
        assert np.abs(once).max() > 0
