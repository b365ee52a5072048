"""The invariants of the graph level: what every pass may count on, checked by tests after each of
them.
"""

from __future__ import annotations

from collections.abc import Iterable

from meganeura.errors import MeganeuraError, NameClashError, SpecError
from meganeura.ir.graph import Graph, Node

_UNBOUND = ("effect", "detach")
_SYSTEM = ("meganeura.training",)


def check_names(graph: Graph) -> None:
    """NameClashError when two different leaves of the graph have one name: with both lines."""
    seen: dict[str, Node] = {}
    for node in _named_leaves(graph):
        other = seen.setdefault(str(node.name), node)
        if other is not node:
            raise NameClashError(
                f"two {_kinds(other, node)} are named {node.name!r}",
                expected="one name for each",
                got=f"{_described(other)}; {_described(node)}",
                hint="rename one of them; to use one tensor twice, make it once and pass it on",
                origin=node.origin,
            )


def _named_leaves(graph: Graph) -> Iterable[Node]:
    leaves = [n for n in graph.nodes if n.op.kind == "leaf" and n.op.name != "constant"]
    return sorted(leaves, key=lambda n: n.serial)


def _kinds(a: Node, b: Node) -> str:
    if a.op is b.op:
        return f"{a.op.name}s"
    articles = {"input": "an"}
    first, second = (f"{articles.get(n.op.name, 'a')} {n.op.name}" for n in (a, b))
    return f"leaves ({first} and {second})"


def _described(node: Node) -> str:
    place = node.origin.where()
    return f"{list(node.shape)} {node.dtype}" + (f" at {place}" if place else "")


def check(graph: Graph, *, bound: bool = False) -> Graph:
    """The graph itself, when it keeps the invariants of its level; else SpecError.

    Shapes and types are inferred again and must be equal; operands precede; names of leaves and
    outputs are unique; updates fit their leaves. `bound=True` also asks that nothing depends on the
    mode, as after `mode.bind`.
    """
    place = {node: index for index, node in enumerate(graph.nodes)}
    for node in graph.nodes:
        _check_node(node, place)
        if bound:
            _check_bound(node)
    _check_outputs(graph)
    _check_updates(graph)
    try:
        check_names(graph)
    except NameClashError as error:
        raise SpecError(error.what, got=error.got, origin=error.origin) from error
    return graph


def _check_node(node: Node, place: dict[Node, int]) -> None:
    if node.op.kind == "leaf" and node.inputs:
        raise _fault(node, "a leaf has no operands", "none", str(len(node.inputs)))
    if len(node.inputs) != node.op.arity:
        raise _fault(node, "wrong number of operands", str(node.op.arity), str(len(node.inputs)))
    if any(place[operand] >= place[node] for operand in node.inputs):
        raise _fault(node, "an operand comes after its reader", "operands first", "the reverse")
    if any(n < 0 for n in node.shape):
        raise _fault(node, "a negative size", ">= 0", str(list(node.shape)))
    try:
        shape, dtype = node.op.infer(node.inputs, dict(node.attrs))
    except MeganeuraError as error:
        raise _fault(
            node, f"the operands do not fit: {error.what}", error.expected, error.got
        ) from error
    if shape != node.shape or dtype is not node.dtype:
        got = f"{list(node.shape)} {node.dtype}"
        raise _fault(node, "shape or type differ from the rule", f"{list(shape)} {dtype}", got)


def _check_bound(node: Node) -> None:
    if node.op.name in _UNBOUND or (node.op.name == "input" and node.name in _SYSTEM):
        label = node.name if node.op.name == "input" else node.op.name
        raise _fault(node, f"{label} is left after binding", "a graph for one mode", str(label))


def _check_outputs(graph: Graph) -> None:
    names = [name for name, _ in graph.outputs]
    for name in names:
        if names.count(name) > 1:
            raise SpecError(
                f"two outputs are named {name!r}", expected="unique names", got=str(names)
            )


def _check_updates(graph: Graph) -> None:
    leaves = [leaf for leaf, _ in graph.updates]
    for leaf, new in graph.updates:
        if leaf.op.name not in ("parameter", "state"):
            raise _fault(leaf, "only parameters and states are updated", "a leaf", leaf.op.name)
        if leaf.shape != new.shape or leaf.dtype is not new.dtype:
            got = f"{list(new.shape)} {new.dtype}"
            raise _fault(
                leaf, "the new value does not fit", f"{list(leaf.shape)} {leaf.dtype}", got
            )
        if leaves.count(leaf) > 1:
            raise _fault(leaf, "a leaf is updated twice", "one update", "two")


def _fault(node: Node, what: str, expected: str | None, got: str | None) -> SpecError:
    name = f"{node.op.name} {node.name!r}" if node.name else node.op.name
    return SpecError(f"{name}: {what}", expected=expected, got=got, origin=node.origin)


__all__ = ["check", "check_names"]
