"""Training: compile the step, set the state, run the session."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from meganeura.compiler import compile_program
from meganeura.errors import OptionError
from meganeura.plan import PassRecord
from meganeura.trace import watch
from meganeura.train import checkpoint as checkpoints
from meganeura.train.checkpoint import Checkpoint
from meganeura.train.feeds import Feeds
from meganeura.train.interrupts import interrupts
from meganeura.train.metrics import Metric
from meganeura.train.optim import AdamW, Optimizer
from meganeura.train.progress import Sink, sink_of
from meganeura.train.run import Progress, Run
from meganeura.train.session import Session
from meganeura.train.state import moments, to_device, zeros
from meganeura.train.step import step_graph

_LATEST = "latest training step"


def train(
    program: Any,
    *,
    data: Any,
    loss: str | None = None,
    optimizer: Optimizer | None = None,
    steps: int | None = None,
    seed: int | None = None,
    clip_norm: float | None = None,
    log_every: int | None = None,
    validation: Any = None,
    validate_every: int | None = None,
    metrics: Mapping[str, Metric] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: int | None = None,
    resume: Run | Checkpoint | str | os.PathLike[str] | None = None,
    progress: bool | Sink = True,
    callbacks: Sequence[Callable[[Progress], None]] = (),
) -> Run:
    """Trains the parameters of a program for some more steps, and gives the Run.

    A second program with gradients and updates is compiled from the program's graph and shares its
    parameters on the device; it is kept, so that a new learning rate compiles nothing. `data` gives
    a batch a step, `steps=None` takes all of them. Every loss is kept; the device is asked for them
    at most four times a second, or every `log_every` steps. `validation` is a data set that the
    program itself is evaluated on, every `validate_every` steps (a tenth of the steps when not
    given), for `metrics`. `resume` goes on with the moments, the step count and the seed of an
    earlier run or its file.

    An interrupt between steps gives a Run with all that was reached. Raises NonFiniteError with the
    node that made the first bad value, the parameters being those before that step;
    DeviceLostError; FeedError for a batch that does not fit. Such an error carries the Run as
    `error.run`.
    """
    _check_steps(steps=steps, log_every=log_every)
    _check_steps(validate_every=validate_every, checkpoint_every=checkpoint_every)
    if checkpoint is not None:
        checkpoints.check_place(checkpoint)
    optimizer = optimizer if optimizer is not None else AdamW()
    step_program = _compiled(program, loss, optimizer, clip_norm)
    start = _start(program, step_program, resume, seed)
    sink = sink_of(progress)
    sinks = [*([sink] if sink is not None else []), *callbacks]
    session = Session(program, step_program, optimizer, data, start, steps, sinks)
    if log_every is not None:
        session.every(log_every, session.emit)
    if validation is not None:
        every = validate_every or max((steps or 1000) // 10, 1)
        session.every(every, lambda: session.evaluate(validation, metrics), last=True)
    if checkpoint is not None and checkpoint_every is not None:
        session.every(checkpoint_every, lambda: session.save(checkpoint))
    try:
        with interrupts() as stop:
            session.go(stop)
    finally:
        program.cache[_LATEST] = (step_program, session.latest)
        if checkpoint is not None and session.run.state:
            checkpoints.save(session.run, checkpoint)
    return session.run


def latest_step(program: Any) -> tuple[Any, Feeds] | None:
    """The training program that ran last, with the feeds of its last step; None before."""
    found: tuple[Any, Feeds] | None = program.cache.get(_LATEST)
    return found


def _check_steps(**numbers: int | None) -> None:
    for name, value in numbers.items():
        if value is not None and not isinstance(value, (int, np.integer)):
            raise OptionError(f"{name} is a whole number", expected="such as 400", got=repr(value))
        if value is not None and (value < 0 or (value == 0 and name != "steps")):
            least = 0 if name == "steps" else 1
            raise OptionError(f"{name} is out of range", expected=f">= {least}", got=str(value))


def _compiled(program: Any, loss: str | None, optimizer: Optimizer, clip: float | None) -> Any:
    """The training program, from the program's own cache when it was asked for before."""
    key = ("training step", loss, optimizer.structure, clip)
    found = program.cache.get(key)
    if found is None:
        seen: list[PassRecord] = []
        with watch(lambda event: seen.append(PassRecord.of(event))):
            graph = step_graph(program.graph, loss, optimizer, clip)
        found = compile_program(
            graph,
            name=program.name,
            kind="training step",
            options=program.options,
            device=program.device,
            store=program.store,
            earlier=tuple(record for record in seen if record.name == "training step"),
        )
        program.cache[key] = found
    return found


def _start(
    program: Any,
    step_program: Any,
    resume: Run | Checkpoint | str | os.PathLike[str] | None,
    seed: int | None,
) -> Checkpoint:
    """Where training starts; the device's parameters and moments are set accordingly."""
    extra = moments(program, step_program)
    if resume is None:
        to_device(step_program, zeros(extra))
        return Checkpoint({}, 0, seed or 0)
    if isinstance(resume, Run):
        found, file = checkpoints.of_run(resume), "the run"
    elif isinstance(resume, Checkpoint):
        found, file = resume, "the checkpoint"
    else:
        found, file = checkpoints.read(program, resume), os.path.basename(resume)
    missing = [n for n in extra if n.name not in found.moments]
    known = [*(n for n in step_program.graph.parameters), *extra]
    checkpoints.check(file, program.name, missing or known, found.state, [*found.state])
    to_device(step_program, found.state)
    return Checkpoint({}, found.step, found.seed if seed is None else seed)
