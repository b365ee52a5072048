"""Names of buffers in WGSL: the user's where they are legal, made ones otherwise."""

from __future__ import annotations

import re
from collections.abc import Iterable

from meganeura.ir.graph import Node

RESERVED = frozenset(
    re.findall(
        r"\w+",
        """
        State abs accumulate acos across active alias align all any arm array as asin atan atomic
        auto batch binding bitcast bool break builtin case ceil clamp class column compute const
        const_assert continue continuing cos cosh cross debugger default degrees delete demote
        diagnostic discard distance do dot down element else enable enum exp exp2 explicit export
        extends extern f16 f32 false filter final finally finish_element finish_row floor fma fn for
        fract fragment friend from function get goto group handle highp i32 if impl import in inout
        instanceof interface is k lane length let live load_a load_b location log log2 loop lowp m
        m4 main mat2x2 max mediump merge mesh meta min mix mod modf module move mut n n4 namespace
        new nil noexcept noinline nointerpolation normalize null nullptr of operator out override
        package packed part pass pow precise precision premerge private protected ptr public radians
        reach read read_write ref regardless register require resource return round row rowmajor
        sample sampler scratch select self set shared sign signed sin sinh size sizeof slice_a
        slice_b smooth smoothstep snorm spot_a spot_b sqrt start state static step storage store
        struct subroutine sum super switch tan tanh target template texture this thread throw trait
        transpose true trunc try type typedef u32 uniform union unless unorm unsafe use using v
        value var varying vec2 vec3 vec4 vertex virtual void volatile where while with workgroup
        write yield
        """,
    )
)


def _own_part(node: Node) -> str:
    """The name without the scopes around its layer, so that equal layers have equal kernels.

    "q.w" of "block3.q.w", and "q.w.m" of its moment.
    """
    parts = (node.name or "").split(".")
    return ".".join(parts[-3:] if node.op.name == "state" else parts[-2:])


class Names:
    """One name a buffer, given in order of first use."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._names: dict[Node, str] = {}
        self._taken = set(taken)

    def of(self, node: Node) -> str:
        """The name of a node's buffer."""
        if node not in self._names:
            self._names[node] = self._new(node)
        return self._names[node]

    def _new(self, node: Node) -> str:
        base = re.sub(r"\W", "_", _own_part(node), flags=re.ASCII).strip("_")
        if not base or not base[0].isalpha() or len(base) > 40:
            base = "t"
        if (
            base in RESERVED
            or base.startswith("mg_")
            or re.fullmatch(r"(v|next_[ab]|sum_.*|[ab])\d*", base)
        ):
            base += "_"
        name, count = base, 0
        while name in self._taken or name in RESERVED or name == "t" or name.endswith("__"):
            name, count = f"{base.rstrip('_')}_{count}" if base != "t" else f"t{count}", count + 1
        self._taken.add(name)
        return name
