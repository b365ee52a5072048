"""Matrix products: scales, order, sums, batches, and products that share an operand."""
# ruff: noqa: D103  # the line of English over each rule says what it is

from __future__ import annotations

import math
import random

from meganeura.ir.build import (
    add,
    broadcast_to,
    concat,
    matmul,
    mul,
    neg,
    reshape,
    slice_,
    sub,
    sum_,
    transpose,
)
from meganeura.ir.graph import Node, Shape
from meganeura.rewrite.rule import Equation, Rule, Sample, rule
from meganeura.rewrite.rules import draw


def _product(r: random.Random) -> Sample:
    (m, k, n), batch = draw.shape(r, 3), draw.shape(r, r.randint(0, 1))
    return {"a": (*batch, m, k), "b": (*batch, k, n)}


def _scaled_rows(r: random.Random) -> Sample:
    sample = _product(r)
    a = sample["a"]
    return {**sample, "s": (*a[:-1], 1), "p": a}


def _scaled_columns(r: random.Random) -> Sample:
    sample = _product(r)
    b = sample["b"]
    return {**sample, "s": (*b[:-2], 1, b[-1]), "p": b}


def _chain(r: random.Random) -> Sample:
    m, k, n, p = draw.shape(r, 4)
    return {"a": (m, k), "b": (k, n), "c": (n, p)}


def _shared_left(r: random.Random) -> Sample:
    m, k, n = draw.shape(r, 3)
    return {"a": (m, k), "b": (k, n), "c": (k, n)}


def _shared_right(r: random.Random) -> Sample:
    m, k, n = draw.shape(r, 3)
    return {"a": (m, k), "b": (m, k), "c": (k, n)}


def _one_matrix(r: random.Random) -> Sample:
    (batch, m, k, n), more = draw.shape(r, 4), draw.shape(r, r.randint(0, 1))
    lead = (*more, batch)
    return {"a": (*lead, m, k), "b": (*(1 for _ in lead), k, n), "p": (*lead, k, n)}


def _summed_batch(r: random.Random) -> Sample:
    (batch, m, k, n), more = draw.shape(r, 4), draw.shape(r, r.randint(0, 1))
    lead = (*more, batch)
    return {"a": (*lead, k, m), "b": (*lead, k, n), "p": tuple(range(len(lead)))}


def _several(r: random.Random) -> Sample:
    m, k = draw.shape(r, 2)
    return {"a": (m, k), "w": [(k, r.choice((1, 2, 3))) for _ in range(r.choice((2, 3)))]}


@rule("A number moves out of a product, from the left operand.", draw=_product)
def scale_out_of_left(a: Node, b: Node, c: float) -> Equation:
    return matmul(mul(a, c), b), mul(matmul(a, b), c)


@rule("A number moves out of a product, from the right operand.", draw=_product)
def scale_out_of_right(a: Node, b: Node, c: float) -> Equation:
    return matmul(a, mul(b, c)), mul(matmul(a, b), c)


@rule("A number moves into a product, to the left operand.", draw=_product)
def scale_into_left(a: Node, b: Node, c: float) -> Equation:
    return mul(matmul(a, b), c), matmul(mul(a, c), b)


@rule("A number moves into a product, to the right operand.", draw=_product)
def scale_into_right(a: Node, b: Node, c: float) -> Equation:
    return mul(matmul(a, b), c), matmul(a, mul(b, c))


@rule(
    "Scaled rows of the left operand are scaled rows of the product.",
    draw=_scaled_rows,
    use="cost",  # a product scales its operand as it reads it
)
def scaled_rows(a: Node, b: Node, s: Node, p: Shape) -> Equation:
    if s.shape[-1] != 1:
        return None
    product = matmul(a, b)
    return matmul(mul(a, broadcast_to(s, p)), b), mul(product, broadcast_to(s, product.shape))


