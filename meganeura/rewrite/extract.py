"""Extraction: which e-node each class becomes, at the least cost of the whole graph, shared nodes
counted once.

Counting a shared node once makes the best choice a global question (it is NP-hard), so this starts
from two choices, the user's own graph and the cheapest tree of each class, and improves the better
one move by move until none helps.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Container, Iterable, Sequence
from itertools import pairwise

from meganeura.ir.graph import Node
from meganeura.rewrite.egraph import EGraph, ENode
from meganeura.rewrite.saturate import Match, Saturation

Cost = Callable[[Node], float]
Choice = dict[int, ENode]
SWEEPS = 8
LEAST = 1e-6
"""Moves that save less are not worth a change."""


class Selection:
    """One e-node for each class that the roots need, with the number of its readers and the total
    cost.
    """

    def __init__(
        self,
        graph: EGraph,
        roots: Sequence[int],
        cost: Cost,
        choice: Choice,
        prices: dict[ENode, float] | None = None,
    ) -> None:
        self.graph = graph
        self.choice = choice
        self.reads: dict[int, int] = {}
        self.total = 0.0
        self._cost = cost
        self.prices: dict[ENode, float] = {} if prices is None else prices
        self.roots = tuple(map(graph.find, roots))
        self.rank: dict[int, float] = {}
        for root in self.roots:
            self._acquire(root)

    def price(self, enode: ENode) -> float:
        """The cost of an e-node alone; never negative, and never nothing for what has operands."""
        found = self.prices.get(enode)
        if found is None:
            found = max(self._cost(enode.sample), LEAST if enode.children else 0.0)
            self.prices[enode] = found
        return found

    def operands(self, enode: ENode) -> list[int]:
        """The classes that an e-node reads."""
        return [self.graph.find(c) for c in enode.children]

    def _acquire(self, index: int) -> None:
        stack = [index]
        while stack:
            at = stack.pop()
            count = self.reads.get(at, 0)
            self.reads[at] = count + 1
            if count == 0:
                enode = self.choice[at]
                self.total += self.price(enode)
                stack.extend(self.operands(enode))

    def _release(self, index: int) -> None:
        stack = [index]
        while stack:
            at = stack.pop()
            self.reads[at] -= 1
            if self.reads[at] == 0:
                del self.reads[at]
                enode = self.choice[at]
                self.total -= self.price(enode)
                stack.extend(self.operands(enode))

    def switch(self, index: int, enode: ENode) -> None:
        """Chooses another e-node for a class."""
        old = self.choice[index]
        self.choice[index] = enode
        if index not in self.reads:
            return
        for child in self.operands(enode):
            self._acquire(child)
        self.total += self.price(enode) - self.price(old)
        for child in self.operands(old):
            self._release(child)

    def attempt(self, moves: Sequence[tuple[int, ENode]]) -> bool:
        """Makes moves together when they save something and no class comes to need itself."""
        before = self.total
        old = [(index, self.choice[index]) for index, _ in moves]
        for index, enode in moves:
            self.switch(index, enode)
        if self.total < before - LEAST and self._keeps_order(moves):
            return True
        for index, enode in reversed(old):
            self.switch(index, enode)
        self.total = before
        return False

    def _keeps_order(self, moves: Sequence[tuple[int, ENode]]) -> bool:
        """True when the selection still has an order, in which each class has a higher rank than
        those that it reads.
        """
        moved = [index for index, _ in moves if index in self.reads]
        for index, _ in moves:
            if index not in self.reads:
                self.rank.pop(index, None)
        limit = min(self.rank[index] for index in moved)
        region = self.order(moved, limit)
        if region is None:
            return False
        if not self._lowered(region, limit):
            everything = self.order(self.roots) or ()
            self.rank = {index: float(place) for place, index in enumerate(everything)}
        return True

    def _lowered(self, region: Sequence[int], limit: float) -> bool:
        """Ranks a region, operands first, under a limit, so that all its readers stay above it;
        False when numbers do not lie dense enough.
        """
        inside = set(region)
        below = {c for at in region for c in self.operands(self.choice[at])} - inside
        base = max((self.rank[c] for c in below), default=limit - 1)
        step = (limit - base) / (len(region) + 1)
        for place, index in enumerate(region, 1):
            self.rank[index] = base + step * place
        ranks = [base, *(self.rank[index] for index in region), limit]
        return all(a < b for a, b in pairwise(ranks))

    def order(self, roots: Iterable[int], above: float | None = None) -> list[int] | None:
        """The classes that the roots need, operands first; None when one needs itself.

        With `above`, those of a lower rank are left out, with all that they need.
        """
        done: dict[int, None] = {}
        for root in roots:
            open_: set[int] = set()
            stack: list[tuple[int, bool]] = [(self.graph.find(root), False)]
            while stack:
                at, leaving = stack.pop()
                if leaving:
                    open_.discard(at)
                    done[at] = None
                elif at in open_:
                    return None
                elif at not in done:
                    open_.add(at)
                    stack.append((at, True))
                    pending = self._pending(at, done, above)
                    if not open_.isdisjoint(pending):
                        return None
                    stack.extend((c, False) for c in reversed(pending))
        return list(done)

    def _pending(self, index: int, done: Container[int], above: float | None) -> list[int]:
        """The operands that still have to be put in order."""
        found = dict.fromkeys(c for c in self.operands(self.choice[index]) if c not in done)
        if above is None:
            return list(found)
        return [c for c in found if self.rank.get(c, above) >= above]


def tree_costs(graph: EGraph, price: Callable[[ENode], float]) -> tuple[Choice, dict[int, float]]:
    """The cheapest e-node of each class when sharing is not counted, and that cost.

    Classes are settled from the cheapest up (Knuth 1977), so each e-node is looked at once.
    """
    choice: Choice = {}
    best: dict[int, float] = {}
    waiting: dict[ENode, int] = {}
    queue: list[tuple[float, int, ENode]] = []
    for enode in graph.enodes():
        waiting[enode] = len(set(map(graph.find, enode.children)))
        if not enode.children:
            queue.append((price(enode), enode.serial, enode))
    heapq.heapify(queue)
    while queue:
        cost, _, enode = heapq.heappop(queue)
        owner = enode.owner
        if owner in best:
            continue
        best[owner], choice[owner] = cost, enode
        for reader in graph.classes[owner].readers:
            if reader.alive and reader.owner not in best:
                waiting[reader] -= 1
                if waiting[reader] == 0:
                    total = sum(best[c] for c in set(map(graph.find, reader.children)))
                    heapq.heappush(queue, (price(reader) + total, reader.serial, reader))
    return choice, best


def extract(saturation: Saturation, roots: Sequence[int], cost: Cost) -> Selection:
    """The selection of the least cost that the search finds."""
    graph = saturation.graph
    pricing = Selection(graph, (), cost, {})
    cheapest, trees = tree_costs(graph, pricing.price)
    starts = [
        Selection(graph, roots, cost, dict(choice), pricing.prices)
        for choice in (cheapest, {**cheapest, **_originals(graph, roots)})
    ]
    best = min(starts, key=lambda s: s.total)
    _improve(best, saturation.matches, trees)
    return best


def _originals(graph: EGraph, roots: Sequence[int]) -> Choice:
    """The user's own e-nodes, for the classes that the user's graph needs."""
    choice: Choice = {}
    stack = [graph.find(r) for r in roots]
    while stack:
        at = stack.pop()
        if at in choice:
            continue
        own = [e for e in graph.classes[at].nodes if e.original is not None]
        choice[at] = min(own, key=lambda e: e.serial)
        stack.extend(graph.find(c) for c in choice[at].children)
    return choice


def _improve(selection: Selection, matches: Sequence[Match], trees: dict[int, float]) -> None:
    graph = selection.graph
    selection.rank = {c: float(i) for i, c in enumerate(selection.order(selection.roots) or ())}
    groups = _groups(graph, matches)
    for _ in range(SWEEPS):
        better = False
        for moves in groups:
            better |= selection.attempt(moves)
        for index in sorted(selection.reads):
            if index not in selection.reads or len(graph.classes[index].nodes) == 1:
                continue
            for enode in graph.classes[index].nodes:
                old = selection.choice[index]
                if enode is not old and selection.price(enode) < trees[index] + selection.price(
                    old
                ):
                    better |= selection.attempt([(index, enode)])
        if not better:
            return


def _groups(graph: EGraph, matches: Sequence[Match]) -> list[list[tuple[int, ENode]]]:
    """Moves of several classes at once, for rules about several terms: one alone would not pay."""
    groups: list[list[tuple[int, ENode]]] = []
    for match in matches:
        if len(match.roots) > 1:
            moves = [
                (graph.find(root.owner), next(e for e in result if e.alive))
                for root, result in zip(match.roots, match.results, strict=True)
                if any(e.alive for e in result)
            ]
            groups.append(moves)
    return groups
