"""The embedding table: rows read several times, never, and out of range."""

from __future__ import annotations

import numpy as np

import meganeura as mg
from meganeura.ir.evaluate import evaluate_nodes


def test_a_table_learns_from_each_place_that_reads_it() -> None:
    table = np.arange(8.0).reshape(4, 2).astype(np.float32)
    tokens = mg.input("tokens", (2, 3), mg.i32)
    rows = mg.nn.embedding(tokens, 4, 2, name="words", init=table)
    weights = np.arange(1.0, 7.0, dtype=np.float32).reshape(2, 3, 1)
    w = next(n for n in (rows.node, *rows.node.inputs) if n.op.name == "parameter")
    gradient = mg.grad((rows * weights).sum(), mg.Tensor(w))
    index = np.array([[2, 0, 2], [7, 2, -5]], np.int32)
    values = {tokens.node: index, w: table}
    found = evaluate_nodes([rows.node, gradient.node], values, np.float64)
    np.testing.assert_array_equal(found[rows.node], table[[[2, 0, 2], [3, 2, 0]]])
    # Row 0 is read with the weights 2 and 6, row 2 with 1, 3 and 5, row 3 with 4; row 1 never.
    np.testing.assert_array_equal(found[gradient.node], [[8, 8], [0, 0], [9, 9], [4, 4]])
