"""A graph from the tensors that a program shall give."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from meganeura.errors import NameClashError, OptionError
from meganeura.ir.graph import Graph, Node
from meganeura.ir.source import here
from meganeura.ir.spec import check_names
from meganeura.tensor.tensor import Tensor

Outputs = Tensor | Sequence[Tensor] | Mapping[str, Tensor]


def graph_of(outputs: Outputs) -> Graph:
    """The graph that computes the outputs: each under its key, its own name, or "out" and a number.

    NameClashError when two different leaves or two outputs have one name; OptionError for what is
    no tensor.
    """
    seen: dict[str, Node] = {}
    for name, node in _named(outputs):
        if name in seen:
            raise NameClashError(
                f"two outputs are named {name!r}",
                expected="a name for each output",
                got=f"{list(seen[name].shape)} and {list(node.shape)}",
                hint='name them, as in mg.compile({"loss": loss, "logits": logits})',
                origin=here(),
            )
        seen[name] = node
    if not seen:
        raise _not_tensors("none")
    graph = Graph(tuple(seen.items()))
    check_names(graph)
    return graph


def _named(outputs: Any) -> Iterable[tuple[str, Node]]:
    if isinstance(outputs, Tensor):
        return [(outputs.name or "out", outputs.node)]
    if isinstance(outputs, Mapping):
        return [(str(name), _node(tensor)) for name, tensor in outputs.items()]
    if isinstance(outputs, Sequence) and not isinstance(outputs, str):
        nodes = [_node(tensor) for tensor in outputs]
        return [(node.name or f"out{i}", node) for i, node in enumerate(nodes)]
    raise _not_tensors(type(outputs).__name__)


def _node(tensor: Any) -> Node:
    if not isinstance(tensor, Tensor):
        raise _not_tensors(type(tensor).__name__)
    return tensor.node


def _not_tensors(got: str) -> OptionError:
    return OptionError(
        "nothing to compile",
        expected="a tensor, several tensors, or tensors by name",
        got=got,
        hint='mg.compile({"loss": loss, "logits": logits})',
        origin=here(),
    )
