"""Data sets and streams of batches, the digits of scikit-learn, and MNIST's file format."""

from __future__ import annotations

import gzip
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from meganeura.errors import DataError, OptionError
from meganeura.ir.graph import Array

Batch = tuple[Array, ...] | dict[str, Array]


@dataclass(frozen=True)
class Dataset:
    """Inputs and labels, row by row."""

    x: Array
    y: Array

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.x)

    def __repr__(self) -> str:
        x = f"{self.x.dtype}{list(self.x.shape[1:])}"
        return f"<Dataset: {len(self):,} rows, x {x}, y {self.y.dtype}>"


@dataclass(frozen=True)
class Split:
    """A data set cut in two: rows to learn from and rows held out."""

    train: Dataset
    test: Dataset


@runtime_checkable
class Stream(Protocol):
    """Batches that can be taken many at once; the training loop asks for it to keep Python out of
    the step.
    """

    def take(self, count: int) -> Batch | None:
        """The next batches, stacked along a new first axis: at most `count`, None at the end."""
        ...

    def skip(self, count: int) -> None:
        """Leaves out the next batches without making them."""
        ...


def columns_of(dataset: Any) -> Batch:
    """The arrays of a data set: a dict by feed name, or a tuple in the order of the inputs.

    Takes a Dataset or anything with `.x` and `.y`, a dict, a sequence of arrays, or one array.
    """
    if isinstance(dataset, Mapping):
        return {str(name): np.asarray(value) for name, value in dataset.items()}
    if hasattr(dataset, "x") and hasattr(dataset, "y"):
        return np.asarray(dataset.x), np.asarray(dataset.y)
    if isinstance(dataset, Sequence) and not isinstance(dataset, str):
        return tuple(np.asarray(value) for value in dataset)
    if isinstance(dataset, np.ndarray):
        return (dataset,)
    raise DataError(
        "this is no data set",
        expected="an object with .x and .y, a dict of arrays, or a tuple of arrays",
        got=type(dataset).__name__,
    )


def arrays_of(batch: Batch) -> tuple[Array, ...]:
    """The arrays of a batch, in order."""
    return tuple(batch.values()) if isinstance(batch, dict) else batch


def rebuilt(like: Batch, arrays: Sequence[Array]) -> Batch:
    """Other arrays in the form of a batch."""
    return dict(zip(like, arrays, strict=True)) if isinstance(like, dict) else tuple(arrays)


def rows_of(columns: Batch) -> int:
    """The common number of rows; raises DataError when the arrays differ in it."""
    arrays = arrays_of(columns)
    sizes = [array.shape[0] if array.ndim else -1 for array in arrays]
    if not sizes or -1 in sizes or len(set(sizes)) != 1:
        raise DataError(
            "the arrays of a data set must have one number of rows",
            expected="one or more arrays of equal first axis",
            got=", ".join(str(list(array.shape)) for array in arrays) or "no array",
        )
    return sizes[0]


@dataclass(frozen=True)
class Batches:
    """Shuffled batches of a data set: each iteration starts the same stream anew."""

    columns: Batch
    batch_size: int
    seed: int
    drop_last: bool
    epochs: int | None
    shuffle: bool

    def __iter__(self) -> BatchStream:
        return BatchStream(self)

    def __repr__(self) -> str:
        ends = "endless" if self.epochs is None else f"{self.epochs} epochs"
        rows = f"{rows_of(self.columns):,} rows"
        return f"<Batches of {self.batch_size} from {rows}, seed {self.seed}, {ends}>"

    @property
    def per_epoch(self) -> int:
        """The number of batches in one pass over the data."""
        rows = rows_of(self.columns)
        return rows // self.batch_size if self.drop_last else math.ceil(rows / self.batch_size)


