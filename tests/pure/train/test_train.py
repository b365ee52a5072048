"""The training loop on the NumPy device: what it learns, keeps, resumes and refuses."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from meganeura import trace
from meganeura.compiler import compile_program
from meganeura.errors import CheckpointError, GradientError, MeganeuraError, NonFiniteError
from meganeura.ir import build, composites
from meganeura.ir.dtypes import i32
from meganeura.ir.graph import Graph, Node
from meganeura.ir.initial import Constant, FanIn
from meganeura.train import checkpoint, data, safetensors
from meganeura.train.loop import train
from meganeura.train.metrics import Accuracy, evaluate
from meganeura.train.optim import SGD, Adam, AdamW
from meganeura.train.run import Progress, Run
from meganeura.train.state import to_device

ROWS = 16
Array = np.ndarray[Any, Any]


def _layer(x: Node, size: int, name: str) -> Node:
    with trace.scope(name):
        w = build.parameter(f"{name}.weight", (x.shape[1], size), FanIn(x.shape[1]))
        b = build.parameter(f"{name}.bias", (size,), FanIn(x.shape[1]))
        return build.add(build.matmul(x, w), b)


def _graph(hidden: int = 8, dropout: float = 0.0) -> Graph:
    x, y = build.input_("x", (ROWS, 4)), build.input_("y", (ROWS,), i32)
    h = composites.relu(_layer(x, hidden, "hidden"))
    h = composites.dropout(h, dropout) if dropout else h
    logits = _layer(h, 3, "out")
    return Graph((("loss", composites.cross_entropy(logits, y)), ("logits", logits)))


def _program(graph: Graph | None = None) -> Any:
    return compile_program(graph or _graph(), name="mlp", kind="inference", device="numpy")


def _points(rows: int = 100, seed: int = 0) -> data.Dataset:
    """Three clouds in four dimensions."""
    generator = np.random.default_rng(seed)
    y = generator.integers(0, 3, rows).astype(np.int32)
    centres = np.random.default_rng(9).normal(size=(3, 4)) * 2
    return data.Dataset((centres[y] + generator.normal(size=(rows, 4))).astype(np.float32), y)


def _batches(seed: int = 0) -> data.Batches:
    return data.batches(_points(), ROWS, seed=seed)


def _train(program: Any, steps: int | None = 20, **changes: Any) -> Run:
    settings: dict[str, Any] = {
        "data": _batches(),
        "loss": "loss",
        "optimizer": AdamW(0.05),
        "progress": False,
    }
    return train(program, steps=steps, **{**settings, **changes})


def _text(error: type[MeganeuraError], call: Callable[[], object]) -> str:
    with pytest.raises(error) as caught:
        call()
    return str(caught.value)


def _assert_equal(a: Any, b: Any) -> None:
    assert a.keys() == b.keys()
    for name in a:
        np.testing.assert_array_equal(a[name], b[name], err_msg=name)


def test_it_learns() -> None:
    program = _program()
    run = _train(program, 60)
    assert run.ending == "done"
    assert not run.interrupted
    np.testing.assert_array_equal(run.history.steps, np.arange(1, 61))
    assert run.history.losses[-5:].mean() < 0.4 * run.history.losses[:5].mean()
    held_out = evaluate(program, _points(50, seed=4), {"accuracy": Accuracy()})
    assert held_out["accuracy"] > 0.8
    assert run.steps_per_second > 0
    assert run.step == run.steps_done == 60
    _assert_equal(run.parameters, {n: np.asarray(v) for n, v in program.parameters.items()})
    assert repr(run).startswith("<Run of mlp: 60 steps, loss ")


def test_the_steps_are_those_of_numpy() -> None:
    """One step at a time by the definition of plain SGD on central differences in float64."""
    graph = _graph(hidden=2)
    program = _program(graph)
    start = {name: np.array(value) for name, value in program.parameters.items()}
    batch = data.arrays_of(next(iter(_batches())))
    run = _train(program, 1, optimizer=SGD(0.5))
    from meganeura.ir.evaluate import evaluate as numpy_evaluate

    def loss(values: dict[str, Array]) -> float:
        feeds = {**values, "x": batch[0], "y": batch[1]}
        return float(numpy_evaluate(graph, feeds, np.float64)["loss"])

    assert run.history.losses[0] == pytest.approx(loss(start), rel=1e-5)
    for name, value in start.items():
        for index in np.ndindex(value.shape):
            sides = []
            for move in (1e-5, -1e-5):
                moved = {n: v.astype(np.float64) for n, v in start.items()}
                moved[name][index] += move
                sides.append(loss(moved))
            slope = (sides[0] - sides[1]) / 2e-5
            assert run.parameters[name][index] == pytest.approx(
                value[index] - 0.5 * slope, abs=1e-5
            )


def test_the_same_seed_gives_the_same_bits() -> None:
    runs = [_train(_program(_graph(dropout=0.5)), 30, seed=s) for s in (1, 1, 2)]
    np.testing.assert_array_equal(runs[0].history.losses, runs[1].history.losses)
    assert not np.array_equal(runs[0].history.losses, runs[2].history.losses)
    _assert_equal(runs[0].state, runs[1].state)


def test_a_new_rate_compiles_nothing() -> None:
    program = _program()
    first = _train(program, 2, optimizer=AdamW(0.05))
    second = _train(program, 2, optimizer=AdamW(lambda step: 0.01 / (step + 1)))
    third = _train(program, 2, optimizer=SGD(0.05))
    assert first.step_program is second.step_program
    assert first.step_program is not third.step_program


def test_a_second_run_goes_on_with_the_parameters_and_fresh_moments() -> None:
    program = _program()
    first = _train(program, 10)
    moved = _train(program, 1)
    assert moved.history.losses[0] != first.history.losses[0]
    again = _program()
    to_device(again, first.parameters)
    _assert_equal(_train(again, 1).state, moved.state)


@pytest.mark.parametrize("optimizer", [SGD(0.05, 0.9), Adam(0.05), AdamW(0.05)])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_a_checkpoint_resumes_bit_for_bit(tmp_path: Path, optimizer: Any, dropout: float) -> None:
    options = {"optimizer": optimizer, "clip_norm": 1.0}
    whole = _train(_program(_graph(dropout=dropout)), 20, seed=7, **options)
    path = tmp_path / "half.safetensors"
    half = _train(_program(_graph(dropout=dropout)), 10, seed=7, checkpoint=path, **options)
    other = _program(_graph(dropout=dropout))
    loaded = checkpoint.load(other, path)
    _assert_equal(dict(other.parameters), half.parameters)
    assert (loaded.step, loaded.seed) == (10, 7)
    assert repr(loaded).startswith("<Checkpoint at step 10: ")
    for resume in (path, loaded, half):
        rest = _train(other, 10, resume=resume, **options)
        _assert_equal(rest.state, whole.state)
        np.testing.assert_array_equal(rest.history.losses, whole.history.losses[10:])
        np.testing.assert_array_equal(rest.history.steps, np.arange(11, 21))
        assert (rest.step, rest.steps_done, rest.seed) == (20, 10, 7)


def test_saving_a_program_keeps_its_parameters_alone(tmp_path: Path) -> None:
    program = _program()
    _train(program, 3)
    path = tmp_path / "weights.safetensors"
    checkpoint.save(program, path)
    other = _program()
    loaded = checkpoint.load(other, path)
    _assert_equal(dict(loaded.state), dict(program.parameters))
    _assert_equal(dict(other.parameters), dict(program.parameters))
    assert _text(CheckpointError, lambda: _train(other, 1, resume=path)) == (
        "weights.safetensors is a checkpoint of another model than mlp\n"
        "  expected: hidden.weight.m [4, 8] f32; hidden.weight.v [4, 8] f32; "
        "hidden.bias.m [8] f32; hidden.bias.v [8] f32; and 4 more\n"
        "  got:      no hidden.weight.m; no hidden.weight.v; no hidden.bias.m; "
        "no hidden.bias.v; and 4 more\n"
        "  try:      compile the model that was saved, or train this one anew; nothing was changed"
    )


def test_a_checkpoint_of_another_model_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    _train(_program(_graph(hidden=5)), 1, checkpoint=path)
    program = _program()
    before = {name: np.array(value) for name, value in program.parameters.items()}
    assert _text(CheckpointError, lambda: checkpoint.load(program, path)) == (
        "a.safetensors is a checkpoint of another model than mlp\n"
        "  expected: hidden.weight [4, 8] f32; hidden.bias [8] f32; out.weight [8, 3] f32\n"
        "  got:      hidden.weight [4, 5] float32; hidden.bias [5] float32; "
        "out.weight [5, 3] float32\n"
        "  try:      compile the model that was saved, or train this one anew; nothing was changed"
    )
    path.write_bytes(path.read_bytes()[:-3])
    size = path.stat().st_size
    assert "it is truncated" in _text(CheckpointError, lambda: checkpoint.load(program, path))
    assert size == path.stat().st_size
    _assert_equal(dict(program.parameters), before)


def test_checkpoints_on_the_way(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    seen: list[int] = []

    def look(progress: Progress) -> None:
        if path.exists():
            seen.append(checkpoint.read(program, path).step)

    program = _program()
    _train(program, 10, checkpoint=path, checkpoint_every=4, log_every=1, callbacks=[look])
    assert sorted(set(seen)) == [4, 8]
    assert checkpoint.read(program, path).step == 10


def test_validation_and_metrics() -> None:
    run = _train(
        _program(),
        20,
        validation=_points(50, seed=4),
        validate_every=8,
        metrics={"accuracy": Accuracy()},
    )
    np.testing.assert_array_equal(run.metrics["accuracy"].steps, [8, 16, 20])
    assert 0 <= run.metrics["accuracy"].values.min() <= run.metrics["accuracy"].values.max() <= 1
    plain = _train(_program(), 4, validation=_points(50, seed=4), validate_every=2)
    assert list(plain.metrics) == ["validation loss"]
    assert "accuracy" in repr(run)


def test_progress_is_told() -> None:
    told: list[Progress] = []
    run = _train(_program(), 9, progress=told.append, log_every=3)
    assert {3, 6, 9} <= {p.step for p in told}
    assert [p.finished for p in told] == [False] * (len(told) - 1) + [True]
    assert told[-1].run is run
    line = told[-1].line()
    assert line.startswith("mlp: step 9/9, loss ")
    assert line.endswith(" steps/s")


def test_the_progress_line(capsys: pytest.CaptureFixture[str]) -> None:
    _train(_program(), 3, progress=True)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("\rmlp: step 1/3, loss ")
    assert captured.err.endswith("\n")
    assert captured.err.count("\n") == 1


def _stopping(at: int, act: Callable[[], None]) -> Iterator[Any]:
    for number, batch in enumerate(_batches(), start=1):
        if number == at:
            act()
        yield batch


def _interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def _raise_interrupt() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("act", [_interrupt, _raise_interrupt])
def test_an_interrupt_gives_a_run_with_everything_kept(
    tmp_path: Path, act: Callable[[], None]
) -> None:
    before = signal.getsignal(signal.SIGINT)
    program = _program()
    path = tmp_path / "a.safetensors"
    run = _train(program, 1000, data=_stopping(50, act), checkpoint=path)
    assert run.interrupted
    assert 0 < run.step <= 50 + 256
    assert len(run.history) == run.step == run.state_step
    whole = _train(_program(), run.step)
    _assert_equal(run.state, whole.state)
    assert checkpoint.read(program, path).step == run.step
    assert repr(run).endswith(f"interrupted at step {run.step}>")
    assert signal.getsignal(signal.SIGINT) is before
    rest = _train(program, 5, resume=run)
    np.testing.assert_array_equal(
        rest.history.losses, _train(_program(), run.step + 5).history.losses[-5:]
    )


def test_an_error_in_the_data_keeps_the_run() -> None:
    def fail() -> None:
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError) as caught:
        _train(_program(), 1000, data=_stopping(8, fail))
    run = vars(caught.value)["run"]
    assert isinstance(run, Run)
    assert run.ending == "error"
    assert len(run.history) == run.step == run.state_step
    _assert_equal(run.state, _train(_program(), run.step).state)


def test_data_that_ends() -> None:
    finite = data.batches(_points(), ROWS, epochs=1)
    assert _train(_program(), None, data=finite).ending == "done"
    run = _train(_program(), 100, data=finite)
    assert (run.step, run.ending) == (6, "out of data")
    assert repr(run).endswith("out of data at step 6>")


def test_the_speed_leaves_out_the_first_step() -> None:
    run = Run(None, None, "loss", 0, seconds=3.0, warm_up=1.0, steps_done=5)
    assert run.steps_per_second == 2.0
    assert (
        Run(None, None, "loss", 0, seconds=4.0, warm_up=4.0, steps_done=1).steps_per_second == 0.25
    )
    assert Run(None, None, "loss", 0).steps_per_second == 0.0


def test_runs_of_one_step_share_their_stepper() -> None:
    program = _program()
    first = _train(program, 9)
    stepper = first.step_program.cache["stepper of training"]
    second = _train(program, 4)
    assert second.step_program.cache["stepper of training"] is stepper
    assert (len(first.history), len(second.history)) == (9, 4)
    with pytest.raises(MeganeuraError):
        _train(program, 9, data=[7])
    assert "stepper of training" not in first.step_program.cache
    assert len(_train(program, 4).history) == 4


def test_damaged_metadata(tmp_path: Path) -> None:
    program = _program()
    path = tmp_path / "a.safetensors"
    for key, value, expected in (
        ("step", "ten", "step: a whole number"),
        ("moments", "[1]", "moments: a list of names"),
        ("moments", "{", "moments: a list of names"),
    ):
        safetensors.write(path, program.parameters, {key: value})
        assert _text(CheckpointError, lambda: checkpoint.load(program, path)) == (
            f"a.safetensors has damaged metadata\n  expected: {expected}\n  got:      {value!r}"
        )


def test_no_steps() -> None:
    run = _train(_program(), 0)
    assert (run.step, len(run.history), run.ending) == (0, 0, "done")


def test_any_iterable_of_tuples_or_dicts() -> None:
    whole = _train(_program(), 12)
    tuples = [data.arrays_of(batch) for batch in itertools.islice(_batches(), 12)]
    dicts = [{"y": y.astype(np.int64), "x": x.astype(np.float64)} for x, y in tuples]
    np.testing.assert_array_equal(
        _train(_program(), 12, data=tuples).history.losses, whole.history.losses
    )
    np.testing.assert_array_equal(
        _train(_program(), 12, data=iter(dicts)).history.losses, whole.history.losses
    )


def _log_model() -> Graph:
    """A loss whose logarithm meets a negative number once w has walked below zero."""
    x = build.input_("x", (2,))
    w = build.parameter("w", (2,), Constant(1.0))
    return Graph((("loss", build.sum_(build.log(build.mul(w, x)))),))


@pytest.mark.parametrize("repeatable", [True, False])
def test_a_loss_that_is_not_finite(repeatable: bool) -> None:
    program = _program(_log_model())
    rows = np.ones((64, 2), np.float32)
    stream: Any = data.batches({"x": rows.reshape(-1)}, 2)
    if not repeatable:
        stream = [{"x": row} for row in rows]
    # The slope is 1 / w at w = 1: 1, 0.7, 0.27, then below zero.
    with pytest.raises(NonFiniteError) as caught:
        _train(program, 30, data=stream, optimizer=SGD(0.3))
    lines = str(caught.value).split("\n")
    assert lines[0] == "the loss 'loss' became nan at step 4"
    assert lines[1].startswith("  where:    test_train.py, line ")
    assert lines[1].endswith('return Graph((("loss", build.sum_(build.log(build.mul(w, x)))),))')
    assert lines[2:] == [
        "  expected: finite values",
        "  got:      log makes nan in 2 of 2 elements, from [-0.8338, -0.8338]",
        "  try:      keep the argument of log above zero, as in mg.log(x + 1e-6)",
    ]
    run = vars(caught.value)["run"]
    assert run.ending == "not finite"
    assert (run.step, run.state_step) == (3, 3)
    assert len(run.history) == 3
    assert np.isfinite(run.history.losses).all()
    np.testing.assert_allclose(run.parameters["w"], -0.8338, rtol=1e-3)
    _assert_equal(dict(program.parameters), run.parameters)


def test_an_update_that_is_not_finite() -> None:
    """The loss is finite at step 1, but the root has an infinite slope at zero."""
    x = build.input_("x", (2,))
    w = build.parameter("w", (2,), Constant(1.0))
    program = _program(Graph((("loss", build.sum_(build.sqrt(build.mul(w, x)))),)))
    with pytest.raises(NonFiniteError) as caught:
        _train(program, 9, data=[{"x": np.zeros(2)}] * 9, optimizer=SGD(0.1))
    assert str(caught.value).split("\n")[0] == "the loss 'loss' became nan at step 2"
    assert "(backward) makes " in str(caught.value)
    run = vars(caught.value)["run"]
    assert run.step == run.state_step == 0
    np.testing.assert_array_equal(run.parameters["w"], [1, 1])


def test_a_batch_that_is_not_finite() -> None:
    batches = [{"x": np.ones(2)}, {"x": np.array([np.inf, 1.0])}]
    with pytest.raises(NonFiniteError) as caught:
        _train(_program(_log_model()), 2, data=batches, optimizer=SGD(0.1))
    assert "\n  got:      input 'x' makes inf in 1 of 2 elements\n" in str(caught.value)
    assert str(caught.value).endswith("look at the data: the batch itself is not finite")


def test_which_loss() -> None:
    assert _text(GradientError, lambda: _train(_program(), 1, loss="logits")).startswith(
        "the loss 'logits' is not a scalar of floats\n  where:    test_train.py, line "
    )
    assert _text(MeganeuraError, lambda: _train(_program(), 1, loss="cost")) == (
        "there is no tensor 'cost' to be the loss\n"
        "  expected: the name of a scalar: loss\n"
        "  got:      'cost'\n"
        '  try:      name it in the cell, as in loss.named("cost")'
    )
    loss = composites.cross_entropy(
        build.constant(np.zeros((2, 3), np.float32)), build.input_("y", (2,), i32)
    )
    fixed = _program(Graph((("loss", loss),)))
    assert _text(GradientError, lambda: _train(fixed, 1)).startswith(
        "the loss 'loss' depends on no trainable parameter\n"
    )
    two = Graph((("a", build.sum_(_layer(build.input_("x", (1, 2)), 1, "l"))), ("b", loss)))
    assert _text(MeganeuraError, lambda: _train(_program(two), 1, loss=None)) == (
        "which output is the loss?\n"
        "  expected: one scalar output of floats, or loss=\n"
        "  got:      'a', 'b'\n"
        '  try:      name it, as in mg.train(program, loss="loss", ...)'
    )


def test_options_out_of_range() -> None:
    assert _text(MeganeuraError, lambda: _train(_program(), -1)) == (
        "steps is out of range\n  expected: >= 0\n  got:      -1"
    )
    assert _text(MeganeuraError, lambda: _train(_program(), 1, log_every=0)) == (
        "log_every is out of range\n  expected: >= 1\n  got:      0"
    )


X, Y = np.zeros((ROWS, 4), np.float32), np.zeros(ROWS, np.int32)
BAD: dict[str, tuple[Any, list[str]]] = {
    "unknown": (
        {"x": X, "y": Y, "z": Y},
        [
            "there is no input 'z'",
            "  expected: x [16, 4] f32, y [16] i32",
            "  got:      x, y, z",
            "  try:      name the batch's arrays as the inputs, or leave this one out",
        ],
    ),
    "missing": (
        {"x": X},
        ["the feed 'y' is missing", "  expected: [16] i32", "  got:      a batch of x"],
    ),
    "too few": (
        (X,),
        [
            "a batch of 1 does not fit the 2 inputs",
            "  expected: x [16, 4] f32, y [16] i32",
            "  got:      [16, 4]",
            "  try:      give one array for each input, or a dict by feed name",
        ],
    ),
    "rank": (
        (X[0], Y),
        [
            "the feed 'x' has another shape",
            "  expected: [16, 4] f32",
            "  got:      [4] float32",
        ],
    ),
    "shape": (
        (X[:, :3], Y),
        [
            "the feed 'x' has another shape",
            "  expected: [16, 4] f32",
            "  got:      [16, 3] float32",
        ],
    ),
    "not full": (
        (X[:7], Y[:7]),
        [
            "the feed 'x' has another shape",
            "  expected: [16, 4] f32",
            "  got:      [7, 4] float32",
            "  try:      shapes are fixed: leave out the last batch when it is not full "
            "(drop_last=True)",
        ],
    ),
    "too large": (
        (np.zeros((32, 4)), Y),
        [
            "the feed 'x' has another shape",
            "  expected: [16, 4] f32",
            "  got:      [32, 4] float64",
            "  try:      shapes are fixed: take batches of 16",
        ],
    ),
    "dtype": (
        (X, Y.astype(np.float32)),
        [
            "the feed 'y' has another type",
            "  expected: [16] i32",
            "  got:      [16] float32",
            "  try:      convert it, as in array.astype(np.int32)",
        ],
    ),
    "no batch": (
        7,
        [
            "this is no batch",
            "  expected: a dict by feed name, or a tuple in this order: x [16, 4] f32, y [16] i32",
            "  got:      int",
        ],
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_a_batch_that_does_not_fit(case: str) -> None:
    batch, expected = BAD[case]
    good = [data.arrays_of(b) for b in itertools.islice(_batches(), 3)]
    with pytest.raises(MeganeuraError) as caught:
        _train(_program(), 10, data=[*good, batch])
    lines = [n for n in str(caught.value).split("\n") if not n.startswith("  where:")]
    assert lines == expected
    run = vars(caught.value)["run"]
    assert run.ending == "error"
    assert len(run.history) == run.step == run.state_step


def test_no_data() -> None:
    assert _text(MeganeuraError, lambda: _train(_program(), 1, data={"x": X, "y": Y})) == (
        "data= must give batches\n"
        "  expected: mg.data.batches(...), or any iterable of dicts or tuples\n"
        "  got:      dict\n"
        "  try:      one batch again and again is itertools.repeat(batch)"
    )
