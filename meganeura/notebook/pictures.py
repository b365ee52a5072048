"""The three pictures of a program's graph: by kernel, by scope, and flat.

Columns are the named scopes, rows are forward, backward and update, so that a layer stands above its gradient. Works on the
plain JSON of `views.py`; `layout.py` knows the coordinates.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from meganeura.notebook.layout import Box, Metrics, Picture, Point, Wire, arrange, text_width

Json = dict[str, Any]
Named = Callable[[Json], str] | None
BANDS = ("forward", "backward", "update")
MOST_MARKS = 400
MOST_ITEMS = 8
INNER = Metrics(gap=22, track=7, channel=18, gutter=0, margin=0, idle=10)
HEADER, PAD, PILL = 24, 10, 24
PORTS = {"input": "feed", "parameter": "parameter"}


@dataclass(frozen=True)
class _Part:
    """A box to be placed: where it belongs, its size, and its JSON without coordinates."""

    id: str
    column: str
    band: str
    width: float
    height: float
    json: Json
    spine: bool = True
    role: str = "body"


@dataclass
class _Scene:
    """Everything of one picture before the layout."""

    parts: list[_Part] = field(default_factory=list)
    wires: list[Json] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)
    anchors: dict[str, str] = field(default_factory=dict)
    names: dict[int, str | None] = field(default_factory=dict)


def pictures(nodes: Sequence[Json], kernels: Sequence[Json], outputs: Mapping[str, int]) -> Json:
    """Nodes and kernels of a view -> {"kernel": picture, "scope": picture, "flat": picture}; the large ones are left out."""
    found: Json = {"scope": _draw(_scope_scene(nodes, kernels))}
    if len(kernels) <= MOST_MARKS:
        found["kernel"] = _draw(_kernel_scene(nodes, kernels, outputs))
    shown = [n for n in nodes if n["leaf"] != "constant"]
    if len(shown) <= MOST_MARKS:
        found["flat"] = _draw_flat(nodes, shown, _columns(kernels))
    return found


def _columns(kernels: Iterable[Json]) -> list[str]:
    """The scopes in the order in which the forward pass meets them."""
    ordered = sorted(kernels, key=lambda k: BANDS.index(k["phase"]))
    return list(dict.fromkeys(k["scope"] for k in ordered))


def producer(nodes: Sequence[Json], node: int) -> int:
    """The node whose buffer a view such as a reshape reads: itself, if a kernel or the user wrote it."""
    while nodes[node]["kernel"] is None and nodes[node]["leaf"] is None and nodes[node]["inputs"]:
        node = nodes[node]["inputs"][0]
    return node


# By kernel ---------------------------------------------------------------------------------------------------------------


def _kernel_scene(
    nodes: Sequence[Json], kernels: Sequence[Json], outputs: Mapping[str, int]
) -> _Scene:
    scene = _Scene(columns=_columns(kernels), names={n["id"]: n["name"] for n in nodes})
    by_id = {k["id"]: k for k in kernels}
    readers: dict[str, set[str]] = defaultdict(set)
    for kernel in kernels:
        for tensor in kernel["inputs"]:
            source = nodes[producer(nodes, tensor["node"])]
            if source["kernel"]:
                readers[source["kernel"]].add(kernel["phase"])
    for kernel in kernels:
        scene.parts.append(_kernel_part(nodes, kernel, "backward" in readers[kernel["id"]]))
    for kernel in kernels:
        _wires_into(scene, nodes, kernel, by_id)
    for name, node in outputs.items():
        made = nodes[producer(nodes, node)]["kernel"]
        if made is not None:
            _output(scene, name, node, by_id[made])
    return scene


def _kernel_part(nodes: Sequence[Json], kernel: Json, spine: bool) -> _Part:
    items, wires, width, height = _inside(nodes, kernel)
    title = text_width(f"{kernel['id']}  00.0 µs", 12) + 2 * PAD
    note = "writes " + ", ".join(kernel["in_place"]) + " in place" if kernel["in_place"] else ""
    json = {
        "id": kernel["id"],
        "role": "kernel",
        "ref": kernel["id"],
        "kind": kernel["kind"],
        "phase": kernel["phase"],
        "title": kernel["id"],
        "subtitle": kernel["kind"],
        "note": note,
        "items": items,
        "wires": wires,
    }
    whole = max(width + 2 * PAD, title, text_width(note, 12) + PAD)
    tall = HEADER + height + 2 * PAD + (18 if note else 0)
    return _Part(kernel["id"], kernel["scope"], kernel["phase"], whole, tall, json, spine)


def _inside(
    nodes: Sequence[Json], kernel: Json
) -> tuple[list[Json], list[list[float]], float, float]:
    """The nodes of a kernel as pills in reading order, with the lines between them."""
    members = [n for n in kernel["nodes"] if not nodes[n]["hidden"]]
    shown = _worth_showing(nodes, kernel, members)
    per_row = len(shown) if len(shown) <= 4 else -(-len(shown) // (-(-len(shown) // 4)))
    boxes = []
    for i, n in enumerate(shown):
        width = max(44.0, text_width(nodes[n]["label"], 12) + 16)
        boxes.append(Box(str(n), width, PILL, 0, i // per_row, fixed=True))
    pairs = _contracted(nodes, shown, set(kernel["nodes"]))
    wires = [Wire(str(a), str(b), str(a)) for a, b in pairs]
    picture = arrange(boxes, wires, INNER)
    items = [_item(n, nodes[n]["label"], picture, PAD, HEADER + PAD) for n in shown]
    left = len(members) - len(shown)
    width, height = picture.width, picture.height
    if left:
        text = f"and {left} more"
        y = HEADER + PAD + height + 4
        items.append({"ref": kernel["id"], "text": text, "x": PAD, "y": y, "w": 84, "h": 18})
        height += 22
    lines = [
        [round(v, 1) for x, y in points for v in (x + PAD, y + HEADER + PAD)]
        for points in picture.wires
    ]
    return items, lines, width, height


def _worth_showing(nodes: Sequence[Json], kernel: Json, members: list[int]) -> list[int]:
    """At most MOST_ITEMS: results, products and sums first, then in order."""
    if len(members) <= MOST_ITEMS:
        return members
    written = {t["node"] for t in kernel["outputs"]}
    rank = {n: (n not in written, nodes[n]["class"] == "map", n) for n in members}
    return sorted(sorted(members, key=lambda n: rank[n])[:MOST_ITEMS])


def _contracted(
    nodes: Sequence[Json], shown: Sequence[int], within: set[int]
) -> list[tuple[int, int]]:
    """Edges between the shown nodes, through those that are not shown."""
    visible = set(shown)
    pairs: dict[tuple[int, int], None] = {}
    for target in shown:
        stack, seen = list(reversed(nodes[target]["inputs"])), set()
        while stack:
            node = stack.pop()
            if node in visible:
                pairs[node, target] = None
            elif node in within and node not in seen:
                seen.add(node)
                stack.extend(reversed(nodes[node]["inputs"]))
    return list(pairs)


def _item(ref: int | str, text: str, picture: Picture, dx: float, dy: float) -> Json:
    placed = picture.boxes[str(ref)]
    return {
        "ref": ref,
        "text": text,
        "x": round(placed.x + dx, 1),
        "y": round(placed.y + dy, 1),
        "w": round(placed.width, 1),
        "h": round(placed.height, 1),
    }


def _wires_into(
    scene: _Scene, nodes: Sequence[Json], kernel: Json, by_id: Mapping[str, Json]
) -> None:
    for tensor in kernel["inputs"]:
        node = producer(nodes, tensor["node"])
        source = nodes[node]
        if source["kernel"] and source["kernel"] != kernel["id"]:
            scene.wires.append(_wire(source["kernel"], kernel["id"], source))
        elif source["leaf"] in PORTS and not str(source["name"]).startswith("meganeura."):
            _port(scene, source, kernel)


def _wire(source: str, target: str, node: Json) -> Json:
    return {
        "from": source,
        "to": target,
        "node": node["id"],
        "gradient": node["phase"] == "backward",
    }


def _port(scene: _Scene, leaf: Json, kernel: Json) -> None:
    """A feed is drawn with all its readers, a parameter with its first: the rest is in the table of a kernel's inputs."""
    name = f"n{leaf['id']}"
    known = any(p.id == name for p in scene.parts)
    if known and (leaf["leaf"] == "parameter" or kernel["phase"] == "update"):
        return
    if kernel["phase"] == "update":
        return
    if not known:
        subtitle = "×".join(map(str, leaf["shape"])) or "1"
        subtitle += "" if leaf["dtype"] == "f32" else f" {leaf['dtype']}"
        width = text_width(f"{leaf['label']} {subtitle}") + 20
        json = _plain_box(name, PORTS[leaf["leaf"]], leaf, leaf["label"], subtitle)
        scene.parts.append(_Part(name, kernel["scope"], "forward", width, 22, json, role="above"))
        scene.anchors[name] = kernel["id"]
    scene.wires.append(_wire(name, kernel["id"], leaf))


