"""The user's tensor: operators, indexing, functions, leaves, gradients, messages."""

from __future__ import annotations

import operator
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import meganeura as mg
from meganeura.errors import (
    DTypeError,
    FeedError,
    GradientError,
    MeganeuraError,
    NameClashError,
    OptionError,
    ShapeError,
)
from meganeura.ir.evaluate import evaluate_nodes
from meganeura.ir.initial import first_value
from meganeura.tensor import graph_of

Array = np.ndarray[Any, Any]


def value(tensor: mg.Tensor, feeds: Mapping[str, Any] | None = None) -> Array:
    """The tensor in float64; parameters have their first values."""
    graph = graph_of({"value": tensor})
    named = {n.name: n for n in graph.nodes if n.op.kind == "leaf" and n.op.name != "constant"}
    values = {named[k]: v for k, v in (feeds or {}).items() if k in named}
    values |= {n: first_value(n) for n in graph.parameters if n not in values}
    return evaluate_nodes([tensor.node], values, np.float64)[tensor.node]


X = np.array([[1.5, -2.0, 3.0], [0.25, 5.0, -6.0]])
Y = np.array([[2.0, 0.5, -1.0], [1.0, 4.0, 2.5]])

OPERATORS: list[Callable[[Any, Any], Any]] = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.mod,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
    operator.eq,
    operator.ne,
]


@pytest.mark.parametrize("function", OPERATORS, ids=lambda f: f.__name__)
def test_operators_are_numpys(function: Any) -> None:
    x, y = mg.constant(X), mg.constant(Y)
    np.testing.assert_allclose(value(function(x, y)), function(X, Y))
    np.testing.assert_allclose(value(function(x, Y)), function(X, Y))
    np.testing.assert_allclose(value(function(X, y)), function(X, Y))
    np.testing.assert_allclose(value(function(x, 2.0)), function(X, 2.0))
    np.testing.assert_allclose(value(function(2.0, y)), function(2.0, Y))
    np.testing.assert_allclose(value(function(2, y[0])), function(2, Y[0]))


def test_other_operators() -> None:
    x, y = mg.constant(X), mg.constant(Y)
    np.testing.assert_allclose(value(abs(x) ** y), np.abs(X) ** Y)
    np.testing.assert_allclose(value(x**2), X**2)
    np.testing.assert_allclose(value(2**y), 2**Y)
    np.testing.assert_allclose(value(x @ y.T), X @ Y.T)
    array: Any = X  # as its own type, NumPy claims the product for itself
    np.testing.assert_allclose(value(array @ y.T), X @ Y.T)
    np.testing.assert_allclose(value(x @ Y.T), X @ Y.T)
    np.testing.assert_allclose(value(-x), -X)
    np.testing.assert_array_equal(
        value(~((x > 0) & (y > 0) | (x < -3))), ~((X > 0) & (Y > 0) | (X < -3))
    )


INDICES: list[Any] = [
    0,
    -1,
    (1, 2),
    slice(None),
    (slice(None), 1),
    (slice(None), slice(None, None, -1)),
    (Ellipsis, slice(0, 3, 2)),
    (None, Ellipsis, None),
    (slice(5, 1), 0),
    (1, None, slice(-2, None)),
    (),
    (np.int64(1), Ellipsis),
]


@pytest.mark.parametrize("key", INDICES, ids=str)
def test_indexing_is_numpys(key: Any) -> None:
    np.testing.assert_array_equal(value(mg.constant(X)[key]), X[key])


Z = np.arange(2.0 * 3 * 5 * 4).reshape(2, 3, 5, 4)
STEPS: list[Any] = [
    (slice(None, None, -1), Ellipsis, slice(None, None, 3)),
    (Ellipsis, slice(-1, None, -2), slice(1, -1)),
    (0, None, slice(2, 0, -1), Ellipsis, None),
    (slice(None, None, 2), slice(None, None, -2), slice(4, 0, -3), -1),
    (None, 1, slice(9, -9, -4), slice(-2, None), None, slice(None, 1, -1)),
    (Ellipsis, slice(3, 3), None),
    (slice(1), slice(-7, 2), np.int32(-2), None, slice(None, None, -5)),
    (None, None, Ellipsis, 0),
]


@pytest.mark.parametrize("key", STEPS, ids=str)
def test_steps_new_axes_and_dots_together(key: Any) -> None:
    np.testing.assert_array_equal(value(mg.constant(Z)[key]), Z[key])


