"""The memory plan: a buffer for each stored tensor, whole buffers passed on when their tensor is
dead.

Whole buffers, not slices of an arena, because a barrier covers a whole buffer: two launches that
write different parts of one
would wait for each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate

from meganeura.ir.graph import Node
from meganeura.schedule.waves import K, Schedule
from meganeura.trace import note, stage


@dataclass(frozen=True)
class Buffer:
    """Device memory of the plan: its number and its size in bytes."""

    index: int
    nbytes: int


@dataclass(frozen=True)
class Placement:
    """A tensor in a buffer, from the launch that writes it to the last that reads it."""

    node: Node
    buffer: int
    first_launch: int
    last_launch: int
    nbytes: int


@dataclass(frozen=True)
class MemoryPlan:
    """Buffers and who lies in them when; sizes in bytes.

    `live` is the sum of the tensors alive at each launch, `peak` its maximum; `planned` is what the
    buffers take, `unaliased` what
    they would without sharing; `resident` are leaves (feeds, parameters, states, constants) and
    outputs kept for the whole run.
    """

    buffers: tuple[Buffer, ...]
    placements: tuple[Placement, ...]
    live: tuple[int, ...]
    peak: int
    planned: int
    unaliased: int
    resident: int


@stage("memory")
def plan_memory(
    schedule: Schedule[K],
    kept: frozenset[Node],
    targets: Mapping[Node, Node],
    alias: bool = True,
) -> MemoryPlan:
    """Launches -> buffers.

    `kept` tensors (outputs) have a buffer of their own; `targets` are values written into a leaf's
    buffer.
    """
    spans = _lifetimes(schedule, kept, targets)
    sizes: list[int] = []
    free: list[int] = []
    releases: dict[int, list[int]] = {}
    placements: list[Placement] = []
    waves = {launch.index: launch.wave for launch in schedule.launches}
    current = -1
    for node, (first, last) in spans.items():
        while current < waves[first]:
            free += sorted(releases.pop(current - 1, ()))
            current += 1
        buffer = _take(sizes, free, _padded(node.nbytes)) if alias and node not in kept else -1
        if buffer < 0:
            sizes.append(_padded(node.nbytes))
            buffer = len(sizes) - 1
        placements.append(Placement(node, buffer, first, last, node.nbytes))
        if node not in kept:
            releases.setdefault(waves[last], []).append(buffer)
    change = [0] * (len(schedule.launches) + 1)
    for placement in placements:
        change[placement.first_launch] += placement.nbytes
        change[placement.last_launch + 1] -= placement.nbytes
    live = tuple(accumulate(change[:-1]))
    leaves = {
        n
        for la in schedule.launches
        for r in la.kernel.arms
        for n in r.inputs
        if n.op.kind == "leaf"
    }
    plan = MemoryPlan(
        tuple(Buffer(i, n) for i, n in enumerate(sizes)),
        tuple(placements),
        live,
        max(live, default=0),
        sum(sizes),
        sum(_padded(n.nbytes) for n in spans),
        sum(n.nbytes for n in leaves | set(targets.values())),
    )
    note("planned", plan.planned)
    note("unaliased", plan.unaliased)
    return plan


def _padded(nbytes: int) -> int:
    """Buffers come in whole vectors."""
    return max((nbytes + 15) // 16 * 16, 16)


def _lifetimes(
    schedule: Schedule[K], kept: frozenset[Node], targets: Mapping[Node, Node]
) -> dict[Node, tuple[int, int]]:
    """For each stored tensor the launch that writes it and the last that reads it, in order of
    writing.
    """
    spans: dict[Node, tuple[int, int]] = {}
    end = len(schedule.launches) - 1
    for launch in schedule.launches:
        for region in launch.kernel.arms:
            for node in region.roots:
                if node not in targets:
                    spans[node] = (launch.index, end if node in kept else launch.index)
    for launch in schedule.launches:
        for region in launch.kernel.arms:
            for node in region.inputs:
                if node in spans:
                    spans[node] = (spans[node][0], max(spans[node][1], launch.index))
    return spans


def _take(sizes: list[int], free: list[int], nbytes: int) -> int:
    """The free buffer that fits best; a smaller one grows only if nothing fits. -1 when there is
    none.
    """
    fitting = [b for b in free if sizes[b] >= nbytes]
    if fitting:
        chosen = min(fitting, key=lambda b: (sizes[b], b))
    elif free:
        chosen = max(free, key=lambda b: (sizes[b], -b))
        sizes[chosen] = nbytes
    else:
        return -1
    free.remove(chosen)
    return chosen
