"""Rotary position embedding: pairs of features turned by an angle that grows with the position."""

from __future__ import annotations

import math

import numpy as np

from meganeura.errors import OptionError, ShapeError
from meganeura.ir import build
from meganeura.ir.build import Operand
from meganeura.ir.composites.activations import as_float
from meganeura.ir.composites.named import named
from meganeura.ir.dtypes import f32
from meganeura.ir.graph import Array, Node
from meganeura.ir.shapes import show
from meganeura.ir.source import here


@named("rotary_embedding")
def rotary_embedding(
    x: Operand, positions: Operand | None = None, base: float = 10000.0, interleaved: bool = False
) -> Node:
    """[..., T, D] with the pair i of features turned by position * base**(-2i / D).

    A pair is (i, i + D/2), or with `interleaved` (2i, 2i + 1). `positions` are 0 to T - 1, or
    numbers that broadcast to [..., T] (whole ones are exact to 65536). (Su et al., 2021.)
    """
    node = as_float(x)
    _check(node, base)
    half = node.shape[-1] // 2
    turns = base ** (-np.arange(half) / half) / (2.0 * math.pi)  # a position, in whole turns
    cos, sin = _angles(node, positions, turns)
    if interleaved:
        return _interleaved(node, cos, sin)
    rank, shape = len(node.shape), node.shape
    low, ones = (0,) * rank, (1,) * rank
    a = build.slice_(node, low, (*shape[:-1], half), ones)
    b = build.slice_(node, (*low[:-1], half), shape, ones)
    return build.concat(_turned(a, b, cos, sin), -1)


def _turned(a: Node, b: Node, cos: Node, sin: Node) -> list[Node]:
    return [
        build.sub(build.mul(a, cos), build.mul(b, sin)),
        build.add(build.mul(b, cos), build.mul(a, sin)),
    ]


def _interleaved(x: Node, cos: Node, sin: Node) -> Node:
    rank, shape = len(x.shape), x.shape
    steps = (*(1,) * (rank - 1), 2)
    a = build.slice_(x, (0,) * rank, shape, steps)
    b = build.slice_(x, (*(0,) * (rank - 1), 1), shape, steps)
    pairs = [build.reshape(n, (*n.shape, 1)) for n in _turned(a, b, cos, sin)]
    return build.reshape(build.concat(pairs, -1), shape)


def _check(x: Node, base: float) -> None:
    if len(x.shape) < 2 or x.shape[-1] % 2 or not x.shape[-1]:
        raise ShapeError(
            f"rotary_embedding of {show(x.shape)}",
            expected="[..., T, D] with an even D",
            got=show(x.shape),
            origin=here(),
        )
    if not base > 0.0:
        raise OptionError(
            "rotary_embedding's base is positive",
            expected="base > 0",
            got=f"base={base}",
            origin=here(),
        )


def _angles(x: Node, positions: Operand | None, turns: Array) -> tuple[Node, Node]:
    """Cosine and sine [..., T, D/2]; of known positions computed now, in float64."""
    if positions is None:
        angle = 2.0 * math.pi * np.outer(np.arange(x.shape[-2]), turns)
        return build.constant(np.cos(angle), x.dtype), build.constant(np.sin(angle), x.dtype)
    node = build.cast(build.as_node(positions), f32)
    _check_positions(x, node)
    # A turn more or less changes nothing, so only fractions of a turn are kept. 8 bits of the
    # factor times a whole position below 2**16 are exact, twice; what then remains is small.
    wide = build.reshape(node, (*node.shape, 1))
    first, rest = _leading_bits(turns)
    second, rest = _leading_bits(rest)
    fraction = build.mul(wide, build.constant(rest, f32))
    for factor in (first, second):
        whole = build.mul(wide, build.constant(factor, f32))
        part = build.sub(whole, build.floor(build.add(whole, 0.5)))
        fraction = build.add(fraction, part)
    near = build.sub(fraction, build.floor(build.add(fraction, 0.5)))
    angles = build.mul(near, 2.0 * math.pi)
    return build.cast(build.cos(angles), x.dtype), build.cast(build.sin(angles), x.dtype)


def _leading_bits(x: Array) -> tuple[Array, Array]:
    """The first 8 bits of each number, and the rest."""
    mantissa, exponent = np.frexp(x)
    leading = np.ldexp(np.floor(mantissa * 256.0), exponent - 8)
    return leading, x - leading


def _check_positions(x: Node, positions: Node) -> None:
    lead = x.shape[:-1]
    tail = lead[len(lead) - len(positions.shape) :]
    fits = len(positions.shape) <= len(lead) and all(
        n in (1, m) for n, m in zip(positions.shape, tail, strict=True)
    )
    if not fits or not positions.shape:
        raise ShapeError(
            f"rotary_embedding of {show(x.shape)} at positions {show(positions.shape)}",
            expected=f"positions that broadcast to {show(lead)}",
            got=show(positions.shape),
            origin=here(),
        )
