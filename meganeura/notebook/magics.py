"""The magics themselves: a line is read, its command is done, its result is returned."""

from __future__ import annotations

from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_cell_magic, magics_class, output_can_be_silenced

from meganeura.errors import MeganeuraError
from meganeura.notebook.actions import ACTIONS, Context
from meganeura.notebook.cells import magic_line
from meganeura.notebook.commands import COMMANDS, help_text, usage
from meganeura.notebook.failures import at_line
from meganeura.notebook.parsing import asks_overview, parse


@magics_class
class MeganeuraMagics(Magics):
    """`%meganeura` and `%%meganeura`."""

    def __init__(self, shell: InteractiveShell, context: Context) -> None:
        super().__init__(shell)
        self.context = context

    @output_can_be_silenced
    @line_cell_magic
    def meganeura(self, line: str, cell: str | None = None) -> Any:
        """Compiles, trains and profiles programs; `%meganeura --help` lists the commands."""
        where = magic_line(self.context.shell, line, "%" if cell is None else "%%")
        if asks_overview(where):
            print(help_text())  # noqa: T201 # help goes where the user's own prints go
            return None
        call = parse(where, body=cell is not None)
        if call.help:
            print(help_text(call.command))  # noqa: T201
            return None
        try:
            result = ACTIONS[call.command.name](self.context, call, cell or "")
        except MeganeuraError as error:
            at_line(error, where)
            raise
        return None if call.values.get("quiet") else result


MeganeuraMagics.meganeura.__doc__ = "\n".join(
    [
        "Compiles, trains and profiles programs on the machine's own GPU.",
        "",
        *(f"    {usage(command)}" for command in COMMANDS),
        "",
        "Each command takes --help.",
    ]
)
