"""Views that cancel, or that let a map work on fewer elements."""
# ruff: noqa: D103  # the line of English over each rule says what it is

from __future__ import annotations

import random
from collections.abc import Callable

from meganeura.ir import build
from meganeura.ir.build import add, broadcast_to, div, mul, permute, recip, reshape, slice_, sub
from meganeura.ir.graph import Node, Shape
from meganeura.rewrite.egraph import EClass
from meganeura.rewrite.rule import Equation, Rule, Sample, rule, when
from meganeura.rewrite.rules import draw


def _permuted_twice(r: random.Random) -> Sample:
    rank = r.choice((3, 4))
    p, q = draw.permutation(r, rank), draw.permutation(r, rank)
    return {"a": draw.shape(r, rank), "p": p, "q": q}


def _reshaped_twice(r: random.Random) -> Sample:
    a = (r.choice((2, 4, 6)), r.choice((3, 6)), 2)
    size = a[0] * a[1] * a[2]
    return {"a": a, "p": (size,), "q": (2, size // 2)}


def _expanded_twice(r: random.Random) -> Sample:
    q = draw.shape(r, 3)
    return {"a": (1, 1, q[2]), "p": (1, *q[1:]), "q": q}


def _expanded(r: random.Random) -> Sample:
    wide = draw.shape(r, 3)
    return {"a": draw.with_ones(r, wide), "p": wide}


def _expanded_pair(r: random.Random) -> Sample:
    wide = draw.shape(r, 3)
    narrow = draw.with_ones(r, wide)
    return {"a": narrow, "b": narrow, "p": wide}


def _over_expanded(r: random.Random) -> Sample:
    wide = draw.shape(r, 2)
    return {"a": wide, "b": draw.with_ones(r, wide), "p": wide}


def _over_expanded_pair(r: random.Random) -> Sample:
    sample = _over_expanded(r)
    return {**sample, "d": sample["b"]}


def _over_expanded_triple(r: random.Random) -> Sample:
    sample = _over_expanded(r)
    return {**sample, "d": sample["b"], "e": sample["b"]}


def _sliced_twice(r: random.Random) -> Sample:
    return {
        "a": (9, 11),
        "p": (1, 2),
        "q": (8, 11),
        "s": (2, 1),
        "t": (0, 1),
        "u": (3, 7),
        "v": (1, 3),
    }


@rule("Two transpositions are one.", draw=_permuted_twice)
def permute_of_permute(a: Node, p: Shape, q: Shape) -> Equation:
    return permute(permute(a, p), q), permute(a, [p[i] for i in q])


@rule("Two reshapes are one.", draw=_reshaped_twice)
def reshape_of_reshape(a: Node, p: Shape, q: Shape) -> Equation:
    return reshape(reshape(a, p), q), reshape(a, q)


@rule("Two repetitions are one.", draw=_expanded_twice)
def expand_of_expand(a: Node, p: Shape, q: Shape) -> Equation:
    return broadcast_to(broadcast_to(a, p), q), broadcast_to(a, q)


@rule("A part of a part is a part.", draw=_sliced_twice)
def slice_of_slice(a: Node, p: Shape, q: Shape, s: Shape, t: Shape, u: Shape, v: Shape) -> Equation:
    if min(s + v) < 1:  # steps backwards are left alone
        return None
    inner = slice_(a, p, q, s)
    start = tuple(x + y * z for x, y, z in zip(p, t, s, strict=True))
    stop = tuple(min(x + y * z, w) for x, y, z, w in zip(p, u, s, q, strict=True))
    step = tuple(x * y for x, y in zip(s, v, strict=True))
    return slice_(inner, t, u, v), slice_(a, start, stop, step)


def _permuted(r: random.Random) -> Sample:
    rank = r.choice((2, 3))
    return {"a": draw.shape(r, rank), "p": draw.permutation(r, rank)}


def _early(name: str, english: str) -> Rule:
    function: Callable[[Node], Node] = getattr(build, name)

    def early(a: Node, p: Shape) -> Equation:
        return function(broadcast_to(a, p)), broadcast_to(function(a), p)

    early.__name__ = f"{name.rstrip('_')}_before_expand"
    return rule(f"The {english} of repeated elements is computed once each.", draw=_expanded)(early)


def _late(name: str, english: str) -> Rule:
    function: Callable[[Node], Node] = getattr(build, name)

    def late(a: Node, p: Shape) -> Equation:
        return function(permute(a, p)), permute(function(a), p)

    late.__name__ = f"{name.rstrip('_')}_before_permute"
    return rule(f"A transposition moves out of the {english}.", draw=_permuted)(late)


UNARY = {
    "neg": "negation",
    "abs_": "absolute value",
    "exp": "exponential",
    "log": "logarithm",
    "sqrt": "root",
    "rsqrt": "inverse root",
    "recip": "inverse",
    "sin": "sine",
    "cos": "cosine",
    "tanh": "hyperbolic tangent",
    "erf": "error function",
}
UNARY_FIRST = tuple(make(*function) for make in (_early, _late) for function in UNARY.items())
"""Two rules for each function of one operand."""


@rule("A sum of repeated elements is computed once each.", draw=_expanded_pair)
def add_before_expand(a: Node, b: Node, p: Shape) -> Equation:
    return add(broadcast_to(a, p), broadcast_to(b, p)), broadcast_to(add(a, b), p)


@rule("A difference of repeated elements is computed once each.", draw=_expanded_pair)
def sub_before_expand(a: Node, b: Node, p: Shape) -> Equation:
    return sub(broadcast_to(a, p), broadcast_to(b, p)), broadcast_to(sub(a, b), p)


@rule("A product of repeated elements is computed once each.", draw=_expanded_pair)
def mul_before_expand(a: Node, b: Node, p: Shape) -> Equation:
    return mul(broadcast_to(a, p), broadcast_to(b, p)), broadcast_to(mul(a, b), p)


@rule("A quotient of repeated elements is computed once each.", draw=_expanded_pair)
def div_before_expand(a: Node, b: Node, p: Shape) -> Equation:
    return div(broadcast_to(a, p), broadcast_to(b, p)), broadcast_to(div(a, b), p)


@rule("A sum of repeated elements and a number is computed once each.", draw=_expanded)
def add_number_before_expand(a: Node, p: Shape, c: float) -> Equation:
    return add(broadcast_to(a, p), c), broadcast_to(add(a, c), p)


@rule("A product of repeated elements and a number is computed once each.", draw=_expanded)
def mul_number_before_expand(a: Node, p: Shape, c: float) -> Equation:
    return mul(broadcast_to(a, p), c), broadcast_to(mul(a, c), p)


def _one_unknown(b: EClass, d: EClass) -> bool:
    return b.facts.value is None or d.facts.value is None


@rule(
    "Two repeated factors are one.",
    where=when("b and d are not both known numbers", _one_unknown),
    draw=_over_expanded_pair,
)
def repeated_factors(a: Node, b: Node, d: Node, p: Shape) -> Equation:
    if b.shape != d.shape:
        return None
    return mul(mul(a, broadcast_to(b, p)), broadcast_to(d, p)), mul(a, broadcast_to(mul(b, d), p))


@rule("Two repeated summands are one.", draw=_over_expanded_pair)
def repeated_summands(a: Node, b: Node, d: Node, p: Shape) -> Equation:
    if b.shape != d.shape:
        return None
    return add(add(a, broadcast_to(b, p)), broadcast_to(d, p)), add(a, broadcast_to(add(b, d), p))


@rule(
    "A tensor centred, scaled and shifted by repeated elements is scaled and shifted once.",
    draw=_over_expanded_triple,
    use="cost",  # centring first is more exact where the mean is large
)
def scale_and_shift(a: Node, b: Node, d: Node, e: Node, p: Shape) -> Equation:
    if not b.shape == d.shape == e.shape:
        return None
    centred = sub(a, broadcast_to(b, p))
    left = add(mul(centred, broadcast_to(d, p)), broadcast_to(e, p))
    shift = sub(e, mul(b, d))
    return left, add(mul(a, broadcast_to(d, p)), broadcast_to(shift, p))


@rule("Dividing by repeated elements takes one inverse each.", draw=_over_expanded)
def div_by_expanded(a: Node, b: Node, p: Shape) -> Equation:
    return div(a, broadcast_to(b, p)), mul(a, broadcast_to(recip(b), p))


VIEWS: tuple[Rule, ...] = (
    *(r for r in list(globals().values()) if isinstance(r, Rule)),
    *UNARY_FIRST,
)
