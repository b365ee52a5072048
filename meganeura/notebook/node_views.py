"""Nodes, kernels and cells of a plan as plain JSON."""

from __future__ import annotations

import linecache
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from meganeura.codegen.kernel import Kernel, node_flops
from meganeura.ir.graph import Node
from meganeura.ir.source import Source
from meganeura.notebook.labels import Labels, base, number, short
from meganeura.plan import Plan
from meganeura.profile.roofline import Roof, roof

Json = dict[str, Any]


@dataclass
class Index:
    """Numbers for nodes, names for kernels, labels for both."""

    plan: Plan
    nodes: list[Node] = field(default_factory=list)
    number: dict[Node, int] = field(default_factory=dict)
    owner: dict[Node, str] = field(default_factory=dict)
    scope: dict[str, str] = field(default_factory=dict)
    labels: Labels = field(default_factory=lambda: Labels(()))
    leaf: dict[Node, Node] = field(default_factory=dict)  # the leaf that a new value goes into

    @classmethod
    def of(cls, plan: Plan) -> Index:
        """Numbers every node of the lowered graph and of the kernels, operands first."""
        found = dict.fromkeys(plan.graph.nodes)
        for kernel in plan.kernels:
            found.update(
                dict.fromkeys((*kernel.nodes, *(n for r in kernel.arms for n in r.inputs)))
            )
        index = cls(plan, list(found))
        index.number = {node: i for i, node in enumerate(index.nodes)}
        index.labels = Labels(index.nodes)
        for kernel in plan.kernels:
            index.scope[kernel.name] = _kernel_scope(kernel)
            for node in kernel.nodes:
                index.owner.setdefault(node, kernel.name)
        for kernel in plan.kernels:
            index.leaf.update((v, leaf) for r in kernel.arms for leaf, v in r.updates)
            index.owner.update((root, kernel.name) for r in kernel.arms for root in r.roots)
        return index


def node_scope(node: Node) -> str:
    """The part of the model: the outermost scope, else the outermost composite."""
    origin = node.origin
    return origin.scope[0] if origin.scope else (origin.composite[0] if origin.composite else "")


def _kernel_scope(kernel: Kernel) -> str:
    """The scope of its main node; of an update, the scope of what it overwrites."""
    region = kernel.region
    leaves = [leaf for leaf, _ in region.updates if leaf.op.name == "parameter"]
    if leaves:
        leaf = leaves[0]
        return node_scope(leaf) or str(leaf.name).split(".")[0]
    for node in (*region.anchors, *region.roots, *region.nodes):
        if node_scope(node):
            return node_scope(node)
    return ""


def source_view(source: Source) -> Json:
    """A place in the user's code."""
    return {
        "cell": source.cell,
        "line": source.line,
        "column": source.column,
        "end_line": source.end_line,
        "end_column": source.end_column,
        "text": source.text,
    }


def cells(index: Index) -> dict[str, str]:
    """The text of every cell that made a node."""
    found: dict[str, str] = {}
    for node in index.nodes:
        source = node.origin.source
        if source is not None and source.cell not in found:
            lines = linecache.getlines(source.file)
            if lines:
                found[source.cell] = "".join(lines).rstrip("\n")
    return found


def node_views(index: Index) -> tuple[list[Json], list[Json]]:
    """All nodes, the id of each its place in the list; and the places in the user's code."""
    kinds = {k.name: kernel_kind(k) for k in index.plan.kernels}
    found = dict.fromkeys(n.origin.source for n in index.nodes if n.origin.source is not None)
    place = {source: i for i, source in enumerate(found)}
    nodes = [_node_view(index, node, kinds, place) for node in index.nodes]
    return nodes, [source_view(source) for source in found]


def _node_view(index: Index, node: Node, kinds: dict[str, str], place: dict[Source, int]) -> Json:
    origin, owner = node.origin, index.owner.get(node)
    leaf = index.leaf.get(node)
    named = node.name or (str(leaf.name) if leaf is not None else None)
    return {
        "id": index.number[node],
        "op": node.op.name,
        "label": short(str(leaf.name)) if leaf is not None else index.labels.node(node),
        "name": named if named is not None else _variable(index, node),
        "shape": list(node.shape),
        "dtype": node.dtype.name,
        "bytes": node.nbytes,
        "flops": node_flops(node),
        "scope": ".".join(origin.scope),
        "column": index.scope[owner] if owner is not None else node_scope(node),
        "composite": ".".join(origin.composite),
        "phase": origin.phase,
        "leaf": node.op.name if node.op.kind == "leaf" else None,
        "class": node.op.kind,
        "kind": kinds.get(owner or "", "other"),
        "hidden": node.op.kind == "view" or number(node) is not None,
        "inputs": [index.number[i] for i in node.inputs],
        "kernel": owner,
        "source": place[origin.source] if origin.source is not None else None,
    }


