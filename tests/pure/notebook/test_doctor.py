"""The doctor's judgement of machines that have each of the usual troubles."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from meganeura.notebook.doctor import (
    Finding,
    Machine,
    closed_devices,
    diagnose,
    extension_version,
    look,
    report,
)

WELL = Machine(
    system="Linux",
    python="/venv/bin/python",
    command="/venv/bin/python",
    version="0.1.0",
    extension="0.1.0",
    drivers=("radeon_icd.x86_64.json",),
    user="ada",
    adapters=(("AMD Radeon", "hardware"),),
)
MESA = "sudo apt-get install -y libvulkan1 mesa-vulkan-drivers"


def test_a_machine_that_is_well() -> None:
    assert report(diagnose(WELL)) == (
        "✓ GPU: AMD Radeon\n"
        "✓ Python: /venv/bin/python, with every package that is needed\n"
        "✓ JupyterLab extension 0.1.0\n"
        "\n"
        "All is well."
    )


@pytest.mark.parametrize(
    ("machine", "finding"),
    [
        (
            replace(WELL, adapters=(), loader=False, drivers=()),
            Finding("bad", "The Vulkan loader is missing", MESA),
        ),
        (
            replace(WELL, adapters=(), drivers=()),
            Finding("bad", "The Vulkan loader finds no driver", MESA),
        ),
        (
            replace(WELL, adapters=()),
            Finding("bad", "No adapter was found; the NumPy device stands in, which is slow"),
        ),
        (
            replace(WELL, adapters=(("llvmpipe", "software"),)),
            Finding("note", "No hardware GPU; llvmpipe does the work on the processor"),
        ),
        (
            replace(WELL, adapters=(), nvidia=True),
            Finding(
                "bad",
                "An NVIDIA GPU is here, but not its Vulkan driver; a container gets it with the "
                "capability 'graphics' only",
                "docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=graphics,compute,utility …",
            ),
        ),
        (
            replace(WELL, adapters=(), failure="libvulkan.so.1: wrong ELF class"),
            Finding(
                "bad",
                "Listing the adapters failed: libvulkan.so.1: wrong ELF class",
                "%meganeura devices",
            ),
        ),
        (
            replace(WELL, closed=("/dev/dri/renderD128",)),
            Finding(
                "bad",
                "No permission to open /dev/dri/renderD128; log in again after this line",
                "sudo usermod -aG render,video ada",
            ),
        ),
        (
            replace(WELL, missing=("wgpu", "plotly")),
            Finding(
                "bad",
                "Python does not find wgpu, plotly (it is /venv/bin/python)",
                "/venv/bin/python -m pip install wgpu plotly",
            ),
        ),
        (
            replace(WELL, version=""),
            Finding(
                "bad",
                "meganeura is imported from a folder, but not installed in this Python",
                "/venv/bin/python -m pip install -e .",
            ),
        ),
        (
            replace(WELL, command="/usr/bin/python3"),
            Finding(
                "note",
                "A terminal starts another Python (/usr/bin/python3): what pip installs there is "
                "not seen here",
                "/venv/bin/python -m pip install …",
            ),
        ),
        (
            replace(WELL, module_built=False),
            Finding("bad", "The live views are not built", "python hatch_build.py"),
        ),
        (
            replace(WELL, extension="0.0.9"),
            Finding(
                "bad",
                "The JupyterLab extension is 0.0.9, the package 0.1.0",
                "/venv/bin/python -m pip install --force-reinstall --no-deps meganeura",
            ),
        ),
        (
            replace(WELL, extension=None),
            Finding(
                "note",
                "The JupyterLab extension is not installed beside this kernel: saved notebooks "
                "show the drawing without its interaction",
                "/venv/bin/python -m pip install meganeura",
            ),
        ),
        (
            replace(WELL, kernelspec=False),
            Finding(
                "note",
                "The kernel 'Meganeura (Python)' is not installed; %load_ext meganeura does the "
                "same",
                "/venv/bin/python -m meganeura kernelspec install",
            ),
        ),
    ],
)
def test_each_trouble_has_its_line(machine: Machine, finding: Finding) -> None:
    assert finding in diagnose(machine)


def test_the_report_shows_the_line_below_the_trouble() -> None:
    text = report(diagnose(replace(WELL, module_built=False)))
    assert "✗ The live views are not built\n    type: python hatch_build.py" in text
    assert text.endswith("\n\nOne to mend.")


def test_looking_survives_a_driver_that_breaks() -> None:
    def broken() -> list[tuple[str, str]]:
        raise OSError("the driver broke\nin two lines")

    machine = look(broken)
    assert machine.failure == "the driver broke"
    assert machine.adapters == ()


def test_device_files_without_permission(tmp_path: Path) -> None:
    (tmp_path / "renderD128").touch(mode=0o600)
    assert closed_devices(tmp_path) == ()
    if os.geteuid() != 0:  # root may open everything
        (tmp_path / "renderD129").touch(mode=0o000)
        assert closed_devices(tmp_path) == (str(tmp_path / "renderD129"),)
    assert closed_devices(tmp_path / "nothing") == ()


def test_the_extension_is_found_by_its_package_file(tmp_path: Path) -> None:
    assert extension_version([tmp_path]) is None
    folder = tmp_path / "labextensions/meganeura"
    folder.mkdir(parents=True)
    (folder / "package.json").write_text('{"version": "1.2.3"}')
    assert extension_version([tmp_path / "other", tmp_path]) == "1.2.3"
