"""The picture of an experiment: its panels side by side. Needs the extra `plot`; import it only where one is drawn."""

from __future__ import annotations

from math import ceil
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from experiments.kit.report import Panel

INK, GRID = "#1f2a37", "#d8dee6"
COLORS = ("#1b7f9e", "#e4572e", "#f2b134", "#7c6a9c", "#3f8f4f", "#98a5b3", "#b5487a", "#5b4b3a")
STYLE: Any = {
    "font.size": 9.5,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": GRID,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
COLUMNS = 3
FEW_LINES = 5  # whose legend has room inside


def draw(path: Path, title: str, panels: tuple[Panel, ...]) -> None:
    """Write the picture, appearing when it is whole."""
    across = min(COLUMNS, len(panels))
    down = ceil(len(panels) / across)
    with mpl.rc_context(STYLE):
        figure = Figure(
            figsize=(5 * across, 3.9 * down + 0.4),
            dpi=110,
            facecolor="white",
            layout=ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1),
        )
        for number, panel in enumerate(panels):
            _panel(figure.add_subplot(down, across, number + 1), panel)
        figure.suptitle(title, x=0.012, ha="left", fontsize=13, weight="bold")
        path.parent.mkdir(parents=True, exist_ok=True)
        aside = path.with_name(f".{path.name}.tmp")
        figure.savefig(aside, format="png")
        aside.rename(path)


def _panel(axes: Any, panel: Panel) -> None:
    for number, line in enumerate(panel.lines):
        axes.plot(
            line.x,
            line.y,
            color=COLORS[number % len(COLORS)],
            linestyle="none" if line.marks else "--" if line.dashed else "-",
            marker="o" if line.marks or len(line.x) <= 12 else "",
            markersize=3.5,
            linewidth=1.4,
            label=line.label,
        )
    axes.set_title(panel.title, loc="left", fontsize=10)
    axes.set_xlabel(panel.x)
    axes.set_ylabel(panel.y)
    if panel.ticks:
        axes.set_xticks(range(len(panel.ticks)), panel.ticks)
    if panel.log_x:
        axes.set_xscale("log")
    if panel.log_y:
        axes.set_yscale("log")
    if panel.bottom is not None:
        axes.set_ylim(bottom=panel.bottom)
    axes.grid(color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    if len(panel.lines) > FEW_LINES:
        axes.legend(frameon=False, fontsize=8, ncols=2, loc="upper left", bbox_to_anchor=(0, -0.16))
    else:
        axes.legend(frameon=False, fontsize=8)