def test_rows_by_a_tensor_an_array_or_a_list() -> None:
    rows = [1, 0, 1]
    for key in (rows, np.array(rows), mg.constant(rows)):
        np.testing.assert_array_equal(value(mg.constant(X)[key]), X[rows])
    np.testing.assert_array_equal(value(mg.constant(X)[mg.constant([[0], [1]])]), X[[[0], [1]]])


def test_methods_are_numpys() -> None:
    x = mg.constant(X)
    for name in ("sum", "mean", "max", "min", "argmax"):
        np.testing.assert_allclose(value(getattr(x, name)()), getattr(X, name)())
        np.testing.assert_allclose(value(getattr(x, name)(1)), getattr(X, name)(1))
        kept = value(getattr(x, name)(0, keepdims=True))
        np.testing.assert_allclose(kept, getattr(X, name)(0, keepdims=True))
    np.testing.assert_array_equal(value(x.reshape(3, -1)), X.reshape(3, -1))
    np.testing.assert_array_equal(value(x.reshape((6,))), X.reshape(6))
    np.testing.assert_array_equal(value(x.permute(1, 0)), X.T)
    np.testing.assert_array_equal(value(x.transpose()), X.T)
    np.testing.assert_array_equal(value(x.T), X.T)
    np.testing.assert_array_equal(value(x.expand(4, 2, 3)), np.broadcast_to(X, (4, 2, 3)))
    assert value(x.cast(mg.i32)).tolist() == [[1, -2, 3], [0, 5, -6]]
    assert value(x.cast("bool")).all()
    assert (x.ndim, x.size, x.shape, x.dtype) == (2, 6, (2, 3), mg.f32)
    assert len(x) == 2
    first, second = x
    np.testing.assert_array_equal(value(second), X[1])
    assert first.shape == (3,)


def test_functions_of_numbers_arrays_and_tensors() -> None:
    assert value(mg.exp(0.0)) == 1
    np.testing.assert_allclose(value(mg.sqrt(mg.abs(X))), np.sqrt(np.abs(X)))
    np.testing.assert_allclose(value(mg.clip(X, -1, 2)), X.clip(-1, 2))
    np.testing.assert_allclose(value(mg.maximum(X, Y)), np.maximum(X, Y))
    np.testing.assert_allclose(value(mg.minimum(X, mg.constant(Y))), np.minimum(X, Y))
    np.testing.assert_allclose(value(mg.where(X > 0, X, 0)), X * (X > 0))
    np.testing.assert_allclose(value(mg.pad(X, [(0, 1), (2, 0)])), np.pad(X, [(0, 1), (2, 0)]))
    np.testing.assert_allclose(value(mg.concat([X, mg.constant(Y)], 1)), np.hstack([X, Y]))
    np.testing.assert_allclose(value(mg.stack([X, Y], -1)), np.stack([X, Y], -1))
    np.testing.assert_allclose(value(mg.split(X, 3, 1)[2]), X[:, 2:])
    np.testing.assert_allclose(value(mg.gather(X, [2, 0], 1)), X[:, [2, 0]])
    np.testing.assert_allclose(value(mg.scatter_add(X, [1, 1], 2)), [[0, 0, 0], X[0] + X[1]])
    np.testing.assert_allclose(value(mg.one_hot([1, 0], 3)), [[0, 1, 0], [1, 0, 0]])
    np.testing.assert_allclose(value(mg.var(X, 0)), X.var(0))
    np.testing.assert_allclose(value(mg.matmul(X, Y.T)), X @ Y.T)
    assert value(mg.arange(3)).tolist() == [0, 1, 2]
    assert value(mg.full((2,), 7, "i32")).tolist() == [7, 7]
    assert value(mg.zeros((1,)) + mg.ones((1,))).tolist() == [1]
    assert value(mg.as_tensor(3)) == 3


ONE_TO_ONE = ["neg", "abs", "exp", "log", "sqrt", "rsqrt", "recip", "sin", "cos", "tanh", "erf"]
ONE_TO_ONE += ["floor", "sign", "relu", "sigmoid", "silu", "gelu", "softplus", "softmax"]
ONE_TO_ONE += ["log_softmax"]


