"""How a region walks through memory: which loop variable moves to the next element."""

from __future__ import annotations

from meganeura.fuse.region import Region
from meganeura.ir import index as ix
from meganeura.ir.graph import Node
from meganeura.ir.index import Index, Indices


def fastest(region: Region, node: Node, at: Indices, names: tuple[str, ...]) -> str | None:
    """The first of the variables that moves by one element in the largest tensor that is read; None
    when none does in any.
    """
    for flat in addresses(region, node, at):
        steps = {_variable(atom) for atom, c in flat.terms if abs(c) == 1}
        for name in names:
            if name in steps:
                return name
    return None


def addresses(region: Region, node: Node, at: Indices) -> list[Index]:
    """Addresses of the tensors that a value needs, the largest first."""
    found: list[tuple[int, Index]] = []
    inputs = set(region.inputs)
    stack, seen = [(node, at)], set()
    while stack:
        current, where = stack.pop()
        if (current, where) in seen:
            continue
        seen.add((current, where))
        if current in inputs:
            found.append((-current.size, ix.flatten(where, current.shape)))
        elif current.op.kind == "view":
            stack.append((current.inputs[0], ix.read(current, where).indices))
        elif current.op.kind == "map":
            stack.extend((n, where) for n in current.inputs)
    return [flat for _, flat in sorted(found, key=lambda item: item[0])]


def _variable(atom: ix.Atom) -> str:
    """The variable that an atom moves with, for a remainder or a variable itself."""
    while atom.kind == "mod" and atom.of is not None and atom.of.terms:
        atom = min(atom.of.terms, key=lambda t: abs(t[1]))[0]
    return atom.name if atom.kind == "var" else ""
