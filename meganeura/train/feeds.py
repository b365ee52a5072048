"""From batches to feeds: names, shapes and types are checked before anything reaches the device."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from meganeura.errors import DataError, FeedError
from meganeura.ir.graph import Array, Graph, Node
from meganeura.runtime.feeds import as_array, check_range, fit
from meganeura.train.data import Batches, Stream, arrays_of

SYSTEM = "meganeura."
"""Inputs of this prefix are fed by the loop, not by the user."""

Feeds = dict[str, Array]


def user_inputs(graph: Graph) -> tuple[Node, ...]:
    """The inputs that a batch brings, in order of creation."""
    return tuple(n for n in graph.inputs if not str(n.name).startswith(SYSTEM))


class Feeder:
    """Checks batches against the inputs of a graph.

    `wanted` are the inputs that the step reads; of the others in `known` a batch may bring values,
    which are left out.
    """

    def __init__(self, known: Sequence[Node], wanted: Sequence[Node]) -> None:
        self.known = tuple(known)
        self.wanted = tuple(wanted)

    def check(self, batch: Any, stacked: bool = False) -> Feeds:
        """The feeds of one batch, or of many that are stacked along a first axis.

        Raises FeedError, naming the feed, for a name that is unknown or missing, a shape or a type.
        """
        named = self._named(batch)
        for name in named:
            if all(name != node.name for node in self.known):
                raise FeedError(
                    f"there is no input {name!r}",
                    expected=self._listed(),
                    got=", ".join(named),
                    hint="name the batch's arrays as the inputs, or leave this one out",
                )
        feeds: Feeds = {}
        for node in self.wanted:
            name = str(node.name)
            if name not in named:
                raise FeedError(
                    f"the feed {name!r} is missing",
                    expected=f"{list(node.shape)} {node.dtype}",
                    got=f"a batch of {', '.join(named) or 'nothing'}",
                    origin=node.origin,
                )
            feeds[name] = _fitting(node, as_array(node, named[name]), stacked)
        return feeds

    def _named(self, batch: Any) -> Mapping[str, Any]:
        if isinstance(batch, Mapping):
            return batch
        if isinstance(batch, np.ndarray):
            batch = (batch,)
        if not isinstance(batch, (tuple, list)):
            raise FeedError(
                "this is no batch",
                expected=f"a dict by feed name, or a tuple in this order: {self._listed()}",
                got=type(batch).__name__,
            )
        if len(batch) != len(self.known):
            raise FeedError(
                f"a batch of {len(batch)} does not fit the {len(self.known)} inputs",
                expected=self._listed(),
                got=", ".join(str(list(np.shape(array))) for array in batch) or "nothing",
                hint="give one array for each input, or a dict by feed name",
            )
        return {str(node.name): array for node, array in zip(self.known, batch, strict=True)}

    def _listed(self) -> str:
        return ", ".join(f"{n.name} {list(n.shape)} {n.dtype}" for n in self.known) or "no inputs"


def _fitting(node: Node, array: Array, stacked: bool) -> Array:
    """The array in the type of the input, in one piece; refuses what would lose its meaning."""
    sample = array[0] if stacked else array
    hint = _shape_hint(node, sample.shape)
    if hint is not None:
        raise FeedError(
            f"the feed {node.name!r} has another shape",
            expected=f"{list(node.shape)} {node.dtype}",
            got=f"{list(sample.shape)} {sample.dtype}",
            hint=hint,
            origin=node.origin,
        )
    fit(node, sample)
    check_range(node, array)
    return np.array(array, node.dtype.numpy, order="C", copy=None)


def _shape_hint(node: Node, shape: tuple[int, ...]) -> str | None:
    """What to try when only the number of rows is wrong."""
    if len(shape) != len(node.shape) or shape == node.shape or shape[1:] != node.shape[1:]:
        return None
    if shape[0] < node.shape[0]:
        return "shapes are fixed: leave out the last batch when it is not full (drop_last=True)"
    return f"shapes are fixed: take batches of {node.shape[0]}"


class Source:
    """A stream of checked feeds that can be asked for several steps at once, and again."""

    def __init__(self, data: Any, feeder: Feeder) -> None:
        if not isinstance(data, Iterable) or isinstance(data, (Mapping, str)):
            raise DataError(
                "data= must give batches",
                expected="mg.data.batches(...), or any iterable of dicts or tuples",
                got=type(data).__name__,
                hint="one batch again and again is itertools.repeat(batch)",
            )
        self.data = data
        self.feeder = feeder
        self.repeatable = isinstance(data, Batches)
        self._stream: Iterator[Any] = iter(data)
        self._many = self._stream if isinstance(self._stream, Stream) else None

    def steps(self, count: int) -> list[Feeds]:
        """Feeds of the next steps: at most `count`, none at the end of the data."""
        if self._many is not None:
            taken = self._many.take(count)
            if taken is None:
                return []
            feeds = self.feeder.check(taken, stacked=True)
            if not feeds:
                return [{} for _ in arrays_of(taken)[0]]
            rows = zip(*feeds.values(), strict=True)
            return [dict(zip(feeds, row, strict=True)) for row in rows]
        found = []
        for batch in self._stream:
            found.append(self.feeder.check(batch))
            if len(found) == count:
                break
        return found

    def skip(self, count: int) -> None:
        """Leaves out steps that a resumed run has already seen."""
        if self._many is not None:
            self._many.skip(count)
            return
        for _ in zip(range(count), self._stream, strict=False):
            pass

    def again(self, start: int, count: int) -> list[Feeds]:
        """The feeds of earlier steps, where the stream is `repeatable`."""
        fresh = Source(self.data, self.feeder)
        fresh.skip(start)
        found: list[Feeds] = []
        while len(found) < count and (more := fresh.steps(count - len(found))):
            found += more
        return found


def seeds(seed: int, start: int, count: int) -> Array:
    """A u32 for each step, well mixed: the output function of SplitMix64 (Steele et al., 2014)."""
    step = np.arange(start + 1, start + count + 1, dtype=np.uint64)
    with np.errstate(over="ignore"):
        z = np.uint64(seed % 2**64) + step * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((z ^ (z >> np.uint64(31))) >> np.uint64(32)).astype(np.uint32)