def batches(
    dataset: Any,
    batch_size: int,
    seed: int = 0,
    drop_last: bool = True,
    epochs: int | None = None,
    shuffle: bool = True,
) -> Batches:
    """A stream of shuffled batches, endless unless `epochs` is given; the seed decides the order,
    epoch by epoch.

    `dataset` is anything with `.x` and `.y`, a tuple of arrays in the order of the inputs, or a
    dict by feed name. Raises OptionError when a batch is larger than the data.

    >>> stream = iter(batches((np.arange(6), np.arange(6)), 2, seed=0))
    >>> [len(array) for array in next(stream)]
    [2, 2]
    """
    columns = columns_of(dataset)
    rows = rows_of(columns)
    if batch_size < 1 or (drop_last and batch_size > rows):
        raise OptionError(
            "batch_size is out of range",
            expected=f"1 to {rows:,}, the rows of the data set",
            got=str(batch_size),
            hint="take a smaller batch" if batch_size > rows else None,
        )
    if epochs is not None and epochs < 0:
        raise OptionError("epochs is out of range", expected=">= 0, or None", got=str(epochs))
    return Batches(columns, batch_size, seed, drop_last, epochs, shuffle)


SHUFFLED_AT_ONCE = 1 << 16
"""Row numbers that are shuffled with one generator: many epochs of a small data set."""


