"""The plan: everything that compilation decided, before a device sees it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from meganeura.codegen.kernel import Kernel
from meganeura.ir.graph import Graph, Node
from meganeura.memory.plan import MemoryPlan
from meganeura.schedule.waves import Schedule
from meganeura.target import Target
from meganeura.trace import Event

ProgramKind = Literal["inference", "training step"]


@dataclass(frozen=True)
class Options:
    """What the user may switch; a changed copy is made by `Program.with_options`.

    `rewrite`, `fuse`, `alias` switch a pass; `rules_off` names rewrite rules that may not fire;
    `tile` forces the tile of the kernel
    that computes a named tensor; `trusted` leaves out bounds checks in kernels that a checked run
    has verified.
    """

    rewrite: bool = True
    fuse: bool = True
    alias: bool = True
    trusted: bool = False
    rules_off: frozenset[str] = frozenset()
    tile: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class PassRecord:
    """One pass as it ran: levels before and after, seconds, and what it noted."""

    name: str
    before: Any
    after: Any
    seconds: float
    notes: Mapping[str, Any]

    @staticmethod
    def of(event: Event) -> PassRecord:
        """What a watcher saw of a pass."""
        return PassRecord(event.stage, event.before, event.after, event.seconds, event.notes)


@dataclass(frozen=True)
class Plan:
    """A compiled program before it meets a device.

    `source` is the user's graph, `graph` what was scheduled, `inputs` the feeds in the order in
    which the user made them.
    """

    name: str
    kind: ProgramKind
    source: Graph
    graph: Graph
    inputs: tuple[Node, ...]
    options: Options
    target: Target
    passes: tuple[PassRecord, ...]
    schedule: Schedule[Kernel]
    memory: MemoryPlan
    holders: tuple[tuple[str, Node], ...]
    updates: tuple[tuple[Node, Node], ...]
    seconds: float

    @cached_property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels in the order of their launches."""
        return tuple(launch.kernel for launch in self.schedule.launches)

    @cached_property
    def placements(self) -> dict[Node, int]:
        """The buffer of each stored tensor that is not a leaf's new value."""
        return {p.node: p.buffer for p in self.memory.placements}

    @cached_property
    def leaf_of(self) -> dict[Node, Node]:
        """The leaf in whose memory a new value lies."""
        return {value: leaf for leaf, value in self.updates}
