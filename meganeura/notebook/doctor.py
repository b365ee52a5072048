"""Finds the usual troubles of a notebook's GPU, and says for each the line to type.

`look` gathers facts, `diagnose` judges them: the judgement is a pure function, tested without the
machine that has the trouble.
"""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from ctypes.util import find_library
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

MODULES = ("numpy", "wgpu", "ipywidgets", "anywidget", "plotly")
STATIC = Path(__file__).parent / "static" / "workbench.js"
_ICD_FOLDERS = ("/usr/share/vulkan/icd.d", "/etc/vulkan/icd.d", "/usr/local/share/vulkan/icd.d")


@dataclass(frozen=True)
class Machine:
    """What was found on the machine, as plain facts."""

    system: str
    python: str
    command: str | None  # the `python` that a terminal would start
    missing: tuple[str, ...] = ()
    version: str = ""
    module_built: bool = True
    extension: str | None = None  # the version of the JupyterLab extension, None where it is not
    kernelspec: bool = True
    loader: bool = True  # the Vulkan loader, or Metal
    drivers: tuple[str, ...] = ()  # Vulkan driver files
    nvidia: bool = False  # the NVIDIA kernel module
    closed: tuple[str, ...] = ()  # GPU device files that this user may not open
    user: str = ""
    adapters: tuple[tuple[str, str], ...] = ()  # name, kind
    failure: str | None = None  # what enumerating the adapters raised


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at: how it is, and the line to type where that is bad."""

    state: Literal["good", "note", "bad"]
    what: str
    line: str | None = None


def look(adapters: Callable[[], Iterable[tuple[str, str]]]) -> Machine:
    """The facts of this machine; `adapters` lists name and kind of every adapter found."""
    failure = None
    found: tuple[tuple[str, str], ...] = ()
    try:
        found = tuple(adapters())
    except Exception as error:  # a broken driver may raise anything
        failure = str(error).splitlines()[0] if str(error) else type(error).__name__
    system = platform.system()
    return Machine(
        system=system,
        python=sys.executable,
        command=shutil.which("python") or shutil.which("python3"),
        missing=tuple(name for name in MODULES if importlib.util.find_spec(name) is None),
        version=own_version(),
        module_built=STATIC.is_file(),
        extension=extension_version(data_folders()),
        kernelspec=any(
            (path / "kernels/meganeura/kernel.json").is_file() for path in data_folders()
        ),
        loader=system != "Linux" or find_library("vulkan") is not None,
        drivers=vulkan_drivers() if system == "Linux" else (),
        nvidia=Path("/proc/driver/nvidia/version").exists(),
        closed=closed_devices(Path("/dev/dri")),
        user=os.environ.get("USER") or "$USER",
        adapters=found,
        failure=failure,
    )


def own_version() -> str:
    """The installed version of the project, "" where it is not installed."""
    try:
        return version("meganeura")
    except PackageNotFoundError:
        return ""


def data_folders() -> list[Path]:
    """The folders in which Jupyter looks for extensions and kernels."""
    from jupyter_core.paths import jupyter_path

    return [Path(path) for path in jupyter_path()]


def extension_version(folders: Sequence[Path]) -> str | None:
    """The version of the first JupyterLab extension of ours in the folders."""
    for folder in folders:
        package = folder / "labextensions/meganeura/package.json"
        if package.is_file():
            return str(json.loads(package.read_text(encoding="utf-8")).get("version", ""))
    return None


def vulkan_drivers() -> tuple[str, ...]:
    """The names of the driver files that the Vulkan loader would read."""
    chosen = os.environ.get("VK_DRIVER_FILES") or os.environ.get("VK_ICD_FILENAMES")
    if chosen:
        return tuple(Path(path).name for path in chosen.split(os.pathsep) if Path(path).is_file())
    return tuple(
        sorted(path.name for folder in _ICD_FOLDERS for path in Path(folder).glob("*.json"))
    )


def closed_devices(folder: Path) -> tuple[str, ...]:
    """The GPU's device files in a folder that this process may not open."""
    return tuple(
        str(path)
        for path in sorted(folder.glob("renderD*"))
        if not os.access(path, os.R_OK | os.W_OK)
    )


