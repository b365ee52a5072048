"""End to end in a real JupyterLab: a person runs all, looks, clicks, trains, stops, comes back.

The tests of this file share one page and stand in the order of a session. With MEGANEURA_IMAGES set
to a folder, the pictures of the documentation are written into it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from playwright.sync_api import Locator, expect

from tests.notebook.lab import IDLE, Lab, browser, lab, serve

CELLS = (
    "import numpy as np\nimport meganeura as mg\n%load_ext meganeura",
    "digits = mg.data.digits(seed=0)",
    """%%meganeura compile -o mlp
x = mg.input("x", (128, 64))
y = mg.input("y", (128,), mg.i32)
h = mg.relu(mg.nn.linear(x, 64, name="hidden"))
logits = mg.nn.linear(h, 10, name="out")
mg.cross_entropy(logits, y).named("loss"), logits.named("logits")""",
    """%%meganeura train mlp --loss loss --steps 150 --optimizer adamw --lr 3e-3 -o run
mg.data.batches(digits.train, 128, seed=0)""",
    "%meganeura profile mlp --steps 10 -o times",
    """%%meganeura train mlp --loss loss --steps 100000 --lr 3e-3 -o long
mg.data.batches(digits.train, 128, seed=1)""",
    """%%meganeura compile
h = mg.relu(mg.nn.linear(x, 64, name="hidden"))
logits = h @ mg.parameter("w", (65, 10))
logits""",
)
COMPILE, TRAIN, PROFILE, LONG, WRONG = 2, 3, 4, 5, 6
KERNEL = {"name": "python3", "display_name": "Python 3", "language": "python"}


@pytest.fixture(scope="module")
def session(
    jupyter_environment: dict[str, str],
    chromium: str,
    root: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Lab]:
    """A page of JupyterLab with the notebook open and its first five cells run."""
    folder = tmp_path_factory.mktemp("lab") / "notebooks"
    folder.mkdir()
    notebook = new_notebook(
        cells=[new_code_cell(text) for text in CELLS], metadata={"kernelspec": KERNEL}
    )
    nbformat.write(notebook, folder / "session.ipynb")
    # The first driver only: the pictures show what a machine without a GPU shows.
    environment = {k: v for k, v in jupyter_environment.items() if k != "VK_ADD_DRIVER_FILES"}
    use_built_extension(root, Path(jupyter_environment["JUPYTER_DATA_DIR"]))
    with (
        serve(folder, environment) as server,
        browser(chromium) as running,
        lab(running, server, width=1600) as page,
    ):
        page.page.set_default_timeout(30_000)
        page.open("session.ipynb")
        page.command("application:toggle-left-area")
        for number in range(LONG):
            page.run(number)
        yield page


def use_built_extension(root: Path, data: Path) -> None:
    """The extension of the working tree stands before an installed one."""
    built = root / "meganeura/labextension"
    if (built / "package.json").is_file():
        target = data / "labextensions/meganeura"
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists():
            target.symlink_to(built)


def picture(session: Lab, name: str) -> None:
    """Writes a picture of the page, where the run is asked for pictures."""
    folder = os.environ.get("MEGANEURA_IMAGES")
    if folder:
        session.page.wait_for_timeout(400)
        session.page.screenshot(path=Path(folder) / f"{name}.png")


def bench(session: Lab, cell: int) -> Locator:
    """The workbench below a cell."""
    session.select(cell)
    found = session.output(cell).locator(".mg").first
    found.wait_for()
    return found


def test_every_cell_ran(session: Lab) -> None:
    for number, outputs in enumerate(session.outputs()[:LONG]):
        assert not [o for o in outputs if o["output_type"] == "error"], (number, outputs)
        assert not [o for o in outputs if o.get("name") == "stderr"], (number, outputs)


def test_the_widget_shows_the_graph(session: Lab) -> None:
    shown = bench(session, COMPILE)
    kernels = session.python("print(*[k.name for k in mlp.kernels])").split()
    for name in kernels:
        expect(shown.locator(f"[data-kernel='{name}']")).to_be_visible()
    expect(shown.get_by_role("tab", name="Graph")).to_have_attribute("aria-selected", "true")
    picture(session, "lab-graph")


def test_a_click_on_a_kernel_shows_its_shader(session: Lab) -> None:
    shown = bench(session, COMPILE)
    shown.locator("[data-kernel='k0']").click()
    pane = shown.get_by_label("Details of the selection")
    expect(pane).to_contain_text("fn store(")
    expect(pane).to_contain_text("mg.relu(mg.nn.linear(x, 64")
    shown.get_by_role("tab", name="Kernels").click()
    first = session.python("print(mlp.kernels[0].wgsl)").strip().splitlines()[0]
    expect(shown).to_contain_text(first.strip())
    picture(session, "lab-kernels")
    shown.get_by_role("tab", name="Graph").click()


@pytest.mark.parametrize("tab", ["Passes", "Schedule", "Memory", "Timings", "Loss", "Table"])
def test_every_tab_draws(session: Lab, tab: str) -> None:
    shown = bench(session, TRAIN)
    shown.get_by_role("tab", name=tab).click()
    expect(shown.get_by_role("tabpanel").locator("svg, table").first).to_be_visible()
    sentence = shown.locator(".strip p")
    assert re.search(r"\d", sentence.inner_text()), sentence.inner_text()
    picture(session, f"lab-{tab.lower()}")


def test_the_profile_is_a_roofline_and_a_table(session: Lab) -> None:
    session.select(PROFILE)
    output = session.output(PROFILE)
    expect(output.locator(".js-plotly-plot").first).to_be_visible()
    expect(output.locator("table caption")).to_contain_text("mlp, training step")
    session.cell(PROFILE).evaluate("cell => cell.scrollIntoView()")
    picture(session, "lab-profile")


def test_a_switch_recompiles_in_place(session: Lab) -> None:
    before = session.python("print(len(mlp.kernels), mlp.parameters['hidden.w'].sum())").split()
    shown = bench(session, COMPILE)
    shown.get_by_role("switch", name="fuse").click()
    expect(shown.get_by_role("switch", name="fuse")).to_have_attribute("aria-checked", "false")
    expect(shown).not_to_contain_text(f"{before[0]} in ")
    after = session.python("print(len(mlp.kernels), mlp.parameters['hidden.w'].sum())").split()
    assert int(after[0]) > int(before[0])
    assert after[1] == before[1]
    expect(shown).to_contain_text(f"{after[0]} in ")
    picture(session, "lab-unfused")
    shown.get_by_role("switch", name="fuse").click()
    expect(shown).to_contain_text(f"{before[0]} in ")
    assert session.python("print(mlp.options.fuse)").strip() == "True"


def test_loss_and_times_move_while_it_trains(session: Lab) -> None:
    session.select(LONG)
    session.start("notebook:run-cell")
    shown = session.output(LONG).locator(".mg").first
    shown.wait_for(timeout=60_000)
    expect(shown).to_contain_text("of 100,000")
    first = steps(shown)
    session.page.wait_for_function(
        "([cell, first]) => Number((/([\\d,]+) of 100,000/.exec(cell.innerText) ?? ['', '0'])[1]"
        ".replaceAll(',', '')) > first + 20",
        arg=[session.cell(LONG).element_handle(), first],
    )
    assert shown.locator("svg.chart path").count() > 0
    if os.environ.get("MEGANEURA_IMAGES"):
        shown.scroll_into_view_if_needed()
        session.page.wait_for_timeout(5000)
    picture(session, "lab-training")
    shown.get_by_role("tab", name="Timings").click()
    times = shown.get_by_role("tabpanel")
    expect(times).to_contain_text(re.compile(r"µs, [\d,]+ steps?"))
    seen = times.inner_text()
    session.page.wait_for_function(
        "([cell, seen]) => cell.querySelector('[role=tabpanel]').innerText !== seen",
        arg=[session.cell(LONG).element_handle(), seen],
    )


@pytest.mark.xfail(
    strict=False,
    reason="seen to fail in two of five runs on a quiet machine: the interrupt then ends the cell "
    "before its run has a name; the cause is not found yet",
)
def test_an_interrupt_keeps_the_run(session: Lab) -> None:
    session.command("notebook:interrupt-kernel")
    session.page.wait_for_function(IDLE)
    told = session.python("print(long.ending, long.step == len(long.history), long.step > 0)")
    assert told.split() == ["interrupted", "True", "True"]
    expect(session.output(LONG)).to_contain_text("interrupted")


def steps(shown: Locator) -> int:
    found = re.search(r"([\d,]+) of 100,000", shown.inner_text())
    return int(found[1].replace(",", "")) if found else 0


def test_an_error_shows_the_line_and_a_caret(session: Lab) -> None:
    session.select(WRONG)
    session.start("notebook:run-cell")
    expect(session.output(WRONG)).to_contain_text("ShapeError: matmul of")
    expect(session.output(WRONG)).to_contain_text("^^^^")
    expect(session.output(WRONG)).to_contain_text(re.compile(r"In\[\d+\], line 3"))
    expect(session.output(WRONG)).not_to_contain_text("run_cell_magic")
    picture(session, "lab-error")


def test_dark_and_light(session: Lab) -> None:
    shown = bench(session, COMPILE)
    grounds = []
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        session.theme(theme)
        expect(shown).to_have_attribute("data-theme", theme.split()[1].lower())
        picture(session, f"lab-{theme.split()[1].lower()}")
        script = "element => getComputedStyle(element.querySelector('.frame')).backgroundColor"
        grounds.append(shown.evaluate(script))
    assert grounds[0] != grounds[1]


def test_the_drawing_stands_without_its_kernel(session: Lab) -> None:
    session.save()
    saved = nbformat.read(session.server.folder / "session.ipynb", as_version=4)
    assert "widgets" not in saved.metadata
    bundle: dict[str, Any] = saved.cells[COMPILE].outputs[0].data
    assert {"application/vnd.meganeura.program+json", "image/svg+xml", "text/html"} <= set(bundle)
    trained = saved.cells[TRAIN].outputs[0].data["application/vnd.meganeura.program+json"]
    assert [run["status"] for run in trained["runs"]] == ["done"]
    assert trained["header"]["step_us"] is not None
    session.shutdown()
    session.open("session.ipynb")
    shown = bench(session, COMPILE)
    expect(shown).to_contain_text("A saved drawing.")
    expect(shown.locator("[data-kernel='k0']")).to_be_visible()
    shown.locator("[data-kernel='k0']").click()
    expect(shown.get_by_label("Details of the selection")).to_contain_text("fn store(")
    picture(session, "lab-saved")


@pytest.mark.xfail(
    strict=False,
    reason="seen to fail in one of five runs: removeChild of a node that is no child any more; "
    "whether it is ours or JupyterLab's is not found yet",
)
def test_the_page_had_no_error(session: Lab) -> None:
    assert not [line for line in session.console if line.startswith("pageerror")]


def test_notebook_7_draws_it_too(session: Lab) -> None:
    session.shutdown()
    session.page.goto(f"{session.server.url}notebooks/session.ipynb?token={session.server.token}")
    shown = session.page.locator(".jp-OutputArea .mg").first
    expect(shown).to_contain_text("A saved drawing.", timeout=60_000)
    expect(shown.locator("[data-kernel='k0']")).to_be_visible()
    picture(session, "notebook-7")


def test_nothing_left_the_machine(session: Lab) -> None:
    assert len(session.requests) > 20
    assert session.outside() == []
