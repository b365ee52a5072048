"""Where the fusion pass cuts: circles, limits of bindings, and leaves that are written in place."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

import meganeura as mg
from meganeura.compiler import compile_graph
from meganeura.fuse.fuse import fuse
from meganeura.fuse.grow import MOST_SUMS
from meganeura.fuse.lower import lower
from meganeura.ir.graph import Graph
from meganeura.plan import Options, Plan
from meganeura.rewrite import simplify
from meganeura.target import WEBGPU_DEFAULTS, Target
from meganeura.tensor import Tensor
from meganeura.tile.table import split_parts
from meganeura.train.optim import SGD, AdamW
from meganeura.train.step import step_graph

CARD = replace(WEBGPU_DEFAULTS, storage_buffers=64, units=128)


def compiled(target: Target = CARD, **outputs: Tensor) -> Plan:
    graph = Graph(tuple((name, tensor.node) for name, tensor in outputs.items()))
    return compile_graph(graph, Options(rewrite=False), target)


def stepped(loss: Tensor, target: Target) -> Plan:
    graph = step_graph(Graph((("loss", loss.node),)), "loss", AdamW())
    return compile_graph(graph, Options(), target, kind="training step")


def images(count: int) -> Tensor:
    """The loss of a small network with normalised batches."""
    x, y = mg.input("x", (8, 3, 16, 16)), mg.input("y", (8,), mg.i32)
    for i in range(count):
        x = mg.relu(mg.nn.batch_norm(mg.nn.conv2d(x, 8, 3, padding=1, name=f"c{i}"), name=f"n{i}"))
    return mg.cross_entropy(mg.nn.linear(x.reshape((8, -1)), 10, name="out"), y)


def residual(blocks: int) -> Tensor:
    """The loss of a long residual network, whose gradients of biases all sum over one shape."""
    x, y = mg.input("x", (4, 16, 32)), mg.input("y", (64,), mg.i32)
    for i in range(blocks):
        h = mg.nn.linear(mg.nn.layer_norm(x, name=f"n{i}"), 32, name=f"d{i}")
        x = x + mg.gelu(h)
    return mg.cross_entropy(mg.nn.linear(x.reshape((64, 32)), 5, name="out"), y)


def test_an_output_between_two_sums_splits_them() -> None:
    """The exponentials are stored, so the kernel of the maximum cannot also sum them up."""
    x = mg.input("x", (2, 20_001))
    e = mg.exp(x - mg.max(x, 1, keepdims=True))
    plan = compiled(e=e, total=mg.sum(e, 1))
    regions = {n.op.name: k.region for k in plan.kernels for n in k.region.roots}
    assert regions["sum"] is not regions["exp"]
    assert plan.schedule.launches[-1].kernel.region is regions["sum"]


@pytest.mark.parametrize("loss", [images(2), residual(3)], ids=["images", "residual"])
def test_training_steps_fit_the_poorest_device(loss: Tensor) -> None:
    plan = stepped(loss, WEBGPU_DEFAULTS)
    assert max(len(k.bindings) for k in plan.kernels) <= WEBGPU_DEFAULTS.storage_buffers


def test_a_sum_of_many_tensors_is_cut() -> None:
    x = mg.input("x", (64,))
    for i in range(30):
        x = x + mg.input(f"x{i}", (64,))
    plan = compiled(WEBGPU_DEFAULTS, x=x)
    assert max(len(k.bindings) for k in plan.kernels) <= WEBGPU_DEFAULTS.storage_buffers
    assert len(plan.kernels) < 10


def test_gradients_of_many_biases_do_not_wait_for_each_other() -> None:
    plan = stepped(residual(12), CARD)
    anchors = [len(k.region.anchors) for k in plan.kernels]
    assert max(anchors) <= MOST_SUMS
    assert sum(n > 1 for n in anchors) >= 12
    assert max(len(k.bindings) for k in plan.kernels) <= 16


def test_a_row_is_not_written_before_its_terms_have_read_it() -> None:
    """The scale of a batch norm, updated by the kernel that multiplies the gradient with it."""
    x = mg.nn.conv2d(mg.input("x", (6, 3, 5, 5)), 4, 3, padding=1, name="c")
    loss = mg.mean(mg.tanh(mg.nn.batch_norm(x, name="n")) ** 2)
    graph = step_graph(Graph((("loss", loss.node),)), "loss", SGD(0.1))
    plan = compile_graph(graph, Options(), replace(CARD, units=4), kind="training step")
    for kernel in plan.kernels:
        space = {m.node: m.space for m in kernel.region.members}
        spaces = {space[root] for root in kernel.region.roots}
        leaves = {leaf.name for leaf, value in kernel.region.updates if space[value] == "row"}
        assert "n.w" not in leaves or "element" not in spaces


def test_fusion_keeps_up_with_depth() -> None:
    """Four times the layers take about four times as long, not sixteen times."""

    def seconds(blocks: int) -> float:
        loss = residual(blocks)
        graph = step_graph(Graph((("loss", loss.node),)), "loss", AdamW())
        lowered = lower(simplify(graph), CARD, split_parts)
        start = time.process_time()
        fuse(lowered, CARD)
        return time.process_time() - start

    seconds(2)
    assert seconds(32) < 9 * seconds(8)
