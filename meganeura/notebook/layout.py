"""Where boxes and lines go: a layered, orthogonal layout, the same for the same input.

Boxes stand in rows and columns. Lines run only in the channels between rows and in the gutters between columns, so no line
crosses a box, and every channel has a track for each net that needs it, so no two nets lie on each other. This is Sugiyama's
method (layers, then barycentre order, then coordinates) with the classic left-edge algorithm for the tracks of a channel.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from unicodedata import east_asian_width

Point = tuple[float, float]
Span = tuple[float, float]


@dataclass(frozen=True)
class Box:
    """A thing to place: its size in px, its column and its row.

    The boxes of one cell are ordered by the layout, unless one of them is `fixed`: then as given.
    """

    id: str
    width: float
    height: float
    column: int
    row: int
    fixed: bool = False


@dataclass(frozen=True)
class Wire:
    """A line to draw; wires of one net carry the same value and may share a track."""

    source: str
    target: str
    net: str


@dataclass(frozen=True)
class Metrics:
    """Distances in px: between boxes, between parallel lines, the least channel and gutter, the outer margin."""

    gap: float = 16
    track: float = 10
    channel: float = 28
    gutter: float = 28
    margin: float = 16
    idle: float = 16  # the height of a channel that carries no line


@dataclass(frozen=True)
class Placed:
    """A placed rectangle in px from the upper left corner."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Picture:
    """The finished layout: boxes by id, one polyline a wire in the order given, columns as (x, width), rows as (y, height)."""

    width: float
    height: float
    boxes: dict[str, Placed]
    wires: tuple[tuple[Point, ...], ...]
    columns: tuple[Span, ...]
    rows: tuple[Span, ...]


@dataclass
class _Route:
    """How one wire runs: the sides it leaves and enters by, the channels, and the gutter if it passes other rows."""

    exit: str
    entry: str
    channels: tuple[int, ...] = ()
    gutter: int | None = None
    straight: float | None = None


@dataclass
class _State:
    """What the steps of one layout share."""

    boxes: dict[str, Box]
    wires: Sequence[Wire]
    metrics: Metrics
    order: dict[tuple[int, int], list[str]] = field(default_factory=dict)
    routes: list[_Route] = field(default_factory=list)
    gutters: dict[tuple[int, str], int] = field(default_factory=dict)
    gutter_x: list[float] = field(default_factory=list)
    x: dict[str, float] = field(default_factory=dict)
    width: dict[str, float] = field(default_factory=dict)
    ports: dict[tuple[str, str, str, bool], float] = field(default_factory=dict)
    tracks: dict[tuple[int, str], int] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        return 1 + max((b.row for b in self.boxes.values()), default=-1)

    @property
    def columns(self) -> int:
        return 1 + max((b.column for b in self.boxes.values()), default=-1)


def text_width(text: str, size: float = 13) -> float:
    """An upper estimate of a line's width in px in a common sans serif face; wide East Asian letters count double."""
    units = sum(1.0 if east_asian_width(c) in "WF" else 0.56 for c in text)
    return units * size


def arrange(
    boxes: Iterable[Box],
    wires: Sequence[Wire],
    metrics: Metrics | None = None,
    least_channels: Callable[[int], float] | None = None,
) -> Picture:
    """Boxes and wires -> their coordinates.

    `least_channels(i)` may ask for a minimal height in px of the channel above row i (for a heading).
    """
    state = _State({b.id: b for b in boxes}, wires, metrics or Metrics())
    state.order = _ordered(state)
    state.routes = [_route(state, w) for w in wires]
    _widen(state)
    _colour_gutters(state)
    columns = _place_columns(state)
    _place_ports(state)
    heights = _colour_channels(state, least_channels or (lambda _: 0.0))
    return _finish(state, columns, heights)


# Order within a row ------------------------------------------------------------------------------------------------------


