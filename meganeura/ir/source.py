"""Where a node comes from: the user's line and columns, the scope, the composite, the phase."""

from __future__ import annotations

import linecache
import sys
from dataclasses import dataclass, field
from functools import lru_cache
from types import CodeType, FrameType
from typing import TYPE_CHECKING

from meganeura.trace import Phase, current_build

if TYPE_CHECKING:
    from meganeura.ir.graph import Node


@dataclass(frozen=True)
class Source:
    """A span in the user's code; `cell` is what the user calls it, such as ``In[3]`` or
    ``model.py``.
    """

    cell: str
    file: str = field(compare=False)
    line: int = 0
    column: int = 0
    end_line: int = 0
    end_column: int = 0

    @property
    def text(self) -> str:
        """The source line itself, without its indentation or line end."""
        return linecache.getline(self.file, self.line).strip()

    def where(self) -> str:
        """The place in one line, for messages."""
        text = self.text
        return f"{self.cell}, line {self.line}" + (f": {text}" if text else "")


@dataclass(frozen=True)
class Origin:
    """Everything a node remembers about how it came to be; part of its identity."""

    source: Source | None = None
    scope: tuple[str, ...] = ()
    composite: tuple[str, ...] = ()
    phase: Phase = "forward"
    name: str | None = None
    forward: Node | None = None

    def where(self) -> str | None:
        """The place in the user's code, if it is known."""
        return self.source.where() if self.source is not None else None


@lru_cache(maxsize=65536)
def _position(code: CodeType, instruction: int) -> tuple[int, int, int, int]:
    for index, (line, end_line, column, end_column) in enumerate(code.co_positions()):
        if index == instruction:
            return line or code.co_firstlineno, column or 0, end_line or 0, end_column or 0
    return code.co_firstlineno, 0, code.co_firstlineno, 0


def _cell_name(frame: FrameType) -> str:
    """``In[n]`` for a cell, by the number of the run that compiled it, else the file's own name.

    IPython puts `get_ipython` into the user's globals; its compiler knows its own files' cells.
    """
    file = frame.f_code.co_filename
    get_shell = frame.f_globals.get("get_ipython")
    shell = get_shell() if callable(get_shell) else None
    name_of = getattr(getattr(shell, "compile", None), "format_code_name", None)
    named = name_of(file) if name_of is not None else None
    return str(named[1]) if named else file.rsplit("/", 1)[-1]


def user_source() -> Source | None:
    """The innermost frame outside the package: the line that the user wrote."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not frame.f_globals.get("__name__", "").startswith("meganeura"):
            line, column, end_line, end_column = _position(frame.f_code, frame.f_lasti // 2)
            file = frame.f_code.co_filename
            return Source(_cell_name(frame), file, line, column, end_line, end_column)
        frame = frame.f_back
    return None


def here(name: str | None = None) -> Origin:
    """The origin of a node that is made now: the user's line, or that of the node being
    differentiated.
    """
    build = current_build()
    forward = build.forward
    like = build.stands_for if build.stands_for is not None else forward
    source = like.origin.source if like is not None else user_source()
    return Origin(source, build.scope, build.composite, build.phase, name, forward)
