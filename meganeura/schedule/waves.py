"""Launches in waves: those of one wave do not wait for each other, so they stand side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from meganeura.fuse.region import Region
from meganeura.ir.graph import Node
from meganeura.trace import note, stage


class Work(Protocol):
    """What can be launched: one region, or several as its arms."""

    @property
    def arms(self) -> tuple[Region, ...]:
        """The regions that one launch computes."""
        ...


K = TypeVar("K", bound=Work)


@dataclass(frozen=True)
class Launch(Generic[K]):
    """One launch of a kernel: its place, its wave, and the launches that it waits for."""

    kernel: K
    index: int
    wave: int
    waits_for: tuple[int, ...]


@dataclass(frozen=True)
class Schedule(Generic[K]):
    """Launches in order, and the indices of each wave."""

    launches: tuple[Launch[K], ...]
    waves: tuple[tuple[int, ...], ...]


@stage("schedule")
def schedule(kernels: tuple[K, ...], updates: tuple[tuple[Node, Node], ...]) -> Schedule[K]:
    """Kernels -> launches breadth first: a kernel runs in the first wave after all that it waits
    for.

    A kernel waits for those that make what it reads, and one that overwrites a leaf waits for all
    that read its old value.
    """
    before = _dependencies(kernels, updates)
    wave = _waves(before)
    order = sorted(range(len(kernels)), key=lambda i: (wave[i], i))
    place = {kernel: position for position, kernel in enumerate(order)}
    launches = tuple(
        Launch(kernels[i], place[i], wave[i], tuple(sorted(place[j] for j in before[i])))
        for i in order
    )
    count = max((launch.wave for launch in launches), default=-1) + 1
    waves = tuple(tuple(la.index for la in launches if la.wave == w) for w in range(count))
    note("waves", count)
    return Schedule(launches, waves)


def _dependencies(kernels: tuple[K, ...], updates: tuple[tuple[Node, Node], ...]) -> list[set[int]]:
    maker = {root: i for i, k in enumerate(kernels) for r in k.arms for root in r.roots}
    reads = [dict.fromkeys(n for r in k.arms for n in r.inputs) for k in kernels]
    before: list[set[int]] = [
        {maker[n] for n in inputs if n in maker} - {i} for i, inputs in enumerate(reads)
    ]
    for leaf, value in updates:
        writer = maker[value]
        before[writer] |= {i for i, inputs in enumerate(reads) if leaf in inputs} - {writer}
    return before


def waves_of(kernels: tuple[K, ...], updates: tuple[tuple[Node, Node], ...]) -> dict[int, int]:
    """The wave of each kernel, by its place in the tuple."""
    return _waves(_dependencies(kernels, updates))


def _waves(before: list[set[int]]) -> dict[int, int]:
    wave: dict[int, int] = {}
    waiting = set(range(len(before)))
    while waiting:
        ready = sorted(i for i in waiting if before[i] <= wave.keys())
        assert ready, "kernels wait for each other in a circle"
        for i in ready:
            wave[i] = max((wave[j] + 1 for j in before[i]), default=0)
        waiting -= set(ready)
    return wave
