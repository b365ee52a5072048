"""Random bits and first values: fixed numbers, fair shares, independent streams."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from meganeura.errors import OptionError, ShapeError
from meganeura.ir import build
from meganeura.ir import composites as c
from meganeura.ir.dtypes import f16, u32
from meganeura.ir.initial import (
    Constant,
    FanIn,
    Glorot,
    Initial,
    Normal,
    Uniform,
    as_initial,
    fans,
    first_value,
)
from tests.pure.ir.support import run


def pcg3d(index: int, seed: int, stream: int) -> int:
    """The published function on Python's integers."""
    mask = 2**32 - 1
    x, y, z = ((v * 1664525 + 1013904223) & mask for v in (index, seed, stream))
    x = (x + y * z) & mask
    y = (y + z * x) & mask
    z = (z + x * y) & mask
    x, y, z = x ^ (x >> 16), y ^ (y >> 16), z ^ (z >> 16)
    return (x + y * z) & mask


def test_bits_are_those_of_pcg3d() -> None:
    value = run(lambda: build.random_bits(build.constant(7, u32), (2, 3), 5))
    assert value.tolist() == [[pcg3d(i * 3 + j, 7, 5) for j in range(3)] for i in range(2)]


def test_uniform_and_normal_have_their_moments() -> None:
    u = run(lambda: c.uniform((10000,), -1.0, 3.0, seed=1), real=None)
    assert u.min() >= -1
    assert u.max() < 3
    assert u.mean() == pytest.approx(1.0, abs=0.05)
    assert u.var() == pytest.approx(16 / 12, abs=0.05)
    n = run(lambda: c.normal((10000,), 2.0, 0.5, seed=1), real=None)
    assert n.mean() == pytest.approx(2.0, abs=0.03)
    assert n.std() == pytest.approx(0.5, abs=0.02)
    assert np.isfinite(n).all()


def test_streams_and_seeds_are_independent() -> None:
    drawn = [
        run(lambda s=s, t=t: c.normal((4000,), seed=s, stream=t))
        for s, t in ((0, 0), (0, 1), (1, 0))
    ]
    assert np.abs(np.corrcoef(drawn) - np.eye(3)).max() < 0.06
    again = run(lambda: c.normal((4000,), seed=0, stream=0))
    np.testing.assert_array_equal(again, drawn[0])


def test_a_stream_is_a_small_number() -> None:
    with pytest.raises(OptionError) as raised:
        c.uniform((2,), stream=1 << 16)
    lines = str(raised.value).splitlines()
    assert [lines[0], *lines[2:]] == [
        "a random stream is a small number",
        "  expected: 0 <= stream < 65536",
        "  got:      stream=65536",
    ]


def parameter(name: str, shape: tuple[int, ...], init: Any, **more: Any) -> np.ndarray[Any, Any]:
    return first_value(build.parameter(name, shape, init), **more)


RECIPES: list[Initial] = [Constant(0.5), Uniform(-2, 2), Normal(1, 3), FanIn(16), Glorot(3, 5)]


@pytest.mark.parametrize("recipe", RECIPES, ids=repr)
def test_first_values_depend_on_seed_and_name_alone(recipe: Initial) -> None:
    one = parameter("a.w", (3, 5), recipe)
    assert one.dtype == np.float32
    assert one.shape == (3, 5)
    np.testing.assert_array_equal(one, parameter("a.w", (3, 5), recipe))
    if not isinstance(recipe, Constant):
        assert not np.array_equal(one, parameter("a.w", (3, 5), recipe, seed=1))
        assert not np.array_equal(one, parameter("b.w", (3, 5), recipe))
    assert hash(recipe) == hash(type(recipe)(**vars(recipe)))


def test_first_values_are_these_on_every_machine() -> None:
    drawn = parameter("hidden.w", (4,), Uniform(0, 1))
    assert drawn.tolist() == GOLDEN


GOLDEN = [0.6193526983261108, 0.9376074075698853, 0.5174041390419006, 0.5757198333740234]


def test_bounds_and_moments_of_first_values() -> None:
    w = parameter("w", (64, 100), FanIn(64))
    assert np.abs(w).max() <= 0.125
    assert np.abs(w).max() > 0.124
    assert w.std() == pytest.approx(0.125 / 3**0.5, rel=0.03)
    g = parameter("w", (64, 100), Glorot(64, 100))
    assert np.abs(g).max() == pytest.approx((6 / 164) ** 0.5, rel=0.01)
    n = parameter("w", (100, 100), Normal(1.0, 2.0))
    assert n.mean() == pytest.approx(1.0, abs=0.08)
    assert n.std() == pytest.approx(2.0, rel=0.03)


def test_what_can_be_a_first_value() -> None:
    assert as_initial(2, (3,)) == Constant(2.0)
    assert as_initial(Normal(), (3,)) == Normal()
    given = as_initial(np.arange(3.0), (3,))
    assert given == as_initial([0.0, 1.0, 2.0], (3,))
    assert hash(given) == hash(as_initial([0.0, 1.0, 2.0], (3,)))
    assert parameter("w", (3,), given).tolist() == [0, 1, 2]
    half = first_value(build.parameter("w", (2,), Constant(0.1), f16))
    assert half.dtype == np.float16
    with pytest.raises(ShapeError) as raised:
        as_initial(np.zeros((2, 3)), (3, 2))
    assert str(raised.value) == (
        "the first value does not fit the parameter\n"
        "  expected: [3, 2]\n"
        "  got:      [2, 3]\n"
        "  try:      give init an array of the parameter's shape, or a number"
    )


def test_a_scalar_parameter_has_no_axes() -> None:
    scalar = parameter("temperature", (), Constant(2.0))
    assert scalar.shape == ()
    assert scalar == 2.0


def test_fans() -> None:
    assert fans((64, 10)) == (64, 10)
    assert fans((8, 3, 5, 5)) == (75, 200)
    assert fans((7,)) == (7, 7)
