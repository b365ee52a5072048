"""The static picture of a program: one SVG in the light palette that GitHub, nbviewer and a PDF show without any script."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from meganeura.notebook.layout import text_width

Json = Mapping[str, Any]

STROKE = {
    "matmul": ("#0754B7", "#DAE7F8"),
    "map": ("#B17825", "#F9E8CB"),
    "reduce": ("#00957A", "#D8F3EB"),
    "attention": ("#562F5B", "#EBDDF0"),
    "gather": ("#70241B", "#F4DAD2"),
    "other": ("#4A5563", "#E6E9ED"),
}
INK, DIM, PANEL, LINE, STRONG = "#1B1F24", "#555D66", "#FFFFFF", "#D5D9DE", "#8A929C"
ARROWS = {"forward": "forward →", "backward": "← backward", "update": "update ↓"}
# Everything that XML 1.0 does not allow in a text, such as most control characters.
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def program_svg(view: Json) -> str:
    """A program view -> its graph by kernel (by scope when it is large), with caption and description."""
    picture = view["pictures"].get("kernel") or view["pictures"]["scope"]
    width = max(picture["width"], min(2000, 16 + text_width(view["caption"])))
    height = picture["height"] + 40
    times = {k["id"]: _time(k) for k in view["kernels"]}
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_n(width)}" height="{_n(height)}" '
        f'viewBox="0 0 {_n(width)} {_n(height)}" role="img" font-family="Helvetica, Arial, sans-serif" font-size="12">',
        f"<title>{_text(view['caption'])}</title>",
        f"<desc>{_text(description(view))}</desc>",
        _defs(),
        f'<rect width="{_n(width)}" height="{_n(height)}" fill="{PANEL}"/>',
        *_columns(picture),
        *(_wire(w) for w in picture["wires"]),
        *(
            _label(16, y, ARROWS.get(name, name), bold=True, plate=True)
            for name, y in picture["rows"]
        ),
        *(part for box in picture["boxes"] for part in _box(box, times)),
        *(
            _label(
                w["label"][1], w["label"][2], w["label"][0], anchor="middle", plate=True, fill=DIM
            )
            for w in _labelled(picture)
        ),
        _label(16, height - 14, view["caption"], size=13),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def description(view: Json) -> str:
    """The kernels as sentences, for those who hear the picture."""
    lines = []
    for kernel in view["kernels"][:100]:
        reads = ", ".join(t["label"] for t in kernel["inputs"])
        writes = ", ".join(t["label"] for t in kernel["outputs"])
        lines.append(
            f"{kernel['id']}, {kernel['label']}, {kernel['phase']}: reads {reads}; writes {writes}."
        )
    rest = len(view["kernels"]) - len(lines)
    return " ".join(lines) + (f" And {rest} more kernels." if rest > 0 else "")


def _text(value: str) -> str:
    return escape(_FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", value))


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _time(kernel: Json) -> str:
    value = kernel["median_us"] if kernel["median_us"] is not None else kernel["predicted_us"]
    return "" if value is None else f"{value:.3g} µs"


def _labelled(picture: Json) -> list[Json]:
    return [w for w in picture["wires"] if w["label"]]


def _defs() -> str:
    parts = ["<defs>"]
    for kind, (stroke, fill) in STROKE.items():
        parts.append(
            f'<pattern id="mg-{kind}-backward" width="8" height="8" patternUnits="userSpaceOnUse" '
            f'patternTransform="rotate(45)"><rect width="8" height="8" fill="{fill}"/>'
            f'<line x1="0" y1="0" x2="0" y2="8" stroke="{stroke}" stroke-width="1.2" stroke-opacity=".5"/></pattern>'
            f'<pattern id="mg-{kind}-update" width="6" height="6" patternUnits="userSpaceOnUse">'
            f'<rect width="6" height="6" fill="{fill}"/><circle cx="1.5" cy="1.5" r=".9" fill="{stroke}"/>'
            f'<circle cx="4.5" cy="4.5" r=".9" fill="{stroke}"/></pattern>'
        )
    for name, fill in (("arrow", STRONG), ("arrow-ink", INK)):
        parts.append(
            f'<marker id="mg-{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
            f'markerUnits="userSpaceOnUse" orient="auto"><path d="M0 1L8 4L0 7z" fill="{fill}"/></marker>'
        )
    return "".join([*parts, "</defs>"])


def _label(
    x: float,
    y: float,
    text: str,
    *,
    bold: bool = False,
    anchor: str = "start",
    fill: str = INK,
    size: int = 12,
    plate: bool = False,
) -> str:
    weight = ' font-weight="600"' if bold else ""
    at = f' text-anchor="{anchor}"' if anchor != "start" else ""
    line = f'<text x="{_n(x)}" y="{_n(y)}" fill="{fill}" font-size="{size}"{weight}{at}>{_text(text)}</text>'
    if not plate:
        return line
    width = text_width(text, size) + 6
    left = {"start": x - 3, "middle": x - width / 2, "end": x - width + 3}[anchor]
    return (
        f'<rect x="{_n(left)}" y="{_n(y - 12)}" width="{_n(width)}" height="16" fill="{PANEL}"/>'
        + line
    )


def _columns(picture: Json) -> Iterable[str]:
    for name, x, width in picture["columns"]:
        yield f'<line x1="{_n(x)}" x2="{_n(x + width)}" y1="2" y2="2" stroke="{LINE}"/>'
        yield _label(x + width / 2, 20, name or "program", anchor="middle", fill=DIM)


def _path(points: Sequence[float]) -> str:
    pairs = [f"{_n(points[i])} {_n(points[i + 1])}" for i in range(0, len(points), 2)]
    return "M" + "L".join(pairs)


def _wire(wire: Json) -> str:
    if wire["gradient"]:
        style = f'stroke="{INK}" stroke-width="2" stroke-dasharray="5 3" marker-end="url(#mg-arrow-ink)"'
    else:
        style = f'stroke="{STRONG}" stroke-width="1.3" marker-end="url(#mg-arrow)"'
    return f'<path d="{_path(wire["points"])}" fill="none" {style}/>'


def _box(box: Json, times: Mapping[str, str]) -> Iterable[str]:
    yield f'<g transform="translate({_n(box["x"])} {_n(box["y"])})">'
    if box["role"] in ("kernel", "group"):
        yield from _container(box, times.get(box["id"], ""))
    else:
        yield from _port(box)
    yield "</g>"


def _fill(box: Json) -> str:
    kind, phase = box["kind"], box["phase"]
    return (
        STROKE[kind][1]
        if phase == "forward" or box["role"] == "group"
        else f"url(#mg-{kind}-{phase})"
    )


def _container(box: Json, time: str) -> Iterable[str]:
    stroke = STROKE[box["kind"]][0]
    w, h = _n(box["w"]), _n(box["h"])
    yield f'<rect width="{w}" height="{h}" rx="4" fill={quoteattr(_fill(box))} stroke="{stroke}" stroke-width="1.5"/>'
    yield f'<path d="M.75 23V4a3.25 3.25 0 0 1 3.25-3.25H{_n(box["w"] - 4)}a3.25 3.25 0 0 1 3.25 3.25V23z" fill="{PANEL}"/>'
    yield f'<line x1="0" x2="{w}" y1="23" y2="23" stroke="{stroke}"/>'
    yield _label(8, 16, box["title"], bold=True)
    room = box["w"] - 26 - text_width(box["title"] + time, 12)
    if text_width(box["subtitle"], 12) < room:
        yield _label(14 + text_width(box["title"], 12), 16, box["subtitle"], fill=DIM)
    if time:
        yield _label(box["w"] - 7, 16, time, anchor="end")
    for points in box["wires"]:
        yield f'<path d="{_path(points)}" fill="none" stroke="{STRONG}" stroke-width="1.1" marker-end="url(#mg-arrow)"/>'
    for item in box["items"]:
        yield (
            f'<rect x="{_n(item["x"])}" y="{_n(item["y"])}" width="{_n(item["w"])}" height="{_n(item["h"])}" rx="3" '
            f'fill="{PANEL}" stroke="{STRONG}"/>'
        )
        text = _clip(item["text"], item["w"] - 6)
        yield _label(
            item["x"] + item["w"] / 2, item["y"] + item["h"] / 2 + 4, text, anchor="middle"
        )
    if box["note"]:
        yield _label(
            box["w"] / 2,
            box["h"] - 7,
            _clip(box["note"], box["w"] - 12),
            anchor="middle",
            fill=DIM,
            plate=True,
        )


def _clip(text: str, width: float) -> str:
    if text_width(text, 12) <= width:
        return text
    room = width - text_width("…", 12)
    for i, letter in enumerate(text):
        room -= text_width(letter, 12)
        if room < 0:
            return text[:i] + "…"
    return text


def _port(box: Json) -> Iterable[str]:
    if box["role"] == "output":
        yield _label(box["w"] / 2, 13, box["title"], bold=True, anchor="middle")
        return
    radius = {"feed": box["h"] / 2, "node": 3}.get(box["role"], 0)
    yield (
        f'<rect width="{_n(box["w"])}" height="{_n(box["h"])}" rx="{_n(radius)}" fill="{PANEL}" stroke="{STRONG}"/>'
        f'<text x="{_n(box["w"] / 2)}" y="{_n(box["h"] / 2 + 4)}" text-anchor="middle" fill="{INK}">'
        f'<tspan font-weight="600">{_text(box["title"])}</tspan>'
        f'<tspan fill="{DIM}"> {_text(box["subtitle"])}</tspan></text>'
    )
