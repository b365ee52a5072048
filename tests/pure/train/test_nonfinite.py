"""Who made the first bad value."""

from __future__ import annotations

import numpy as np
import pytest

from meganeura.errors import MeganeuraError
from meganeura.ir import build
from meganeura.ir.graph import Graph, Node
from meganeura.train.nonfinite import error_of, find_culprit


def _found(node: Node, x: list[float]) -> str | None:
    culprit = find_culprit(Graph((("loss", build.sum_(node)),)), {"x": np.array(x, np.float32)})
    return None if culprit is None else culprit.describe()


@pytest.fixture
def x() -> Node:
    return build.input_("x", (3,))


def test_the_first_one_is_named_not_those_after(x: Node) -> None:
    chain = build.exp(build.mul(build.log(x), 2.0))
    assert _found(chain, [1, -1, 2]) == "log makes nan in 1 of 3 elements, from [-1, 2]"
    assert _found(chain, [1, 1, 2]) is None


@pytest.mark.parametrize(
    ("name", "values", "said"),
    [
        ("recip", [1.0, 0.0, 2.0], "recip makes inf in 1 of 3 elements, from [0, 2]"),
        ("exp", [1.0, 100.0, 200.0], "exp makes inf in 2 of 3 elements, from [1, 200]"),
        ("sqrt", [1.0, -4.0, 4.0], "sqrt makes nan in 1 of 3 elements, from [-4, 4]"),
        ("neg", [1.0, np.nan, 4.0], "input 'x' makes nan in 1 of 3 elements"),
    ],
)
def test_operations(x: Node, name: str, values: list[float], said: str) -> None:
    assert _found(build.apply(name, x), values) == said


def test_the_branch_that_is_not_taken_is_innocent(x: Node) -> None:
    safe = build.where(build.gt(x, 0.0), build.log(x), 0.0)
    assert _found(safe, [1, -1, 2]) is None
    later = build.recip(safe)
    assert _found(later, [1, -1, 2]) == "recip makes inf in 2 of 3 elements, from [0, 0.6931]"
    taken = build.where(build.gt(x, 0.0), 0.0, build.log(x))
    assert _found(taken, [1, -1, 2]) == "log makes nan in 1 of 3 elements, from [-1, 2]"


def test_a_name_and_a_phase_are_told(x: Node) -> None:
    from meganeura import trace

    with trace.phase("backward"):
        node = build.log(x).with_name("slope")
    assert _found(node, [0, 1, 1]) == (
        "log 'slope' (backward) makes -inf in 1 of 3 elements, from [0, 1]"
    )


def test_the_messages() -> None:
    assert str(error_of("loss", float("nan"), 1234, None)) == (
        "the loss 'loss' became nan at step 1,234\n"
        "  expected: a finite loss\n"
        "  got:      the same step is finite in NumPy, so the first bad value is not known\n"
        "  try:      take a smaller learning rate, or clip_norm=1.0"
    )
    leaf = build.parameter("w", (1,), None)
    graph = Graph((("loss", build.sum_(build.mul(leaf, 2.0))),))
    culprit = find_culprit(graph, {"w": np.array([np.inf], np.float32)})
    assert culprit is not None
    error = error_of("loss", float("inf"), 3, culprit)
    assert isinstance(error, MeganeuraError)
    lines = [line for line in str(error).split("\n") if not line.startswith("  where:")]
    assert lines == [
        "the loss 'loss' became inf at step 3",
        "  expected: finite values",
        "  got:      parameter 'w' makes inf in 1 of 1 elements",
        "  try:      take a smaller learning rate, or clip_norm=1.0",
    ]
