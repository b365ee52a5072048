"""Gradients of random small graphs, with sharing, against central differences."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from meganeura.ir import build
from meganeura.ir import composites as c
from meganeura.ir.graph import Node
from tests.pure.autodiff.numeric import check_gradients

# Each step makes a node from two earlier ones, whose shapes broadcast.
STEPS: list[Callable[[Node, Node], Node]] = [
    build.add,
    build.mul,
    lambda a, b: build.sub(build.tanh(a), b),
    lambda a, b: build.div(a, build.add(1.5, build.mul(b, b))),
    lambda a, b: build.maximum(a, build.mul(0.7, b)),
    lambda a, b: build.where(build.gt(a, 0.05), b, build.sin(a)),
    lambda a, b: c.silu(build.add(a, build.sum_(b, 0, keepdims=True))),
    lambda a, b: build.add(a, build.mean(b, -1, keepdims=True)),
    lambda a, b: build.mul(b, build.max_(a, -1, keepdims=True)),
    lambda a, b: build.add(b, c.softmax(a)),
    lambda a, b: build.reshape(build.reshape(build.add(a, b), (-1,)), a.shape),
    lambda a, b: build.permute(build.permute(build.mul(a, b), (1, 0)), (1, 0)),
    lambda a, b: c.split(c.concat([a, b], 1), 2, 1)[1],
    lambda a, b: build.matmul(build.matmul(a, build.transpose(b)), a),
]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    hnp.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=3),
    st.lists(
        st.tuples(st.sampled_from(range(len(STEPS))), st.integers(0, 7), st.integers(0, 7)),
        min_size=1,
        max_size=6,
    ),
    st.integers(0, 1000),
)
def test_random_graphs(
    shape: tuple[int, ...], steps: list[tuple[int, int, int]], seed: int
) -> None:
    def graph(x: Node, y: Node) -> Node:
        nodes = [x, y]
        for step, a, b in steps:
            # Squashed, so that products of products stay where differences are exact.
            made = STEPS[step](nodes[a % len(nodes)], nodes[b % len(nodes)])
            nodes.append(build.tanh(made))
        return nodes[-1]

    rng = np.random.default_rng(seed)
    check_gradients(graph, rng.normal(size=shape), rng.normal(size=shape), order=1)
