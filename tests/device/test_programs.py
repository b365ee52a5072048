"""Whole programs on devices: switches, modes, updates, sharing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import meganeura as mg
from meganeura.ir import build
from meganeura.ir.graph import Graph
from meganeura.ir.mode import bind
from meganeura.plan import Options
from meganeura.runtime.device import get_device
from meganeura.runtime.program import Program
from meganeura.train.optim import SGD, AdamW
from tests.device.support import check, device, program

rng = np.random.default_rng(7)
X = rng.normal(size=(12, 6)).astype(np.float32)
Y = rng.integers(0, 3, 12).astype(np.int32)


def model(on: str, **options: Any) -> Program:
    x, y = mg.input("x", (12, 6)), mg.input("y", (12,), mg.i32)
    h = mg.relu(mg.nn.linear(x, 5, name="hidden"))
    logits = mg.nn.linear(h, 3, name="out").named("logits")
    loss = mg.cross_entropy(logits, y)
    return mg.compile({"loss": loss, "logits": logits}, device=on, **options)


def trained(on: str, clip: float | None = None, **options: Any) -> list[float]:
    made = model(on, **options)
    run = mg.train(
        made,
        loss="loss",
        optimizer=AdamW(0.02),
        data=iter([(X, Y)] * 8),
        clip_norm=clip,
        progress=False,
    )
    return [float(v) for v in run.history.losses]


@pytest.fixture(scope="module")
def reference() -> list[float]:
    return trained("numpy")


SWITCHES: list[dict[str, Any]] = [
    {},
    {"fuse": False},
    {"rewrite": False},
    {"alias": False},
    {"trusted": True},
    {"fuse": False, "rewrite": False, "alias": False},
]


@pytest.mark.parametrize("on", ["numpy", "llvmpipe", "SwiftShader"])
@pytest.mark.parametrize("options", SWITCHES, ids=str)
def test_every_switch_trains_alike(
    on: str, options: dict[str, Any], reference: list[float]
) -> None:
    np.testing.assert_allclose(trained(on, **options), reference, rtol=1e-4)


@pytest.mark.parametrize("on", ["llvmpipe", "SwiftShader"])
def test_clipping_trains_alike(on: str) -> None:
    np.testing.assert_allclose(trained(on, clip=0.1), trained("numpy", clip=0.1), rtol=1e-4)


def test_the_same_seed_gives_the_same_bits() -> None:
    assert trained("llvmpipe") == trained("llvmpipe")


@pytest.mark.parametrize("on", ["numpy", "llvmpipe"])
def test_norm_and_dropout_run_and_train(on: str) -> None:
    x, y = mg.input("x", (12, 6)), mg.input("y", (12,), mg.i32)
    h = mg.nn.dropout(mg.nn.batch_norm(x, name="norm"), 0.5)
    logits = mg.nn.linear(h, 3, name="out").named("logits")
    made = mg.compile({"loss": mg.cross_entropy(logits, y), "logits": logits}, device=on)
    before = made(X, Y)
    np.testing.assert_array_equal(before["logits"], made(X, Y)["logits"])
    run = mg.train(made, loss="loss", optimizer=SGD(0.1), data=iter([(X, Y)] * 4), progress=False)
    assert len(set(run.history.losses)) == 4
    assert any(np.abs(v).max() > 0 for k, v in made.parameters.items() if "mean" in k)


@pytest.mark.parametrize("on", ["numpy", "llvmpipe"])
def test_scalar_feeds_and_parameters(on: str) -> None:
    scale = mg.parameter("scale", (), init=3.0)
    made = mg.compile(mg.input("x", ()) * scale, device=on)
    assert made(x=2.0).shape == ()
    made.set_parameters({"scale": 5.0})
    assert float(made(x=2.0)) == 10.0
    assert made.parameters["scale"].shape == ()


def test_a_fused_away_tensor_can_be_read() -> None:
    made = model("llvmpipe")
    logits = made(X, Y)["logits"]
    np.testing.assert_allclose(made.read("logits", X, Y), logits, rtol=1e-6)
    np.testing.assert_array_equal(made.read("out.b"), made.parameters["out.b"])


def test_leaves_can_be_outputs() -> None:
    x, p = build.input_("x", (3,)), build.parameter("p", (2, 2), mg.init.uniform())
    c = build.constant(np.arange(4.0))
    graph = Graph((("x", x), ("p", p), ("c", c), ("flat", build.reshape(p, (4,)))))
    check(graph, device())


def test_leaves_that_swap_values() -> None:
    """Each new value is the other's old one: neither may overwrite before both are read."""
    a = build.parameter("a", (4,), mg.init.constant(1.0))
    b = build.parameter("b", (4,), mg.init.constant(2.0))
    graph = Graph((("sum", build.sum_(build.add(a, b))),), ((a, b), (b, a)))
    for on in (device(), mg.compile(mg.input("x", ()), device="numpy").device):
        made = program(graph, Options(), on)
        made()
        values = made.parameters
        assert values["a"].tolist() == [2.0] * 4
        assert values["b"].tolist() == [1.0] * 4


