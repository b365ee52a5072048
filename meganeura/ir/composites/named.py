"""How a function becomes a named composite."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from meganeura import trace

P = ParamSpec("P")
R = TypeVar("R")


def named(name: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Nodes that the function makes are parts of one composite of this name."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def run(*args: P.args, **kwargs: P.kwargs) -> R:
            with trace.composite(name):
                return function(*args, **kwargs)

        return run

    return decorate
