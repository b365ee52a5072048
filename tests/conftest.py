"""What every test can count on: both software drivers, a scratch Jupyter, the browser.

The folders say what a test needs: `pure` nothing, `device` a driver, `notebook` a kernel or a
browser. Tests of one of the last two folders share a worker each, so that they run one after the
other while the pure ones fill the rest.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
# Debian's chromium ships a second Vulkan driver; the loader takes it beside those that it finds.
SWIFTSHADER = Path("/usr/lib/chromium/vk_swiftshader_icd.json")
BROWSERS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
GROUPS = ("device", "notebook")


def pytest_configure() -> None:
    """Show SwiftShader to the Vulkan loader, before anything imports wgpu."""
    if SWIFTSHADER.is_file():
        os.environ.setdefault("VK_ADD_DRIVER_FILES", str(SWIFTSHADER))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give each folder of slow tests one worker."""
    for item in items:
        folder = item.path.relative_to(ROOT / "tests").parts[0]
        if folder in GROUPS:
            item.add_marker(pytest.mark.xdist_group(folder))


@pytest.fixture(scope="session")
def root() -> Path:
    """The top of the repository."""
    return ROOT


@pytest.fixture(scope="session")
def jupyter_environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment for a Jupyter process: home, configuration and data in a scratch folder."""
    home = tmp_path_factory.mktemp("jupyter")
    folders = {
        "HOME": home,
        "IPYTHONDIR": home / "ipython",
        "JUPYTER_CONFIG_DIR": home / "config",
        "JUPYTER_DATA_DIR": home / "data",
        "JUPYTER_RUNTIME_DIR": home / "runtime",
    }
    return {**os.environ, **{name: str(path) for name, path in folders.items()}}


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of a Chromium to drive; without one the test is skipped, on CI it fails."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        reason = "no Chromium on the PATH: scripts/test installs it where it may"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return found
