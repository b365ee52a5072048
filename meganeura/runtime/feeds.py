"""Feeds: arrays by input name, checked against what the inputs declare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from meganeura.errors import FeedError
from meganeura.ir.graph import Array, Node


def by_name(
    inputs: Sequence[Node], args: Sequence[Any], feeds: Mapping[str, Any]
) -> dict[str, Any]:
    """Positional values, in the order of the inputs, joined with named ones."""
    if len(args) > len(inputs):
        raise FeedError(
            "too many feeds",
            expected=f"{len(inputs)}: " + ", ".join(str(n.name) for n in inputs),
            got=str(len(args)),
        )
    named = {str(n.name): value for n, value in zip(inputs, args, strict=False)}
    twice = named.keys() & feeds.keys()
    if twice:
        raise FeedError(
            f"the feed {sorted(twice)[0]!r} is given twice",
            expected="by position or by name",
            got="both",
        )
    return {**named, **feeds}


def checked(inputs: Sequence[Node], feeds: Mapping[str, Any]) -> dict[str, Array]:
    """Every input's array in its own type; FeedError for an unknown, missing or ill-fitting one."""
    names = {str(n.name): n for n in inputs}
    unknown = [name for name in feeds if name not in names]
    if unknown:
        raise FeedError(
            f"there is no input {unknown[0]!r}",
            expected="one of: " + (", ".join(names) or "none: the program has no inputs"),
            got=repr(unknown[0]),
        )
    return {
        name: fit(node, feeds[name]) if name in feeds else _missing(node)
        for name, node in names.items()
    }


def _missing(node: Node) -> Array:
    raise FeedError(
        f"the feed {node.name!r} is missing",
        expected=f"{list(node.shape)} {node.dtype}",
        got="nothing",
        hint=f"program({node.name}=...)",
        origin=node.origin,
    )


def fit(node: Node, value: Any) -> Array:
    """A value as a contiguous array of the input's type; FeedError when shape or kind differ."""
    array = as_array(node, value)
    if tuple(array.shape) != node.shape:
        raise FeedError(
            f"the feed {node.name!r} has another shape",
            expected=f"{list(node.shape)} {node.dtype}",
            got=f"{list(array.shape)} {array.dtype}",
            origin=node.origin,
        )
    kinds = {"f32": "fiub", "f16": "fiub", "i32": "iub", "u32": "iub", "bool": "b"}
    if array.dtype.kind not in kinds[node.dtype.name]:
        raise FeedError(
            f"the feed {node.name!r} has another type",
            expected=f"{list(node.shape)} {node.dtype}",
            got=f"{list(array.shape)} {array.dtype}",
            hint=f"convert it, as in array.astype(np.{np.dtype(node.dtype.numpy).name})",
            origin=node.origin,
        )
    check_range(node, array)
    return np.array(array, node.dtype.numpy, order="C", copy=None)


def as_array(node: Node, value: Any) -> Array:
    """The value as an array; rows of different lengths are none."""
    try:
        return np.asarray(value)
    except ValueError as error:
        raise FeedError(
            f"the value of {node.name!r} is no array",
            expected=f"{list(node.shape)} {node.dtype}",
            got=f"a {type(value).__name__} whose rows have different lengths",
            origin=node.origin,
        ) from error


def check_range(node: Node, array: Array) -> None:
    """Integers of another width must be numbers of the input's type, not wrap around."""
    wanted = np.dtype(node.dtype.numpy)
    if wanted.kind not in "iu" or np.can_cast(array.dtype, wanted) or not array.size:
        return
    limits = np.iinfo(wanted)
    for extreme in (int(array.min()), int(array.max())):
        if not limits.min <= extreme <= limits.max:
            raise FeedError(
                f"the feed {node.name!r} holds a number that does not fit into {node.dtype}",
                expected=f"{limits.min:,} to {limits.max:,}",
                got=f"{extreme:,}",
                origin=node.origin,
            )
