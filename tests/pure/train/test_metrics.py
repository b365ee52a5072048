"""Evaluation over data sets that do not fill their last batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from meganeura.compiler import compile_program
from meganeura.errors import MeganeuraError
from meganeura.ir import build
from meganeura.ir.dtypes import i32
from meganeura.ir.graph import Graph
from meganeura.train import data
from meganeura.train.metrics import Accuracy, evaluate

X = np.random.default_rng(0).normal(size=(11, 3)).astype(np.float32)
Y = np.random.default_rng(1).integers(0, 3, 11).astype(np.int32)


def _program(rows: int = 4) -> Any:
    x, y = build.input_("x", (rows, 3)), build.input_("y", (rows,), i32)
    loss = build.mean(build.mul(x, build.cast(build.reshape(y, (rows, 1)), x.dtype)))
    return compile_program(Graph((("loss", loss), ("logits", x))), name="p", device="numpy")


def _text(call: Callable[[], object]) -> str:
    with pytest.raises(MeganeuraError) as caught:
        call()
    return str(caught.value)


@pytest.mark.parametrize("rows", [1, 4, 11, 16])
def test_accuracy_counts_every_row_once(rows: int) -> None:
    want = float(np.mean(X.argmax(1) == Y))
    for dataset in (data.Dataset(X, Y), (X, Y), {"y": Y, "x": X}):
        found = evaluate(_program(rows), dataset, {"accuracy": Accuracy()})
        assert found["accuracy"] == pytest.approx(want)


def test_any_metric_sees_no_padding() -> None:
    sizes: list[int] = []

    def count(outputs: Any, feeds: Any) -> float:
        sizes.append(len(outputs["logits"]))
        assert len(feeds["x"]) == len(feeds["y"]) == len(outputs["logits"])
        return 1.0

    assert evaluate(_program(), data.Dataset(X, Y), {"one": count}) == {"one": 1.0}
    assert sizes == [4, 4, 3]


def test_without_metrics_scalar_outputs_over_full_batches() -> None:
    found = evaluate(_program(), data.Dataset(X, Y))
    assert found == {"loss": pytest.approx(float(np.mean(X[:8] * Y[:8, None])), rel=1e-5)}


def test_batches_with_an_end() -> None:
    found = evaluate(_program(), data.batches((X, Y), 4, epochs=1), {"accuracy": Accuracy()})
    assert 0 <= found["accuracy"] <= 1


def test_refusals() -> None:
    assert _text(lambda: evaluate(_program(), data.batches((X, Y), 4))) == (
        "validation needs an end\n"
        "  expected: a data set, or batches(..., epochs=1)\n"
        "  got:      <Batches of 4 from 11 rows, seed 0, endless>"
    )
    assert _text(lambda: evaluate(_program(16), data.Dataset(X, Y))) == (
        "there is nothing to evaluate\n"
        "  expected: at least one full batch, and metrics= or a scalar output\n"
        "  got:      none"
    )
    assert _text(
        lambda: evaluate(_program(), data.Dataset(X, Y), {"a": Accuracy(labels="label")})
    ) == (
        "accuracy finds no 'label'\n"
        "  expected: the names of an output and of an input\n"
        "  got:      loss, logits, x, y\n"
        '  try:      name them, as in Accuracy(logits="logits", labels="y")'
    )
