"""Every composite's value against independent NumPy, at odd shapes and hard numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from meganeura.errors import DTypeError, MeganeuraError, OptionError, ShapeError
from meganeura.ir import build
from meganeura.ir import composites as c
from meganeura.ir.dtypes import f16, i32
from meganeura.ir.graph import Node, topological
from tests.pure.ir.support import SHAPES, Array, agree, numbers, run


def each(function: Callable[[float], float]) -> Callable[[Array], Array]:
    return lambda x: np.array([function(float(v)) for v in x.ravel()]).reshape(x.shape)


def gelu_tanh(v: float) -> float:
    return 0.5 * v * (1 + math.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v**3)))


ACTIVATIONS: dict[str, tuple[Callable[[Node], Node], Callable[[float], float]]] = {
    "relu": (c.relu, lambda v: v if v > 0 else 0.0),
    "sigmoid": (c.sigmoid, lambda v: 1 / (1 + math.exp(-v))),
    "silu": (c.silu, lambda v: v / (1 + math.exp(-v))),
    "gelu": (c.gelu, lambda v: v * 0.5 * math.erfc(-v / math.sqrt(2))),
    "gelu tanh": (lambda x: c.gelu(x, "tanh"), gelu_tanh),
    "softplus": (c.softplus, lambda v: math.log1p(math.exp(v))),
}


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name: str, shape: tuple[int, ...]) -> None:
    function, scalar = ACTIVATIONS[name]
    agree(function, each(scalar), 2 * numbers(shape))


def softmax_rows(x: Array) -> Array:
    rows = x.reshape(math.prod(x.shape[:-1]), x.shape[-1])
    out = [[math.exp(v) / math.fsum(map(math.exp, row)) for v in row] for row in rows.tolist()]
    return np.array(out).reshape(x.shape)


@pytest.mark.parametrize("shape", [(1,), (3, 1), (2, 3, 5), (2, 17), (1, 127), (0, 3)], ids=str)
def test_softmax_and_its_kin(shape: tuple[int, ...]) -> None:
    x = numbers(shape)
    agree(c.softmax, softmax_rows, x)
    agree(c.log_softmax, lambda x: np.log(softmax_rows(x)), x)
    agree(c.logsumexp, lambda x: np.log(np.exp(x).sum(-1)), x)
    agree(lambda x: c.softmax(x, 0), lambda x: softmax_rows(x.T).T, x.reshape(-1, shape[-1]))
    agree(
        lambda x: c.logsumexp(x, keepdims=True),
        lambda x: np.log(np.exp(x).sum(-1, keepdims=True)),
        x,
    )


def test_softmax_of_large_numbers() -> None:
    x = np.array([[1e4, 1e4 - 1, -1e4], [-3e38, -3e38, -3e38]])
    value = run(c.softmax, x, real=None)
    np.testing.assert_allclose(value[0], [1 / (1 + math.exp(-1)), 1 / (1 + math.e), 0], rtol=1e-6)
    np.testing.assert_allclose(value[1], [1 / 3] * 3, rtol=1e-6)
    assert run(c.logsumexp, x, real=None)[0] == pytest.approx(1e4 + math.log1p(math.exp(-1)))
    assert run(c.softplus, np.array([-200.0, 0.0, 200.0]), real=None).tolist() == [
        0.0,
        pytest.approx(math.log(2)),
        200.0,
    ]
    assert run(c.sigmoid, np.array([-200.0, 200.0]), real=None) == pytest.approx([0.0, 1.0])


@pytest.mark.parametrize("shape", [(1, 2), (5, 3), (2, 3, 17), (4, 1), (127, 10)], ids=str)
def test_cross_entropy(shape: tuple[int, ...]) -> None:
    x = numbers(shape)
    labels = np.random.default_rng(1).integers(0, shape[-1], shape[:-1]).astype(np.int32)
    rows = softmax_rows(x).reshape(-1, shape[-1])
    losses = np.array([-math.log(r[k]) for r, k in zip(rows, labels.ravel(), strict=True)])
    agree(c.cross_entropy, lambda *_: losses.mean(), x, labels)
    agree(lambda x, y: c.cross_entropy(x, y, "sum"), lambda *_: losses.sum(), x, labels)
    expected = losses.reshape(shape[:-1])
    agree(lambda x, y: c.cross_entropy(x, y, "none"), lambda *_: expected, x, labels)


def test_losses_of_two_tensors() -> None:
    a, b = numbers((3, 5), 1), numbers((3, 5), 2)
    agree(c.mse, lambda a, b: ((a - b) ** 2).mean(), a, b)
    agree(c.l1, lambda a, b: np.abs(a - b).mean(), a, b)
    t = (b > 0) * 1.0

    def bce(z: Array, t: Array) -> Array:
        p = 1 / (1 + np.exp(-z))
        return np.asarray(-t * np.log(p) - (1 - t) * np.log(1 - p))

    agree(c.bce_with_logits, lambda z, t: bce(z, t).mean(), a, t)
    agree(lambda z, t: c.bce_with_logits(z, t, "none"), bce, a, t)
    far = run(lambda z, t: c.bce_with_logits(z, t, "none"), np.array([-500.0, 500.0]), np.zeros(2))
    assert far.tolist() == [0.0, 500.0]


def standardised(x: Array, axes: Any, eps: float) -> Array:
    return np.asarray((x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps))


@pytest.mark.parametrize("shape", [(1, 3), (5, 17), (2, 3, 127), (0, 4), (3, 1)], ids=str)
def test_layer_and_rms_norm(shape: tuple[int, ...]) -> None:
    x, w, b = numbers(shape), numbers(shape[-1:], 1), numbers(shape[-1:], 2)
    agree(c.layer_norm, lambda x: standardised(x, -1, 1e-5), x)
    agree(c.layer_norm, lambda x, w, b: standardised(x, -1, 1e-5) * w + b, x, w, b)
    rms = np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6)
    agree(c.rms_norm, lambda x, w: x / rms * w, x, w)


def test_group_and_batch_norm() -> None:
    x, w, b = numbers((3, 4, 5, 2)), numbers((4,), 1), numbers((4,), 2)
    column = (slice(None), None, None)

    def grouped(x: Array, w: Array, b: Array) -> Array:
        normal = standardised(x.reshape(3, 2, 20), -1, 1e-5).reshape(x.shape)
        return np.asarray(normal * w[column] + b[column])

    agree(lambda x, w, b: c.group_norm(x, 2, w, b), grouped, x, w, b)


def test_var() -> None:
    x = numbers((3, 5))
    agree(c.var, np.var, x)
    agree(lambda x: c.var(x, 1, correction=1), lambda x: np.var(x, axis=1, ddof=1), x)


def pooled(x: Array, size: Any, stride: Any, pads: Any, dilation: Any, how: Any) -> Array:
    """Pooling by loops; padding is left out of each window."""
    padded = np.pad(x, [(0, 0)] * (x.ndim - 2) + list(pads), constant_values=np.nan)
    reach = [d * (s - 1) + 1 for s, d in zip(size, dilation, strict=True)]
    counts = [(padded.shape[i - 2] - reach[i]) // stride[i] + 1 for i in (0, 1)]
    out = np.zeros((*x.shape[:-2], *counts))
    for i, j in np.ndindex(*counts):
        rows = slice(i * stride[0], i * stride[0] + reach[0], dilation[0])
        columns = slice(j * stride[1], j * stride[1] + reach[1], dilation[1])
        out[..., i, j] = how(padded[..., rows, columns], axis=(-2, -1))
    return out


POOLS = [
    ((1, 1, 2, 2), (2, 2), (2, 2), ((0, 0), (0, 0))),
    ((2, 3, 5, 7), (2, 2), (2, 2), ((0, 0), (0, 0))),
    ((2, 3, 5, 7), (3, 2), (1, 2), ((1, 1), (0, 1))),
    ((3, 2, 4, 4), (1, 1), (2, 2), ((0, 0), (0, 0))),
    ((5, 6), (2, 3), (2, 3), ((1, 0), (0, 0))),
]


@pytest.mark.parametrize("case", POOLS, ids=str)
def test_pooling(case: Any) -> None:
    shape, size, stride, pads = case
    x = numbers(shape)
    agree(
        lambda x: c.max_pool2d(x, size, stride, pads),
        lambda x: pooled(x, size, stride, pads, (1, 1), np.nanmax),
        x,
    )
    agree(
        lambda x: c.avg_pool2d(x, size, stride, pads, count_include_pad=False),
        lambda x: pooled(x, size, stride, pads, (1, 1), np.nanmean),
        x,
    )
    agree(
        lambda x: c.avg_pool2d(x, size, stride, pads),
        lambda x: pooled(x, size, stride, pads, (1, 1), np.nansum) / math.prod(size),
        x,
    )


def test_max_pool_with_dilation_and_half_precision() -> None:
    agree(
        lambda x: c.max_pool2d(x, 2, 1, 0, (2, 3)),
        lambda x: pooled(x, (2, 2), (1, 1), ((0, 0), (0, 0)), (2, 3), np.nanmax),
        numbers((2, 4, 5)),
    )
    low = run(
        lambda x: c.max_pool2d(build.cast(x, f16), 2, 2, 1), -(numbers((2, 2)) ** 2), real=None
    )
    assert np.isfinite(low).all()


def test_joining_splitting_and_encoding() -> None:
    a, b = numbers((2, 3), 1), numbers((2, 3), 2)
    agree(lambda a, b: c.concat([a, b], 1), lambda a, b: np.hstack([a, b]), a, b)
    agree(lambda a, b: c.stack([a, b], 1), lambda a, b: np.stack([a, b], 1), a, b)
    agree(lambda a, b: c.stack([a, b], -1), lambda a, b: np.stack([a, b], -1), a, b)
    agree(lambda a, b: c.split(a, [1, 2], 1)[1], lambda a, b: a[:, 1:], a, b)
    agree(lambda a, b: c.split(a, 2)[0], lambda a, b: a[:1], a, b)
    labels = np.array([[0, 2], [1, 5]], np.int32)
    agree(lambda x: c.one_hot(x, 3), lambda x: (x[..., None] == np.arange(3)) * 1.0, labels)
    mixed = run(lambda a, n: c.concat([a, n], 1), a, np.array([[1], [2]], np.int32))
    assert mixed[:, 3].tolist() == [1.0, 2.0]


def test_composites_name_their_nodes() -> None:
    x = build.input_("x", (3, 4))
    loss = c.cross_entropy(x, build.constant([0, 1, 2], i32))
    found = {n.origin.composite for n in topological([loss]) if n is not x}
    assert ("cross_entropy",) in found
    assert ("cross_entropy", "logsumexp") in found


def test_cross_entropy_reads_a_row_in_one_pass() -> None:
    """One maximum and two sums over the logits, none of them over another's result."""
    x = build.input_("x", (3, 4))
    loss = c.cross_entropy(x, build.input_("y", (3,), i32))
    reductions = [n for n in topological([loss]) if n.op.kind == "reduce"]
    assert sorted(n.op.name for n in reductions) == ["reduce_max", "sum", "sum", "sum"]
    wide = [n for n in reductions if n.inputs[0].shape == (3, 4)]
    assert len(wide) == 3


