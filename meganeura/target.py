"""What an adapter can do, as plain numbers: all that the passes know about the device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Peaks:
    """Measured ceilings of one adapter.

    Units: floating-point operations a second, bytes a second, seconds.
    """

    flops: float
    bytes: float
    launch: float
    barrier: float


@dataclass(frozen=True)
class Target:
    """Frozen limits of an adapter; sizes in bytes, workgroups and invocations as counts."""

    name: str
    backend: Literal["Vulkan", "Metal", "NumPy"]
    kind: Literal["hardware", "software", "numpy"]
    vendor: str = ""
    driver: str = ""
    workgroup_memory: int = 16384
    invocations: int = 256
    workgroup_size: tuple[int, int, int] = (256, 256, 64)
    workgroups: int = 65535
    storage_buffers: int = 8
    storage_binding: int = 128 * 1024 * 1024
    buffer_size: int = 256 * 1024 * 1024
    offset_alignment: int = 256
    features: frozenset[str] = frozenset()
    subgroup: tuple[int, int] = (1, 128)
    units: int = 8
    peaks: Peaks | None = None

    @property
    def software(self) -> bool:
        """True when a processor pretends to be a GPU, or NumPy does the work."""
        return self.kind != "hardware"


WEBGPU_DEFAULTS = Target(name="WebGPU defaults", backend="Vulkan", kind="hardware")
"""The limits that every WebGPU implementation grants: the poorest device a program must fit."""

NUMPY = Target(
    name="NumPy",
    backend="NumPy",
    kind="numpy",
    driver="numpy",
    workgroup_memory=32768,
    storage_buffers=64,
    storage_binding=2**40,
    buffer_size=2**40,
    features=frozenset({"shader-f16"}),
    units=1,
)
"""The device that stands in where there is no adapter."""
