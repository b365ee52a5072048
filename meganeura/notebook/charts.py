"""Figures for plotly: the roofline of a profile, and the loss of one run or several.

Colours are those of docs and workbench (light and dark alike); the ground is left to the page.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

from meganeura.notebook.progress import curve, optimizer_text
from meganeura.profile.profile import Profile, quantity, size
from meganeura.train.run import Run

# Strokes that are legible on white and on black; the marker's form says the kind as well.
KINDS: dict[str, tuple[str, str]] = {
    "matmul": ("#2F7BE0", "square"),
    "map": ("#B17825", "circle"),
    "reduce": ("#00957A", "diamond"),
    "gather": ("#B4503F", "triangle-up"),
}
OTHER = ("#7C8590", "x")
INK = "#7C8590"
LINES = ("#2F7BE0", "#B17825", "#00957A", "#B4503F", "#8A6FB0")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash")


def _styled(figure: go.Figure, title: str, x: str, y: str) -> go.Figure:
    grid = {"gridcolor": "rgba(124,133,144,0.25)", "linecolor": INK, "ticks": "outside"}
    figure.update_layout(
        title={"text": title, "x": 0, "font": {"size": 16}},
        template="none",
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"color": INK, "size": 13},
        margin={"l": 80, "r": 24, "t": 48, "b": 56},
        height=420,
        xaxis={"title": {"text": x}, **grid},
        yaxis={"title": {"text": y}, **grid},
        legend={"orientation": "h", "y": -0.22},
    )
    return figure


def roofline(profile: Profile) -> go.Figure:
    """Every kernel by its flops a byte and flops a second, under the adapter's measured ceilings.

    Kernels without arithmetic (copies, gathers) have no place in it and are left out.
    """
    ceilings = profile.roofline
    points = [(kernel, ceilings.point(kernel)) for kernel in profile.kernels]
    drawn = [(kernel, point) for kernel, point in points if point.intensity > 0 < point.reached]
    figure = go.Figure()
    low = min([0.125, *(point.intensity / 2 for _, point in drawn)])
    high = max([64.0, *(point.intensity * 2 for _, point in drawn)])
    ridge = ceilings.ridge
    if ridge is not None:
        xs = sorted({low, ridge, max(high, ridge * 4)})
        allowed = [ceilings.allowed(x) for x in xs]
        figure.add_scatter(
            x=xs,
            y=allowed,
            mode="lines",
            name="ceiling, measured",
            line={"color": INK, "width": 2},
            hovertemplate="at most %{y:.3s}flop/s<extra></extra>",
        )
    for kind in sorted({kernel.kind for kernel, _ in drawn}):
        colour, symbol = KINDS.get(kind, OTHER)
        chosen = [(kernel, point) for kernel, point in drawn if kernel.kind == kind]
        figure.add_scatter(
            x=[point.intensity for _, point in chosen],
            y=[point.reached for _, point in chosen],
            mode="markers+text",
            name=kind,
            text=[kernel.name for kernel, _ in chosen],
            textposition="top center",
            marker={"color": colour, "symbol": symbol, "size": 11},
            customdata=[
                (
                    kernel.label,
                    f"{kernel.median_us:.3g} µs",
                    quantity(kernel.flops, "flop"),
                    size(kernel.bytes),
                    "" if kernel.share is None else f"{kernel.share:.0%} of its ceiling",
                )
                for kernel, _ in chosen
            ],
            hovertemplate="%{text}: %{customdata[0]}<br>%{customdata[1]}, %{customdata[2]}, "
            "%{customdata[3]}<br>%{customdata[4]}<extra></extra>",
        )
    title = f"{profile.name}, {profile.kind}: roofline on {profile.target.name}"
    _styled(figure, title, "flops a byte", "flops a second")
    figure.update_xaxes(type="log")
    figure.update_yaxes(type="log", tickformat=".2s")
    return figure


def loss(*runs: Run, log: bool = True) -> go.Figure:
    """The loss of every step, one line a run; at most 2,000 points each."""
    figure = go.Figure()
    for index, run in enumerate(runs):
        points = curve(run.history)
        figure.add_scatter(
            x=[step for step, _ in points],
            y=[value for _, value in points],
            mode="lines",
            name=f"{run.program.name}, {optimizer_text(run.optimizer)}",
            line={
                "color": LINES[index % len(LINES)],
                "dash": DASHES[index % len(DASHES)],
                "width": 1.5,
            },
        )
    name = runs[0].loss if runs else "loss"
    _styled(figure, _loss_title(runs), "step", name)
    if log and all(value > 0 for run in runs for _, value in curve(run.history)):
        figure.update_yaxes(type="log")
    figure.update_layout(showlegend=len(runs) > 1)
    return figure


def _loss_title(runs: Sequence[Run]) -> str:
    if len(runs) != 1:
        return f"{len(runs)} runs"
    losses: Any = runs[0].history.losses
    if not len(losses) or not math.isfinite(float(losses[-1])):
        return f"{runs[0].program.name}: {runs[0].loss}"
    return f"{runs[0].program.name}: {runs[0].loss} {losses[0]:.3g} to {losses[-1]:.3g}"
