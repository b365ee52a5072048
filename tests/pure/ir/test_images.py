"""Transposed convolution, resizing and adaptive pooling, against loops in float64."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from meganeura.errors import MeganeuraError, OptionError, ShapeError
from meganeura.ir import build
from meganeura.ir import composites as c
from tests.pure.ir.support import Array, agree, numbers, run


def text(error: MeganeuraError) -> list[str]:
    lines = str(error).splitlines()
    assert lines[1].startswith("  where:    test_images.py")
    return [lines[0], *(line.split(":", 1)[1].strip() for line in lines[2:])]


def transposed(
    x: Array,
    w: Array,
    stride: tuple[int, int] = (1, 1),
    padding: tuple[tuple[int, int], tuple[int, int]] = ((0, 0), (0, 0)),
    output_padding: tuple[int, int] = (0, 0),
    dilation: tuple[int, int] = (1, 1),
    groups: int = 1,
) -> Array:
    """Each element of the image adds its filter to the result, then the border is cut."""
    n, channels, height, width = x.shape
    share, kh, kw = w.shape[1:]
    full = [
        (size - 1) * s + d * (k - 1) + 1 + e
        for size, s, d, k, e in zip(
            (height, width), stride, dilation, (kh, kw), output_padding, strict=True
        )
    ]
    out = np.zeros((n, share * groups, *full))
    for place in np.ndindex(n, channels, height, width, share, kh, kw):
        b, channel, y, z, o, i, j = place
        group = channel // (channels // groups)
        row, column = y * stride[0] + i * dilation[0], z * stride[1] + j * dilation[1]
        out[b, group * share + o, row, column] += x[b, channel, y, z] * w[channel, o, i, j]
    (top, bottom), (left, right) = padding
    return out[:, :, top : full[0] - bottom, left : full[1] - right]


TRANSPOSED: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((2, 3, 4, 5), (3, 2, 3, 3), {}),
    ((1, 1, 1, 1), (1, 1, 1, 1), {}),
    (
        (2, 2, 3, 5),
        (2, 3, 3, 2),
        {"stride": (2, 3), "padding": ((1, 1), (1, 1)), "output_padding": (1, 2)},
    ),
    ((2, 4, 3, 3), (4, 1, 2, 3), {"groups": 2, "dilation": (2, 1), "stride": (2, 2)}),
    ((3, 2, 5, 1), (2, 2, 4, 4), {"padding": ((1, 0), (2, 1)), "stride": (1, 2)}),
    ((2, 3, 4, 4), (3, 1, 2, 2), {"groups": 3, "stride": (2, 2)}),
]


@pytest.mark.parametrize(("x", "w", "how"), TRANSPOSED, ids=str)
def test_conv_transpose2d(x: tuple[int, ...], w: tuple[int, ...], how: dict[str, Any]) -> None:
    agree(
        lambda x, w: c.conv_transpose2d(x, w, **how),
        lambda x, w: transposed(x, w, **how),
        numbers(x),
        numbers(w, 1),
    )


def test_conv_transpose2d_undoes_the_shape_of_conv2d() -> None:
    x, w = build.input_("x", (2, 3, 9, 8)), build.input_("w", (5, 3, 3, 2))
    y = build.conv2d(x, w, 2, 1)
    back = c.conv_transpose2d(y, w, 2, 1, (0, 0))
    assert (y.shape, back.shape) == ((2, 5, 5, 5), (2, 3, 9, 8))
    again = c.conv_transpose2d(y, w, 2, 1, 1)
    assert again.shape == (2, 3, 10, 9)
    assert build.conv2d(again, w, 2, 1).shape == y.shape


def test_what_conv_transpose2d_does_not_take() -> None:
    x, w = build.input_("x", (2, 3, 4, 4)), build.input_("w", (4, 2, 3, 3))
    with pytest.raises(ShapeError) as channels:
        c.conv_transpose2d(x, w)
    assert text(channels.value) == [
        "conv_transpose2d of [2, 3, 4, 4] and [4, 2, 3, 3] in 1 groups",
        "[N, C, H, W] and [C, O/groups, KH, KW], with C divisible by the groups",
        "[2, 3, 4, 4] and [4, 2, 3, 3]",
    ]
    w = build.input_("w", (3, 2, 3, 3))
    with pytest.raises(ShapeError) as extra:
        c.conv_transpose2d(x, w, output_padding=1)
    assert text(extra.value) == [
        "conv_transpose2d: stride and dilation are at least 1, output_padding below the stride",
        "0 <= output_padding < stride",
        "stride (1, 1), dilation (1, 1), output_padding (1, 1)",
    ]
    with pytest.raises(ShapeError) as nothing:
        c.conv_transpose2d(x, w, padding=3)
    assert text(nothing.value) == [
        "conv_transpose2d of [2, 3, 4, 4] leaves no image",
        "a height and a width of at least 1",
        "[0, 0]",
        "use less padding",
    ]


def nearest(x: Array, size: tuple[int, int]) -> Array:
    out = np.zeros((*x.shape[:-2], *size))
    for i, j in np.ndindex(*size):
        row, column = i * x.shape[-2] // size[0], j * x.shape[-1] // size[1]
        out[..., i, j] = x[..., row, column]
    return out


def bilinear(x: Array, size: tuple[int, int], align: bool) -> Array:
    def at(i: int, n: int, m: int) -> float:
        if align:
            return i * (n - 1) / (m - 1) if m > 1 else 0.0
        return min(max((i + 0.5) * n / m - 0.5, 0.0), n - 1.0)

    (h, w), out = x.shape[-2:], np.zeros((*x.shape[:-2], *size))
    for i, j in np.ndindex(*size):
        y, z = at(i, h, size[0]), at(j, w, size[1])
        top, left = math.floor(y), math.floor(z)
        bottom, right = min(top + 1, h - 1), min(left + 1, w - 1)
        upper = x[..., top, left] * (1 - (z - left)) + x[..., top, right] * (z - left)
        lower = x[..., bottom, left] * (1 - (z - left)) + x[..., bottom, right] * (z - left)
        out[..., i, j] = upper * (1 - (y - top)) + lower * (y - top)
    return out


SIZES = [((2, 3, 4, 5), (8, 10)), ((3, 5), (7, 3)), ((1, 1), (3, 1)), ((2, 17, 5), (1, 17))]
SIZES += [((2, 3, 3, 4), (3, 12)), ((2, 1, 6, 6), (2, 4)), ((0, 3, 3), (2, 5)), ((5, 7), (5, 7))]


@pytest.mark.parametrize(("shape", "size"), SIZES, ids=str)
def test_resize(shape: tuple[int, ...], size: tuple[int, int]) -> None:
    x = numbers(shape)
    agree(lambda x: c.resize(x, size), lambda x: nearest(x, size), x)
    for align in (False, True):
        agree(
            lambda x, a=align: c.resize(x, size, "bilinear", a),
            lambda x, a=align: bilinear(x, size, a),
            x,
        )


def test_resize_keeps_a_constant_and_a_ramp() -> None:
    flat = run(lambda x: c.resize(x, 7, "bilinear"), np.full((2, 5, 3), 2.5))
    np.testing.assert_allclose(flat, 2.5)
    ramp = run(lambda x: c.resize(x, (1, 9), "bilinear", True), np.arange(5.0)[None])
    np.testing.assert_allclose(ramp, np.linspace(0, 4, 9)[None], rtol=1e-6)


def pooled(x: Array, size: tuple[int, int]) -> Array:
    (h, w), out = x.shape[-2:], np.zeros((*x.shape[:-2], *size))
    for i, j in np.ndindex(*size):
        rows = slice(i * h // size[0], math.ceil((i + 1) * h / size[0]))
        columns = slice(j * w // size[1], math.ceil((j + 1) * w / size[1]))
        out[..., i, j] = x[..., rows, columns].mean((-2, -1))
    return out


POOLS = [((2, 3, 6, 8), (3, 2)), ((2, 3, 7, 5), (3, 2)), ((5, 7), (1, 1)), ((3, 4), (5, 6))]
POOLS += [((2, 17, 127), (4, 9)), ((1, 1), (1, 1)), ((0, 4, 6), (2, 4))]


@pytest.mark.parametrize(("shape", "size"), POOLS, ids=str)
def test_adaptive_avg_pool2d(shape: tuple[int, ...], size: tuple[int, int]) -> None:
    agree(lambda x: c.adaptive_avg_pool2d(x, size), lambda x: pooled(x, size), numbers(shape))


def test_what_resize_and_pooling_do_not_take() -> None:
    x = build.input_("x", (2, 4, 4))
    for mode, align in (("cubic", False), ("nearest", True)):
        with pytest.raises(OptionError) as modes:
            c.resize(x, 2, mode, align)
        assert text(modes.value) == [
            "resize has two modes, and corners to align in one",
            'mode="nearest", or mode="bilinear" with or without align_corners',
            f"mode={mode!r}, align_corners={align}",
        ]
    expected = "[..., H, W], and a height and a width of at least 1 on both sides"
    with pytest.raises(ShapeError) as sizes:
        c.resize(x, (0, 3))
    assert text(sizes.value) == [
        "resize of [2, 4, 4] to [0, 3]",
        expected,
        "[2, 4, 4] to [0, 3]",
    ]
    with pytest.raises(ShapeError) as axes:
        c.adaptive_avg_pool2d(build.input_("x", (4,)), 2)
    assert text(axes.value) == [
        "adaptive_avg_pool2d of [4] to [2, 2]",
        expected,
        "[4] to [2, 2]",
    ]