def _plain_box(
    name: str, role: str, node: Json, title: str, subtitle: str = "", kind: str = "other"
) -> Json:
    return {
        "id": name,
        "role": role,
        "ref": node["id"],
        "kind": kind,
        "phase": node["phase"],
        "title": title,
        "subtitle": subtitle,
        "note": "",
        "items": [],
        "wires": [],
    }


def _output(scene: _Scene, name: str, node: int, kernel: Json) -> None:
    box = _plain_box(f"out:{name}", "output", {"id": node, "phase": kernel["phase"]}, name)
    width = text_width(name) + 12
    scene.parts.append(
        _Part(box["id"], kernel["scope"], kernel["phase"], width, 18, box, role="below")
    )
    scene.anchors[box["id"]] = kernel["id"]
    scene.wires.append({"from": kernel["id"], "to": box["id"], "node": node, "gradient": False})


# By scope ----------------------------------------------------------------------------------------------------------------


def _scope_scene(nodes: Sequence[Json], kernels: Sequence[Json]) -> _Scene:
    scene = _Scene(columns=_columns(kernels))
    groups: dict[tuple[str, str], list[Json]] = defaultdict(list)
    for kernel in kernels:
        groups[kernel["scope"], kernel["phase"]].append(kernel)
    name = {k["id"]: f"{scope}/{phase}" for (scope, phase), ks in groups.items() for k in ks}
    for (scope, phase), members in groups.items():
        scene.parts.append(_group_part(f"{scope}/{phase}", scope, phase, members))
    seen = set()
    for kernel in kernels:
        for tensor in kernel["inputs"]:
            source = nodes[producer(nodes, tensor["node"])]
            if source["kernel"] is None:
                continue
            wire = _wire(name[source["kernel"]], name[kernel["id"]], source)
            key = (wire["from"], wire["to"], wire["node"])
            if wire["from"] != wire["to"] and key not in seen:
                seen.add(key)
                scene.wires.append(wire)
    return scene


