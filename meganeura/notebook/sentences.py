"""The one sentence under each view: a lead and the rest, with numbers computed from the view."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Json = Mapping[str, Any]
Sentence = list[str]

_BINARY = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
_DECIMAL = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def figures(value: float) -> str:
    """Three figures, thousands with a comma, never an exponent above 0.001."""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def amount(value: float, unit: str) -> str:
    """A quantity in the field's units: bytes in binary, operations in decimal multiples."""
    scales = _BINARY if unit == "B" else tuple((s, p + unit) for s, p in _DECIMAL)
    for size, name in scales:
        if abs(value) >= size:
            return f"{figures(value / size)} {name}"
    return f"{figures(value)} {unit}"


def time(us: float) -> str:
    """A time in µs, ms or s."""
    for size, name in ((1e6, "s"), (1e3, "ms")):
        if us >= size:
            return f"{figures(us / size)} {name}"
    return f"{figures(us)} µs"


def listed(names: Sequence[str], most: int = 4) -> str:
    """Names with commas and an and."""
    shown = list(names[:most])
    if len(names) > most:
        shown.append(f"{len(names) - most} more")
    return shown[0] if len(shown) == 1 else ", ".join(shown[:-1]) + " and " + shown[-1]


def plural(count: int, noun: str) -> str:
    """A count and its noun."""
    ending = "es" if noun.endswith("ch") else "s"
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}{ending}"


def caption(view: Json) -> str:
    """The whole program in a line."""
    header = view["header"]
    parts = [
        f"{header['name']}, {header['kind']}: {plural(len(view['nodes']), 'node')} in "
        f"{plural(len(view['kernels']), 'kernel')}",
        plural(header["waves"], "wave"),
    ]
    if header["step_us"] is not None:
        parts.append(time(header["step_us"]))
    return ", ".join(parts) + f" on {header['device']}."


def sentences(view: Json) -> dict[str, Any]:
    """For each tab its sentence, and one for each kernel."""
    return {
        "graph": graph_sentence(view),
        "kernels": graph_sentence(view),
        "schedule": schedule_sentence(view),
        "memory": memory_sentence(view),
        "timings": timings_sentence(view),
        "loss": loss_sentence(view["runs"]),
        "table": ["Everything the pictures show, as rows.", caption(view)],
        "kernel": {k["id"]: kernel_sentence(view, k) for k in view["kernels"]},
    }


def graph_sentence(view: Json) -> Sentence:
    """What fusion saved."""
    kernels = view["kernels"]
    inside = sum(not view["nodes"][n]["hidden"] for k in kernels for n in k["nodes"])
    if not kernels:
        return ["Nothing has to be computed:", "every output is a feed or a parameter."]
    moved = sum(k["reads"] + k["writes"] for k in kernels)
    apart = sum(k["unfused"] for k in kernels)
    lead = f"{plural(inside, 'operation')} become {plural(len(kernels), 'launch')}:"
    if apart <= moved:
        return [lead, f"each reads and writes memory; together they move {amount(moved, 'B')}."]
    return [
        lead,
        f"launched one by one they would move {amount(apart, 'B')} through memory; here they move "
        f"{amount(moved, 'B')}, {figures(apart / max(moved, 1))} times less.",
    ]


def kernel_sentence(view: Json, kernel: Json) -> Sentence:
    """What this launch keeps out of memory."""
    inside = [n for n in kernel["nodes"] if not view["nodes"][n]["hidden"]]
    moved = kernel["reads"] + kernel["writes"]
    written = listed([t["label"] for t in kernel["outputs"]]) if kernel["outputs"] else "nothing"
    if len(inside) < 2:
        ratio = figures(kernel["flops"] / max(moved, 1))
        return [
            f"{kernel['id']} is one operation alone:",
            f"it moves {amount(moved, 'B')} for {amount(kernel['flops'], 'flop')}, {ratio} a byte, "
            f"and writes {written}.",
        ]
    verb = "is" if len(kernel["outputs"]) == 1 else "are"
    rest = f"the values between them stay in registers, so {written} {verb} all that is written."
    if kernel["unfused"] > moved:
        apart = amount(kernel["unfused"], "B")
        rest += f" Unfused, the same work moves {apart}; here it moves {amount(moved, 'B')}."
    return [f"{kernel['id']} does {plural(len(inside), 'operation')} in one launch:", rest]


