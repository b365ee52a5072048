"""Shapes and values of random expressions, against NumPy doing the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from meganeura.errors import ShapeError
from meganeura.ir import build
from meganeura.ir import composites as c
from meganeura.ir.graph import Graph, Node
from meganeura.ir.spec import check
from meganeura.tensor.indexing import indexed
from tests.pure.ir.support import numbers, run

SHAPE = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
FAST = settings(max_examples=100, deadline=None, derandomize=True)


@FAST
@given(hnp.mutually_broadcastable_shapes(num_shapes=2, min_side=0, max_dims=4, max_side=4))
def test_broadcasting_is_numpys(shapes: Any) -> None:
    a, b = (numbers(s, i) for i, s in enumerate(shapes.input_shapes))
    np.testing.assert_array_equal(run(build.add, a, b), a + b)
    np.testing.assert_array_equal(run(build.lt, a, b), a < b)


@FAST
@given(SHAPE, SHAPE)
def test_what_numpy_does_not_broadcast_is_refused(a: Any, b: Any) -> None:
    try:
        expected = np.broadcast_shapes(a, b)
    except ValueError:
        with pytest.raises(ShapeError):
            build.add(build.input_("a", a), build.input_("b", b))
    else:
        assert build.add(build.input_("a", a), build.input_("b", b)).shape == expected


@FAST
@given(st.data())
def test_indexing_is_numpys(data: Any) -> None:
    shape = data.draw(hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5))
    key = data.draw(hnp.basic_indices(shape, allow_newaxis=True))
    x = numbers(shape)
    value = run(lambda x: indexed(x, key), x)
    np.testing.assert_array_equal(value, x[key])


@FAST
@given(st.data())
def test_reductions_are_numpys(data: Any) -> None:
    shape = data.draw(hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=4))
    axes = data.draw(hnp.valid_tuple_axes(len(shape)))
    keep = data.draw(st.booleans())
    x = numbers(shape)
    np.testing.assert_allclose(
        run(lambda x: build.sum_(x, axes, keep), x), x.sum(axes, keepdims=keep), atol=1e-12
    )
    np.testing.assert_array_equal(
        run(lambda x: build.max_(x, axes, keep), x), x.max(axes, keepdims=keep)
    )


@FAST
@given(st.data())
def test_permutations_and_reshapes_are_numpys(data: Any) -> None:
    shape = data.draw(SHAPE)
    order = data.draw(st.permutations(range(len(shape))))
    x = numbers(shape)
    moved = run(lambda x: build.reshape(build.permute(x, order), (-1,)), x)
    np.testing.assert_array_equal(moved, x.transpose(order).ravel())


@FAST
@given(st.data())
def test_matmul_is_numpys(data: Any) -> None:
    lead = data.draw(
        hnp.mutually_broadcastable_shapes(num_shapes=2, max_dims=2, min_side=0, max_side=3)
    )
    m, k, n = (data.draw(st.integers(0, 4)) for _ in range(3))
    a = numbers((*lead.input_shapes[0], m, k), 1)
    b = numbers((*lead.input_shapes[1], k, n), 2)
    np.testing.assert_allclose(run(build.matmul, a, b), a @ b, atol=1e-12)


@FAST
@given(st.data())
def test_windows_undone_count_each_element(data: Any) -> None:
    """Summing each element's windows gives its value times the number of windows that hold it."""
    n, size, stride = (data.draw(st.integers(1, 6)) for _ in range(3))
    pads = (data.draw(st.integers(0, 3)), data.draw(st.integers(0, 3)))
    dilation = data.draw(st.integers(1, 2))
    if dilation * (size - 1) + 1 > n + sum(pads):
        return
    x = numbers((2, n))

    def back(x: Node) -> Node:
        seen = build.windows(x, (size,), (stride,), (pads,), (dilation,))
        again = build.apply(
            "unwindows",
            seen,
            shape=(n,),
            stride=(stride,),
            padding=(pads,),
            dilation=(dilation,),
        )
        return build.sum_(again, -1)

    counts = np.zeros(n)
    for start in range(-pads[0], n + pads[1] - dilation * (size - 1), stride):
        for tap in range(size):
            if 0 <= start + tap * dilation < n:
                counts[start + tap * dilation] += 1
    np.testing.assert_allclose(run(back, x), x * counts, atol=1e-12)


STEPS: list[Any] = [
    build.sin,
    build.neg,
    c.silu,
    lambda x: build.mul(x, x),
    lambda x: build.add(x, 1.0),
    lambda x: c.softmax(x) if x.shape else x,
    lambda x: build.sum_(x, 0, keepdims=True) if x.shape else x,
    lambda x: build.permute(x, tuple(reversed(range(len(x.shape))))),
    lambda x: build.reshape(x, (-1,)),
    lambda x: c.concat([x, x]) if x.shape else x,
]


@FAST
@given(SHAPE, st.lists(st.sampled_from(range(len(STEPS))), max_size=8))
def test_random_graphs_keep_the_spec(shape: Any, steps: list[int]) -> None:
    h = build.input_("x", shape)
    for step in steps:
        h = STEPS[step](h)
    check(Graph((("h", h),)))
    assert run(lambda x: _again(x, steps), numbers(shape)).shape == h.shape


def _again(x: Node, steps: list[int]) -> Node:
    for step in steps:
        x = STEPS[step](x)
    return x
