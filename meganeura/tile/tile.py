"""Tile programs as data: the sizes that a skeleton takes."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class MapTile:
    """Elements of a map: `lanes` an invocation, `workgroup` invocations."""

    workgroup: int
    lanes: int

    @property
    def threads(self) -> int:
        """Invocations of a workgroup."""
        return self.workgroup

    @property
    def workgroup_bytes(self) -> int:
        """Workgroup memory in bytes."""
        return 0

    def registers(self) -> int:
        """32-bit registers an invocation is assumed to need."""
        return 8 + 4 * self.lanes

    def describe(self) -> str:
        """The tile in words."""
        return f"{self.workgroup} invocations × {self.lanes}"

    def groups(self, elements: int) -> int:
        """Workgroups for so many elements."""
        return math.ceil(elements / (self.workgroup * self.lanes))


@dataclass(frozen=True)
class ReduceTile:
    """Results a workgroup makes at once, invocations that share the terms of each, and terms read
    at once.
    """

    rows: int
    parts: int
    lanes: int
    accumulators: int = 1

    @property
    def threads(self) -> int:
        """Invocations of a workgroup."""
        return self.rows * self.parts

    @property
    def workgroup_bytes(self) -> int:
        """Workgroup memory in bytes."""
        return 0 if self.parts == 1 else 4 * self.accumulators * self.threads

    def registers(self) -> int:
        """32-bit registers an invocation is assumed to need."""
        return 12 + 4 * self.lanes + 2 * self.accumulators

    def describe(self) -> str:
        """The tile in words."""
        return f"{self.rows} rows × {self.parts} parts × {self.lanes}"


@dataclass(frozen=True)
class MatmulTile:
    """The workgroup's tile `bm` x `bn` in steps of `bk`, the invocation's register tile `tm` x
    `tn`.

    With `parts` over 1 so many teams of invocations share the terms of each step.
    """

    bm: int
    bn: int
    bk: int
    tm: int
    tn: int
    parts: int = 1

    @property
    def unroll(self) -> int:
        """Terms written out in the innermost loop: more for register tiles with much arithmetic.

        On an NVIDIA H200 at 4096 eight gave 128x128 41.9 TFLOP/s for 38.3, four gave 256x128 41.7
        for 39.4; smaller register tiles gained nothing.
        """
        wanted = 4 if self.tm * self.tn >= 128 else 8 if self.tm * self.tn >= 64 else 1
        return math.gcd(wanted, self.bk)

    @property
    def workers(self) -> int:
        """Invocations that cover the tile once."""
        return (self.bm // self.tm) * (self.bn // self.tn)

    @property
    def threads(self) -> int:
        """Invocations of a workgroup."""
        return self.workers * self.parts

    @property
    def workgroup_bytes(self) -> int:
        """Workgroup memory in bytes: a slice of either operand, padded by one vector a row, and the
        teams' sums.
        """
        slices = 16 * self.bk * (self.bm // 4 + 1 + self.bn // 4 + 1)
        return slices + (4 * self.threads * self.tm * self.tn if self.parts > 1 else 0)

    def registers(self) -> int:
        """32-bit registers an invocation is assumed to need."""
        loads = self.bk * (self.bm + self.bn) // self.threads
        return self.tm * self.tn + self.tm + self.tn + loads + 16

    def describe(self) -> str:
        """The tile in words."""
        teams = f", {self.parts} teams" if self.parts > 1 else ""
        return f"{self.bm}×{self.bn}×{self.bk}, {self.tm}×{self.tn} per invocation{teams}"


Tile = MapTile | ReduceTile | MatmulTile
