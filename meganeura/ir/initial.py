"""First values of parameters: frozen recipes that give the same numbers on every machine.

A recipe says only the distribution. The numbers come from a counter-based generator keyed by the
seed and the parameter's name, so they depend neither on the order of parameters nor on the device.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from meganeura.errors import ShapeError
from meganeura.ir.constant import Value
from meganeura.ir.graph import Array, Node, Shape


@runtime_checkable
class Initial(Protocol):
    """What `mg.parameter` takes as `init`: hashable, equal by content."""

    def values(self, shape: Shape, uniform: Uniforms) -> Array:
        """The first value of a parameter of that shape, drawing from `uniform` what it needs."""
        ...


@dataclass(frozen=True)
class Uniforms:
    """Uniform numbers in [0, 1) from a key; float64 with 24 random bits, so exact in float32."""

    key: int

    def draw(self, count: int, stream: int = 0) -> Array:
        """`count` numbers of one of the key's independent streams."""
        raw = np.random.Philox(key=self.key + (stream << 64)).random_raw(count)
        return np.asarray(raw >> np.uint64(40), dtype=np.float64) * 2.0**-24


@dataclass(frozen=True)
class Constant:
    """One number everywhere."""

    value: float = 0.0

    def values(self, shape: Shape, uniform: Uniforms) -> Array:
        """The number, repeated."""
        return np.full(shape, self.value)


@dataclass(frozen=True)
class Uniform:
    """Evenly from `low` to `high`."""

    low: float = 0.0
    high: float = 1.0

    def values(self, shape: Shape, uniform: Uniforms) -> Array:
        """Numbers in [low, high)."""
        return self.low + (self.high - self.low) * uniform.draw(math.prod(shape)).reshape(shape)


@dataclass(frozen=True)
class Normal:
    """The normal distribution."""

    mean: float = 0.0
    std: float = 1.0

    def values(self, shape: Shape, uniform: Uniforms) -> Array:
        """Box and Muller's transform of two uniform numbers."""
        count = math.prod(shape)
        radius = np.sqrt(-2.0 * np.log(1.0 - uniform.draw(count, 0)))
        angle = 2.0 * np.pi * uniform.draw(count, 1)
        return self.mean + self.std * (radius * np.cos(angle)).reshape(shape)


@dataclass(frozen=True)
class FanIn:
    """Uniform within `gain / sqrt(inputs)`: each output sums that many inputs.

    `gain=1` is PyTorch's default for linear and convolution layers; `sqrt(6)` is He's for relu.
    `inputs` counts the elements that feed one output, for example C * KH * KW.
    """

    inputs: int
    gain: float = 1.0

    def values(self, shape: Shape, uniform: Uniforms) -> Array:
        """Numbers within the bound."""
        bound = self.gain / math.sqrt(self.inputs) if self.inputs else 0.0
        return Uniform(-bound, bound).values(shape, uniform)


@dataclass(frozen=True)
class Glorot:
    """Uniform within `gain * sqrt(6 / (inputs + outputs))` (Glorot and Bengio, 2010)."""

    inputs: int
    outputs: int
    gain: float = 1.0

    def values(self, shape: Shape, uniform: Uniforms) -> Array:
        """Numbers within the bound."""
        bound = self.gain * math.sqrt(6.0 / max(self.inputs + self.outputs, 1))
        return Uniform(-bound, bound).values(shape, uniform)


@dataclass(frozen=True)
class Given:
    """An array that is already there."""

    value: Value

    def values(self, shape: Shape, uniform: Uniforms) -> Array:
        """The array itself."""
        return self.value.array


def as_initial(init: Any, shape: Shape) -> Initial:
    """A recipe as it is; a number everywhere; an array of the parameter's shape."""
    if isinstance(init, Initial):
        return init
    if isinstance(init, (int, float)):
        return Constant(float(init))
    array = np.asarray(init)
    if tuple(array.shape) != tuple(shape):
        raise ShapeError(
            "the first value does not fit the parameter",
            expected=str(list(shape)),
            got=str(list(array.shape)),
            hint="give init an array of the parameter's shape, or a number",
        )
    return Given(Value(array))


def fans(shape: Sequence[int]) -> tuple[int, int]:
    """Inputs and outputs of one unit: of [in, out] matrices, and of [O, C, KH, KW] filters."""
    if len(shape) < 2:
        return (math.prod(shape), math.prod(shape))
    if len(shape) == 2:
        return shape[0], shape[1]
    window = math.prod(shape[2:])
    return shape[1] * window, shape[0] * window


def first_value(parameter: Node, seed: int = 0) -> Array:
    """The first value of a parameter node, in its own type; the same for the same seed and name."""
    text = f"{seed}/{parameter.name}".encode()
    key = int.from_bytes(hashlib.sha256(text).digest()[:8], "little")
    values = parameter.attr("init").values(parameter.shape, Uniforms(key))
    return np.array(np.broadcast_to(values, parameter.shape), parameter.dtype.numpy, order="C")
