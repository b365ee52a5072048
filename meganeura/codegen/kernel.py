"""A kernel: WGSL text with what the runtime needs to launch it and what the views need to explain
it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from meganeura.fuse.region import Region
from meganeura.ir.graph import Node
from meganeura.tile.tile import Tile


@dataclass(frozen=True)
class Binding:
    """A buffer of a kernel: the stored node or leaf that lies in it, and what the kernel does with
    it.
    """

    node: Node
    access: Literal["read", "read_write"]
    name: str


@dataclass(frozen=True)
class Kernel:
    """WGSL for one region, or for several (`arms`) in one launch.

    `line_nodes` maps line numbers of `wgsl` (from 1) to the nodes that the line computes; `flops`
    and bytes are by the model: each
    input read once, each root written once.
    """

    name: str
    arms: tuple[Region, ...]
    tile: Tile
    wgsl: str
    line_nodes: Mapping[int, tuple[Node, ...]]
    bindings: tuple[Binding, ...]
    grid: tuple[int, int, int]

    @property
    def region(self) -> Region:
        """The first (mostly the only) region."""
        return self.arms[0]

    @property
    def kind(self) -> str:
        """map, reduce or matmul."""
        return self.region.kind

    @property
    def label(self) -> str:
        """What it does, in operations."""
        return (
            self.region.label if len(self.arms) == 1 else f"{len(self.arms)} × {self.region.label}"
        )

    @property
    def phase(self) -> str:
        """forward, backward or update."""
        return self.region.phase

    @property
    def workgroup(self) -> int:
        """Invocations of a workgroup."""
        return self.tile.threads

    @property
    def workgroup_bytes(self) -> int:
        """Workgroup memory in bytes."""
        return self.tile.workgroup_bytes

    @cached_property
    def key(self) -> str:
        """A hash of the text: kernels with one key share a pipeline."""
        return hashlib.sha256(self.wgsl.encode()).hexdigest()[:24]

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes that it computes."""
        return tuple(dict.fromkeys(n for r in self.arms for n in r.nodes))

    @cached_property
    def flops(self) -> int:
        """Floating-point operations by the model."""
        return sum(node_flops(n) for n in self.nodes)

    @cached_property
    def bytes_read(self) -> int:
        """Bytes read by the model: every input once."""
        return sum(n.nbytes for n in dict.fromkeys(n for r in self.arms for n in r.inputs))

    @cached_property
    def bytes_written(self) -> int:
        """Bytes written by the model: every root once."""
        return sum(n.nbytes for r in self.arms for n in r.roots)


def node_flops(node: Node) -> int:
    """Floating-point operations of one node."""
    if node.op.kind == "contract":
        return 2 * node.size * node.inputs[0].shape[-1]
    if node.op.kind == "reduce":
        return node.inputs[0].size
    return node.op.flops * node.size if node.op.kind == "map" else 0
