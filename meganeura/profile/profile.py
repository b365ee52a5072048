"""What a profile holds: the times of each launch, with what the model says of it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from meganeura.ir.graph import Array
from meganeura.profile import perfetto
from meganeura.profile.roofline import Roof, roof
from meganeura.target import Target


@dataclass(frozen=True)
class KernelProfile:
    """One launch of a step: measured times of all steps, work by the model, and where it comes
    from.

    `start_ns` and `end_ns` are the device's clock, one a step. `read` and `written` are bytes: each
    input once, each result once.
    """

    index: int
    name: str
    label: str
    kind: str
    phase: str
    wave: int
    tile: str
    grid: tuple[int, int, int]
    workgroup: int
    flops: int
    read: int
    written: int
    lines: tuple[str, ...]
    start_ns: Array
    end_ns: Array
    roof: Roof

    @cached_property
    def times_us(self) -> Array:
        """Microseconds of each step, float64."""
        return (self.end_ns - self.start_ns) / 1e3

    @property
    def median_us(self) -> float:
        """The middle of all steps, in microseconds."""
        return float(np.median(self.times_us))

    @property
    def p5_us(self) -> float:
        """One step in twenty was faster."""
        return float(np.percentile(self.times_us, 5))

    @property
    def p95_us(self) -> float:
        """One step in twenty was slower."""
        return float(np.percentile(self.times_us, 95))

    @property
    def bytes(self) -> int:
        """Bytes moved by the model."""
        return self.read + self.written

    @property
    def flops_per_second(self) -> float:
        """Operations a second, at the median time."""
        return self.flops / self.median_us * 1e6 if self.median_us > 0 else 0.0

    @property
    def bytes_per_second(self) -> float:
        """Bytes a second, at the median time."""
        return self.bytes / self.median_us * 1e6 if self.median_us > 0 else 0.0

    @property
    def share(self) -> float | None:
        """The least time that the measured peaks allow, over the median time; None when they are
        not known.
        """
        least = self.roof.least_us(self.flops, self.bytes)
        return None if least is None or self.median_us <= 0 else least / self.median_us

    @property
    def bound(self) -> str:
        """What limits it by the model: memory, arithmetic, or the launch itself."""
        return self.roof.bound(self.flops, self.bytes)

    def __repr__(self) -> str:
        return f"<{self.name}: {self.label}, {figures(self.median_us)} µs>"


@dataclass(frozen=True)
class Profile:
    """A profile of one program: kernels in the order of their launches."""

    name: str
    kind: str
    target: Target
    clock: str
    kernels: tuple[KernelProfile, ...]

    @property
    def steps(self) -> int:
        """How many steps were timed."""
        return len(self.kernels[0].start_ns) if self.kernels else 0

    @cached_property
    def step_us(self) -> float:
        """Median microseconds from the first start to the last end of a step."""
        if not self.kernels:
            return 0.0
        start = np.min([k.start_ns for k in self.kernels], axis=0)
        end = np.max([k.end_ns for k in self.kernels], axis=0)
        return float(np.median(end - start)) / 1e3

    @property
    def busy_us(self) -> float:
        """The sum of the kernels' medians; above `step_us` where launches overlap."""
        return sum(k.median_us for k in self.kernels)

    @property
    def roofline(self) -> Roof:
        """The ceilings, and through `point` the place of each kernel under them."""
        return roof(self.target.peaks)

    def slowest(self, count: int = 3) -> tuple[KernelProfile, ...]:
        """The kernels that take most time."""
        return tuple(sorted(self.kernels, key=lambda k: -k.median_us)[:count])

    def table(self) -> str:
        """All kernels as text, one a line, and the sum."""
        rows = [_row(kernel, self.busy_us) for kernel in self.kernels]
        note = (
            f"{self.name}, {self.kind}: {len(self.kernels)} launches, "
            f"{figures(self.step_us)} µs a step on {self.target.name}, "
            f"median of {self.steps}, {self.clock}"
        )
        return "\n".join([*_aligned([_HEAD, *rows]), note])

    def perfetto(self, path: str | os.PathLike[str]) -> None:
        """Writes the steps with their true start times as JSON for ui.perfetto.dev or
        chrome://tracing.
        """
        perfetto.write(path, self.name, self.target.name, self.kernels)

    def compare(self, other: Profile) -> str:
        """This profile beside another of the same model: what each launch, or each alone, takes."""
        return compare(self, other)

    def __repr__(self) -> str:
        return (
            f"<Profile of {self.name}, {self.kind}: {len(self.kernels)} launches, "
            f"{figures(self.step_us)} µs a step>"
        )


