"""Graphs to rewrite: random ones, a trained network, a transformer; and how to compare them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from meganeura.autodiff import backward
from meganeura.ir import build, composites
from meganeura.ir.dtypes import bool_, i32
from meganeura.ir.evaluate import evaluate
from meganeura.ir.graph import Graph, Node
from meganeura.ir.mode import bind

Array = np.ndarray[Any, Any]
UNARY = ("neg", "abs_", "exp", "tanh", "sin", "cos", "erf")
BINARY = ("add", "sub", "mul", "maximum", "minimum")
SIZES = (1, 2, 3, 5)


def feeds_for(graph: Graph, seed: int = 0) -> dict[str, Array]:
    """Random values for all leaves; those of states are positive."""
    rng = np.random.default_rng(seed)
    found: dict[str, Array] = {}
    for node in graph.nodes:
        if node.op.kind != "leaf" or node.op.name == "constant":
            continue
        value: Array = rng.normal(size=node.shape) * 0.4
        if node.op.name == "state" or node.name == "hyper":
            value = np.abs(value) + 0.01
        if node.dtype is bool_:
            value = value > 0
        elif not node.dtype.is_float:
            value = rng.integers(0, 5, node.shape)
        found[str(node.name)] = value
    return found


def with_updates(graph: Graph) -> Graph:
    """The graph with its updates as outputs, so that evaluation shows them."""
    return Graph(graph.outputs + tuple((f"new {leaf.name}", new) for leaf, new in graph.updates))


def difference(before: Graph, after: Graph, seed: int = 0) -> float:
    """The largest relative difference of any output or update, in float64."""
    feeds = feeds_for(before, seed)
    a = evaluate(with_updates(before), feeds, np.float64)
    b = evaluate(with_updates(after), feeds, np.float64)
    assert list(a) == list(b)
    worst = 0.0
    for name, value in a.items():
        assert value.shape == b[name].shape
        if value.size:
            scale = max(float(np.abs(value).max()), 1.0)
            worst = max(worst, float(np.abs(value - b[name]).max()) / scale)
    return worst


def linear(x: Node, name: str, width: int) -> Node:
    w = build.parameter(f"{name}.w", (x.shape[-1], width), None)
    b = build.parameter(f"{name}.b", (width,), None)
    return build.add(build.matmul(x, w), b)


def adam(parameters: Sequence[Node], gradients: dict[Node, Node]) -> tuple[tuple[Node, Node], ...]:
    hyper = build.input_("hyper", (2,))
    rate, correction = (
        build.reshape(build.slice_(hyper, (i,), (i + 1,), (1,)), ()) for i in (0, 1)
    )
    updates: list[tuple[Node, Node]] = []
    for p in parameters:
        g = gradients[p]
        m = build.state(f"{p.name}.m", p.shape)
        v = build.state(f"{p.name}.v", p.shape)
        m2 = build.add(build.mul(m, 0.9), build.mul(g, 0.1))
        v2 = build.add(build.mul(v, 0.99), build.mul(build.mul(g, g), 0.01))
        root = build.sqrt(build.mul(v2, correction))
        step = build.div(m2, build.add(root, 1e-8))
        updates += [(m, m2), (v, v2), (p, build.sub(p, build.mul(step, rate)))]
    return tuple(updates)


def parameters_of(node: Node) -> list[Node]:
    return list(Graph((("y", node),)).leaves("parameter"))


def digits_step(batch: int = 128) -> Graph:
    """The training step of the 64-64-10 network on the digits."""
    x = build.input_("x", (batch, 64))
    y = build.input_("y", (batch,), i32)
    h = composites.relu(linear(x, "hidden", 64))
    logits = linear(h, "out", 10)
    loss = composites.cross_entropy(logits, y)
    parameters = parameters_of(loss)
    updates = adam(parameters, backward(loss, parameters))
    return bind(Graph((("loss", loss), ("logits", logits)), updates), training=True)


def transformer(layers: int, training: bool = False, width: int = 16, length: int = 6) -> Graph:
    """A small decoder of equal layers: RMS norm, causal attention, SwiGLU."""
    heads, batch, words = 2, 2, 11
    ids = build.input_("ids", (batch, length), i32)
    table = build.parameter("table", (words, width), None)
    x = build.gather(table, ids, 0)
    for layer in range(layers):
        x = _block(x, f"layer{layer}", heads)
    logits = build.matmul(x, build.transpose(table))
    if not training:
        return bind(Graph((("logits", logits),)), training=False)
    loss = composites.cross_entropy(logits, build.input_("y", (batch, length), i32))
    parameters = parameters_of(loss)
    updates = adam(parameters, backward(loss, parameters))
    return bind(Graph((("loss", loss),), updates), training=True)


def _block(x: Node, name: str, heads: int) -> Node:
    batch, length, width = x.shape

    def matrix(kind: str, *shape: int) -> Node:
        return build.parameter(f"{name}.{kind}", shape, None)

    def split(node: Node) -> Node:
        parts = build.reshape(node, (batch, length, heads, width // heads))
        return build.permute(parts, (0, 2, 1, 3))

    normal = composites.rms_norm(x, matrix("norm1", width))
    q, k, v = (split(build.matmul(normal, matrix(kind, width, width))) for kind in "qkv")
    scores = build.mul(build.matmul(q, build.transpose(k)), 1 / math.sqrt(width // heads))
    rows, columns = build.iota((length, length), 0), build.iota((length, length), 1)
    masked = build.where(build.le(columns, rows), scores, -1e30)
    mixed = build.permute(build.matmul(composites.softmax(masked), v), (0, 2, 1, 3))
    x = build.add(x, build.matmul(build.reshape(mixed, x.shape), matrix("o", width, width)))
    normal = composites.rms_norm(x, matrix("norm2", width))
    gate = composites.silu(build.matmul(normal, matrix("gate", width, 2 * width)))
    up = build.mul(gate, build.matmul(normal, matrix("up", width, 2 * width)))
    return build.add(x, build.matmul(up, matrix("down", 2 * width, width)))


@st.composite
def random_graphs(draw: st.DrawFn) -> Graph:
    """Small graphs over one or two inputs: maps, reductions, views, products, with sharing."""
    shape = tuple(draw(st.lists(st.sampled_from(SIZES), min_size=1, max_size=3)))
    nodes = [build.input_("x", shape), build.input_("y", shape)]
    for _ in range(draw(st.integers(1, 14))):
        nodes.append(_step(draw, nodes))
    outputs = draw(st.lists(st.sampled_from(nodes[2:]), min_size=1, max_size=3))
    return Graph(tuple((f"out{i}", node) for i, node in enumerate(outputs)))


def _step(draw: st.DrawFn, nodes: Sequence[Node]) -> Node:
    a = draw(st.sampled_from(nodes[-5:]))
    kind = draw(st.sampled_from(("unary", "binary", "number", "reduce", "view", "safe", "matmul")))
    if kind == "unary":
        name = draw(st.sampled_from(UNARY))
        bounded = composites.relu(build.sub(1.0, build.abs_(a))) if name == "exp" else a
        result: Node = getattr(build, name)(bounded)
        return result
    if kind == "binary":
        b = draw(st.sampled_from([n for n in nodes if n.shape == a.shape]))
        operation = getattr(build, draw(st.sampled_from(BINARY)))
        return build.tanh(operation(a, b))
    if kind == "number":
        operation = getattr(build, draw(st.sampled_from((*BINARY, "div"))))
        return operation(a, draw(st.sampled_from((1.0, -1.0, 2.0, 0.5, 4.0))))  # type: ignore[no-any-return]
    return _structure(draw, kind, a)


def _structure(draw: st.DrawFn, kind: str, a: Node) -> Node:
    rank = len(a.shape)
    if kind == "reduce" and rank:
        axes = tuple(draw(st.sets(st.integers(0, rank - 1), min_size=1)))
        operation = draw(st.sampled_from((build.sum_, build.max_, build.min_, build.mean)))
        return build.tanh(build.broadcast_to(operation(a, axes, True), a.shape))
    if kind == "view" and rank > 1:
        moved = build.permute(a, draw(st.permutations(range(rank))))
        return draw(st.sampled_from((moved, build.reshape(moved, a.shape))))
    if kind == "matmul" and rank >= 2:
        return build.tanh(build.matmul(a, build.transpose(a)))
    return build.rsqrt(build.add(build.mul(a, a), 1.0))
