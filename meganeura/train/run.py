"""What training leaves behind, and what it says while it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from meganeura.ir.graph import Array

Ending = Literal[
    "running", "done", "interrupted", "out of data", "not finite", "device lost", "error"
]


@dataclass
class Series:
    """Numbers against steps; a step is counted from 1, after its update."""

    _steps: list[Array] = field(default_factory=list)
    _values: list[Array] = field(default_factory=list)

    def add(self, steps: Any, values: Any) -> None:
        """Appends one number or several."""
        self._steps.append(np.atleast_1d(np.asarray(steps, np.int64)))
        self._values.append(np.atleast_1d(np.asarray(values, np.float32)))

    @property
    def steps(self) -> Array:
        """The steps, int64 [n]."""
        return self._joined(self._steps, np.int64)

    @property
    def values(self) -> Array:
        """The numbers, float32 [n]."""
        return self._joined(self._values, np.float32)

    @staticmethod
    def _joined(parts: list[Array], dtype: type[np.generic]) -> Array:
        if len(parts) > 1:
            parts[:] = [np.concatenate(parts)]
        return parts[0] if parts else np.empty(0, dtype)

    def __len__(self) -> int:
        """How many numbers there are."""
        return sum(len(part) for part in self._steps)

    def __repr__(self) -> str:
        if not len(self):
            return "<Series: empty>"
        return f"<Series: {len(self):,} values, {self.values[0]:.4g} to {self.values[-1]:.4g}>"


class History(Series):
    """The loss of every step."""

    @property
    def losses(self) -> Array:
        """The losses, float32 [n]."""
        return self.values


@dataclass(repr=False)
class Run:
    """One training run: its history, its speed, and the last state on the host.

    `step` counts all updates behind the parameters, also those before a resume. `state` holds
    parameters and moments by name as they were at `state_step`: at the end, or at the last copy
    before the device was lost.
    """

    program: Any
    optimizer: Any
    loss: str
    seed: int
    step: int = 0
    history: History = field(default_factory=History)
    metrics: dict[str, Series] = field(default_factory=dict)
    seconds: float = 0.0
    warm_up: float = 0.0
    steps_done: int = 0
    ending: Ending = "running"
    state: Mapping[str, Array] = field(default_factory=dict)
    state_step: int = 0
    step_program: Any = None

    @property
    def interrupted(self) -> bool:
        """True when the user stopped it."""
        return self.ending == "interrupted"

    @property
    def steps_per_second(self) -> float:
        """Steps by seconds; the first step, evaluation and checkpoints are left out."""
        steps, seconds = self.steps_done, self.seconds
        if steps > 1:
            steps, seconds = steps - 1, seconds - self.warm_up
        return steps / seconds if seconds > 0 else 0.0

    @property
    def parameters(self) -> dict[str, Array]:
        """The last parameters on the host, by name."""
        names = {str(n.name) for n in self.program.graph.parameters}
        return {name: value for name, value in self.state.items() if name in names}

    def __repr__(self) -> str:
        parts = [f"{self.steps_done:,} steps"]
        losses = self.history.losses
        if len(losses):
            parts.append(f"{self.loss} {losses[0]:.4g} to {losses[-1]:.4g}")
        parts += [f"{name} {s.values[-1]:.4g}" for name, s in self.metrics.items() if len(s)]
        parts.append(f"{self.steps_per_second:,.0f} steps/s")
        if self.ending != "done":
            parts.append(f"{self.ending} at step {self.step:,}")
        return f"<Run of {self.program.name}: {', '.join(parts)}>"


@dataclass(frozen=True)
class Progress:
    """A sign of life, at most four a second: the run so far, and the pace since the last one."""

    run: Run
    step: int
    steps: int | None
    loss: float
    steps_per_second: float
    metrics: Mapping[str, float]
    finished: bool

    def line(self) -> str:
        """The progress line."""
        of = f"/{self.steps:,}" if self.steps is not None else ""
        parts = [f"{self.run.program.name}: step {self.step:,}{of}"]
        parts.append(f"{self.run.loss} {self.loss:.4f}")
        parts += [f"{name} {value:.4f}" for name, value in self.metrics.items()]
        parts.append(f"{self.steps_per_second:,.0f} steps/s")
        if self.finished and self.run.ending != "done":
            parts.append(self.run.ending)
        return ", ".join(parts)


def progress_of(run: Run, steps: int | None, rate: float, finished: bool) -> Progress:
    """The present state of a run; at the end the speed is that of the whole run."""
    losses = run.history.losses
    return Progress(
        run,
        run.step,
        steps,
        float(losses[-1]) if len(losses) else float("nan"),
        run.steps_per_second if finished else rate,
        {name: float(series.values[-1]) for name, series in run.metrics.items() if len(series)},
        finished,
    )
