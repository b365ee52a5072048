"""Schedule, memory and times of a program as plain JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from meganeura.notebook.node_views import Index, leaf_bytes
from meganeura.plan import Plan

Json = dict[str, Any]
LEAVES = (
    ("input", "feeds"),
    ("parameter", "parameters"),
    ("state", "optimiser's moments"),
    ("constant", "constants"),
)


def median_views(timings: Mapping[str, Sequence[float]]) -> dict[str, Json]:
    """Measured times by kernel -> the five numbers of a spread, in µs."""
    found = {}
    for name, times in timings.items():
        if len(times):
            values = np.percentile(np.asarray(times, np.float64), (50, 5, 25, 75, 95))
            names = ("median", "p5", "p25", "p75", "p95")
            found[name] = {n: float(f"{v:.4g}") for n, v in zip(names, values, strict=True)}
    return found


def schedule_view(plan: Plan, medians: Mapping[str, Json], kernels: Sequence[Json]) -> Json:
    """Launches with their place in time: waves one after another, each as long as its longest."""
    predicted = {k["id"]: k["predicted_us"] for k in kernels}
    measured = all(launch.kernel.name in medians for launch in plan.schedule.launches)
    length: list[float | None] = [
        medians[la.kernel.name]["median"] if measured else predicted[la.kernel.name]
        for la in plan.schedule.launches
    ]
    known = all(v is not None for v in length)
    launches: list[Json] = [{} for _ in length]
    clock = 0.0
    for number, wave in enumerate(plan.schedule.waves):
        for slot, i in enumerate(wave):
            launch = plan.schedule.launches[i]
            launches[i] = {
                "kernel": launch.kernel.name,
                "wave": number,
                "slot": slot,
                "waits_for": list(launch.waits_for),
                "start_us": round(clock, 4) if known else None,
                "duration_us": length[i],
                "measured": measured,
            }
        clock += max((length[i] or 0.0 for i in wave), default=0.0)
    waves = [list(w) for w in plan.schedule.waves]
    return {"launches": launches, "waves": waves, "total_us": round(clock, 4) if known else None}


def memory_view(index: Index) -> Json:
    """Buffers, who lies in them from which launch to which, and what is held for the whole run."""
    memory = index.plan.memory
    leaves = {n for la in index.plan.schedule.launches for r in la.kernel.arms for n in r.inputs}
    leaves |= {leaf for leaf, _ in index.plan.updates}
    held = [[label, leaf_bytes(n for n in leaves if n.op.name == op)] for op, label in LEAVES]
    return {
        "buffers": [b.nbytes for b in memory.buffers],
        "placements": [
            {
                "node": index.number[p.node],
                "label": index.labels.tensor(p.node),
                "buffer": p.buffer,
                "first": p.first_launch,
                "last": p.last_launch,
                "bytes": p.nbytes,
            }
            for p in memory.placements
        ],
        "live": list(memory.live),
        "peak": memory.peak,
        "planned": memory.planned,
        "unaliased": memory.unaliased,
        "resident": memory.resident,
        "held": held,
    }


def timings_view(
    kernels: Sequence[Json], medians: Mapping[str, Json], steps: int, total: float | None
) -> Json:
    """A row for each kernel, measured or predicted."""
    empty = dict.fromkeys(("median", "p5", "p25", "p75", "p95"))
    rows = [
        {"kernel": k["id"], **(medians.get(k["id"]) or empty), "predicted": k["predicted_us"]}
        for k in kernels
    ]
    measured = [r["median"] for r in rows if r["median"] is not None]
    busy = round(sum(measured), 4) if measured else None
    step = total if len(measured) == len(rows) and rows else None
    parts = [["kernels", busy]] if busy is not None and step is None else []
    if busy is not None and step is not None:
        parts = [[r["kernel"], r["median"]] for r in rows]
        parts = _largest(parts)
    return {"rows": rows, "steps": steps, "sum_us": busy, "step_us": step, "parts": parts}


def _largest(parts: list[list[Any]]) -> list[list[Any]]:
    """The four largest, and the rest as one."""
    ordered = sorted(parts, key=lambda p: -p[1])
    rest = sum(p[1] for p in ordered[4:])
    return ordered[:4] + ([[f"{len(ordered) - 4} others", round(rest, 4)]] if rest else [])
