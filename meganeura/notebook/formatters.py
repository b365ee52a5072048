"""How the notebook shows the compiler's objects: static bundles, and the live workbench beside one.

The classes know nothing of the notebook: their formatters are registered when the extension is
loaded, by name, so that loading it imports no driver.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from meganeura.notebook import views
from meganeura.notebook.widgets import Benches
from meganeura.profile.profile import quantity, size

Bundle = dict[str, Any]
WIDGET_MIME = "application/vnd.jupyter.widget-view+json"


@dataclass(frozen=True)
class Sheet:
    """A table with a title and a sentence below it, as text and as accessible HTML.

    `numbers` are the columns that stand to the right.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    sentence: str = ""
    numbers: frozenset[int] = frozenset()

    def __repr__(self) -> str:
        table = [self.columns, *self.rows]
        widths = [max(len(row[i]) for row in table) for i in range(len(self.columns))]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in table
        ]
        return "\n".join([self.title, "", *lines, *(["", self.sentence] if self.sentence else [])])

    def html(self) -> str:
        """The table with a caption; every text is escaped."""
        head = "".join(self._cell("th", i, name, "col") for i, name in enumerate(self.columns))
        body = "".join(
            "<tr>"
            + "".join(self._cell("td" if i else "th", i, cell, "row") for i, cell in enumerate(row))
            + "</tr>"
            for row in self.rows
        )
        last = f"<p>{escape(self.sentence)}</p>" if self.sentence else ""
        return (
            f"<table><caption>{escape(self.title)}</caption><thead><tr>{head}</tr></thead>"
            f"<tbody>{body}</tbody></table>{last}"
        )

    def _cell(self, tag: str, column: int, text: str, scope: str) -> str:
        side = "right" if column in self.numbers else "left"
        scoped = f' scope="{scope}"' if tag == "th" else ""
        return f'<{tag}{scoped} style="text-align:{side}">{escape(text)}</{tag}>'

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> Bundle:
        return {"text/plain": repr(self), "text/html": self.html()}


@dataclass(frozen=True)
class Lines:
    """Plain text that is shown as it stands, in the code's type."""

    text: str

    def __repr__(self) -> str:
        return self.text


def program_bundle(program: Any, benches: Benches | None = None) -> Bundle:
    """A program: its drawing, its table, its text; with the live view where there are benches."""
    live = benches.of(program) if benches is not None else None
    if live is not None:
        live.catch_up()
    view = live.widget.view if live is not None else views.program_view(program)
    bundle: Bundle = dict(views.bundle(view))
    if live is not None:
        bundle[WIDGET_MIME] = {
            "version_major": 2,
            "version_minor": 1,
            "model_id": live.widget.model_id,
        }
    return bundle


def kernel_bundle(kernel: Any) -> Bundle:
    """A kernel: what it is in a line, and its WGSL."""
    head = kernel_line(kernel)
    return {
        "text/plain": f"{head}\n\n{kernel.wgsl}",
        "text/html": f"<p><b>{escape(head)}</b></p><pre><code>{escape(kernel.wgsl)}</code></pre>",
    }


def kernel_line(kernel: Any) -> str:
    """A kernel in one line: name, what it computes, its grid."""
    grid = "×".join(str(extent) for extent in kernel.grid)
    return f"{kernel.name}: {kernel.label}, {grid} workgroups"


def tensor_bundle(tensor: Any) -> Bundle:
    """A tensor: what is known without running anything."""
    node = tensor.node
    rows = [
        ("shape", shape_text(node.shape)),
        ("dtype", str(node.dtype)),
        ("made by", node.op.name),
    ]
    if node.origin.name:
        rows.insert(0, ("name", node.origin.name))
    where = node.origin.where()
    if where is not None:
        rows.append(("where", where))
    sheet = Sheet("Tensor", ("fact", "value"), tuple(rows), "Its values: tensor.numpy()")
    return {"text/plain": repr(tensor), "text/html": sheet.html()}


def shape_text(shape: Sequence[int]) -> str:
    """A shape as 128 × 64, or "scalar"."""
    return " × ".join(str(extent) for extent in shape) or "scalar"


