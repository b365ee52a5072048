"""Where boxes and lines go: a layered, orthogonal layout, the same for the same input.

Boxes stand in rows and columns. Lines run only in the channels between rows and in the gutters
between columns, so no line crosses a box, and every channel has a track for each net that needs it,
so no two nets lie on each other. This is Sugiyama's method (layers, then barycentre order, then
coordinates) with channel routing (`routing.py`) for the lines.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from meganeura.notebook.geometry import (
    Box,
    Metrics,
    Picture,
    Placed,
    Point,
    Route,
    Span,
    State,
    Wire,
    text_width,
)
from meganeura.notebook.routing import (
    colour_channels,
    colour_gutters,
    gutter_line,
    place_ports,
    plan_route,
    widen,
    wire_ends,
)

__all__ = ["Box", "Metrics", "Picture", "Placed", "Point", "Wire", "arrange", "text_width"]


def arrange(
    boxes: Iterable[Box],
    wires: Sequence[Wire],
    metrics: Metrics | None = None,
    least_channels: Callable[[int], float] | None = None,
) -> Picture:
    """Boxes and wires -> their coordinates.

    `least_channels(i)` may ask for a least height in px of the channel above row i, for a heading.
    """
    state = State({b.id: b for b in boxes}, wires, metrics or Metrics())
    state.order = _ordered(state)
    state.routes = [plan_route(state, w) for w in wires]
    widen(state)
    colour_gutters(state)
    columns = _place_columns(state)
    place_ports(state)
    heights = colour_channels(state, least_channels or (lambda _: 0.0))
    return _finish(state, columns, heights)


# Order within a row


def _ordered(state: State) -> dict[tuple[int, int], list[str]]:
    """The boxes of each cell, sorted by the mean position of their neighbours, in four sweeps from
    the given order.
    """
    cells: dict[tuple[int, int], list[str]] = defaultdict(list)
    for box in state.boxes.values():
        cells[box.row, box.column].append(box.id)
    near: dict[str, list[str]] = defaultdict(list)
    for wire in state.wires:
        near[wire.source].append(wire.target)
        near[wire.target].append(wire.source)
    fixed = {(b.row, b.column) for b in state.boxes.values() if b.fixed}
    where = {
        name: (state.boxes[name].column, i) for ids in cells.values() for i, name in enumerate(ids)
    }
    for sweep in range(4):
        for key in sorted(cells, reverse=sweep % 2 == 1):
            ids = cells[key]
            if len(ids) > 1 and key not in fixed:
                ids.sort(key=lambda n: (_barycentre(n, near, where, state), where[n]))
                where.update((name, (key[1], i)) for i, name in enumerate(ids))
    return dict(cells)


def _barycentre(
    name: str, near: dict[str, list[str]], where: dict[str, tuple[int, int]], state: State
) -> float:
    row = state.boxes[name].row
    spots = [where[n][0] + where[n][1] / 64 for n in near[name] if state.boxes[n].row != row]
    column, index = where[name]
    return sum(spots) / len(spots) if spots else column + index / 64


# Columns


def _place_columns(state: State) -> list[Span]:
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
    _align(state, columns)
    state.gutter_x.append(x)
    last = m.track * (tracks[state.columns] + 1) if tracks[state.columns] else 0
    state.gutter_x.append(x + last)
    return columns


def _align(state: State, columns: list[Span]) -> None:
    """Moves the boxes of free cells under (or over) the middle of their neighbours, as far as the
    column allows.
    """
    near: dict[str, list[str]] = defaultdict(list)
    for wire in state.wires:
        near[wire.source].append(wire.target)
        near[wire.target].append(wire.source)
    for (_, column), ids in sorted(state.order.items()):
        if any(state.boxes[name].fixed for name in ids):
            continue
        left, width = columns[column]
        end = left
        for name in ids:
            state.x[name] = max(end, _wanted_x(state, name, near[name], left))
            end = state.x[name] + state.width[name] + state.metrics.gap
        edge = left + width
        for name in reversed(ids):
            state.x[name] = min(state.x[name], edge - state.width[name])
            edge = state.x[name] - state.metrics.gap


def _wanted_x(state: State, name: str, near: list[str], default: float) -> float:
    box = state.boxes[name]
    middles = [
        state.x[n] + state.width[n] / 2
        for n in near
        if state.boxes[n].column == box.column
        and (state.boxes[n].row < box.row or state.boxes[n].fixed)
    ]
    return sum(middles) / len(middles) - state.width[name] / 2 if middles else default


# Coordinates


def _finish(state: State, columns: list[Span], channels: list[float]) -> Picture:
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


def _side_ports(state: State, placed: dict[str, Placed]) -> dict[tuple[str, str, str], float]:
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
    state: State,
    placed: dict[str, Placed],
    channel_y: list[float],
    sides: dict[tuple[str, str, str], float],
    wire: Wire,
    route: Route,
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
    x0, x1 = wire_ends(state, wire, route)
    first, last = route.channels[0], route.channels[-1]
    y0, y1 = (
        channel_y[c] + state.metrics.track * (state.tracks[c, wire.net] + 1) for c in (first, last)
    )
    if route.gutter is None:
        return ((x0, start), (x0, y0), (x1, y0), (x1, end))
    x = gutter_line(state, route.gutter, wire.net)
    return ((x0, start), (x0, y0), (x, y0), (x, y1), (x1, y1), (x1, end))
