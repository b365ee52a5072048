"""The tour is kept clean and ends, run as the demo runs it, with the figures that it prints."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

from scripts import _demo


def test_notebooks_are_kept_without_outputs(root: Path) -> None:
    paths = sorted((root / "notebooks").glob("*.ipynb"))
    assert paths
    for path in paths:
        notebook = nbformat.read(path, as_version=4)
        assert "widgets" not in notebook.metadata, path
        for cell in notebook.cells:
            assert not cell.get("outputs"), path
            assert cell.get("execution_count") is None, path


def test_tour_runs_and_its_page_loads_nothing(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VK_ADD_DRIVER_FILES", raising=False)  # the devices that a user would see
    notebook, figures = _demo.execute(root / "notebooks/01-tour.ipynb")
    assert figures["steps"] == 400
    assert 0 < figures["loss"] < 0.5
    assert figures["accuracy"] > 0.94
    assert len(figures["kernels"]) == 3
    assert all(kernel["median_us"] > 0 for kernel in figures["kernels"])
    assert "widgets" not in notebook.metadata
    page = _demo.page(notebook)
    assert "<figure><svg" in page
    assert "<script src=" not in page
