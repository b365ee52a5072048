"""A real JupyterLab in a headless Chromium: start it, run cells, read what is drawn."""

from __future__ import annotations

import contextlib
import secrets
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Locator, Page, Request, sync_playwright

OPTIONS = (
    "--allow-root",
    "--no-browser",
    "--ServerApp.port_retries=0",
    "--LabApp.news_url=None",
    "--LabApp.extension_manager=readonly",
    "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    "--expose-app-in-browser",
)
BROWSER_OPTIONS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
    "--no-first-run",
    "--no-pings",
    "--metrics-recording-only",
)
LOOPBACK = {"127.0.0.1", "localhost", "::1", ""}

STARTED = "() => window.jupyterapp !== undefined"
RESTORED = "() => window.jupyterapp.restored.then(() => null)"
PANEL = "() => window.jupyterapp.shell.currentWidget?.sessionContext !== undefined"
READY = """async () => {
  const panel = window.jupyterapp.shell.currentWidget;
  await panel.context.ready;
  await panel.sessionContext.ready;
  await panel.sessionContext.session.kernel.info;
}"""
IDLE = (
    "() => window.jupyterapp.shell.currentWidget.sessionContext.session?.kernel?.status === 'idle'"
)


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Server:
    """A running `jupyter lab` and its address."""

    process: subprocess.Popen[bytes]
    url: str
    token: str
    folder: Path
    log: Path


