"""Leaves written in place, beside the NumPy device, which writes none in place."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import meganeura as mg
from meganeura.compiler import compile_program
from meganeura.ir.graph import Array, Graph
from meganeura.runtime.stepper import GpuStepper
from meganeura.train.optim import SGD
from meganeura.train.step import step_graph
from tests.device.support import device


def stepped(graph: Graph, on: Any, first: dict[str, Array]) -> dict[str, Array]:
    """All parameters after three steps."""
    program = compile_program(graph, kind="training step", device=on)
    program.set_parameters(first)
    rng = np.random.default_rng(0)
    stepper = program.stepper()
    for _ in range(3):
        stepper.push({"x": rng.normal(size=(6, 3, 5, 5)), "meganeura.hyper": np.full(8, 0.5)})
    stepper.wait()
    return program.parameters


def test_a_batch_norm_trains_with_the_scale_before_its_update() -> None:
    x = mg.nn.conv2d(mg.input("x", (6, 3, 5, 5)), 4, 3, padding=1, name="c")
    loss = mg.mean(mg.tanh(mg.nn.batch_norm(x, name="n")) ** 2)
    graph = step_graph(Graph((("loss", loss.node),)), "loss", SGD(0.1))
    first = {"n.w": np.array([0.5, 1.5, -1.0, 2.0], np.float32)}
    got, want = stepped(graph, device(), first), stepped(graph, "numpy", first)
    for name in want:
        np.testing.assert_allclose(got[name], want[name], rtol=1e-4, atol=1e-6)


def test_calls_and_writes_come_after_the_steps_pushed_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Steps are submitted by a second thread; what the first thread does next waits for them."""
    x = mg.input("x", (4, 256))
    loss = mg.sum(x @ mg.parameter("w", (256, 256), 0.0))
    graph = Graph((("loss", loss.node),))
    trained = compile_program(
        step_graph(graph, "loss", SGD(1.0)), kind="training step", device=device()
    )
    called = compile_program(graph, device=device(), store=trained.store)
    ones = np.ones((4, 256), np.float32)
    stepper = trained.stepper(slots=4)
    assert isinstance(stepper, GpuStepper)
    send = stepper._send

    def late(*submission: Any) -> None:
        time.sleep(0.05)
        send(*submission)

    monkeypatch.setattr(stepper, "_send", late)
    for _ in range(8):
        stepper.push({"x": ones, "meganeura.hyper": np.full(8, 0.5)})
    assert called(x=ones) == np.float32(-8 * 0.5 * 4 * 4 * 256 * 256)
    for _ in range(4):
        stepper.push({"x": ones, "meganeura.hyper": np.full(8, 0.5)})
    trained.set_parameters({"w": np.zeros((256, 256))})
    assert not trained.parameters["w"].any()
