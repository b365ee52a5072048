"""The kernel "Meganeura (Python)": this Python with the magics loaded before the first cell."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path

from jupyter_client.kernelspec import KernelSpecManager

NAME = "meganeura"


def spec(python: str) -> dict[str, object]:
    """The kernel's description for one Python."""
    return {
        "argv": [python, "-m", "ipykernel_launcher", "-f", "{connection_file}", "--ext=meganeura"],
        "display_name": "Meganeura (Python)",
        "language": "python",
        "metadata": {"debugger": True},
    }


def logos() -> list[Path]:
    """The kernel's pictures, where the package was installed with them."""
    folder = Path(sys.prefix) / "share/jupyter/kernels" / NAME
    return sorted(folder.glob("logo-*"))


def install(*, user: bool = False, prefix: str | None = None) -> Path:
    """Installs the kernel into this environment, or for the user; the folder it lies in."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        (folder / "kernel.json").write_text(json.dumps(spec(sys.executable), indent=2) + "\n")
        for logo in logos():
            shutil.copy(logo, folder / logo.name)
        chosen = None if user else (prefix or sys.prefix)
        installed = KernelSpecManager().install_kernel_spec(
            str(folder), kernel_name=NAME, user=user, prefix=chosen
        )
    return Path(installed)