@pytest.mark.parametrize("name", ONE_TO_ONE)
def test_a_public_function_is_the_builder_of_its_name(name: str) -> None:
    from meganeura.ir import build, composites

    x = mg.constant(np.abs(X))
    builder = getattr(composites, name, None) or getattr(build, name, None)
    builder = builder or getattr(build, name + "_")
    function = getattr(mg, name)
    assert function(x).shape == (2, 3)
    expected = mg.Tensor(builder(x.node))
    np.testing.assert_array_equal(value(function(x)), value(expected))
    assert function(x).node.op is expected.node.op


def test_losses_pools_and_convolutions_through_the_api() -> None:
    assert value(mg.mse(X, Y)) == pytest.approx(((X - Y) ** 2).mean())
    assert value(mg.l1(X, Y, "sum")) == pytest.approx(np.abs(X - Y).sum())
    assert value(mg.bce_with_logits(np.zeros(3), np.ones(3))) == pytest.approx(np.log(2))
    assert value(mg.cross_entropy(np.zeros((2, 4)), [1, 3])) == pytest.approx(np.log(4))
    assert value(mg.logsumexp(np.zeros((2, 4)), keepdims=True)).shape == (2, 1)
    heads = np.ones((2, 3, 4))
    assert value(mg.attention(heads, heads, heads, causal=True)).tolist() == heads.tolist()
    assert value(mg.max_pool2d(X, (2, 3))).tolist() == [[5]]
    assert value(mg.avg_pool2d(X, (2, 3))).tolist() == [[pytest.approx(X.mean())]]
    image, filters = np.ones((1, 2, 3, 3)), np.ones((4, 2, 3, 3))
    assert value(mg.conv2d(image, filters)).tolist() == [[[[18.0]]] * 4]
    assert mg.conv2d(image, filters, padding=1).shape == (1, 4, 3, 3)


def test_sums_scans_ranks_and_images_through_the_api() -> None:
    x = mg.constant(X)
    np.testing.assert_allclose(value(mg.einsum("ij,kj->ki", x, Y)), Y @ X.T)
    np.testing.assert_allclose(value(mg.cumsum(x, 1, reverse=True)), X[:, ::-1].cumsum(1)[:, ::-1])
    values, indices = mg.topk(X, 2)
    assert value(values).tolist() == [[3, 1.5], [5, 0.25]]
    assert (value(indices).tolist(), indices.dtype) == ([[2, 0], [1, 0]], mg.i32)
    np.testing.assert_array_equal(value(mg.flip(x, 1)), X[:, ::-1])
    np.testing.assert_array_equal(value(mg.roll(x, 1, 1)), np.roll(X, 1, 1))
    np.testing.assert_array_equal(value(mg.tril(X, 1)), np.tril(X, 1))
    np.testing.assert_array_equal(value(mg.triu(x)), np.triu(X))
    turned = value(mg.rotary_embedding(X[:, :2], positions=[0, 1]))
    a, b = X[1, :2]
    expected = [a * np.cos(1) - b * np.sin(1), b * np.cos(1) + a * np.sin(1)]
    np.testing.assert_allclose(turned[0], X[0, :2], rtol=1e-6)
    np.testing.assert_allclose(turned[1], expected, rtol=1e-6)
    assert mg.nn.rotary is mg.rotary_embedding
    image, filters = np.ones((1, 2, 3, 3)), np.ones((2, 4, 2, 2))
    assert mg.conv_transpose2d(image, filters, stride=2).shape == (1, 4, 6, 6)
    assert (value(mg.conv_transpose2d(image, filters, stride=2)) == 2).all()
    np.testing.assert_array_equal(value(mg.resize(X, (4, 3))), np.repeat(X, 2, 0))
    wide = value(mg.resize(X, (2, 5), mode="bilinear", align_corners=True))
    np.testing.assert_allclose(wide[:, ::2], X)
    np.testing.assert_allclose(value(mg.adaptive_avg_pool2d(X, 1)), [[X.mean()]])


def test_gradients_of_any_order() -> None:
    x = mg.input("x", (3,))
    y = (x**3).sum()
    first = mg.grad(y, x)
    second = mg.grad(first.sum(), x)
    third = mg.grad(second.sum(), x)
    at = {"x": np.array([1.0, 2.0, -1.0])}
    assert value(first, at).tolist() == [3, 12, 3]
    assert value(second, at).tolist() == [6, 12, -6]
    assert value(third, at).tolist() == [6, 6, 6]
    w = mg.parameter("w", (3,), 2.0)
    gx, gw = mg.grad((x * w).sum(), [x, w])
    assert value(gx, at).tolist() == [2, 2, 2]
    assert value(gw, at).tolist() == [1, 2, -1]
    assert mg.grad((x * mg.detach(x)).sum(), [x])[0].shape == (3,)


