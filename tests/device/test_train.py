"""Training and profiling on every adapter of this machine, against the NumPy device."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import meganeura as mg
from meganeura.compiler import compile_program
from meganeura.errors import DeviceLostError, NonFiniteError
from meganeura.ir.graph import Graph
from meganeura.profile.measure import profile
from meganeura.profile.peaks import measure_peaks
from meganeura.runtime.adapters import devices
from meganeura.train import checkpoint, data
from meganeura.train.loop import train
from meganeura.train.metrics import Accuracy
from meganeura.train.optim import SGD, AdamW
from meganeura.train.run import Progress, Run

Array = np.ndarray[Any, Any]
ADAPTERS = [d.name for d in devices() if d.adapter is not None and d.target is not None]
ROWS = 32

pytestmark = pytest.mark.skipif(not ADAPTERS, reason="no Vulkan or Metal adapter")


@pytest.fixture(params=ADAPTERS or ["none"])
def adapter(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def _mlp(device: str, dropout: float = 0.0) -> Any:
    """64-16-10 on rows of 64; the user's API, as in a cell."""
    x = mg.input("x", (ROWS, 64))
    y = mg.input("y", (ROWS,), mg.i32)
    h = mg.relu(mg.nn.linear(x, 16, name="hidden"))
    h = mg.nn.dropout(h, dropout) if dropout else h
    logits = mg.nn.linear(h, 10, name="out")
    outputs = (("loss", mg.cross_entropy(logits, y).node), ("logits", logits.node))
    return compile_program(Graph(outputs), name="mlp", device=device)


def _points() -> data.Dataset:
    generator = np.random.default_rng(0)
    y = generator.integers(0, 10, 300).astype(np.int32)
    centres = generator.normal(size=(10, 64))
    x = centres[y] + generator.normal(size=(300, 64))
    return data.Dataset(x.astype(np.float32), y)


def _train(program: Any, steps: int, **changes: Any) -> Run:
    settings: dict[str, Any] = {
        "data": data.batches(_points(), ROWS),
        "loss": "loss",
        "optimizer": AdamW(3e-3),
        "progress": False,
    }
    return train(program, steps=steps, **{**settings, **changes})


def test_a_hundred_losses_are_those_of_numpy(adapter: str) -> None:
    options: dict[str, Any] = {"clip_norm": 1.0, "seed": 3}
    run = _train(_mlp(adapter, dropout=0.2), 100, **options)
    oracle = _train(_mlp("numpy", dropout=0.2), 100, **options)
    assert run.history.losses[-1] < 0.5 * run.history.losses[0]
    np.testing.assert_allclose(run.history.losses, oracle.history.losses, rtol=1e-3)


@pytest.mark.parametrize(("clip", "most"), [(None, 14), (1.0, 18)])
def test_a_step_has_few_launches(adapter: str, clip: float | None, most: int) -> None:
    """With clipping every update waits for all gradients, which must be stored first."""
    run = _train(_mlp(adapter), 1, clip_norm=clip)
    assert len(run.step_program.schedule.launches) <= most


def test_a_checkpoint_resumes_bit_for_bit(adapter: str, tmp_path: Path) -> None:
    whole = _train(_mlp(adapter, 0.2), 20, seed=5)
    path = tmp_path / "half.safetensors"
    _train(_mlp(adapter, 0.2), 10, seed=5, checkpoint=path)
    rest = _train(_mlp(adapter, 0.2), 10, resume=path)
    np.testing.assert_array_equal(rest.history.losses, whole.history.losses[10:])
    assert rest.state.keys() == whole.state.keys()
    for name, value in whole.state.items():
        np.testing.assert_array_equal(rest.state[name], value, err_msg=name)
    other = _mlp(adapter, 0.2)
    assert checkpoint.load(other, path).step == 10
    _train(other, 10, resume=path)
    for name, value in whole.parameters.items():
        np.testing.assert_array_equal(other.parameters[name], value, err_msg=name)


def test_the_program_itself_sees_the_new_parameters(adapter: str) -> None:
    program = _mlp(adapter)
    points = _points()
    run = _train(program, 60, validation=points, metrics={"accuracy": Accuracy()})
    first, last = run.metrics["accuracy"].values[[0, -1]]
    assert last > max(float(first), 0.9)
    feeds = {"x": points.x[:ROWS], "y": points.y[:ROWS]}
    assert float(program(**feeds)["loss"]) < 0.5 * run.history.losses[0]


def test_a_loss_that_is_not_finite_is_named(adapter: str) -> None:
    """Steps that are far too long: w grows 20,000 times a step, until a sum overflows."""
    x = mg.input("x", (4,))
    w = mg.parameter("w", (4,), init=1.0)
    y = w * x
    loss = mg.mean(y * y)
    program = compile_program(Graph((("loss", loss.node),)), name="far", device=adapter)
    batches = data.batches({"x": np.full(4, 100.0)}, 4)
    with pytest.raises(NonFiniteError) as caught:
        _train(program, 500, data=batches, optimizer=SGD(4.0))
    lines = str(caught.value).split("\n")
    assert lines[0] == "the loss 'loss' became inf at step 5"
    assert lines[1].startswith("  where:    test_train.py, line ")
    assert lines[1].endswith("loss = mg.mean(y * y)")
    assert lines[2] == "  expected: finite values"
    assert lines[3] == "  got:      sum makes inf in 1 of 1 elements, from [2.559e+38, 2.559e+38]"
    assert lines[4] == "  try:      take a smaller learning rate, or clip_norm=1.0"
    run = vars(caught.value)["run"]
    assert run.step == run.state_step == len(run.history) == 4
    np.testing.assert_array_equal(program.parameters["w"], run.parameters["w"])


def test_a_lost_device_leaves_the_run_and_the_last_parameters(
    adapter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = _mlp(adapter)

    def lose(progress: Progress) -> None:
        if progress.step >= 8 and not progress.finished:
            monkeypatch.setattr(program.device, "lost", "the driver reset")

    with pytest.raises(DeviceLostError) as caught:
        _train(program, 1000, log_every=8, callbacks=[lose])
    monkeypatch.undo()
    run = vars(caught.value)["run"]
    assert run.ending == "device lost"
    assert len(run.history) == run.step >= 8
    assert set(run.parameters) == {"hidden.w", "hidden.b", "out.w", "out.b"}
    again = _mlp(adapter)
    rest = _train(again, 5, resume=run)
    assert rest.step == run.state_step + 5


def test_a_profile_changes_nothing_and_times_every_launch(adapter: str) -> None:
    program = _mlp(adapter)
    run = _train(program, 5)
    before = {name: value.copy() for name, value in run.state.items()}
    found = profile(program, steps=6)
    assert found.kind == "training step"
    assert [k.name for k in found.kernels] == [k.name for k in run.step_program.kernels]
    assert found.steps == 6
    assert all(k.times_us.min() >= 0 for k in found.kernels)
    assert found.step_us > 0
    assert any("test_train.py, line " in line for k in found.kernels for line in k.lines)
    rest = _train(program, 1, resume=run)
    assert rest.step == 6
    for name, value in before.items():
        assert np.array_equal(value, run.state[name])
    assert profile(program, steps=2, training=False).kind == "inference"


def test_the_peaks_of_an_adapter() -> None:
    program = _mlp(ADAPTERS[0])
    peaks = measure_peaks(program.device)
    assert peaks is not None
    assert peaks.flops > 1e7
    assert peaks.bytes > 1e7
    assert 0 < peaks.launch < 0.1
