"""The live workbench: one model a program, shown wherever the program is shown.

A handler of a message never touches the device: ipykernel 7.3 calls it on another thread in the
middle of a cell. It notes what is wanted, and the shell's own thread does it after the cell.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary, ref

import anywidget
import traitlets

from meganeura.errors import MeganeuraError
from meganeura.notebook.failures import error_place
from meganeura.notebook.step_views import median_views, schedule_view, timings_view
from meganeura.notebook.views import program_view
from meganeura.trace import Event, watch

MODULE = Path(__file__).parent / "static" / "workbench.js"
TOGGLES = ("fuse", "rewrite", "alias", "trusted")
IDLE: dict[str, Any] = {"state": "idle"}

_NOT_BUILT = """
export default { render({ el }) {
  el.textContent = "The live views are not built. Type: python hatch_build.py";
} };
"""


def module_text() -> str:
    """The front end's module, or one that says how to build it."""
    return MODULE.read_text(encoding="utf-8") if MODULE.is_file() else _NOT_BUILT


class Workbench(anywidget.AnyWidget):
    """The model that the drawing in the browser follows; traits as in docs/view-contract.md."""

    _esm = module_text()
    view = traitlets.Dict(allow_none=True, default_value=None).tag(sync=True)
    selection = traitlets.Unicode("").tag(sync=True)
    tab = traitlets.Unicode("graph").tag(sync=True)
    options = traitlets.Dict().tag(sync=True)
    live = traitlets.Dict().tag(sync=True)
    status = traitlets.Dict(IDLE).tag(sync=True)
    height = traitlets.Int(560).tag(sync=True)


def toggles_of(options: Any) -> dict[str, bool]:
    """The switches of the header, as they stand."""
    return {name: bool(getattr(options, name)) for name in TOGGLES}


def error_status(error: Exception) -> dict[str, Any]:
    """A failed recompilation for the widget: the words, the user's line, where the caret stands."""
    if not isinstance(error, MeganeuraError):
        return {"state": "error", "title": f"{type(error).__name__}: {error}", "details": []}
    facts = (("expected", error.expected), ("got", error.got))
    status: dict[str, Any] = {
        "state": "error",
        "title": error.what,
        "details": [f"{label}: {value}" for label, value in facts if value is not None],
        "hint": error.hint or "",
    }
    place = error_place(error)
    if place is not None:
        status["where"] = f"{place.cell}, line {place.line}"
        status["code"] = place.text
        status["caret"] = [place.start, place.end]
    return status


class LiveProgram:
    """A program and its workbench: recompiles in place when a switch is turned."""

    def __init__(self, program: Any) -> None:
        self._program = ref(program)
        self.name = str(program.name)
        self.runs: list[dict[str, Any]] = []
        self._lock = threading.Lock()
        self._wanted: dict[str, bool] | None = None
        self._ours = threading.local()
        self._loop = running_loop()
        self._drawn = ref(program.plan)
        self.widget = Workbench(view=program_view(program), options=toggles_of(program.options))
        self.widget.observe(self._asked, names="options")

    def _asked(self, change: Any) -> None:
        """The browser turned a switch: note it, and let the shell's thread do it."""
        if getattr(self._ours, "writing", False):
            return
        with self._lock:
            first = self._wanted is None
            self._wanted = {key: bool(value) for key, value in change["new"].items()}
        if first and self._loop is not None:
            self._loop.call_soon_threadsafe(self.apply)

    def apply(self) -> None:
        """Does what was asked for since the last time; runs on the shell's thread only."""
        with self._lock:
            wanted, self._wanted = self._wanted, None
        if wanted is None:
            return
        program = self._program()
        if program is None:
            title = f"{self.name} is gone: its variable was deleted. Run its cell again."
            self.widget.status = {"state": "error", "title": title, "details": []}
            return
        now = toggles_of(program.options)
        changes = {key: wanted[key] for key in TOGGLES if wanted.get(key, now[key]) != now[key]}
        if not changes:
            return
        try:
            with self._counting(len(program.passes)):
                program.set_options(**changes)
        except Exception as error:  # shown in the widget: there is no cell to show it in
            self._write(options=toggles_of(program.options), status=error_status(error))
            return
        self.refresh()

    @contextmanager
    def _counting(self, passes: int) -> Iterator[None]:
        """While inside, the widget names the pass that has just ended."""
        done = 0

        def count(event: Event) -> None:
            nonlocal done
            done += 1
            self.widget.status = {
                "state": "compiling",
                "pass": event.stage,
                "index": min(done, passes),
                "count": passes,
            }

        self.widget.status = {"state": "compiling", "pass": "trace", "index": 0, "count": passes}
        with watch(count):
            yield

    def refresh(self) -> None:
        """Draws the program as it is now."""
        program = self._program()
        if program is None:
            return
        self._drawn = ref(program.plan)
        view = program_view(program, self.runs)
        self._write(view=view, options=toggles_of(program.options), status=IDLE)

    def catch_up(self) -> None:
        """Draws the program anew where code has recompiled it behind the workbench's back."""
        program = self._program()
        if program is not None and program.plan is not self._drawn():
            self.refresh()

    def _write(self, **traits: Any) -> None:
        """Sets traits in one message, without taking our own change for the browser's."""
        self._ours.writing = True
        try:
            with self.widget.hold_sync():
                for name, value in traits.items():
                    setattr(self.widget, name, value)
        finally:
            self._ours.writing = False

    def push(self, live: dict[str, Any]) -> None:
        """Shows what a run has reached, in one message."""
        self._write(live=live)

    def times(self, program: Any) -> dict[str, Any]:
        """The measured times as they are now, in the form of the live trait."""
        medians = median_views(program.timings)
        total = schedule_view(program.plan, medians, self.widget.view["kernels"])["total_us"]
        steps = max(len(times) for times in program.timings.values())
        shown = timings_view(self.widget.view["kernels"], medians, steps, total)
        return {"timings": shown, "step_us": shown["step_us"]}

    def finish(self, run: dict[str, Any]) -> None:
        """Keeps a run's curve in the view."""
        self.runs = [*(item for item in self.runs if item["name"] != run["name"]), run]
        self.refresh()


def running_loop() -> asyncio.AbstractEventLoop | None:
    """The loop that runs the shell, None where there is none (a script, a test)."""
    with suppress(RuntimeError):
        return asyncio.get_running_loop()
    return None


class Benches:
    """The live workbenches of a shell's programs, each made when its program is first shown."""

    def __init__(self) -> None:
        self._live: WeakKeyDictionary[Any, LiveProgram] = WeakKeyDictionary()

    def of(self, program: Any) -> LiveProgram:
        """The workbench of a program."""
        found = self._live.get(program)
        if found is None:
            found = self._live[program] = LiveProgram(program)
        return found

    def refresh(self, program: Any) -> None:
        """Draws a program anew wherever it is shown."""
        found = self._live.get(program)
        if found is not None:
            found.refresh()

    def forget(self) -> None:
        """Leaves all drawings to themselves; a program that is shown again gets a new one."""
        self._live.clear()
