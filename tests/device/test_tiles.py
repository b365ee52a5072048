"""Any legal tile gives the same result."""

from __future__ import annotations

import pytest

from meganeura.ir import build
from meganeura.ir.graph import Graph
from tests.device.support import check, device

TILES = [
    (16, 16, 16, 4, 4),
    (32, 32, 16, 4, 4),
    (64, 64, 16, 8, 4),
    (64, 128, 16, 8, 8),
    (16, 16, 32, 4, 4, 8),
    (16, 16, 64, 4, 4, 16),
    (32, 16, 16, 4, 4, 2),
    (8, 8, 8, 4, 4),
    (32, 32, 32, 8, 8, 4),
]
SHAPES = [(1, 64, 64, 64), (2, 17, 33, 65), (1, 5, 3, 9), (3, 70, 130, 40)]


@pytest.mark.parametrize("tile", TILES, ids=str)
def test_a_forced_matmul_tile_changes_nothing(tile: tuple[int, ...]) -> None:
    for batch, m, k, n in SHAPES:
        a, b, bias = (
            build.input_("a", (batch, m, k)),
            build.input_("b", (batch, k, n)),
            build.input_("c", (n,)),
        )
        y = build.tanh(build.add(build.matmul(a, b), bias)).with_name("y")
        made = check(Graph((("y", y),)), device(), tile={"y": tile})
        assert made.kernels[0].tile == type(made.kernels[0].tile)(*tile)


@pytest.mark.parametrize(
    "tile", [(1, 1, 1), (1, 64, 1), (4, 16, 1), (32, 8, 1), (1, 128, 4), (2, 2, 4)], ids=str
)
def test_a_forced_reduction_tile_changes_nothing(tile: tuple[int, ...]) -> None:
    x = build.input_("x", (37, 60))
    e = build.exp(build.sub(x, build.max_(x, 1, keepdims=True)))
    y = build.div(e, build.sum_(e, 1, keepdims=True)).with_name("y")
    check(Graph((("y", y), ("at", build.argmax(x, 1)))), device(), tile={"y": tile})
