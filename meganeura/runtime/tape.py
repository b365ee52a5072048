"""The tape: a step as cached raw handles, replayed by direct calls, all launches in one compute
pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Entry = tuple[Any, Any, int, int, int]
"""Pipeline handle, bind group handle, and the grid."""


@dataclass(frozen=True)
class Recorder:
    """The native calls of a compute pass, looked up once."""

    set_pipeline: Any
    set_group: Any
    dispatch: Any
    nothing: Any

    @staticmethod
    def make() -> Recorder:
        """The calls of wgpu-native."""
        from wgpu.backends.wgpu_native._api import ffi, lib

        return Recorder(
            lib.wgpuComputePassEncoderSetPipeline,
            lib.wgpuComputePassEncoderSetBindGroup,
            lib.wgpuComputePassEncoderDispatchWorkgroups,
            ffi.NULL,
        )

    def replay(self, compute: Any, tapes: Sequence[Sequence[Entry]]) -> None:
        """Records the launches of some steps into an open compute pass."""
        handle, nothing = compute._internal, self.nothing
        set_pipeline, set_group, dispatch = self.set_pipeline, self.set_group, self.dispatch
        last = None
        for tape in tapes:
            for pipeline, group, x, y, z in tape:
                if pipeline is not last:
                    set_pipeline(handle, pipeline)
                    last = pipeline
                set_group(handle, 0, group, 0, nothing)
                dispatch(handle, x, y, z)
