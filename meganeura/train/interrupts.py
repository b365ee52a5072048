"""Ctrl-C and the notebook's stop button, heard between steps.

The first one only sets a flag, so that no call into the driver is cut in two; one that comes a
second or more later is an ordinary KeyboardInterrupt. What comes sooner is the same press again.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Stop:
    """Whether the user has asked to stop."""

    requested = False
    since = 0.0


@contextmanager
def interrupts() -> Iterator[Stop]:
    """While inside, SIGINT sets the flag; off the main thread nothing changes."""
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    previous = signal.getsignal(signal.SIGINT)

    def handle(number: int, frame: FrameType | None) -> None:
        if stop.requested and time.monotonic() - stop.since > 1.0:
            raise KeyboardInterrupt
        if not stop.requested:
            stop.requested, stop.since = True, time.monotonic()

    signal.signal(signal.SIGINT, handle)
    try:
        yield stop
    finally:
        signal.signal(
            signal.SIGINT, previous if previous is not None else signal.default_int_handler
        )
