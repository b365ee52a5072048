"""Which adapters there are, which is used, and why the rest is not."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from meganeura.target import NUMPY, Target

FEATURES = (
    "timestamp-query",
    "timestamp-query-inside-passes",
    "timestamp-query-inside-encoders",
    "shader-f16",
    "subgroup",
    "immediates",
)
ASSUMED_UNITS = {"hardware": 128, "software": 4}
"""Compute units are not told by the adapter; these are assumptions until they are measured."""


@dataclass(frozen=True)
class DeviceInfo:
    """An adapter as `mg.devices()` lists it; `why_not` says why it is not the default."""

    name: str
    target: Target | None
    default: bool
    why_not: str | None
    adapter: Any = None

    def __str__(self) -> str:
        mark = "*" if self.default else " "
        return f"{mark} {self.name}" + (f"  ({self.why_not})" if self.why_not else "")


def target_of(adapter: Any) -> Target:
    """The limits of a wgpu adapter."""
    info, limits = adapter.info, adapter.limits
    kind: Any = "software" if info["adapter_type"] == "CPU" else "hardware"
    return Target(
        name=str(info["device"]),
        backend=info["backend_type"],
        kind=kind,
        vendor=str(info["vendor"]),
        driver=str(info["description"]),
        workgroup_memory=limits["max-compute-workgroup-storage-size"],
        invocations=limits["max-compute-invocations-per-workgroup"],
        workgroup_size=(
            limits["max-compute-workgroup-size-x"],
            limits["max-compute-workgroup-size-y"],
            limits["max-compute-workgroup-size-z"],
        ),
        workgroups=limits["max-compute-workgroups-per-dimension"],
        storage_buffers=min(limits["max-storage-buffers-per-shader-stage"], 4096),
        storage_binding=limits["max-storage-buffer-binding-size"],
        buffer_size=limits["max-buffer-size"],
        offset_alignment=limits["min-storage-buffer-offset-alignment"],
        features=frozenset(f for f in FEATURES if f in adapter.features),
        subgroup=(info.get("stackgroup_min_size") or 1, info.get("stackgroup_max_size") or 128),
        units=ASSUMED_UNITS[kind],
    )


_ALONE = threading.Lock()
"""Drivers of OpenGL end the process when two threads list adapters at once."""


@lru_cache(maxsize=1)
def _listed() -> tuple[Any, ...]:
    import wgpu

    return tuple(wgpu.gpu.enumerate_adapters_sync())


def _adapters() -> tuple[list[Any], str | None]:
    """All adapters of wgpu, or why there are none."""
    try:
        with _ALONE:
            return list(_listed()), None
    except Exception as error:  # a missing loader or library shows in many types
        return [], f"{type(error).__name__}: {error}"


def devices() -> tuple[DeviceInfo, ...]:
    """Every adapter and the NumPy device; exactly one is the default: hardware first, then
    software, then NumPy.
    """
    adapters, problem = _adapters()
    usable = [a for a in adapters if a.info["backend_type"] in ("Vulkan", "Metal")]
    best = min(usable, key=lambda a: a.info["adapter_type"] == "CPU", default=None)
    rows = []
    for adapter in adapters:
        backend = adapter.info["backend_type"]
        name = f"{adapter.info['device']} · {backend}"
        if adapter not in usable:
            why = (
                f"{backend} cannot do what is needed; the same chip is used through Vulkan or Metal"
            )
            rows.append(DeviceInfo(name, None, False, why, adapter))
        else:
            why_not = None if adapter is best else "another adapter comes first"
            rows.append(DeviceInfo(name, target_of(adapter), adapter is best, why_not, adapter))
    why_numpy = None if best is None else "a GPU adapter is there"
    label = "NumPy" + (f" · no adapter: {problem}" if problem else "")
    return (*rows, DeviceInfo(label, NUMPY, best is None, why_numpy))
