"""A shell as a notebook's kernel has one, with its outputs caught."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import ExecutionResult, InteractiveShell
from traitlets.config import Config

ANSI = re.compile(r"\x1b\[[0-9;]*m")


@dataclass
class Notebook:
    """Runs cells one after the other, as a frontend would."""

    shell: InteractiveShell
    errors: list[str] = field(default_factory=list)

    def run(self, cell: str) -> ExecutionResult:
        """Runs one cell and keeps the text of its error."""
        self.errors.clear()
        run: Any = self.shell.run_cell
        result: ExecutionResult = run(cell, store_history=True)
        return result

    def ok(self, cell: str) -> Any:
        """Runs a cell that must succeed; its result."""
        result = self.run(cell)
        assert result.success, "\n".join(self.errors)
        return result.result

    def fails(self, cell: str) -> str:
        """Runs a cell that must fail; the text that the user sees, without colours."""
        result = self.run(cell)
        assert not result.success
        return ANSI.sub("", "\n".join(self.errors))

    def __getitem__(self, name: str) -> Any:
        return self.shell.user_ns[name]


@pytest.fixture
def notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Notebook]:
    """A shell with the extension loaded."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    config = Config()
    config.HistoryManager.hist_file = ":memory:"
    config.InteractiveShell.colors = "nocolor"
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance(config=config)
    made = Notebook(shell)

    def keep(etype: type, value: BaseException, lines: list[str]) -> None:
        made.errors.extend(lines)

    replaced: Any = shell
    replaced._showtraceback = keep  # which ipykernel replaces as well
    shell.run_line_magic("load_ext", "meganeura")
    yield made
    shell.run_line_magic("unload_ext", "meganeura")
    history: Any = shell.history_manager
    history.end_session()
    InteractiveShell.clear_instance()