@rule(
    "Scaled columns of the right operand are scaled columns of the product.",
    draw=_scaled_columns,
    use="cost",  # a product scales its operand as it reads it
)
def scaled_columns(a: Node, b: Node, s: Node, p: Shape) -> Equation:
    if s.shape[-2] != 1:
        return None
    product = matmul(a, b)
    return matmul(a, mul(b, broadcast_to(s, p))), mul(product, broadcast_to(s, product.shape))


@rule("A negation moves out of a product, from the left operand.", draw=_product)
def negated_left(a: Node, b: Node) -> Equation:
    return matmul(neg(a), b), neg(matmul(a, b))


@rule("A negation moves out of a product, from the right operand.", draw=_product)
def negated_right(a: Node, b: Node) -> Equation:
    return matmul(a, neg(b)), neg(matmul(a, b))


@rule(
    "A transposed product is the product of the transposed operands, turned around.", draw=_product
)
def transposed_product(a: Node, b: Node) -> Equation:
    return transpose(matmul(a, b)), matmul(transpose(b), transpose(a))


@rule("Products associate to the right.", draw=_chain)
def associate_right(a: Node, b: Node, c: Node) -> Equation:
    return matmul(matmul(a, b), c), matmul(a, matmul(b, c))


@rule("Products associate to the left.", draw=_chain)
def associate_left(a: Node, b: Node, c: Node) -> Equation:
    return matmul(a, matmul(b, c)), matmul(matmul(a, b), c)


@rule("A sum of products by one left operand is one product.", draw=_shared_left)
def sum_of_products_left(a: Node, b: Node, c: Node) -> Equation:
    return add(matmul(a, b), matmul(a, c)), matmul(a, add(b, c))


@rule("A sum of products by one right operand is one product.", draw=_shared_right)
def sum_of_products_right(a: Node, b: Node, c: Node) -> Equation:
    return add(matmul(a, c), matmul(b, c)), matmul(add(a, b), c)


@rule("A difference of products by one left operand is one product.", draw=_shared_left)
def difference_of_products_left(a: Node, b: Node, c: Node) -> Equation:
    return sub(matmul(a, b), matmul(a, c)), matmul(a, sub(b, c))


@rule("A difference of products by one right operand is one product.", draw=_shared_right)
def difference_of_products_right(a: Node, b: Node, c: Node) -> Equation:
    return sub(matmul(a, c), matmul(b, c)), matmul(sub(a, b), c)


@rule("A batch times one matrix is one tall product.", draw=_one_matrix)
def batch_by_one_matrix(a: Node, b: Node, p: Shape) -> Equation:
    if math.prod(b.shape[:-2]) != 1 or len(p) < 3:
        return None
    left = matmul(a, broadcast_to(b, p))
    tall = matmul(reshape(a, (-1, a.shape[-1])), reshape(b, b.shape[-2:]))
    return left, reshape(tall, left.shape)


@rule("A sum over a batch of products is one deep product.", draw=_summed_batch)
def batch_summed(a: Node, b: Node, p: Shape) -> Equation:
    if p != tuple(range(len(a.shape) - 2)):
        return None
    deep = matmul(
        transpose(reshape(a, (-1, a.shape[-1]))),
        reshape(b, (-1, b.shape[-1])),
    )
    return sum_(matmul(transpose(a), b), p), deep


@rule(
    "Products that share their left operand are parts of one product.",
    draw=_several,
    text="a @ w0, a @ w1, … = the parts of a @ concat(w0, w1, …)",
    use="inference",  # the concatenation would be made anew in each step
)
def packed(a: Node, *w: Node) -> Equation:
    if len(a.shape) != 2:
        return None
    wide = matmul(a, concat(w, -1))
    parts: list[Node] = []
    at = 0
    for part in w:
        stop = at + part.shape[-1]
        parts.append(slice_(wide, (0, at), (wide.shape[0], stop), (1, 1)))
        at = stop
    return tuple(matmul(a, part) for part in w), tuple(parts)


PRODUCTS: tuple[Rule, ...] = tuple(r for r in list(globals().values()) if isinstance(r, Rule))
