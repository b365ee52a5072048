"""Convolutions: scales around them, and normalisation folded into filters at inference."""
# ruff: noqa: D103  # the line of English over each rule says what it is

from __future__ import annotations

import random
from typing import Any

from meganeura.ir.build import broadcast_to, conv2d, mul, neg, reshape
from meganeura.ir.dtypes import f32
from meganeura.ir.graph import Node, Shape
from meganeura.rewrite.rule import Equation, Rule, Sample, placeholder, rule

Pairs = tuple[tuple[int, int], tuple[int, int]]


def _convolved(r: random.Random) -> dict[str, Any]:
    groups = r.choice((2, 3))
    return {
        "a": (r.choice((1, 2)), groups * r.choice((1, 2)), 6, 7),
        "stride": r.choice(((1, 2), (2, 2))),
        "padding": r.choice((((1, 0), (0, 1)), ((0, 0), (1, 1)))),
        "dilation": (2, 1),
        "groups": groups,
    }


def _with_filters(r: random.Random) -> Sample:
    sample = _convolved(r)
    groups = sample["groups"]
    outputs = groups * r.choice((1, 2))
    return {**sample, "w": (outputs, sample["a"][1] // groups, 2, 3)}


def _with_scales(r: random.Random) -> Sample:
    sample = dict(_with_filters(r))
    drawn = conv2d(
        placeholder("a", sample["a"], f32),
        placeholder("w", sample["w"], f32),
        sample["stride"],
        sample["padding"],
        sample["dilation"],
        sample["groups"],
    )
    return {**sample, "s": (1, sample["w"][0], 1, 1), "p": drawn.shape}


@rule("A number moves out of a convolution, from the image.", draw=_with_filters)
def scale_out_of_image(
    a: Node, w: Node, c: float, stride: Shape, padding: Pairs, dilation: Shape, groups: int
) -> Equation:
    left = conv2d(mul(a, c), w, stride, padding, dilation, groups)
    return left, mul(conv2d(a, w, stride, padding, dilation, groups), c)


@rule("A number moves out of a convolution, from the filters.", draw=_with_filters)
def scale_out_of_filters(
    a: Node, w: Node, c: float, stride: Shape, padding: Pairs, dilation: Shape, groups: int
) -> Equation:
    left = conv2d(a, mul(w, c), stride, padding, dilation, groups)
    return left, mul(conv2d(a, w, stride, padding, dilation, groups), c)


@rule("A negation moves out of a convolution, from the image.", draw=_with_filters)
def negated_image(
    a: Node, w: Node, stride: Shape, padding: Pairs, dilation: Shape, groups: int
) -> Equation:
    left = conv2d(neg(a), w, stride, padding, dilation, groups)
    return left, neg(conv2d(a, w, stride, padding, dilation, groups))


@rule(
    "A scale of each channel moves into the filters.",
    draw=_with_scales,
    use="cost",  # the filters are scaled anew in each run, in a launch of their own
)
def scale_into_filters(
    a: Node,
    w: Node,
    s: Node,
    p: Shape,
    stride: Shape,
    padding: Pairs,
    dilation: Shape,
    groups: int,
) -> Equation:
    if s.shape != (1, w.shape[0], 1, 1):
        return None
    left = mul(conv2d(a, w, stride, padding, dilation, groups), broadcast_to(s, p))
    scales = broadcast_to(reshape(s, (w.shape[0], 1, 1, 1)), w.shape)
    return left, conv2d(a, mul(w, scales), stride, padding, dilation, groups)


CONVOLUTIONS: tuple[Rule, ...] = tuple(r for r in list(globals().values()) if isinstance(r, Rule))