def _ordered(state: _State) -> dict[tuple[int, int], list[str]]:
    """The boxes of each cell, sorted by the mean position of their neighbours, in four sweeps from the given order."""
    cells: dict[tuple[int, int], list[str]] = defaultdict(list)
    for box in state.boxes.values():
        cells[box.row, box.column].append(box.id)
    near: dict[str, list[str]] = defaultdict(list)
    for wire in state.wires:
        near[wire.source].append(wire.target)
        near[wire.target].append(wire.source)
    fixed = {(b.row, b.column) for b in state.boxes.values() if b.fixed}
    where = {name: (state.boxes[name].column, i) for ids in cells.values() for i, name in enumerate(ids)}
    for sweep in range(4):
        for key in sorted(cells, reverse=sweep % 2 == 1):
            ids = cells[key]
            if len(ids) > 1 and key not in fixed:
                ids.sort(key=lambda n: (_barycentre(n, near, where, state), where[n]))
                where.update((name, (key[1], i)) for i, name in enumerate(ids))
    return dict(cells)


def _barycentre(
    name: str, near: dict[str, list[str]], where: dict[str, tuple[int, int]], state: _State
) -> float:
    row = state.boxes[name].row
    spots = [where[n][0] + where[n][1] / 64 for n in near[name] if state.boxes[n].row != row]
    column, index = where[name]
    return sum(spots) / len(spots) if spots else column + index / 64


# Routes ------------------------------------------------------------------------------------------------------------------


def _route(state: _State, wire: Wire) -> _Route:
    a, b = state.boxes[wire.source], state.boxes[wire.target]
    if a.row == b.row:
        if _adjacent(state, a, b):
            right = _row_index(state, a) < _row_index(state, b)
            return _Route("right", "left") if right else _Route("left", "right")
        return _Route("bottom", "bottom", (a.row + 1,))
    down = b.row > a.row
    first, last = (a.row + 1, b.row) if down else (a.row, b.row + 1)
    sides = ("bottom", "top") if down else ("top", "bottom")
    if first == last:
        return _Route(*sides, (first,))
    gutter = b.column if a.column <= b.column else b.column + 1
    return _Route(*sides, (first, last), gutter)


def _row_index(state: _State, box: Box) -> tuple[int, int]:
    return box.column, state.order[box.row, box.column].index(box.id)


def _adjacent(state: _State, a: Box, b: Box) -> bool:
    """True when nothing stands between two boxes of one row."""
    first, second = sorted((a, b), key=lambda box: _row_index(state, box))
    i, j = _row_index(state, first)[1], _row_index(state, second)[1]
    if first.column == second.column:
        return j == i + 1
    ends = i == len(state.order[first.row, first.column]) - 1 and j == 0
    between = range(first.column + 1, second.column)
    return ends and not any((first.row, c) in state.order for c in between)


def _widen(state: _State) -> None:
    """Each box is at least as wide as its ports need."""
    need: dict[tuple[str, str], set[tuple[str, bool]]] = defaultdict(set)
    for wire, route in zip(state.wires, state.routes, strict=True):
        need[wire.source, route.exit].add((wire.net, True))
        need[wire.target, route.entry].add((wire.net, False))
    for name, box in state.boxes.items():
        ports = max(len(need[name, "top"]), len(need[name, "bottom"]))
        state.width[name] = max(box.width, 8.0 * (ports + 2))


def _left_edge(spans: dict[str, Span], clearance: float) -> dict[str, int]:
    """Interval colouring: spans of one track do not come nearer than `clearance`; as few tracks as possible."""
    track: dict[str, int] = {}
    busy: list[tuple[float, int]] = []
    free: list[int] = []
    used = 0
    for key, (low, high) in sorted(spans.items(), key=lambda item: (item[1], item[0])):
        while busy and busy[0][0] + clearance < low:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if free:
            chosen = heapq.heappop(free)
        else:
            chosen, used = used, used + 1
        track[key] = chosen
        heapq.heappush(busy, (high, chosen))
    return track


def _hull(spans: dict[str, Span], key: str, *values: float) -> None:
    low, high = spans.get(key, (values[0], values[0]))
    spans[key] = (min(low, *values), max(high, *values))


