"""Sums, maxima and minima over axes."""
# ruff: noqa: D103  # the line of English over each rule says what it is

from __future__ import annotations

import math
import random

from meganeura.ir.build import (
    add,
    apply,
    broadcast_to,
    exp,
    max_,
    min_,
    mul,
    neg,
    permute,
    reshape,
    sub,
    sum_,
)
from meganeura.ir.graph import Node, Shape
from meganeura.rewrite.rule import Equation, Rule, Sample, floats, rule
from meganeura.rewrite.rules import draw


def _reduced(r: random.Random) -> Sample:
    return {"a": draw.shape(r, 3), "p": draw.axes(r, 3)}


def _reduced_pair(r: random.Random) -> Sample:
    a = draw.shape(r, 3)
    return {"a": a, "b": a, "p": draw.axes(r, 3)}


def _reduced_twice(r: random.Random) -> Sample:
    return {"a": draw.shape(r, 4), "p": (r.randrange(4),), "q": draw.axes(r, 3)}


def _reduced_expanded(r: random.Random) -> Sample:
    wide = draw.shape(r, 3)
    return {"a": draw.with_ones(r, wide), "p": wide, "q": draw.axes(r, 3)}


def _scaled_rows(r: random.Random) -> Sample:
    wide, q = draw.shape(r, 3), draw.axes(r, 3)
    return {
        "a": wide,
        "b": tuple(1 if i in q else n for i, n in enumerate(wide)),
        "p": wide,
        "q": q,
    }


def _moved(r: random.Random) -> Sample:
    return {"a": draw.shape(r, 3), "p": draw.permutation(r, 3), "q": draw.axes(r, 3)}


def _reshaped(r: random.Random) -> Sample:
    a = draw.shape(r, 3)
    return {"a": a, "p": (a[0] * a[1], a[2])}


def _one(r: random.Random) -> Sample:
    q = draw.axes(r, 3, 2)
    return {"a": tuple(1 if i in q else n for i, n in enumerate(draw.shape(r, 3))), "q": q}


@rule("A sum of sums is a sum.", draw=_reduced_twice)
def sum_of_sum(a: Node, p: Shape, q: Shape) -> Equation:
    kept = [i for i in range(len(a.shape)) if i not in p]
    return sum_(sum_(a, p), q), sum_(a, (*p, *(kept[i] for i in q)))


@rule("Repeated elements sum to a multiple.", draw=_reduced_expanded)
def sum_of_expanded(a: Node, p: Shape, q: Shape) -> Equation:
    repeated = [i for i in q if a.shape[i] == 1]
    if not repeated:
        return None
    rest = sum_(a, tuple(i for i in q if i not in repeated), keepdims=True)
    narrow = tuple(1 if i in q else a.shape[i] for i in range(len(p)))
    scaled = mul(reshape(rest, narrow), float(math.prod(p[i] for i in repeated)))
    kept = [i for i in range(len(p)) if i not in q]
    result = reshape(scaled, tuple(narrow[i] for i in kept))
    return sum_(broadcast_to(a, p), q), broadcast_to(result, tuple(p[i] for i in kept))


@rule("A number moves out of a sum.", draw=_reduced)
def sum_of_scaled(a: Node, p: Shape, c: float) -> Equation:
    return sum_(mul(a, c), p), mul(sum_(a, p), c)


@rule("A negation moves out of a sum.", draw=_reduced)
def sum_of_negation(a: Node, p: Shape) -> Equation:
    return sum_(neg(a), p), neg(sum_(a, p))


@rule("A factor that does not change along the axes moves out of a sum.", draw=_scaled_rows)
def sum_of_scaled_rows(a: Node, b: Node, p: Shape, q: Shape) -> Equation:
    if any(b.shape[i] != 1 for i in q):
        return None
    kept = tuple(i for i in range(len(p)) if i not in q)
    factor = reshape(b, tuple(b.shape[i] for i in kept))
    total = sum_(a, q)
    return sum_(mul(a, broadcast_to(b, p)), q), mul(total, broadcast_to(factor, total.shape))


@rule("A sum of two sums is one sum.", draw=_reduced_pair)
def sum_plus_sum(a: Node, b: Node, p: Shape) -> Equation:
    return add(sum_(a, p), sum_(b, p)), sum_(add(a, b), p)


@rule("A difference of two sums is one sum.", draw=_reduced_pair)
def sum_minus_sum(a: Node, b: Node, p: Shape) -> Equation:
    return sub(sum_(a, p), sum_(b, p)), sum_(sub(a, b), p)


@rule("A sum does not see the order of axes.", draw=_moved)
def sum_of_permuted(a: Node, p: Shape, q: Shape) -> Equation:
    axes = sorted(p[i] for i in q)
    rest = [i for i in range(len(p)) if i not in axes]
    order = [rest.index(p[i]) for i in range(len(p)) if i not in q]
    return sum_(permute(a, p), q), permute(sum_(a, tuple(axes)), order)


@rule("The sum of all does not see the shape.", draw=_reshaped)
def sum_of_reshaped(a: Node, p: Shape) -> Equation:
    return sum_(reshape(a, p)), sum_(a)


@rule("A sum over axes of one element is a reshape.", draw=_one)
def sum_of_one(a: Node, q: Shape) -> Equation:
    if any(a.shape[i] != 1 for i in q):
        return None
    left = apply("sum", a, axes=q)
    return left, reshape(a, left.shape)


@rule("The greatest of greatest is the greatest.", draw=_reduced_twice)
def max_of_reduced(a: Node, p: Shape, q: Shape) -> Equation:
    kept = [i for i in range(len(a.shape)) if i not in p]
    return max_(max_(a, p), q), max_(a, (*p, *(kept[i] for i in q)))


@rule("The greatest of negations is the negated least.", where=floats("a"), draw=_reduced)
def max_of_negation(a: Node, p: Shape) -> Equation:
    return (max_(neg(a), p), neg(min_(a, p))) if a.size else None


@rule("The greatest exponential is the exponential of the greatest.", draw=_reduced)
def max_of_exp(a: Node, p: Shape) -> Equation:
    return (max_(exp(a), p), exp(max_(a, p))) if a.size else None


@rule("A number added moves out of a maximum.", draw=_reduced)
def max_of_shifted(a: Node, p: Shape, c: float) -> Equation:
    return (max_(add(a, c), p), add(max_(a, p), c)) if a.size else None


REDUCTIONS: tuple[Rule, ...] = tuple(r for r in list(globals().values()) if isinstance(r, Rule))
