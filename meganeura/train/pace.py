"""How many steps to feed ahead, and when to ask the device for losses: measured, not set."""

from __future__ import annotations

import time
from collections.abc import Callable

REPORT_SECONDS = 0.25
CHUNK_SECONDS = 0.02
LARGEST_CHUNK = 256


class Pace:
    """Keeps reports at most four a second, and the work that is queued below the time between two
    of them.

    A step is first measured alone, then among a few, then from report to report.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.clock = clock
        self.limit = 1  # steps from one report to the next
        self.chunk = 1  # steps made at once, between two looks at the stop flag
        self.pending = 0
        self.rate = 0.0
        self.busy = 0.0
        self.first = 0.0  # seconds of the first report: one step, which warms up
        self._since = clock()
        self._reports = 0

    def room(self) -> int:
        """How many steps may be fed now."""
        return max(min(self.chunk, self.limit - self.pending), 1)

    def fed(self, count: int) -> None:
        """Some steps went to the device."""
        self.pending += count

    def due(self) -> bool:
        """Whether it is time to ask for the losses."""
        if not self.pending:
            return False
        return self.pending >= self.limit or self.clock() - self._since >= REPORT_SECONDS

    def reported(self) -> None:
        """The device has finished all pending steps: learn from how long it took."""
        now = self.clock()
        elapsed = max(now - self._since, 1e-9)
        self.busy += elapsed
        self.first = self.first or elapsed
        if self.pending:
            self._learn(elapsed / self.pending)
        self._since = now
        self.pending = 0

    def resume(self) -> None:
        """Time since the last report was spent on something else and does not count."""
        self._since = self.clock()

    def _learn(self, seconds: float) -> None:
        self._reports += 1
        self.rate = 1.0 / seconds
        most = 8 if self._reports == 1 else 1 << 20
        self.limit = max(min(int(REPORT_SECONDS / seconds), most), 1)
        self.chunk = max(min(int(CHUNK_SECONDS / seconds), LARGEST_CHUNK), 1)
