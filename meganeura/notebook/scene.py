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
MOST_ABREAST, FOLD = 8, 6  # scopes side by side; how many when there are more
Row = tuple[int, int, int, int]  # block, band, row of the band, ports above or outputs below


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
    """Parts -> rows (blocks of scopes, bands in them, wrapped to a width) -> coordinates.

    A program of many scopes is folded like text: a line of scopes, and the next below it.
    """
    count = len(scene.columns)
    abreast = count if count <= MOST_ABREAST else FOLD
    row_of: dict[str, Row] = {}
    for start in range(0, count, max(1, abreast)):
        _rows_of_block(scene, start // abreast, scene.columns[start : start + abreast], row_of)
    for part in scene.parts:
        if part.id in scene.anchors:
            block, band, row, _ = row_of[scene.anchors[part.id]]
            row_of[part.id] = (block, band, row, 0 if part.role == "above" else 2)
    at = {key: i for i, key in enumerate(sorted(set(row_of.values())))}
    place = {scope: i for i, scope in enumerate(scene.columns)}
    ordered = sorted(scene.parts, key=lambda p: (row_of[p.id], row_order(p, row_of)))
    boxes = [
        Box(
            p.id,
            p.width,
            p.height,
            place[p.column] % abreast,
            at[row_of[p.id]],
            fixed=p.role == "body",
        )
        for p in ordered
    ]
    wires = [Wire(w["from"], w["to"], f"{w['from']}:{w['node']}") for w in scene.wires]
    headings = _headings(at)
    metrics = Metrics(channel=24, gutter=26, idle=8)
    picture = arrange(boxes, wires, metrics, lambda i: headings[i][1] if i in headings else 0.0)
    rows = [[BANDS[band], round(picture.rows[i][0] - 12, 1)] for i, (band, _) in headings.items()]
    tops = {key[0]: picture.rows[i][0] - 54 for key, i in reversed(at.items())}
    columns = []
    for scope, i in place.items():
        x, width = picture.columns[i % abreast]
        columns.append([scope, round(x, 1), round(width, 1), round(tops[i // abreast], 1)])
    return to_json(scene, picture, columns, rows, lambda wire: _value_name(scene, wire))


def _headings(at: Mapping[Row, int]) -> dict[int, tuple[int, float]]:
    """For the first row of each band: the band, and the px that its heading needs above it."""
    found: dict[int, tuple[int, float]] = {}
    seen: set[tuple[int, int]] = set()
    for (block, band, _, _), i in at.items():
        if (block, band) not in seen:
            opening = not any(b == block for b, _ in seen)
            found[i] = (band, 58.0 if opening and block else 38.0 if opening else 34.0)
            seen.add((block, band))
    return found


def _value_name(scene: Scene, wire: Json) -> str:
    """What a kernel's result is called; a port says its own name."""
    name = str(scene.names.get(wire["node"]) or "")
    port = wire["from"] in scene.anchors or wire["to"] in scene.anchors
    return "" if port or len(name) > 14 else name


def row_order(part: Part, row_of: Mapping[str, Row]) -> int:
    """Backward rows run from right to left: later kernels stand further left."""
    number = int(part.id[1:]) if part.id[1:].isdigit() else 0
    return -number if row_of[part.id][1] == 1 and part.spine else number


def _rows_of_block(scene: Scene, block: int, scopes: Sequence[str], rows: dict[str, Row]) -> None:
    """Forward, backward with its spine first (what the rest of it reads), and update."""
    limit = max(330.0, 900.0 / max(1, len(scopes)))
    for index, band in enumerate(BANDS):
        base = 0
        bodies = [p for p in scene.parts if p.role == "body" and p.band == band]
        for spine in (True, False) if band == "backward" else (None,):
            deepest = -1
            for scope in scopes:
                chosen = [p for p in bodies if p.column == scope and spine in (None, p.spine)]
                for row, part in _wrapped(chosen, limit):
                    rows[part.id] = (block, index, base + row, 1)
                    deepest = max(deepest, row)
            base += deepest + 1


def _wrapped(parts: Iterable[Part], limit: float) -> Iterable[tuple[int, Part]]:
    row, used = 0, 0.0
    for part in parts:
        if used and used + part.width > limit:
            row, used = row + 1, 0.0
        used += part.width + 16
        yield row, part


def to_json(
    scene: Scene,
    picture: Picture,
    columns: list[list[Any]],
    rows: list[list[Any]],
    named: Named = None,
) -> Json:
    """The finished picture as it is sent; `named` says what the value on a wire is called."""
    boxes = []
    for part in scene.parts:
        placed = picture.boxes[part.id]
        spot = {"x": placed.x, "y": placed.y, "w": placed.width, "h": placed.height}
        boxes.append(part.json | {k: round(v) for k, v in spot.items()})
    wires = []
    labelled: set[tuple[str, int]] = set()
    for wire, points in zip(scene.wires, picture.wires, strict=True):
        net = (wire["from"], wire["node"])
        label = None
        if named is not None and net not in labelled:
            label = _wire_label(named(wire), points, picture)
            labelled |= {net} if label else set()
        flat = [round(v) for p in points for v in p]
        wires.append(wire | {"points": flat, "label": label})
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
