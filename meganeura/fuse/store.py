"""What is written to memory: which floating maps get a kernel of their own, and which registers are
also stored.

A map that no group took is computed where it is read, once for each reader, unless that repeats
more work than a round trip through
memory costs.
"""

from __future__ import annotations

import math
from heapq import heappop, heappush

from meganeura.fuse.grow import CHEAP, Group, Growth
from meganeura.fuse.region import Space3
from meganeura.ir.graph import Graph, Node

HEAVY = frozenset({"exp", "log", "tanh", "erf", "pow", "sin", "cos", "random", "mod"})
ROUND_TRIP = 8.0
"""Bytes that a float32 element costs to write and read again."""
FLOPS_PER_BYTE = 10.0


def weight(node: Node) -> float:
    """Arithmetic of one element of a map, a transcendental counting for ten."""
    return 10.0 if node.op.name in HEAVY else 1.0 if node.op.kind == "map" else 0.0


class Floats:
    """The nodes that no group took: who reads them, how often, and what computing them in place
    costs.
    """

    def __init__(self, graph: Graph, growth: Growth, fuse: bool, wanted: frozenset[Node]) -> None:
        self.graph, self.growth, self.fuse, self.wanted = graph, growth, fuse, wanted
        self.stored: dict[Node, None] = {}
        self._cost: dict[Node, tuple[float, frozenset[Node]]] = {}
        self.factor: dict[Node, dict[object, float]] = {}
        for node in graph.nodes:
            self.cost(node)
        for node in reversed(graph.nodes):
            self._settle(node)

    def _settle(self, node: Node) -> None:
        """Decides on a floating node after all its readers, and passes the readers on to its
        operands.
        """
        home = self.growth.home.get(node)
        if home is not None:
            for operand in node.inputs:
                self._read(operand, home, self._repeats(node, operand))
            return
        if node.op.kind == "leaf":
            return
        readers = self.factor.get(node, {})
        if not readers and node not in self.wanted:
            return
        if self._own_kernel(node, readers):
            self.stored[node] = None
            readers = {node: 1.0}
        for operand in node.inputs:
            for reader, times in readers.items():
                self._read(operand, reader, times * self._repeats(node, operand))

    def _read(self, operand: Node, reader: object, times: float) -> None:
        readers = self.factor.setdefault(operand, {})
        readers[reader] = readers.get(reader, 0.0) + times

    def _repeats(self, node: Node, operand: Node) -> float:
        """How often each element of the operand is computed when the node reads it without a
        buffer.
        """
        if node.op.kind == "contract":
            across = node.shape[-1] if operand is node.inputs[0] else node.shape[-2]
            return math.ceil(across / 64)
        if node.op.kind in ("reduce", "map"):
            return 1.0
        return max(node.size / max(operand.size, 1), 1.0) if operand is node.inputs[0] else 1.0

    def _own_kernel(self, node: Node, readers: dict[object, float]) -> bool:
        if node in self.wanted:
            return True
        if node.op.kind == "view" or self._between(node, readers):
            return False
        if not self.fuse:
            return node.op.name != "iota"
        work, sources = self.cost(node)
        times = sum(readers.values())
        again = (times - 1) * (work / FLOPS_PER_BYTE + 2.0 * max(len(sources) - 1, 0))
        return node.size > 256 and again > ROUND_TRIP

    def _between(self, node: Node, readers: dict[object, float]) -> bool:
        """Whether a group that reads the node also makes what it needs: a kernel for it could run
        neither before that group nor after.
        """
        needed = self.growth.needs(node)
        return any(isinstance(r, Group) and r.bit & needed for r in readers)

    def cost(self, node: Node) -> tuple[float, frozenset[Node]]:
        """Arithmetic an element and the tensors read, when the node is computed in place."""
        found = self._cost.get(node)
        if found is None:
            if node.op.kind == "leaf" or node in self.growth.home:
                found = (0.0, frozenset((node,)) if node.size > 1 else frozenset())
            else:
                parts = [self.cost(n) for n in node.inputs]
                found = (
                    weight(node) + sum(w for w, _ in parts),
                    frozenset().union(*(s for _, s in parts)),
                )
            self._cost[node] = found
        return found


def map_groups(graph: Graph, growth: Growth, floats: Floats, copies: frozenset[Node]) -> None:
    """A group for each stored floating node; those of one shape with one operand share it."""
    growth.forget()
    for node in graph.nodes:
        growth.needs(node)
        if node not in floats.stored:
            continue
        readers = [r for r in floats.factor.get(node, {}) if isinstance(r, Group)]
        group = _companion(growth, node, readers) if floats.fuse and node not in copies else None
        if group is None:
            group = growth.found("map", Space3(node.shape))
        growth.join(node, group, "tile", group.row)
        growth.reads_all(node, group.row, group)
        for reader in readers:
            if reader is not group:
                growth.also_waits(reader, group.bit)


