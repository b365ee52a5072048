"""Finding repeated blocks: stretches of the graph that are the same but for what they read and what
they are called.

The nodes in order are a text, each node a letter (its operation, attributes, shape, and those of
its operands). A stretch that repeats after p letters is a run of equal layers; it is cut where the
fewest values cross, and two pieces are copies when their nodes read each other, and what comes from
outside, in the same pattern.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from meganeura.ir.graph import Array, Graph, Node

LEAST_NODES = 600
"""Smaller graphs are solved whole: that costs little, and rules see across all of it."""

LEAST_SHARE = 0.3
"""Blocks are outlined when they take away at least this share of the nodes."""

LEAST_SAVED = 24
"""A run of copies is worth a cut when it saves so many nodes."""

WORDS = (1, 24)
"""Lengths of the words whose distances are tried as periods: long ones see past repeats within."""

PERIODS = 12
"""How many distances are tried for each length."""


@dataclass(eq=False)
class Copy:
    """One copy of a block: its nodes, and the nodes and leaves that it reads from outside."""

    nodes: tuple[Node, ...]
    outside: tuple[Node, ...]


@dataclass(eq=False)
class Block:
    """Copies of one block; `exports` are the places whose values are read outside of any copy."""

    copies: list[Copy] = field(default_factory=list)
    exports: set[int] = field(default_factory=set)


def is_number(node: Node, known: dict[Node, bool]) -> bool:
    """True for what needs no feed at all: constants, indices, and what is made of them."""
    found = known.get(node)
    if found is None:
        made = node.op.kind != "leaf" and all(is_number(n, known) for n in node.inputs)
        found = known[node] = node.op.name == "constant" or made
    return found


def find_blocks(graph: Graph) -> list[Block]:
    """The blocks that repeat often enough to be solved once, with all their copies; else none."""
    if len(graph.nodes) < LEAST_NODES:
        return []
    numbers: dict[Node, bool] = {}
    for node in graph.nodes:
        is_number(node, numbers)
    nodes = [n for n in graph.nodes if n.op.kind != "leaf" and not numbers[n]]
    text = _letters(nodes)
    place = {node: at for at, node in enumerate(nodes)}
    blocks: list[Block] = []
    free, periods = np.ones(text.size, bool), _periods(text)
    while (run := _best_run(text, free, periods)) is not None:
        start, period, length = run
        first = start + _thinnest(nodes, place, start, period, length)
        starts = _occurrences(text, free, first, period)
        for at in starts:
            free[at : at + period] = False
        blocks += _copies(nodes, numbers, starts, period)
    saved = sum(len(b.copies[0].nodes) * (len(b.copies) - 1) for b in blocks)
    if saved < LEAST_SHARE * len(nodes):
        return []
    _mark_exports(graph, blocks)
    return blocks


def _attributes(node: Node) -> Hashable:
    return () if node.op.name == "random" else node.attrs


def _letters(nodes: Sequence[Node]) -> Array:
    """A number for each node, equal for nodes that look alike from near."""
    known: dict[Hashable, int] = {}
    found = [
        known.setdefault(
            (n.op, _attributes(n), n.shape, n.dtype, tuple((i.shape, i.dtype) for i in n.inputs)),
            len(known),
        )
        for n in nodes
    ]
    return np.asarray(found, np.int64)


def _periods(text: Array) -> list[int]:
    """The commonest distances between a word and its next occurrence, for short and long words."""
    found: dict[int, None] = {}
    for length in WORDS:
        word = np.zeros(max(text.size - length + 1, 0), np.int64)
        for at in range(length):  # a hash: what collides is tried in vain
            word = word * 1_000_003 + text[at : at + word.size]
        order = np.argsort(word, kind="stable")
        gaps = np.diff(order)[np.diff(word[order]) == 0]
        sizes, counts = np.unique(gaps[gaps > 1], return_counts=True)
        common = np.argsort(-counts, kind="stable")[:PERIODS]
        found.update((int(sizes[i]), None) for i in common)
    return list(found)


def _best_run(text: Array, free: Array, periods: Sequence[int]) -> tuple[int, int, int] | None:
    """The stretch that repeats and saves most, as (start, period, length)."""
    best = (LEAST_SAVED, 0, 0, 0)
    for period in periods:
        equal = (text[:-period] == text[period:]) & free[:-period] & free[period:]
        edges = np.flatnonzero(np.diff(np.concatenate(([0], equal, [0]))))
        saved = (edges[1::2] - edges[::2]) // period * period
        if saved.size and saved.max() > best[0]:
            which = int(saved.argmax())
            start, stop = int(edges[2 * which]), int(edges[2 * which + 1])
            best = (int(saved.max()), start, period, stop - start + period)
    return best[1:] if best[2] else None


def _occurrences(text: Array, free: Array, first: int, period: int) -> list[int]:
    """Where the word that starts at `first` stands in the free text, without overlaps."""
    word = text[first : first + period]
    at = np.arange(text.size - period + 1)
    for offset in range(period):
        at = at[(text[at + offset] == word[offset]) & free[at + offset]]
    found = [first]
    for start in at.tolist():
        if all(abs(start - other) >= period for other in found):
            found.append(start)
    return sorted(found)


def _thinnest(
    nodes: Sequence[Node], place: dict[Node, int], start: int, period: int, length: int
) -> int:
    """How far into the period to cut, so that few values go from one copy to the next."""
    change = np.zeros(length + 1, np.int64)
    last: dict[int, int] = {}  # readers within a period; what is read later crosses all cuts alike
    for at in range(start, start + length):
        for operand in nodes[at].inputs:
            made = place.get(operand, -1)
            if start <= made and at - made <= period:
                last[made] = at
    for made, reader in last.items():
        change[made - start + 1] += 1
        if reader - start + 1 <= length:
            change[reader - start + 1] -= 1
    crossing = np.cumsum(change)
    copies = length // period

    def price(offset: int) -> tuple[bool, int, int]:
        cut = offset + period
        fewer = (length - offset) // period < max(2, copies - 1)
        return fewer, int(crossing[cut]) if cut <= length else length, offset

    return min(range(period), key=price)


def _copies(
    nodes: Sequence[Node], numbers: dict[Node, bool], starts: Sequence[int], period: int
) -> list[Block]:
    """The pieces at each start, grouped by what they are."""
    groups: dict[Hashable, Block] = {}
    for start in starts:
        piece = tuple(nodes[start : start + period])
        key, outside = _portrait(piece, numbers)
        groups.setdefault(key, Block()).copies.append(Copy(piece, outside))
    return [block for block in groups.values() if len(block.copies) > 1]


def _portrait(
    piece: Sequence[Node], numbers: dict[Node, bool]
) -> tuple[Hashable, tuple[Node, ...]]:
    """What a piece is, whatever it reads: equal for copies. And what it reads, by first use."""
    inside = {node: at for at, node in enumerate(piece)}
    outside: dict[Node, int] = {}
    streams: dict[Hashable, int] = {}
    rows: list[Hashable] = []
    for node in piece:
        reads: list[Hashable] = []
        for operand in node.inputs:
            if operand in inside:
                reads.append(inside[operand])
            elif numbers[operand]:
                reads.append(_written(operand))
            else:
                number = outside.setdefault(operand, len(outside))
                reads.append(("outside", number, operand.shape, operand.dtype))
        attrs: Any = _attributes(node)
        if node.op.name == "random":
            attrs = streams.setdefault(node.attr("stream"), len(streams))
        rows.append((node.op, attrs, node.shape, tuple(reads)))
    return tuple(rows), tuple(outside)


def _written(node: Node) -> Hashable:
    """A number as what it is made of: equal for equal ones from different lines."""
    return (node.op, node.attrs, tuple(_written(n) for n in node.inputs))


def _mark_exports(graph: Graph, blocks: Sequence[Block]) -> None:
    """Notes which places of a block are read from outside, in any of its copies."""
    owner: dict[Node, tuple[Block, Copy, int]] = {}
    for block in blocks:
        for copy in block.copies:
            owner.update((node, (block, copy, at)) for at, node in enumerate(copy.nodes))
    for node in graph.nodes:
        reader = owner.get(node)
        for operand in node.inputs:
            found = owner.get(operand)
            if found is not None and (reader is None or reader[1] is not found[1]):
                found[0].exports.add(found[2])
    for root in graph.roots:
        if root in owner:
            block, _, at = owner[root]
            block.exports.add(at)