def message(error: MeganeuraError) -> list[str]:
    return [line for line in str(error).splitlines() if not line.startswith("  where:")]


def test_what_does_not_fit() -> None:
    x, y = build.input_("x", (4, 3)), build.input_("y", (5,), i32)
    with pytest.raises(ShapeError) as shape:
        c.cross_entropy(x, y)
    assert message(shape.value) == [
        "cross_entropy of logits [4, 3] and labels [5]",
        "  expected: logits [..., C] and labels [...]",
        "  got:      [4, 3] and [5]",
        "  try:      one label for each row of logits",
    ]
    assert "c.cross_entropy(x, y)" in str(shape.value)
    with pytest.raises(DTypeError) as dtype:
        c.cross_entropy(x, build.input_("z", (4,)))
    assert message(dtype.value) == [
        "cross_entropy takes integer labels",
        "  expected: i32 or u32",
        "  got:      f32",
        "  try:      cast them, as in labels.cast(mg.i32)",
    ]
    with pytest.raises(ShapeError) as shape:
        c.mse(x, build.input_("t", (3,)))
    assert message(shape.value) == [
        "mse of [4, 3] and [3]",
        "  expected: prediction and target of one shape",
        "  got:      [4, 3] and [3]",
        "  try:      reshape one of them; a loss does not broadcast",
    ]
    with pytest.raises(OptionError) as option:
        c.gelu(x, "fast")
    assert message(option.value) == [
        "gelu has two forms",
        '  expected: approximate="none" or approximate="tanh"',
        "  got:      approximate='fast'",
    ]
    with pytest.raises(ShapeError) as shape:
        c.group_norm(x, 2)
    assert message(shape.value) == [
        "group_norm of [4, 3] in 2 groups",
        "  expected: [N, C, ...] with C divisible by the groups",
        "  got:      [4, 3]",
    ]
    with pytest.raises(ShapeError) as shape:
        c.max_pool2d(x, 5)
    assert message(shape.value) == [
        "the window is larger than the padded input",
        "  expected: at least [5, 5]",
        "  got:      [4, 3]",
        "  try:      add padding, or use a smaller window",
    ]
    with pytest.raises(OptionError) as option:
        c.dropout(x, 1.0)
    assert message(option.value) == [
        "dropout's rate is a probability below 1",
        "  expected: 0 <= rate < 1",
        "  got:      rate=1.0",
    ]
