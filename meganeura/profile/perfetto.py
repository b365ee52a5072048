"""A trace of the timed steps for ui.perfetto.dev: the JSON format of Chrome's tracing.

Source of the format: the Trace Event Format, complete events ("X") in microseconds.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from meganeura.profile.profile import KernelProfile

STEPS = 0  # the track that shows whole steps; launches lie on the tracks behind it


def write(
    path: str | os.PathLike[str], name: str, device: str, kernels: Sequence[KernelProfile]
) -> None:
    """Writes the trace of a profile."""
    content = {"displayTimeUnit": "ns", "traceEvents": events(name, device, kernels)}
    Path(path).write_text(json.dumps(content, separators=(",", ":")), encoding="utf-8")


def events(name: str, device: str, kernels: Sequence[KernelProfile]) -> list[dict[str, Any]]:
    """Names of the tracks, one slice a step, one slice a launch of each step, from the first start
    on.
    """
    if not kernels:
        return []
    origin = min(int(k.start_ns.min()) for k in kernels)
    found = [_named("process_name", STEPS, f"{name} on {device}"), _track(STEPS, "steps")]
    lanes: list[int] = []
    for start, end, step, kernel in _slices(kernels):
        lane = next((i for i, free in enumerate(lanes) if free <= start), len(lanes))
        if lane == len(lanes):
            lanes.append(0)
            found.append(_track(lane + 1, "launches" if lane == 0 else f"launches beside, {lane}"))
        lanes[lane] = end
        found.append(_launch(lane + 1, start - origin, end - start, step, kernel))
    return found + _steps(kernels, origin)


def _slices(kernels: Sequence[KernelProfile]) -> list[tuple[int, int, int, KernelProfile]]:
    found = [
        (int(start), int(end), step, kernel)
        for kernel in kernels
        for step, (start, end) in enumerate(zip(kernel.start_ns, kernel.end_ns, strict=True))
    ]
    return sorted(found, key=lambda slice_: (slice_[0], slice_[3].index))


def _steps(kernels: Sequence[KernelProfile], origin: int) -> list[dict[str, Any]]:
    found = []
    for step in range(len(kernels[0].start_ns)):
        start = min(int(k.start_ns[step]) for k in kernels)
        end = max(int(k.end_ns[step]) for k in kernels)
        found.append(_slice(STEPS, f"step {step + 1}", start - origin, end - start, {}))
    return found


def _launch(
    track: int, start: int, duration: int, step: int, kernel: KernelProfile
) -> dict[str, Any]:
    facts = {
        "step": step + 1,
        "kernel": kernel.name,
        "phase": kernel.phase,
        "wave": kernel.wave,
        "tile": kernel.tile,
        "flops": kernel.flops,
        "bytes read": kernel.read,
        "bytes written": kernel.written,
        "from": "; ".join(kernel.lines),
    }
    return _slice(track, f"{kernel.name} {kernel.label}", start, duration, facts)


def _slice(
    track: int, name: str, start: int, duration: int, facts: dict[str, Any]
) -> dict[str, Any]:
    """A complete event; times come in nanoseconds and go out in microseconds."""
    event: dict[str, Any] = {
        "name": name,
        "ph": "X",
        "ts": start / 1e3,
        "dur": duration / 1e3,
        "pid": 0,
        "tid": track,
    }
    return {**event, "args": facts} if facts else event


def _track(track: int, name: str) -> dict[str, Any]:
    return _named("thread_name", track, name)


def _named(kind: str, track: int, name: str) -> dict[str, Any]:
    return {"name": kind, "ph": "M", "pid": 0, "tid": track, "args": {"name": name}}
