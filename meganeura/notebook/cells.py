"""Runs the body of a cell as the user's own code: every error shows the cell's own lines."""

from __future__ import annotations

import ast
import sys
from types import FrameType, TracebackType
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from meganeura.notebook.parsing import MagicLine


class CellSyntaxError(Exception):
    """Stands for a SyntaxError of the body, which IPython would draw with its own frames."""


CellSyntaxError.__name__ = "SyntaxError"


def raw_cell(shell: InteractiveShell) -> str:
    """The text of the running cell as the user typed it, or "" where no history is kept."""
    history = getattr(shell, "history_manager", None)
    entries: list[str] = getattr(history, "input_hist_raw", [""])
    return entries[-1] if entries else ""


def lines_above(shell: InteractiveShell, body: str) -> int:
    """How many visible lines stand above the body: the magic's line, and blank ones before it."""
    raw = raw_cell(shell)
    end = raw.rstrip("\n")
    body = body.rstrip("\n")
    if body and end.endswith(body):
        return max(1, end[: len(end) - len(body)].count("\n"))
    return 1


def running_cell(shell: InteractiveShell) -> tuple[str, int, int]:
    """The running cell's label, its number, and the line of it that runs now.

    IPython 9 counts up before the cell, IPython 8 after it; the code's own name knows better.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        named = shell.compile.format_code_name(frame.f_code.co_filename)
        if named is not None:
            digits = named[1].strip("In[]")
            return named[1], int(digits) if digits.isdigit() else 0, frame.f_lineno
        frame = frame.f_back
    return f"In[{shell.execution_count}]", shell.execution_count, 1


def magic_line(shell: InteractiveShell, text: str, marker: str) -> MagicLine:
    """The line of the running magic as it stands in the user's cell.

    `text` is what follows ``%meganeura`` and `marker` is ``%`` or ``%%``.
    """
    written = f"{marker}meganeura {text}".rstrip()
    cell, _, running = running_cell(shell)
    lines = raw_cell(shell).splitlines()
    places = [number for number, line in enumerate(lines, 1) if line.strip() == written]
    if not places:  # expanded, or run without a history
        return MagicLine(written, cell, running)
    place = running if running in places else places[0]
    return MagicLine(lines[place - 1].rstrip(), cell, place)


def run_body(shell: InteractiveShell, body: str) -> Any:
    """Runs Python in the user's namespace; the value of the last expression, or None.

    Line numbers are those of the whole cell. An error leaves with the user's frames only.
    """
    transform: Any = shell.transform_cell
    build: Any = shell.compile  # typed for text only; it takes trees
    code_lines = body.lstrip("\n")  # IPython's transformation drops blank lines at the top
    above = lines_above(shell, body) + len(body) - len(code_lines)
    source = "\n" * above + str(transform(code_lines))
    file = shell.compile.cache(source, running_cell(shell)[1], raw_code=source)
    try:
        tree = ast.parse(source, file)
        value = None
        if tree.body and isinstance(tree.body[-1], ast.Expr):
            last = ast.Expression(tree.body.pop().value)  # type: ignore[attr-defined]
            value = build(last, file, "eval")
        code = build(tree, file, "exec")
    except SyntaxError as error:
        raise _shown(shell, error) from None
    try:
        exec(code, shell.user_global_ns, shell.user_ns)
        return eval(value, shell.user_global_ns, shell.user_ns) if value is not None else None
    except Exception as error:
        _strip(shell, error)
        raise


def _shown(shell: InteractiveShell, error: SyntaxError) -> CellSyntaxError:
    shown: Any = CellSyntaxError(str(error))
    syntax: Any = shell.SyntaxTB
    drawn = syntax.structured_traceback(type(error), error, [])
    shown._render_traceback_ = lambda: drawn
    typed: CellSyntaxError = shown
    return typed


def _strip(shell: InteractiveShell, error: Exception) -> None:
    """Lets IPython draw the error from the body's frame on, without the magic's."""
    if hasattr(error, "_render_traceback_"):
        return
    trace = error.__traceback__
    own: TracebackType | None = trace.tb_next if trace is not None else None

    def render() -> list[str]:
        lines: list[str] = shell.InteractiveTB.structured_traceback(
            type(error), error, own, tb_offset=0
        )
        return lines

    shown: Any = error
    try:
        shown._render_traceback_ = render
    except AttributeError:  # a class with slots keeps its full traceback
        return
