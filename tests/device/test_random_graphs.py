"""Random small graphs: fused against unfused against float64, on the device."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from meganeura.ir import build
from meganeura.ir.graph import Graph, Node
from tests.device.support import check, device

SIZES = st.sampled_from([1, 2, 3, 4, 5, 8, 17])
UNARY: list[Callable[[Node], Node]] = [
    build.neg,
    build.abs_,
    build.tanh,
    build.sin,
    build.sign,
    lambda x: build.exp(build.tanh(x)),
]
BINARY = [build.add, build.sub, build.mul, build.maximum, build.minimum]


class Builder:
    """Grows a graph by random operations, all values staying of moderate size."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.nodes: list[Node] = []
        self.count = 0

    def leaf(self, shape: tuple[int, ...]) -> Node:
        self.count += 1
        if self.count % 3 == 2:
            node = build.constant(
                np.linspace(-1, 1, int(np.prod(shape))).reshape(shape).astype(np.float32)
            )
        else:
            node = build.input_(f"x{self.count}", shape)
        self.nodes.append(node)
        return node

    def pick(self) -> Node:
        return self.nodes[self.draw(st.integers(0, len(self.nodes) - 1))]

    def partner(self, node: Node) -> Node:
        """A node that broadcasts against another."""
        fitting = [n for n in self.nodes if n.shape == node.shape]
        kind = self.draw(st.integers(0, 2))
        if kind == 0 or not node.shape:
            return fitting[self.draw(st.integers(0, len(fitting) - 1))]
        ones = tuple(1 if self.draw(st.booleans()) else n for n in node.shape)
        return self.leaf(ones)

    def step(self) -> None:
        kind = self.draw(
            st.sampled_from(
                [
                    "unary",
                    "binary",
                    "binary",
                    "where",
                    "reduce",
                    "reduce",
                    "soft",
                    "view",
                    "matmul",
                    "norm",
                    "windows",
                    "gather",
                ]
            )
        )
        node = getattr(self, kind)(self.pick())
        if node is not None and node.size <= 4096:
            self.nodes.append(node)

    def unary(self, x: Node) -> Node:
        return UNARY[self.draw(st.integers(0, len(UNARY) - 1))](x)

    def binary(self, x: Node) -> Node:
        return BINARY[self.draw(st.integers(0, len(BINARY) - 1))](x, self.partner(x))

    def where(self, x: Node) -> Node:
        return build.where(build.gt(x, self.partner(x)), x, 0.5)

    def axes(self, x: Node) -> tuple[int, ...]:
        chosen = [a for a in range(len(x.shape)) if self.draw(st.booleans())]
        return tuple(chosen) or (len(x.shape) - 1,)

    def reduce(self, x: Node) -> Node | None:
        if not x.shape:
            return None
        function = self.draw(st.sampled_from([build.mean, build.max_, build.min_, build.mean]))
        return function(x, self.axes(x), keepdims=self.draw(st.booleans()))

    def soft(self, x: Node) -> Node | None:
        if not x.shape:
            return None
        axes = self.axes(x)
        e = build.exp(build.sub(x, build.max_(x, axes, keepdims=True)))
        return build.div(e, build.sum_(e, axes, keepdims=True))

    def norm(self, x: Node) -> Node | None:
        if not x.shape:
            return None
        centred = build.sub(x, build.mean(x, -1, keepdims=True))
        return build.mul(
            centred,
            build.rsqrt(build.add(build.mean(build.mul(centred, centred), -1, keepdims=True), 0.5)),
        )

    def view(self, x: Node) -> Node | None:
        if not x.shape:
            return build.reshape(x, (1, 1))
        kind = self.draw(st.integers(0, 3))
        if kind == 0:
            return build.permute(x, self.draw(st.permutations(range(len(x.shape)))))
        if kind == 1:
            return build.reshape(x, (-1,) if self.draw(st.booleans()) else (1, *x.shape))
        if kind == 2:
            low = tuple(self.draw(st.integers(0, 2)) for _ in x.shape)
            return build.pad(x, low, tuple(reversed(low)), 0.25)
        step = tuple(self.draw(st.sampled_from([1, 2, -1])) for _ in x.shape)
        spans = [slice(None, None, s).indices(n) for s, n in zip(step, x.shape, strict=True)]
        return build.slice_(x, *(tuple(s[i] for s in spans) for i in range(3)))

    def matmul(self, x: Node) -> Node | None:
        if len(x.shape) < 2:
            return None
        n = self.draw(SIZES)
        other = self.leaf((x.shape[-1], n))
        return build.mul(build.matmul(x, other), 1.0 / x.shape[-1])

    def windows(self, x: Node) -> Node | None:
        if len(x.shape) < 1:
            return None
        seen = build.windows(x, (2,), (self.draw(st.integers(1, 2)),), ((1, 1),), (1,), 0.0)
        return build.mean(seen, -1)

    def gather(self, x: Node) -> Node | None:
        if not x.shape:
            return None
        index = build.constant(np.arange(4, dtype=np.int32) % max(x.shape[0], 1))
        return build.gather(x, index)


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    builder = Builder(draw)
    builder.leaf(tuple(draw(st.lists(SIZES, min_size=1, max_size=3))))
    for _ in range(draw(st.integers(2, 9))):
        builder.step()
    outputs = [builder.nodes[-1]] + [builder.pick() for _ in range(draw(st.integers(0, 2)))]
    unique = list(dict.fromkeys(outputs))
    return Graph(tuple((f"out{i}", n) for i, n in enumerate(unique)))


@pytest.mark.parametrize("fuse", [True, False])
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(graph=graphs())
def test_a_random_graph_agrees_with_float64(fuse: bool, graph: Graph) -> None:
    check(graph, device(), fuse=fuse)
