"""The live workbench without a browser: switches, errors, programs that are gone, runs."""

from __future__ import annotations

import gc
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import meganeura as mg
from meganeura.errors import ShapeError
from meganeura.notebook import charts, widgets
from meganeura.notebook.formatters import program_bundle
from meganeura.notebook.progress import LiveRun, curve, optimizer_text, run_view
from meganeura.notebook.widgets import Benches, LiveProgram
from meganeura.train.run import Progress, Run, Series
from meganeura.train.schedules import Cosine


def program(name: str = "net") -> Any:
    x = mg.input("x", (8, 4))
    h = mg.relu(mg.nn.linear(x, 6, name="hidden"))
    return mg.compile({"out": mg.nn.linear(h, 3, name="out")}, name=name, device="numpy")


def turn(live: LiveProgram, **switches: bool) -> None:
    """What the browser does when a switch is turned."""
    live.widget.set_state({"options": {**live.widget.options, **switches}})


def test_a_switch_only_notes_what_is_wanted() -> None:
    net = program()
    live = Benches().of(net)
    kernels = len(net.kernels)
    turn(live, fuse=False)
    assert len(net.kernels) == kernels  # nothing is compiled in the handler
    live.apply()
    assert net.options.fuse is False
    assert len(net.kernels) > kernels
    assert len(live.widget.view["kernels"]) == len(net.kernels)
    assert live.widget.status == {"state": "idle"}


def test_several_switches_before_the_cell_ends_are_one_recompilation() -> None:
    net = program()
    live = Benches().of(net)
    seen: list[str] = []
    live.widget.observe(lambda change: seen.append(change["new"]["state"]), names="status")
    turn(live, fuse=False)
    turn(live, fuse=True, alias=False)
    live.apply()
    assert (net.options.fuse, net.options.alias) == (True, False)
    assert seen[0] == "compiling"
    assert seen[-1] == "idle"
    live.apply()  # nothing is left to do
    assert seen[-1] == "idle"


def test_our_own_changes_are_not_taken_for_the_browsers() -> None:
    net = program()
    live = Benches().of(net)
    net.set_options(fuse=False)
    live.refresh()
    assert live.widget.options["fuse"] is False
    live.apply()
    assert net.options.fuse is False


def test_a_failed_recompilation_says_why_and_turns_the_switch_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    net = program()
    live = Benches().of(net)

    def fail(**changes: Any) -> None:
        raise ShapeError("it does not fit", expected="this", got="that", hint="another")

    monkeypatch.setattr(net, "set_options", fail)
    turn(live, fuse=False)
    live.apply()
    assert live.widget.status == {
        "state": "error",
        "title": "it does not fit",
        "details": ["expected: this", "got: that"],
        "hint": "another",
    }
    assert live.widget.options["fuse"] is True


def test_a_program_that_is_gone_says_so() -> None:
    net = program()
    live = Benches().of(net)
    del net
    gc.collect()
    turn(live, fuse=False)
    live.apply()
    assert live.widget.status["title"] == (
        "net is gone: its variable was deleted. Run its cell again."
    )


def test_one_model_a_program() -> None:
    net, benches = program(), Benches()
    assert benches.of(net) is benches.of(net)
    assert benches.of(program()) is not benches.of(net)
    benches.forget()


def test_a_program_that_code_has_changed_is_drawn_as_it_is() -> None:
    net, benches = program(), Benches()
    before = len(program_bundle(net, benches)["application/vnd.meganeura.program+json"]["kernels"])
    net.set_options(fuse=False)
    after = program_bundle(net, benches)["application/vnd.meganeura.program+json"]
    assert len(after["kernels"]) == len(net.kernels) > before
    assert benches.of(net).widget.options["fuse"] is False


def test_a_curve_is_thinned_and_finite() -> None:
    series = Series()
    series.add(np.arange(10_000), np.linspace(1, 0, 10_000))
    series.add([10_000], [np.nan])
    points = curve(series)
    assert len(points) <= 2000
    assert points[0] == [0, 1.0]
    assert points[-1][0] < 10_000  # the last value is no number
    assert curve(Series()) == []


def test_the_optimizer_in_a_word() -> None:
    assert optimizer_text(mg.AdamW(3e-3)) == "adamw 3e-3"
    assert optimizer_text(mg.SGD(0.25)) == "sgd 2.5e-1"
    assert optimizer_text(mg.Adam(Cosine(1e-3, 10))) == "adam cosine"


@dataclass
class Shown:
    """Counts what would be displayed."""

    calls: list[bool] = field(default_factory=list)

    def __call__(self, program: Any, slot: str, again: bool) -> None:
        self.calls.append(again)


def progress(run: Run, finished: bool = False) -> Progress:
    return Progress(run, run.step, 1000, 0.5, 10.0, {}, finished)


def test_a_run_is_pushed_at_most_four_times_a_second() -> None:
    net, benches, shown = program(), Benches(), Shown()
    run = Run(net, mg.AdamW(3e-3), "loss", 0, step_program=net)
    live = LiveRun(benches, shown, "run 1")
    pushed: list[Any] = []
    benches.of(net).widget.observe(lambda change: pushed.append(change["new"]), names="live")
    for step in range(1, 60):
        run.step = run.steps_done = step
        run.history.add(step, 1 / step)
        live(progress(run))
    few = len([item for item in pushed if item])
    assert 1 <= few <= 2
    live(progress(run, finished=True))
    assert pushed[-1]["run"]["step"] == 59
    run.ending = "interrupted"
    live.close(run)
    assert shown.calls == [False, True]
    view = benches.of(net).widget.view
    assert [item["status"] for item in view["runs"]] == ["interrupted"]
    assert view["runs"][0]["points"][-1] == [59, 0.0169492]
    assert set(net.timings) == {kernel.name for kernel in net.kernels}


def test_a_run_that_fails_at_once_shows_nothing() -> None:
    net, shown = program(), Shown()
    run = Run(net, mg.AdamW(3e-3), "loss", 0, step_program=net, ending="error")
    live = LiveRun(Benches(), shown, "run 1")
    live(progress(run, finished=True))
    live.close(run)
    assert shown.calls == []


def test_without_its_module_the_view_says_what_to_type(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(widgets, "MODULE", tmp_path / "missing.js")
    assert "python hatch_build.py" in widgets.module_text()


def test_a_broken_run_is_drawn_as_broken() -> None:
    net = program()
    run = Run(net, mg.AdamW(3e-3), "loss", 0, ending="not finite")
    assert run_view(run, "run 1", None, None)["status"] == "broken"


def test_charts_hold_plain_data() -> None:
    net = program()
    result = mg.profile(net, steps=2)
    figure = charts.roofline(result)
    names = [str(trace.name) for trace in figure.data]
    assert "matmul" in names
    assert figure.layout.xaxis.type == "log"
    run = Run(net, mg.AdamW(3e-3), "loss", 0)
    run.history.add([1, 2, 3], [3.0, 2.0, 1.0])
    loss = charts.loss(run, run)
    assert len(loss.data) == 2
    assert loss.layout.yaxis.type == "log"
    assert charts.loss(run).layout.title.text == "net: loss 3 to 1"