def _group_part(name: str, scope: str, phase: str, members: Sequence[Json]) -> _Part:
    width = 176.0
    items = []
    for i, kernel in enumerate(members[:24]):
        y = HEADER + PAD + 30 * i
        text = f"{kernel['id']}  {kernel['label']}"
        items.append({"ref": kernel["id"], "text": text, "x": PAD, "y": y, "w": width, "h": PILL})
    rest = len(members) - len(items)
    json = {
        "id": name,
        "role": "group",
        "ref": members[0]["id"],
        "kind": "other",
        "phase": phase,
        "title": scope or "program",
        "subtitle": "" if phase == "forward" else phase,
        "note": f"and {rest} more kernels" if rest else "",
        "items": items,
        "wires": [],
    }
    height = HEADER + 2 * PAD + 30 * len(items) - 6 + (18 if rest else 0)
    return _Part(name, scope, phase, width + 2 * PAD, height, json)


# Placement ---------------------------------------------------------------------------------------------------------------


def _draw(scene: _Scene) -> Json:
    """Parts -> rows (bands, wrapped to a readable width) -> coordinates."""
    limit = max(330.0, 900.0 / max(1, len(scene.columns)))
    row_of: dict[str, tuple[int, int, int]] = {}
    for index, band in enumerate(BANDS):
        _rows_of_band(scene, index, band, limit, row_of)
    by_id = {p.id: p for p in scene.parts}
    for name, anchor in scene.anchors.items():
        band, row, _ = row_of[anchor]
        row_of[name] = (band, row, 0 if by_id[name].role == "above" else 2)
    used = sorted(set(row_of.values()))
    at = {key: i for i, key in enumerate(used)}
    column = {scope: i for i, scope in enumerate(scene.columns)}
    ordered = sorted(scene.parts, key=lambda p: (row_of[p.id], row_order(p, row_of)))
    boxes = [
        Box(p.id, p.width, p.height, column[p.column], at[row_of[p.id]], fixed=p.role == "body")
        for p in ordered
    ]
    wires = [Wire(w["from"], w["to"], f"{w['from']}:{w['node']}") for w in scene.wires]
    first = {
        band: min(i for key, i in at.items() if key[0] == band) for band in {k[0] for k in used}
    }
    headed = set(first.values())
    metrics = Metrics(channel=24, gutter=26, idle=8)
    picture = arrange(boxes, wires, metrics, least_channels=lambda i: 34.0 if i in headed else 0.0)
    rows = [[BANDS[band], round(picture.rows[i][0] - 12, 1)] for band, i in sorted(first.items())]
    return _json(scene, picture, rows, lambda wire: _value_name(scene, wire))


def _value_name(scene: _Scene, wire: Json) -> str:
    """What a kernel's result is called; a port says its own name."""
    name = str(scene.names.get(wire["node"]) or "")
    port = wire["from"] in scene.anchors or wire["to"] in scene.anchors
    return "" if port or len(name) > 14 else name


