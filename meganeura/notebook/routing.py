"""Where lines run: in channels between rows and gutters between columns, each net on its track.

The tracks are found by the left-edge algorithm of channel routing: as few as the intervals allow.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Callable

from meganeura.notebook.geometry import Box, Route, Span, State, Wire


def plan_route(state: State, wire: Wire) -> Route:
    """The sides, channels and gutter of a wire, by the rows and columns of its boxes."""
    a, b = state.boxes[wire.source], state.boxes[wire.target]
    if a.row == b.row:
        if _adjacent(state, a, b):
            right = _row_index(state, a) < _row_index(state, b)
            return Route("right", "left") if right else Route("left", "right")
        return Route("bottom", "bottom", (a.row + 1,))
    down = b.row > a.row
    first, last = (a.row + 1, b.row) if down else (a.row, b.row + 1)
    sides = ("bottom", "top") if down else ("top", "bottom")
    if first == last:
        return Route(*sides, (first,))
    gutter = b.column if a.column <= b.column else b.column + 1
    return Route(*sides, (first, last), gutter)


def _row_index(state: State, box: Box) -> tuple[int, int]:
    return box.column, state.order[box.row, box.column].index(box.id)


def _adjacent(state: State, a: Box, b: Box) -> bool:
    """True when nothing stands between two boxes of one row."""
    first, second = sorted((a, b), key=lambda box: _row_index(state, box))
    i, j = _row_index(state, first)[1], _row_index(state, second)[1]
    if first.column == second.column:
        return j == i + 1
    ends = i == len(state.order[first.row, first.column]) - 1 and j == 0
    between = range(first.column + 1, second.column)
    return ends and not any((first.row, c) in state.order for c in between)


def widen(state: State) -> None:
    """Each box is at least as wide as its ports need."""
    need: dict[tuple[str, str], set[tuple[str, bool]]] = defaultdict(set)
    for wire, route in zip(state.wires, state.routes, strict=True):
        need[wire.source, route.exit].add((wire.net, True))
        need[wire.target, route.entry].add((wire.net, False))
    for name, box in state.boxes.items():
        ports = max(len(need[name, "top"]), len(need[name, "bottom"]))
        state.width[name] = max(box.width, 8.0 * (ports + 2))


def _left_edge(spans: dict[str, Span], clearance: float) -> dict[str, int]:
    """Interval colouring: spans of one track do not come nearer than `clearance`; as few tracks as
    possible.
    """
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


def colour_gutters(state: State) -> None:
    """Tracks for the vertical parts that pass other rows."""
    spans: dict[int, dict[str, Span]] = defaultdict(dict)
    for wire, route in zip(state.wires, state.routes, strict=True):
        if route.gutter is not None:
            _hull(spans[route.gutter], wire.net, *map(float, route.channels))
    for gutter, nets in spans.items():
        for net, track in _left_edge(nets, 0).items():
            state.gutters[gutter, net] = track


# Ports and channels


def place_ports(state: State) -> None:
    """The x at which each net leaves and enters each box, in the order of where it goes.

    Straight lines end in 2, lower sides in 0 and upper sides in 4 (modulo 8), so that the stubs of
    two nets never meet.
    """
    _straighten(state)
    wanted: dict[tuple[str, str], dict[tuple[str, bool], float]] = defaultdict(dict)
    for wire, route in zip(state.wires, state.routes, strict=True):
        if route.straight is None and route.channels:
            wanted[wire.source, route.exit][wire.net, True] = _toward(state, wire.target, route)
            wanted[wire.target, route.entry][wire.net, False] = _toward(state, wire.source, route)
    straight = _straight_ends(state)
    for (name, side), ports in wanted.items():
        order = sorted(ports, key=lambda port: (ports[port], port))
        low, width = state.x[name], state.width[name]
        first = 8 * math.ceil((low - (offset := 4 if side == "top" else 0) + 4) / 8) + offset
        free = [first + 8 * i for i in range(int((low + width - 4 - first) // 8) + 1)]
        taken = straight[name, side]
        for i, (net, leaving) in enumerate(order):
            goal = low + width * (i + 1) / (len(order) + 1)
            x = min(free, key=lambda slot: abs(slot - goal) + 64 * _crowded(slot, taken))
            free.remove(x)
            state.ports[name, side, net, leaving] = x


def _crowded(x: float, others: list[float]) -> bool:
    return any(abs(x - other) < 8 for other in others)


def _straight_ends(state: State) -> dict[tuple[str, str], list[float]]:
    ends: dict[tuple[str, str], list[float]] = defaultdict(list)
    for wire, route in zip(state.wires, state.routes, strict=True):
        if route.straight is not None:
            ends[wire.source, route.exit].append(route.straight)
            ends[wire.target, route.entry].append(route.straight)
    return ends


def _toward(state: State, other: str, route: Route) -> float:
    if route.gutter is not None:
        return state.gutter_x[route.gutter]
    return state.x[other] + state.width[other] / 2


def _straighten(state: State) -> None:
    """Wires between boxes above each other go straight, where there is room and nothing between."""
    pairs: dict[tuple[str, str], dict[str, list[Route]]] = defaultdict(dict)
    for wire, route in zip(state.wires, state.routes, strict=True):
        if (route.exit, route.entry) in (("bottom", "top"), ("top", "bottom")):
            first, second = sorted((wire.source, wire.target))
            pairs[first, second].setdefault(wire.net, []).append(route)
    rows: dict[int, list[Span]] = defaultdict(list)
    for name, box in state.boxes.items():
        rows[box.row].append((state.x[name] - 4, state.x[name] + state.width[name] + 4))
    for spans in rows.values():
        spans.sort()
    for (first, second), nets in pairs.items():
        low, high = _free_span(state, rows, first, second)
        step = (high - low) / (len(nets) + 1)
        if step >= 12:
            for i, routes in enumerate(nets.values()):
                for route in routes:
                    route.straight = 8 * round((low + step * (i + 1) - 2) / 8) + 2


def _free_span(state: State, rows: dict[int, list[Span]], first: str, second: str) -> Span:
    """The widest span that both boxes cover and no box between their rows."""
    low = max(state.x[first], state.x[second])
    high = min(state.x[first] + state.width[first], state.x[second] + state.width[second])
    if low >= high:
        return low, low
    top, bottom = sorted((state.boxes[first].row, state.boxes[second].row))
    if bottom == top + 1:
        return low, high
    between = sorted(
        s for row in range(top + 1, bottom) for s in rows[row] if s[0] < high and s[1] > low
    )
    best, at = (low, low), low
    for left, right in (*between, (high, high)):
        if min(left, high) - at > best[1] - best[0]:
            best = (at, min(left, high))
        at = max(at, right)
    return best


def colour_channels(state: State, least: Callable[[int], float]) -> list[float]:
    """Tracks for the horizontal parts; returns the height of each channel."""
    spans: dict[int, dict[str, Span]] = defaultdict(dict)
    for wire, route in zip(state.wires, state.routes, strict=True):
        if route.straight is not None or not route.channels:
            continue
        ends = wire_ends(state, wire, route)
        if route.gutter is None:
            _hull(spans[route.channels[0]], wire.net, *ends)
        else:
            across = gutter_line(state, route.gutter, wire.net)
            _hull(spans[route.channels[0]], wire.net, ends[0], across)
            _hull(spans[route.channels[1]], wire.net, ends[1], across)
    used = {c for route in state.routes if route.straight is not None for c in route.channels}
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


def wire_ends(state: State, wire: Wire, route: Route) -> Span:
    """The x at which a wire leaves and enters."""
    return (
        state.ports[wire.source, route.exit, wire.net, True],
        state.ports[wire.target, route.entry, wire.net, False],
    )


def gutter_line(state: State, gutter: int, net: str) -> float:
    """The x of a net in a gutter."""
    return state.gutter_x[gutter] + state.metrics.track * (state.gutters[gutter, net] + 1)
