"""What each pass did: nodes added, removed, changed; the rules; a picture; tables."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any

from meganeura.ir.graph import Graph, Node
from meganeura.notebook.diff import DiffNode, diff_picture
from meganeura.notebook.labels import Labels, number
from meganeura.notebook.node_views import node_scope, source_view
from meganeura.notebook.sentences import amount, pass_sentence
from meganeura.plan import PassRecord, Plan

Json = dict[str, Any]
Rows = tuple[list[str], list[list[str]], str]
MOST_DRAWN = 18


@dataclass
class Difference:
    """Two graphs compared: nodes of the first by their counterpart in the second, and the rest."""

    partner: dict[Node, Node]
    added: list[Node]
    removed: list[Node]
    changed: set[Node]


def compare(before: Graph, after: Graph) -> Difference:
    """Finds counterparts by identity, then by operation, attributes, shape and origin.

    A node whose operands are the counterparts of the old operands was only rebuilt: that is no
    change.
    """
    old, new = set(before.nodes), set(after.nodes)
    partner = {n: n for n in before.nodes if n in new}
    waiting: dict[Hashable, list[Node]] = defaultdict(list)
    for node in before.nodes:
        if node not in new:
            waiting[_signature(node)].append(node)
    added, changed = [], set()
    for node in after.nodes:
        if node in old:
            continue
        candidates = waiting[_signature(node)]
        same = next((c for c in candidates if _rebuilt(c, node, partner)), None)
        found = same or (candidates[0] if candidates else None)
        if found is None:
            added.append(node)
            continue
        candidates.remove(found)
        partner[found] = node
        if same is None:
            changed.add(found)
    removed = [n for n in before.nodes if n not in partner]
    return Difference(partner, added, removed, changed)


def _signature(node: Node) -> Hashable:
    origin = node.origin
    place = (origin.source, origin.scope, origin.composite, origin.phase)
    return (node.op.name, node.attrs, node.shape, node.dtype.name, place)


def _rebuilt(old: Node, new: Node, partner: dict[Node, Node]) -> bool:
    pairs = zip(old.inputs, new.inputs, strict=False)
    return len(old.inputs) == len(new.inputs) and all(partner.get(a) is b for a, b in pairs)


def pass_views(plan: Plan) -> list[Json]:
    """Every pass of a plan, in order."""
    return [_pass_view(plan, record) for record in plan.passes]


def _pass_view(plan: Plan, record: PassRecord) -> Json:
    graphs = isinstance(record.before, Graph) and isinstance(record.after, Graph)
    view = _graph_pass(record) if graphs else _later_pass(plan, record)
    view |= {"name": record.name, "ms": round(record.seconds * 1e3, 4)}
    return view | {"sentence": pass_sentence(view)}


def _graph_pass(record: PassRecord) -> Json:
    difference = compare(record.before, record.after)
    rules = rule_views(record.notes.get("rules", ()))
    counts = (len(difference.added), len(difference.removed), len(difference.changed))
    signs = [f"{s}{n}" for s, n in zip("+−~", counts, strict=True) if n]
    before, after = len(record.before.nodes), len(record.after.nodes)
    summary = f"{before:,} → {after:,} nodes: " + (
        f"{counts[0]} added, {counts[1]} removed, {counts[2]} changed."
        if any(counts)
        else "unchanged."
    )
    if record.notes.get("stopped"):
        summary += f" The e-graph {record.notes['stopped']}."
    return {
        "before": before,
        "after": after,
        "added": counts[0],
        "removed": counts[1],
        "changed": counts[2],
        "mark": " ".join(signs) or "no change",
        "summary": summary,
        "rules": rules,
        "picture": neighbourhood(record, difference) if any(counts) else None,
        "columns": ["operation", "added", "removed", "changed"] if any(counts) else [],
        "rows": _by_operation(difference),
        "egraph": record.notes.get("egraph"),
    }


def _by_operation(difference: Difference) -> list[list[str]]:
    """How many of each operation came, went, or read something else."""
    lists = (difference.added, difference.removed, difference.changed)
    counts = [Counter(n.op.name for n in nodes) for nodes in lists]
    names = sorted(set().union(*counts), key=lambda op: (-sum(c[op] for c in counts), op))
    return [[op, *(str(c[op]) if c[op] else "–" for c in counts)] for op in names]


def rule_views(rules: Iterable[Json]) -> list[Json]:
    """The rules that matched, those that the cost chose first."""
    found = [
        {
            "name": rule["rule"],
            "equation": rule["equation"],
            "english": rule["english"],
            "count": len(rule["matches"]),
            "applied": rule["applied"],
            "saved": _saved(rule),
            "lines": list(dict.fromkeys(x for m in rule["matches"] for x in m["lines"]))[:4],
        }
        for rule in rules
    ]
    return sorted(found, key=lambda r: (-int(r["applied"] > 0), r["name"]))


def _saved(rule: Json) -> str:
    parts = [("flop", rule["saved_flops"]), ("B", rule["saved_bytes"])]
    return ", ".join(f"− {amount(value, unit)}" for unit, value in parts if value > 0)


def neighbourhood(record: PassRecord, difference: Difference) -> Json:
    """The nodes that changed with those beside them, both graphs on the same places."""
    before, after = record.before, record.after
    back = {new: old for old, new in difference.partner.items()}
    every = [*difference.removed, *difference.changed, *difference.added]
    where, touched = _busiest(every)
    chosen = _near(touched[: MOST_DRAWN * 2 // 3], before, after, back)
    order = [n for n in _merged(before, after, back) if n in chosen]
    place = {n: i for i, n in enumerate(order)}
    labels = {0: Labels(before.nodes), 1: Labels(after.nodes)}
    added, removed = set(difference.added), set(difference.removed)

    def places(operands: Iterable[Node]) -> tuple[int, ...]:
        return tuple(dict.fromkeys(place[k] for i in operands if (k := back.get(i, i)) in place))

    nodes = []
    for node in order:
        state = "added" if node in added else "removed" if node in removed else "same"
        state = "changed" if node in difference.changed else state
        label = labels[node in added].node(node)
        shape = "×".join(map(str, node.shape)) or "scalar"
        source = node.origin.source
        line = source_view(source) if source is not None else None
        now = () if node in removed else places(difference.partner.get(node, node).inputs)
        old = () if node in added else places(node.inputs)
        nodes.append(DiffNode(label, shape, state, old, now, line))
    drawn = sum(n.state != "same" for n in nodes)
    shown = f"{where}: {drawn} of {len(every)} changes" if drawn < len(every) else where
    return diff_picture(nodes, shown)


def _busiest(touched: list[Node]) -> tuple[str, list[Node]]:
    """The part of the model in which most operations changed, and the changes there.

    Numbers are left out: they stand in the labels of their readers.
    """
    groups: dict[str, list[Node]] = defaultdict(list)
    for node in touched:
        if number(node) is None:
            groups[node_scope(node)].append(node)
    weight = {
        scope: sum(n.op.kind not in ("view", "leaf") for n in nodes) + len(nodes) / 1000
        for scope, nodes in groups.items()
    }
    if not weight:
        return "", touched
    where = max(weight, key=lambda scope: weight[scope])
    return where or "program", groups[where]


def _near(touched: list[Node], before: Graph, after: Graph, back: dict[Node, Node]) -> set[Node]:
    """The touched nodes, and the operands and readers of each, as long as there is room."""
    chosen = dict.fromkeys(back.get(n, n) for n in touched)
    for node in touched:
        around: list[Node] = list(node.inputs)
        for graph in (before, after):
            around += graph.users.get(node, ())
        for other in around:
            if len(chosen) < MOST_DRAWN and number(other) is None:
                chosen.setdefault(back.get(other, other))
    return set(chosen)


def _merged(before: Graph, after: Graph, back: dict[Node, Node]) -> list[Node]:
    """Nodes of both graphs in one order: the new graph's, each removed one after its operands."""
    position = {back.get(n, n): float(i) for i, n in enumerate(after.nodes)}
    for node in before.nodes:
        if node not in position:
            last = max((position.get(i, 0.0) for i in node.inputs), default=0.0)
            position[node] = last + 0.5 / (1 + len(position))
    return sorted(position, key=lambda n: position[n])


