"""Runs a notebook, keeps it with its outputs and as one HTML page, and prints its figures.

The notebook is asked for four names: `program`, `run`, `accuracy` and `profile`. The page needs no
network: drawings are SVG, charts carry plotly's script inside the page.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbconvert import HTMLExporter
from nbformat import NotebookNode
from nbformat.sign import NotebookNotary

CELL_SECONDS = 600
MARK = "meganeura-demo:"
PLOTLY = "application/vnd.plotly.v1+json"
LIVE = "application/vnd.jupyter.widget-view+json"
OURS = "application/vnd.meganeura."
COLOURS = re.compile(r"\x1b\[[0-9;]*m")

# Evaluated in the notebook's own kernel after its last cell.
SUMMARY = f"""
import json as _json
print({MARK!r} + _json.dumps({{
    "device": program.target.name,
    "backend": program.target.backend,
    "steps": run.step,
    "loss": float(run.history.losses[-1]),
    "accuracy": float(accuracy),
    "kernels": [
        {{"name": k.name, "label": k.label, "median_us": float(k.median_us)}}
        for k in sorted(profile.kernels, key=lambda k: -k.median_us)[:3]
    ],
}}))
"""


def execute(path: Path) -> tuple[NotebookNode, dict[str, Any]]:
    """The notebook with its outputs, and the figures of its last state.

    A cell that fails ends the program with the cell's traceback.
    """
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell(SUMMARY))
    client = NotebookClient(
        notebook,
        timeout=CELL_SECONDS,
        store_widget_state=False,
        extra_arguments=["--log-level=ERROR"],
        resources={"metadata": {"path": str(path.parent)}},
    )
    try:
        client.execute()
    except CellExecutionError as error:
        raise SystemExit(f"{path}: a cell failed\n{COLOURS.sub('', str(error))}") from None
    last = notebook.cells.pop()
    printed = "".join(output.get("text", "") for output in last.outputs)
    return notebook, json.loads(printed.partition(MARK)[2])


def page(notebook: NotebookNode) -> str:
    """The executed notebook as one HTML page without a single outside address to load."""
    notebook = nbformat.from_dict(json.loads(json.dumps(notebook)))
    for number, output in enumerate(rich_outputs(notebook)):
        output.data = still(output.data, first=number == 0)
    exporter = HTMLExporter(
        require_js_url="",
        jquery_url="",
        mathjax_url="",
        mermaid_js_url="",
        widget_renderer_url="",
    )
    body, _ = exporter.from_notebook_node(notebook)
    return re.sub(r'<script src="">\s*</script>', "", body)


def rich_outputs(notebook: NotebookNode) -> Iterator[NotebookNode]:
    """The outputs that a script draws in JupyterLab: charts first, in the order of the cells."""
    outputs = [
        output
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if any(kind in (PLOTLY, LIVE) or kind.startswith(OURS) for kind in output.get("data", {}))
    ]
    yield from sorted(outputs, key=lambda output: PLOTLY not in output.data)


def still(data: NotebookNode, *, first: bool) -> NotebookNode:
    """The output for a page without a kernel: a chart with script, a drawing with its table."""
    if PLOTLY in data:
        from plotly import io

        html = io.to_html(data[PLOTLY], include_plotlyjs=first, full_html=False, validate=False)
        return NotebookNode({"text/html": html})
    kept = {kind: value for kind, value in data.items() if kind != LIVE}
    if "image/svg+xml" in kept:
        table = kept.get("text/html", "")
        details = f"<details><summary>as a table</summary>{table}</details>" if table else ""
        kept = {"text/html": f"<figure>{kept['image/svg+xml']}</figure>{details}"}
    return NotebookNode(kept)


def report(figures: dict[str, Any], seconds: float, html: Path) -> str:
    """What the demo prints, one fact a line."""
    slowest = [
        f"  {kernel['name']:<6} {kernel['median_us']:>10.1f} µs  {kernel['label']}"
        for kernel in figures["kernels"]
    ]
    return "\n".join(
        [
            f"device         {figures['device']}, {figures['backend']}",
            f"loss           {figures['loss']:.4f} after {figures['steps']} steps",
            f"test accuracy  {figures['accuracy']:.1%}",
            "slowest kernels",
            *slowest,
            f"page           {html.resolve()} (made in {seconds:.0f} s)",
        ]
    )


def main() -> None:
    """Run the notebook named first and write into the folder named second."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("notebook", type=Path)
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    if not options.notebook.is_file():
        sys.exit(f"There is no notebook at {options.notebook}")
    began = time.perf_counter()
    print(f"running {options.notebook}", flush=True)
    notebook, figures = execute(options.notebook)
    options.folder.mkdir(parents=True, exist_ok=True)
    written = options.folder / options.notebook.name
    NotebookNotary().sign(notebook)
    nbformat.write(notebook, written)
    html = written.with_suffix(".html")
    html.write_text(page(notebook), encoding="utf-8")
    print(report(figures, time.perf_counter() - began, html))


if __name__ == "__main__":
    main()
