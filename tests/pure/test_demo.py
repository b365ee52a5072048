"""The demo's page needs no kernel and no network, and its report names every figure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest

from scripts import _demo

CHART = {"data": [{"type": "scatter", "y": [3, 2, 1]}], "layout": {}}


def notebook(*bundles: dict[str, Any]) -> nbformat.NotebookNode:
    cells = [
        nbformat.v4.new_code_cell(
            "0", outputs=[nbformat.v4.new_output("display_data", data=bundle)]
        )
        for bundle in bundles
    ]
    made: nbformat.NotebookNode = nbformat.v4.new_notebook(cells=cells)
    return made


def test_page_draws_the_static_form_over_its_table() -> None:
    bundle = {
        "application/vnd.jupyter.widget-view+json": {"model_id": "gone"},
        "application/vnd.meganeura.program+json": {},
        "image/svg+xml": '<svg id="drawing"></svg>',
        "text/html": '<table id="rows"></table>',
        "text/plain": "Program",
    }
    page = _demo.page(notebook(bundle))
    assert (
        '<figure><svg id="drawing"></svg></figure>'
        '<details><summary>as a table</summary><table id="rows"></table></details>' in page
    )
    assert "widget-view" not in page


def test_page_carries_the_chart_script_once_and_loads_nothing() -> None:
    page = _demo.page(notebook({_demo.PLOTLY: CHART}, {_demo.PLOTLY: CHART}))
    assert page.count("Plotly.newPlot(") >= 2
    assert page.count("plotly.js v") == 1
    assert "<script src=" not in page
    assert "<link" not in page


def test_report_names_every_figure() -> None:
    figures = {
        "device": "llvmpipe",
        "backend": "Vulkan",
        "steps": 400,
        "loss": 0.08132,
        "accuracy": 0.9733,
        "kernels": [{"name": "k3", "label": "matmul + relu", "median_us": 41.27}],
    }
    assert _demo.report(figures, 12.4, Path("/page.html")) == (
        "device         llvmpipe, Vulkan\n"
        "loss           0.0813 after 400 steps\n"
        "test accuracy  97.3%\n"
        "slowest kernels\n"
        "  k3           41.3 µs  matmul + relu\n"
        "page           /page.html (made in 12 s)"
    )


def test_a_failing_cell_ends_the_demo_with_its_error(tmp_path: Path) -> None:
    broken = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1 / 0")])
    path = tmp_path / "broken.ipynb"
    nbformat.write(broken, path)
    with pytest.raises(SystemExit, match=r"broken\.ipynb: a cell failed\n[\s\S]*ZeroDivisionError"):
        _demo.execute(path)
