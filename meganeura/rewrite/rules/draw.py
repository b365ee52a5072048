"""Shapes and attributes that fit each other, drawn for the samples of rules."""

from __future__ import annotations

import random

from meganeura.ir.graph import Shape

SIZES = (2, 3, 5)


def shape(r: random.Random, rank: int) -> Shape:
    """A small shape, without sizes of 1."""
    return tuple(r.choice(SIZES) for _ in range(rank))


def permutation(r: random.Random, rank: int) -> Shape:
    """An order of axes other than the one they have."""
    order = list(range(rank))
    while order == sorted(order):
        r.shuffle(order)
    return tuple(order)


def factored(r: random.Random, size: int) -> Shape:
    """A shape of so many elements."""
    result: list[int] = []
    while size > 1:
        factor = r.choice([n for n in range(2, size + 1) if size % n == 0])
        result.append(factor)
        size //= factor
    return tuple(result)


def with_ones(r: random.Random, wide: Shape, least: int = 1) -> Shape:
    """A shape that expands to a wide one, with at least so many sizes of 1."""
    ones = set(r.sample(range(len(wide)), r.randint(least, len(wide))))
    return tuple(1 if i in ones else n for i, n in enumerate(wide))


def axes(r: random.Random, rank: int, most: int | None = None) -> Shape:
    """Some axes, in order."""
    return tuple(sorted(r.sample(range(rank), r.randint(1, most or rank))))
