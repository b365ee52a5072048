"""What a pass changed, as one picture: both graphs share the places of their nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from meganeura.notebook.layout import Box, Metrics, Placed, Wire, arrange, text_width

Json = dict[str, Any]
MOST_ABREAST = 2
METRICS = Metrics(gap=14, track=9, channel=24, gutter=24, margin=12, idle=14)


@dataclass(frozen=True)
class DiffNode:
    """A node of either graph; `state` is same, added, removed or changed.

    `before` and `after` are its operands in either graph, as indices into the same list.
    """

    label: str
    shape: str
    state: str
    before: tuple[int, ...]
    after: tuple[int, ...]
    source: Json | None


def diff_picture(nodes: Sequence[DiffNode], shown: str) -> Json:
    """Nodes of both graphs -> the drawing; `shown` says which part of the graph it is.

    The nodes come operands first; an operand that comes later (where the graphs disagree) is drawn,
    but moves nothing.
    """
    rank: list[int] = []
    room: Counter[int] = Counter()
    for i, node in enumerate(nodes):
        earlier = [rank[j] for j in (*node.before, *node.after) if j < i]
        row = 1 + max(earlier, default=-1)
        while room[row] == MOST_ABREAST:
            row += 1
        room[row] += 1
        rank.append(row)
    widest = max((text_width(f"{n.label}   {n.shape}", 13) + 24 for n in nodes), default=0)
    width = max(106.0, min(widest, 220.0))
    boxes = [Box(str(i), width, 28, 0, rank[i]) for i in range(len(nodes))]
    pairs = [
        (a, b)
        for b, node in enumerate(nodes)
        for a in dict.fromkeys((*node.before, *node.after))
        if a != b
    ]
    picture = arrange(boxes, [Wire(str(a), str(b), str(a)) for a, b in pairs], METRICS)
    wires = [
        {
            "from": a,
            "to": b,
            "points": [round(v, 1) for p in points for v in p],
            "before": a in nodes[b].before and "added" not in (nodes[a].state, nodes[b].state),
            "after": a in nodes[b].after and "removed" not in (nodes[a].state, nodes[b].state),
        }
        for (a, b), points in zip(pairs, picture.wires, strict=True)
    ]
    return {
        "width": round(picture.width, 1),
        "height": round(picture.height, 1),
        "nodes": [_node_json(n, picture.boxes[str(i)]) for i, n in enumerate(nodes)],
        "wires": wires,
        "shown": shown,
    }


def _node_json(node: DiffNode, placed: Placed) -> Json:
    return {
        "label": node.label,
        "shape": node.shape,
        "state": node.state,
        "before": node.state != "added",
        "after": node.state != "removed",
        "x": round(placed.x, 1),
        "y": round(placed.y, 1),
        "w": round(placed.width, 1),
        "h": round(placed.height, 1),
        "source": node.source,
    }
