"""Every operation and composite on the device, at odd and empty shapes, fused and not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from meganeura.autodiff import backward
from meganeura.ir import build, composites
from meganeura.ir.dtypes import bool_, f32, i32, u32
from meganeura.ir.graph import Graph, Node
from meganeura.ir.mode import bind
from meganeura.plan import Options
from tests.device.support import check, device, program
from tests.pure.ir.test_forward import BINARY, UNARY

SHAPES = [(), (1,), (5,), (127,), (4, 8), (0,), (3, 0, 2), (2, 3, 5)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_elementwise_operations(shape: tuple[int, ...]) -> None:
    """All rows of the elementwise family in one program of many outputs."""
    a, b = build.input_("a", shape), build.input_("b", shape)
    outputs = [(name, make(a)) for name, (make, _) in UNARY.items()]
    outputs += [(name, make(a, b)) for name, (make, _) in BINARY.items()]
    check(Graph(tuple(outputs)), device(), tolerance=3e-5)


@pytest.mark.parametrize(
    "shape", [(1,), (17,), (3, 5), (2, 3, 17), (4, 0), (0, 4), (2, 8, 4)], ids=str
)
@pytest.mark.parametrize("fuse", [True, False])
def test_reductions_over_every_axis(shape: tuple[int, ...], fuse: bool) -> None:
    x = build.input_("x", shape)
    outputs: list[tuple[str, Node]] = []
    for axis in [None, *range(len(shape))]:
        for name, reduce in [
            ("sum", build.sum_),
            ("max", build.max_),
            ("min", build.min_),
            ("argmax", build.argmax),
        ]:
            outputs.append((f"{name} {axis}", reduce(x, axis)))
    check(Graph(tuple(outputs)), device(), fuse=fuse)


def test_the_first_of_equals_is_the_argmax() -> None:
    x = build.floor(build.mul(build.input_("x", (7, 300)), 2.0))
    check(
        Graph(
            (
                ("rows", build.argmax(x, 1)),
                ("columns", build.argmax(x, 0)),
                ("all", build.argmax(x)),
            )
        ),
        device(),
    )


MATMULS = [
    ((1, 1), (1, 1)),
    ((5, 3), (3, 7)),
    ((17, 33), (33, 65)),
    ((1, 50), (50, 9)),
    ((64, 1), (1, 8)),
    ((3, 4, 5), (3, 5, 2)),
    ((2, 1, 4, 6), (3, 6, 4)),
    ((33, 100), (100,)),
    ((4, 0), (0, 3)),
    ((0, 4), (4, 3)),
    ((64, 64), (64, 32)),
]


@pytest.mark.parametrize(("a", "b"), MATMULS, ids=str)
def test_matmul(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    check(Graph((("y", build.matmul(build.input_("a", a), build.input_("b", b))),)), device())


@pytest.mark.parametrize("turn", ["nn", "tn", "nt", "tt"])
def test_matmul_of_transposes_needs_no_copy(turn: str) -> None:
    a = build.input_("a", (20, 36) if turn[0] == "n" else (36, 20))
    b = build.input_("b", (36, 12) if turn[1] == "n" else (12, 36))
    left = build.transpose(a) if turn[0] == "t" else a
    right = build.transpose(b) if turn[1] == "t" else b
    made = check(Graph((("y", build.add(build.matmul(left, right), 1.0)),)), device())
    assert [k.kind for k in made.kernels] == ["matmul"]


CONVOLUTIONS = [
    ((2, 3, 5, 7), (4, 3, 3, 3), {"padding": 1}),
    ((1, 4, 6, 6), (6, 2, 3, 2), {"groups": 2, "stride": 2, "padding": ((1, 0), (2, 1))}),
    ((2, 2, 7, 5), (2, 1, 2, 2), {"groups": 2, "dilation": 2}),
    ((3, 5, 4, 4), (7, 5, 1, 1), {}),
    ((2, 3, 8, 8), (4, 3, 1, 1), {"stride": 2}),
    ((1, 1, 9, 9), (1, 1, 5, 3), {"stride": (3, 2), "padding": 2, "dilation": (1, 2)}),
]


@pytest.mark.parametrize(
    ("x", "w", "how"), CONVOLUTIONS, ids=lambda v: str(v) if isinstance(v, dict) else ""
)
def test_convolution_and_its_gradients(x: tuple[int, ...], w: tuple[int, ...], how: dict) -> None:  # type: ignore[type-arg]
    image, filters = build.input_("x", x), build.input_("w", w)
    y = build.conv2d(build.tanh(image), filters, **how)
    loss = build.sum_(build.mul(build.sin(y), 0.3))
    gradients = backward(loss, [image, filters])
    outputs = (("y", y), ("dx", gradients[image]), ("dw", gradients[filters]))
    check(Graph(outputs), device())


def test_pooling_and_its_gradients() -> None:
    x = build.input_("x", (2, 3, 7, 6))
    outputs: list[tuple[str, Node]] = []
    for name, y in [
        ("max", composites.max_pool2d(x, 2)),
        ("padded max", composites.max_pool2d(x, 3, 2, 1)),
        ("mean", composites.avg_pool2d(x, 3, 2, 1)),
    ]:
        loss = build.sum_(build.mul(y, build.sin(y)))
        outputs += [(name, y), (f"d {name}", backward(loss, [x])[x])]
    check(Graph(tuple(outputs)), device())


def _losses() -> dict[str, Callable[[Node], Node]]:
    labels = build.constant(np.array([1, 0, 4, 2, 3, 3], np.int32))
    target = build.constant(np.linspace(0, 1, 30).reshape(6, 5).astype(np.float32))
    return {
        "cross entropy": lambda x: composites.cross_entropy(x, labels),
        "bce": lambda x: composites.bce_with_logits(x, target),
        "mse": lambda x: composites.mse(x, target),
        "l1": lambda x: composites.l1(x, target),
        "softmax": lambda x: build.sum_(build.mul(composites.softmax(x), target)),
        "log softmax": lambda x: build.sum_(build.mul(composites.log_softmax(x, 0), target)),
        "gelu": lambda x: build.mean(composites.gelu(x, "tanh")),
        "erf gelu": lambda x: build.mean(composites.gelu(x, "none")),
        "silu": lambda x: build.mean(composites.silu(x)),
        "softplus": lambda x: build.mean(composites.softplus(x)),
        "layer norm": lambda x: build.sum_(build.mul(composites.layer_norm(x), target)),
        "rms norm": lambda x: build.sum_(build.mul(composites.rms_norm(x), target)),
    }


@pytest.mark.parametrize("name", list(_losses()))
def test_composites_and_gradients_in_mid_graph(name: str) -> None:
    x = build.input_("x", (6, 5))
    loss = build.mul(_losses()[name](build.mul(build.tanh(x), 2.0)), 1.7)
    gradient = backward(build.mul(loss, loss), [x])[x]
    check(bind(Graph((("loss", loss), ("gradient", gradient))), training=False), device())


def test_views_and_indices() -> None:
    x = build.input_("x", (4, 6, 5))
    index = build.input_("i", (3, 2), i32)
    taken = build.gather(x, index, 1)
    outputs = (
        ("gather", taken),
        ("scatter", build.scatter_add(taken, index, 6, 1)),
        ("concat", build.concat([x, build.mul(x, 2.0), x], 1)),
        ("flip", build.slice_(x, (3, 0, 4), (-1, 6, -1), (-1, 2, -2))),
        ("pad", build.pad(x, (0, 1, 2), (3, 0, 1), -1.5)),
        ("permute", build.permute(x, (2, 0, 1))),
        ("iota", build.iota((3, 4), 1)),
        ("bool", build.gt(x, 0.0)),
        ("cast", build.cast(build.mul(x, 10.0), i32)),
    )
    check(Graph(outputs), device())


def test_random_bits_are_the_same_everywhere() -> None:
    seed = build.input_("seed", (), u32)
    bits = build.random_bits(seed, (5, 33), 7)
    check(
        Graph(
            (
                ("bits", bits),
                ("uniform", build.mul(build.cast(build.cast(bits, f32), f32), 2.0**-32)),
            )
        ),
        device(),
    )


def test_dropout_in_training_has_the_same_mask_forward_and_backward() -> None:
    x = build.input_("x", (8, 16))
    y = composites.dropout(x, 0.4)
    gradient = backward(build.sum_(y), [x])[x]
    check(bind(Graph((("y", y), ("gradient", gradient))), training=True), device())


def test_bools_are_stored_and_read() -> None:
    x, m = build.input_("x", (5, 8)), build.input_("m", (5, 8), bool_)
    both = build.and_(m, build.gt(x, 0.0))
    check(Graph((("both", both), ("kept", build.where(both, x, -1.0)))), device(), fuse=False)


def test_a_large_grid_is_folded() -> None:
    x = build.input_("x", (70000, 3))
    check(Graph((("y", build.add(x, 1.0)), ("s", build.sum_(x, 1)))), device())


@pytest.mark.parametrize(("a", "b"), [((66000, 3, 2), (66000, 2, 2)), ((2_100_000, 2), (2, 2))])
def test_a_product_of_many_tiles_is_folded(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    """More products, or more rows of tiles, than a grid has workgroups on an axis."""
    check(Graph((("y", build.matmul(build.input_("a", a), build.input_("b", b))),)), device())


@pytest.mark.parametrize("on", ["numpy", "llvmpipe"])
def test_a_label_that_is_no_class_spoils_the_loss(on: str) -> None:
    x = build.input_("x", (4, 3))
    labels = build.constant(np.array([0, 1, 2, 3], np.int32))
    each = composites.cross_entropy(x, labels, "none")
    made = program(bind(Graph((("each", each),)), training=False), Options(), device(on))
    loss = made(np.zeros((4, 3), np.float32))
    np.testing.assert_allclose(loss[:3], np.log(3.0), rtol=1e-6)
    assert np.isnan(loss[3])
