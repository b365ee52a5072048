"""Attention over primitive operations: scaled products, a mask, softmax, and the weighted sum."""

from __future__ import annotations

import math

from meganeura.errors import OptionError, ShapeError
from meganeura.ir import build
from meganeura.ir.build import Operand
from meganeura.ir.composites.activations import as_float, softmax
from meganeura.ir.composites.named import named
from meganeura.ir.graph import Node
from meganeura.ir.shapes import show
from meganeura.ir.source import here

HIDDEN = -1e30
"""The score of what may not be seen: its weight is 0, and no difference of two overflows."""


@named("attention")
def attention(
    q: Operand,
    k: Operand,
    v: Operand,
    causal: bool = False,
    window: int | None = None,
    scale: float | None = None,
) -> Node:
    """softmax(q @ k.T * scale) @ v, by heads: q [..., H, T, D], k [..., G, S, D], v [..., G, S, E].

    With G < H, each key head serves H / G query heads. `causal`: a query sees no later key, where
    the last query stands at the last key. `window`: and only that many keys, its own the last.
    `scale` is 1 / sqrt(D) by default. (Vaswani et al., 2017; Ainslie et al., 2023.)
    """
    query, key, value = as_float(q), as_float(k), as_float(v)
    _check(query, key, value)
    if window is not None and (window < 1 or not causal):
        raise OptionError(
            "a window is of causal attention, and at least 1",
            expected="causal=True, window >= 1",
            got=f"causal={causal}, window={window}",
            origin=here(),
        )
    lead, (heads, length, depth) = query.shape[:-3], query.shape[-3:]
    groups, keys = key.shape[-3:-1]
    grouped = build.reshape(query, (*lead, groups, heads // groups * length, depth))
    factor = 1.0 / math.sqrt(depth) if scale is None else scale
    scores = build.mul(build.matmul(grouped, build.transpose(key)), factor)
    if causal:
        wide = (*lead, groups, heads // groups, length, keys)
        scores = build.reshape(scores, wide)
        scores = build.where(_visible(length, keys, window), scores, HIDDEN)
        scores = build.reshape(scores, (*lead, groups, heads // groups * length, keys))
    result = build.matmul(softmax(scores), value)
    return build.reshape(result, (*lead, heads, length, value.shape[-1]))


def _visible(length: int, keys: int, window: int | None) -> Node:
    """Which key [S] each query [T] sees."""
    own = build.add(build.iota((length, keys), 0), keys - length)
    there = build.iota((length, keys), 1)
    seen = build.le(there, own)
    if window is None:
        return seen
    return build.and_(seen, build.lt(build.sub(own, there), window))


def _check(q: Node, k: Node, v: Node) -> None:
    ranks = {len(q.shape), len(k.shape), len(v.shape)}
    fits = (
        len(ranks) == 1
        and min(ranks) >= 3
        and q.shape[:-3] == k.shape[:-3] == v.shape[:-3]
        and k.shape[-3:-1] == v.shape[-3:-1]
        and q.shape[-1] == k.shape[-1]
        and k.shape[-3] > 0
        and q.shape[-3] % k.shape[-3] == 0
    )
    if not fits:
        raise ShapeError(
            f"attention of {show(q.shape)}, {show(k.shape)} and {show(v.shape)}",
            expected="[..., H, T, D], [..., G, S, D] and [..., G, S, E], with H divisible by G",
            got=f"{show(q.shape)}, {show(k.shape)} and {show(v.shape)}",
            hint="split the heads first: x.reshape(n, t, heads, depth).permute(0, 2, 1, 3)",
            origin=here(),
        )
