"""Errors: each says what is wrong, where, what was expected, what came, and what to try."""

from __future__ import annotations

from typing import Protocol


class Located(Protocol):
    """Anything that can say where in the user's source it comes from."""

    def where(self) -> str | None:
        """A line such as ``In[3], line 4: h = mg.relu(x)``, or None when unknown."""
        ...


class MeganeuraError(Exception):
    """The base of every error that the compiler raises on purpose.

    ``str()`` is the whole story on up to five lines: what, where, expected, got, try.
    """

    def __init__(
        self,
        what: str,
        *,
        expected: str | None = None,
        got: str | None = None,
        hint: str | None = None,
        origin: Located | None = None,
    ) -> None:
        self.what = what
        self.expected = expected
        self.got = got
        self.hint = hint
        self.origin = origin
        super().__init__(self.text())

    def text(self) -> str:
        """The message with one labelled line for each thing that is known."""
        where = self.origin.where() if self.origin is not None else None
        rows = [
            ("where", where),
            ("expected", self.expected),
            ("got", self.got),
            ("try", self.hint),
        ]
        lines = [f"  {label + ':':<9} {value}" for label, value in rows if value is not None]
        return "\n".join([self.what, *lines])


class ShapeError(MeganeuraError, ValueError):
    """Shapes that do not fit each other or the operation."""


class DTypeError(MeganeuraError, TypeError):
    """A data type that the operation, feed or parameter does not take."""


class FeedError(MeganeuraError, ValueError):
    """A feed that is unknown, missing, or not what its input declares."""


class NameClashError(MeganeuraError, ValueError):
    """Two different inputs, parameters or outputs under one name."""


class GradientError(MeganeuraError, ValueError):
    """A gradient that does not exist, or of something that is not a scalar."""


class OptionError(MeganeuraError, ValueError):
    """An option of compile, train or profile that is unknown or out of range."""


class TargetError(MeganeuraError, ValueError):
    """A program that does not fit the limits of the adapter."""


class NonFiniteError(MeganeuraError, ArithmeticError):
    """A NaN or an infinity, named with the node that made it first."""


class DeviceError(MeganeuraError, RuntimeError):
    """No usable adapter, or a driver that refuses what it must do."""


class DeviceLostError(DeviceError):
    """The device went away; what was on the host is still there."""


class CheckpointError(MeganeuraError, ValueError):
    """A checkpoint that is damaged or belongs to another model."""


class DataError(MeganeuraError, ValueError):
    """A data file or a batch that cannot be read as what it should be."""


class MagicError(MeganeuraError, ValueError):
    """A magic line that cannot be understood."""


class SpecError(MeganeuraError, AssertionError):
    """A level's invariant that does not hold: a fault of the compiler, not of the user."""