def schedule_sentence(view: Json) -> Sentence:
    """Which wave sets the pace, or that nothing can run side by side."""
    launches, waves = view["schedule"]["launches"], view["schedule"]["waves"]
    if not waves:
        return ["Nothing to launch.", ""]
    widest = max(range(len(waves)), key=lambda i: len(waves[i]))
    names = [launches[i]["kernel"] for i in waves[widest]]
    if len(waves) == len(launches):
        count = plural(len(launches), "launch")
        return [
            f"{count}, one after another:",
            "each needs the result of the one before it, so none can run beside another.",
        ]
    lead = f"{plural(len(launches), 'launch')} need only {plural(len(waves), 'wave')}:"
    rest = f"{listed(names)} need nothing of each other, so wave {widest} runs them together."
    lengths = [launches[i]["duration_us"] for i in waves[widest]]
    if all(length is not None for length in lengths):
        slowest = names[lengths.index(max(lengths))]
        rest += f" It lasts as long as {slowest}: {time(max(lengths))}."
    return [lead, rest]


def memory_sentence(view: Json) -> Sentence:
    """Why the peak is where it is, and what aliasing saved."""
    memory, launches = view["memory"], view["schedule"]["launches"]
    if not memory["placements"]:
        return ["No memory between launches:", "every value goes straight to an output."]
    at = memory["live"].index(memory["peak"])
    alive = [p for p in memory["placements"] if p["first"] <= at <= p["last"]]
    largest = sorted(alive, key=lambda p: -p["bytes"])
    names = listed([p["label"] for p in largest], 3)
    lead = f"Wave {launches[at]['wave']} sets the peak:"
    rest = (
        f"while {launches[at]['kernel']} runs, {names} must be kept, {amount(memory['peak'], 'B')}."
    )
    if memory["planned"] < memory["unaliased"]:
        saved = 1 - memory["planned"] / memory["unaliased"]
        rest += f" Tensors that take over dead buffers save {saved:.0%}."
    return [lead, rest]


def timings_sentence(view: Json) -> Sentence:
    """Which launch costs most."""
    rows = [r for r in view["timings"]["rows"] if r["median"] is not None]
    name = view["header"]["name"]
    if not rows:
        return ["Nothing is measured yet:", f"%meganeura profile {name} times every launch."]
    total = sum(r["median"] for r in rows) or 1.0
    slowest = max(rows, key=lambda r: r["median"])
    label = next(k["label"] for k in view["kernels"] if k["id"] == slowest["kernel"])
    share = slowest["median"] / total
    half = _half(sorted((r["median"] for r in rows), reverse=True), total)
    return [
        f"{slowest['kernel']} takes most, {time(slowest['median'])}:",
        f"{label} is {share:.0%} of {time(total)} in all launches; "
        f"{half} of {plural(len(rows), 'launch')} make up half of it.",
    ]


def _half(times: Iterable[float], total: float) -> int:
    count, reached = 0, 0.0
    for value in times:
        count, reached = count + 1, reached + value
        if reached * 2 >= total:
            break
    return count


def loss_sentence(runs: Sequence[Json]) -> Sentence:
    """How far the last run came."""
    if not runs:
        return ["No run yet.", "%%meganeura train draws its loss here, live."]
    run = runs[-1]
    if not run["points"]:
        return [f"{run['name']} has no sample yet.", f"{run['status']}."]
    first, last = run["points"][0][1], run["points"][-1][1]
    rate = f", {figures(run['rate'])} steps/s" if run["rate"] else ""
    others = [r for r in runs[:-1] if r["points"]]
    best = min(others, key=lambda r: r["points"][-1][1], default=None)
    beside = f" {best['name']} ended at {figures(best['points'][-1][1])}." if best else ""
    return [
        f"{run['name']} went from {figures(first)} to {figures(last)}",
        f"in {plural(run['step'], 'step')}{rate}.{beside}",
    ]


def pass_sentence(view: Json) -> Sentence:
    """What the pass did, and by which right."""
    used = [r for r in view["rules"] if r["applied"]]
    if used:
        first = used[0]
        return [
            "Nothing was deleted by hand.",
            f"{plural(len(used), 'rule')} of {len(view['rules'])} that matched made it cheaper, "
            f"such as: {first['english']}",
        ]
    if view["before"] is None:
        return [f"{view['name']}: {view['mark']},", f"decided in {figures(view['ms'])} ms."]
    if not (view["added"] or view["removed"] or view["changed"]):
        return [f"{view['name']} found nothing to do:", f"{view['after']:,} nodes went through."]
    return [
        f"{view['name']} made {view['before']:,} nodes {view['after']:,}:",
        f"{view['added']} added, {view['removed']} removed, {view['changed']} with other operands, "
        f"in {figures(view['ms'])} ms.",
    ]
