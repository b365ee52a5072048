"""Running steps: feeds and outputs in rings of slots, many steps recorded into one submission.

Launches that touch a feed or an output have a bind group for every slot; all others have one. So
the same tape serves every step,
nothing is read back between steps, and the host stays ahead of the device.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from meganeura.errors import FeedError
from meganeura.ir.graph import Array, Node
from meganeura.plan import Plan
from meganeura.runtime.device import GpuDevice
from meganeura.runtime.feeds import checked
from meganeura.runtime.store import ParameterStore, from_device, on_device
from meganeura.runtime.tape import Entry, Recorder

HISTORY_BYTES = 8 << 20
"""Device memory for outputs that were not read yet, before they are fetched."""


class Ring:
    """Device memory of one tensor for every slot."""

    def __init__(self, device: GpuDevice, node: Node, slots: int) -> None:
        align = device.target.offset_alignment
        self.node = node
        self.bytes = max((node.nbytes + 15) // 16 * 16, 16)
        self.stride = _stride(node, align, slots)
        self.buffer = device.buffer(
            self.stride * slots, f"the tensor {node.name or node.op.name!r}"
        )

    def piece(self, slot: int) -> tuple[Any, int, int]:
        """The buffer, offset and size of a slot."""
        return self.buffer, slot * self.stride, self.bytes


class Staging:
    """Host memory for the feeds of one submission, and the submission that still reads it."""

    def __init__(self, inputs: Sequence[Node], align: int, slots: int) -> None:
        self.memory = {n: np.zeros((slots, _stride(n, align, slots)), np.uint8) for n in inputs}
        self.rows = {str(n.name): self._typed(n) for n in inputs}
        self.sending: Future[None] | None = None

    def _typed(self, node: Node) -> list[Array]:
        """For each slot a view in the feed's own type and shape."""
        memory = self.memory[node]
        dtype = np.uint32 if node.dtype.name == "bool" else node.dtype.numpy
        return [row[: node.nbytes].view(dtype).reshape(node.shape) for row in memory]

    def settle(self) -> None:
        """Waits until nothing reads the memory; raises what the submission raised.

        Another thread may wait as well: the submission is forgotten only when it is over.
        """
        sent = self.sending
        if sent is not None:
            try:
                sent.result()
            finally:
                if self.sending is sent:
                    self.sending = None


