"""Measuring a program on data that it does not learn from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from meganeura.errors import DataError, OptionError
from meganeura.ir.graph import Array
from meganeura.train.data import Batches, arrays_of, columns_of, rebuilt, rows_of
from meganeura.train.feeds import Feeder, Feeds, user_inputs

Outputs = Mapping[str, Array]
Metric = Callable[[Outputs, Feeds], float]
"""From a batch's outputs and feeds, both without padding rows, to a mean over the rows."""


@dataclass(frozen=True)
class Accuracy:
    """The share of rows whose greatest logit is the label's."""

    logits: str = "logits"
    labels: str = "y"

    def __call__(self, outputs: Outputs, feeds: Feeds) -> float:
        """A number from 0 to 1."""
        for name, found in ((self.logits, outputs), (self.labels, feeds)):
            if name not in found:
                raise OptionError(
                    f"accuracy finds no {name!r}",
                    expected="the names of an output and of an input",
                    got=", ".join([*outputs, *feeds]),
                    hint='name them, as in Accuracy(logits="logits", labels="y")',
                )
        best = np.argmax(outputs[self.logits], axis=-1)
        return float(np.mean(best == feeds[self.labels]))


def evaluate(
    program: Any, data: Any, metrics: Mapping[str, Metric] | None = None
) -> dict[str, float]:
    """Means over a finite data set: of each metric, or without metrics of each scalar output.

    `data` is a data set (cut into batches in order, the last one padded with its own first row,
    whose results are thrown away) or a finite iterable of batches. A scalar output is a mean over a
    batch with padding in it, so it is taken over full batches only.
    """
    feeder = _feeder(program)
    totals: dict[str, float] = {}
    weights: dict[str, int] = {}
    for batch, rows in _batches(data, feeder):
        feeds = feeder.check(batch)
        outputs = run(program, feeds)
        full = rows == _size(feeder)
        for name, value in _measured(metrics, outputs, feeds, rows, full).items():
            totals[name] = totals.get(name, 0.0) + value * rows
            weights[name] = weights.get(name, 0) + rows
    if not totals:
        raise DataError(
            "there is nothing to evaluate",
            expected="at least one full batch, and metrics= or a scalar output",
            got="none",
        )
    return {name: totals[name] / weights[name] for name in totals}


def run(program: Any, feeds: Feeds) -> dict[str, Array]:
    """All outputs of an inference program by name."""
    found = program(**feeds)
    if isinstance(found, Mapping):
        return {name: np.asarray(value) for name, value in found.items()}
    return {program.graph.outputs[0][0]: np.asarray(found)}


def _feeder(program: Any) -> Feeder:
    inputs = user_inputs(program.graph)
    return Feeder(inputs, inputs)


def _size(feeder: Feeder) -> int:
    """Rows in a batch: the first axis of the first input that has one."""
    return next((n.shape[0] for n in feeder.wanted if n.shape), 1)


def _batches(data: Any, feeder: Feeder) -> Iterable[tuple[Any, int]]:
    """Batches of the size that the program takes, each with its number of real rows."""
    size = _size(feeder)
    if isinstance(data, Batches) and data.epochs is None:
        raise DataError(
            "validation needs an end",
            expected="a data set, or batches(..., epochs=1)",
            got=repr(data),
        )
    if hasattr(data, "x") or isinstance(data, (Mapping, tuple)):
        columns = columns_of(data)
        for start in range(0, rows_of(columns), size):
            parts = [array[start : start + size] for array in arrays_of(columns)]
            yield rebuilt(columns, [_padded(part, size) for part in parts]), len(parts[0])
        return
    for batch in data:
        yield batch, size


def _padded(rows: Array, size: int) -> Array:
    """The rows, and the first of them again up to the size of a batch."""
    missing = size - len(rows)
    return rows if not missing else np.concatenate([rows, np.repeat(rows[:1], missing, axis=0)])


def _measured(
    metrics: Mapping[str, Metric] | None, outputs: Outputs, feeds: Feeds, rows: int, full: bool
) -> dict[str, float]:
    if metrics is None:
        scalars = {name: value for name, value in outputs.items() if value.ndim == 0}
        return {name: float(value) for name, value in scalars.items()} if full else {}
    if not full:
        outputs = {name: value[:rows] if value.ndim else value for name, value in outputs.items()}
        feeds = {name: value[:rows] if value.ndim else value for name, value in feeds.items()}
    return {name: float(metric(outputs, feeds)) for name, metric in metrics.items()}
