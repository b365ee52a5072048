"""Learning rates that change with the step: any function of the step is one.

The rate is worked out on the host and fed with the batch, so a schedule never compiles anything.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from meganeura.errors import OptionError
from meganeura.ir.graph import Array

Schedule = Callable[[int], float]
"""From the step, counted from 0, to its learning rate."""


@dataclass(frozen=True)
class Constant:
    """The same rate at every step."""

    lr: float

    def __call__(self, step: int) -> float:
        """The rate at a step."""
        return self.lr


@dataclass(frozen=True)
class Linear:
    """From `lr` to `end` in `steps` steps along a line, then `end`."""

    lr: float
    steps: int
    end: float = 0.0

    def __call__(self, step: int) -> float:
        """The rate at a step."""
        return self.lr + (self.end - self.lr) * min(step / self.steps, 1.0)


@dataclass(frozen=True)
class Cosine:
    """From `lr` to `end` in `steps` steps along half a cosine, then `end`.

    Source: Loshchilov and Hutter, SGDR, 2017, without restarts.

    >>> [round(Cosine(1.0, 4)(step), 3) for step in range(6)]
    [1.0, 0.854, 0.5, 0.146, 0.0, 0.0]
    """

    lr: float
    steps: int
    end: float = 0.0

    def __call__(self, step: int) -> float:
        """The rate at a step."""
        share = min(step / self.steps, 1.0)
        return self.end + (self.lr - self.end) * (1.0 + math.cos(math.pi * share)) / 2.0


@dataclass(frozen=True)
class Steps:
    """`lr` times `factor` to the power of how often `every` steps have passed."""

    lr: float
    every: int
    factor: float = 0.1

    def __call__(self, step: int) -> float:
        """The rate at a step."""
        return self.lr * float(self.factor ** (step // self.every))


@dataclass(frozen=True)
class WarmUp:
    """A line from zero up to `then` in `steps` steps; afterwards `then`, which starts at its own
    step 0.

    >>> [WarmUp(4, 1.0)(step) for step in range(6)]
    [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]
    """

    steps: int
    then: float | Schedule

    def __call__(self, step: int) -> float:
        """The rate at a step."""
        after = as_schedule(self.then)
        if step < self.steps:
            return after(0) * (step + 1) / self.steps
        return after(step - self.steps)


def as_schedule(lr: float | Schedule) -> Schedule:
    """A number as a constant schedule, a function as it is."""
    return lr if callable(lr) else Constant(float(lr))


def rates(lr: float | Schedule, start: int, count: int) -> Array:
    """The rates of `count` steps from `start`, float64; raises OptionError when one is no finite
    number.
    """
    if not callable(lr):
        values = np.full(count, lr, np.float64)
    else:
        values = np.array([float(lr(step)) for step in range(start, start + count)], np.float64)
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        raise OptionError(
            f"the learning rate of step {start + int(bad[0])} is no finite number",
            expected="a finite number",
            got=str(float(values[bad[0]])),
            hint="mend the schedule: it gets the step, counted from 0",
        )
    return values
