"""The last copy of the state on the host, and the way from there to the present step.

A copy now and then is what survives a lost device. From a copy the steps since can be run again,
bit for bit, which is how the step that made the first NaN is found without watching every step.
"""

from __future__ import annotations

import time
from typing import Any

from meganeura.train.feeds import Feeds, Source
from meganeura.train.state import State, to_host

COPY_SECONDS = 1.0
COPY_SHARE = 0.02
"""At most this share of the time goes into copies."""
KEPT_BYTES = 256 << 20


class Trail:
    """Copies of the state, and the feeds since the last one if the data cannot repeat them."""

    def __init__(self, program: Any, source: Source, step: int) -> None:
        self.program = program
        self.source = source
        self.state: State = {}
        self.step = step
        self._feeds: list[Feeds] | None = []
        self._bytes = 0
        self._cost = 0.0
        self._copied = 0.0
        self.copy(step)

    def copy(self, step: int) -> None:
        """Copies the state as it is after `step` updates."""
        start = time.perf_counter()
        self.state = to_host(self.program)
        self.step = step
        self._copied = time.perf_counter()
        self._cost = self._copied - start
        self._feeds, self._bytes = [], 0

    def copy_if_due(self, step: int) -> bool:
        """Copies when the last copy is old enough, or the feeds since then take much memory."""
        age = time.perf_counter() - self._copied
        wait = self._cost / COPY_SHARE
        if age < wait or (age < COPY_SECONDS and self._bytes < KEPT_BYTES):
            return False
        self.copy(step)
        return True

    def note(self, feeds: list[Feeds]) -> None:
        """Remembers the feeds of the next steps; above a limit it forgets them all until the next
        copy.
        """
        if self.source.repeatable or self._feeds is None:
            return
        self._feeds += feeds
        self._bytes += sum(array.nbytes for feed in feeds for array in feed.values())
        if self._bytes > 4 * KEPT_BYTES:
            self._feeds = None

    def feeds(self, count: int) -> list[Feeds] | None:
        """The feeds of the first steps after the copy; None when they were forgotten."""
        if self.source.repeatable:
            return self.source.again(self.step, count)
        return None if self._feeds is None else self._feeds[:count]