# Later passes ----------------------------------------------------------------------------------


def _later_pass(plan: Plan, record: PassRecord) -> Json:
    make = _TABLES.get(record.name, _plain)
    columns, rows, mark = make(plan)
    return {
        "before": None,
        "after": None,
        "added": 0,
        "removed": 0,
        "changed": 0,
        "mark": mark,
        "summary": f"{mark}.",
        "rules": [],
        "picture": None,
        "columns": columns,
        "rows": rows[:300],
        "egraph": None,
    }


def _plain(plan: Plan) -> Rows:
    return [], [], "done"


def _regions(plan: Plan) -> Rows:
    rows = [
        [k.name, k.label, k.kind, str(len(k.nodes)), str(len(r.inputs)), str(len(r.roots))]
        for k in plan.kernels
        for r in k.arms
    ]
    columns = ["kernel", "region", "kind", "nodes", "reads", "writes"]
    return columns, rows, f"{len(rows)} regions"


def _tiles(plan: Plan) -> Rows:
    rows = [
        [
            k.name,
            k.tile.describe(),
            str(k.workgroup),
            amount(k.workgroup_bytes, "B"),
            str(k.tile.registers()),
            "×".join(map(str, k.grid)),
        ]
        for k in plan.kernels
    ]
    columns = ["kernel", "tile", "invocations", "workgroup memory", "registers, assumed", "grid"]
    return columns, rows, f"{len(rows)} tiles"


def _emitted(plan: Plan) -> Rows:
    modules: dict[str, list[str]] = defaultdict(list)
    for kernel in plan.kernels:
        modules[kernel.key].append(kernel.name)
    rows = [
        [
            k.name,
            str(k.wgsl.count("\n") + 1),
            str(len(k.bindings)),
            ", ".join(modules[k.key]),
            k.key[:12],
        ]
        for k in plan.kernels
    ]
    columns = ["kernel", "lines", "buffers", "shares its text with", "hash"]
    return columns, rows, f"{len(modules)} WGSL"


def _waves(plan: Plan) -> Rows:
    launches = plan.schedule.launches
    rows = [
        [str(i), ", ".join(launches[j].kernel.name for j in wave), str(len(wave))]
        for i, wave in enumerate(plan.schedule.waves)
    ]
    return ["wave", "kernels", "launches"], rows, f"{len(rows)} waves"


def _buffers(plan: Plan) -> Rows:
    labels = Labels(plan.graph.nodes)
    owners: dict[int, list[str]] = defaultdict(list)
    for placement in plan.memory.placements:
        owners[placement.buffer].append(labels.tensor(placement.node))
    rows = [
        [f"b{b.index}", amount(b.nbytes, "B"), ", then ".join(owners[b.index])]
        for b in plan.memory.buffers
    ]
    return ["buffer", "size", "tensors"], rows, f"{len(rows)} buffers"


_TABLES: dict[str, Callable[[Plan], Rows]] = {
    "fuse": _regions,
    "tile": _tiles,
    "emit": _emitted,
    "schedule": _waves,
    "memory": _buffers,
}
