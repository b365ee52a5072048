"""Roots, powers, exponentials and logarithms, each where its domain is proved."""
# ruff: noqa: D103  # the line of English over each rule says what it is

from __future__ import annotations

from meganeura.ir.build import (
    abs_,
    add,
    broadcast_to,
    constant,
    cos,
    div,
    erf,
    exp,
    log,
    mul,
    neg,
    pow_,
    recip,
    rsqrt,
    sin,
    sqrt,
    sub,
    tanh,
)
from meganeura.ir.graph import Node
from meganeura.rewrite.rule import Equation, Rule, nonnegative, positive, rule


def _pow(a: Node, exponent: float) -> Node:
    """A power that stays one: `pow_` itself turns small exponents into products."""
    return pow_(a, broadcast_to(constant(exponent, a.dtype), a.shape))


@rule("The logarithm of an exponential is the exponent.")
def log_of_exp(a: Node) -> Equation:
    return log(exp(a)), a


@rule("The exponential of a logarithm is the tensor.", where=nonnegative("a"))
def exp_of_log(a: Node) -> Equation:
    return exp(log(a)), a


@rule("The logarithm of a quotient is a difference.", where=positive("a", "b"))
def log_of_quotient(a: Node, b: Node) -> Equation:
    return log(div(a, b)), sub(log(a), log(b))


@rule("The logarithm of a product is a sum.", where=positive("a", "b"))
def log_of_product(a: Node, b: Node) -> Equation:
    return log(mul(a, b)), add(log(a), log(b))


@rule("The logarithm of an inverse is negated.", where=positive("a"))
def log_of_inverse(a: Node) -> Equation:
    return log(recip(a)), neg(log(a))


@rule("The logarithm of a root is half the logarithm.", where=positive("a"))
def log_of_root(a: Node) -> Equation:
    return log(sqrt(a)), mul(log(a), 0.5)


@rule("The logarithm of a share of exponentials is a difference.", where=nonnegative("b"))
def log_of_share(a: Node, b: Node) -> Equation:
    return log(div(exp(a), b)), sub(a, log(b))


@rule("The logarithm of a scaled exponential is a sum.", where=nonnegative("b"))
def log_of_scaled_exp(a: Node, b: Node) -> Equation:
    return log(mul(exp(a), b)), add(a, log(b))


@rule("A product of exponentials is the exponential of the sum.")
def product_of_exps(a: Node, b: Node) -> Equation:
    return mul(exp(a), exp(b)), exp(add(a, b))


@rule("A quotient of exponentials is the exponential of the difference.")
def quotient_of_exps(a: Node, b: Node) -> Equation:
    return div(exp(a), exp(b)), exp(sub(a, b))


@rule("The inverse of an exponential is the exponential of the negation.")
def inverse_of_exp(a: Node) -> Equation:
    return recip(exp(a)), exp(neg(a))


@rule("A power of an exponential is the exponential of the product.")
def power_of_exp(a: Node, b: Node) -> Equation:
    return pow_(exp(a), b), exp(mul(a, b))


@rule("The inverse of a root is one operation.")
def inverse_of_root(a: Node) -> Equation:
    return recip(sqrt(a)), rsqrt(a)


@rule("The root of an inverse is one operation.", where=nonnegative("a"))
def root_of_inverse(a: Node) -> Equation:
    return sqrt(recip(a)), rsqrt(a)


@rule("The inverse of an inverse root is the root.")
def inverse_of_inverse_root(a: Node) -> Equation:
    return recip(rsqrt(a)), sqrt(a)


@rule("Dividing by a root is multiplying by the inverse root.")
def over_root(a: Node, b: Node) -> Equation:
    return div(a, sqrt(b)), mul(a, rsqrt(b))


@rule("A tensor times its inverse root is its root.", where=positive("a"))
def times_own_inverse_root(a: Node) -> Equation:
    return mul(a, rsqrt(a)), sqrt(a)


@rule("A squared root is the tensor.", where=nonnegative("a"))
def squared_root(a: Node) -> Equation:
    return mul(sqrt(a), sqrt(a)), a


@rule("A squared inverse root is the inverse.", where=positive("a"))
def squared_inverse_root(a: Node) -> Equation:
    return mul(rsqrt(a), rsqrt(a)), recip(a)


@rule("The root of a square is the absolute value.")
def root_of_square(a: Node) -> Equation:
    return sqrt(mul(a, a)), abs_(a)


@rule("A square does not see the sign.")
def square_of_abs(a: Node) -> Equation:
    return mul(abs_(a), abs_(a)), mul(a, a)


@rule("The absolute value of what is not negative is itself.", where=nonnegative("a"))
def abs_of_nonnegative(a: Node) -> Equation:
    return abs_(a), a


@rule("The absolute value does not see the sign.")
def abs_of_negation(a: Node) -> Equation:
    return abs_(neg(a)), abs_(a)


@rule("The cosine does not see the sign.")
def cos_of_negation(a: Node) -> Equation:
    return cos(neg(a)), cos(a)


@rule("The sine is odd.")
def sin_of_negation(a: Node) -> Equation:
    return sin(neg(a)), neg(sin(a))


@rule("The hyperbolic tangent is odd.")
def tanh_of_negation(a: Node) -> Equation:
    return tanh(neg(a)), neg(tanh(a))


@rule("The error function is odd.")
def erf_of_negation(a: Node) -> Equation:
    return erf(neg(a)), neg(erf(a))


@rule("The power one changes nothing.")
def pow_one(a: Node) -> Equation:
    return _pow(a, 1.0), a


@rule("The power two is a product.")
def pow_two(a: Node) -> Equation:
    return _pow(a, 2.0), mul(a, a)


@rule("The power three is two products.")
def pow_three(a: Node) -> Equation:
    return _pow(a, 3.0), mul(mul(a, a), a)


@rule("The power four is a square squared.")
def pow_four(a: Node) -> Equation:
    return _pow(a, 4.0), mul(mul(a, a), mul(a, a))


@rule("The power one half is the root.", where=nonnegative("a"))
def pow_half(a: Node) -> Equation:
    return _pow(a, 0.5), sqrt(a)


@rule("The power minus one is the inverse.")
def pow_minus_one(a: Node) -> Equation:
    return _pow(a, -1.0), recip(a)


@rule("The power minus two is the inverse of the square.")
def pow_minus_two(a: Node) -> Equation:
    return _pow(a, -2.0), recip(mul(a, a))


@rule("The power minus one half is the inverse root.", where=nonnegative("a"))
def pow_minus_half(a: Node) -> Equation:
    return _pow(a, -0.5), rsqrt(a)


POWERS: tuple[Rule, ...] = tuple(r for r in list(globals().values()) if isinstance(r, Rule))