def _companion(growth: Growth, node: Node, readers: list[Group]) -> Group | None:
    """An earlier map group of the same shape that computes from the same tensors."""
    wide: set[Node] | None = None
    waited = sum(r.bit for r in readers)
    for group in growth.alike("map", Space3(node.shape)):
        if wide is None:
            wide = _wide_sources(growth, node, group)
        related = growth.needs_of(node) & group.bit or wide & group.sources
        if not related or group.waits & waited or not growth.may_wait(node, group):
            continue
        before = set(group.sources)
        fits = growth.reads_all(node, group.row, group)
        if fits and any(n.size == node.size for n in group.sources):
            return group
        group.sources = before
    return None


def _wide_sources(growth: Growth, node: Node, group: Group) -> set[Node]:
    """The tensors as large as the node that it reads, if all came from memory."""
    probe = Group(-1, "map", group.space)
    growth.reads_all(node, probe.row, probe)
    return {n for n in probe.sources if n.size == node.size}


class Stores:
    """Which nodes are written to memory, found by asking what every group reads of the others."""

    def __init__(self, growth: Growth, wanted: frozenset[Node], fuse: bool) -> None:
        self.growth, self.fuse = growth, fuse
        self.stored: dict[Node, None] = dict.fromkeys(n for n in wanted if n in growth.home)
        self._place = {node: i for i, node in enumerate(growth.graph.nodes)}
        self._unsure: list[tuple[int, Node]] = []
        self._found: set[Node] = set()
        self._waiting: dict[Group, None] = dict.fromkeys(growth.groups)
        while self._waiting or self._take_one():
            group = next(iter(self._waiting))
            del self._waiting[group]
            self._ask(group)

    def _take_one(self) -> bool:
        """Stores the first of the cheap maps that still cannot be computed again, if any."""
        while self._unsure:
            _, node = heappop(self._unsure)
            if node not in self.stored and not self._repeat(node):
                self._store(node)
                return True
        return False

    def _store(self, node: Node) -> None:
        """A node that becomes stored is one more root of its group, which is asked again."""
        if node not in self.stored:
            self.stored[node] = None
            self._waiting[self.growth.home[node]] = None

    def _ask(self, group: Group) -> None:
        """Stores whatever the group needs of other groups, starting from what it must compute."""
        seen: set[Node] = set()
        roots = [n for n in group.members if n in self.stored] + group.anchors
        stack = [i for n in roots for i in n.inputs]
        while stack:
            node = stack.pop()
            if node in seen or node.op.kind == "leaf":
                continue
            seen.add(node)
            home = self.growth.home.get(node)
            if home is None or home is group:
                stack.extend(node.inputs)
            elif node not in self.stored:
                self._settle(node, stack)

    def _settle(self, node: Node, stack: list[Node]) -> None:
        """Another group's node: read again from its operands, stored, or put off."""
        if self._repeat(node):
            stack.extend(node.inputs)
        elif self.fuse and node.op.name in CHEAP:
            heappush(self._unsure, (self._place[node], node))
        else:
            self._store(node)

    def _repeat(self, node: Node) -> bool:
        """True when another group computes the node again rather than reads it."""
        if node.op.kind in ("reduce", "contract"):
            return False
        if node.op.kind == "view":
            return True
        return self.fuse and node.op.name in CHEAP and all(self._at_hand(n) for n in node.inputs)

    def _at_hand(self, node: Node) -> bool:
        """A leaf, a stored node, or a view or cheap map made of such that no kernel has to hold."""
        if node.op.kind == "leaf" or node in self.stored or node in self._found:
            return True
        loose = node.op.name in CHEAP and node not in self.growth.home
        if (node.op.kind == "view" or loose) and all(self._at_hand(n) for n in node.inputs):
            self._found.add(node)
            return True
        return False


def computed(
    group: Group, roots: list[Node], stored: dict[Node, None], home: dict[Node, Group]
) -> tuple[list[Node], list[Node]]:
    """The nodes that the group computes for its roots, operands first, and the tensors that it
    reads.
    """
    inside: dict[Node, None] = {}
    inputs: dict[Node, None] = {}

    def visit(node: Node) -> None:
        stack = [(node, False)]
        while stack:
            current, done = stack.pop()
            if done:
                inside.setdefault(current)
                continue
            if current in inside or current in inputs:
                continue
            foreign = home.get(current) is not group
            if current.op.kind == "leaf" or (current in stored and foreign):
                if not is_literal(current):
                    inputs.setdefault(current)
                continue
            stack.append((current, True))
            stack.extend((n, False) for n in reversed(current.inputs))

    for root in roots:
        visit(root)
    return list(inside), list(inputs)


def is_literal(node: Node) -> bool:
    """A constant of one element, which is written into the kernel's text."""
    return node.op.name == "constant" and node.size == 1
