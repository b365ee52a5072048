"""The data types of tensors: how NumPy, WGSL and a storage buffer see each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from meganeura.errors import DTypeError


@dataclass(frozen=True)
class DType:
    """A data type: its name, its NumPy type, its WGSL type in registers and in buffers, bytes in a
    buffer.
    """

    name: str
    numpy: type[np.generic]
    wgsl: str
    storage: str
    bytes: int

    @property
    def is_float(self) -> bool:
        """True for the types that have gradients."""
        return self.name in ("f32", "f16")

    def __repr__(self) -> str:
        return self.name


f32 = DType("f32", np.float32, "f32", "f32", 4)
f16 = DType("f16", np.float16, "f16", "f16", 2)
i32 = DType("i32", np.int32, "i32", "i32", 4)
u32 = DType("u32", np.uint32, "u32", "u32", 4)
bool_ = DType("bool", np.bool_, "bool", "u32", 4)

DTYPES: dict[str, DType] = {d.name: d for d in (f32, f16, i32, u32, bool_)}
_RANK = {"bool": 0, "u32": 1, "i32": 1, "f16": 2, "f32": 3}


def promote(a: DType, b: DType) -> DType:
    """The type in which `a` and `b` meet: bool below integers below f16 below f32."""
    if a is b:
        return a
    if {a.name, b.name} == {"i32", "u32"}:
        raise DTypeError(
            "i32 and u32 do not mix",
            expected="two operands of one integer type",
            got="i32 and u32",
            hint="cast one of them, as in x.cast(mg.i32)",
        )
    return a if _RANK[a.name] > _RANK[b.name] else b


def of_array(array: np.ndarray[Any, Any]) -> DType:
    """The type that holds a NumPy array: float64 becomes f32, int64 becomes i32."""
    kinds = {"b": bool_, "i": i32, "u": u32, "f": f16 if array.dtype == np.float16 else f32}
    found = kinds.get(array.dtype.kind)
    if found is None:
        raise DTypeError(
            f"an array of {array.dtype} cannot become a tensor",
            expected="an array of bool, integers or floats",
            got=str(array.dtype),
            hint="convert it first, as in array.astype(np.float32)",
        )
    return found


def as_dtype(value: object) -> DType:
    """A data type from itself, a name such as "f32", a NumPy type, or float, int, bool."""
    if isinstance(value, DType):
        return value
    for found in DTYPES.values():
        if value in (found.name, np.dtype(found.numpy).name, found.numpy, np.dtype(found.numpy)):
            return found
    if value in (float, int, bool):
        return {float: f32, int: i32, bool: bool_}[value]
    raise DTypeError(
        "not a data type of tensors",
        expected=f"one of {', '.join(DTYPES)}",
        got=repr(value),
        hint="use mg.f32, mg.i32 or another of them",
    )
