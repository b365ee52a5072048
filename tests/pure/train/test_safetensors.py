"""The checkpoint format: what goes in comes out, and damage is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from meganeura.errors import CheckpointError
from meganeura.train import safetensors

TRY = "  try:      copy or download the file again, or take an older one"


def _raw(header: Any, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def _message(path: Path) -> str:
    with pytest.raises(CheckpointError) as caught:
        safetensors.read(path)
    return str(caught.value)


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 5), (17, 1, 2), (127,)])
@pytest.mark.parametrize("dtype", ["f4", "f2", "f8", "i4", "u4", "i8", "u1", "?"])
def test_round_trip(tmp_path: Path, shape: tuple[int, ...], dtype: str) -> None:
    array = (np.random.default_rng(0).random(shape) * 9).astype(dtype)
    path = tmp_path / "a.safetensors"
    safetensors.write(path, {"a": array, "b": np.array([1, 2], np.float32)}, {"step": "7"})
    back = safetensors.read(path)
    assert back.metadata == {"step": "7"}
    assert list(back.tensors) == ["a", "b"]
    assert back.tensors["a"].dtype == array.dtype
    np.testing.assert_array_equal(back.tensors["a"], array)
    back.tensors["b"][0] = 5  # not a view of the file
    assert [p.name for p in tmp_path.iterdir()] == ["a.safetensors"]


def test_rows_in_any_memory_order(tmp_path: Path) -> None:
    array = np.arange(6, dtype=">f4").reshape(2, 3).T
    path = tmp_path / "a.safetensors"
    safetensors.write(path, {"a": array})
    np.testing.assert_array_equal(safetensors.read(path).tensors["a"], array)


def test_bfloat16_becomes_float32(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    data = np.array([0x3F80, 0xC040], "<u2").tobytes()
    path.write_bytes(_raw({"a": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}}, data))
    np.testing.assert_array_equal(safetensors.read(path).tensors["a"], [1, -3])


def test_missing_file(tmp_path: Path) -> None:
    assert _message(tmp_path / "none.safetensors") == (
        "none.safetensors cannot be read\n"
        "  expected: a safetensors file\n"
        "  got:      No such file or directory\n"
        f"  try:      look for it in {tmp_path}"
    )


ENTRY = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
DAMAGE = {
    "too short for a length": (
        b"abc",
        "it is truncated",
        "at least 8 bytes",
        "3 bytes",
    ),
    "a length beyond the end": (
        (50).to_bytes(8, "little") + b"{}",
        "it is truncated",
        "a header of 50 bytes",
        "2 bytes",
    ),
    "another kind of file": (
        b"\x89PNG\r\n\x1a\n" + b"0" * 30,
        "bad header",
        "a header of at most 100,000,000 bytes",
        "727,905,341,920,923,785 bytes",
    ),
    "no JSON": (
        _raw(b"{'a'}"),
        "bad header",
        "JSON",
        "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
    ),
    "no object": (_raw([1]), "bad header", "a JSON object", "list"),
    "a name twice": (
        _raw(b'{"a": 1, "a": 2}'),
        "bad header",
        "JSON",
        "a name stands twice",
    ),
    "metadata of numbers": (
        _raw({"__metadata__": {"step": 1}}),
        "bad header",
        "__metadata__ of text by key",
        "{'step': 1}",
    ),
    "an entry without shape": (
        _raw({"a": {"dtype": "F32"}}),
        "bad header",
        "dtype, shape and data_offsets for 'a'",
        "{'dtype': 'F32'}",
    ),
    "a shape below zero": (
        _raw({"a": {**ENTRY, "shape": [-2]}}),
        "bad header",
        "dtype, shape and data_offsets for 'a'",
        "{'dtype': 'F32', 'shape': [-2], 'data_offsets': [0, 8]}",
    ),
    "an unknown dtype": (
        _raw({"a": {**ENTRY, "dtype": "F8"}}, bytes(8)),
        "tensor 'a' has an unknown dtype",
        "F64, F32, F16, BF16, I64, I32, I16, I8, U64, U32, U16, U8, BOOL",
        "'F8'",
    ),
    "a size that does not fit": (
        _raw({"a": {**ENTRY, "shape": [3]}}, bytes(8)),
        "tensor 'a' has the wrong size",
        "12 bytes for [3] F32",
        "8 bytes",
    ),
    "a hole": (
        _raw({"a": ENTRY, "b": {**ENTRY, "data_offsets": [12, 20]}}, bytes(20)),
        "tensor 'b' does not follow the one before",
        "offset 8",
        "offset 12",
    ),
    "truncated tensors": (
        _raw({"a": ENTRY}, bytes(5)),
        "it is truncated",
        "8 bytes of tensors",
        "5 bytes",
    ),
    "bytes behind": (
        _raw({"a": ENTRY}, bytes(9)),
        "it is too long",
        "8 bytes of tensors",
        "9 bytes",
    ),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_damage_is_named(tmp_path: Path, case: str) -> None:
    content, what, expected, got = DAMAGE[case]
    path = tmp_path / "a.safetensors"
    path.write_bytes(content)
    assert _message(path) == (
        f"a.safetensors is not a sound safetensors file: {what}\n"
        f"  expected: {expected}\n"
        f"  got:      {got}\n{TRY}"
    )


def test_every_cut_of_a_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    safetensors.write(
        path, {"a": np.array([1, 2], np.float32), "b": np.array(3, np.int32)}, {"step": "1"}
    )
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        assert "it is truncated" in _message(path), length


def test_a_type_that_the_format_lacks(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    path.write_bytes(b"old")
    with pytest.raises(CheckpointError) as caught:
        safetensors.write(path, {"z": np.zeros(2, complex)})
    assert str(caught.value) == (
        "tensor 'z' cannot be written\n"
        "  expected: an array of BOOL, F16, F32, F64, I16, I32, I64, I8, U16, U32, U64, U8\n"
        "  got:      complex128"
    )
    assert path.read_bytes() == b"old"
