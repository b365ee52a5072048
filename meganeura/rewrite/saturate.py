"""Equality saturation: all rules at once, until nothing new is found or a limit is reached.

Rules only add to the e-graph, so their order does not decide what is found; the cost decides
afterwards what is kept.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from meganeura.ir import build
from meganeura.ir.graph import Node, topological
from meganeura.rewrite.egraph import EGraph, ENode
from meganeura.rewrite.pattern import Bindings, depth, matches
from meganeura.rewrite.rule import Rule, Template, template, template_key


@dataclass(frozen=True)
class Limits:
    """Where saturation stops: e-nodes that rules may add, rounds, matches of one rule in one round,
    seconds.

    The first three stop it at the same place on every machine; the seconds are a net below them.
    """

    nodes: int = 5000
    iterations: int = 12
    matches: int = 2000
    seconds: float = 5.0


@dataclass(eq=False)
class Match:
    """One use of a rule: the terms that it found, what it built for them, and what it was allowed
    to count on.
    """

    rule: Rule
    roots: tuple[ENode, ...]
    template: Template
    operands: tuple[int, ...]
    iteration: int
    before: tuple[Node | None, ...]
    made: int = 0
    results: tuple[tuple[ENode, ...], ...] = ()

    @property
    def key(self) -> Hashable:
        """What makes the match the same as another one."""
        return (tuple(root.serial for root in self.roots), self.operands, self.template)


@dataclass
class Saturation:
    """An e-graph with what happened to it."""

    graph: EGraph
    matches: list[Match] = field(default_factory=list)
    done: set[Hashable] = field(default_factory=set)
    grown: Counter[str] = field(default_factory=Counter)
    iterations: int = 0
    stopped: str = ""


def saturate(graph: EGraph, rules: Sequence[Rule], limits: Limits) -> Saturation:
    """Applies rules to an e-graph until it holds all that they imply, or a limit is reached."""
    result = Saturation(graph)
    start, base = time.perf_counter(), graph.added
    deepest = max((depth(rule.pattern) for rule in rules), default=0)
    fold_numbers(graph, graph.touched)
    for _ in range(limits.iterations):
        changed = graph.spread(graph.touched, deepest)
        graph.touched = set()
        result.iterations += 1
        found = list(_search(result, rules, changed, limits))
        before = graph.added
        united = _apply(result, found, base + limits.nodes)
        graph.rebuild()
        fold_numbers(graph, graph.touched)
        if not united and graph.added == before and not graph.touched:
            result.stopped = f"saturated after {result.iterations} rounds"
            return result
        if graph.added - base >= limits.nodes:
            return _stop(result, f"at its limit of {limits.nodes:,} added e-nodes")
        if time.perf_counter() - start > limits.seconds:
            return _stop(result, f"at its limit of {limits.seconds:g} s")
    return _stop(result, f"at its limit of {limits.iterations} rounds")


def _stop(result: Saturation, why: str) -> Saturation:
    grew = ", ".join(f"{name} ({n:,})" for name, n in result.grown.most_common(3))
    result.stopped = f"stopped {why} in round {result.iterations}" + (
        f"; grown by {grew}" if grew else ""
    )
    return result


def _search(
    result: Saturation, rules: Sequence[Rule], changed: Sequence[set[int]], limits: Limits
) -> Iterator[Match]:
    graph = result.graph
    found: dict[tuple[str, int], list[ENode]] = {}
    for rule in rules:
        look = rule.pattern.op, depth(rule.pattern)
        if look not in found:
            near = changed[look[1]]
            candidates = graph.by_op.get(look[0], ())
            found[look] = [e for e in candidates if e.alive and e.owner in near]
        fresh = found[look]
        finder = _together if rule.many is not None else _single
        count = 0
        for match in finder(result, rule, fresh):
            if match.key in result.done:
                continue
            if count == limits.matches:
                graph.touched.update(e.owner for e in fresh)
                break
            count += 1
            result.done.add(match.key)
            yield match


def _single(result: Saturation, rule: Rule, fresh: Sequence[ENode]) -> Iterator[Match]:
    graph = result.graph
    for enode in fresh:
        for bound in matches(graph, rule.pattern, enode):
            found = _arguments(graph, rule, bound)
            match = _match(result, rule, (enode,), found, bound)
            if match is not None:
                yield match


def _arguments(graph: EGraph, rule: Rule, bound: Bindings) -> dict[str, Any]:
    return {
        name: graph.cls(bound[name]) if kind in ("Node", "Bool") else bound[name]
        for name, kind in rule.kinds.items()
    }


def _together(result: Saturation, rule: Rule, fresh: Sequence[ENode]) -> Iterator[Match]:
    """Matches of a rule about several terms: all that share their operands but one."""
    graph = result.graph
    groups: dict[tuple[Any, ...], list[tuple[ENode, Bindings]]] = {}
    for enode in graph.by_op[rule.pattern.op] if fresh else ():
        if enode.alive and not _made_by(result, rule, enode):
            for bound in matches(graph, rule.pattern, enode):
                key = tuple(sorted((str(k), v) for k, v in bound.items() if k != rule.many))
                groups.setdefault(key, []).append((enode, bound))
    for members in groups.values():
        roots = tuple(dict.fromkeys(e for e, _ in members))
        if len(roots) < 2 or len(roots) != len(members):
            continue
        bound = members[0][1]
        found = _arguments(graph, rule, bound)
        assert rule.many is not None
        found[rule.many] = tuple(graph.cls(b[rule.many]) for _, b in members)
        match = _match(result, rule, roots, found, bound)
        if match is not None:
            yield match


def _made_by(result: Saturation, rule: Rule, enode: ENode) -> bool:
    return enode.match is not None and result.matches[enode.match].rule is rule


def _match(
    result: Saturation,
    rule: Rule,
    roots: tuple[ENode, ...],
    found: Mapping[str, Any],
    bound: Bindings,
) -> Match | None:
    graph = result.graph
    if not rule.where.test(found):
        return None
    built = template(*template_key(rule, found, bound))
    if built is None or any(
        graph.cls(root.owner).shape != side.shape or graph.cls(root.owner).dtype is not side.dtype
        for root, side in zip(roots, built.left, strict=True)
    ):
        return None
    classes: list[int] = []
    for name in rule.kinds:
        value = found[name]
        if name == rule.many:
            classes.extend(c.index for c in value)
        elif rule.kinds[name] in ("Node", "Bool"):
            classes.append(value.index)
    before = tuple(graph.cls(root.owner).origin for root in roots)
    return Match(rule, roots, built, tuple(classes), result.iterations, before)


def _apply(result: Saturation, found: Sequence[Match], most: int) -> bool:
    """Builds right sides and unites; True when any two classes were united."""
    graph, united = result.graph, False
    for match in found:
        if graph.added >= most:
            break
        before = graph.added
        tops = _instantiate(graph, match, len(result.matches))
        match.results = tuple(tuple(graph.cls(top).nodes) for top in tops)
        news = [graph.union(root.owner, top) for root, top in zip(match.roots, tops, strict=True)]
        match.made = graph.added - before
        result.grown[match.rule.name] += match.made
        if any(news):
            united = True
            result.matches.append(match)
    return united


def _instantiate(graph: EGraph, match: Match, number: int) -> tuple[int, ...]:
    rows: list[int] = []

    def at(ref: int) -> int:
        return rows[ref] if ref >= 0 else match.operands[~ref]

    for row in match.template.rows:
        rows.append(
            graph.add(row.op, row.attrs, tuple(at(r) for r in row.refs), row.sample, number)
        )
    return tuple(at(ref) for ref in match.template.tops)


def fold_numbers(graph: EGraph, touched: set[int]) -> None:
    """Adds to each class whose elements are one known number that number itself."""
    for index in sorted({graph.find(c) for c in touched}):
        eclass = graph.classes[graph.find(index)]
        value = eclass.facts.value
        if value is None or 0 in eclass.shape or any(_is_number(e) for e in eclass.nodes):
            continue
        number = build.broadcast_to(build.constant(value, eclass.dtype), eclass.shape)
        classes: dict[Node, int] = {}
        for node in topological([number]):
            classes[node] = graph.add(
                node.op, node.attrs, tuple(classes[n] for n in node.inputs), node
            )
        graph.union(eclass.index, classes[number])
    graph.rebuild()


def _is_number(enode: ENode) -> bool:
    sample = enode.sample
    while sample.op.kind == "view" and sample.inputs:
        sample = sample.inputs[0]
    return sample.op.name == "constant"
