"""What a training run shows while it goes: the live loss, at most four times a second."""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from meganeura.ir.graph import Array
from meganeura.notebook.sampling import Sampler
from meganeura.notebook.widgets import Benches, LiveProgram
from meganeura.train.run import Progress, Run, Series

POINTS = 2000
INTERVAL = 0.25
SHARE = 80  # one message may cost an eightieth of the time; dear ones come less often
_STATUS = {
    "running": "running",
    "done": "done",
    "out of data": "done",
    "interrupted": "interrupted",
}


def curve(series: Series, most: int = POINTS) -> list[list[float]]:
    """Step and value of at most `most` samples, the first and the last among them.

    Values that are not finite are left out: JSON has no word for them.
    """
    steps, values = series.steps, series.values
    if len(steps) > most:
        chosen = np.unique(np.linspace(0, len(steps) - 1, most).round().astype(int))
        steps, values = steps[chosen], values[chosen]
    finite = np.isfinite(values)
    pairs = zip(steps[finite].tolist(), six_figures(values[finite]).tolist(), strict=True)
    return [[step, value] for step, value in pairs]


def six_figures(values: Array) -> Array:
    """Numbers rounded to six figures, which are short in JSON."""
    exact = values.astype(np.float64)
    size = np.floor(np.log10(np.abs(exact), where=exact != 0, out=np.zeros_like(exact)))
    decimals = np.clip(5 - size, 0, 300)
    scale = 10.0**decimals
    rounded: Array = np.round(exact * scale) / scale
    return rounded


def optimizer_text(optimizer: Any) -> str:
    """An optimiser in a word and its rate: ``adamw 3e-3``."""
    name = type(optimizer).__name__.lower()
    rate = getattr(optimizer, "lr", None)
    if isinstance(rate, float | int):
        digits, exponent = f"{rate:.3e}".split("e")
        return f"{name} {digits.rstrip('0').rstrip('.')}e{int(exponent)}"
    return f"{name} {type(rate).__name__.lower()}" if rate is not None else name


def run_view(run: Run, name: str, steps: int | None, rate: float | None) -> dict[str, Any]:
    """A run as the workbench draws it."""
    return {
        "name": name,
        "detail": optimizer_text(run.optimizer),
        "status": _STATUS.get(run.ending, "broken"),
        "step": run.step,
        "steps": max(steps or 0, run.step),
        "rate": rate,
        "points": curve(run.history),
        "curves": {key: curve(series) for key, series in run.metrics.items() if len(series)},
    }


def sentence(view: Mapping[str, Any], cost: float) -> list[str]:
    """The one sentence below a live loss, with its numbers."""
    points = view["points"]
    if not points:
        return ["Waiting for the first loss.", "The device works ahead; losses are read in groups."]
    first, last = points[0][1], points[-1][1]
    lead = f"Loss {first:.4g} to {last:.4g} in {view['step']:,} steps."
    return [lead, f"Showing it here took {cost:.1%} of the time."]


class Line:
    """The progress line below the cell: one output that is replaced, the last state left standing.

    A carriage return on standard output would do in a terminal; in a saved notebook it leaves a
    line for every sign of life.
    """

    def __init__(self, publisher: Any) -> None:
        self._publisher = publisher
        self._id = f"meganeura-{secrets.token_hex(8)}"
        self._shown = False

    def __call__(self, progress: Progress) -> None:
        """Shows the newest state."""
        self._publisher.publish(
            {"text/plain": progress.line()},
            transient={"display_id": self._id},
            update=self._shown,
        )
        self._shown = True


@dataclass
class LiveRun:
    """Follows one run: shows its training step's workbench once, then pushes what is new."""

    benches: Benches
    show: Callable[[Any, str, bool], None]
    name: str
    slot: str = field(default_factory=lambda: f"meganeura-{secrets.token_hex(8)}")
    start: float = field(default_factory=time.monotonic)
    live: LiveProgram | None = None
    spent: float = 0.0
    due: float = -math.inf
    program: Any = None
    sampler: Sampler | None = None
    last: Progress | None = None

    def __call__(self, progress: Progress) -> None:
        """Takes a sign of life; what comes sooner than the interval is left out."""
        now = time.monotonic()
        self.last = progress
        if not progress.finished and now < self.due:
            return
        if self._failed_at_once(progress.run, progress.finished):
            return
        self._push(progress)
        cost = time.monotonic() - now
        self.due = now + max(INTERVAL, SHARE * cost)
        self.spent += cost
        if self.sampler is not None and not progress.finished:
            self.spent += self.sampler.sample()

    def _failed_at_once(self, run: Run, finished: bool) -> bool:
        """Whether there is nothing to show but the error, which stands for itself."""
        return finished and self.live is None and run.steps_done == 0

    def _push(self, progress: Progress) -> None:
        run = progress.run
        live = self._bench(run, progress.steps)
        view = run_view(run, self.name, progress.steps, progress.steps_per_second)
        elapsed = max(time.monotonic() - self.start, 1e-9)
        left = None
        if progress.steps is not None and progress.steps_per_second > 0:
            left = max(progress.steps - progress.step, 0) / progress.steps_per_second
        cost = self.spent / elapsed
        shown: dict[str, Any] = {
            "run": view,
            "elapsed_s": elapsed,
            "left_s": left or 0.0,
            "views_cost": cost,
            "sentence": sentence(view, cost),
        }
        if self.sampler is not None:
            shown |= self.sampler.shown(live)
        live.push(shown)

    def _bench(self, run: Run, steps: int | None) -> LiveProgram:
        """The workbench of the compiled step, displayed the first time."""
        if self.live is None:
            self.program = run.step_program
            self.sampler = Sampler(self.program, steps)
            self.live = self.benches.of(self.program)
            self.live.widget.tab = "loss"
            self.live.push({})
            self.show(self.program, self.slot, False)
        return self.live

    def close(self, run: Run | None = None) -> None:
        """The last flush: the whole curve and the times are kept, also in the saved drawing."""
        run = run if run is not None else self.last.run if self.last is not None else None
        if run is None or run.step_program is None or self._failed_at_once(run, True):
            return
        steps = self.last.steps if self.last is not None else None
        live = self._bench(run, steps)
        view = run_view(run, self.name, steps, run.steps_per_second)
        live.finish(view)
        elapsed = max(time.monotonic() - self.start, 1e-9)
        live.push({"run": view, "sentence": sentence(view, self.spent / elapsed)})
        self.show(self.program, self.slot, True)