def _colour_gutters(state: _State) -> None:
    spans: dict[int, dict[str, Span]] = defaultdict(dict)
    for wire, route in zip(state.wires, state.routes, strict=True):
        if route.gutter is not None:
            _hull(spans[route.gutter], wire.net, *map(float, route.channels))
    for gutter, nets in spans.items():
        for net, track in _left_edge(nets, 0).items():
            state.gutters[gutter, net] = track


def _place_columns(state: _State) -> list[Span]:
    """The x of gutters, columns and boxes."""
    m = state.metrics
    tracks: dict[int, int] = defaultdict(int)
    for (gutter, _), track in state.gutters.items():
        tracks[gutter] = max(tracks[gutter], track + 1)
    columns: list[Span] = []
    x = m.margin
    for column in range(state.columns):
        state.gutter_x.append(x)
        outer = column == 0 and not tracks[0]
        x += 0 if outer else max(m.gutter, m.track * (tracks[column] + 1))
        width = 0.0
        for row in range(state.rows):
            at = x
            for name in state.order.get((row, column), ()):
                state.x[name] = at
                at += state.width[name] + m.gap
            width = max(width, at - m.gap - x)
        columns.append((x, width))
        x += width
    state.gutter_x.append(x)
    last = m.track * (tracks[state.columns] + 1) if tracks[state.columns] else 0
    state.gutter_x.append(x + last)
    return columns


# Ports and channels ------------------------------------------------------------------------------------------------------


def _place_ports(state: _State) -> None:
    """The x at which each net leaves and enters each box, in the order of where it goes.

    Straight lines end in 2, lower sides in 0 and upper sides in 4 (modulo 8), so that the stubs of two nets never meet.
    """
    _straighten(state)
    wanted: dict[tuple[str, str], dict[tuple[str, bool], float]] = defaultdict(dict)
    for wire, route in zip(state.wires, state.routes, strict=True):
        if route.straight is None and route.channels:
            wanted[wire.source, route.exit][wire.net, True] = _toward(state, wire.target, route)
            wanted[wire.target, route.entry][wire.net, False] = _toward(state, wire.source, route)
    for (name, side), ports in wanted.items():
        order = sorted(ports, key=lambda port: (ports[port], port))
        step = state.width[name] / (len(order) + 1)
        for i, (net, leaving) in enumerate(order):
            x = state.x[name] + step * (i + 1)
            state.ports[name, side, net, leaving] = 8 * round((x - 4) / 8) + (4 if side == "top" else 0)


def _toward(state: _State, other: str, route: _Route) -> float:
    if route.gutter is not None:
        return state.gutter_x[route.gutter]
    return state.x[other] + state.width[other] / 2


def _straighten(state: _State) -> None:
    """Wires between boxes that stand above each other go straight down, where there is room."""
    pairs: dict[tuple[str, str], dict[str, list[_Route]]] = defaultdict(dict)
    for wire, route in zip(state.wires, state.routes, strict=True):
        if len(route.channels) == 1 and route.exit != route.entry:
            pairs[wire.source, wire.target].setdefault(wire.net, []).append(route)
    for (source, target), nets in pairs.items():
        low = max(state.x[source], state.x[target])
        high = min(state.x[source] + state.width[source], state.x[target] + state.width[target])
        step = (high - low) / (len(nets) + 1)
        if step < 12:
            continue
        for i, routes in enumerate(nets.values()):
            for route in routes:
                route.straight = 8 * round((low + step * (i + 1) - 2) / 8) + 2


