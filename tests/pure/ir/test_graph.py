"""Nodes and graphs: hash-consing, names, order, text, invariants."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

from meganeura.errors import FeedError, NameClashError, SpecError
from meganeura.ir import build
from meganeura.ir.dtypes import f32, i32
from meganeura.ir.evaluate import evaluate
from meganeura.ir.graph import Graph, Node
from meganeura.ir.ops import OPS, elementwise
from meganeura.ir.source import Origin
from meganeura.ir.spec import check, check_names
from meganeura.trace import scope


def test_equal_nodes_are_one() -> None:
    x = build.input_("x", (3,))
    a, b = build.sin(x), build.sin(x)
    assert a is not b  # two places in the code
    c, d = (build.sin(x) for _ in range(2))
    assert c is d
    assert build.pad(x, (1,), (0,)) is not build.pad(x, (0,), (1,))


def test_attributes_belong_to_the_identity() -> None:
    x = build.input_("x", (1, 1, 5, 5))
    w = build.input_("w", (1, 1, 3, 3))
    made = [build.conv2d(x, w, 1, p) for p in (0, 1, 1)]
    assert made[0] is not made[1]
    assert made[1] is made[2]
    eps = [build.add(x, e) for e in (1e-5, 1e-6)]
    assert eps[0] is not eps[1]


def test_an_operation_made_anew_is_another() -> None:
    """A cell that defines an operation is run again with another meaning."""
    x = build.input_("x", (1,))
    values = []
    for factor in (2.0, 3.0):
        row = elementwise("scale", 1, lambda x, f=factor: x * f, f"({{0}} * {factor})")
        y = build.apply(row, x)
        values.append(evaluate(Graph((("y", y),)), {"x": [1.0]})["y"].item())
    assert values == [2.0, 3.0]


def test_nodes_are_frozen_and_forgotten() -> None:
    x = build.input_("frozen", (1,))
    with pytest.raises(AttributeError, match="nodes are immutable"):
        x.shape = (2,)
    serial = x.serial
    del x
    gc.collect()
    made = [build.input_("frozen", (1,)) for _ in range(1)]
    assert made[0].serial > serial


def test_a_graph_tells_its_parts() -> None:
    x, w = build.input_("x", (2, 3)), build.parameter("w", (3, 1), None)
    y = build.matmul(x, w)
    graph = Graph((("y", y),), ((w, build.mul(w, 2.0)),))
    assert graph.inputs == (x,)
    assert graph.parameters == (w,)
    assert graph.users[w] == (y, graph.updates[0][1])
    assert graph.nodes.index(w) < graph.nodes.index(y)
    assert graph.rebuild(lambda node, inputs: node.with_inputs(inputs)).outputs == graph.outputs


def test_the_text_of_a_graph() -> None:
    x = build.input_("x", (2, 3))
    with scope("layer"):
        w = build.parameter("layer.w", (3, 4), 0.5)
        h = build.maximum(build.matmul(x, w), 0.0)
    y = build.sum_(build.slice_(h, (0, 1), (2, 4), (1, 2)), 0).with_name("total")
    graph = Graph((("y", y),), ((w, build.neg(w)),))
    assert graph.text() == "\n".join(
        [
            '%0 = input "x" : f32[2, 3]',
            '%1 = parameter "layer.w" init=0.5 trainable=True : f32[3, 4]  # layer',
            "%2 = matmul %0 %1 : f32[2, 4]  # layer",
            "%3 = constant value=0.0 : f32[]  # layer",
            "%4 = reshape %3 : f32[1, 1]  # layer",
            "%5 = expand %4 : f32[2, 4]  # layer",
            "%6 = max %2 %5 : f32[2, 4]  # layer",
            "%7 = slice %6 start=(0, 1) step=(1, 2) stop=(2, 4) : f32[2, 2]",
            '%8 = sum %7 axes=(0,) : f32[2]  # "total"',
            "%9 = neg %1 : f32[3, 4]",
            'output "y" = %8',
            'update "layer.w" = %9',
        ]
    )


def test_two_leaves_of_one_name() -> None:
    a = build.parameter("w", (2, 3), 0.0)
    b = build.parameter("w", (3,), 0.0)
    with pytest.raises(NameClashError) as raised:
        check_names(Graph((("y", build.add(a, b)),)))
    assert str(raised.value) == (
        "two parameters are named 'w'\n"
        f"  where:    {b.origin.where()}\n"
        "  expected: one name for each\n"
        f"  got:      [2, 3] f32 at {a.origin.where()}; [3] f32 at {b.origin.where()}\n"
        "  try:      rename one of them; to use one tensor twice, make it once and pass it on"
    )
    assert 'b = build.parameter("w", (3,), 0.0)' in str(raised.value)
    x = build.input_("w", (3,))
    with pytest.raises(NameClashError, match=r"^two leaves \(a parameter and an input\)"):
        check_names(Graph((("y", build.add(b, x)),)))


def broken(node: Node, **changes: Any) -> Node:
    """A copy of a node with fields that no builder would give it."""
    copy = object.__new__(Node)
    for name in ("op", "inputs", "attrs", "shape", "dtype", "origin", "serial"):
        object.__setattr__(copy, name, changes.get(name, getattr(node, name)))
    return copy


def faults(*outputs: Node, **more: Any) -> str:
    with pytest.raises(SpecError) as raised:
        check(Graph(tuple((f"y{i}", n) for i, n in enumerate(outputs))), **more)
    return raised.value.what


def test_the_spec_finds_what_is_broken() -> None:
    x = build.input_("x", (3,))
    y = build.sin(x)
    assert check(Graph((("y", y),))).outputs == (("y", y),)
    assert faults(broken(y, shape=(4,))) == "sin: shape or type differ from the rule"
    assert faults(broken(y, dtype=i32)) == "sin: shape or type differ from the rule"
    assert faults(broken(y, inputs=(x, x))) == "sin: wrong number of operands"
    assert faults(broken(x, inputs=(y,))) == "input 'x': a leaf has no operands"
    assert faults(broken(x, shape=(-1,), attrs=(*x.attrs,))) == "input 'x': a negative size"
    other = build.input_("z", (2,))
    mixed = broken(build.add(x, x), inputs=(x, other))
    assert faults(mixed) == "add: the operands do not fit: add needs operands of one shape"
    assert faults(build.detach(x), bound=True) == "detach: detach is left after binding"
    flag = build.where(build.training(), x, y)
    assert faults(flag, bound=True).endswith("meganeura.training is left after binding")
    assert faults(build.add(x, build.input_("x", (1,)))) == "two inputs are named 'x'"


def test_the_spec_looks_at_outputs_and_updates() -> None:
    x, w = build.input_("x", (3,)), build.parameter("w", (3,), 0.0)

    def fault(graph: Graph) -> str:
        with pytest.raises(SpecError) as raised:
            check(graph)
        return raised.value.what

    assert fault(Graph((("y", x), ("y", w)))) == "two outputs are named 'y'"
    assert fault(Graph((), ((x, w),))) == "input 'x': only parameters and states are updated"
    assert fault(Graph((), ((w, build.sum_(w)),))) == "parameter 'w': the new value does not fit"
    twice = Graph((), ((w, x), (w, build.neg(x))))
    assert fault(twice) == "parameter 'w': a leaf is updated twice"


def test_evaluation_needs_every_value() -> None:
    x = build.input_("x", (2,))
    with pytest.raises(FeedError) as raised:
        evaluate(Graph((("y", build.sin(x)),)), {})
    assert str(raised.value) == (
        "no value for the input 'x'\n"
        f"  where:    {x.origin.where()}\n"
        "  expected: [2] f32\n"
        "  got:      nothing"
    )


def test_the_oracle_is_float64_throughout() -> None:
    n = build.input_("n", (3,), i32)
    third = build.div(build.cast(n, f32), 3.0)
    graph = Graph((("y", build.sum_(third)),))
    value = evaluate(graph, {"n": [1, 1, 2]}, np.float64)["y"]
    assert value.dtype == np.float64
    assert value == 1 / 3 + 1 / 3 + 2 / 3


def test_every_operation_has_a_row() -> None:
    assert all(name == row.name for name, row in OPS.items())
    for row in OPS.values():
        assert row.kind in ("leaf", "map", "view", "reduce", "contract", "gather")
        assert (row.wgsl != "") == (row.kind == "map"), row.name


def test_the_origin_is_the_innermost_user_line() -> None:
    def block(x: Node) -> Node:
        return build.sin(x)

    y = block(build.input_("x", ()))
    source = y.origin.source
    assert source is not None
    assert source.cell == "test_graph.py"
    assert source.text == "return build.sin(x)"
    assert source.text[source.column - 8 : source.end_column - 8] == "build.sin(x)"
    assert Origin().where() is None
