"""The notebook's floor: magics, live views, static drawings. Loaded by `%load_ext meganeura`."""

from __future__ import annotations

import os
import sys
import tempfile
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_CONTEXT = "meganeura_context"


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Registers magics, completion, formatters and the drawing of errors with a shell."""
    from meganeura.notebook import completion, failures, formatters
    from meganeura.notebook.actions import Context
    from meganeura.notebook.magics import MeganeuraMagics
    from meganeura.notebook.widgets import Benches

    # Where this is not set, Mesa complains on standard error, which a notebook shows in the cell.
    if sys.platform == "linux":
        os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.gettempdir())
    context = Context(shell, Benches())
    shell.register_magics(MeganeuraMagics(shell, context))
    completion.install(shell, context.names)
    failures.install(shell)
    formatters.install(shell, context.benches)
    setattr(shell, _CONTEXT, context)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Takes everything back that `load_ipython_extension` registered."""
    from meganeura.notebook import completion, failures, formatters

    context: Any = getattr(shell, _CONTEXT, None)
    if context is None:
        return
    for kind in ("line", "cell"):
        shell.magics_manager.magics[kind].pop("meganeura", None)
    shell.magics_manager.registry.pop("MeganeuraMagics", None)
    completion.uninstall(shell)
    failures.uninstall()
    formatters.uninstall(shell, context.benches)
    context.benches.forget()
    delattr(shell, _CONTEXT)
