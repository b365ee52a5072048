"""The progress line on a terminal or in a cell's standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable

from meganeura.train.run import Progress

Sink = Callable[[Progress], None]


class ProgressLine:
    """Writes one line over itself, and leaves the last one standing."""

    def __init__(self) -> None:
        self._width = 0

    def __call__(self, progress: Progress) -> None:
        """Shows the newest state."""
        line = progress.line()
        padding = " " * max(self._width - len(line), 0)
        self._width = len(line)
        sys.stderr.write(f"\r{line}{padding}" + ("\n" if progress.finished else ""))
        sys.stderr.flush()


def sink_of(progress: bool | Sink) -> Sink | None:
    """True is the progress line, False nothing, and a function is called with each `Progress`."""
    if progress is True:
        return ProgressLine()
    return None if progress is False else progress
