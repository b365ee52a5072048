"""Devices: buffers, pipelines, submission and reading, on a GPU through wgpu or in NumPy."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any
from weakref import WeakSet

import numpy as np

from meganeura.errors import DeviceError, DeviceLostError, TargetError
from meganeura.ir.graph import Array, Node
from meganeura.runtime.adapters import devices, target_of
from meganeura.target import NUMPY, Target

THREADS = 8


class GpuDevice:
    """A wgpu device with a cache of pipelines keyed by the hash of their WGSL."""

    def __init__(self, adapter: Any) -> None:
        import wgpu

        self.target = target_of(adapter)
        features = sorted(self.target.features)
        self.lost: str | None = None
        self.handle = adapter.request_device_sync(
            required_features=features, required_limits=dict(adapter.limits)
        )
        usage = wgpu.BufferUsage
        self._storage = usage.STORAGE | usage.COPY_SRC | usage.COPY_DST
        self._pipelines: dict[tuple[str, bool], Any] = {}
        self._lock = threading.Lock()
        self.verified: set[str] = set()
        self.allocated = 0
        self.senders: WeakSet[Any] = WeakSet()

    @property
    def name(self) -> str:
        """The adapter's name and backend."""
        return f"{self.target.name} · {self.target.backend}"

    def buffer(self, nbytes: int, label: str = "") -> Any:
        """Storage of so many bytes (whole vectors), zero at first."""
        size = max((nbytes + 15) // 16 * 16, 16)
        limit = min(self.target.buffer_size, self.target.storage_binding)
        if size > limit:
            raise TargetError(
                f"{label or 'a tensor'} needs {size:,} bytes in one buffer",
                expected=f"at most {limit:,} bytes on {self.name}",
                got=f"{size:,} bytes",
                hint="use a smaller batch, or split the tensor",
            )
        self.allocated += size
        return self.guarded(lambda: self.handle.create_buffer(size=size, usage=self._storage))

    def write(self, buffer: Any, array: Array, offset: int = 0) -> None:
        """Copies a contiguous array into a buffer, in queue order."""
        if array.nbytes:
            self.guarded(lambda: self.handle.queue.write_buffer(buffer, offset, array))

    def read(self, pieces: Sequence[tuple[Any, int, int]]) -> list[bytes]:
        """The bytes of (buffer, offset, count) pieces, in one copy and one wait, after all that was
        recorded.
        """
        import wgpu

        self.settle()
        sizes = [(n + 3) // 4 * 4 for _, _, n in pieces]
        total = sum(sizes)
        if not total:
            return [b"" for _ in pieces]
        usage = wgpu.BufferUsage

        def copy() -> bytes:
            stage = self.handle.create_buffer(size=total, usage=usage.COPY_DST | usage.MAP_READ)
            encoder = self.handle.create_command_encoder()
            at = 0
            for (buffer, offset, _), size in zip(pieces, sizes, strict=True):
                if size:
                    encoder.copy_buffer_to_buffer(buffer, offset, stage, at, size)
                at += size
            self.handle.queue.submit([encoder.finish()])
            stage.map_sync(wgpu.MapMode.READ)
            data = bytes(stage.read_mapped(copy=False))
            stage.unmap()
            stage.destroy()
            return data

        data = self.guarded(copy)
        result, at = [], 0
        for (_, _, count), size in zip(pieces, sizes, strict=True):
            result.append(data[at : at + count])
            at += size
        return result

    def settle(self) -> None:
        """Returns when what other threads were given to submit is submitted."""
        for sender in list(self.senders):
            sender.settle()

    def wait(self) -> None:
        """Returns when everything submitted is done."""
        self.guarded(self.handle._poll_wait)

    def guarded(self, action: Callable[[], Any]) -> Any:
        """Runs a device call; a lost device is reported as such and not as whatever the driver
        says.
        """
        if self.lost is not None:
            raise _lost(self.name, self.lost)
        try:
            return action()
        except Exception as error:
            text = str(error)
            if "lost" in text.lower():
                self.lost = next(
                    line.strip() for line in text.split("\n") if "lost" in line.lower()
                )
                raise _lost(self.name, self.lost) from error
            raise

    def pipelines(self, codes: Mapping[str, str], trusted: frozenset[str]) -> dict[str, Any]:
        """A pipeline for each WGSL text by key; missing ones are made on threads."""
        wanted = {key: (key, key in trusted) for key in codes}
        missing = [(key, full) for key, full in wanted.items() if full not in self._pipelines]
        if missing:
            with ThreadPoolExecutor(THREADS) as pool:
                made = list(
                    pool.map(lambda item: self._pipeline(codes[item[0]], item[1][1]), missing)
                )
            with self._lock:
                for (_, full), pipeline in zip(missing, made, strict=True):
                    self._pipelines[full] = pipeline
        return {key: self._pipelines[full] for key, full in wanted.items()}

    def _pipeline(self, code: str, trusted: bool) -> Any:
        """A compute pipeline, without bounds checks when the kernel is trusted."""

        def create() -> Any:
            module = (
                trusted_module(self.handle, code)
                if trusted
                else self.handle.create_shader_module(code=code)
            )
            return self.handle.create_compute_pipeline(
                layout="auto", compute={"module": module, "entry_point": "main"}
            )

        try:
            return self.guarded(create)
        except DeviceLostError:
            raise
        except Exception as error:
            raise DeviceError(
                f"{self.name} refuses a kernel",
                expected="WGSL that the driver takes",
                got=next(
                    (x for x in str(error).split("\n") if "error" in x[9:]), str(error)
                ).strip(),
                hint="this is a fault of the compiler: report the kernel's WGSL",
            ) from error

    def bind(self, pipeline: Any, pieces: Sequence[tuple[Any, int, int]]) -> Any:
        """A bind group of (buffer, offset, size) pieces for a pipeline."""
        entries = [
            {"binding": i, "resource": {"buffer": b, "offset": o, "size": n}}
            for i, (b, o, n) in enumerate(pieces)
        ]
        layout = self.guarded(lambda: pipeline.get_bind_group_layout(0))
        return self.guarded(lambda: self.handle.create_bind_group(layout=layout, entries=entries))


def _lost(name: str, reason: str) -> DeviceLostError:
    return DeviceLostError(
        f"the device {name} was lost",
        expected="a driver that keeps running",
        got=reason,
        hint="restart the kernel; what was read back, and the last checkpoint, are intact",
    )


def trusted_module(device: Any, code: str) -> Any:
    """A shader module without bounds checks: only for kernels that a checked run has verified."""
    from wgpu.backends.wgpu_native._api import (
        GPUShaderModule,
        ffi,
        lib,
        new_struct_p,
        to_c_string_view,
    )

    if not hasattr(lib, "wgpuDeviceCreateShaderModuleTrusted"):
        return device.create_shader_module(code=code)
    source = new_struct_p("WGPUShaderSourceWGSL *", code=to_c_string_view(code))
    source[0].chain.next = ffi.NULL
    source[0].chain.sType = lib.WGPUSType_ShaderSourceWGSL
    descriptor = new_struct_p(
        "WGPUShaderModuleDescriptor *",
        label=to_c_string_view("trusted"),
        nextInChain=ffi.cast("WGPUChainedStruct *", source),
    )
    return GPUShaderModule(
        "trusted", lib.wgpuDeviceCreateShaderModuleTrusted(device._internal, descriptor, 0), device
    )


class NumpyDevice:
    """The device that is always there: kernels' regions run by their NumPy reference."""

    def __init__(self, target: Target = NUMPY) -> None:
        self.target = target
        self.lost: str | None = None
        self.verified: set[str] = set()

    @property
    def name(self) -> str:
        """NumPy, and nothing hidden about it."""
        return "NumPy"

    def array(self, node: Node) -> Array:
        """A zero array for a node."""
        return np.zeros(node.shape, node.dtype.numpy)


Device = GpuDevice | NumpyDevice


@lru_cache(maxsize=8)
def _gpu(position: int) -> GpuDevice:
    """The device of the adapter at a place in `devices()`, opened once a process."""
    return GpuDevice(devices()[position].adapter)


def get_device(device: str | Device | None = None) -> Device:
    """The device of that name: "gpu", "numpy", part of an adapter's name, or None for the default.

    Raises DeviceError when there is none such.
    """
    if isinstance(device, (GpuDevice, NumpyDevice)):
        return device
    if device == "numpy":
        return NumpyDevice()
    rows = devices()
    gpus = [(i, r) for i, r in enumerate(rows) if r.adapter is not None and r.target is not None]
    if device is None:
        chosen = next((i for i, r in gpus if r.default), None)
        return NumpyDevice() if chosen is None else _gpu(chosen)
    named = [i for i, r in gpus if device == "gpu" or device.lower() in r.name.lower()]
    default = [i for i in named if rows[i].default]
    if not named:
        raise DeviceError(
            f"there is no device {device!r}" if device != "gpu" else "there is no GPU adapter",
            expected="one of: " + ", ".join(["numpy", *(r.name for _, r in gpus)]),
            got=repr(device),
            hint="install a Vulkan driver (Debian, Ubuntu: apt-get install libvulkan1 "
            'mesa-vulkan-drivers), or use device="numpy"',
        )
    return _gpu((default or named)[0])
