"""Launches in waves: those of one wave do not wait for each other, so they stand side by side."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
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
    waves = tuple(
        tuple(launch.index for launch in group)
        for _, group in groupby(launches, lambda la: la.wave)
    )
    note("waves", len(waves))
    return Schedule(launches, waves)


def _dependencies(kernels: tuple[K, ...], updates: tuple[tuple[Node, Node], ...]) -> list[set[int]]:
    maker = {root: i for i, k in enumerate(kernels) for r in k.arms for root in r.roots}
    readers: dict[Node, set[int]] = {}
    before: list[set[int]] = [set() for _ in kernels]
    for i, kernel in enumerate(kernels):
        for node in (n for r in kernel.arms for n in r.inputs):
            readers.setdefault(node, set()).add(i)
            if maker.get(node, i) != i:
                before[i].add(maker[node])
    for leaf, value in updates:
        writer = maker[value]
        before[writer] |= readers.get(leaf, set()) - {writer}
    return before


def waves_of(kernels: tuple[K, ...], updates: tuple[tuple[Node, Node], ...]) -> dict[int, int]:
    """The wave of each kernel, by its place in the tuple."""
    return _waves(_dependencies(kernels, updates))


def _waves(before: list[set[int]]) -> dict[int, int]:
    wave: dict[int, int] = {}
    missing = [len(earlier) for earlier in before]
    after: list[list[int]] = [[] for _ in before]
    for i, earlier in enumerate(before):
        for j in earlier:
            after[j].append(i)
    ready = [i for i, count in enumerate(missing) if count == 0]
    for i in ready:
        wave[i] = max((wave[j] + 1 for j in before[i]), default=0)
        for j in after[i]:
            missing[j] -= 1
            if missing[j] == 0:
                ready.append(j)
    assert len(wave) == len(before), "kernels wait for each other in a circle"
    return wave
