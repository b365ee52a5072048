"""The ceilings of an adapter, measured with three small programs of our own.

Arithmetic: chains of multiply and add in registers. Memory: a copy of a tensor far larger than the
caches. Launch: one that does next to nothing, which is also taken for the cost of a barrier. The
best of some runs counts, since a ceiling is asked for.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from meganeura.compiler import compile_program
from meganeura.ir import build
from meganeura.ir.dtypes import f32
from meganeura.ir.graph import Graph, Node
from meganeura.ir.initial import Constant
from meganeura.plan import Options
from meganeura.runtime.device import Device
from meganeura.target import Peaks, Target

CHAIN = 32
STEPS = 12
PLAIN = Options(rewrite=False)


@lru_cache(maxsize=8)
def measure_peaks(device: Device) -> Peaks | None:
    """Flops, bytes, launch and barrier of a device, once a process; None where nothing can be
    timed.

    Takes about a second; the device's memory must hold two tensors of 128 MiB (4 MiB in software).
    """
    rows, terms, moved = _sizes(device.target)
    work, node = _product() if device.target.kind == "numpy" else _chains(rows, terms)
    flops = _fastest(device, node)
    large = build.parameter("peak.large", (moved,), Constant(0.5))
    copied = _fastest(device, build.add(large, build.input_("peak.a", ())))
    small = build.parameter("peak.small", (64,), Constant(0.5))
    launch = _fastest(device, build.add(small, build.input_("peak.a", ())))
    if flops is None or copied is None or launch is None:
        return None
    return Peaks(
        flops=work / flops,
        bytes=2.0 * large.nbytes / copied,
        launch=launch,
        barrier=launch,
    )


def _sizes(target: Target) -> tuple[int, int, int]:
    """Sums, the terms of each, and elements to copy.

    Sums are long, so that adding up what the invocations of a workgroup have found costs little.
    """
    if target.software:
        return 16, 1 << 12, 1 << 20
    return 1 << 10, 1 << 16, min(128 << 20, target.storage_binding) // 4


def _product() -> tuple[float, Node]:
    """Flops and node of a matrix product: NumPy is fastest there, and has no registers of ours."""
    a = build.parameter("peak.matrix", (512, 512), Constant(0.5))
    return 2.0 * 512**3, build.matmul(a, a)


def _chains(rows: int, terms: int) -> tuple[float, Node]:
    """Flops and node, [rows]: sums of terms, each a chain of x * a + b; a and b are fed, so nothing
    is known beforehand.
    """
    a, b = build.input_("peak.a", ()), build.input_("peak.b", ())
    x = build.cast(build.iota((rows, terms), 1), f32)
    for _ in range(CHAIN):
        x = build.add(build.mul(x, a), b)
    return 2.0 * CHAIN * terms * rows, build.sum_(x, 1)


def _fastest(device: Device, node: Node) -> float | None:
    """Seconds of the fastest of some runs of the one launch that computes a node."""
    graph = Graph((("peak", node),))
    program = compile_program(graph, name="peak", options=PLAIN, device=device)
    feeds: dict[str, Any] = {str(n.name): np.float32(0.5) for n in graph.inputs}
    times = program.time_launches(feeds, STEPS).step
    return max(min(times), 1) / 1e9 if times else None