def test_parameters_take_their_scope_and_an_array() -> None:
    with mg.scope("block"), mg.scope("inner"):
        w = mg.parameter("w", (2,), mg.init.uniform())
    assert w.name == "block.inner.w"
    assert w.node.origin.scope == ("block", "inner")
    given = mg.parameter("table", init=X)
    assert given.shape == (2, 3)
    np.testing.assert_array_equal(first_value(given.node), X)
    assert mg.parameter("frozen", (2,), trainable=False).node.attr("trainable") is False
    recipes = [mg.init.zeros(), mg.init.ones(), mg.init.constant(3), mg.init.normal()]
    recipes += [mg.init.fan_in((2, 3)), mg.init.he((2, 3)), mg.init.glorot((2, 3))]
    for i, recipe in enumerate(recipes):
        assert first_value(mg.parameter(f"p{i}", (2, 3), recipe).node).shape == (2, 3)


def test_random_tensors() -> None:
    drawn = value(mg.random.uniform((1000,), 2, 3, seed=4))
    assert 2 <= drawn.min() <= drawn.max() < 3
    assert value(mg.random.normal((1000,), stream=1)).std() == pytest.approx(1, abs=0.1)
    seed = mg.input("seed", (), mg.u32)
    again = value(mg.random.uniform((1000,), 2, 3, seed=seed), {"seed": 4})
    np.testing.assert_array_equal(again, drawn)


def test_names_and_outputs() -> None:
    x = mg.input("x", (3,))
    h = mg.relu(x).named("h")
    assert (x.name, h.name, (h + 1).name) == ("x", "h", None)
    assert x.named("x") is x
    assert [n for n, _ in graph_of((h, h + 1)).outputs] == ["h", "out1"]
    assert [n for n, _ in graph_of(h + 1).outputs] == ["out"]
    assert [n for n, _ in graph_of({"a": h, "b": h}).outputs] == ["a", "b"]


def test_a_tensor_shows_what_it_is_and_where_it_comes_from() -> None:
    x = mg.input("x", (2, 3))
    y = mg.exp(x).named("y")
    assert repr(x) == (
        "<Tensor 'x' [2, 3] f32: input, test_tensor.py, line "
        f'{x.node.origin.source.line}: x = mg.input("x", (2, 3))>'  # type: ignore[union-attr] # known
    )
    assert repr(y).startswith("<Tensor 'y' [2, 3] f32: exp, test_tensor.py, line ")


def test_a_tensor_is_frozen_and_hashable() -> None:
    x = mg.input("x", (2,))
    with pytest.raises(AttributeError):
        x.node = x.node  # type: ignore[misc] # that is the test
    assert {x: 1}[x] == 1


def message(error: MeganeuraError) -> list[str]:
    lines = str(error).splitlines()
    assert lines[1].startswith("  where:    test_tensor.py, line ")
    return [lines[0], *lines[2:]]


