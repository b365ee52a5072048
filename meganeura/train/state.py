"""The state of a model on the host: parameters and moments by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from meganeura.ir.graph import Array, Graph, Node

State = dict[str, Array]


def kept(graph: Graph) -> tuple[Node, ...]:
    """The leaves that live on the device: parameters and states."""
    return (*graph.leaves("parameter"), *graph.leaves("state"))


def to_host(program: Any) -> State:
    """A copy of all that the program keeps on the device."""
    names = [name for name, _ in _held(program)]
    return {name: np.array(value) for name, value in program.store.read(names).items()}


def to_device(program: Any, state: Mapping[str, Array]) -> None:
    """Writes what the program keeps; other names are left alone."""
    names = dict(_held(program))
    program.store.write({name: value for name, value in state.items() if name in names})


def _held(program: Any) -> list[tuple[str, Node]]:
    """What the program keeps, by name; from now on it lies on the device."""
    nodes = kept(program.graph)
    for node in nodes:
        program.store.held(node)
    return [(str(node.name), node) for node in nodes]


def moments(program: Any, step_program: Any) -> tuple[Node, ...]:
    """What the training step keeps beside what the model itself keeps."""
    own = {node.name for node in kept(program.graph)}
    return tuple(n for n in step_program.graph.leaves("state") if n.name not in own)


def zeros(nodes: tuple[Node, ...]) -> State:
    """The first value of moments."""
    return {str(node.name): np.zeros(node.shape, node.dtype.numpy) for node in nodes}
