"""`python -m meganeura`: what each command prints, and the kernel that it installs."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from meganeura.__main__ import main


def test_devices(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["devices"]) == 0
    printed = capsys.readouterr().out
    assert "NumPy" in printed
    assert printed.count("* ") == 1


def test_doctor(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) in (0, 1)
    assert "Python" in capsys.readouterr().out


def test_demo(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--steps", "60", "--device", "numpy"]) == 0
    last = capsys.readouterr().out.strip().splitlines()[-1]
    assert last.startswith("test accuracy ")
    assert float(last.split()[-1].rstrip("%")) > 60


def test_an_error_is_printed_without_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--device", "abacus"]) == 1
    printed = capsys.readouterr()
    assert "abacus" in printed.err
    assert "Traceback" not in printed.err


def test_the_kernel_is_installed_for_this_python(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["kernelspec", "install", "--prefix", str(tmp_path)]) == 0
    folder = tmp_path / "share/jupyter/kernels/meganeura"
    assert f"installed in {folder}" in capsys.readouterr().out
    spec = json.loads((folder / "kernel.json").read_text())
    assert spec["argv"][0] == sys.executable
    assert spec["argv"][-1] == "--ext=meganeura"
    shipped = json.loads(Path("extension/kernelspec/kernel.json").read_text())
    assert {**spec, "argv": spec["argv"][1:]} == {**shipped, "argv": shipped["argv"][1:]}
