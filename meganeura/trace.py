"""Watching the compiler, and the context in which a graph is built.

Passes are pure functions under `@stage`; whoever wants to see them subscribes with `watch`. The two
context variables of
this file are the project's only ambient state: who watches, and in which scope a node is being
built.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, Literal, ParamSpec, TypeVar

Phase = Literal["forward", "backward", "update"]
P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Event:
    """One run of one pass: what went in, what came out, how long it took, what it noted."""

    stage: str
    before: Any
    after: Any
    seconds: float
    notes: dict[str, Any]


@dataclass(frozen=True)
class Watch:
    """The subscribers, and the notes of the stages that are running."""

    callbacks: tuple[Callable[[Event], None], ...] = ()
    notes: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True)
class Build:
    """Where in the model a node is being built."""

    scope: tuple[str, ...] = ()
    composite: tuple[str, ...] = ()
    phase: Phase = "forward"
    forward: Any = field(default=None)
    stands_for: Any = field(default=None)


_watch: ContextVar[Watch] = ContextVar("meganeura_watch", default=Watch())  # noqa: B039  # frozen
_build: ContextVar[Build] = ContextVar("meganeura_build", default=Build())  # noqa: B039  # frozen


def stage(name: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Marks a function as a pass: its first argument is the level before, its result the level
    after.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def run(*args: P.args, **kwargs: P.kwargs) -> R:
            current = _watch.get()
            if not current.callbacks:
                return function(*args, **kwargs)
            notes: dict[str, Any] = {}
            token = _watch.set(replace(current, notes=(*current.notes, notes)))
            start = time.perf_counter()
            try:
                after = function(*args, **kwargs)
            finally:
                _watch.reset(token)
            event = Event(
                name, args[0] if args else None, after, time.perf_counter() - start, notes
            )
            for callback in current.callbacks:
                callback(event)
            return after

        return run

    return decorate


@contextmanager
def watch(callback: Callable[[Event], None]) -> Iterator[None]:
    """Calls `callback` with an `Event` after every pass that runs inside the block."""
    current = _watch.get()
    token = _watch.set(replace(current, callbacks=(*current.callbacks, callback)))
    try:
        yield
    finally:
        _watch.reset(token)


def note(key: str, value: Any) -> None:
    """Adds a fact to the event of the pass that is running; nothing when nobody watches."""
    notes = _watch.get().notes
    if notes:
        notes[-1][key] = value


def current_build() -> Build:
    """The scope, composite and phase of nodes made now."""
    return _build.get()


@contextmanager
def _building(build: Build) -> Iterator[None]:
    token = _build.set(build)
    try:
        yield
    finally:
        _build.reset(token)


def rebuilding(build: Build) -> AbstractContextManager[None]:
    """Nodes made inside stand for one that a pass replaces, and keep its place."""
    return _building(build)


@contextmanager
def scope(name: str) -> Iterator[None]:
    """Nodes made inside belong to the named part of the model; scopes nest."""
    build = _build.get()
    with _building(replace(build, scope=(*build.scope, name))):
        yield


@contextmanager
def composite(name: str) -> Iterator[None]:
    """Nodes made inside are the parts of one named composite, such as softmax."""
    build = _build.get()
    with _building(replace(build, composite=(*build.composite, name))):
        yield


@contextmanager
def phase(name: Phase, forward: Any = None) -> Iterator[None]:
    """Nodes made inside belong to a phase; `forward` is the node whose gradient they make."""
    with _building(replace(_build.get(), phase=name, forward=forward)):
        yield


@contextmanager
def as_gradient_of(node: Any) -> Iterator[None]:
    """Nodes made inside are part of the gradient of `node`, and stand in its scope."""
    origin = node.origin
    with _building(Build(origin.scope, origin.composite, "backward", node)):
        yield
