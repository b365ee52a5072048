"""Profiles: figures from times and work, the roofline, the table, the trace."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from meganeura.profile.perfetto import events
from meganeura.profile.profile import KernelProfile, Profile, compare, quantity, size
from meganeura.profile.roofline import Point, Roof, roof
from meganeura.target import NUMPY, Peaks

ROOF = Roof(flops=1e12, bytes=1e11, launch=1e-6)


def _kernel(index: int, starts: list[int], ends: list[int], **changes: Any) -> KernelProfile:
    facts: dict[str, Any] = {
        "index": index,
        "name": f"k{index}",
        "label": "matmul + add",
        "kind": "matmul",
        "phase": "forward",
        "wave": index,
        "tile": "64×64×16",
        "grid": (2, 1, 1),
        "workgroup": 64,
        "flops": 2_000_000,
        "read": 3072,
        "written": 1024,
        "lines": ("In[3], line 4",),
        "start_ns": np.array(starts, np.int64),
        "end_ns": np.array(ends, np.int64),
        "roof": ROOF,
    }
    return KernelProfile(**{**facts, **changes})


def _profile(name: str = "mlp", factor: int = 1) -> Profile:
    first = _kernel(0, [0, 100_000], [4_000 * factor, 100_000 + 4_000 * factor])
    last = _kernel(
        1,
        [5_000, 105_000],
        [7_000, 107_000],
        label="sum",
        kind="reduce",
        phase="backward",
        flops=1000,
        read=100_000,
        written=0,
        lines=("In[3], line 6", "In[3], line 4"),
    )
    return Profile(name, "training step", NUMPY, "the host's clock", (first, last))


def test_figures_of_a_kernel() -> None:
    kernel = _kernel(0, [0, 10, 20, 30, 40], [1000, 2010, 3020, 4030, 5040])
    np.testing.assert_array_equal(kernel.times_us, [1, 2, 3, 4, 5])
    assert (kernel.median_us, kernel.p5_us, kernel.p95_us) == (3.0, 1.2, 4.8)
    assert kernel.bytes == 4096
    assert kernel.flops_per_second == pytest.approx(2e6 / 3e-6)
    assert kernel.bytes_per_second == pytest.approx(4096 / 3e-6)
    assert kernel.share == pytest.approx(2 / 3)  # 2 Mflop at 1 Tflop/s are 2 of the 3 µs
    assert kernel.bound == "arithmetic"
    assert repr(kernel) == "<k0: matmul + add, 3 µs>"


def test_the_limit_of_a_kernel() -> None:
    assert ROOF.ridge == 10
    assert (ROOF.allowed(5), ROOF.allowed(10), ROOF.allowed(50)) == (5e11, 1e12, 1e12)
    assert ROOF.bound(2_000_000, 4096) == "arithmetic"
    assert ROOF.bound(1000, 1_000_000) == "memory"
    assert ROOF.bound(1000, 1000) == "launch"
    assert ROOF.least_us(1000, 1_000_000) == pytest.approx(10)


def test_without_measured_peaks() -> None:
    unknown = roof(None)
    assert (unknown.ridge, unknown.allowed(3), unknown.bound(1, 1)) == (None, None, "")
    assert _kernel(0, [0], [10], roof=unknown).share is None
    assert roof(Peaks(1e12, 1e11, 1e-6, 1e-6)) == ROOF


def test_a_point_under_the_roof() -> None:
    kernel = _kernel(0, [0], [4000])
    assert ROOF.point(kernel) == Point("k0", "matmul + add", "matmul", 2e6 / 4096, 5e11, 1e12)
    nothing = _kernel(0, [0], [0], flops=0, read=0, written=0)
    assert ROOF.point(nothing) == Point("k0", "matmul + add", "matmul", 0.0, 0.0, 0.0)
    assert nothing.share is None


def test_figures_of_a_step() -> None:
    profile = _profile()
    assert profile.steps == 2
    assert profile.step_us == 7.0
    assert profile.busy_us == 6.0
    assert [k.name for k in profile.slowest(1)] == ["k0"]
    assert repr(profile) == "<Profile of mlp, training step: 2 launches, 7 µs a step>"
    assert profile.roofline == Roof()


def test_the_table() -> None:
    assert _profile().table() == (
        "kernel  what            median µs  5 to 95 %  share  flops     bytes  of peak       "
        "  tile      from\n"
        "k0      matmul + add            4     4 to 4    67%    2 M     4 KiB  50% arithmetic"
        "  64×64×16  In[3], line 4\n"
        "k1      sum (backward)          2     2 to 2    33%    1 k  97.7 KiB  50% memory    "
        "  64×64×16  In[3], line 6\n"
        "mlp, training step: 2 launches, 7 µs a step on NumPy, median of 2, the host's clock"
    )


def test_comparing_two_profiles() -> None:
    faster = _profile("faster", 2)
    assert compare(faster, _profile()) == (
        "what            before  after  times\n"
        "matmul + add         8      4   0.50\n"
        "sum (backward)       2      2   1.00\n"
        "a step: 8 to 7 µs, 0.88 times"
    )
    other = Profile("x", "inference", NUMPY, "", (_kernel(0, [0], [1000], label="exp"),))
    assert _profile().compare(other) == (
        "what            before  after  times\n"
        "matmul + add         4\n"
        "sum (backward)       2\n"
        "exp                         1\n"
        "a step: 7 to 1 µs, 0.14 times"
    )


def test_the_trace_has_true_start_times(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    _profile().perfetto(path)
    trace = json.loads(path.read_text(encoding="utf-8"))
    slices = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    assert [(e["name"], e["ts"], e["dur"], e["tid"]) for e in slices] == [
        ("k0 matmul + add", 0.0, 4.0, 1),
        ("k1 sum", 5.0, 2.0, 1),
        ("k0 matmul + add", 100.0, 4.0, 1),
        ("k1 sum", 105.0, 2.0, 1),
        ("step 1", 0.0, 7.0, 0),
        ("step 2", 100.0, 7.0, 0),
    ]
    assert slices[1]["args"] == {
        "step": 1,
        "kernel": "k1",
        "phase": "backward",
        "wave": 1,
        "tile": "64×64×16",
        "flops": 1000,
        "bytes read": 100_000,
        "bytes written": 0,
        "from": "In[3], line 6; In[3], line 4",
    }
    names = [e["args"]["name"] for e in trace["traceEvents"] if e["ph"] == "M"]
    assert names == ["mlp on NumPy", "steps", "launches"]


def test_launches_that_overlap_lie_on_tracks_of_their_own() -> None:
    found = events("mlp", "gpu", [_kernel(0, [0], [9000]), _kernel(1, [4000], [8000])])
    assert [e["tid"] for e in found if e["ph"] == "X"] == [1, 2, 0]
    assert "launches beside, 1" in [e["args"]["name"] for e in found if e["ph"] == "M"]
    assert events("mlp", "gpu", []) == []


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (999, "999"), (1500, "1.5 k"), (2e6, "2 M"), (3.456e12, "3.46 T")]
)
def test_quantities(value: float, text: str) -> None:
    assert quantity(value, "") == text


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (1023, "1023 B"), (1 << 20, "1 MiB"), (3 << 29, "1.5 GiB")]
)
def test_sizes(count: int, text: str) -> None:
    assert size(count) == text
