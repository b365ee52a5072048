"""The static picture of a program: one SVG in the light palette that GitHub, nbviewer and a PDF
show without any script.
"""

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
    """A program view -> its graph by kernel (by scope when it is large), captioned, described."""
    picture = view["pictures"].get("kernel") or view["pictures"]["scope"]
    width = max(picture["width"], min(2000, 16 + text_width(view["caption"])))
    height = picture["height"] + 40
    times = {k["id"]: _time(k) for k in view["kernels"]}
    labels = [w["label"] for w in picture["wires"] if w["label"]]
    parts = [
        f"<title>{_text(view['caption'])}</title>",
        f"<desc>{_text(description(view))}</desc>",
        _defs(),
        _tag("rect", width=width, height=height, fill=PANEL),
        *_columns(picture),
        *(_wire(w) for w in picture["wires"]),
        *(
            _label(16, y, ARROWS.get(name, name), bold=True, plate=True)
            for name, y in picture["rows"]
        ),
        *(part for box in picture["boxes"] for part in _box(box, times)),
        *(_label(x, y, text, anchor="middle", plate=True, fill=DIM) for text, x, y in labels),
        _label(16, height - 14, view["caption"], size=13),
    ]
    root = {
        "xmlns": "http://www.w3.org/2000/svg",
        "width": width,
        "height": height,
        "viewBox": f"0 0 {_n(width)} {_n(height)}",
        "role": "img",
        "font_family": "Helvetica, Arial, sans-serif",
        "font_size": 12,
    }
    return _tag("svg", "\n".join(["", *parts, ""]), **root) + "\n"


def _tag(name: str, inside: str | None = None, **attributes: Any) -> str:
    """An element; `_` in names stands for `-`, None leaves an attribute out, `inside` is markup."""
    written = "".join(
        f" {key.replace('_', '-')}={quoteattr(_n(v) if isinstance(v, float) else str(v))}"
        for key, v in attributes.items()
        if v is not None
    )
    return f"<{name}{written}/>" if inside is None else f"<{name}{written}>{inside}</{name}>"


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


def _defs() -> str:
    parts = []
    for kind, (stroke, fill) in STROKE.items():
        line = _tag(
            "line", x1=0, y1=0, x2=0, y2=8, stroke=stroke, stroke_width=1.2, stroke_opacity=0.5
        )
        dots = "".join(_tag("circle", cx=c, cy=c, r=0.9, fill=stroke) for c in (1.5, 4.5))
        turned = {"patternTransform": "rotate(45)"}
        parts.append(_pattern(f"mg-{kind}-backward", 8, fill, line, **turned))
        parts.append(_pattern(f"mg-{kind}-update", 6, fill, dots))
    for name, fill in (("arrow", STRONG), ("arrow-ink", INK)):
        size = {"refX": 7, "refY": 4, "markerWidth": 8, "markerHeight": 8}
        way = {"viewBox": "0 0 8 8", "markerUnits": "userSpaceOnUse", "orient": "auto"}
        head = _tag("path", d="M0 1L8 4L0 7z", fill=fill)
        parts.append(_tag("marker", head, id=f"mg-{name}", **way, **size))
    return _tag("defs", "".join(parts))


def _pattern(name: str, size: int, fill: str, marks: str, **more: Any) -> str:
    ground = _tag("rect", width=size, height=size, fill=fill)
    units = {"patternUnits": "userSpaceOnUse"}
    return _tag("pattern", ground + marks, id=name, width=size, height=size, **units, **more)


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
    style = {"font_weight": "600" if bold else None, "text_anchor": anchor}
    line = _tag("text", _text(text), x=float(x), y=float(y), fill=fill, font_size=size, **style)
    if not plate:
        return line
    width = text_width(text, size) + 6
    left = {"start": x - 3, "middle": x - width / 2, "end": x - width + 3}[anchor]
    return _tag("rect", x=left, y=y - 12.0, width=width, height=16, fill=PANEL) + line


