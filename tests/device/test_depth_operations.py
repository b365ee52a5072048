"""Einsum, scans, ranks, images and order on the device, forward and backward in mid-graph."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from meganeura.autodiff import backward
from meganeura.ir import build
from meganeura.ir import composites as c
from meganeura.ir.dtypes import i32
from meganeura.ir.graph import Graph, Node
from meganeura.plan import Options
from meganeura.tensor.indexing import indexed
from tests.device.support import agree, check, device, oracle, program, random_feeds


def _weights(shape: tuple[int, ...]) -> Node:
    return build.constant(np.linspace(-1.0, 1.0, int(np.prod(shape))).reshape(shape), None)


def _transposed(x: Node) -> Node:
    image = build.reshape(x, (2, 3, 5, 6))
    filters = build.constant(np.linspace(-1, 1, 3 * 2 * 3 * 2).reshape(3, 2, 3, 2))
    return c.conv_transpose2d(image, filters, 2, ((1, 0), (1, 1)), (1, 0))


CASES: dict[str, Callable[[Node], Node]] = {
    "einsum": lambda x: c.einsum("bij,bkj->bik", x, build.mul(x, 0.5)),
    "einsum of a diagonal": lambda x: c.einsum("bii->ib", indexed(x, (..., slice(0, 5)))),
    "rotary": c.rotary_embedding,
    "rotary interleaved": lambda x: c.rotary_embedding(x, None, 50.0, True),
    "cumsum": lambda x: c.cumsum(x, 2),
    "cumsum in blocks": lambda x: c.cumsum(build.reshape(x, (2, 90)), 1, True, True),
    "topk": lambda x: c.topk(x, 3, 1)[0],
    "topk in rounds": lambda x: c.topk(build.reshape(x, (2, 90)), 3)[0],
    "conv_transpose2d": _transposed,
    "nearest": lambda x: c.resize(x, (7, 12)),
    "bilinear": lambda x: c.resize(x, (7, 9), "bilinear"),
    "adaptive_avg_pool2d": lambda x: c.adaptive_avg_pool2d(x, (2, 4)),
    "slices": lambda x: indexed(x, (slice(None, None, -2), None, ..., slice(4, None, -3))),
    "flip and roll": lambda x: c.roll(c.flip(x, (0, 2)), (1, -2), (0, 2)),
    "triangles": lambda x: build.add(c.tril(x, -1), c.triu(x, 2)),
    "where": lambda x: build.where(build.gt(indexed(x, (0, 0)), 0.0), x, 0.5),
    "embedding": lambda x: build.gather(x, build.constant([[1, 1, 9], [-4, 1, 3]], i32), 1),
}


@pytest.mark.parametrize("name", CASES)
def test_forward_and_gradient_in_mid_graph(name: str) -> None:
    x = build.input_("x", (6, 5, 6))
    y = CASES[name](build.mul(build.tanh(x), 1.5))
    loss = build.mul(build.sum_(build.mul(build.sin(y), _weights(y.shape))), 0.7)
    gradient = backward(loss, [x])[x]
    check(Graph((("y", y), ("gradient", gradient))), device())


def test_indices_and_integers_are_exact() -> None:
    x = build.floor(build.mul(build.input_("x", (3, 70)), 2.0))
    whole = build.cast(build.mul(x, 1e7), i32)
    outputs = (
        ("short", c.topk(indexed(x, (..., slice(0, 17))), 4)[1]),
        ("long", c.topk(x, 4)[1]),
        ("integers", c.topk(whole, 3)[0]),
        ("cumsum", c.cumsum(whole, 1, reverse=True)),
        ("einsum", c.einsum("ij,kj->ik", build.cast(x, i32), build.cast(x, i32))),
    )
    check(Graph(outputs), device())


def test_rotary_at_far_positions() -> None:
    """Angles of thousands of turns are reduced before the device's sine sees them."""
    x, first = build.input_("x", (2, 5, 16)), build.input_("first", (), i32)
    at = build.add(build.iota((5,), 0), first)
    graph = Graph((("y", c.rotary_embedding(x, at)),))
    made = program(graph, Options(), device())
    for start in (0, 4096, 65531):
        feeds = {**random_feeds(graph), "first": np.array(start, np.int32)}
        agree(made(**feeds), oracle(graph, feeds, made.store)["y"], 2e-5)
