"""The roofline: what the adapter's measured peaks allow a kernel, by its work and its traffic.

Source: Williams, Waterman and Patterson, Roofline, 2009.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from meganeura.target import Peaks

if TYPE_CHECKING:
    from meganeura.profile.profile import KernelProfile


@dataclass(frozen=True)
class Point:
    """A kernel in the picture: flops a byte, flops a second reached, and allowed there."""

    name: str
    label: str
    kind: str
    intensity: float
    reached: float
    allowed: float | None


@dataclass(frozen=True)
class Roof:
    """Ceilings of one adapter: flops a second, bytes a second, seconds a launch costs; None when
    not measured.
    """

    flops: float | None = None
    bytes: float | None = None
    launch: float = 0.0

    @property
    def ridge(self) -> float | None:
        """The intensity, in flops a byte, from which arithmetic is the limit."""
        return None if self.flops is None or self.bytes is None else self.flops / self.bytes

    def allowed(self, intensity: float) -> float | None:
        """Flops a second that a kernel of this intensity can reach."""
        if self.flops is None or self.bytes is None:
            return None
        return min(self.flops, intensity * self.bytes)

    def least_us(self, flops: int, moved: int) -> float | None:
        """The least microseconds for so much work and traffic."""
        if self.flops is None or self.bytes is None:
            return None
        return max(flops / self.flops, moved / self.bytes) * 1e6

    def bound(self, flops: int, moved: int) -> str:
        """The limit by the model: "launch", "memory" or "arithmetic"; empty when nothing was
        measured.
        """
        least = self.least_us(flops, moved)
        if least is None or self.flops is None or self.bytes is None:
            return ""
        if least < self.launch * 1e6:
            return "launch"
        return "arithmetic" if flops / self.flops > moved / self.bytes else "memory"

    def point(self, kernel: KernelProfile) -> Point:
        """The place of a kernel in the picture."""
        intensity = kernel.flops / kernel.bytes if kernel.bytes else 0.0
        allowed = self.allowed(intensity)
        return Point(
            kernel.name, kernel.label, kernel.kind, intensity, kernel.flops_per_second, allowed
        )


def roof(peaks: Peaks | None) -> Roof:
    """The ceilings from an adapter's peaks."""
    return Roof() if peaks is None else Roof(peaks.flops, peaks.bytes, peaks.launch)
