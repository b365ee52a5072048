"""The e-graph: sets of equal terms, kept small by sharing (Nelson and Oppen 1980; deferred
rebuilding as in egg, 2021).

A class is a set of e-nodes that are equal; an e-node is an operation on classes. Adding a term that
is already there finds it; uniting two classes makes equal, by congruence, whatever is built on
them. Everything runs in order of creation, so that the same graph and rules give the same e-graph.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field

from meganeura.ir.dtypes import DType
from meganeura.ir.graph import Attrs, Node, Op, Shape
from meganeura.rewrite.facts import Facts, facts_of

LESSONS = 8
"""How often a class may learn new facts from its operands: ranges in a cycle could shrink for ever.
"""


@dataclass(eq=False, slots=True)
class ENode:
    """An operation on classes. `sample` is a node with these attributes and shapes; `match` says
    which rule made it.
    """

    op: Op
    attrs: Attrs
    children: tuple[int, ...]
    sample: Node
    owner: int
    serial: int
    match: int | None
    original: Node | None = None
    alive: bool = True


@dataclass(eq=False, slots=True)
class EClass:
    """Equal e-nodes of one shape and type, what is known of their value, and who reads them."""

    index: int
    shape: Shape
    dtype: DType
    facts: Facts
    nodes: list[ENode] = field(default_factory=list)
    readers: list[ENode] = field(default_factory=list)
    ops: set[str] = field(default_factory=set)
    origin: Node | None = None
    named: Node | None = None
    lessons: int = 0


class EGraph:
    """Classes under union-find, hash-consed e-nodes, congruence restored by `rebuild`."""

    def __init__(self) -> None:
        self.classes: dict[int, EClass] = {}
        self.by_op: dict[str, list[ENode]] = {}
        self.class_of: dict[Node, int] = {}
        self.touched: set[int] = set()
        self.added = 0
        self._parent: list[int] = []
        self._known: dict[Hashable, ENode] = {}
        self._dirty: list[int] = []

    def find(self, index: int) -> int:
        """The class that an index stands for now."""
        parent = self._parent
        while parent[index] != index:
            parent[index] = parent[parent[index]]
            index = parent[index]
        return index

    def cls(self, index: int) -> EClass:
        """The class of an index."""
        return self.classes[self.find(index)]

    def add(
        self,
        op: Op,
        attrs: Attrs,
        children: tuple[int, ...],
        sample: Node,
        match: int | None = None,
    ) -> int:
        """The class of the term: found, or made."""
        children = self._canonical(op, children)
        key = (op, attrs, children)
        found = self._known.get(key)
        if found is not None:
            return self.find(found.owner)
        index = len(self._parent)
        self._parent.append(index)
        operands = [self.classes[c] for c in children]
        known = [c.facts for c in operands]
        shapes = [c.shape for c in operands]
        facts = facts_of(op, attrs, sample.dtype, shapes, known, _twins(children))
        enode = ENode(op, attrs, children, sample, index, self.added, match)
        self.added += 1
        self.classes[index] = EClass(
            index, sample.shape, sample.dtype, facts, [enode], ops={op.name}
        )
        for child in operands:
            child.readers.append(enode)
        self._known[key] = enode
        self.by_op.setdefault(op.name, []).append(enode)
        self.touched.add(index)
        return index

    def add_graph(self, nodes: Iterable[Node]) -> None:
        """Adds the nodes of a graph, operands first, and remembers the class of each."""
        for node in nodes:
            children = tuple(self.class_of[n] for n in node.inputs)
            index = self.add(node.op, node.attrs, children, node)
            self.class_of[node] = index
            eclass = self.classes[index]
            if eclass.nodes[0].original is None:
                eclass.nodes[0].original = node
            eclass.origin = preferred(eclass.origin, node)
            if eclass.named is None and node.origin.name is not None:
                eclass.named = node

    def union(self, a: int, b: int) -> bool:
        """Says that two classes are equal; False when that was known. Call `rebuild` before
        matching again.
        """
        a, b = sorted((self.find(a), self.find(b)))
        if a == b:
            return False
        kept, gone = self.classes[a], self.classes.pop(b)
        self._parent[b] = a
        kept.nodes.extend(gone.nodes)
        kept.readers.extend(gone.readers)
        kept.ops |= gone.ops
        for enode in gone.nodes:
            enode.owner = a
        kept.facts = kept.facts.meet(gone.facts)
        kept.origin = preferred(kept.origin, gone.origin)
        kept.named = kept.named or gone.named
        self.touched.add(a)
        self._dirty.append(a)
        return True

    def rebuild(self) -> None:
        """Restores congruence: e-nodes that became equal unite their classes."""
        while self._dirty:
            pending = dict.fromkeys(self.find(index) for index in self._dirty)
            self._dirty = []
            for index in pending:
                self._repair(self.find(index))

    def _repair(self, index: int) -> None:
        eclass = self.classes[index]
        readers, eclass.readers = eclass.readers, []
        kept: dict[Hashable, ENode] = {}
        for enode in readers:
            if not enode.alive:
                continue
            key = (enode.op, enode.attrs, enode.children)
            if self._known.get(key) is enode:
                del self._known[key]
            enode.children = self._canonical(enode.op, enode.children)
            key = (enode.op, enode.attrs, enode.children)
            other = self._known.get(key)
            if other is not None and other is not enode:
                enode = self._merge_equal(other, enode)
            self._known[key] = enode
            kept[key] = enode
            self._learn(enode)
        self.cls(index).readers.extend(kept.values())

    def _learn(self, enode: ENode) -> None:
        """Takes over what the operands' new facts say of an e-node's class."""
        owner = self.cls(enode.owner)
        operands = [self.cls(c) for c in enode.children]
        known = [c.facts for c in operands]
        shapes = [c.shape for c in operands]
        twins = _twins(enode.children)
        learnt = facts_of(enode.op, enode.attrs, owner.dtype, shapes, known, twins)
        facts = owner.facts.meet(learnt)
        if facts != owner.facts and owner.lessons < LESSONS:
            owner.facts = facts
            owner.lessons += 1
            self.touched.add(owner.index)
            self._dirty.append(owner.index)

    def _merge_equal(self, first: ENode, second: ENode) -> ENode:
        """Two e-nodes that are the same term: the earlier stays, and their classes are united."""
        kept, gone = (first, second) if first.serial <= second.serial else (second, first)
        kept.original = kept.original or gone.original
        gone.alive = False
        owner = self.cls(gone.owner)
        owner.nodes = [n for n in owner.nodes if n is not gone]
        self.union(kept.owner, gone.owner)
        return kept

    def _canonical(self, op: Op, children: tuple[int, ...]) -> tuple[int, ...]:
        found = tuple(map(self.find, children))
        return tuple(sorted(found)) if "commutative" in op.traits else found

    def spread(self, changed: set[int], depth: int) -> list[set[int]]:
        """For each distance up to `depth`: the changed classes and those that read them so near."""
        edge = {self.find(c) for c in changed}
        found = [edge]
        for _ in range(depth):
            edge = {e.owner for c in edge for e in self.classes[c].readers if e.alive} - found[-1]
            found.append(found[-1] | edge)
        return found

    def enodes(self, wanted: Callable[[ENode], bool] | None = None) -> Iterator[ENode]:
        """All e-nodes, by class and in order of creation."""
        for index in sorted(self.classes):
            for enode in self.classes[index].nodes:
                if wanted is None or wanted(enode):
                    yield enode


def _twins(children: tuple[int, ...]) -> bool:
    return len(children) == 2 and children[0] == children[1]


def preferred(a: Node | None, b: Node | None) -> Node | None:
    """Which of two equal nodes lends its place: the forward one, then the earlier."""
    if a is None or b is None:
        return a or b
    return min(a, b, key=lambda n: (n.origin.phase != "forward", n.serial))
