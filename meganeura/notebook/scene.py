"""A picture before it has coordinates, and the rows that its parts are put into."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from meganeura.notebook.layout import Box, Metrics, Picture, Point, Wire, arrange, text_width

Json = dict[str, Any]
Named = Callable[[Json], str] | None
BANDS = ("forward", "backward", "update")


@dataclass(frozen=True)
class Part:
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
class Scene:
    """Everything of one picture before the layout."""

    parts: list[Part] = field(default_factory=list)
    wires: list[Json] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)
    anchors: dict[str, str] = field(default_factory=dict)
    names: dict[int, str | None] = field(default_factory=dict)


def draw(scene: Scene) -> Json:
    """Parts -> rows (bands, wrapped to a readable width) -> coordinates."""
    limit = max(330.0, 900.0 / max(1, len(scene.columns)))
    row_of: dict[str, tuple[int, int, int]] = {}
    for index, band in enumerate(BANDS):
        _rows_of_band(scene, index, band, limit, row_of)
    by_id = {p.id: p for p in scene.parts}
    for name, anchor in scene.anchors.items():
        number, row, _ = row_of[anchor]
        row_of[name] = (number, row, 0 if by_id[name].role == "above" else 2)
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
    rows: list[list[Any]] = [
        [BANDS[band], round(picture.rows[i][0] - 12, 1)] for band, i in sorted(first.items())
    ]
    return to_json(scene, picture, rows, lambda wire: _value_name(scene, wire))


def _value_name(scene: Scene, wire: Json) -> str:
    """What a kernel's result is called; a port says its own name."""
    name = str(scene.names.get(wire["node"]) or "")
    port = wire["from"] in scene.anchors or wire["to"] in scene.anchors
    return "" if port or len(name) > 14 else name


def row_order(part: Part, row_of: Mapping[str, tuple[int, int, int]]) -> int:
    """Backward rows run from right to left: later kernels stand further left."""
    number = int(part.id[1:]) if part.id[1:].isdigit() else 0
    return -number if row_of[part.id][0] == 1 and part.spine else number


def _rows_of_band(
    scene: Scene, index: int, band: str, limit: float, row_of: dict[str, tuple[int, int, int]]
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


def _wrapped(parts: Iterable[Part], limit: float) -> Iterable[tuple[int, Part]]:
    row, used = 0, 0.0
    for part in parts:
        if used and used + part.width > limit:
            row, used = row + 1, 0.0
        used += part.width + 16
        yield row, part


def to_json(scene: Scene, picture: Picture, rows: list[list[Any]], named: Named = None) -> Json:
    """The finished picture as it is sent; `named` says what the value on a wire is called."""
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
