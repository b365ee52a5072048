"""One training session: feeding steps ahead, reading losses, and ending well however it ends."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from meganeura.errors import DeviceLostError, MeganeuraError, NonFiniteError
from meganeura.ir.graph import Array, Node
from meganeura.train import checkpoint as checkpoints
from meganeura.train.checkpoint import Checkpoint
from meganeura.train.feeds import Feeder, Feeds, Source, seeds, user_inputs
from meganeura.train.interrupts import Stop
from meganeura.train.metrics import Metric, evaluate
from meganeura.train.nonfinite import error_of, locate
from meganeura.train.optim import HYPER, Optimizer
from meganeura.train.pace import REPORT_SECONDS, Pace
from meganeura.train.progress import Sink
from meganeura.train.run import Ending, Run, Series, progress_of
from meganeura.train.state import State, to_device, to_host
from meganeura.train.trail import Trail

SEED = "meganeura.seed"
STAGED_BYTES = 4 << 20
MOST_SLOTS = 64
_STEPPER = "stepper of training"


class Session:
    """The state of a training run while it runs."""

    def __init__(
        self,
        program: Any,
        step_program: Any,
        optimizer: Optimizer,
        data: Any,
        start: Checkpoint,
        steps: int | None,
        sinks: Sequence[Sink] = (),
    ) -> None:
        graph = step_program.graph
        self.step_program = step_program
        self.loss = graph.outputs[0][0]
        self.run = Run(program, optimizer, self.loss, start.seed, step_program=step_program)
        self.first = start.step
        self.step = start.step  # updates that were fed
        self.known = start.step  # updates whose loss was read
        self.run.step = start.step
        self.steps = steps
        self.sinks = tuple(sinks)
        self.stepper = _stepper(step_program, self.loss, steps)
        self.names = {str(node.name) for node in self.stepper.inputs}
        wanted = tuple(n for n in user_inputs(graph) if n.name in self.names)
        self.source = Source(data, Feeder(_known(program, wanted), wanted))
        self.source.skip(start.step)
        self.trail = Trail(step_program, self.source, start.step)
        self.pace = Pace()
        self.events: list[tuple[int, Callable[[], None], bool]] = []
        self.latest: Feeds = {}
        self._emitted = float("-inf")

    def every(self, steps: int, action: Callable[[], None], last: bool = False) -> None:
        """Calls `action` after every so many steps, all losses read; with `last` at the end too."""
        self.events.append((steps, action, last))

    def go(self, stop: Stop) -> None:
        """Runs until the end, an interrupt or an error; the run is complete in each case."""
        try:
            self._run(stop)
            try:
                self._finish()
            except KeyboardInterrupt:  # nothing of the run is lost for pressing once more
                self.run.ending = "interrupted"
                self._finish()
        except DeviceLostError as error:
            self._failed("device lost", error)
            raise
        except NonFiniteError as error:
            self._failed("not finite", error)
            raise
        except BaseException as error:
            self._settle()
            self._failed("error", error)
            raise
        finally:
            self.emit(finished=True)

    def _finish(self) -> None:
        """Brings to the host what was reached."""
        self._sync()
        self._last_events()
        self._copy()

    def _run(self, stop: Stop) -> None:
        try:
            self._steps(stop)
        except KeyboardInterrupt:
            stop.requested = True
        if stop.requested:
            self.run.ending = "interrupted"

    def _steps(self, stop: Stop) -> None:
        last = None if self.steps is None else self.first + self.steps
        while not stop.requested and (last is None or self.step < last):
            feeds = self.source.steps(self._room(last))
            if not feeds:
                self.run.ending = "done" if last is None else "out of data"
                return
            self.trail.note(feeds)
            for feed in self._whole(self.step, feeds):
                self.stepper.push(feed)
                self.step += 1
            self.latest = feeds[-1]
            self.pace.fed(len(feeds))
            if self.pace.due():
                self._sync()
                self._tell()
            self._events()
        self.run.ending = "done"

    def _room(self, last: int | None) -> int:
        """How many steps to feed now: not beyond the end, nor beyond the next event."""
        ends = [every - self.step % every for every, _, _ in self.events]
        ends += [last - self.step] if last is not None else []
        return min([self.pace.room(), *ends])

    def _whole(self, step: int, feeds: list[Feeds]) -> list[Feeds]:
        """The feeds of some steps, with the numbers that the loop itself provides."""
        count = len(feeds)
        own: dict[str, Array] = {}
        if HYPER in self.names:
            own[HYPER] = self.run.optimizer.table(step, count)
        if SEED in self.names:
            own[SEED] = seeds(self.run.seed, step, count)
        for name, rows in own.items():
            for feed, row in zip(feeds, rows, strict=True):
                feed[name] = row
        return feeds

    def _sync(self) -> None:
        """Waits for the steps that were fed, and keeps their losses."""
        if self.step == self.known:
            return
        losses = np.asarray(self.stepper.read(self.loss), np.float32).reshape(-1)
        self.pace.reported()
        self.run.seconds, self.run.warm_up = self.pace.busy, self.pace.first
        start, self.known = self.known, self.step
        bad = np.flatnonzero(~np.isfinite(losses))
        good = losses[: bad[0]] if bad.size else losses
        self.run.history.add(np.arange(start + 1, start + 1 + len(good)), good)
        self.run.step = start + len(good)
        self.run.steps_done = self.run.step - self.first
        if bad.size:
            self._not_finite(start + int(bad[0]), float(losses[bad[0]]))
        if self.trail.copy_if_due(self.step):
            self._keep()
            self.pace.resume()

    def _events(self) -> None:
        for every, action, _ in self.events:
            if self.step % every == 0:
                self._sync()
                action()
                self.pace.resume()

    def _last_events(self) -> None:
        for every, action, last in self.events:
            if last and self.step % every and self.step > self.first:
                action()

    def evaluate(self, validation: Any, metrics: Mapping[str, Metric] | None) -> None:
        """Measures the program itself on data that it does not learn from."""
        prefix = "" if metrics is not None else "validation "
        for name, value in evaluate(self.run.program, validation, metrics).items():
            self.run.metrics.setdefault(prefix + name, Series()).add(self.step, value)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a checkpoint of the present state."""
        self._copy()
        checkpoints.save(self.run, path)

    def _copy(self) -> None:
        self.trail.copy(self.step)
        self._keep()

    def _keep(self) -> None:
        self.run.state, self.run.state_step = self.trail.state, self.trail.step

    def _tell(self) -> None:
        """A sign of life, at most four a second."""
        if self.pace.clock() - self._emitted >= REPORT_SECONDS:
            self.emit()

    def emit(self, finished: bool = False) -> None:
        """Tells all sinks how far it is."""
        self._emitted = self.pace.clock()
        progress = progress_of(self.run, self.steps, self.pace.rate, finished)
        for sink in self.sinks:
            sink(progress)

    def _settle(self) -> None:
        """After an error of the user's: whatever reached the device is finished and kept."""
        try:
            self._sync()
            self._copy()
        except MeganeuraError:
            self._keep()

    def _failed(self, ending: Ending, error: BaseException) -> None:
        self.run.ending = ending
        self.step_program.cache.pop(_STEPPER, None)
        self._keep()
        vars(error)["run"] = self.run

    def _not_finite(self, step: int, loss: float) -> None:
        """Goes back to before the step that spoilt the loss, and says what spoilt it."""
        graph = self.step_program.graph
        state, good, culprit = locate(self.trail, graph, step, self._replayed, self._whole)
        to_device(self.step_program, state)
        self.trail.state, self.trail.step = state, good
        self.run.step = good
        raise error_of(self.loss, loss, step + 1, culprit)

    def _replayed(self, feeds: list[Feeds]) -> State:
        """The state after running some steps again from the last copy."""
        to_device(self.step_program, self.trail.state)
        for feed in self._whole(self.trail.step, feeds):
            self.stepper.push(feed)
        self.stepper.wait()
        return to_host(self.step_program)


def _stepper(step_program: Any, loss: str, steps: int | None) -> Any:
    """A stepper of enough slots, from the last run if there is one.

    More slots mean fewer submissions, but each costs bind groups once: a short run takes fewer.
    """
    bytes_per_step = sum(node.nbytes for node in step_program.graph.inputs) or 1
    most = min(STAGED_BYTES // bytes_per_step, MOST_SLOTS)
    slots = max(min(most, MOST_SLOTS if steps is None else math.isqrt(steps)), 2)
    found = step_program.cache.get(_STEPPER)
    if found is None or found.slots < slots:
        found = step_program.stepper(slots=slots)
        step_program.cache[_STEPPER] = found
    found.read(loss)  # what an earlier run left unread
    return found


def _known(program: Any, wanted: tuple[Node, ...]) -> tuple[Node, ...]:
    """All inputs of the program, of which the step may need fewer."""
    names = {node.name for node in user_inputs(program.graph)}
    return (*user_inputs(program.graph), *(n for n in wanted if n.name not in names))