def test_an_update_that_reads_elsewhere_is_copied() -> None:
    p = build.parameter("p", (2, 3), mg.init.uniform())
    flipped = build.slice_(p, (1, 2), (-1, -1), (-1, -1))
    made = program(Graph((), ((p, flipped),)), Options(), device())
    before = made.parameters["p"]
    made()
    np.testing.assert_array_equal(made.parameters["p"], before[::-1, ::-1])


def test_gradients_beside_gradients_of_gradients() -> None:
    x, labels = mg.input("x", (6, 4)), mg.input("l", (6,), mg.i32)
    first = mg.grad(mg.sin(mg.cross_entropy(x, labels)), [x])[0]
    second = mg.grad(mg.sum(mg.sin(first)), [x])[0]
    graph = Graph((("g", first.node), ("g2", second.node)))
    check(bind(graph, training=False), device())


def test_small_maps_of_one_wave_share_a_launch() -> None:
    a, b, c = build.input_("a", (5,)), build.input_("b", (300, 4)), build.input_("c", ())
    outputs = (("a", build.exp(a)), ("b", build.mul(b, 2.0)), ("c", build.add(c, 1.0)))
    made = check(Graph(outputs), device())
    assert [len(k.arms) for k in made.kernels] == [3]
    assert len(check(Graph(outputs), device(), fuse=False).kernels) == 3


def test_clipping_stays_within_fourteen_launches() -> None:
    from meganeura.compiler import compile_graph
    from meganeura.target import Target
    from meganeura.train.step import step_graph

    target = Target(name="a card", backend="Vulkan", kind="hardware", storage_buffers=32, units=64)
    graph = step_graph(model("numpy").graph, "loss", AdamW(), clip_norm=1.0)
    assert len(compile_graph(graph, Options(), target).kernels) <= 14


def test_a_toggle_keeps_parameters_and_pipelines() -> None:
    made = model("llvmpipe")
    made.set_parameters({"out.b": [1.0, 2.0, 3.0]})
    want = made(X, Y)["logits"]
    made.set_options(alias=False)
    assert made.pipeline_seconds < 0.2
    np.testing.assert_array_equal(made(X, Y)["logits"], want)
    other = made.with_options(fuse=False)
    np.testing.assert_allclose(other(X, Y)["logits"], want, rtol=1e-5)
    assert other.store is made.store


def test_a_kernel_computes_again_what_waits_for_it() -> None:
    """A slice of the kernel's own value is stored by a second kernel and also read by the first."""
    x = mg.input("x", (2, 3, 4, 3, 1, 1))
    a, b, c = (mg.input(name, (2, 3, 4, 3)) for name in "abc")
    part = (mg.max(x, (4, 5)) * a * b)[..., :2]
    back = mg.pad(mg.cos(part), [(0, 0)] * 3 + [(0, 1)]) + c
    first = mg.argmax(x, (4, 5)).reshape(2, 3, 4, 3, 1, 1) == 0
    whole = mg.where(first, (back * a * b).reshape(2, 3, 4, 3, 1, 1), 0.5)
    check(Graph((("part", part.node), ("whole", whole.node))), device())


