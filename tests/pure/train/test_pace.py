"""How far ahead steps are fed, on a clock of the test's own."""

from __future__ import annotations

import pytest

from meganeura.train.pace import LARGEST_CHUNK, Pace


class Clock:
    """Time that passes only when told."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def _run(pace: Pace, clock: Clock, seconds: float) -> list[int]:
    """Reports of a run whose steps take so long each, all of it on the device: steps in each."""
    reports, count = [], 0
    for _ in range(100_000):
        room = pace.room()
        pace.fed(room)
        count += room
        if pace.due():
            clock.now += seconds * pace.pending  # the device catches up
            reports.append(pace.pending)
            pace.reported()
        if count >= 40 / seconds or len(reports) > 40:
            break
    return reports


@pytest.mark.parametrize("seconds", [1e-5, 1e-4, 0.01, 0.1, 2.0])
def test_reports_come_a_quarter_of_a_second_apart(seconds: float) -> None:
    clock = Clock()
    pace = Pace(clock)
    reports = _run(pace, clock, seconds)
    assert reports[0] == 1
    assert reports[1] <= 8
    for steps in reports[2:]:
        assert steps == 1 or steps * seconds <= 0.25 + 1e-9
    assert reports[-1] >= int(0.9 * 0.25 / seconds)
    assert pace.rate == pytest.approx(1 / seconds)
    assert pace.busy == pytest.approx(sum(reports) * seconds)
    assert 1 <= pace.chunk <= LARGEST_CHUNK


def test_nothing_is_due_before_the_first_step() -> None:
    clock = Clock()
    pace = Pace(clock)
    clock.now += 10
    assert not pace.due()


def test_time_alone_makes_a_report_due() -> None:
    clock = Clock()
    pace = Pace(clock)
    pace.limit = 1000
    pace.fed(1)
    assert not pace.due()
    clock.now += 0.3
    assert pace.due()


def test_time_between_is_left_out() -> None:
    clock = Clock()
    pace = Pace(clock)
    pace.fed(1)
    clock.now += 1
    pace.reported()
    clock.now += 50  # an evaluation
    pace.resume()
    pace.fed(1)
    clock.now += 1
    pace.reported()
    assert pace.busy == 2
    assert pace.rate == 1
