"""How an error of the compiler looks in a notebook: the words, the user's line, a caret."""

from __future__ import annotations

import linecache
import sys
from dataclasses import dataclass
from types import FrameType, TracebackType
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from meganeura.errors import MeganeuraError
from meganeura.ir.source import Source
from meganeura.notebook.parsing import MagicLine

RED, BOLD, DIM, PLAIN = "\x1b[31m", "\x1b[1m", "\x1b[2m", "\x1b[0m"
_FOREIGN = ("meganeura", "IPython", "ipykernel", "numpy", "tornado", "asyncio", "traitlets")


@dataclass(frozen=True)
class Place:
    """A span of the user's code with its text; columns count characters."""

    cell: str
    line: int
    text: str
    start: int
    end: int

    def draw(self) -> list[str]:
        """The line with its number, and a caret under the span."""
        text = self.text.expandtabs(4)
        indent = len(text) - len(text.lstrip())
        margin = f"{self.line:>7} "
        rows = [f"{self.cell}, line {self.line}", margin + text[indent:].rstrip()]
        start = max(self.start - indent, 0)
        width = max(min(self.end - indent, len(text[indent:].rstrip())) - start, 0)
        if width:
            rows.append(" " * (len(margin) + start) + "^" * width)
        return rows


def error_place(error: MeganeuraError) -> Place | None:
    """The place that the error itself names: a node's source or a magic's line."""
    origin: Any = error.origin
    if isinstance(origin, MagicLine):
        return Place(origin.cell, origin.line, origin.text, origin.start, origin.end)
    source = origin if isinstance(origin, Source) else getattr(origin, "source", None)
    if not isinstance(source, Source):
        return None
    text = linecache.getline(source.file, source.line).rstrip("\n")
    if not text.strip():
        return None
    end = source.end_column if source.end_line == source.line else len(text.encode())
    return Place(
        source.cell, source.line, text, characters(text, source.column), characters(text, end)
    )


def at_line(error: MeganeuraError, line: MagicLine) -> None:
    """Tells an error which magic was running: its place when no line of Python is."""
    told: Any = error
    told.magic_line = line


def magic_place(error: MeganeuraError) -> Place | None:
    """The line of the magic that was running, if one was."""
    line = getattr(error, "magic_line", None)
    if not isinstance(line, MagicLine):
        return None
    return Place(line.cell, line.line, line.text, 0, len(line.text.rstrip()))


def characters(text: str, column: int) -> int:
    """A column in characters from one in bytes of UTF-8, which is what Python counts."""
    return len(text.encode()[:column].decode(errors="ignore"))


def raised_place(error: BaseException, shell: InteractiveShell) -> Place | None:
    """The innermost line of the user's that led to the error."""
    found: tuple[FrameType, TracebackType] | None = None
    trace = error.__traceback__
    while trace is not None:
        frame = trace.tb_frame
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package not in _FOREIGN and package not in sys.stdlib_module_names - {"__main__"}:
            found = frame, trace
        trace = trace.tb_next
    if found is None:
        return None
    frame, trace = found
    file = frame.f_code.co_filename
    named = shell.compile.format_code_name(file)
    cell = named[1] if named is not None else file.rsplit("/", 1)[-1]
    line, start, end = _span(frame, trace)
    text = linecache.getline(file, line).rstrip("\n")
    if not text.strip() or text.startswith("get_ipython().run_"):
        return None
    return Place(cell, line, text, characters(text, start), characters(text, end))


def _span(frame: FrameType, trace: TracebackType) -> tuple[int, int, int]:
    """Line, first and last column (in bytes) of the instruction that a traceback stands at."""
    positions = list(frame.f_code.co_positions())
    line, end_line, start, end = positions[trace.tb_lasti // 2]
    if line is None or start is None or end is None:
        return trace.tb_lineno, 0, 0
    return line, start, end if end_line == line else 10**6


def render(error: MeganeuraError, *, raised: Place | None = None, colour: bool = True) -> list[str]:
    """The error as lines: what, where with a caret, expected, got, try.

    `raised` is the user's line that was running; it is shown where the error names no other place,
    and after it where they differ.
    """
    red, bold, dim, plain = (RED, BOLD, DIM, PLAIN) if colour else ("", "", "", "")
    lines = [f"{red}{type(error).__name__}{plain}: {bold}{error.what}{plain}"]
    place = error_place(error)
    shown = place or raised
    if shown is not None:
        head, text, *caret = shown.draw()
        lines += ["", f"{dim}{head}{plain}", text, *(f"{red}{row}{plain}" for row in caret), ""]
    elif error.origin is not None and error.origin.where() is not None:
        lines.append(f"  where:    {error.origin.where()}")
    facts = (("expected", error.expected), ("got", error.got), ("try", error.hint))
    lines += [f"  {label + ':':<9} {value}" for label, value in facts if value is not None]
    if (
        place is not None
        and raised is not None
        and (raised.cell, raised.line)
        != (
            place.cell,
            place.line,
        )
    ):
        lines += [f"  {'while:':<9} {raised.cell}, line {raised.line}: {raised.text.strip()}"]
    return lines


def install(shell: InteractiveShell) -> None:
    """From now on the shell draws the compiler's errors as `render` does.

    IPython asks an exception for `_render_traceback_`; a handler of its own (`set_custom_exc`)
    would displace the user's. In ``%xmode Verbose`` the whole traceback comes.
    """

    def draw(error: MeganeuraError) -> list[str]:
        if shell.InteractiveTB.mode == "Verbose":
            full: list[str] = shell.InteractiveTB.structured_traceback(
                type(error), error, error.__traceback__, tb_offset=1
            )
            return full
        colour = shell.colors.lower() != "nocolor"
        raised = raised_place(error, shell) or magic_place(error)
        return render(error, raised=raised, colour=colour)

    owner: Any = MeganeuraError
    owner._render_traceback_ = draw


def uninstall() -> None:
    """Errors are drawn by IPython again."""
    if "_render_traceback_" in vars(MeganeuraError):
        owner: Any = MeganeuraError
        del owner._render_traceback_