def diagnose(machine: Machine) -> list[Finding]:
    """What is well and what is not, the GPU first."""
    return [
        *_adapters(machine),
        *_permission(machine),
        *_python(machine),
        *_front_end(machine),
    ]


def _adapters(machine: Machine) -> Iterable[Finding]:
    hardware = [name for name, kind in machine.adapters if kind == "hardware"]
    software = [name for name, kind in machine.adapters if kind == "software"]
    if hardware:
        yield Finding("good", f"GPU: {', '.join(hardware)}")
        return
    if machine.failure is not None:
        yield Finding(
            "bad", f"Listing the adapters failed: {machine.failure}", "%meganeura devices"
        )
    elif software:
        yield Finding("note", f"No hardware GPU; {software[0]} does the work on the processor")
    else:
        yield Finding("bad", "No adapter was found; the NumPy device stands in, which is slow")
    if machine.system == "Linux":
        yield from _vulkan(machine, bool(software))


def _vulkan(machine: Machine, software: bool) -> Iterable[Finding]:
    mesa = "sudo apt-get install -y libvulkan1 mesa-vulkan-drivers"
    if not machine.loader:
        yield Finding("bad", "The Vulkan loader is missing", mesa)
    elif machine.nvidia and not any("nvidia" in name for name in machine.drivers):
        yield Finding(
            "bad",
            "An NVIDIA GPU is here, but not its Vulkan driver; a container gets it with "
            "the capability 'graphics' only",
            "docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=graphics,compute,utility …",
        )
    elif not machine.drivers and not software:
        yield Finding("bad", "The Vulkan loader finds no driver", mesa)


def _permission(machine: Machine) -> Iterable[Finding]:
    if machine.closed:
        yield Finding(
            "bad",
            f"No permission to open {', '.join(machine.closed)}; log in again after this line",
            f"sudo usermod -aG render,video {machine.user}",
        )


def _python(machine: Machine) -> Iterable[Finding]:
    if machine.missing:
        yield Finding(
            "bad",
            f"Python does not find {', '.join(machine.missing)} (it is {machine.python})",
            f"{machine.python} -m pip install {' '.join(machine.missing)}",
        )
    else:
        yield Finding("good", f"Python: {machine.python}, with every package that is needed")
    if not machine.version:
        yield Finding(
            "bad",
            "meganeura is imported from a folder, but not installed in this Python",
            f"{machine.python} -m pip install -e .",
        )
    if machine.command is not None and not _same_folder(machine.command, machine.python):
        yield Finding(
            "note",
            f"A terminal starts another Python ({machine.command}): what pip installs there is not "
            "seen here",
            f"{machine.python} -m pip install …",
        )


def _same_folder(one: str, other: str) -> bool:
    return Path(one).parent.absolute() == Path(other).parent.absolute()


def _front_end(machine: Machine) -> Iterable[Finding]:
    if not machine.module_built:
        yield Finding("bad", "The live views are not built", "python hatch_build.py")
    if machine.extension is None:
        yield Finding(
            "note",
            "The JupyterLab extension is not installed beside this kernel: saved notebooks show "
            "the drawing without its interaction",
            f"{machine.python} -m pip install meganeura",
        )
    elif machine.version and machine.extension != machine.version:
        yield Finding(
            "bad",
            f"The JupyterLab extension is {machine.extension}, the package {machine.version}",
            f"{machine.python} -m pip install --force-reinstall --no-deps meganeura",
        )
    else:
        yield Finding("good", f"JupyterLab extension {machine.extension}")
    if not machine.kernelspec:
        yield Finding(
            "note",
            "The kernel 'Meganeura (Python)' is not installed; %load_ext meganeura does the same",
            f"{machine.python} -m meganeura kernelspec install",
        )


_MARKS = {"good": "✓", "note": "·", "bad": "✗"}


def report(findings: Sequence[Finding]) -> str:
    """The findings, one a line, each with the line to type below it."""
    lines = []
    for finding in findings:
        lines.append(f"{_MARKS[finding.state]} {finding.what}")
        if finding.line is not None:
            lines.append(f"    type: {finding.line}")
    bad = sum(finding.state == "bad" for finding in findings)
    lines += ["", "All is well." if bad == 0 else f"{bad} to mend." if bad > 1 else "One to mend."]
    return "\n".join(lines)