class GpuStepper:
    """Steps of one program on a GPU.

    The calling thread stages feeds and records; a second one writes the feeds, closes the recording
    and submits it, which is
    native code that holds no lock of the interpreter.
    """

    def __init__(
        self,
        plan: Plan,
        device: GpuDevice,
        store: ParameterStore,
        pipelines: Mapping[str, Any],
        slots: int,
    ) -> None:
        self.plan, self.device, self.store, self.slots = plan, device, store, max(slots, 1)
        self.inputs = plan.inputs
        needed = set(plan.graph.leaves("input"))
        self.recorder = Recorder.make()
        self._pipelines = pipelines
        self._buffers = self._intermediates()
        self._constants: dict[Node, Any] = {}
        self._feeds = {n: Ring(device, n, self.slots) for n in self.inputs if n in needed}
        self._outputs = {n: Ring(device, n, self.slots) for n in _output_holders(plan)}
        align = device.target.offset_alignment
        self._sets = [Staging(self.inputs, align, self.slots) for _ in range(2 if slots > 1 else 1)]
        self._turn = 0
        self._sender = ThreadPoolExecutor(1) if slots > 1 else None
        device.senders.add(self)
        self._groups: list[Any] = []
        self._tapes: list[list[Entry] | None] = [None] * self.slots
        self._staged = 0
        self._chunks: list[int] = []
        self._history: dict[Node, list[Array]] = {n: [] for n in self._outputs}
        self._kept = self._history_buffers()

    def _intermediates(self) -> dict[int, Any]:
        """Device memory of the plan's buffers; outputs have rings instead."""
        outputs = set(_output_holders(self.plan))
        used = {p.buffer for p in self.plan.memory.placements if p.node not in outputs}
        buffers = self.plan.memory.buffers
        return {
            b.index: self.device.buffer(b.nbytes, "an intermediate tensor")
            for b in buffers
            if b.index in used
        }

    @property
    def _rows(self) -> dict[str, list[Array]]:
        return self._sets[self._turn].rows

    def _history_buffers(self) -> dict[Node, tuple[Any, int]]:
        """Where outputs wait to be read, and how many submissions fit."""
        if self.slots == 1:
            return {}
        result = {}
        for node, ring in self._outputs.items():
            size = ring.stride * self.slots
            chunks = max(1, min(HISTORY_BYTES // size, 256))
            result[node] = (self.device.buffer(size * chunks, "the history of an output"), chunks)
        return result

    def push(self, feeds: Mapping[str, Any]) -> None:
        """Stages the feeds of one step; submits when all slots are taken."""
        slot = self._staged
        rows = self._rows
        if len(feeds) != len(rows):
            self._wrong(feeds)
        for name, value in feeds.items():
            try:
                rows[name][slot][...] = value
            except (KeyError, ValueError):
                self._wrong(feeds)
        self._staged = slot + 1
        if self._staged == self.slots:
            self.flush()

    def _wrong(self, feeds: Mapping[str, Any]) -> None:
        checked(self.inputs, feeds)
        raise FeedError(
            "the feeds do not fit", expected=", ".join(self._rows), got=", ".join(feeds)
        )

    def stage_one(self, feeds: Mapping[str, Any]) -> None:
        """Writes the feeds of one step to slot 0 without running it."""
        for name, value in checked(self.inputs, feeds).items():
            self._rows[name][0][...] = value
        self._write(self._sets[self._turn], 1)

    def _write(self, staging: Staging, count: int) -> None:
        for node, ring in self._feeds.items():
            self.device.write(ring.buffer, staging.memory[node][:count])

    def flush(self) -> None:
        """Submits what is staged: one write a feed, one compute pass for all steps."""
        count = self._staged
        if not count:
            return
        self._staged = 0
        staging = self._sets[self._turn]
        tapes = [self.tape(slot) for slot in range(count)]
        encoder = self.device.guarded(lambda: self._record(tapes))
        if self._sender is None:
            self.device.settle()  # steps that were pushed before this one come first
            self._send(staging, count, encoder)
        else:
            staging.sending = self._sender.submit(self._send, staging, count, encoder)
            self._turn = 1 - self._turn
            self._sets[self._turn].settle()
        if self._kept:
            self._chunks.append(count)
            if len(self._chunks) >= min(chunks for _, chunks in self._kept.values()):
                self._fetch()

    def _record(self, tapes: Sequence[Sequence[Entry]]) -> Any:
        """All launches of some steps in one compute pass."""
        encoder = self.device.handle.create_command_encoder()
        compute = encoder.begin_compute_pass()
        self.recorder.replay(compute, tapes)
        compute.end()
        self._keep(encoder)
        return encoder

    def _send(self, staging: Staging, count: int, encoder: Any) -> None:
        self._write(staging, count)
        self.device.guarded(lambda: self.device.handle.queue.submit([encoder.finish()]))

    def settle(self) -> None:
        """Waits until everything recorded is submitted."""
        for staging in self._sets:
            staging.settle()

    def _keep(self, encoder: Any) -> None:
        """Copies this submission's outputs to where they wait to be read."""
        for node, (buffer, _) in self._kept.items():
            ring = self._outputs[node]
            size = ring.stride * self.slots
            encoder.copy_buffer_to_buffer(ring.buffer, 0, buffer, len(self._chunks) * size, size)

    def _fetch(self) -> None:
        """Brings waiting outputs to the host."""
        self.settle()
        if not self._chunks:
            return
        pieces = [
            (b, 0, len(self._chunks) * self._outputs[n].stride * self.slots)
            for n, (b, _) in self._kept.items()
        ]
        for node, raw in zip(self._kept, self.device.read(pieces), strict=True):
            ring = self._outputs[node]
            table = np.frombuffer(raw, np.uint8).reshape(len(self._chunks), self.slots, ring.stride)
            for chunk, count in enumerate(self._chunks):
                self._history[node] += [
                    from_device(table[chunk, slot, : node.nbytes].tobytes(), node)
                    for slot in range(count)
                ]
        self._chunks = []

    def tape(self, slot: int) -> list[Entry]:
        """The launches of a step whose feeds and outputs lie in that slot."""
        found = self._tapes[slot]
        if found is None:
            shared = self._tapes[0] if slot else None
            found = [
                shared[i]
                if shared is not None and not self._slotted(kernel)
                else self._entry(kernel, slot)
                for i, kernel in enumerate(self.plan.kernels)
            ]
            self._tapes[slot] = found
        return found

    def _slotted(self, kernel: Any) -> bool:
        return any(b.node in self._feeds or b.node in self._outputs for b in kernel.bindings)

    def _entry(self, kernel: Any, slot: int) -> Entry:
        pipeline = self._pipelines[kernel.key]
        group = self.device.bind(pipeline, [self.piece(b.node, slot) for b in kernel.bindings])
        self._groups.append(group)
        return (pipeline._internal, group._internal, *kernel.grid)

    def piece(self, node: Node, slot: int) -> tuple[Any, int, int]:
        """Where a tensor lies in a slot."""
        node = self.plan.leaf_of.get(node, node)
        ring = self._feeds.get(node) or self._outputs.get(node)
        if ring is not None:
            return ring.piece(slot)
        if node.op.name == "constant":
            return self._whole(self._constant(node), node)
        if node.op.kind == "leaf":
            return self._whole(self.store.held(node), node)
        return self._whole(self._buffers[self.plan.placements[node]], node)

    def _whole(self, buffer: Any, node: Node) -> tuple[Any, int, int]:
        return buffer, 0, max((node.nbytes + 15) // 16 * 16, 16)

    def _constant(self, node: Node) -> Any:
        if node not in self._constants:
            value = node.attr("value").array
            self._constants[node] = self.device.buffer(node.nbytes, "a constant")
            self.device.write(self._constants[node], on_device(value))
        return self._constants[node]

    def wait(self) -> None:
        """Submits what is staged and waits until the device is done."""
        self.flush()
        self.settle()
        self.device.wait()

    def read(self, name: str) -> Array:
        """An output of all steps since it was last read, stacked on a new first axis."""
        node = dict(self.plan.holders)[name]
        shape = dict(self.plan.source.outputs)[name].shape
        self.flush()
        if node not in self._outputs:
            return self._leaf(node).reshape((1, *shape))
        if self.slots == 1:
            ring = self._outputs[node]
            (raw,) = self.device.read([(ring.buffer, 0, node.nbytes)])
            return from_device(raw, node).reshape((1, *shape))
        self._fetch()
        values, self._history[node] = self._history[node], []
        return (
            np.stack(values).reshape((-1, *shape))
            if values
            else np.zeros((0, *shape), node.dtype.numpy)
        )

    def read_all(self) -> dict[str, Array]:
        """The outputs of the last step, in one wait; for steppers of one slot."""
        self.flush()
        holders = dict(self.plan.holders)
        rings = {n: self._outputs[n] for n in holders.values() if n in self._outputs}
        data = self.device.read([(r.buffer, 0, n.nbytes) for n, r in rings.items()])
        values = {n: from_device(raw, n) for n, raw in zip(rings, data, strict=True)}
        shapes = {name: node.shape for name, node in self.plan.source.outputs}
        return {
            name: (values[n] if n in values else self._leaf(n)).reshape(shapes[name])
            for name, n in holders.items()
        }

    def _leaf(self, node: Node) -> Array:
        """An output that is a leaf itself."""
        if node.op.name == "constant":
            return np.array(node.attr("value").array)
        if node.op.name == "input":
            return np.array(self._rows[str(node.name)][0])
        self.store.held(node)
        return self.store.read([str(node.name)])[str(node.name)]


def _stride(node: Node, align: int, slots: int) -> int:
    """Bytes from one slot to the next: bindings start at aligned offsets."""
    size = max((node.nbytes + 15) // 16 * 16, 16)
    return (size + align - 1) // align * align if slots > 1 else size


def _output_holders(plan: Plan) -> list[Node]:
    return list(dict.fromkeys(n for _, n in plan.holders if n.op.kind != "leaf"))
