"""The module alone in a bare page of headless Chromium, with a model that lives in the page.

`python tests/notebook/bare_page.py [VIEW.json]` writes the pictures of docs/images.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, Request, sync_playwright

ROOT = Path(__file__).parents[2]
MODULE = ROOT / "meganeura" / "notebook" / "static" / "workbench.js"
FIXTURE = ROOT / "tests" / "fixtures" / "mlp_program.json"
TABS = ("graph", "passes", "kernels", "schedule", "memory", "timings", "loss", "table")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
    "--no-first-run",
]

_PAGE = '<!doctype html><meta charset="utf-8"><body style="margin:0"><div id="app"></div>'
_BOOT = """async ([text, traits, theme, still]) => {
  if (theme) document.body.dataset.jpThemeLight = String(theme === "light");
  document.body.style.background = theme === "dark" ? "#111111" : "#ffffff";
  const module = await import(URL.createObjectURL(new Blob([text], { type: "text/javascript" })));
  const handlers = {};
  const model = (window.model = {
    traits, saves: 0,
    get: (name) => traits[name],
    set(name, value) { traits[name] = value; },
    save_changes() { this.saves += 1; },
    on(event, f) { (handlers[event] ??= []).push(f); },
    off(event, f) { handlers[event] = (handlers[event] ?? []).filter((g) => g !== f); },
    push(name, value) {
      traits[name] = value;
      for (const f of handlers["change:" + name] ?? []) f();
    },
    listeners: () => Object.values(handlers).flat().length,
  });
  const el = document.getElementById("app");
  const start = performance.now();
  const render = () => module.default.render({ model, el });
  window.remove = still ? module.mountStatic(traits.view, el) : render();
  void el.getBoundingClientRect();
  window.painted = performance.now() - start;
}"""


@contextmanager
def chromium() -> Iterator[Browser]:
    """A headless browser that speaks to nobody."""
    with sync_playwright() as playwright:
        found = shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=found, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def page(
    browser: Browser, width: int = 1400, height: int = 760
) -> Iterator[tuple[Page, list[str]]]:
    """A page, and the list of everything that went wrong in it or left it."""
    trouble: list[str] = []

    def asked(request: Request) -> None:
        if not request.url.startswith(("blob:", "data:", "about:")):
            trouble.append(f"request: {request.url}")

    opened = browser.new_page(viewport={"width": width, "height": height})
    opened.on("request", asked)
    opened.on("pageerror", lambda error: trouble.append(f"error: {error}"))
    opened.on("console", lambda m: trouble.append(m.text) if m.type == "error" else None)
    try:
        yield opened, trouble
    finally:
        opened.close()


def boot(
    page: Page, view: Any, *, theme: str | None = "light", still: bool = False, **traits: Any
) -> None:
    """Renders the module into the page; `traits` are the model's, as the kernel would set them."""
    known = {
        "tab": "graph",
        "selection": "",
        "options": {},
        "live": {},
        "status": {"state": "idle"},
    }
    page.set_content(_PAGE)
    page.evaluate(_BOOT, [MODULE.read_text("utf-8"), known | traits | {"view": view}, theme, still])


def push(page: Page, name: str, value: Any) -> None:
    """Sets a trait as the kernel does."""
    page.evaluate("([name, value]) => model.push(name, value)", [name, value])


def fixture() -> Any:
    """The view of the reference drawings."""
    return json.loads(FIXTURE.read_text("utf-8"))


def pictures(view: Any, folder: Path, selection: str) -> None:
    """Every tab, light and dark, wide and narrow."""
    folder.mkdir(parents=True, exist_ok=True)
    with chromium() as browser:
        for width in (1400, 860):
            with page(browser, width) as (opened, trouble):
                for theme in ("light", "dark"):
                    for tab in TABS:
                        boot(opened, view, theme=theme, tab=tab, selection=selection)
                        opened.wait_for_timeout(200)
                        frame = opened.locator(".frame")
                        frame.screenshot(path=folder / f"{tab}-{theme}-{width}.png")
                if trouble:
                    raise SystemExit("\n".join(trouble))


if __name__ == "__main__":
    given = sys.argv[1:] + [str(FIXTURE), str(ROOT / "docs" / "images"), "k0"][len(sys.argv) - 1 :]
    pictures(json.loads(Path(given[0]).read_text("utf-8")), Path(given[1]), given[2])