class BatchStream:
    """One run through `Batches`: an iterator that can also give and skip many batches at once."""

    def __init__(self, source: Batches) -> None:
        self.source = source
        self.position = 0  # batches given out or skipped
        self._rows = rows_of(source.columns)
        self._per_epoch = source.per_epoch
        self._together = max(SHUFFLED_AT_ONCE // max(self._rows, 1), 1)
        self._block = -1
        self._orders: Array = np.empty((0, 0), np.int64)

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        """The next batch."""
        order = self._next_rows(1)
        if order is None:
            raise StopIteration
        return self._gather(order)

    def take(self, count: int) -> Batch | None:
        """The next batches, stacked: at most `count`; a batch that is not full comes alone."""
        orders: list[Array] = []
        found, size = 0, self.source.batch_size
        while found < count and not (orders and self._next_is_short()):
            order = self._next_rows(count - found)
            if order is None:
                break
            orders.append(order)
            found += max(len(order) // size, 1)
            if len(order) < size:
                break
        if not orders:
            return None
        rows = orders[0] if len(orders) == 1 else np.concatenate(orders)
        stack = (found, len(rows) // found)
        arrays = arrays_of(self._gather(rows))
        shaped = [array.reshape(*stack, *array.shape[1:]) for array in arrays]
        return rebuilt(self.source.columns, shaped)

    def skip(self, count: int) -> None:
        """Leaves out the next batches without making them."""
        self.position += count

    def _gather(self, order: Array) -> Batch:
        columns = self.source.columns
        return rebuilt(columns, [np.take(array, order, axis=0) for array in arrays_of(columns)])

    def _next_is_short(self) -> bool:
        """Whether the next batch is the last of its epoch and not full."""
        index = self.position % self._per_epoch
        return (index + 1) * self.source.batch_size > self._rows

    def _next_rows(self, count: int) -> Array | None:
        """Row numbers of up to `count` batches, within one epoch; None at the end of the stream."""
        if self._per_epoch == 0:
            return None
        epoch, index = divmod(self.position, self._per_epoch)
        if self.source.epochs is not None and epoch >= self.source.epochs:
            return None
        block, within = divmod(epoch, self._together)
        if block != self._block:
            self._orders = self._shuffled(block)
            self._block = block
        size = self.source.batch_size
        full = self._rows // size
        stop = max(min(index + count, full), index + 1)
        self.position += stop - index
        order: Array = self._orders[within, index * size : stop * size]
        return order

    def _shuffled(self, block: int) -> Array:
        """The orders of some epochs: [epochs, rows]."""
        orders = np.tile(np.arange(self._rows), (self._together, 1))
        if not self.source.shuffle:
            return orders
        return np.random.default_rng((self.source.seed, block)).permuted(orders, axis=1)


def digits(test_fraction: float = 0.25, seed: int = 0) -> Split:
    """The 1,797 handwritten digits of scikit-learn: x float32 [n, 64] from 0 to 1, y int32 [n].

    Rows are shuffled by the seed and cut; needs the extra `datasets`. Source: UCI, Optical
    Recognition of Handwritten Digits.
    """
    if not 0 < test_fraction < 1:
        raise OptionError(
            "test_fraction is out of range", expected="between 0 and 1", got=f"{test_fraction:g}"
        )
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise DataError(
            "the digits need scikit-learn, which is not installed",
            hint='pip install "meganeura[datasets]", then restart the kernel',
        ) from None
    raw = load_digits()
    x = np.asarray(raw.data, np.float32) / np.float32(16)
    y = np.asarray(raw.target, np.int32)
    order = np.random.default_rng(seed).permutation(len(x))
    cut = round(len(x) * test_fraction)
    held, rest = order[:cut], order[cut:]
    return Split(Dataset(x[rest], y[rest]), Dataset(x[held], y[held]))


_IDX: Mapping[int, str] = {8: ">u1", 9: ">i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}


def _bad_file(path: Path, what: str, expected: str, got: str) -> DataError:
    return DataError(
        f"{path.name} is not a sound IDX file: {what}",
        expected=expected,
        got=got,
        hint="copy or download the file again",
    )


def _content(path: Path) -> bytes:
    try:
        raw = path.read_bytes()
        return gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
    except EOFError:
        raise _bad_file(path, "it is truncated", "a whole gzip stream", "a part of one") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise DataError(
            f"{path.name} cannot be read",
            expected="an IDX file, plain or .gz",
            got=reason,
            hint=f"look for it in {path.parent}",
        ) from None


def idx(path: str | os.PathLike[str]) -> Array:
    """The array of an IDX file, plain or gzip: the format of MNIST.

    Raises DataError when the magic number is wrong or bytes are missing. Source of the format:
    LeCun's MNIST page.
    """
    place = Path(path)
    content = _content(place)
    if len(content) < 4:
        raise _bad_file(place, "it is truncated", "at least 4 bytes", f"{len(content)} bytes")
    zero, kind, rank = int.from_bytes(content[:2], "big"), content[2], content[3]
    if zero or kind not in _IDX:
        raise _bad_file(
            place,
            "wrong magic number",
            "00 00, a type of 08, 09, 0b, 0c, 0d or 0e, and the number of axes",
            content[:4].hex(" "),
        )
    begin = 4 + 4 * rank
    if len(content) < begin:
        raise _bad_file(
            place, "it is truncated", f"a header of {begin} bytes", f"{len(content)} bytes"
        )
    shape = tuple(int(n) for n in np.frombuffer(content, ">u4", rank, 4))
    dtype = np.dtype(_IDX[kind])
    size = math.prod(shape) * dtype.itemsize
    if len(content) - begin != size:
        short = len(content) - begin < size
        raise _bad_file(
            place,
            "it is truncated" if short else "it is too long",
            f"{size:,} bytes for {list(shape)}",
            f"{len(content) - begin:,} bytes",
        )
    array = np.frombuffer(content, dtype, math.prod(shape), begin).reshape(shape)
    return array.astype(dtype.newbyteorder("="))


def mnist_idx(images: str | os.PathLike[str], labels: str | os.PathLike[str]) -> Dataset:
    """Images and labels from a pair of MNIST's files: x float32 [n, rows * columns] from 0 to 1, y
    int32 [n].
    """
    x, y = idx(images), idx(labels)
    for path, array, rank in ((images, x, 3), (labels, y, 1)):
        if array.ndim != rank or array.dtype != np.uint8:
            raise DataError(
                f"{Path(path).name} does not hold MNIST's {'images' if rank == 3 else 'labels'}",
                expected=f"bytes with {rank} {'axes' if rank > 1 else 'axis'}",
                got=f"{array.dtype} with {array.ndim}",
                hint="give the images first, then the labels",
            )
    if len(x) != len(y):
        raise DataError(
            "images and labels do not belong together",
            expected=f"{len(x):,} labels",
            got=f"{len(y):,}",
            hint="take both files of one set: train or t10k",
        )
    flat = x.reshape(len(x), -1).astype(np.float32) / np.float32(255)
    return Dataset(flat, y.astype(np.int32))