@pytest.mark.parametrize("fuse", [True, False])
def test_tensors_without_elements_need_no_kernel(fuse: bool) -> None:
    x = mg.input("x", (0, 2, 1))
    padded = mg.pad(x, [(0, 0), (0, 0), (2, 0)])
    rows = mg.pad(mg.sum(x, 2), [(1, 0), (0, 0)], 3.0)
    outputs = (("padded", padded.node), ("rows", rows.node), ("sum", mg.sum(padded).node))
    check(Graph(outputs), device(), fuse=fuse)


@pytest.mark.parametrize("fuse", [True, False])
def test_halves_are_computed_too(fuse: bool) -> None:
    """Products are summed in 32 bits, functions that WGSL lacks are computed in 32 bits."""
    if "shader-f16" not in device().target.features:
        pytest.skip("the adapter has no 16-bit floats")
    a = mg.input("a", (5, 8), mg.f16)
    outputs = {
        "product": mg.relu(a @ a.T + 1),
        "narrow": (a[:, :3] @ a[:, :3].T).cast(mg.f32),
        "functions": mg.tanh(a) + mg.erf(a) + mg.pow(mg.abs(a) + 1, a),
        "soft": mg.softmax(a),
        "rounded": mg.input("b", (5,)).cast(mg.f16).cast(mg.f32),
    }
    graph = Graph(tuple((name, tensor.node) for name, tensor in outputs.items()))
    check(bind(graph, training=False), device(), tolerance=3e-3, fuse=fuse)


def test_an_index_may_be_a_large_unsigned_number() -> None:
    x, i = mg.input("x", (3, 4)), mg.input("i", (3,), mg.u32)
    rows = mg.compile({"rows": x[i], "columns": mg.gather(x, i, 1)}, device=device())
    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    found = rows(values, np.array([1, 2**31, 2**32 - 1], np.uint32))
    np.testing.assert_array_equal(found["rows"], values[[1, 2, 2]])
    np.testing.assert_array_equal(found["columns"], values[:, [1, 3, 3]])


@pytest.mark.parametrize("low", [(3,), (0, 2), (0, 0, 7)])
def test_a_place_that_is_always_padding_reads_nothing(low: tuple[int, ...]) -> None:
    """Drivers refuse a kernel that names an element before the first, even where it never runs."""
    rank = len(low)
    x = mg.input("x", (1,) * rank)
    padded = mg.pad(x, [(n, 0) for n in low], 0.5)
    check(Graph((("padded", padded.node), ("turned", padded[::-1].node))), device())


def test_equal_layers_share_their_pipelines() -> None:
    h = mg.input("x", (8, 16))
    for layer in range(4):
        with mg.scope(f"block{layer}"):
            h = mg.tanh(mg.nn.linear(h, 16, name="mix"))
    made = check(Graph((("h", h.node),)), device())
    assert len(made.kernels) == 4
    assert len({kernel.key for kernel in made.kernels}) <= 2


def test_what_is_no_number_goes_through_the_greater_and_the_lesser() -> None:
    """A relu that made 0 of NaN would hide what went wrong before it."""
    x, y = mg.input("x", (2, 3)), mg.input("y", (2, 3))
    outputs = {
        "relu": mg.relu(x),
        "turned": mg.minimum(0.0, x),
        "clip": mg.clip(x, -1, 1),
        "greater": mg.maximum(x, y),
        "lesser": mg.minimum(x, y),
    }
    values = np.array([[np.nan, 1, -2], [3, np.nan, -1]], np.float32)
    others = np.array([[0, np.nan, -3], [4, np.nan, 2]], np.float32)
    found = mg.compile(outputs, device=device())(values, others)
    want = mg.compile(outputs, device="numpy")(values, others)
    for name in outputs:
        np.testing.assert_array_equal(found[name], want[name], err_msg=name)


def test_threads_may_share_a_program_and_the_device() -> None:
    program = mg.compile(mg.sum(mg.input("x", (64,)) * 2), device=device())

    def call(number: int) -> float:
        return float(program(np.full(64, number)))

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(call, range(200))) == [128.0 * n for n in range(200)]
        assert len({id(d) for d in pool.map(get_device, ["llvmpipe"] * 8)}) == 1