def _variable(index: Index, node: Node) -> str | None:
    label = index.labels.tensor(node)
    return label if node.op.kind != "view" and label != index.labels.node(node) else None


def kernel_kind(kernel: Kernel) -> str:
    """The hue of a kernel: gathers and scatters are told apart from other maps."""
    roots = kernel.region.roots
    if kernel.kind == "map" and roots and roots[0].op.kind == "gather":
        return "gather"
    return kernel.kind


def kernel_views(index: Index, medians: dict[str, Json]) -> tuple[list[Json], list[str]]:
    """All kernels in launch order, and the WGSL texts that they share."""
    modules: dict[str, int] = {}
    target = index.plan.target
    ceiling = roof(target.peaks)
    found = []
    for kernel in index.plan.kernels:
        module = modules.setdefault(kernel.wgsl, len(modules))
        found.append(_kernel_view(index, kernel, module, medians.get(kernel.name, {}), ceiling))
    return found, list(modules)


def _kernel_view(index: Index, kernel: Kernel, module: int, times: Json, ceiling: Roof) -> Json:
    moved = kernel.bytes_read + kernel.bytes_written
    inputs = list(dict.fromkeys(n for r in kernel.arms for n in r.inputs))
    roots = [root for r in kernel.arms for root in r.roots]
    return {
        "id": kernel.name,
        "label": _kernel_label(index, kernel),
        "kind": kernel_kind(kernel),
        "phase": kernel.phase,
        "scope": index.scope[kernel.name],
        "nodes": sorted(index.number[n] for n in kernel.nodes),
        "inputs": [_tensor(index, n, n) for n in inputs],
        "outputs": [_tensor(index, n, index.leaf.get(n, n)) for n in roots],
        "tile": kernel.tile.describe(),
        "registers": kernel.tile.registers(),
        "grid": list(kernel.grid),
        "workgroup": [kernel.workgroup, 1, 1],
        "workgroup_bytes": kernel.workgroup_bytes,
        "workgroup_limit": index.plan.target.workgroup_memory,
        "reads": kernel.bytes_read,
        "writes": kernel.bytes_written,
        "unfused": max(moved, unfused_bytes(kernel)),
        "flops": kernel.flops,
        "wgsl": module,
        "lines": {
            str(line): [index.number[n] for n in nodes if n in index.number]
            for line, nodes in sorted(kernel.line_nodes.items())
        },
        "predicted_us": _rounded(ceiling.least_us(kernel.flops, moved)),
        "median_us": times.get("median"),
        "p5_us": times.get("p5"),
        "p95_us": times.get("p95"),
        "limited_by": ceiling.bound(kernel.flops, moved),
        "in_place": [
            str(leaf.name)
            for r in kernel.arms
            for leaf, _ in r.updates
            if leaf.op.name == "parameter"
        ],
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")


def _tensor(index: Index, node: Node, called: Node) -> Json:
    return {"node": index.number[node], "label": index.labels.tensor(called), "bytes": node.nbytes}


def _kernel_label(index: Index, kernel: Kernel) -> str:
    """The nodes' own labels in order, as `dot, + b, relu`, where they are few.

    Of an update: its products and sums, and what it overwrites.
    """
    written = [
        str(leaf.name) for r in kernel.arms for leaf, _ in r.updates if leaf.op.name == "parameter"
    ]
    if written:
        main = [index.labels.node(n) for n in kernel.region.anchors[:2]]
        more = f" and {len(written) - 2} more" if len(written) > 2 else ""
        return ", ".join([*main, f"update of {' and '.join(written[:2])}{more}"])
    shown = [n for n in kernel.nodes if n.op.kind != "view" and number(n) is None]
    if len(kernel.arms) > 1 or not 0 < len(shown) <= 4:
        return kernel.label
    return ", ".join(index.labels.node(n) for n in shown)


def unfused_bytes(kernel: Kernel) -> int:
    """What the same nodes would move, each in a launch of its own: every operand, every result."""
    return sum(
        n.nbytes + sum(_read_bytes(i) for i in dict.fromkeys(n.inputs))
        for n in kernel.nodes
        if n.op.kind != "view" and n.op.kind != "leaf"
    )


def _read_bytes(node: Node) -> int:
    if number(node) is not None:
        return 0
    return min(node.nbytes, base(node).nbytes)


def leaf_bytes(leaves: Iterable[Node]) -> int:
    """Bytes of leaves that live on the device for the whole run."""
    return sum(n.nbytes for n in leaves)