def _colour_channels(state: _State, least: Callable[[int], float]) -> list[float]:
    """Tracks for the horizontal parts; returns the height of each channel."""
    spans: dict[int, dict[str, Span]] = defaultdict(dict)
    for wire, route in zip(state.wires, state.routes, strict=True):
        if route.straight is not None or not route.channels:
            continue
        ends = _ends(state, wire, route)
        if route.gutter is None:
            _hull(spans[route.channels[0]], wire.net, *ends)
        else:
            across = _gutter_line(state, route.gutter, wire.net)
            _hull(spans[route.channels[0]], wire.net, ends[0], across)
            _hull(spans[route.channels[1]], wire.net, ends[1], across)
    used = {route.channels[0] for route in state.routes if route.straight is not None}
    m = state.metrics
    heights = []
    for channel in range(state.rows + 1):
        found = _left_edge(spans[channel], m.track)
        state.tracks.update({(channel, net): track for net, track in found.items()})
        count = max(found.values(), default=-1) + 1
        outer = channel in (0, state.rows)
        plain = m.channel if (channel in used or count) else (0 if outer else m.idle)
        heights.append(max(plain, m.track * (count + 1) if count else 0, least(channel)))
    return heights


def _ends(state: _State, wire: Wire, route: _Route) -> Span:
    return (
        state.ports[wire.source, route.exit, wire.net, True],
        state.ports[wire.target, route.entry, wire.net, False],
    )


def _gutter_line(state: _State, gutter: int, net: str) -> float:
    return state.gutter_x[gutter] + state.metrics.track * (state.gutters[gutter, net] + 1)


# Coordinates -------------------------------------------------------------------------------------------------------------


def _finish(state: _State, columns: list[Span], channels: list[float]) -> Picture:
    m = state.metrics
    tall = [0.0] * state.rows
    for box in state.boxes.values():
        tall[box.row] = max(tall[box.row], box.height)
    channel_y = [m.margin]
    rows: list[Span] = []
    for row in range(state.rows):
        y = channel_y[row] + channels[row]
        rows.append((y, tall[row]))
        channel_y.append(y + tall[row])
    placed = {
        name: Placed(state.x[name], rows[box.row][0], state.width[name], box.height)
        for name, box in state.boxes.items()
    }
    sides = _side_ports(state, placed)
    lines = tuple(
        _polyline(state, placed, channel_y, sides, wire, route)
        for wire, route in zip(state.wires, state.routes, strict=True)
    )
    width = state.gutter_x[-1] + m.margin
    height = channel_y[-1] + channels[-1] + m.margin
    return Picture(width, height, placed, lines, tuple(columns), tuple(rows))


def _side_ports(state: _State, placed: dict[str, Placed]) -> dict[tuple[str, str, str], float]:
    """The y of the lines that go straight across, spread over the height that both boxes have."""
    nets: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    for wire, route in zip(state.wires, state.routes, strict=True):
        if not route.channels:
            first, second = sorted((wire.source, wire.target))
            nets[first, second][wire.net] = None
    found: dict[tuple[str, str, str], float] = {}
    for (a, b), names in nets.items():
        shared = min(placed[a].height, placed[b].height)
        for i, net in enumerate(names):
            y = placed[a].y + shared * (i + 1) / (len(names) + 1)
            found[a, b, net] = found[b, a, net] = y
    return found


def _polyline(
    state: _State,
    placed: dict[str, Placed],
    channel_y: list[float],
    sides: dict[tuple[str, str, str], float],
    wire: Wire,
    route: _Route,
) -> tuple[Point, ...]:
    a, b = placed[wire.source], placed[wire.target]
    if not route.channels:
        y = sides[wire.source, wire.target, wire.net]
        right = route.exit == "right"
        return ((a.x + a.width if right else a.x, y), (b.x if right else b.x + b.width, y))
    start = a.y + a.height if route.exit == "bottom" else a.y
    end = b.y + b.height if route.entry == "bottom" else b.y
    if route.straight is not None:
        return ((route.straight, start), (route.straight, end))
    x0, x1 = _ends(state, wire, route)
    first, last = route.channels[0], route.channels[-1]
    y0, y1 = (channel_y[c] + state.metrics.track * (state.tracks[c, wire.net] + 1) for c in (first, last))
    if route.gutter is None:
        return ((x0, start), (x0, y0), (x1, y0), (x1, end))
    x = _gutter_line(state, route.gutter, wire.net)
    return ((x0, start), (x0, y0), (x, y0), (x, y1), (x1, y1), (x1, end))