def _columns(picture: Json) -> Iterable[str]:
    for name, x, width, y in picture["columns"]:
        yield _tag("line", x1=float(x), x2=float(x + width), y1=float(y), y2=float(y), stroke=LINE)
        yield _label(x + width / 2, y + 17, name or "program", anchor="middle", fill=DIM)


def _path(points: Sequence[float], **style: Any) -> str:
    pairs = [f"{_n(points[i])} {_n(points[i + 1])}" for i in range(0, len(points), 2)]
    return _tag("path", d="M" + "L".join(pairs), fill="none", **style)


def _wire(wire: Json) -> str:
    if wire["gradient"]:
        dashed = {"stroke_width": 2, "stroke_dasharray": "5 3", "marker_end": "url(#mg-arrow-ink)"}
        return _path(wire["points"], stroke=INK, **dashed)
    return _path(wire["points"], stroke=STRONG, stroke_width=1.3, marker_end="url(#mg-arrow)")


def _box(box: Json, times: Mapping[str, str]) -> Iterable[str]:
    whole = box["role"] in ("kernel", "group")
    inside = _container(box, times.get(box["id"], "")) if whole else _port(box)
    yield _tag("g", "".join(inside), transform=f"translate({_n(box['x'])} {_n(box['y'])})")


def _fill(box: Json) -> str:
    kind, phase = box["kind"], box["phase"]
    plain = phase == "forward" or box["role"] == "group"
    return STROKE[kind][1] if plain else f"url(#mg-{kind}-{phase})"


def _container(box: Json, time: str) -> Iterable[str]:
    stroke = STROKE[box["kind"]][0]
    w, h = float(box["w"]), float(box["h"])
    head = f"M.75 23V4a3.25 3.25 0 0 1 3.25-3.25H{_n(w - 4)}a3.25 3.25 0 0 1 3.25 3.25V23z"
    yield _tag("rect", width=w, height=h, rx=4, fill=_fill(box), stroke=stroke, stroke_width=1.5)
    yield _tag("path", d=head, fill=PANEL)
    yield _tag("line", x1=0, x2=w, y1=23, y2=23, stroke=stroke)
    yield _label(8, 16, box["title"], bold=True)
    if text_width(box["subtitle"] + box["title"] + time, 12) < w - 26:
        yield _label(14 + text_width(box["title"], 12), 16, box["subtitle"], fill=DIM)
    if time:
        yield _label(w - 7, 16, time, anchor="end")
    for points in box["wires"]:
        yield _path(points, stroke=STRONG, stroke_width=1.1, marker_end="url(#mg-arrow)")
    for item in box["items"]:
        x, y, wide, tall = (float(item[k]) for k in "xywh")
        look = {"rx": 3, "fill": PANEL, "stroke": STRONG}
        yield _tag("rect", None, x=x, y=y, width=wide, height=tall, **look)
        yield _label(x + wide / 2, y + tall / 2 + 4, _clip(item["text"], wide - 6), anchor="middle")
    if box["note"]:
        note = _clip(box["note"], w - 12)
        yield _label(w / 2, h - 7, note, anchor="middle", fill=DIM, plate=True)


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
    w, h = float(box["w"]), float(box["h"])
    if box["role"] == "output":
        yield _label(w / 2, 13, box["title"], bold=True, anchor="middle")
        return
    radius = {"feed": h / 2, "node": 3.0}.get(box["role"], 0.0)
    yield _tag("rect", width=w, height=h, rx=radius, fill=PANEL, stroke=STRONG)
    name = _tag("tspan", _text(box["title"]), font_weight="600")
    more = _tag("tspan", _text(f" {box['subtitle']}"), fill=DIM)
    yield _tag("text", name + more, x=w / 2, y=h / 2 + 4, text_anchor="middle", fill=INK)
