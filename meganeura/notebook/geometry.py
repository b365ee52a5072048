"""What a layout is made of: boxes, wires, distances, and the state that its steps share."""

from __future__ import annotations

from collections.abc import Sequence
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
    """Distances in px: between boxes, between parallel lines, the least channel and gutter, the
    outer margin.
    """

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
    """The finished layout: boxes by id, one polyline a wire in the order given, columns as (x,
    width), rows as (y, height).
    """

    width: float
    height: float
    boxes: dict[str, Placed]
    wires: tuple[tuple[Point, ...], ...]
    columns: tuple[Span, ...]
    rows: tuple[Span, ...]


@dataclass
class Route:
    """How one wire runs: the sides it leaves and enters by, the channels, and the gutter if it
    passes other rows.
    """

    exit: str
    entry: str
    channels: tuple[int, ...] = ()
    gutter: int | None = None
    straight: float | None = None


@dataclass
class State:
    """What the steps of one layout share."""

    boxes: dict[str, Box]
    wires: Sequence[Wire]
    metrics: Metrics
    order: dict[tuple[int, int], list[str]] = field(default_factory=dict)
    routes: list[Route] = field(default_factory=list)
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
    """An upper estimate of a line's width in px in a common sans serif face; wide East Asian
    letters count double.
    """
    units = sum(1.0 if east_asian_width(c) in "WF" else 0.56 for c in text)
    return units * size
