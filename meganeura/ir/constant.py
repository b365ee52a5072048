"""The value of a constant, hashable by content."""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import Any

import numpy as np


class Value:
    """A read-only array that is equal to another when type, shape and bytes are."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = np.array(array)
        self.array.setflags(write=False)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        return tuple(self.array.shape)

    @cached_property
    def digest(self) -> bytes:
        """A hash of type, shape and content."""
        head = f"{self.array.dtype}{self.array.shape}".encode()
        return hashlib.sha256(head + self.array.tobytes()).digest()

    def __hash__(self) -> int:
        return hash(self.digest)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Value) and self.digest == other.digest

    def __repr__(self) -> str:
        return repr(self.array.item()) if self.array.size == 1 else f"array{list(self.shape)}"
