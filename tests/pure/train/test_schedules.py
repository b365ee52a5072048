"""Learning rates: the values at the corners, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

from meganeura.errors import OptionError
from meganeura.train.schedules import Constant, Cosine, Linear, Steps, WarmUp, rates


def test_values() -> None:
    assert [Constant(0.1)(s) for s in (0, 9)] == [0.1, 0.1]
    assert [Linear(1.0, 4, 0.5)(s) for s in range(6)] == [1, 0.875, 0.75, 0.625, 0.5, 0.5]
    assert Cosine(2.0, 10, 1.0)(0) == 2.0
    assert Cosine(2.0, 10, 1.0)(5) == pytest.approx(1.5)
    assert [Cosine(2.0, 10, 1.0)(s) for s in (10, 99)] == [1.0, 1.0]
    assert [Steps(1.0, 2, 0.5)(s) for s in range(5)] == [1, 1, 0.5, 0.5, 0.25]
    assert [WarmUp(2, Linear(1.0, 2))(s) for s in range(5)] == [0.5, 1.0, 1.0, 0.5, 0.0]


def test_rates_of_a_number_and_of_any_function() -> None:
    np.testing.assert_array_equal(rates(0.5, 3, 2), [0.5, 0.5])
    np.testing.assert_array_equal(rates(lambda step: step / 2, 3, 3), [1.5, 2.0, 2.5])
    assert rates(0.1, 0, 0).shape == (0,)


def test_a_rate_that_is_no_number() -> None:
    with pytest.raises(OptionError) as caught:
        rates(lambda step: math.inf if step == 5 else 0.1, 4, 3)
    assert str(caught.value) == (
        "the learning rate of step 5 is no finite number\n"
        "  expected: a finite number\n"
        "  got:      inf\n"
        "  try:      mend the schedule: it gets the step, counted from 0"
    )
