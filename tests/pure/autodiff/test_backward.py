"""The reverse pass itself: completeness of the table, zeros, origins, messages."""

from __future__ import annotations

import numpy as np
import pytest

from meganeura.autodiff import EXEMPT, RULES, backward
from meganeura.errors import GradientError
from meganeura.ir import build
from meganeura.ir.dtypes import i32
from meganeura.ir.graph import Node, topological
from meganeura.ir.ops import OPS, elementwise
from tests.pure.autodiff.numeric import value_of


def test_every_operation_has_a_rule_or_a_reason() -> None:
    assert set(RULES) | set(EXEMPT) == set(OPS)
    assert not set(RULES) & set(EXEMPT)
    assert all(len(reason) > 10 for reason in EXEMPT.values())


def test_what_the_loss_does_not_depend_on_gets_zeros() -> None:
    x, y = build.input_("x", (2,)), build.input_("y", (3, 2))
    found = backward(build.sum_(build.mul(x, 2.0)), [x, y])
    assert value_of(found[y], {}).tolist() == [[0, 0], [0, 0], [0, 0]]
    through_floor = backward(build.sum_(build.floor(x)), [x])[x]
    assert value_of(through_floor, {x: np.ones(2)}).tolist() == [0, 0]


def test_by_the_loss_itself_and_by_a_tensor_in_between() -> None:
    x = build.input_("x", (2,))
    h = build.sin(x)
    loss = build.sum_(build.mul(h, h))
    found = backward(loss, [loss, h, x])
    values = {x: np.array([0.5, 1.0])}
    assert value_of(found[loss], values) == 1.0
    np.testing.assert_allclose(value_of(found[h], values), 2 * np.sin([0.5, 1.0]))
    np.testing.assert_allclose(value_of(found[x], values), np.sin([1.0, 2.0]))


def test_a_name_does_not_hide_a_tensor_from_its_gradient() -> None:
    x = build.input_("x", (2,))
    h = build.sin(x)
    found = backward(build.sum_(build.mul(h, 3.0)), [h.with_name("h")])
    (gradient,) = found.values()
    assert value_of(gradient, {x: np.ones(2)}).tolist() == [3, 3]


def test_gradient_nodes_remember_what_they_differentiate() -> None:
    x = build.input_("x", (2,))
    loss = build.sum_(build.exp(x))
    gradient = backward(loss, [x])[x]
    made = [n for n in topological([gradient]) if n.origin.phase == "backward"]
    assert gradient in made
    assert gradient.origin.forward is not None
    assert gradient.origin.forward.op.name == "exp"
    assert gradient.origin.source == gradient.origin.forward.origin.source


def test_gradients_are_the_same_nodes_when_asked_again() -> None:
    x = build.input_("x", (2,))
    loss = build.sum_(build.exp(x))
    assert backward(loss, [x])[x] is backward(loss, [x])[x]


def test_a_long_chain_needs_no_recursion() -> None:
    x = h = build.input_("x", ())
    for _ in range(3000):
        h = build.sin(h)
    assert np.isfinite(value_of(backward(h, [x])[x], {x: np.ones(())}))


def test_an_operation_of_ones_own() -> None:
    cube = elementwise("cube", 1, lambda x: x * x * x, "({0} * {0} * {0})")

    def rule(node: Node, g: Node) -> tuple[Node]:
        (x,) = node.inputs
        return (build.mul(g, build.mul(3.0, build.mul(x, x))),)

    x = build.input_("x", (2,))
    loss = build.sum_(build.apply(cube, x))
    found = backward(loss, [x], {**RULES, "cube": rule})[x]
    assert value_of(found, {x: np.array([1.0, 2.0])}).tolist() == [3, 12]
    with pytest.raises(GradientError) as raised:
        backward(loss, [x])
    assert str(raised.value) == (
        "the operation cube has no gradient rule\n"
        f"  where:    {loss.inputs[0].origin.where()}\n"
        "  expected: a rule in the table of gradients, or with the operation\n"
        "  got:      none\n"
        '  try:      give it one: mg.elementwise("cube", ..., gradient=lambda g, x: ...)'
    )


def test_the_loss_must_be_a_scalar() -> None:
    x = build.input_("x", (2, 3))
    y = build.exp(x)
    with pytest.raises(GradientError) as raised:
        backward(y, [x])
    lines = str(raised.value).splitlines()
    assert lines[0] == "only a scalar has a gradient"
    assert lines[1].endswith(": backward(y, [x])")
    assert lines[2:] == [
        "  expected: a loss of shape [] and type f32",
        f"  got:      [2, 3] f32, made at {y.origin.where()}",
        "  try:      reduce it first, as in loss.mean() or loss.sum()",
    ]


def test_integers_have_no_gradient() -> None:
    x = build.input_("labels", (2,), i32)
    with pytest.raises(GradientError) as raised:
        backward(build.sum_(build.exp(x)), [x])
    lines = str(raised.value).splitlines()
    assert lines[0] == "no gradient by labels: it is not of floats"
    assert lines[2:] == [
        "  expected: a tensor of f32 or f16",
        "  got:      [2] i32",
        "  try:      differentiate by the float tensor that it was made from",
    ]
