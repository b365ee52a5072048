"""Left sides as patterns: what to look for, and how its variables are bound in an e-graph.

A pattern is read off a sample of the left side, built by the ordinary op API: operands become
variables, attributes that are a parameter of the rule become attribute variables, parts without
operands become numbers. Operands of commutative operations match in either order, so no rule has to
say that they commute.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from meganeura.ir.evaluate import evaluate_nodes
from meganeura.ir.graph import Attrs, Node, topological
from meganeura.rewrite.egraph import EClass, EGraph, ENode

Bindings = dict[str | int, Any]
"""Variables to classes, numbers or attributes; the place of a pattern node to the attributes that
it matched.
"""


@dataclass(frozen=True)
class Var:
    """Any class."""

    name: str


@dataclass(frozen=True)
class Number:
    """A class whose elements are one known finite number, which is bound."""

    name: str


@dataclass(frozen=True)
class Literal:
    """A class whose elements are this number."""

    value: float


@dataclass(frozen=True)
class Apply:
    """An operation; `binds` says which attribute is which variable; `place` counts operations from
    the top.
    """

    op: str
    parts: tuple[Pattern, ...]
    place: int
    binds: tuple[tuple[str, str], ...]
    swaps: bool

    @cached_property
    def asks(self) -> tuple[tuple[int, Pattern], ...]:
        """The operands that are more than a variable, with their places."""
        return tuple((i, p) for i, p in enumerate(self.parts) if not isinstance(p, Var))


Pattern = Var | Number | Literal | Apply


def pattern_of(
    root: Node,
    operands: Mapping[Node, str],
    attributes: Mapping[str, Hashable],
    numbers: Mapping[str, float],
) -> Apply:
    """The pattern of a sample: `operands` are its placeholders, `attributes` and `numbers` the
    values of its parameters.
    """
    open_nodes: set[Node] = set()
    for node in topological([root]):
        if node in operands or any(n in open_nodes for n in node.inputs):
            open_nodes.add(node)
    places = iter(range(1000))

    def read(node: Node) -> Pattern:
        if node in operands:
            return Var(operands[node])
        if node not in open_nodes:
            return _number(node, numbers)
        place = next(places)
        binds = tuple(
            (key, name)
            for key, value in node.attrs
            for name, wanted in attributes.items()
            if value == wanted
        )
        parts = tuple(read(n) for n in node.inputs)
        swaps = "commutative" in node.op.traits and parts[0] != parts[1]
        return Apply(node.op.name, parts, place, binds, swaps)

    found = read(root)
    if not isinstance(found, Apply):
        raise ValueError("the left side of a rule must apply an operation to its operands")
    return found


def _number(node: Node, numbers: Mapping[str, float]) -> Number | Literal:
    array = np.asarray(evaluate_nodes([node], {})[node])
    value = float(array.flat[0])
    if not np.all(array == value):
        raise ValueError("a number in a rule must be the same for all elements")
    for name, wanted in numbers.items():
        if value == wanted:
            return Number(name)
    return Literal(value)


def variables(pattern: Pattern) -> set[str]:
    """The names that a match binds."""
    if isinstance(pattern, (Var, Number)):
        return {pattern.name}
    if isinstance(pattern, Literal):
        return set()
    found = {name for _, name in pattern.binds}
    return found.union(*(variables(p) for p in pattern.parts))


def depth(pattern: Pattern) -> int:
    """How many operations lie above each other."""
    return (
        1 + max((depth(p) for p in pattern.parts), default=0) if isinstance(pattern, Apply) else 0
    )


def matches(graph: EGraph, pattern: Apply, enode: ENode) -> Iterator[Bindings]:
    """Each way in which an e-node is the pattern."""
    return _at_node(graph, pattern, enode, {}) if _hopeful(graph, pattern, enode) else iter(())


def _hopeful(graph: EGraph, pattern: Apply, enode: ENode) -> bool:
    """False when an operand cannot be what its part of the pattern asks: a quick look, no more."""
    children, classes = enode.children, graph.classes
    for place, part in pattern.asks:
        if not _possible(part, classes[children[place]]):
            break
    else:
        return True
    return pattern.swaps and all(
        _possible(part, classes[children[1 - place]]) for place, part in pattern.asks
    )


def _possible(part: Pattern, eclass: EClass) -> bool:
    if isinstance(part, Apply):
        return part.op in eclass.ops
    value = eclass.facts.value
    return value is not None and (not isinstance(part, Literal) or value == part.value)


def _at_node(graph: EGraph, pattern: Apply, enode: ENode, bound: Bindings) -> Iterator[Bindings]:
    if enode.attrs:
        bound = _attributes(pattern, enode.attrs, bound)
        if not bound:
            return
    yield from _operands(graph, pattern.parts, enode.children, bound)
    if pattern.swaps and enode.children[0] != enode.children[1]:
        yield from _operands(graph, pattern.parts, enode.children[::-1], bound)


def _attributes(pattern: Apply, attrs: Attrs, bound: Bindings) -> Bindings:
    """The bindings with those of the attributes; empty when they contradict what is bound."""
    bound = {**bound, pattern.place: attrs}
    for key, name in pattern.binds:
        value = next(v for k, v in attrs if k == key)
        if bound.setdefault(name, value) != value:
            return {}
    return bound


def _operands(
    graph: EGraph, parts: tuple[Pattern, ...], classes: tuple[int, ...], bound: Bindings
) -> Iterator[Bindings]:
    if not parts:
        yield bound
        return
    for found in _in_class(graph, parts[0], classes[0], bound):
        yield from _operands(graph, parts[1:], classes[1:], found)


def _in_class(graph: EGraph, pattern: Pattern, index: int, bound: Bindings) -> Iterator[Bindings]:
    if isinstance(pattern, Apply):
        for enode in graph.cls(index).nodes:
            if enode.op.name == pattern.op:
                yield from _at_node(graph, pattern, enode, bound)
    elif isinstance(pattern, Var):
        index = graph.find(index)
        old = bound.get(pattern.name)
        if old is None:
            yield {**bound, pattern.name: index}
        elif old == index:
            yield bound
    else:
        yield from _known_number(pattern, graph.cls(index).facts.value, bound)


def _known_number(
    pattern: Number | Literal, value: float | None, bound: Bindings
) -> Iterator[Bindings]:
    if value is None or not np.isfinite(value):
        return
    if isinstance(pattern, Literal):
        if value == pattern.value:
            yield bound
    elif bound.get(pattern.name, value) == value:
        yield {**bound, pattern.name: value}
