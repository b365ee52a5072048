"""The safetensors format: a length, a JSON header, and raw tensors behind it.

Source of the format: the specification in the README of huggingface/safetensors. Everything is
checked before a tensor is given out: a damaged file raises and yields nothing.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from meganeura.errors import CheckpointError
from meganeura.ir.graph import Array

LARGEST_HEADER = 100_000_000
_NUMPY: Mapping[str, str] = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "BF16": "<u2",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "|i1",
    "U64": "<u8",
    "U32": "<u4",
    "U16": "<u2",
    "U8": "|u1",
    "BOOL": "|b1",
}
_NAMES = {np.dtype(code): name for name, code in _NUMPY.items() if name != "BF16"}


@dataclass(frozen=True)
class File:
    """What a safetensors file holds: tensors by name, and text by key."""

    tensors: dict[str, Array]
    metadata: dict[str, str]


@dataclass(frozen=True)
class _Entry:
    """One tensor as the header describes it; `start` and `stop` are bytes behind the header."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    stop: int

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * np.dtype(_NUMPY[self.dtype]).itemsize


def _damaged(path: Path, what: str, expected: str, got: str) -> CheckpointError:
    return CheckpointError(
        f"{path.name} is not a sound safetensors file: {what}",
        expected=expected,
        got=got,
        hint="copy or download the file again, or take an older one",
    )


def write(
    path: str | os.PathLike[str],
    tensors: Mapping[str, Array],
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Writes tensors and text to a file, all or nothing: an older file of that name stays until the
    new one is whole.

    Raises CheckpointError for an array of a type that the format does not know.

    >>> import tempfile, numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(folder + "/a.safetensors", {"w": np.ones((2, 3), np.float32)})
    ...     read(folder + "/a.safetensors").tensors["w"].shape
    (2, 3)
    """
    header: dict[str, Any] = {}
    if metadata:
        header["__metadata__"] = dict(metadata)
    parts: list[bytes] = []
    offset = 0
    for name, value in tensors.items():
        array = np.asarray(value)
        array = array.astype(array.dtype.newbyteorder("<"), copy=False)
        if array.dtype not in _NAMES:
            raise CheckpointError(
                f"tensor {name!r} cannot be written",
                expected="an array of " + ", ".join(sorted(_NAMES.values())),
                got=str(array.dtype),
            )
        raw = array.tobytes()
        where = [offset, offset + len(raw)]
        header[name] = {
            "dtype": _NAMES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": where,
        }
        parts.append(raw)
        offset += len(raw)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # tensors start at a multiple of eight bytes
    target = Path(path)
    partial = target.with_name(target.name + ".partial")
    with partial.open("wb") as file:
        file.write(len(text).to_bytes(8, "little"))
        file.write(text)
        file.writelines(parts)
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, target)


def read(path: str | os.PathLike[str]) -> File:
    """All tensors and the text of a file; BF16 comes as float32.

    Raises CheckpointError when the file is missing, truncated, or its header does not describe its
    bytes.
    """
    place = Path(path)
    try:
        content = place.read_bytes()
    except OSError as error:
        raise CheckpointError(
            f"{place.name} cannot be read",
            expected="a safetensors file",
            got=error.strerror or str(error),
            hint=f"look for it in {place.parent}",
        ) from None
    header, begin = _header(place, content)
    metadata = _metadata(place, header.pop("__metadata__", {}))
    entries = [_entry(place, name, value) for name, value in header.items()]
    _check_layout(place, entries, len(content) - begin)
    tensors = {entry.name: _tensor(entry, content, begin) for entry in entries}
    return File(tensors, metadata)


def _header(path: Path, content: bytes) -> tuple[dict[str, Any], int]:
    """The parsed header, and where the tensors begin."""
    if len(content) < 8:
        raise _damaged(path, "it is truncated", "at least 8 bytes", f"{len(content)} bytes")
    length = int.from_bytes(content[:8], "little")
    if length > LARGEST_HEADER:
        raise _damaged(
            path, "bad header", f"a header of at most {LARGEST_HEADER:,} bytes", f"{length:,} bytes"
        )
    if 8 + length > len(content):
        raise _damaged(
            path,
            "it is truncated",
            f"a header of {length:,} bytes",
            f"{len(content) - 8:,} bytes",
        )
    try:
        header = json.loads(content[8 : 8 + length].decode(), object_pairs_hook=_unique)
    except (UnicodeDecodeError, ValueError) as error:
        raise _damaged(path, "bad header", "JSON", str(error)) from None
    if not isinstance(header, dict):
        raise _damaged(path, "bad header", "a JSON object", type(header).__name__)
    return header, 8 + length


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice")
    return found


def _metadata(path: Path, value: Any) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(v, str) for v in value.values()):
        raise _damaged(path, "bad header", "__metadata__ of text by key", repr(value))
    return value


def _is_sizes(value: Any) -> bool:
    return isinstance(value, list) and all(type(n) is int and n >= 0 for n in value)


def _entry(path: Path, name: str, value: Any) -> _Entry:
    """One line of the header, checked."""
    expected = f"dtype, shape and data_offsets for {name!r}"
    if not isinstance(value, dict) or not {"dtype", "shape", "data_offsets"} <= value.keys():
        raise _damaged(path, "bad header", expected, repr(value))
    dtype, shape, offsets = value["dtype"], value["shape"], value["data_offsets"]
    if dtype not in _NUMPY:
        raise _damaged(
            path, f"tensor {name!r} has an unknown dtype", ", ".join(_NUMPY), repr(dtype)
        )
    if not _is_sizes(shape) or not _is_sizes(offsets) or len(offsets) != 2:
        raise _damaged(path, "bad header", expected, repr(value))
    entry = _Entry(name, dtype, tuple(shape), offsets[0], offsets[1])
    if entry.stop - entry.start != entry.nbytes:
        raise _damaged(
            path,
            f"tensor {name!r} has the wrong size",
            f"{entry.nbytes:,} bytes for {list(shape)} {dtype}",
            f"{entry.stop - entry.start:,} bytes",
        )
    return entry


def _check_layout(path: Path, entries: list[_Entry], available: int) -> None:
    """The tensors must lie one behind another and fill the file."""
    end = 0
    for entry in sorted(entries, key=lambda e: (e.start, e.stop)):
        if entry.start != end:
            raise _damaged(
                path,
                f"tensor {entry.name!r} does not follow the one before",
                f"offset {end:,}",
                f"offset {entry.start:,}",
            )
        end = entry.stop
    if end > available:
        raise _damaged(path, "it is truncated", f"{end:,} bytes of tensors", f"{available:,} bytes")
    if end < available:
        raise _damaged(path, "it is too long", f"{end:,} bytes of tensors", f"{available:,} bytes")


def _tensor(entry: _Entry, content: bytes, begin: int) -> Array:
    """A copy of one tensor, so that it can be written to and outlives the file's bytes."""
    raw = np.frombuffer(content, _NUMPY[entry.dtype], math.prod(entry.shape), begin + entry.start)
    if entry.dtype == "BF16":
        wide = raw.astype(np.uint32) << np.uint32(16)
        return wide.view(np.float32).reshape(entry.shape)
    return raw.reshape(entry.shape).astype(raw.dtype.newbyteorder("="))
