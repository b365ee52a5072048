"""What lives on the device between calls: parameters and states, shared by the programs of one
model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from meganeura.errors import FeedError, NameClashError
from meganeura.ir.graph import Array, Node
from meganeura.ir.initial import first_value
from meganeura.runtime.device import Device, GpuDevice
from meganeura.runtime.feeds import as_array


class ParameterStore:
    """Device memory of parameters and states by name; made, with its first value, when first asked
    for.
    """

    def __init__(self, device: Device, seed: int = 0) -> None:
        self.device = device
        self.seed = seed
        self.nodes: dict[str, Node] = {}
        self._held: dict[str, Any] = {}

    def held(self, node: Node) -> Any:
        """The buffer (or array) of a parameter or state leaf."""
        name = str(node.name)
        known = self.nodes.get(name)
        if known is None:
            self.nodes[name] = node
            value = self._first(node)
            self._held[name] = self._place(name, value)
        elif (known.shape, known.dtype) != (node.shape, node.dtype):
            raise NameClashError(
                f"two parameters are called {name!r}",
                expected=f"{list(known.shape)} {known.dtype}",
                got=f"{list(node.shape)} {node.dtype}",
                hint="give one of them another name",
                origin=node.origin,
            )
        return self._held[name]

    def _first(self, node: Node) -> Array:
        if node.op.name == "parameter":
            return first_value(node, self.seed)
        return np.zeros(node.shape, node.dtype.numpy)

    def _place(self, name: str, value: Array) -> Any:
        if not isinstance(self.device, GpuDevice):
            return value.copy()
        buffer = self.device.buffer(value.nbytes, f"the parameter {name!r}")
        self.device.write(buffer, on_device(value))
        return buffer

    def free(self) -> None:
        """Gives the device memory back; values are first values again when next asked for."""
        for held in self._held.values():
            if isinstance(self.device, GpuDevice):
                held.destroy()
        self._held.clear()
        self.nodes.clear()

    def read(self, names: Iterable[str]) -> dict[str, Array]:
        """Values by name, in one wait."""
        wanted = [self.nodes[name] for name in names]
        if not isinstance(self.device, GpuDevice):
            return {str(n.name): np.array(self._held[str(n.name)]) for n in wanted}
        data = self.device.read([(self._held[str(n.name)], 0, n.nbytes) for n in wanted])
        return {str(n.name): from_device(raw, n) for n, raw in zip(wanted, data, strict=True)}

    def write(self, values: Mapping[str, Any]) -> None:
        """New values by name; all are checked before any is written."""
        checked = {name: self._checked(name, value) for name, value in values.items()}
        if isinstance(self.device, GpuDevice):
            self.device.settle()  # steps that were pushed before still see the old values
        for name, array in checked.items():
            if isinstance(self.device, GpuDevice):
                self.device.write(self._held[name], on_device(array))
            else:
                self._held[name][...] = array

    def _checked(self, name: str, value: Any) -> Array:
        node = self.nodes.get(name)
        if node is None:
            raise FeedError(
                f"there is no parameter {name!r}",
                expected="one of: " + ", ".join(sorted(self.nodes)),
                got=repr(name),
            )
        array = as_array(node, value)
        if tuple(array.shape) != node.shape:
            raise FeedError(
                f"the parameter {name!r} takes another shape",
                expected=str(list(node.shape)),
                got=str(list(array.shape)),
                origin=node.origin,
            )
        if array.dtype.kind not in "fiub":
            raise FeedError(
                f"the parameter {name!r} takes numbers",
                expected=f"{list(node.shape)} {node.dtype}",
                got=f"{list(array.shape)} {array.dtype}",
                origin=node.origin,
            )
        fitting: Array = np.array(array, node.dtype.numpy, order="C", copy=None)
        return fitting


def on_device(array: Array) -> Array:
    """The bytes of an array as they lie in a buffer: bools as u32, whole words."""
    if array.dtype == np.bool_:
        return np.array(array, np.uint32, order="C")
    flat: Array = np.array(array, order="C", copy=None)
    if flat.nbytes % 4:
        padding: Array = np.zeros(1, flat.dtype)
        flat = np.concatenate([flat.reshape(-1), padding])
    return flat


def from_device(raw: bytes, node: Node) -> Array:
    """An array of a node's shape and type from the bytes of its buffer."""
    if node.dtype.name == "bool":
        return np.asarray(np.frombuffer(raw, np.uint32).reshape(node.shape) != 0)
    return np.frombuffer(raw, node.dtype.numpy).reshape(node.shape).copy()
