"""Streams of feeds, seeds, and what is remembered of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from meganeura.compiler import compile_program
from meganeura.errors import FeedError
from meganeura.ir import build
from meganeura.ir.dtypes import i32
from meganeura.ir.graph import Graph
from meganeura.ir.initial import Constant
from meganeura.train import data
from meganeura.train import trail as trails
from meganeura.train.feeds import Feeder, Source, seeds
from meganeura.train.trail import Trail

ROWS = np.arange(24, dtype=np.float32)


def _source(stream: Any) -> Source:
    x = build.input_("x", (4,))
    return Source(stream, Feeder([x], [x]))


def _all(source: Source, count: int) -> list[list[float]]:
    found: list[list[float]] = []
    while len(found) < 9 and (more := source.steps(count)):
        found += [feed["x"].tolist() for feed in more]
    return found


def test_chunks_do_not_change_the_stream() -> None:
    batches = data.batches({"x": ROWS}, 4, epochs=1)
    want = _all(_source(batches), 1)
    assert len(want) == 6
    assert _all(_source(batches), 4) == want
    assert _all(_source(list(batches)), 4) == want


def test_skipping_and_doing_again() -> None:
    batches = data.batches({"x": ROWS}, 4)
    want = _all(_source(batches), 1)
    for stream in (batches, (batch for batch in batches)):
        source = _source(stream)
        source.skip(3)
        assert source.steps(1)[0]["x"].tolist() == want[3]
    again = _source(batches).again(2, 5)
    assert [feed["x"].tolist() for feed in again] == want[2:7]


def test_a_program_without_inputs_takes_empty_batches() -> None:
    source = Source([{}, {}], Feeder([], []))
    assert source.steps(5) == [{}, {}]


def test_inputs_that_the_step_does_not_need_are_left_out() -> None:
    x, y = build.input_("x", (2,)), build.input_("y", (2,))
    assert list(Feeder([x, y], [x]).check((ROWS[:2], ROWS[:2]))) == ["x"]


def test_seeds() -> None:
    whole = seeds(7, 0, 1000)
    assert whole.dtype == np.uint32
    np.testing.assert_array_equal(seeds(7, 300, 5), whole[300:305])
    assert len(np.unique(whole)) == 1000
    assert len(np.intersect1d(whole, seeds(8, 0, 1000))) == 0
    assert seeds(-1, 0, 2).tolist() == seeds(2**64 - 1, 0, 2).tolist()
    assert seeds(0, 0, 0).shape == (0,)


def _trail(stream: Any) -> Trail:
    w = build.parameter("w", (2,), Constant(1.0))
    x = build.input_("x", (4,))
    graph = Graph((("y", build.add(build.sum_(w), build.sum_(x))),))
    return Trail(compile_program(graph, device="numpy"), _source(stream), 0)


def test_feeds_since_the_copy(monkeypatch: Any) -> None:
    steps = [{"x": ROWS[i : i + 4]} for i in range(6)]
    trail = _trail([])
    trail.note(steps[:3])
    trail.note(steps[3:])
    assert trail.feeds(2) == steps[:2]
    trail.copy(6)
    assert (trail.step, trail.feeds(2)) == (6, [])
    monkeypatch.setattr(trails, "KEPT_BYTES", 8)
    trail.note(steps)
    assert trail.feeds(2) is None  # far too much: forgotten until the next copy
    trail.copy(7)
    assert trail.feeds(2) == []


def test_labels_that_do_not_fit_are_refused_in_a_batch_too() -> None:
    label = build.input_("y", (2,), i32)
    with pytest.raises(FeedError) as caught:
        Feeder([label], [label]).check({"y": np.array([0, 2**31])})
    assert str(caught.value).split("\n")[0] == (
        "the feed 'y' holds a number that does not fit into i32"
    )
    assert "  got:      2,147,483,648" in str(caught.value)
