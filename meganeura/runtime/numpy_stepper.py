"""Running steps in NumPy: the same kernels in the same order, each region by the reference of its
nodes.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from meganeura.codegen.kernel import Kernel
from meganeura.ir.graph import Array, Node
from meganeura.plan import Plan
from meganeura.runtime.feeds import checked
from meganeura.runtime.store import ParameterStore


class NumpyStepper:
    """Steps of one program, one after another."""

    def __init__(self, plan: Plan, store: ParameterStore, slots: int) -> None:
        self.plan, self.store, self.slots = plan, store, slots
        self.inputs = plan.inputs
        self._targets = {value: leaf for leaf, value in plan.updates}
        self._history: dict[str, list[Array]] = {name: [] for name, _ in plan.source.outputs}
        self.times: list[tuple[int, int]] | None = None

    def push(self, feeds: Mapping[str, Any]) -> None:
        """Runs one step."""
        arrays = checked(self.inputs, feeds)
        values: dict[Node, Array] = {n: arrays[str(n.name)] for n in self.inputs}
        for node in self.plan.graph.nodes:
            if node.op.name in ("parameter", "state"):
                values[node] = self.store.held(node)
            elif node.op.name == "constant":
                values[node] = node.attr("value").array
        for kernel in self.plan.kernels:
            self._timed(kernel, values)
        holders = dict(self.plan.holders)
        for name, node in self.plan.source.outputs:
            held = values.get(holders[name])
            array = held if held is not None else self.store.held(holders[name])
            self._history[name].append(np.array(array).reshape(node.shape))

    def _timed(self, kernel: Kernel, values: dict[Node, Array]) -> None:
        start = time.perf_counter_ns()
        self._run(kernel, values)
        if self.times is not None:
            self.times.append((start, time.perf_counter_ns()))

    def _run(self, kernel: Kernel, values: dict[Node, Array]) -> None:
        """Computes a kernel's nodes, keeps what it stores, and writes new values of leaves."""
        for region in kernel.arms:
            local: dict[Node, Array] = {}
            for node in region.nodes:
                operands = [local[n] if n in local else values[n] for n in node.inputs]
                local[node] = (
                    node.op.numpy(node, *operands)
                    if node.inputs or node not in values
                    else values[node]
                )
            for root in region.roots:
                leaf = self._targets.get(root)
                if leaf is None:
                    values[root] = local[root]
                else:
                    values[root] = np.array(local[root])
                    self.store.held(leaf)[...] = values[root]

    def flush(self) -> None:
        """Nothing is ever staged."""

    def wait(self) -> None:
        """Nothing is ever pending."""

    def read(self, name: str) -> Array:
        """An output of all steps since it was last read, stacked on a new first axis."""
        values, self._history[name] = self._history[name], []
        node = dict(self.plan.source.outputs)[name]
        return np.stack(values) if values else np.zeros((0, *node.shape), node.dtype.numpy)

    def read_all(self) -> dict[str, Array]:
        """The outputs of the last step."""
        return {name: self.read(name)[-1] for name in self._history}
