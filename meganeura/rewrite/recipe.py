"""The chosen terms as a list of steps, which builds nodes: once for the graph, or again for each
copy of a block.

A step is an original node on new operands, or a node that a rule made, at the place in the user's
code of the node that it stands for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from meganeura.ir.graph import Attrs, Node, Op
from meganeura.ir.source import Origin
from meganeura.rewrite.egraph import EGraph, ENode
from meganeura.rewrite.extract import Selection
from meganeura.rewrite.saturate import Match


@dataclass(frozen=True, slots=True)
class Step:
    """One node to build: `place` lends its place in the user's code, `named` its name."""

    index: int
    op: Op
    attrs: Attrs
    operands: tuple[int, ...]
    original: Node | None
    place: Node | None
    named: Node | None


def recipe(
    classes: Mapping[Node, int],
    selection: Selection,
    roots: Sequence[Node],
    matches: Sequence[Match],
) -> list[Step]:
    """The steps that build the roots, operands first."""
    graph = selection.graph
    order = selection.order([classes[n] for n in roots])
    assert order is not None, "a selection without an order is never accepted"
    steps: list[Step] = []
    for index in order:
        enode, eclass = selection.choice[index], graph.classes[index]
        original = enode.original
        if original is not None:
            operands = tuple(graph.find(classes[n]) for n in original.inputs)
        else:
            operands = tuple(selection.operands(enode))
        place = original or _place(graph, enode, matches)
        named = eclass.named if enode.op.kind != "leaf" else None
        steps.append(Step(index, enode.op, enode.attrs, operands, original, place, named))
    return steps


def _place(graph: EGraph, enode: ENode, matches: Sequence[Match]) -> Node | None:
    """The equal node that the user made, else the term that a rule matched."""
    own = graph.cls(enode.owner).origin
    if own is not None or enode.match is None:
        return own
    return matches[enode.match].before[0]


def build(steps: Sequence[Step], stands_for: Mapping[Node, Node]) -> dict[int, Node]:
    """The node of each class. `stands_for` replaces original nodes by those of another copy."""
    built: dict[int, Node] = {}
    for step in steps:
        built[step.index] = build_step(step, built, stands_for)
    return built


def build_step(step: Step, built: Mapping[int, Node], stands_for: Mapping[Node, Node]) -> Node:
    """The node of one step, on operands that are built."""
    inputs = tuple(built[c] for c in step.operands)
    if step.original is None:
        node = Node.make(step.op, inputs, dict(step.attrs), _origin(step.place, stands_for))
    else:
        node = stands_for.get(step.original, step.original)
        if node.op is step.op:  # else a placeholder, which stands for what another part builds
            node = node.with_inputs(inputs)
    if step.named is None or node.origin.name is not None or node.op.kind == "leaf":
        return node
    return node.with_name(str(stands_for.get(step.named, step.named).origin.name))


def _origin(place: Node | None, stands_for: Mapping[Node, Node]) -> Origin:
    if place is None:
        return Origin()
    return replace(stands_for.get(place, place).origin, name=None)
