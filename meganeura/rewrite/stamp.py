"""Solving a graph in parts: each block once, the rest once, and every copy stamped from its block's
solution.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from meganeura.ir.graph import Graph, Node
from meganeura.rewrite.outline import Block, Copy
from meganeura.rewrite.recipe import build_step
from meganeura.rewrite.rule import placeholder
from meganeura.rewrite.solve import Settings, Solution, solve


@dataclass(eq=False)
class Part:
    """A solved part of the graph: how many copies it has, and which user's node each of its nodes
    is.
    """

    solution: Solution
    copies: int
    stands_for: dict[Node, Node]
    built: dict[int, Node]


class _Circle(Exception):
    """A part needs what is built after it: the graph must be solved whole."""


@dataclass(eq=False)
class _Solved:
    """A block's solution: the nodes it was solved on, by place, and the placeholders of what it
    reads.
    """

    block: Block
    nodes: tuple[Node, ...]
    outside: tuple[Node, ...]
    solution: Solution


def solve_in_parts(
    graph: Graph, blocks: Sequence[Block], settings: Settings
) -> tuple[Graph, list[Part]] | None:
    """The graph with each block solved once; None when the parts cannot be put in an order."""
    solved = [_solve_block(number, block, settings) for number, block in enumerate(blocks)]
    inside = {n for block in blocks for copy in block.copies for n in copy.nodes}
    rest, seams = _cut(graph, inside)
    roots = [rest[n] for n in _wanted(graph, blocks, inside)]
    remainder = solve(roots, settings)
    assembly = _Assembly(remainder, rest, seams)
    try:
        parts = assembly.stamp_all(solved, graph)
        after = Graph(
            tuple((name, assembly.value(n)) for name, n in graph.outputs),
            tuple((leaf, assembly.value(n)) for leaf, n in graph.updates),
        )
    except _Circle:
        return None
    back = {new: old for old, new in rest.items()}
    return after, [Part(remainder, 1, back, assembly.built), *parts]


def _solve_block(number: int, block: Block, settings: Settings) -> _Solved:
    """Solves the first copy, with placeholders for what it reads."""
    copy = block.copies[0]
    outside = tuple(
        placeholder(f"block {number} reads {at}", n.shape, n.dtype)
        for at, n in enumerate(copy.outside)
    )
    change = dict(zip(copy.outside, outside, strict=True))
    for node in copy.nodes:
        change[node] = node.with_inputs(tuple(change.get(n, n) for n in node.inputs))
    nodes = tuple(change[n] for n in copy.nodes)
    exports = [nodes[at] for at in sorted(block.exports)]
    return _Solved(block, nodes, outside, solve(exports, settings))


def _cut(graph: Graph, inside: set[Node]) -> tuple[dict[Node, Node], dict[Node, Node]]:
    """The nodes outside of blocks on placeholders for what blocks make; and those placeholders."""
    rest: dict[Node, Node] = {}
    seams: dict[Node, Node] = {}
    for node in graph.nodes:
        if node in inside:
            continue
        for operand in node.inputs:
            if operand not in rest:  # made by a block
                name = f"block value {len(seams)}"
                rest[operand] = placeholder(name, operand.shape, operand.dtype)
                seams[rest[operand]] = operand
        rest[node] = node.with_inputs(tuple(rest[n] for n in node.inputs))
    return rest, seams


def _wanted(graph: Graph, blocks: Sequence[Block], inside: set[Node]) -> list[Node]:
    """The nodes outside of blocks that the roots are, or that blocks read."""
    found = dict.fromkeys(n for n in graph.roots if n not in inside)
    for block in blocks:
        for copy in block.copies:
            found.update((n, None) for n in copy.outside if n not in inside)
    return list(found)


class _Assembly:
    """Builds copies and the rest in the order in which they need each other."""

    def __init__(
        self, remainder: Solution, rest: Mapping[Node, Node], seams: Mapping[Node, Node]
    ) -> None:
        self.built: dict[int, Node] = {}
        self._remainder = remainder
        self._rest = rest
        self._seams = seams
        self._values: dict[Node, Node] = {}
        self._steps = {step.index: step for step in remainder.steps}

    def value(self, node: Node) -> Node:
        """The new node for a node of the graph."""
        found = self._values.get(node)
        if found is None:
            if self._rest.get(node) is None or self._rest[node] in self._seams:
                raise _Circle  # made by a copy that is not stamped yet
            found = self._values[node] = self._build(self._remainder.index(self._rest[node]))
        return found

    def stamp_all(self, solved: Sequence[_Solved], graph: Graph) -> list[Part]:
        """Stamps every copy, in the order of the graph."""
        place = {node: at for at, node in enumerate(graph.nodes)}
        jobs = [(copy, s) for s in solved for copy in s.block.copies]
        parts: dict[_Solved, Part] = {}
        for copy, s in sorted(jobs, key=lambda job: place[job[0].nodes[0]]):
            stands_for = dict(zip(s.nodes, copy.nodes, strict=True))
            back = dict(stands_for)
            stands_for.update(zip(s.outside, map(self.value, copy.outside), strict=True))
            built = s.solution.build(stands_for)
            self._take(s, copy, built)
            parts.setdefault(s, Part(s.solution, len(s.block.copies), back, built))
        return [parts[s] for s in solved]

    def _take(self, s: _Solved, copy: Copy, built: Mapping[int, Node]) -> None:
        for at in s.block.exports:
            self._values[copy.nodes[at]] = built[s.solution.index(s.nodes[at])]

    def _build(self, index: int) -> Node:
        stack = [index]
        while stack:
            step = self._steps[stack[-1]]
            missing = [c for c in step.operands if c not in self.built]
            if missing:
                stack.extend(missing)
                continue
            stack.pop()
            made = self._seams.get(step.original) if step.original is not None else None
            if made is not None:
                self.built[step.index] = self.value(made)
            else:
                self.built[step.index] = build_step(step, self.built, {})
        return self.built[index]
