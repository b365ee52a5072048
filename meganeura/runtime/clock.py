"""GPU time of every launch, by timestamps, without changing what runs."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from meganeura.runtime.numpy_stepper import NumpyStepper
from meganeura.runtime.stepper import GpuStepper


@dataclass(frozen=True)
class Times:
    """Start and end of each launch in nanoseconds from the start of its step: `spans[step][launch]
    = (start, end)`.

    `source` says how they were taken: "timestamps" inside one pass, "passes" (a pass for each
    launch, where the adapter has no
    timestamps inside one), or "wall clock" on the NumPy device. `step` holds the time of each whole
    step in ns.
    """

    spans: tuple[tuple[tuple[int, int], ...], ...]
    step: tuple[int, ...]
    source: str


def time_launches(
    stepper: GpuStepper | NumpyStepper,
    feeds: Mapping[str, Any] | Sequence[Mapping[str, Any]],
    steps: int,
) -> Times:
    """Times of `steps` steps after one warm-up step; feeds are one mapping or several in turn."""
    batches = [feeds] if isinstance(feeds, Mapping) else list(feeds)
    rounds = [batches[i % len(batches)] for i in range(steps + 1)]
    if isinstance(stepper, NumpyStepper):
        return _numpy(stepper, rounds)
    inside = "timestamp-query-inside-passes" in stepper.device.target.features
    if not inside and "timestamp-query" not in stepper.device.target.features:
        return Times((), (), "none")
    spans = [_gpu_step(stepper, batch, inside) for batch in rounds][1:]
    totals = tuple(max((e for _, e in s), default=0) for s in spans)
    return Times(tuple(spans), totals, "timestamps" if inside else "passes")


def _numpy(stepper: NumpyStepper, rounds: Sequence[Mapping[str, Any]]) -> Times:
    spans = []
    for batch in rounds:
        stepper.times = []
        stepper.push(batch)
        start = stepper.times[0][0] if stepper.times else 0
        spans.append(tuple((a - start, b - start) for a, b in stepper.times))
    stepper.times = None
    return Times(
        tuple(spans[1:]), tuple(max((e for _, e in s), default=0) for s in spans[1:]), "wall clock"
    )


def _gpu_step(
    stepper: GpuStepper, feeds: Mapping[str, Any], inside: bool
) -> tuple[tuple[int, int], ...]:
    """One step with a timestamp before and after every launch."""
    import wgpu
    from wgpu.backends.wgpu_native._api import lib
    from wgpu.backends.wgpu_native.extras import write_timestamp

    device = stepper.device.handle
    stepper.stage_one(feeds)
    tape = stepper.tape(0)
    if not tape:
        return ()
    queries = device.create_query_set(type="timestamp", count=2 * len(tape))
    usage = wgpu.BufferUsage
    out = device.create_buffer(size=16 * len(tape), usage=usage.QUERY_RESOLVE | usage.COPY_SRC)
    encoder = device.create_command_encoder()
    if inside:
        compute = encoder.begin_compute_pass()
        for i, entry in enumerate(tape):
            write_timestamp(compute, queries, 2 * i)
            stepper.recorder.replay(compute, [[entry]])
            write_timestamp(compute, queries, 2 * i + 1)
        compute.end()
    else:
        for i, entry in enumerate(tape):
            writes = {
                "query_set": queries,
                "beginning_of_pass_write_index": 2 * i,
                "end_of_pass_write_index": 2 * i + 1,
            }
            compute = encoder.begin_compute_pass(timestamp_writes=writes)
            stepper.recorder.replay(compute, [[entry]])
            compute.end()
    encoder.resolve_query_set(queries, 0, 2 * len(tape), out, 0)
    device.queue.submit([encoder.finish()])
    ticks = np.frombuffer(device.queue.read_buffer(out), np.uint64).astype(np.int64).reshape(-1, 2)
    period = lib.wgpuQueueGetTimestampPeriod(device.queue._internal)
    nanoseconds = ((ticks - ticks.min()) * period).astype(np.int64)
    return tuple((int(a), int(b)) for a, b in nanoseconds)


def time_steps(
    stepper: GpuStepper | NumpyStepper, feeds: Mapping[str, Any], repeats: int, samples: int = 5
) -> list[float]:
    """Seconds a step takes on the device when `repeats` of them follow each other in one pass; one
    figure a sample.

    Timestamps at the ends of the pass where the adapter has them, else the wall clock around
    submission and wait.
    """
    if isinstance(stepper, NumpyStepper):
        return [_wall(lambda: stepper.push(feeds)) for _ in range(samples)]
    stepper.stage_one(feeds)
    if "timestamp-query" not in stepper.device.target.features:
        return [_wall(lambda: _replayed(stepper, repeats, None)) / repeats for _ in range(samples)]
    return [_replayed(stepper, repeats, stepper.device) / repeats for _ in range(samples + 1)][1:]


def _wall(action: Any) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def _replayed(stepper: GpuStepper, repeats: int, clock: Any) -> float:
    """Runs slot 0's tape so many times in one pass; seconds by timestamps when a device to ask is
    given.
    """
    import wgpu

    device = stepper.device.handle
    writes = None
    if clock is not None:
        queries = device.create_query_set(type="timestamp", count=2)
        usage = wgpu.BufferUsage
        out = device.create_buffer(size=16, usage=usage.QUERY_RESOLVE | usage.COPY_SRC)
        writes = {
            "query_set": queries,
            "beginning_of_pass_write_index": 0,
            "end_of_pass_write_index": 1,
        }
    encoder = device.create_command_encoder()
    compute = (
        encoder.begin_compute_pass(timestamp_writes=writes)
        if writes
        else encoder.begin_compute_pass()
    )
    stepper.recorder.replay(compute, [stepper.tape(0)] * repeats)
    compute.end()
    if writes is None:
        device.queue.submit([encoder.finish()])
        stepper.device.wait()
        return 0.0
    from wgpu.backends.wgpu_native._api import lib

    encoder.resolve_query_set(queries, 0, 2, out, 0)
    device.queue.submit([encoder.finish()])
    begin, end = np.frombuffer(device.queue.read_buffer(out), np.uint64)
    return float(int(end - begin) * lib.wgpuQueueGetTimestampPeriod(device.queue._internal) * 1e-9)
