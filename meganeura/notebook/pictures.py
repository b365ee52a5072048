"""The three pictures of a program's graph: by kernel, by scope, and flat.

Columns are the named scopes, rows are forward, backward and update, so that a layer stands above
its gradient. Works on the
plain JSON of `views.py`; `layout.py` knows the coordinates.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from meganeura.notebook.layout import Box, Metrics, Picture, Wire, arrange, text_width
from meganeura.notebook.scene import BANDS, Part, Scene, draw, to_json

Json = dict[str, Any]
MOST_MARKS = 400
MOST_ITEMS = 8
INNER = Metrics(gap=22, track=7, channel=18, gutter=0, margin=0, idle=10)
HEADER, PAD, PILL = 24, 10, 24
PORTS = {"input": "feed", "parameter": "parameter"}


def pictures(nodes: Sequence[Json], kernels: Sequence[Json], outputs: Mapping[str, int]) -> Json:
    """Nodes and kernels of a view -> {"kernel": picture, "scope": picture, "flat": picture}; the
    large ones are left out.
    """
    found: Json = {"scope": draw(_scope_scene(nodes, kernels))}
    if len(kernels) <= MOST_MARKS:
        found["kernel"] = draw(_kernel_scene(nodes, kernels, outputs))
    shown = [n for n in nodes if n["leaf"] != "constant"]
    if len(shown) <= MOST_MARKS:
        found["flat"] = _draw_flat(nodes, shown, _columns(kernels))
    return found


def _columns(kernels: Iterable[Json]) -> list[str]:
    """The scopes in the order in which the forward pass meets them."""
    ordered = sorted(kernels, key=lambda k: BANDS.index(k["phase"]))
    return list(dict.fromkeys(k["scope"] for k in ordered))


def producer(nodes: Sequence[Json], node: int) -> int:
    """The node whose buffer a view such as a reshape reads: itself, if a kernel or the user wrote
    it.
    """
    while nodes[node]["kernel"] is None and nodes[node]["leaf"] is None and nodes[node]["inputs"]:
        node = nodes[node]["inputs"][0]
    return node


# By kernel -------------------------------------------------------------------------------------


def _kernel_scene(
    nodes: Sequence[Json], kernels: Sequence[Json], outputs: Mapping[str, int]
) -> Scene:
    scene = Scene(columns=_columns(kernels), names={n["id"]: n["name"] for n in nodes})
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


def _kernel_part(nodes: Sequence[Json], kernel: Json, spine: bool) -> Part:
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
    return Part(kernel["id"], kernel["scope"], kernel["phase"], whole, tall, json, spine)


def _inside(
    nodes: Sequence[Json], kernel: Json
) -> tuple[list[Json], list[list[int]], float, float]:
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
        [round(v) for x, y in points for v in (x + PAD, y + HEADER + PAD)]
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
        "x": round(placed.x + dx),
        "y": round(placed.y + dy),
        "w": round(placed.width),
        "h": round(placed.height),
    }


def _wires_into(
    scene: Scene, nodes: Sequence[Json], kernel: Json, by_id: Mapping[str, Json]
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


def _port(scene: Scene, leaf: Json, kernel: Json) -> None:
    """A feed is drawn with all its readers, a parameter with its first: the rest is in the table of
    a kernel's inputs.
    """
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
        scene.parts.append(Part(name, kernel["scope"], "forward", width, 22, json, role="above"))
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


def _output(scene: Scene, name: str, node: int, kernel: Json) -> None:
    box = _plain_box(f"out:{name}", "output", {"id": node, "phase": kernel["phase"]}, name)
    width = text_width(name) + 12
    scene.parts.append(
        Part(box["id"], kernel["scope"], kernel["phase"], width, 18, box, role="below")
    )
    scene.anchors[box["id"]] = kernel["id"]
    scene.wires.append({"from": kernel["id"], "to": box["id"], "node": node, "gradient": False})


# By scope --------------------------------------------------------------------------------------


def _scope_scene(nodes: Sequence[Json], kernels: Sequence[Json]) -> Scene:
    scene = Scene(columns=_columns(kernels))
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


def _group_part(name: str, scope: str, phase: str, members: Sequence[Json]) -> Part:
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
    return Part(name, scope, phase, width + 2 * PAD, height, json)


# Flat ------------------------------------------------------------------------------------------


def _draw_flat(nodes: Sequence[Json], shown: Sequence[Json], columns: list[str]) -> Json:
    """One mark a node, a row for each step of the longest path."""
    scene = Scene(columns=list(columns))
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
        scene.parts.append(Part(name, scope, node["phase"], width, PILL, json))
        boxes.append(Box(name, width, PILL, scene.columns.index(scope), rank[node["id"]]))
        for i in dict.fromkeys(node["inputs"]):
            if i in rank:
                scene.wires.append(_wire(f"n{i}", name, nodes[i]))
    wires = [Wire(w["from"], w["to"], w["from"]) for w in scene.wires]
    metrics = Metrics(gap=12, track=8, channel=22, gutter=24, idle=12)
    picture = arrange(boxes, wires, metrics, lambda i: 24.0 if i == 0 else 0.0)
    headings: list[list[Any]] = [
        [name, round(x, 1), round(width, 1), 2.0]
        for name, (x, width) in zip(scene.columns, picture.columns, strict=False)
    ]
    return to_json(scene, picture, headings, [])
