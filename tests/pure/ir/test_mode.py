"""Binding to training or inference: choices, effects, detached values, random streams."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from meganeura import trace
from meganeura.autodiff.reverse import backward
from meganeura.errors import NameClashError
from meganeura.ir import build
from meganeura.ir import composites as c
from meganeura.ir.evaluate import evaluate, evaluate_nodes
from meganeura.ir.graph import Graph, Node
from meganeura.ir.mode import bind
from meganeura.ir.spec import check
from tests.pure.ir.support import numbers


def graph(**outputs: Node) -> Graph:
    return Graph(tuple(outputs.items()))


def normalised(x: Node, name: str = "bn") -> tuple[Node, Node, Node]:
    mean = build.parameter(f"{name}.mean", (3,), None, trainable=False)
    var = build.parameter(f"{name}.var", (3,), None, trainable=False)
    return c.batch_norm(x, None, None, mean, var), mean, var


def test_batch_norm_in_training_uses_and_moves_the_statistics() -> None:
    x = build.input_("x", (4, 3, 2))
    y, mean, var = normalised(x)
    bound = check(bind(graph(y=y), training=True), bound=True)
    assert [leaf for leaf, _ in bound.updates] == [mean, var]
    values = {x: numbers((4, 3, 2)), mean: numbers((3,), 1), var: np.array([0.5, 1.0, 2.0])}
    found = evaluate_nodes(bound.roots, values, np.float64)
    batch = values[x]
    average, spread = batch.mean((0, 2)), batch.var((0, 2))
    expected = (batch - average[:, None]) / np.sqrt(spread[:, None] + 1e-5)
    np.testing.assert_allclose(found[bound.outputs[0][1]], expected, rtol=1e-6)
    moved = [found[new] for _, new in bound.updates]
    np.testing.assert_allclose(moved[0], 0.9 * values[mean] + 0.1 * average, atol=1e-7)
    unbiased = batch.var((0, 2), ddof=1)
    np.testing.assert_allclose(moved[1], 0.9 * values[var] + 0.1 * unbiased, atol=1e-7)


def test_batch_norm_in_inference_reads_the_running_statistics() -> None:
    x = build.input_("x", (4, 3, 2))
    y, mean, var = normalised(x)
    bound = check(bind(graph(y=y), training=False), bound=True)
    assert bound.updates == ()
    assert not [n for n in bound.nodes if n.op.kind == "reduce"]
    values = {x: numbers((4, 3, 2)), mean: numbers((3,), 1), var: np.array([0.5, 1.0, 2.0])}
    found = evaluate_nodes(bound.roots, values, np.float64)[bound.outputs[0][1]]
    expected = (values[x] - values[mean][:, None]) / np.sqrt(values[var][:, None] + 1e-5)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_dropout_in_inference_is_the_tensor_itself() -> None:
    x = build.input_("x", (8,))
    bound = check(bind(graph(y=c.dropout(x, 0.5)), training=False), bound=True)
    assert bound.outputs == (("y", x),)
    assert c.dropout(x, 0.0) is x


def test_a_gradient_through_dropout_needs_no_seed_in_inference() -> None:
    x = build.input_("x", (8,))
    slope = backward(build.sum_(c.dropout(build.mul(x, x), 0.5)), [x])[x]
    bound = bind(graph(y=slope), training=False)
    assert [n.name for n in bound.inputs] == ["x"]
    np.testing.assert_allclose(evaluate(bound, {"x": np.arange(8.0)})["y"], 2 * np.arange(8.0))


def dropped(bound: Graph, seed: int, count: int) -> dict[str, Any]:
    return evaluate(bound, {"x": np.ones(count), "meganeura.seed": np.uint32(seed)}, np.float64)


def test_dropout_in_training_keeps_its_share_and_scales_it() -> None:
    x = build.input_("x", (20000,))
    bound = check(bind(graph(y=c.dropout(x, 0.25)), training=True), bound=True)
    y = dropped(bound, 3, 20000)["y"]
    assert set(np.round(np.unique(y), 5)) == {0.0, round(4 / 3, 5)}
    assert (y == 0).mean() == pytest.approx(0.25, abs=0.01)
    assert not np.array_equal(y, dropped(bound, 4, 20000)["y"])
    np.testing.assert_array_equal(y, dropped(bound, 3, 20000)["y"])


def test_each_dropout_has_a_mask_of_its_own_and_a_rebuild_the_same() -> None:
    x = build.input_("x", (4000,))

    def two() -> Graph:
        first, second = c.dropout(x, 0.5), c.dropout(x, 0.5)
        return bind(graph(a=first, b=second), training=True)

    one, again = two(), two()
    found = dropped(one, 1, 4000)
    assert abs(np.corrcoef(found["a"], found["b"])[0, 1]) < 0.05
    assert one.text() == again.text()
    assert [n is m for n, m in zip(one.nodes, again.nodes, strict=True)]
    streams = sorted(n.attr("stream") for n in one.nodes if n.op.name == "random")
    assert streams == [build.AUTOMATIC, build.AUTOMATIC + 1]


def test_streams_that_the_user_gave_stay() -> None:
    bound = bind(graph(y=c.uniform((3,), stream=9)), training=True)
    assert [n.attr("stream") for n in bound.nodes if n.op.name == "random"] == [9]


def test_names_survive_what_is_taken_out() -> None:
    x = build.input_("x", (4,))
    h = build.sin(x)
    y = c.dropout(h, 0.5).with_name("dropped")
    z = build.detach(h).with_name("detached")
    bound = bind(graph(y=y, z=z), training=False)
    assert [(n.op.name, n.name) for _, n in bound.outputs] == [
        ("sin", "dropped"),
        ("sin", "detached"),
    ]


def test_a_choice_by_data_stays() -> None:
    x = build.input_("x", (4,))
    y = build.where(build.gt(x, 0.0), x, 0.0)
    assert bind(graph(y=y), training=True).outputs[0][1] is y


def test_the_opposite_of_the_flag_chooses_too() -> None:
    x = build.input_("x", (4,))
    y = build.where(build.not_(build.training()), x, build.neg(x))
    assert bind(graph(y=y), training=False).outputs[0][1] is x


def test_one_statistic_cannot_be_updated_twice() -> None:
    a, b = build.input_("a", (4, 3)), build.input_("b", (4, 3))
    mean = build.parameter("bn.mean", (3,), None, trainable=False)
    var = build.parameter("bn.var", (3,), None, trainable=False)
    y = build.add(*(c.batch_norm(x, None, None, mean, var) for x in (a, b)))
    with pytest.raises(NameClashError) as raised:
        bind(graph(y=y), training=True)
    lines = str(raised.value).splitlines()
    assert [lines[0], *lines[2:]] == [
        "bn.mean would be updated twice in one training step",
        "  expected: one update",
        "  got:      two",
        "  try:      give the second layer a name of its own",
    ]
    assert bind(graph(y=y), training=False).updates == ()


def test_binding_is_watched() -> None:
    events: list[trace.Event] = []
    with trace.watch(events.append):
        bind(graph(y=build.input_("x", ())), training=True)
    assert [e.stage for e in events] == ["bind"]