def row_order(part: _Part, row_of: Mapping[str, tuple[int, int, int]]) -> int:
    """Backward rows run from right to left: later kernels stand further left."""
    number = int(part.id[1:]) if part.id[1:].isdigit() else 0
    return -number if row_of[part.id][0] == 1 and part.spine else number


def _rows_of_band(
    scene: _Scene, index: int, band: str, limit: float, row_of: dict[str, tuple[int, int, int]]
) -> None:
    """The spine first, then what nothing else in the band reads (the gradients of parameters)."""
    base = 0
    bodies = [p for p in scene.parts if p.role == "body" and p.band == band]
    for spine in (True, False) if band == "backward" else (None,):
        deepest = -1
        for column in scene.columns:
            chosen = [
                p for p in bodies if p.column == column and (spine is None or p.spine is spine)
            ]
            for row, part in _wrapped(chosen, limit):
                row_of[part.id] = (index, base + row, 1)
                deepest = max(deepest, row)
        base += deepest + 1


def _wrapped(parts: Iterable[_Part], limit: float) -> Iterable[tuple[int, _Part]]:
    row, used = 0, 0.0
    for part in parts:
        if used and used + part.width > limit:
            row, used = row + 1, 0.0
        used += part.width + 16
        yield row, part


def _json(scene: _Scene, picture: Picture, rows: list[list[Any]], named: Named = None) -> Json:
    boxes = []
    for part in scene.parts:
        placed = picture.boxes[part.id]
        spot = {"x": placed.x, "y": placed.y, "w": placed.width, "h": placed.height}
        boxes.append(part.json | {k: round(v, 1) for k, v in spot.items()})
    wires = []
    labelled: set[tuple[str, int]] = set()
    for wire, points in zip(scene.wires, picture.wires, strict=True):
        net = (wire["from"], wire["node"])
        label = None
        if named is not None and net not in labelled:
            label = _wire_label(named(wire), points, picture)
            labelled |= {net} if label else set()
        flat = [round(v, 1) for p in points for v in p]
        wires.append(wire | {"points": flat, "label": label})
    columns = [
        [name, round(x, 1), round(w, 1)]
        for name, (x, w) in zip(scene.columns, picture.columns, strict=False)
    ]
    return {
        "width": round(picture.width, 1),
        "height": round(picture.height, 1),
        "columns": columns,
        "rows": rows,
        "boxes": boxes,
        "wires": wires,
        "omitted": "",
    }


def _wire_label(text: str, points: Sequence[Point], picture: Picture) -> list[Any] | None:
    """The name of the value on the longest piece of its line, if no box is in the way."""
    if not text:
        return None
    pieces = sorted(
        pairwise(points), key=lambda p: -abs(p[0][0] - p[1][0]) - abs(p[0][1] - p[1][1])
    )
    half = text_width(text, 12) / 2 + 4
    for (x0, y0), (x1, y1) in pieces[:2]:
        x, y = (x0 + x1) / 2, (y0 + y1) / 2
        room = half + 8 if y0 == y1 else 20
        blocked = any(
            b.x < x + half and x - half < b.x + b.width and b.y < y + 9 and y - 9 < b.y + b.height
            for b in picture.boxes.values()
        )
        if not blocked and abs(x1 - x0) + abs(y1 - y0) >= 2 * room:
            return [text, round(x, 1), round(y + 4, 1)]
    return None


# Flat --------------------------------------------------------------------------------------------------------------------


def _draw_flat(nodes: Sequence[Json], shown: Sequence[Json], columns: list[str]) -> Json:
    """One mark a node, a row for each step of the longest path."""
    scene = _Scene(columns=list(columns))
    rank: dict[int, int] = {}
    boxes = []
    for node in shown:
        name, scope = f"n{node['id']}", node["column"]
        rank[node["id"]] = 1 + max((rank[i] for i in node["inputs"] if i in rank), default=-1)
        if scope not in scene.columns:
            scene.columns.append(scope)
        role = PORTS.get(node["leaf"] or "", "node")
        subtitle = "×".join(map(str, node["shape"]))
        json = _plain_box(name, role, node, node["label"], subtitle, node["kind"])
        width = text_width(f"{node['label']}  {subtitle}", 12) + 20
        scene.parts.append(_Part(name, scope, node["phase"], width, PILL, json))
        boxes.append(Box(name, width, PILL, scene.columns.index(scope), rank[node["id"]]))
        for i in dict.fromkeys(node["inputs"]):
            if i in rank:
                scene.wires.append(_wire(f"n{i}", name, nodes[i]))
    wires = [Wire(w["from"], w["to"], w["from"]) for w in scene.wires]
    metrics = Metrics(gap=12, track=8, channel=22, gutter=24, idle=12)
    picture = arrange(boxes, wires, metrics, lambda i: 24.0 if i == 0 else 0.0)
    return _json(scene, picture, [])
