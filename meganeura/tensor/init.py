"""Recipes for the first values of parameters, for `mg.parameter(..., init=...)`.

They are frozen and hashable; the numbers depend on the seed and the parameter's name alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from meganeura.ir.initial import Constant, FanIn, Glorot, Normal, Uniform, fans


def zeros() -> Constant:
    """Zeros."""
    return Constant(0.0)


def ones() -> Constant:
    """Ones."""
    return Constant(1.0)


def constant(value: float) -> Constant:
    """One number everywhere."""
    return Constant(float(value))


def uniform(low: float = -1.0, high: float = 1.0) -> Uniform:
    """Evenly from `low` to `high`."""
    return Uniform(float(low), float(high))


def normal(mean: float = 0.0, std: float = 1.0) -> Normal:
    """The normal distribution."""
    return Normal(float(mean), float(std))


def fan_in(shape: Sequence[int]) -> FanIn:
    """Within 1 / sqrt(inputs of a unit): PyTorch's default for linear and convolution layers."""
    return FanIn(fans(shape)[0])


def he(shape: Sequence[int]) -> FanIn:
    """Within sqrt(6 / inputs), for relu (He et al., 2015); also called Kaiming's."""
    return FanIn(fans(shape)[0], math.sqrt(6.0))


def glorot(shape: Sequence[int]) -> Glorot:
    """Within sqrt(6 / (inputs + outputs)) (Glorot and Bengio, 2010); also called Xavier's."""
    return Glorot(*fans(shape))
