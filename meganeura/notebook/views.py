"""Objects of the compiler -> plain JSON for the drawings (docs/view-contract.md), and static
bundles.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from html import escape
from typing import Any

from meganeura.notebook import sentences as say
from meganeura.notebook.node_views import Index, cells, kernel_views, node_views
from meganeura.notebook.pass_views import pass_views
from meganeura.notebook.pictures import pictures
from meganeura.notebook.step_views import median_views, memory_view, schedule_view, timings_view
from meganeura.notebook.svg import program_svg
from meganeura.plan import Plan
from meganeura.target import Target

Json = dict[str, Any]
MIME = "application/vnd.meganeura.program+json"
# What a node is unless its view says otherwise (`store.ts` knows the same).
USUAL: Json = {
    "name": None,
    "dtype": "f32",
    "flops": 0,
    "scope": "",
    "composite": "",
    "phase": "forward",
    "leaf": None,
    "hidden": False,
    "kernel": None,
    "source": None,
}
MOST_BYTES = 500_000  # of a view in a saved notebook
TOGGLES = (
    ("fuse", "several operations in one launch"),
    ("rewrite", "algebraic rules, chosen by cost"),
    ("alias", "tensors take over the buffers of dead ones"),
    ("trusted", "no bounds checks in kernels that were verified"),
)


def program_view(program: Any, runs: Sequence[Json] = ()) -> Json:
    """A `Program` -> its view, with what was measured of it so far."""
    device = getattr(program.device, "name", program.target.name)
    return plan_view(
        replace(program.plan, target=program.target),
        timings=program.timings,
        compile_seconds=program.compile_seconds,
        runs=runs,
        device=str(device),
    )


def plan_view(
    plan: Plan,
    *,
    timings: dict[str, list[float]] | None = None,
    compile_seconds: float | None = None,
    runs: Sequence[Json] = (),
    device: str | None = None,
) -> Json:
    """A `Plan` -> its view. `timings` are µs of each measured step by kernel name."""
    index = Index.of(plan)
    medians = median_views(timings or {})
    nodes, sources = node_views(index)
    kernels, modules = kernel_views(index, medians)
    outputs = {name: index.number[node] for name, node in plan.holders if node in index.number}
    schedule = schedule_view(plan, medians, kernels)
    memory = memory_view(index)
    measured = bool(kernels) and all(k["id"] in medians for k in kernels)
    steps = max((len(t) for t in (timings or {}).values()), default=0)
    total = schedule["total_us"]
    view: Json = {
        "version": 1,
        "header": {
            "name": plan.name,
            "kind": plan.kind,
            "device": _device_name(device or plan.target.name, plan.target),
            "backend": plan.target.backend,
            "device_kind": plan.target.kind,
            "launches": len(plan.schedule.launches),
            "waves": len(plan.schedule.waves),
            "step_us": total if measured else None,
            "predicted_us": _predicted(plan, kernels),
            "compile_ms": round((compile_seconds or plan.seconds) * 1e3, 3),
            "memory_bytes": memory["planned"] + memory["resident"],
            "note": _note(plan.target),
        },
        "toggles": [
            {"name": name, "on": bool(getattr(plan.options, name)), "title": title}
            for name, title in TOGGLES
        ],
        "nodes": [sent_node(n) for n in nodes],
        "sources": sources,
        "kernels": kernels,
        "modules": line_table(modules),
        "pictures": pictures(nodes, kernels, outputs),
        "passes": pass_views(plan),
        "schedule": schedule,
        "memory": memory,
        "timings": timings_view(kernels, medians, steps, total if measured else None),
        "runs": list(runs),
        "cells": cells(index),
        "saved": time.strftime("%Y-%m-%d %H:%M"),
    }
    view["sentences"] = say.sentences(view | {"nodes": nodes})
    view["caption"] = say.caption(view)
    return view


def sent_node(node: Json) -> Json:
    """A node without what only the layout needs, and without what is the same for most."""
    inner = ("id", "column", "class", "kind")
    return {k: v for k, v in node.items() if k not in inner and v != USUAL.get(k, ...)}


def line_table(texts: Sequence[str]) -> Json:
    """Texts that share most of their lines: each line once, and each text as numbers of lines."""
    place: dict[str, int] = {}
    rows = [[place.setdefault(x, len(place)) for x in text.split("\n")] for text in texts]
    return {"lines": list(place), "texts": rows}


def _device_name(name: str, target: Target) -> str:
    """The adapter's name without the backend, which stands beside it."""
    return name.removesuffix(f" · {target.backend}")


