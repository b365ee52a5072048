"""Attention against loops in float64, its gradients, and what does not fit."""

from __future__ import annotations

import math

import numpy as np
import pytest

from meganeura.errors import OptionError, ShapeError
from meganeura.ir import build
from meganeura.ir.composites import attention
from tests.pure.autodiff.numeric import check_gradients
from tests.pure.ir.support import Array, agree, numbers, run

CASES = [
    # batch, heads, key heads, queries, keys, depth, value depth, causal, window
    ((), 1, 1, 1, 1, 1, 1, False, None),
    ((2,), 2, 2, 3, 5, 4, 3, False, None),
    ((2,), 6, 2, 5, 5, 4, 4, True, None),
    ((1,), 9, 3, 17, 17, 8, 8, True, None),
    ((2,), 3, 1, 3, 7, 4, 4, True, None),
    ((), 2, 2, 7, 7, 4, 4, True, 3),
    ((2,), 2, 1, 5, 5, 128, 5, True, 1),
    ((0,), 2, 1, 5, 5, 4, 4, False, None),
]


def by_hand(q: Array, k: Array, v: Array, causal: bool, window: int | None) -> Array:
    heads, length, depth = q.shape[-3:]
    groups, keys = k.shape[-3:-1]
    out = np.zeros((*q.shape[:-1], v.shape[-1]))
    for place in np.ndindex(*q.shape[:-1]):
        *lead, head, i = place
        group = (*lead, head // (heads // groups))
        at = i + keys - length
        first = 0 if window is None else max(0, at - window + 1)
        seen = range(first, at + 1) if causal else range(keys)
        weights = [math.exp(q[place] @ k[(*group, j)] / math.sqrt(depth)) for j in seen]
        for weight, j in zip(weights, seen, strict=True):
            out[place] += weight / sum(weights) * v[(*group, j)]
    return out


@pytest.mark.parametrize("case", CASES, ids=str)
def test_attention(case: tuple[tuple[int, ...], int, int, int, int, int, int, bool, int]) -> None:
    lead, heads, groups, length, keys, depth, width, causal, window = case
    q = numbers((*lead, heads, length, depth), 1)
    k = numbers((*lead, groups, keys, depth), 2)
    v = numbers((*lead, groups, keys, width), 3)
    agree(
        lambda q, k, v: attention(q, k, v, causal, window),
        lambda q, k, v: by_hand(q, k, v, causal, window),
        q,
        k,
        v,
    )


def test_a_window_as_long_as_the_sequence_is_causal_attention() -> None:
    q, k, v = (numbers((2, 5, 4), i) for i in range(3))
    wide = run(lambda q, k, v: attention(q, k, v, True, 5), q, k, v)
    np.testing.assert_array_equal(wide, run(lambda q, k, v: attention(q, k, v, True), q, k, v))


def test_large_scores_stay_finite_in_float32() -> None:
    q, k, v = (1e4 * numbers((1, 3, 4), i) for i in range(3))
    assert np.isfinite(run(lambda q, k, v: attention(q, k, v, True), q, k, v, real=None)).all()


@pytest.mark.parametrize("causal", [False, True])
def test_gradients(causal: bool) -> None:
    q, k, v = numbers((2, 4, 3, 2), 1), numbers((2, 2, 4, 2), 2), numbers((2, 2, 4, 3), 3)
    check_gradients(lambda q, k, v: attention(q, k, v, causal), q, k, v, order=1, tolerance=5e-6)
    small = [numbers((2, 2, 2), i) for i in range(3)]
    check_gradients(lambda q, k, v: attention(q, k, v, causal), *small, tolerance=5e-6)


def test_what_does_not_fit() -> None:
    q, k = build.input_("q", (2, 4, 3, 8)), build.input_("k", (2, 3, 3, 8))
    with pytest.raises(ShapeError) as raised:
        attention(q, k, k)
    lines = str(raised.value).splitlines()
    assert [lines[0], *lines[2:]] == [
        "attention of [2, 4, 3, 8], [2, 3, 3, 8] and [2, 3, 3, 8]",
        "  expected: [..., H, T, D], [..., G, S, D] and [..., G, S, E], with H divisible by G",
        "  got:      [2, 4, 3, 8], [2, 3, 3, 8] and [2, 3, 3, 8]",
        "  try:      split the heads first: x.reshape(n, t, heads, depth).permute(0, 2, 1, 3)",
    ]
    with pytest.raises(OptionError) as option:
        attention(q, q, q, window=2)
    lines = str(option.value).splitlines()
    assert [lines[0], *lines[2:]] == [
        "a window is of causal attention, and at least 1",
        "  expected: causal=True, window >= 1",
        "  got:      causal=False, window=2",
    ]
