"""Timing a program: the launches that it always runs, with the device's clock read around each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from meganeura.codegen.kernel import Kernel
from meganeura.errors import DeviceError, OptionError
from meganeura.ir.graph import Array, Node
from meganeura.profile.peaks import measure_peaks
from meganeura.profile.profile import KernelProfile, Profile
from meganeura.profile.roofline import Roof, roof
from meganeura.train.feeds import Feeder, user_inputs
from meganeura.train.loop import latest_step
from meganeura.train.run import Run
from meganeura.train.state import to_device, to_host

CLOCKS = {
    "timestamps": "GPU timestamps",
    "passes": "GPU timestamps, a pass for each launch",
    "wall clock": "the host's clock",
}
GAP_NS = 1000


def profile(
    program: Any, steps: int = 50, feeds: Any = None, training: bool | None = None
) -> Profile:
    """Times each launch of a program, and puts work, traffic, tile and source lines beside it.

    `training` chooses the training step (True) or the program itself (False); None takes the
    training step when there is one. A Run is profiled as its training step. `feeds` is a batch, by
    name or in order; without it the batch that training used last, or random numbers. Parameters
    and moments are the same afterwards. On a device without timestamps, and on the NumPy device,
    the times are those of the host's clock.
    """
    if steps < 1:
        raise OptionError("steps is out of range", expected=">= 1", got=str(steps))
    chosen, known = _chosen(program, training)
    batch = _feeds(chosen, feeds, known)
    state = to_host(chosen)
    try:
        times = chosen.time_launches(batch, steps)
    finally:
        to_device(chosen, state)
    if not times.spans:
        raise DeviceError(
            f"{chosen.device.name} cannot time its launches",
            expected="an adapter with the feature timestamp-query",
            got=", ".join(sorted(chosen.target.features)) or "no features",
            hint='profile on another device, as in mg.compile(..., device="numpy")',
        )
    target = chosen.device.target
    if target.peaks is None:
        target = replace(target, peaks=measure_peaks(chosen.device))
        chosen.device.target = target
    clock = _in_a_row(np.asarray(times.spans, np.int64), times.step)
    kernels = tuple(
        _kernel(
            launch.kernel, launch.index, launch.wave, clock[:, launch.index], roof(target.peaks)
        )
        for launch in chosen.schedule.launches
    )
    _remember(chosen, kernels)
    return Profile(chosen.name, chosen.kind, target, CLOCKS[times.source], kernels)


def _in_a_row(spans: Array, steps: Sequence[int]) -> Array:
    """Clocks that start anew with each step -> one clock; the host's pauses between timed steps are
    left out.
    """
    ends = np.cumsum([0, *(step + GAP_NS for step in steps)])
    return np.asarray(spans + ends[:-1, None, None])


def _remember(program: Any, kernels: Sequence[KernelProfile]) -> None:
    """Leaves the times with the program, where the views look for them."""
    for kernel in kernels:
        program.timings[kernel.name] = [float(t) for t in kernel.times_us]


def _chosen(program: Any, training: bool | None) -> tuple[Any, Mapping[str, Array]]:
    """The program to time, and feeds that are known to be good."""
    if isinstance(program, Run):
        program, training = program.program, True if training is None else training
    found = latest_step(program)
    if training and found is None:
        raise OptionError(
            f"{program.name} has no training step yet",
            expected="a program that was trained",
            got="training=True",
            hint="train it first, if only for one step: mg.train(program, steps=1, ...)",
        )
    if training is False or found is None:
        return program, {}
    return found


def _feeds(program: Any, given: Any, known: Mapping[str, Array]) -> dict[str, Array]:
    """The batch that was given, completed by what training fed, or random numbers."""
    inputs = user_inputs(program.graph)
    feeds = dict(known)
    if given is not None:
        feeds.update(Feeder(inputs, inputs).check(given))
    return {
        str(node.name): feeds[str(node.name)] if str(node.name) in feeds else _made_up(node)
        for node in program.graph.inputs
    }


def _made_up(node: Node) -> Array:
    """Numbers of the input's shape: floats from a normal distribution, integers zero, the same each
    time.
    """
    if node.dtype.is_float:
        return np.random.default_rng(0).normal(size=node.shape).astype(node.dtype.numpy)
    return np.zeros(node.shape, node.dtype.numpy)


def _kernel(kernel: Kernel, index: int, wave: int, clock: Array, ceilings: Roof) -> KernelProfile:
    return KernelProfile(
        index=index,
        name=kernel.name,
        label=kernel.label,
        kind=kernel.kind,
        phase=kernel.phase,
        wave=wave,
        tile=kernel.tile.describe(),
        grid=kernel.grid,
        workgroup=kernel.workgroup,
        flops=kernel.flops,
        read=kernel.bytes_read,
        written=kernel.bytes_written,
        lines=source_lines(kernel.nodes),
        start_ns=clock[:, 0],
        end_ns=clock[:, 1],
        roof=ceilings,
    )


def source_lines(nodes: Sequence[Node]) -> tuple[str, ...]:
    """The user's lines that the nodes come from, such as `In[3], line 4`, each once, the most
    frequent first.
    """
    counts: dict[str, int] = {}
    for node in nodes:
        source = node.origin.source
        if source is not None:
            place = f"{source.cell}, line {source.line}"
            counts[place] = counts.get(place, 0) + 1
    return tuple(sorted(counts, key=lambda place: -counts[place]))
