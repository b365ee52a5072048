"""Checked before trusted: a kernel loses its bounds checks only after a checked run has agreed with
the oracle.

The check runs the kernel alone on random inputs and compares every root with the float64 reference
of its region.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from meganeura.codegen.kernel import Kernel
from meganeura.ir.evaluate import evaluate_nodes
from meganeura.ir.graph import Array, Node
from meganeura.runtime.device import GpuDevice
from meganeura.runtime.store import from_device, on_device
from meganeura.runtime.tape import Recorder

POISON = np.float32(np.nan)


def verify(device: GpuDevice, kernels: Sequence[Kernel]) -> frozenset[str]:
    """The keys of kernels that may be trusted; new ones are checked now, each once a process."""
    for kernel in kernels:
        if kernel.key not in device.verified and not mismatches(device, kernel):
            device.verified.add(kernel.key)
    return frozenset(k.key for k in kernels if k.key in device.verified)


def mismatches(device: GpuDevice, kernel: Kernel, seed: int = 0) -> list[tuple[Node, float, float]]:
    """Roots of a kernel that differ from the oracle beyond tolerance: (node, error, tolerance)."""
    values = _random_inputs(kernel, np.random.default_rng(seed))
    want = {}
    for region in kernel.arms:
        want.update(evaluate_nodes(region.roots, values, np.float64))
    got = _run(device, kernel, values)
    wrong = []
    for region in kernel.arms:
        for root in region.roots:
            error, bound = _compare(got[root], want[root], _terms(kernel))
            if not error <= bound:
                wrong.append((root, error, bound))
    return wrong


def _terms(kernel: Kernel) -> int:
    """The longest sum in the kernel."""
    lengths = [
        a.inputs[0].size // max(a.size, 1) if a.op.kind == "reduce" else a.inputs[0].shape[-1]
        for r in kernel.arms
        for a in r.anchors
    ]
    return max(lengths, default=1)


def _compare(got: Array, want: Array, terms: int) -> tuple[float, float]:
    """The largest error relative to the size of the values, and what a float32 sum of so many terms
    may have.
    """
    if want.size == 0:
        return 0.0, 1.0
    if want.dtype.kind != "f":
        return float(np.mean(got != want)), 1e-3
    finite = np.isfinite(want)
    if not np.array_equal(np.isfinite(got), finite):
        return math.inf, 0.0
    scale = float(np.max(np.abs(want[finite]), initial=0.0)) or 1.0
    error = float(np.max(np.abs(got[finite] - want[finite]), initial=0.0)) / scale
    return error, 2e-6 * (8 + math.sqrt(terms))


def _random_inputs(kernel: Kernel, rng: np.random.Generator) -> dict[Node, Array]:
    """Positive floats, so that logarithms and roots are defined; small integers for indices."""
    values: dict[Node, Array] = {}
    for region in kernel.arms:
        for node in region.inputs:
            if node.op.name == "constant":
                values[node] = node.attr("value").array
            elif node.dtype.is_float:
                values[node] = rng.uniform(0.25, 1.0, node.shape).astype(node.dtype.numpy)
            elif node.dtype.name == "bool":
                values[node] = rng.integers(0, 2, node.shape).astype(np.bool_)
            else:
                values[node] = rng.integers(0, 4, node.shape).astype(node.dtype.numpy)
    return values


def _run(device: GpuDevice, kernel: Kernel, values: dict[Node, Array]) -> dict[Node, Array]:
    """The roots of a kernel, run checked on its own buffers."""
    targets = {value: leaf for r in kernel.arms for leaf, value in r.updates}
    held: dict[Node, Any] = {}
    pieces = []
    for binding in kernel.bindings:
        node = binding.node
        held[node] = device.buffer(node.nbytes, "a tensor of a check")
        value = values.get(node)
        if value is None:
            value = np.full(max(node.nbytes // 4, 1), POISON)
        device.write(held[node], on_device(value))
        pieces.append((held[node], 0, max((node.nbytes + 15) // 16 * 16, 16)))
    pipeline = device.pipelines({kernel.key: kernel.wgsl}, frozenset())[kernel.key]
    group = device.bind(pipeline, pieces)
    encoder = device.handle.create_command_encoder()
    compute = encoder.begin_compute_pass()
    Recorder.make().replay(compute, [[(pipeline._internal, group._internal, *kernel.grid)]])
    compute.end()
    device.handle.queue.submit([encoder.finish()])
    roots = [root for r in kernel.arms for root in r.roots]
    data = device.read([(held[targets.get(n, n)], 0, n.nbytes) for n in roots])
    return {n: from_device(raw, n) for n, raw in zip(roots, data, strict=True)}