_HEAD = (
    *("kernel", "what", "median µs", "5 to 95 %", "share", "flops", "bytes", "of peak"),
    *("tile", "from"),
)


def _row(kernel: KernelProfile, total: float) -> tuple[str, ...]:
    share = kernel.share
    return (
        kernel.name,
        kernel.label + ("" if kernel.phase == "forward" else f" ({kernel.phase})"),
        figures(kernel.median_us),
        f"{figures(kernel.p5_us)} to {figures(kernel.p95_us)}",
        f"{kernel.median_us / total:.0%}" if total else "",
        quantity(kernel.flops, ""),
        size(kernel.bytes),
        "" if share is None else f"{share:.0%} {kernel.bound}",
        kernel.tile,
        kernel.lines[0] if kernel.lines else "",
    )


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Columns of equal width: numbers to the right, words to the left."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [
            text.rjust(width) if 2 <= i <= 6 else text.ljust(width)
            for i, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return lines


def figures(value: float) -> str:
    """A number to three figures, without an exponent.

    >>> figures(0.01234), figures(12.345), figures(12345.6)
    ('0.0123', '12.3', '12,346')
    """
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def quantity(value: float, unit: str) -> str:
    """Three figures with k, M, G or T.

    >>> quantity(1_572_864, "flop")
    '1.57 Mflop'
    """
    for limit, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= limit:
            return f"{value / limit:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}".rstrip()


def size(count: int) -> str:
    """Bytes in B, KiB, MiB or GiB.

    >>> size(81920)
    '80 KiB'
    """
    for limit, unit in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= limit:
            return f"{count / limit:.3g} {unit}"
    return f"{count} B"


def compare(first: Profile, second: Profile) -> str:
    """Two profiles of one model as a table: kernels are matched by what they do and from where."""
    body = [_compared(a, b) for a, b in _pairs(first.kernels, second.kernels)]
    widths = [max(len(row[i]) for row in [_COMPARED, *body]) for i in range(len(_COMPARED))]
    lines = [
        "  ".join(
            text.ljust(width) if i == 0 else text.rjust(width)
            for i, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in [_COMPARED, *body]
    ]
    ratio = second.step_us / first.step_us if first.step_us else float("nan")
    lines.append(
        f"a step: {figures(first.step_us)} to {figures(second.step_us)} µs, {ratio:.2f} times"
    )
    return "\n".join(lines)


_COMPARED = ("what", "before", "after", "times")
_Pair = tuple[KernelProfile | None, KernelProfile | None]


def _pairs(first: Sequence[KernelProfile], second: Sequence[KernelProfile]) -> list[_Pair]:
    """Kernels of equal label, phase and lines belong together; the others stand alone."""
    waiting: dict[tuple[str, str, tuple[str, ...]], list[KernelProfile]] = {}
    for kernel in second:
        waiting.setdefault((kernel.label, kernel.phase, kernel.lines), []).append(kernel)
    pairs: list[_Pair] = []
    for kernel in first:
        found = waiting.get((kernel.label, kernel.phase, kernel.lines))
        pairs.append((kernel, found.pop(0) if found else None))
    alone = {id(k) for rest in waiting.values() for k in rest}
    return [*pairs, *((None, k) for k in second if id(k) in alone)]


def _compared(before: KernelProfile | None, after: KernelProfile | None) -> tuple[str, ...]:
    kernel = before or after
    assert kernel is not None
    name = kernel.label + ("" if kernel.phase == "forward" else f" ({kernel.phase})")
    times = ""
    if before is not None and after is not None and before.median_us > 0:
        times = f"{after.median_us / before.median_us:.2f}"
    return (
        name,
        figures(before.median_us) if before is not None else "",
        figures(after.median_us) if after is not None else "",
        times,
    )
