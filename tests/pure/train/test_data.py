"""Batches by seed, digits, and IDX files."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from meganeura.errors import DataError, MeganeuraError, OptionError
from meganeura.train import data

ROWS = np.arange(10)
PAIR = (ROWS, ROWS * 10)


def _first(batch: data.Batch | None) -> np.ndarray[Any, Any]:
    """The first array of a batch."""
    assert batch is not None
    return data.arrays_of(batch)[0]


def _text(error: type[MeganeuraError], call: Any) -> str:
    with pytest.raises(error) as caught:
        call()
    return str(caught.value)


def test_an_epoch_has_each_row_once() -> None:
    stream = list(data.batches(PAIR, 5, seed=3, epochs=2))
    assert len(stream) == 4
    for epoch in (stream[:2], stream[2:]):
        rows = np.concatenate([_first(batch) for batch in epoch])
        assert sorted(rows) == list(ROWS)
    for x, y in map(data.arrays_of, stream):
        np.testing.assert_array_equal(y, x * 10)
    assert not np.array_equal(_first(stream[0]), _first(stream[2]))


def test_the_seed_decides() -> None:
    def first(seed: int) -> list[int]:
        return [int(v) for v in _first(next(iter(data.batches(PAIR, 8, seed=seed))))]

    assert first(1) == first(1)
    assert first(1) != first(2)
    plain = _first(next(iter(data.batches(PAIR, 8, shuffle=False))))
    np.testing.assert_array_equal(plain, ROWS[:8])


@pytest.mark.parametrize(("drop", "sizes"), [(True, [4, 4]), (False, [4, 4, 2])])
def test_the_last_batch(drop: bool, sizes: list[int]) -> None:
    source = data.batches(PAIR, 4, drop_last=drop, epochs=1)
    assert [len(_first(batch)) for batch in source] == sizes
    assert source.per_epoch == len(sizes)


def test_less_than_one_batch() -> None:
    assert [len(_first(b)) for b in data.batches(PAIR, 16, drop_last=False, epochs=1)] == [10]
    stream = iter(data.batches(PAIR, 16, drop_last=False, epochs=1))
    assert _first(stream.take(5)).shape == (1, 10)
    assert stream.take(5) is None


@pytest.mark.parametrize("drop", [True, False])
@pytest.mark.parametrize("chunk", [1, 2, 3, 7])
def test_taking_many_is_taking_one_by_one(drop: bool, chunk: int) -> None:
    source = data.batches({"x": ROWS, "y": ROWS * 10}, 4, drop_last=drop, epochs=3)
    many: list[np.ndarray[Any, Any]] = []
    stream = iter(source)
    while (taken := stream.take(chunk)) is not None:
        assert isinstance(taken, dict)
        assert 1 <= len(taken["x"]) <= chunk
        many += list(taken["x"])
    single = [batch["x"] for batch in source if isinstance(batch, dict)]
    assert len(many) == len(single)
    for a, b in zip(many, single, strict=True):
        np.testing.assert_array_equal(a, b)


def test_skipping_is_taking_and_throwing_away() -> None:
    source = data.batches(PAIR, 3)
    slow, fast = iter(source), iter(source)
    for _ in range(7):
        next(slow)
    fast.skip(7)
    np.testing.assert_array_equal(_first(next(slow)), _first(next(fast)))


def test_a_dataset_object_and_a_single_array() -> None:
    dataset = data.Dataset(np.zeros((6, 2), np.float32), np.arange(6, dtype=np.int32))
    x, y = data.arrays_of(next(iter(data.batches(dataset, 2))))
    assert (x.shape, y.shape) == ((2, 2), (2,))
    assert _first(next(iter(data.batches(ROWS, 2)))).shape == (2,)
    assert repr(dataset) == "<Dataset: 6 rows, x float32[2], y int32>"
    assert repr(data.batches(dataset, 2)) == "<Batches of 2 from 6 rows, seed 0, endless>"


def test_refusals() -> None:
    assert _text(OptionError, lambda: data.batches(PAIR, 11)) == (
        "batch_size is out of range\n"
        "  expected: 1 to 10, the rows of the data set\n"
        "  got:      11\n"
        "  try:      take a smaller batch"
    )
    assert _text(OptionError, lambda: data.batches(PAIR, 0)) == (
        "batch_size is out of range\n  expected: 1 to 10, the rows of the data set\n  got:      0"
    )
    assert _text(OptionError, lambda: data.batches(PAIR, 2, epochs=-1)) == (
        "epochs is out of range\n  expected: >= 0, or None\n  got:      -1"
    )
    assert _text(DataError, lambda: data.batches((ROWS, ROWS[1:]), 2)) == (
        "the arrays of a data set must have one number of rows\n"
        "  expected: one or more arrays of equal first axis\n"
        "  got:      [10], [9]"
    )
    assert _text(DataError, lambda: data.batches(3, 2)) == (
        "this is no data set\n"
        "  expected: an object with .x and .y, a dict of arrays, or a tuple of arrays\n"
        "  got:      int"
    )


def test_digits() -> None:
    pytest.importorskip("sklearn")
    digits = data.digits()
    assert (len(digits.train), len(digits.test)) == (1348, 449)
    assert digits.train.x.dtype == np.float32
    assert digits.train.y.dtype == np.int32
    assert (float(digits.train.x.min()), float(digits.train.x.max())) == (0.0, 1.0)
    again = data.digits(seed=1)
    assert not np.array_equal(again.test.y, digits.test.y)
    assert _text(OptionError, lambda: data.digits(1.0)) == (
        "test_fraction is out of range\n  expected: between 0 and 1\n  got:      1"
    )


def test_digits_without_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    assert _text(DataError, data.digits) == (
        "the digits need scikit-learn, which is not installed\n"
        '  try:      pip install "meganeura[datasets]", then restart the kernel'
    )


def _idx(array: np.ndarray[Any, Any], kind: int = 8) -> bytes:
    sizes = b"".join(n.to_bytes(4, "big") for n in array.shape)
    return bytes([0, 0, kind, array.ndim]) + sizes + array.tobytes()


@pytest.mark.parametrize("packed", [False, True])
def test_mnist(tmp_path: Path, packed: bool) -> None:
    images = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    labels = np.array([7, 2], np.uint8)
    wrap = gzip.compress if packed else bytes
    (tmp_path / "images").write_bytes(wrap(_idx(images)))
    (tmp_path / "labels").write_bytes(wrap(_idx(labels)))
    found = data.mnist_idx(tmp_path / "images", tmp_path / "labels")
    np.testing.assert_array_equal(found.x, np.float32(images.reshape(2, 12)) / np.float32(255))
    np.testing.assert_array_equal(found.y, np.array([7, 2]))
    assert found.x.dtype == np.float32


def test_idx_of_floats(tmp_path: Path) -> None:
    array = np.linspace(0, 1, 6, dtype=">f4").reshape(2, 3)
    (tmp_path / "a").write_bytes(_idx(array, 13))
    np.testing.assert_array_equal(data.idx(tmp_path / "a"), array)


FILES = {
    "wrong magic": (
        b"\x89PNG\r\n\x1a\n",
        "a is not a sound IDX file: wrong magic number\n"
        "  expected: 00 00, a type of 08, 09, 0b, 0c, 0d or 0e, and the number of axes\n"
        "  got:      89 50 4e 47\n"
        "  try:      copy or download the file again",
    ),
    "three bytes": (
        b"\0\0\x08",
        "a is not a sound IDX file: it is truncated\n"
        "  expected: at least 4 bytes\n"
        "  got:      3 bytes\n"
        "  try:      copy or download the file again",
    ),
    "half a header": (
        _idx(np.zeros((2, 2), np.uint8))[:9],
        "a is not a sound IDX file: it is truncated\n"
        "  expected: a header of 12 bytes\n"
        "  got:      9 bytes\n"
        "  try:      copy or download the file again",
    ),
    "half the data": (
        _idx(np.zeros((2, 2), np.uint8))[:-1],
        "a is not a sound IDX file: it is truncated\n"
        "  expected: 4 bytes for [2, 2]\n"
        "  got:      3 bytes\n"
        "  try:      copy or download the file again",
    ),
    "too much data": (
        _idx(np.zeros((2, 2), np.uint8)) + b"!",
        "a is not a sound IDX file: it is too long\n"
        "  expected: 4 bytes for [2, 2]\n"
        "  got:      5 bytes\n"
        "  try:      copy or download the file again",
    ),
    "half a gzip": (
        gzip.compress(_idx(np.zeros((2, 2), np.uint8)))[:-9],
        "a is not a sound IDX file: it is truncated\n"
        "  expected: a whole gzip stream\n"
        "  got:      a part of one\n"
        "  try:      copy or download the file again",
    ),
}


@pytest.mark.parametrize("case", FILES)
def test_damaged_files(tmp_path: Path, case: str) -> None:
    content, message = FILES[case]
    (tmp_path / "a").write_bytes(content)
    assert _text(DataError, lambda: data.idx(tmp_path / "a")) == message


def test_files_that_do_not_belong(tmp_path: Path) -> None:
    (tmp_path / "images").write_bytes(_idx(np.zeros((2, 1, 1), np.uint8)))
    (tmp_path / "labels").write_bytes(_idx(np.zeros(3, np.uint8)))
    images, labels = tmp_path / "images", tmp_path / "labels"
    assert _text(DataError, lambda: data.mnist_idx(labels, images)) == (
        "labels does not hold MNIST's images\n"
        "  expected: bytes with 3 axes\n"
        "  got:      uint8 with 1\n"
        "  try:      give the images first, then the labels"
    )
    assert _text(DataError, lambda: data.mnist_idx(images, labels)) == (
        "images and labels do not belong together\n"
        "  expected: 2 labels\n"
        "  got:      3\n"
        "  try:      take both files of one set: train or t10k"
    )
    assert _text(DataError, lambda: data.idx(tmp_path / "none")) == (
        "none cannot be read\n"
        "  expected: an IDX file, plain or .gz\n"
        "  got:      No such file or directory\n"
        f"  try:      look for it in {tmp_path}"
    )
