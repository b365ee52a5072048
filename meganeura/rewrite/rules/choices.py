"""Conditions, choices, greatest and least, conversions."""
# ruff: noqa: D103  # the line of English over each rule says what it is

from __future__ import annotations

from meganeura.ir.build import (
    and_,
    broadcast_to,
    cast,
    constant,
    ge,
    gt,
    le,
    lt,
    maximum,
    minimum,
    mul,
    ne,
    neg,
    not_,
    or_,
    where,
)
from meganeura.ir.dtypes import f32, i32
from meganeura.ir.graph import Node
from meganeura.rewrite.egraph import EClass
from meganeura.rewrite.rule import Bool, Condition, Equation, Rule, finite, floats, rule, when


def _never_nan(*names: str) -> Condition:
    return Condition(
        f"{' and '.join(names)} cannot be NaN",
        lambda found: not any(found[n].facts.nan for n in names),
        dict.fromkeys(names, (-4.0, 4.0)),
    )


def _at_least(a: EClass, b: EClass) -> bool:
    return a.facts.lo >= b.facts.hi and not b.facts.nan


@rule("A choice between equals is no choice.")
def where_same(c: Bool, a: Node) -> Equation:
    return where(c, a, a), a


@rule("What always holds chooses the first.")
def where_true(a: Node, b: Node) -> Equation:
    return where(_all(a, True), a, b), a


@rule("What never holds chooses the second.")
def where_false(a: Node, b: Node) -> Equation:
    return where(_all(a, False), a, b), b


def _all(a: Node, value: bool) -> Node:
    """A condition that is known now, in the shape of a tensor."""
    return broadcast_to(constant(value), a.shape)


@rule("A choice by the opposite is turned around.")
def where_not(c: Bool, a: Node, b: Node) -> Equation:
    return where(not_(c), a, b), where(c, b, a)


@rule("A choice within the first branch of the same choice is made already.")
def where_in_first(c: Bool, a: Node, b: Node, d: Node) -> Equation:
    return where(c, where(c, a, b), d), where(c, a, d)


@rule("A choice within the second branch of the same choice is made already.")
def where_in_second(c: Bool, a: Node, b: Node, d: Node) -> Equation:
    return where(c, a, where(c, b, d)), where(c, a, d)


@rule("A tensor times a condition as a number is a choice.", where=finite("a"))
def times_condition(c: Bool, a: Node) -> Equation:
    return mul(a, cast(c, a.dtype)), where(c, a, 0.0)


@rule("Not not is nothing.")
def double_not(c: Bool) -> Equation:
    return not_(not_(c)), c


@rule("Both of the same are one.")
def and_same(c: Bool) -> Equation:
    return and_(c, c), c


@rule("Either of the same is one.")
def or_same(c: Bool) -> Equation:
    return or_(c, c), c


@rule("Neither of two is not either.")
def and_of_nots(c: Bool, d: Bool) -> Equation:
    return and_(not_(c), not_(d)), not_(or_(c, d))


@rule("Greater is less, turned around.")
def greater(a: Node, b: Node) -> Equation:
    return gt(a, b), lt(b, a)


@rule("At least is at most, turned around.")
def at_least(a: Node, b: Node) -> Equation:
    return ge(a, b), le(b, a)


@rule("Not less is at least.", where=_never_nan("a", "b"))
def not_less(a: Node, b: Node) -> Equation:
    return not_(lt(a, b)), le(b, a)


@rule("Not at most is greater.", where=_never_nan("a", "b"))
def not_at_most(a: Node, b: Node) -> Equation:
    return not_(le(a, b)), lt(b, a)


@rule("A condition as a number, compared with nothing, is the condition.")
def condition_as_number(c: Bool) -> Equation:
    return ne(cast(c, f32), 0.0), c


@rule("A condition becomes a float at once.")
def condition_by_integer(c: Bool) -> Equation:
    return cast(cast(c, i32), f32), cast(c, f32)


@rule("The greater of a tensor and itself is the tensor.")
def max_same(a: Node) -> Equation:
    return maximum(a, a), a


@rule("The lesser of a tensor and itself is the tensor.")
def min_same(a: Node) -> Equation:
    return minimum(a, a), a


@rule("Two lower bounds are one.")
def max_of_max(a: Node, c: float, d: float) -> Equation:
    return maximum(maximum(a, c), d), maximum(a, max(c, d))


@rule("Two upper bounds are one.")
def min_of_min(a: Node, c: float, d: float) -> Equation:
    return minimum(minimum(a, c), d), minimum(a, min(c, d))


@rule(
    "The greater of two is the one that is proved greater.",
    where=when("a is proved at least b", _at_least, a=(2.0, 4.0), b=(-4.0, 1.5)),
)
def max_known(a: Node, b: Node) -> Equation:
    return maximum(a, b), a


@rule(
    "The lesser of two is the one that is proved lesser.",
    where=when("b is proved at least a", lambda a, b: _at_least(b, a), b=(2.0, 4.0), a=(-4.0, 1.5)),
)
def min_known(a: Node, b: Node) -> Equation:
    return minimum(a, b), a


@rule("The greater of two negations is the negated lesser.", where=floats("a", "b"))
def max_of_negations(a: Node, b: Node) -> Equation:
    return maximum(neg(a), neg(b)), neg(minimum(a, b))


@rule("The lesser of two negations is the negated greater.", where=floats("a", "b"))
def min_of_negations(a: Node, b: Node) -> Equation:
    return minimum(neg(a), neg(b)), neg(maximum(a, b))


CHOICES: tuple[Rule, ...] = tuple(r for r in list(globals().values()) if isinstance(r, Rule))
