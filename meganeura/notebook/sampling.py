"""Kernel times while a run goes on: now and then a step is timed beside it, and taken back.

A timed step writes the parameters like any other. So it runs on made-up feeds, and what the program
keeps on the device is put back: the run's numbers are the same bits as without a view.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from meganeura.errors import MeganeuraError
from meganeura.ir.graph import Array, Node
from meganeura.notebook.widgets import LiveProgram
from meganeura.runtime.clock import time_launches
from meganeura.train.state import kept, to_device, to_host

SHARE = 100  # a sample may cost a hundredth of the time
LEAST_STEPS = 150  # in a shorter run, even the first sample would cost too much
KEEP = 200  # times kept of each kernel
MOST_BYTES = 64 << 20  # larger programs are timed by %meganeura profile only


def made_up(node: Node) -> Array:
    """A feed of the right shape, the same each time: small numbers, integers zero."""
    if node.dtype.is_float:
        return np.random.default_rng(0).normal(0, 0.1, node.shape).astype(node.dtype.numpy)
    return np.zeros(node.shape, node.dtype.numpy)


class Sampler:
    """Times the launches of one program, as rarely as its cost asks for."""

    def __init__(self, program: Any, steps: int | None) -> None:
        self.program = program
        held = sum(node.nbytes for node in kept(program.graph))
        small = held + program.memory.planned <= MOST_BYTES
        self.able = small and (steps is None or steps >= LEAST_STEPS)
        self._next = float("-inf")
        self._stepper: Any = None
        self._fresh = True
        self._shown: dict[str, Any] = {}
        self._feeds: dict[str, Array] = {}

    def sample(self) -> float:
        """Times one step, if it is due; the seconds that this took."""
        now = time.monotonic()
        if not self.able or now < self._next:
            return 0.0
        try:
            spans = self._time()
        except MeganeuraError:  # a lost device: the run itself will say so
            self.able = False
            return 0.0
        for launch, (start, end) in zip(self.program.schedule.launches, spans, strict=False):
            times = self.program.timings.setdefault(launch.kernel.name, [])
            times.append((end - start) / 1e3)
            del times[:-KEEP]
        self._fresh = True
        done = time.monotonic()
        self._next = done + SHARE * (done - now)
        return done - now

    def shown(self, live: LiveProgram) -> dict[str, Any]:
        """All times so far as the workbench draws them, worked out anew after a sample only."""
        if self._fresh and self.program.timings:
            self._shown = live.times(self.program)
            self._fresh = False
        return self._shown

    def _time(self) -> tuple[tuple[int, int], ...]:
        """Start and end of each launch in nanoseconds; () where the device has no clock."""
        if self._stepper is None:
            self._stepper = self.program.stepper()
            self._feeds = {str(node.name): made_up(node) for node in self.program.graph.inputs}
        state = to_host(self.program)
        try:
            found = time_launches(self._stepper, self._feeds, 1)
        finally:
            to_device(self.program, state)
        self.able = bool(found.spans)
        return found.spans[0] if found.spans else ()