def test_messages() -> None:
    x = mg.input("x", (2, 3))
    with pytest.raises(DTypeError) as truth:
        bool(x > 0)
    assert message(truth.value) == [
        "a tensor is neither true nor false: its numbers are not known yet",
        "  expected: mg.where(condition, a, b) for a choice by element",
        "  got:      a Python condition on [2, 3] bool",
        "  try:      or run it first: bool(tensor.numpy().all())",
    ]
    with pytest.raises(ShapeError) as index:
        x[2]
    assert message(index.value) == [
        "index 2 is out of range on axis 0 of [2, 3]",
        "  expected: from -2 to 1",
        "  got:      2",
    ]
    with pytest.raises(ShapeError) as index:
        x[0, 0, 0]
    assert message(index.value) == [
        "too many indices for [2, 3]",
        "  expected: at most 2",
        "  got:      3",
    ]
    with pytest.raises(DTypeError) as mask:
        x[x > 0]
    assert message(mask.value) == [
        "a mask cannot index: how many elements it keeps is not known before it runs",
        "  expected: integers, slices, or a tensor of integers",
        "  got:      [2, 3] bool",
        "  try:      use mg.where(mask, x, 0)",
    ]
    with pytest.raises(DTypeError) as kind:
        x[0, [1, 2]]
    assert message(kind.value) == [
        "cannot index with list",
        "  expected: integers, slices, None, ..., or one tensor of integers",
        "  got:      [1, 2]",
        "  try:      gather along another axis with mg.gather(x, index, axis)",
    ]
    with pytest.raises(ShapeError) as shape:
        x @ x
    assert message(shape.value) == [
        "matmul of [2, 3] and [2, 3]",
        "  expected: [..., m, k] by [..., k, n] with one k",
        "  got:      k of 3 and 2",
        "  try:      check the layer before, or transpose an operand with .T",
    ]
    with pytest.raises(NameClashError) as named:
        x.named("z")
    assert message(named.value) == [
        "the input 'x' has a name already",
        "  expected: x",
        "  got:      z",
        "  try:      name the output instead, as in mg.compile({'z': tensor})",
    ]
    with pytest.raises(DTypeError) as shapeless:
        mg.parameter("w")
    assert message(shapeless.value) == [
        "the parameter 'w' has no shape",
        "  expected: a shape, or an array as init",
        "  got:      neither",
        "  try:      write mg.parameter('w', (64, 10))",
    ]
    with pytest.raises(ShapeError) as sizes:
        mg.input("x", (None, 64))  # type: ignore[arg-type] # what a beginner writes
    assert message(sizes.value) == [
        "a shape is made of whole numbers",
        "  expected: a tuple such as (128, 64)",
        "  got:      (None, 64)",
        "  try:      the batch has a fixed size too: compile once for each size",
    ]
    with pytest.raises(OptionError) as nameless:
        mg.input((2, 3))  # type: ignore[arg-type] # what a beginner writes
    assert message(nameless.value) == [
        "a tensor's name is a word",
        '  expected: text such as "x", that does not start with "meganeura."',
        "  got:      (2, 3)",
        '  try:      the name comes first: mg.input("x", (128, 64))',
    ]
    with pytest.raises(GradientError) as by_name:
        mg.grad(x.sum(), ["x"])  # type: ignore[list-item] # what a beginner writes
    assert message(by_name.value) == [
        "a gradient is taken by tensors",
        "  expected: a tensor, or several",
        "  got:      'x'",
        "  try:      keep the tensor: w = mg.parameter(...); mg.grad(loss, [w])",
    ]
    with pytest.raises(GradientError) as loss:
        mg.grad(x, x)
    assert message(loss.value) == [
        "only a scalar has a gradient",
        "  expected: a loss of shape [] and type f32",
        f"  got:      [2, 3] f32, made at {x.node.origin.where()}",
        "  try:      reduce it first, as in loss.mean() or loss.sum()",
    ]
    with pytest.raises(FeedError) as feed:
        (x + 1).numpy()
    assert message(feed.value) == [
        "the tensor depends on inputs, whose values only a call can give",
        "  expected: a tensor of parameters and constants alone",
        "  got:      the inputs 'x'",
        "  try:      compile it: mg.compile(tensor)(x=...)",
    ]
    with pytest.raises(ShapeError, match="a scalar has no length"):
        len(x.sum())


def test_one_name_for_two_tensors() -> None:
    w1 = mg.parameter("w", (3, 4), 0.0)
    w2 = mg.parameter("w", (3, 4), 0.0)
    with pytest.raises(NameClashError) as clash:
        graph_of(w1 + w2)
    assert message(clash.value) == [
        "two parameters are named 'w'",
        "  expected: one name for each",
        f"  got:      [3, 4] f32 at {w1.node.origin.where()}; "
        f"[3, 4] f32 at {w2.node.origin.where()}",
        "  try:      rename one of them; to use one tensor twice, make it once and pass it on",
    ]
    x = mg.input("x", (3,))
    with pytest.raises(NameClashError) as outputs:
        graph_of((mg.exp(x).named("y"), mg.log(x).named("y")))
    assert message(outputs.value) == [
        "two outputs are named 'y'",
        "  expected: a name for each output",
        "  got:      [3] and [3]",
        '  try:      name them, as in mg.compile({"loss": loss, "logits": logits})',
    ]


def test_the_public_names_exist_and_say_what_they_do() -> None:
    assert sorted(mg.__all__) == dir(mg)
    assert len(set(mg.__all__)) == len(mg.__all__)
    for name in mg.__all__:
        if name != "__version__" and callable(getattr(mg, name)):
            assert (getattr(mg, name).__doc__ or "").strip(), name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        mg.nothing  # noqa: B018 # that is the test