def run_bundle(run: Any) -> Bundle:
    """A run: its figures in a table."""
    losses = run.history.losses
    rows = [("ending", run.ending), ("steps", f"{run.steps_done:,}")]
    if len(losses):
        rows.append((run.loss, f"{losses[0]:.4g} to {losses[-1]:.4g}"))
    rows += [
        (name, f"{series.values[-1]:.4g}") for name, series in run.metrics.items() if len(series)
    ]
    rows += [("speed", f"{run.steps_per_second:,.0f} steps/s"), ("time", f"{run.seconds:.2f} s")]
    sheet = Sheet(f"Run of {run.program.name}", ("fact", "value"), tuple(rows))
    return {"text/plain": repr(run), "text/html": sheet.html()}


def profile_bundle(profile: Any) -> Bundle:
    """A profile: every kernel in a table, the slowest first."""
    total = profile.busy_us or 1.0
    rows = tuple(
        (
            kernel.name,
            kernel.label,
            kernel.phase,
            figures(kernel.median_us),
            f"{figures(kernel.p5_us)} to {figures(kernel.p95_us)}",
            f"{kernel.median_us / total:.0%}",
            quantity(kernel.flops, ""),
            size(kernel.bytes),
            "" if kernel.share is None else f"{kernel.share:.0%} ({kernel.bound})",
            kernel.tile,
            "; ".join(kernel.lines[:1]),
        )
        for kernel in profile.slowest(len(profile.kernels))
    )
    sheet = Sheet(
        f"{profile.name}, {profile.kind}: {len(rows)} kernels on {profile.target.name}",
        _PROFILE_COLUMNS,
        rows,
        f"A step takes {figures(profile.step_us)} µs (median of {profile.steps}, {profile.clock}); "
        f"the kernels alone {figures(profile.busy_us)} µs.",
        frozenset({3, 4, 5, 6, 7}),
    )
    return {"text/plain": repr(sheet), "text/html": sheet.html()}


_PROFILE_COLUMNS = (
    *("kernel", "what", "phase", "median µs", "5 to 95 %", "share", "flops", "bytes", "of peak"),
    *("tile", "from"),
)


def figures(number: float) -> str:
    """Three figures, and all before the point: 0.123, 12.3, 1,234."""
    return f"{number:,.0f}" if number >= 1000 else f"{number:.3g}"


def chart_bundle(figure: Any) -> Bundle:
    """A plotly figure as data only: JupyterLab draws it without loading anything."""
    drawing: Bundle = figure.to_plotly_json()
    kept = json.loads(figure.to_json())
    title = drawing["layout"].get("title", {}).get("text", "a chart")
    return {"application/vnd.plotly.v1+json": kept, "text/plain": str(title)}


def table(benches: Benches) -> dict[tuple[str, str], Callable[[Any], Bundle]]:
    """The formatter of each class, by module and name."""
    return {
        ("meganeura.runtime.program", "Program"): lambda program: program_bundle(program, benches),
        ("meganeura.train.run", "Run"): run_bundle,
        ("meganeura.profile.profile", "Profile"): profile_bundle,
        ("meganeura.codegen.kernel", "Kernel"): kernel_bundle,
        ("meganeura.tensor.tensor", "Tensor"): tensor_bundle,
    }


def install(shell: InteractiveShell, benches: Benches) -> None:
    """Registers the formatters with a shell."""
    formatter: Any = mimebundles(shell)
    for (module, name), show in table(benches).items():
        formatter.for_type_by_name(module, name, show)


def uninstall(shell: InteractiveShell, benches: Benches) -> None:
    """Takes the formatters out of a shell; those not yet used are only known by name."""
    formatter: Any = mimebundles(shell)
    for key in table(benches):
        if formatter.deferred_printers.pop(key, None) is None:
            for cls in [*formatter.type_printers]:
                if (cls.__module__, cls.__qualname__) == key:
                    formatter.type_printers.pop(cls)


def mimebundles(shell: InteractiveShell) -> Any:
    """The formatter that makes whole bundles."""
    display: Any = shell.display_formatter
    return display.mimebundle_formatter
