"""Optimisers against their definitions in float64 NumPy, written down a second time."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from meganeura.errors import MeganeuraError, OptionError
from meganeura.ir import build
from meganeura.ir.evaluate import evaluate
from meganeura.ir.graph import Graph
from meganeura.train import optim
from meganeura.train.optim import SGD, Adam, AdamW, Optimizer, clip_by_norm, hyper_input
from meganeura.train.schedules import Cosine

Array = np.ndarray[Any, Any]
SHAPES = {"w": (3, 5), "b": (1,), "none": (0,)}


def _text(call: Callable[[], object]) -> str:
    with pytest.raises(MeganeuraError) as caught:
        call()
    return str(caught.value)


def _run(optimizer: Optimizer, steps: int) -> tuple[dict[str, Array], list[dict[str, Array]]]:
    """Parameters after some steps of the graph, evaluated in float64, and the gradients used."""
    params = [build.parameter(name, shape, None) for name, shape in SHAPES.items()]
    grads = [build.input_(f"d{name}", shape) for name, shape in SHAPES.items()]
    updates = optimizer.build(params, grads, hyper_input())
    graph = Graph(tuple((str(leaf.name), new) for leaf, new in updates))
    generator = np.random.default_rng(5)
    values = {str(leaf.name): np.zeros(leaf.shape) for leaf, _ in updates}
    values.update({name: generator.normal(size=shape) for name, shape in SHAPES.items()})
    history = []
    for step in range(steps):
        grads_now = {name: generator.normal(size=shape) for name, shape in SHAPES.items()}
        feeds = {f"d{name}": value for name, value in grads_now.items()}
        feeds |= {optim.HYPER: optimizer.table(step, 1)[0]}
        values |= evaluate(graph, {**values, **feeds}, np.float64)
        history.append(grads_now)
    return values, history


def _expected(rule: Callable[[str, Array, list[Array]], Array], history: Any) -> dict[str, Array]:
    generator = np.random.default_rng(5)
    start = {name: generator.normal(size=shape) for name, shape in SHAPES.items()}
    return {name: rule(name, start[name], [g[name] for g in history]) for name in SHAPES}


@pytest.mark.parametrize(("momentum", "nesterov"), [(0.0, False), (0.9, False), (0.9, True)])
@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_sgd(momentum: float, nesterov: bool, decay: float) -> None:
    values, history = _run(SGD(0.1, momentum, nesterov, decay), 4)

    def rule(name: str, p: Array, grads: list[Array]) -> Array:
        buffer: Array | None = None
        for grad in grads:
            g = grad + decay * p
            if momentum:
                buffer = g if buffer is None else momentum * buffer + g
                g = g + momentum * buffer if nesterov else buffer
            p = p - 0.1 * g
        return p

    for name, want in _expected(rule, history).items():
        np.testing.assert_allclose(values[name], want, rtol=1e-5)


def _adam(decay: float, apart: bool, lr: Callable[[int], float]) -> Any:
    def rule(name: str, p: Array, grads: list[Array]) -> Array:
        m, v = np.zeros_like(p), np.zeros_like(p)
        for t, grad in enumerate(grads, start=1):
            rate = lr(t - 1)
            g = grad if apart else grad + decay * p
            p = p * (1 - rate * decay) if apart else p
            m = 0.9 * m + 0.1 * g
            v = 0.999 * v + 0.001 * g * g
            denominator = np.sqrt(v) / math.sqrt(1 - 0.999**t) + 1e-8
            p = p - rate / (1 - 0.9**t) * m / denominator
        return p

    return rule


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_adam(decay: float) -> None:
    values, history = _run(Adam(0.01, weight_decay=decay), 5)
    for name, want in _expected(_adam(decay, False, lambda step: 0.01), history).items():
        np.testing.assert_allclose(values[name], want, rtol=1e-5)


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_adamw_with_a_schedule(decay: float) -> None:
    schedule = Cosine(0.05, 4, 0.01)
    values, history = _run(AdamW(schedule, weight_decay=decay), 5)
    for name, want in _expected(_adam(decay, True, schedule), history).items():
        np.testing.assert_allclose(values[name], want, rtol=1e-5)


def test_defaults_are_those_of_pytorch() -> None:
    assert SGD() == SGD(1e-3, 0.0, False, 0.0)
    assert Adam() == Adam(1e-3, (0.9, 0.999), 1e-8, 0.0)
    assert AdamW() == AdamW(1e-3, (0.9, 0.999), 1e-8, 1e-2)


def test_a_new_rate_is_the_same_structure() -> None:
    assert AdamW(0.1).structure == AdamW(lambda step: 0.2, weight_decay=0.3).structure
    assert AdamW(betas=(0.8, 0.99)).structure != AdamW().structure
    assert SGD().structure != SGD(momentum=0.9).structure


def test_updates_stand_in_the_scope_of_their_parameter() -> None:
    from meganeura import trace

    with trace.scope("hidden"):
        w = build.parameter("w", (2,), None)
    updates = AdamW().build([w], [build.input_("d", (2,))], hyper_input())
    assert [leaf.name for leaf, _ in updates] == ["w.m", "w.v", "w"]
    for _, new in updates:
        assert (new.origin.scope, new.origin.phase) == (("hidden",), "update")
        assert new.origin.forward is w


@pytest.mark.parametrize(("limit", "factor"), [(1.0, 1 / 13), (13.0, 1.0), (100.0, 1.0)])
def test_clipping_by_the_common_norm(limit: float, factor: float) -> None:
    a, b = build.input_("a", (2,)), build.input_("b", (1, 1))
    clipped = clip_by_norm([a, b], limit)
    graph = Graph((("a", clipped[0]), ("b", clipped[1])))
    found = evaluate(graph, {"a": [3.0, 4.0], "b": [[12.0]]}, np.float64)
    np.testing.assert_allclose(found["a"], np.array([3, 4]) * factor, rtol=1e-6)
    np.testing.assert_allclose(found["b"], [[12 * factor]], rtol=1e-6)


def test_clipping_nothing() -> None:
    assert clip_by_norm([], 1.0) == []


def test_refusals() -> None:
    assert _text(lambda: SGD(-1.0)) == "lr is out of range\n  expected: >= 0\n  got:      -1"
    assert _text(lambda: AdamW(betas=(0.9, 1.0))) == (
        "betas[1] is out of range\n  expected: >= 0 and < 1\n  got:      1"
    )
    assert _text(lambda: Adam(eps=float("nan"))) == (
        "eps is out of range\n  expected: >= 0\n  got:      nan"
    )
    assert _text(lambda: SGD(nesterov=True)) == (
        "nesterov needs momentum\n  expected: momentum > 0\n  got:      0"
    )
    assert _text(lambda: clip_by_norm([], 0.0)) == (
        "clip_norm is out of range\n  expected: > 0\n  got:      0"
    )
    with pytest.raises(OptionError):
        Adam(weight_decay=-1)
