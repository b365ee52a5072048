"""Random tensors: counter-based, the same for the same seed, stream and index on every device."""

from __future__ import annotations

from collections.abc import Sequence

from meganeura.ir import composites
from meganeura.tensor.tensor import Tensor, TensorLike, node_of


def uniform(
    shape: Sequence[int],
    low: float = 0.0,
    high: float = 1.0,
    *,
    seed: TensorLike = 0,
    stream: int = 0,
) -> Tensor:
    """Numbers evenly in [low, high). `seed` may be a u32 tensor; different streams are
    independent.
    """
    drawn = composites.uniform(tuple(shape), low, high, seed=node_of(seed), stream=stream)
    return Tensor(drawn)


def normal(
    shape: Sequence[int],
    mean: float = 0.0,
    std: float = 1.0,
    *,
    seed: TensorLike = 0,
    stream: int = 0,
) -> Tensor:
    """Normally distributed numbers. `seed` may be a u32 tensor; different streams are
    independent.
    """
    drawn = composites.normal(tuple(shape), mean, std, seed=node_of(seed), stream=stream)
    return Tensor(drawn)
