"""The layout keeps its promises on any graph: nothing overlaps, no line crosses a box."""

from __future__ import annotations

import time
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from meganeura.notebook.layout import Box, Picture, Placed, Point, Wire, arrange, text_width

Segment = tuple[Point, Point]


@st.composite
def drawings(draw: st.DrawFn) -> tuple[list[Box], list[Wire]]:
    count = draw(st.integers(1, 14))
    boxes = [
        Box(
            f"b{i}",
            draw(st.integers(24, 240)),
            draw(st.integers(16, 90)),
            draw(st.integers(0, 3)),
            draw(st.integers(0, 4)),
        )
        for i in range(count)
    ]
    pairs = draw(
        st.lists(st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)), max_size=30)
    )
    wires = [
        Wire(f"b{i}", f"b{j}", f"b{i}:{(i + j) % 2}") for i, j in dict.fromkeys(pairs) if i != j
    ]
    return boxes, wires


def segments(picture: Picture, wires: list[Wire]) -> list[tuple[str, Segment]]:
    found = []
    for wire, points in zip(wires, picture.wires, strict=True):
        found += [(wire.net, (a, b)) for a, b in pairwise(points)]
    return found


def overlap(a: Placed, b: Placed) -> bool:
    across = a.x < b.x + b.width and b.x < a.x + a.width
    return across and a.y < b.y + b.height and b.y < a.y + a.height


def crosses(segment: Segment, box: Placed) -> bool:
    """True when the segment passes through the inside of the box (its border does not count)."""
    (x0, y0), (x1, y1) = segment
    left, right, top, bottom = min(x0, x1), max(x0, x1), min(y0, y1), max(y0, y1)
    e = 1e-6
    inside_x = left < box.x + box.width - e and right > box.x + e
    return inside_x and top < box.y + box.height - e and bottom > box.y + e


def lie_on_each_other(a: Segment, b: Segment) -> bool:
    for i, j in ((0, 1), (1, 0)):
        if a[0][i] == a[1][i] == b[0][i] == b[1][i]:
            low = max(min(a[0][j], a[1][j]), min(b[0][j], b[1][j]))
            high = min(max(a[0][j], a[1][j]), max(b[0][j], b[1][j]))
            if high - low > 1e-6:
                return True
    return False


@given(drawings())
@settings(max_examples=150, deadline=None)
def test_boxes_do_not_overlap(drawing: tuple[list[Box], list[Wire]]) -> None:
    boxes, wires = drawing
    placed = list(arrange(boxes, wires).boxes.values())
    assert not [(a, b) for i, a in enumerate(placed) for b in placed[:i] if overlap(a, b)]


@given(drawings())
@settings(max_examples=150, deadline=None)
def test_lines_are_orthogonal_and_cross_no_box(drawing: tuple[list[Box], list[Wire]]) -> None:
    boxes, wires = drawing
    picture = arrange(boxes, wires)
    for _, (a, b) in segments(picture, wires):
        assert a[0] == b[0] or a[1] == b[1]
        assert not [name for name, box in picture.boxes.items() if crosses((a, b), box)]


@given(drawings())
@settings(max_examples=150, deadline=None)
def test_two_nets_never_share_a_piece_of_line(drawing: tuple[list[Box], list[Wire]]) -> None:
    boxes, wires = drawing
    found = segments(arrange(boxes, wires), wires)
    assert not [
        (m, n, a, b)
        for i, (m, a) in enumerate(found)
        for n, b in found[:i]
        if m != n and lie_on_each_other(a, b)
    ]


@given(drawings())
@settings(max_examples=100, deadline=None)
def test_everything_is_inside_and_lines_touch_their_boxes(
    drawing: tuple[list[Box], list[Wire]],
) -> None:
    boxes, wires = drawing
    picture = arrange(boxes, wires)
    for box in picture.boxes.values():
        assert 0 <= box.x and box.x + box.width <= picture.width
        assert 0 <= box.y and box.y + box.height <= picture.height
    for wire, points in zip(wires, picture.wires, strict=True):
        for name, (x, y) in ((wire.source, points[0]), (wire.target, points[-1])):
            box = picture.boxes[name]
            assert box.x <= x <= box.x + box.width and box.y <= y <= box.y + box.height
        assert all(0 <= x <= picture.width and 0 <= y <= picture.height for x, y in points)


@given(drawings())
@settings(max_examples=50, deadline=None)
def test_the_same_input_gives_the_same_picture(drawing: tuple[list[Box], list[Wire]]) -> None:
    assert arrange(*drawing) == arrange(*drawing)


def test_rows_and_columns_are_kept() -> None:
    boxes = [Box("a", 50, 20, 0, 0), Box("b", 50, 20, 1, 0), Box("c", 50, 20, 0, 1)]
    picture = arrange(boxes, [Wire("a", "b", "a"), Wire("a", "c", "a")])
    a, b, c = (picture.boxes[n] for n in "abc")
    assert a.y == b.y and a.x == c.x and c.y > a.y and b.x > a.x
    assert picture.wires[0] == ((66.0, 26.0), (94.0, 26.0))
    assert picture.wires[1][0][0] == picture.wires[1][1][0]


def test_nothing_gives_an_empty_picture() -> None:
    picture = arrange([], [])
    assert (picture.boxes, picture.wires) == ({}, ())


def test_two_thousand_boxes_take_well_under_a_second() -> None:
    boxes = [Box(f"b{i}", 60, 24, i // 250, (i // 5) % 50) for i in range(2000)]
    wires = [
        Wire(f"b{i}", f"b{j}", f"b{i}") for i in range(2000) for j in (i + 5, i + 255) if j < 2000
    ]
    start = time.perf_counter()
    arrange(boxes, wires)
    assert time.perf_counter() - start < 1.0


def test_text_width_counts_wide_letters_double() -> None:
    assert text_width("ab") < text_width("梯度")
