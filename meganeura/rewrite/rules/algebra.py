"""Sums, differences, products and quotients."""
# ruff: noqa: D103  # the line of English over each rule says what it is

from __future__ import annotations

from meganeura.ir.build import add, broadcast_to, constant, div, mul, neg, recip, sub
from meganeura.ir.graph import Node
from meganeura.rewrite.rule import Equation, Rule, finite, nonzero, ordinary, rule


@rule("Adding nothing changes nothing.")
def add_zero(a: Node) -> Equation:
    return add(a, 0.0), a


@rule("Taking nothing away changes nothing.")
def sub_zero(a: Node) -> Equation:
    return sub(a, 0.0), a


@rule("Multiplying by one changes nothing.")
def mul_one(a: Node) -> Equation:
    return mul(a, 1.0), a


@rule("Dividing by one changes nothing.")
def div_one(a: Node) -> Equation:
    return div(a, 1.0), a


@rule("Minus minus is plus.")
def double_negation(a: Node) -> Equation:
    return neg(neg(a)), a


@rule("Adding what is negated is a difference.")
def add_of_negation(a: Node, b: Node) -> Equation:
    return add(a, neg(b)), sub(a, b)


@rule("Taking away what is negated is a sum.")
def sub_of_negation(a: Node, b: Node) -> Equation:
    return sub(a, neg(b)), add(a, b)


@rule("A difference turned around is negated.")
def negated_difference(a: Node, b: Node) -> Equation:
    return neg(sub(a, b)), sub(b, a)


@rule("Nothing less a tensor is its negation.")
def zero_minus(a: Node) -> Equation:
    return sub(0.0, a), neg(a)


@rule("Times minus one is a negation.")
def times_minus_one(a: Node) -> Equation:
    return mul(a, -1.0), neg(a)


@rule("Two negated factors are two factors.")
def product_of_negations(a: Node, b: Node) -> Equation:
    return mul(neg(a), neg(b)), mul(a, b)


@rule("A negation moves out of a product.")
def negated_factor(a: Node, b: Node) -> Equation:
    return mul(neg(a), b), neg(mul(a, b))


@rule("A negated product by a number is a product by the negated number.")
def negated_scale(a: Node, c: float) -> Equation:
    return neg(mul(a, c)), mul(a, -c)


@rule("Two factors known now are one.")
def scale_of_scale(a: Node, c: float, d: float) -> Equation:
    return (mul(mul(a, c), d), mul(a, c * d)) if ordinary(c * d, a.dtype) else None


@rule("Two summands known now are one.")
def shift_of_shift(a: Node, c: float, d: float) -> Equation:
    return add(add(a, c), d), add(a, c + d)


@rule("Taking away a number is adding its negation.")
def sub_number(a: Node, c: float) -> Equation:
    return sub(a, c), add(a, -c)


@rule("Dividing by a number is multiplying by its inverse.")
def div_number(a: Node, c: float) -> Equation:
    return (div(a, c), mul(a, 1.0 / c)) if c and ordinary(1.0 / c, a.dtype) else None


@rule("A sum of products with one factor in common is one product.")
def common_factor(a: Node, b: Node, c: Node) -> Equation:
    return add(mul(a, c), mul(b, c)), mul(add(a, b), c)


@rule("A difference of products with one factor in common is one product.")
def common_factor_of_difference(a: Node, b: Node, c: Node) -> Equation:
    return sub(mul(a, c), mul(b, c)), mul(sub(a, b), c)


@rule("A tensor and its multiple are a multiple.")
def one_more(a: Node, c: float) -> Equation:
    return add(a, mul(a, c)), mul(a, c + 1.0)


@rule("A tensor added to itself is its double.")
def doubled(a: Node) -> Equation:
    return add(a, a), mul(a, 2.0)


def _full(a: Node, value: float) -> Node:
    """One number in the shape and type of a tensor."""
    return broadcast_to(constant(value, a.dtype), a.shape)


@rule("Nothing times a finite tensor is nothing.", where=finite("a"))
def mul_zero(a: Node) -> Equation:
    return mul(a, 0.0), _full(a, 0.0)


@rule("A finite tensor less itself is nothing.", where=finite("a"))
def sub_self(a: Node) -> Equation:
    return sub(a, a), _full(a, 0.0)


@rule("A finite tensor over itself is one.", where=finite("a") & nonzero("a"))
def div_self(a: Node) -> Equation:
    return div(a, a), _full(a, 1.0)


@rule("What is added and taken away again was never there.", where=finite("b"))
def add_then_sub(a: Node, b: Node) -> Equation:
    return sub(add(a, b), b), a


@rule("A quotient over a tensor is a quotient by the product.")
def quotient_of_quotient(a: Node, b: Node, c: Node) -> Equation:
    return div(div(a, b), c), div(a, mul(b, c))


@rule("A factor times an inverse is a quotient.")
def times_inverse(a: Node, b: Node) -> Equation:
    return mul(a, recip(b)), div(a, b)


@rule("One over a tensor is its inverse.")
def one_over(a: Node) -> Equation:
    return div(1.0, a), recip(a)


@rule("The inverse of a quotient is the quotient turned around.", where=nonzero("b"))
def inverse_of_quotient(a: Node, b: Node) -> Equation:
    return recip(div(a, b)), div(b, a)


@rule("The inverse of an inverse is the tensor.", where=nonzero("a"))
def double_inverse(a: Node) -> Equation:
    return recip(recip(a)), a


ALGEBRA: tuple[Rule, ...] = tuple(r for r in list(globals().values()) if isinstance(r, Rule))