def _note(target: Target) -> str | None:
    if target.kind == "numpy":
        return "No Vulkan or Metal adapter here. NumPy runs the same kernels' regions."
    return None


def _predicted(plan: Plan, kernels: list[Json]) -> float | None:
    times = {k["id"]: k["predicted_us"] for k in kernels}
    if not times or any(t is None for t in times.values()):
        return None
    launches = plan.schedule.launches
    total: float = sum(max(times[launches[i].kernel.name] for i in w) for w in plan.schedule.waves)
    return float(f"{total:.4g}")


# Static forms ----------------------------------------------------------------------------------


def bundle(view: Json) -> Json:
    """A view -> all its static forms by MIME type; no kernel is needed to show any of them."""
    return {
        MIME: saved(view),
        "image/svg+xml": program_svg(view),
        "text/html": program_html(view),
        "text/plain": program_text(view),
    }


def saved(view: Json, limit: int = MOST_BYTES) -> Json:
    """The view as a notebook keeps it: at most `limit` bytes, the dearest parts left out first.

    What is left out is named in `header.note`.
    """
    left: list[str] = []
    for name, less in _SLIMMER:
        if len(json.dumps(view, ensure_ascii=False).encode()) <= limit:
            break
        view = less(view)
        left.append(name)
    if left:
        note = f"Saved without {say.listed(left)}: the program is large. Run the cell to see them."
        view = view | {"header": view["header"] | {"note": note}}
    return view


def _without_changes(view: Json) -> Json:
    return view | {"passes": [p | {"picture": None, "egraph": None} for p in view["passes"]]}


def _without_text(view: Json) -> Json:
    kernels = [k | {"lines": {}} for k in view["kernels"]]
    return view | {"kernels": kernels, "modules": {"lines": [], "texts": []}}


def _without_pictures(view: Json) -> Json:
    return view | {"pictures": {"scope": view["pictures"]["scope"]}}


def _without_nodes(view: Json) -> Json:
    kernels = [k | {"nodes": [], "inputs": [], "outputs": []} for k in view["kernels"]]
    memory = view["memory"] | {"placements": []}
    scope = view["pictures"]["scope"]
    pictures = {"scope": scope | {"wires": [w | {"node": -1} for w in scope["wires"]]}}
    return view | {"nodes": [], "kernels": kernels, "memory": memory, "pictures": pictures}


_SLIMMER = (
    ("the pictures of the passes", _without_changes),
    ("WGSL", _without_text),
    ("the graph by kernel", _without_pictures),
    ("nodes", _without_nodes),
)

COLUMNS = (
    "kernel",
    "what",
    "phase",
    "wave",
    "time",
    "work",
    "reads",
    "writes",
    "inputs",
    "outputs",
)


def kernel_rows(view: Json) -> list[tuple[str, ...]]:
    """The kernels as a table: every fact of the picture in words."""
    waves = {launch["kernel"]: launch["wave"] for launch in view["schedule"]["launches"]}
    return [
        (
            k["id"],
            k["label"],
            k["phase"],
            str(waves[k["id"]]),
            "" if k["median_us"] is None else say.time(k["median_us"]),
            say.amount(k["flops"], "flop"),
            say.amount(k["reads"], "B"),
            say.amount(k["writes"], "B"),
            ", ".join(t["label"] for t in k["inputs"]),
            ", ".join(t["label"] for t in k["outputs"]),
        )
        for k in view["kernels"]
    ]


def program_html(view: Json) -> str:
    """An accessible table of the kernels; every text is escaped."""
    head = "".join(f'<th scope="col">{name}</th>' for name in COLUMNS)
    rows = "".join(
        f'<tr><th scope="row">{escape(row[0])}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in row[1:])
        + "</tr>"
        for row in kernel_rows(view)
    )
    lead, rest = view["sentences"]["graph"]
    return (
        f"<table><caption>{escape(view['caption'])}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{rows}</tbody></table><p><b>{escape(lead)}</b> {escape(rest)}</p>"
    )


def program_text(view: Json) -> str:
    """The caption, a line a kernel, and the sentence."""
    rows = [row[:5] for row in kernel_rows(view)]
    widths = [max((len(r[i]) for r in rows), default=0) for i in range(5)]
    lines = ["  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)).rstrip() for r in rows]
    return "\n".join([view["caption"], *lines, " ".join(view["sentences"]["graph"])])