def wait_for(server: Server, seconds: float = 60) -> None:
    """Returns when the server answers; fails with its log when it ends first."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if server.process.poll() is not None:
            raise AssertionError(f"jupyter lab ended:\n{server.log.read_text()}")
        try:
            with urllib.request.urlopen(f"{server.url}api?token={server.token}", timeout=5):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise AssertionError(f"jupyter lab did not answer:\n{server.log.read_text()}")


@contextlib.contextmanager
def serve(folder: Path, environment: dict[str, str], base_url: str = "/") -> Iterator[Server]:
    """JupyterLab on a folder of notebooks; ended when the block ends."""
    port, token = free_port(), secrets.token_hex(16)
    settings = Path(environment["JUPYTER_CONFIG_DIR"]) / "lab/user-settings"
    ask_nothing = settings / "@jupyterlab/apputils-extension/notification.jupyterlab-settings"
    ask_nothing.parent.mkdir(parents=True, exist_ok=True)
    ask_nothing.write_text('{"fetchNews": "false", "checkForUpdates": false}')
    log = folder.parent / "jupyter.log"
    command = [
        *(sys.executable, "-m", "jupyterlab", *OPTIONS),
        f"--ServerApp.port={port}",
        "--ServerApp.ip=127.0.0.1",
        f"--ServerApp.root_dir={folder}",
        f"--ServerApp.base_url={base_url}",
        f"--IdentityProvider.token={token}",
    ]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, env=environment, stdout=output, stderr=subprocess.STDOUT, cwd=folder
        )
        server = Server(process, f"http://127.0.0.1:{port}{base_url}", token, folder, log)
        try:
            wait_for(server)
            yield server
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(10)


@dataclass
class Lab:
    """One page of the browser on a server; every request that it makes is kept."""

    page: Page
    server: Server
    requests: list[str] = field(default_factory=list)
    console: list[str] = field(default_factory=list)

    def keep(self, request: Request) -> None:
        """Remembers a request's address."""
        self.requests.append(request.url)

    def outside(self) -> list[str]:
        """Addresses of all requests that left the machine."""
        local = ("data", "blob", "about", "chrome", "devtools")
        parts = [(url, urlsplit(url)) for url in self.requests]
        return [
            url
            for url, part in parts
            if part.scheme not in local and (part.hostname or "") not in LOOPBACK
        ]

    def open(self, notebook: str) -> None:
        """Opens a notebook and waits for its kernel.

        Its metadata must name a kernelspec: otherwise a dialog asks, and nothing goes on.
        """
        address = f"{self.server.url}lab/tree/{notebook}?reset&token={self.server.token}"
        self.page.goto(address)
        self.page.wait_for_function(STARTED, timeout=60_000)
        self.page.evaluate(RESTORED)
        self.page.wait_for_function(PANEL, timeout=60_000)
        self.page.evaluate(READY)

    def command(self, name: str, **arguments: Any) -> Any:
        """Executes one of JupyterLab's commands and waits until it is done."""
        return self.page.evaluate(
            "([name, args]) => window.jupyterapp.commands.execute(name, args).then(() => null)",
            [name, arguments],
        )

    def start(self, name: str, **arguments: Any) -> None:
        """Executes a command without waiting for it."""
        self.page.evaluate(
            "([name, args]) => { window.jupyterapp.commands.execute(name, args); }",
            [name, arguments],
        )

    def run_all(self) -> None:
        """Runs every cell and waits until the kernel is idle."""
        self.command("notebook:run-all-cells")
        self.page.wait_for_function(IDLE, timeout=120_000)

    def run(self, cell: int) -> None:
        """Runs one cell and waits until the kernel is idle."""
        self.select(cell)
        self.command("notebook:run-cell")
        self.page.wait_for_function(IDLE, timeout=120_000)

    def shutdown(self) -> None:
        """Ends the notebook's kernel."""
        self.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")

    def select(self, cell: int) -> None:
        """Makes one cell the active one and scrolls to it."""
        self.page.evaluate(
            "(n) => { const book = window.jupyterapp.shell.currentWidget.content;"
            " book.deselectAll(); book.activeCellIndex = n;"
            " return book.scrollToItem ? book.scrollToItem(n) : null; }",
            cell,
        )

    def cell(self, number: int) -> Locator:
        """The element of a cell."""
        return self.page.locator(f".jp-Notebook-cell[data-windowed-list-index='{number}']").first

    def output(self, number: int) -> Locator:
        """The outputs of a cell."""
        return self.cell(number).locator(".jp-Cell-outputArea")

    def outputs(self) -> list[list[dict[str, Any]]]:
        """The outputs of all cells as the notebook would be saved."""
        found: list[list[dict[str, Any]]] = self.page.evaluate(
            "() => { const model = window.jupyterapp.shell.currentWidget.content.model;"
            " return model.sharedModel.toJSON().cells.map(cell => cell.outputs ?? []); }"
        )
        return found

    def python(self, code: str) -> str:
        """Runs code in the notebook's kernel, outside of every cell; what it prints."""
        printed: str = self.page.evaluate(
            """async (code) => {
              const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
              const future = kernel.requestExecute({code, store_history: false});
              let text = '';
              future.onIOPub = (message) => {
                if (message.header.msg_type === 'stream') text += message.content.text;
                if (message.header.msg_type === 'error') text += message.content.evalue;
              };
              await future.done;
              return text;
            }""",
            code,
        )
        return printed

    def theme(self, name: str) -> None:
        """Changes JupyterLab's theme and waits until it is there."""
        self.command("apputils:change-theme", theme=name)
        light = "false" if "Dark" in name else "true"
        self.page.wait_for_selector(f"body[data-jp-theme-light='{light}']", state="attached")

    def save(self) -> None:
        """Saves the notebook."""
        self.command("docmanager:save")


@contextlib.contextmanager
def browser(path: str) -> Iterator[Browser]:
    """A headless Chromium."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=list(BROWSER_OPTIONS))
        try:
            yield chromium
        finally:
            chromium.close()


@contextlib.contextmanager
def lab(chromium: Browser, server: Server, width: int = 1500, height: int = 1000) -> Iterator[Lab]:
    """A page on the server, its requests kept from the first on."""
    context = chromium.new_context(viewport={"width": width, "height": height})
    page = context.new_page()
    made = Lab(page, server)
    page.on("request", made.keep)
    page.on("websocket", lambda socket: made.requests.append(socket.url))
    page.on("console", lambda message: made.console.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: made.console.append(f"pageerror: {error}"))
    try:
        yield made
    finally:
        context.close()
