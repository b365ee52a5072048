"""What a pass changed, as one picture: both graphs share the places, so that the same node stands where it stood."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from meganeura.notebook.layout import Box, Metrics, Wire, arrange, text_width

Json = dict[str, Any]
METRICS = Metrics(gap=14, track=9, channel=24, gutter=24, margin=12, idle=14)


@dataclass(frozen=True)
class DiffNode:
    """A node of either graph: `inputs` are indices into the same list; `state` is same, added, removed or changed."""

    label: str
    shape: str
    state: str
    inputs: tuple[int, ...]
    source: Json | None


def diff_picture(nodes: Sequence[DiffNode], shown: str) -> Json:
    """Nodes of both graphs, operands first -> the drawing; `shown` says which part of the graph it is."""
    rank: list[int] = []
    for node in nodes:
        rank.append(1 + max((rank[i] for i in node.inputs), default=-1))
    width = max((text_width(f"{n.label}   {n.shape}", 13) + 24 for n in nodes), default=0)
    boxes = [Box(str(i), max(106.0, min(width, 220.0)), 28, 0, rank[i]) for i in range(len(nodes))]
    pairs = [(a, b) for b, node in enumerate(nodes) for a in dict.fromkeys(node.inputs)]
    picture = arrange(boxes, [Wire(str(a), str(b), str(a)) for a, b in pairs], METRICS)
    drawn = []
    for i, node in enumerate(nodes):
        placed = picture.boxes[str(i)]
        drawn.append(
            {
                "label": node.label,
                "shape": node.shape,
                "state": node.state,
                "before": node.state != "added",
                "after": node.state != "removed",
                "x": placed.x,
                "y": placed.y,
                "w": placed.width,
                "h": placed.height,
                "source": node.source,
            }
        )
    wires = []
    for (a, b), points in zip(pairs, picture.wires, strict=True):
        states = {nodes[a].state, nodes[b].state}
        flat = [v for p in points for v in p]
        wires.append(
            {
                "from": a,
                "to": b,
                "points": flat,
                "before": "added" not in states,
                "after": "removed" not in states,
            }
        )
    return {
        "width": picture.width,
        "height": picture.height,
        "nodes": drawn,
        "wires": wires,
        "shown": shown,
    }