def test_the_import_brings_neither_the_device_nor_the_notebook() -> None:
    code = (
        "import sys, meganeura; "
        "sys.exit(str([m for m in ('wgpu', 'IPython', 'plotly') if m in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == "[]"


def test_an_operation_of_ones_own_with_its_gradient() -> None:
    blend = mg.elementwise(
        "blend",
        numpy=lambda a, b: a * b + b,
        wgsl="({0} * {1} + {1})",
        gradient=lambda g, a, b: (g * b, g * (a + 1)),
        inputs=2,
    )
    assert blend.__name__ == "blend"
    a, b = mg.input("a", (3,)), mg.input("b", (3,))
    loss = (blend(mg.sin(a), b) ** 2).sum()
    at = {"a": np.array([0.1, 0.2, 0.3]), "b": np.array([1.0, -2.0, 0.5])}
    s = np.sin(at["a"])
    assert value(loss, at) == pytest.approx((((s + 1) * at["b"]) ** 2).sum())
    ga, gb = mg.grad(loss, [a, b])
    outer = 2 * (s + 1) * at["b"]
    np.testing.assert_allclose(value(ga, at), outer * at["b"] * np.cos(at["a"]))
    np.testing.assert_allclose(value(gb, at), outer * (s + 1))
    assert blend(2, b).node.op.wgsl == "({0} * {1} + {1})"


def test_an_operation_of_ones_own_is_refused() -> None:
    with pytest.raises(NameClashError) as clash:
        mg.elementwise("exp", numpy=np.exp, wgsl="exp({0})")
    assert message(clash.value) == [
        "there is an operation 'exp' already",
        "  expected: a name of its own",
        "  got:      'exp'",
        '  try:      call it "my_exp"',
    ]
    lost = mg.elementwise("lost", numpy=np.cbrt, wgsl="pow({0}, vec4(1.0 / 3.0))")
    x = mg.input("x", (2,))
    with pytest.raises(GradientError, match="the operation lost has no gradient rule"):
        mg.grad(lost(x).sum(), x)
    with pytest.raises(OptionError, match="lost takes 1 tensors"):
        lost(x, x)


@pytest.mark.parametrize("outputs", [[], 3.0, "loss", [1.0], {"loss": None}], ids=str)
def test_what_is_no_tensor_is_not_compiled(outputs: Any) -> None:
    with pytest.raises(OptionError) as raised:
        graph_of(outputs)
    lines = message(raised.value)
    assert lines[:2] == [
        "nothing to compile",
        "  expected: a tensor, several tensors, or tensors by name",
    ]
    assert lines[3] == '  try:      mg.compile({"loss": loss, "logits": logits})'


def test_a_misspelt_name_gets_a_suggestion() -> None:
    with pytest.raises(AttributeError) as error:
        mg.softmx  # noqa: B018
    want = "module 'meganeura' has no attribute 'softmx'; did you mean 'softmax'?"
    assert str(error.value) == want
    assert not hasattr(mg, "zzz")


@pytest.mark.parametrize(
    ("make", "first", "got"),
    [
        (lambda x: mg.arange(-1), "a shape is made of whole numbers", "-1"),
        (lambda x: mg.input("y", None), "a shape is made of whole numbers", "None"),  # type: ignore[arg-type] # on purpose
        (lambda x: mg.one_hot(mg.arange(3), -1), "one_hot of less than no classes", "-1"),
        (
            lambda x: mg.scatter_add(x, mg.arange(3), -2),
            "scatter_add to an axis of less than no places",
            "-2",
        ),
        (lambda x: mg.split(x, 0), "cannot split axis 0 of [3, 4] into 0", "0"),
        (lambda x: mg.split(x, (4, -1)), "cannot split axis 0 of [3, 4] into (4, -1)", "3"),
        (lambda x: mg.sum(x, 1.0), "an axis is a whole number", "1.0"),  # type: ignore[arg-type] # on purpose
        (lambda x: mg.pad(x, 1), "pad takes two whole numbers for each axis", "1"),  # type: ignore[arg-type] # on purpose
        (lambda x: x[1.5:], "a slice is made of whole numbers", "slice(1.5, None, None)"),
    ],
)
def test_sizes_and_axes_that_are_none(make: Any, first: str, got: str) -> None:
    with pytest.raises(MeganeuraError) as error:
        make(mg.ones((3, 4)))
    assert (error.value.what, error.value.got) == (first, got)
    assert "test_tensor.py" in str(error.value)


def test_a_scalar_is_padded_by_nothing() -> None:
    assert mg.pad(mg.constant(1.0), []).shape == ()
