"""Layers: what they compute, what their parameters are called, how these start."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import meganeura as mg
from meganeura.errors import NameClashError, ShapeError
from meganeura.ir.evaluate import evaluate_nodes
from meganeura.ir.graph import Graph
from meganeura.ir.initial import first_value
from meganeura.ir.mode import bind
from meganeura.ir.spec import check
from meganeura.tensor import graph_of

Array = np.ndarray[Any, Any]


def numbers(shape: tuple[int, ...], seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=shape)


def run(tensor: mg.Tensor, x: Array) -> tuple[Array, dict[str, Array]]:
    """The value for the input "x", and the first values of the parameters."""
    graph = bind(graph_of({"y": tensor}), training=False)
    check(graph, bound=True)
    first = {str(n.name): first_value(n, seed=3).astype(np.float64) for n in graph.parameters}
    values: dict[Any, Any] = {n: first[str(n.name)] for n in graph.parameters}
    values |= dict.fromkeys(graph.inputs, x)
    node = graph.outputs[0][1]
    return evaluate_nodes([node], values, np.float64)[node], first


def test_linear() -> None:
    x = numbers((2, 5, 7))
    y, p = run(mg.nn.linear(mg.input("x", (2, 5, 7)), 3, name="out"), x)
    assert {k: v.shape for k, v in p.items()} == {"out.w": (7, 3), "out.b": (3,)}
    np.testing.assert_allclose(y, x @ p["out.w"] + p["out.b"])
    for v in p.values():
        assert 0 < np.abs(v).max() <= 1 / 7**0.5
    y, p = run(mg.nn.linear(mg.input("x", (2, 5, 7)), 3, name="out", bias=False), x)
    assert list(p) == ["out.w"]
    y, p = run(mg.nn.linear(mg.input("x", (2, 5, 7)), 3, name="out", init=0.5), x)
    assert (p["out.w"] == 0.5).all()


def test_conv2d() -> None:
    x = numbers((2, 4, 5, 5))
    layer = mg.nn.conv2d(mg.input("x", (2, 4, 5, 5)), 6, 3, name="c", stride=2, padding=1, groups=2)
    y, p = run(layer, x)
    assert {k: v.shape for k, v in p.items()} == {"c.w": (6, 2, 3, 3), "c.b": (6,)}
    assert y.shape == (2, 6, 3, 3)
    window = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))[1, 2:, 2:5, 4:7]
    expected = (window * p["c.w"][4]).sum() + p["c.b"][4]
    np.testing.assert_allclose(y[1, 4, 1, 2], expected)
    assert np.abs(p["c.w"]).max() <= 1 / 18**0.5
    _, p = run(mg.nn.conv2d(mg.input("x", (2, 4, 5, 5)), 6, (1, 1), name="c", bias=False), x)
    assert {k: v.shape for k, v in p.items()} == {"c.w": (6, 4, 1, 1)}


def test_embedding() -> None:
    index = mg.constant([[1, 0], [4, 1]])
    y, p = run(mg.nn.embedding(index, 5, 3, name="tokens"), np.zeros(0))
    np.testing.assert_array_equal(y, p["tokens.w"][[[1, 0], [4, 1]]])


def test_norms() -> None:
    x = numbers((3, 4))
    y, p = run(mg.nn.layer_norm(mg.input("x", (3, 4)), name="n"), x)
    assert sorted(p) == ["n.b", "n.w"]
    np.testing.assert_allclose(y.mean(-1), 0, atol=1e-7)
    np.testing.assert_allclose(y.var(-1), 1, atol=1e-3)
    y, p = run(mg.nn.layer_norm(mg.input("x", (3, 4)), name="n", bias=False), x)
    assert sorted(p) == ["n.w"]
    y, p = run(mg.nn.rms_norm(mg.input("x", (3, 4)), name="n"), x)
    assert sorted(p) == ["n.w"]
    np.testing.assert_allclose((y**2).mean(-1), 1, atol=1e-3)
    y, p = run(mg.nn.group_norm(mg.input("x", (3, 4, 2)), 2, name="n"), numbers((3, 4, 2)))
    np.testing.assert_allclose(y.reshape(3, 2, 4).mean(-1), 0, atol=1e-7)
    y, p = run(mg.nn.batch_norm(mg.input("x", (3, 4)), name="n"), x)
    assert sorted(p) == ["n.b", "n.mean", "n.var", "n.w"]
    np.testing.assert_allclose(y, x / np.sqrt(1 + 1e-5))


def test_statistics_are_not_trained() -> None:
    graph = graph_of(mg.nn.batch_norm(mg.input("x", (3, 4)), name="n"))
    trained = {n.name: n.attr("trainable") for n in graph.parameters}
    assert trained == {"n.w": True, "n.b": True, "n.mean": False, "n.var": False}
    bound = bind(graph, training=True)
    assert [leaf.name for leaf, _ in bound.updates] == ["n.mean", "n.var"]


def test_dropout_in_inference_is_nothing() -> None:
    x = numbers((9,))
    y, _ = run(mg.nn.dropout(mg.input("x", (9,))), x)
    np.testing.assert_array_equal(y, x)


def test_names_nest_with_scopes() -> None:
    with mg.scope("block1"):
        y = mg.nn.linear(mg.input("x", (2, 3)), 4, name="up")
    assert [n.name for n in graph_of(y).parameters] == ["block1.up.w", "block1.up.b"]
    assert y.node.origin.scope == ("block1", "up")


def test_two_layers_of_one_name() -> None:
    x = mg.input("x", (2, 3))
    h = mg.nn.linear(x, 3, name="fc")
    y = mg.nn.linear(h, 3, name="fc")
    with pytest.raises(NameClashError) as raised:
        graph_of(y)
    lines = str(raised.value).splitlines()
    assert lines[0] == "two parameters are named 'fc.w'"
    assert 'h = mg.nn.linear(x, 3, name="fc")' in lines[3]
    assert 'y = mg.nn.linear(h, 3, name="fc")' in lines[3]


MISFITS: list[tuple[Callable[[], mg.Tensor], list[str]]] = [
    (
        lambda: mg.nn.conv2d(mg.input("x", (3, 5, 5)), 6, 3, name="c"),
        ["conv2d of [3, 5, 5]", "  expected: [N, C, H, W]", "  got:      [3, 5, 5]"],
    ),
    (
        lambda: mg.nn.linear(mg.constant(1.0), 3, name="fc"),
        ["linear of []", "  expected: [..., inputs]", "  got:      []"],
    ),
    (
        lambda: mg.nn.batch_norm(mg.input("x", (3,)), name="n"),
        ["batch_norm of [3]", "  expected: [N, C, ...]", "  got:      [3]"],
    ),
]


@pytest.mark.parametrize(("make", "expected"), MISFITS)
def test_what_does_not_fit(make: Any, expected: list[str]) -> None:
    with pytest.raises(ShapeError) as raised:
        make()
    lines = str(raised.value).splitlines()
    assert lines[1].startswith("  where:    test_layers.py, line ")
    assert [lines[0], *lines[2:]] == expected


def digits_like(n: int) -> tuple[Array, Array]:
    labels = np.arange(n) % 3
    return numbers((n, 8)) * 0.3 + np.eye(3, 8)[labels], labels.astype(np.int32)


def test_an_mlp_learns_in_numpy() -> None:
    """Gradient descent by hand over the graph of loss and gradients, with real first values."""
    images, labels = digits_like(30)
    x, y = mg.input("x", (30, 8)), mg.input("y", (30,), mg.i32)
    h = mg.relu(mg.nn.linear(x, 16, name="hidden"))
    loss = mg.cross_entropy(mg.nn.linear(h, 3, name="out"), y)
    weights = [mg.Tensor(n) for n in graph_of(loss).parameters]
    gradients = mg.grad(loss, weights)
    graph = check(
        Graph(
            (
                ("loss", loss.node),
                *((str(w.name), g.node) for w, g in zip(weights, gradients, strict=True)),
            )
        )
    )
    values: dict[Any, Any] = {x.node: images, y.node: labels}
    values |= {w.node: first_value(w.node) for w in weights}
    losses = []
    for _ in range(60):
        found = evaluate_nodes(graph.roots, values)
        losses.append(float(found[loss.node]))
        for w, g in zip(weights, gradients, strict=True):
            values[w.node] = values[w.node] - 0.5 * found[g.node]
    assert losses[0] == pytest.approx(np.log(3), abs=0.3)
    assert losses[-1] < 0.05
