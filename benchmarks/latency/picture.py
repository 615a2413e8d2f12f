"""The picture of `latency`: one burst, dealt with in several ways: how late, and how far off. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from penstock.app.pictures.traffic import INK, STYLE, frame

COLORS = {
    "triage": "#e4572e",
    "queue": "#98a5b3",
    "capped": "#5c6b7a",
    "drop": "#7c6a9c",
    "drop, weighted": "#b39ddb",
    "summarise": "#f2b134",
    "exact first": "#1b7f9e",
}
LEAST = 1e-3  # percent, of what is drawn as an error


def draw_beside(path: Path, lines: Sequence[dict[str, Any]]) -> None:
    with mpl.rc_context(STYLE):
        figure = Figure(
            figsize=(13, 5.4), dpi=120, facecolor="white", layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.1)
        )
        late, total, groups = figure.subplots(1, 3, width_ratios=(1.6, 1, 1))
        _delays(late, lines)
        _bars(total, lines, [max(LEAST, 100 * line["total_error"]) for line in lines], "bytes of a window: off by", "%")
        _bars(groups, lines, [line["rmse"] for line in lines], "records of a port: RMSE", "records")
        figure.suptitle(
            f"a burst of {lines[0]['work']}, results promised in {lines[0]['promise']:g} s",
            x=0.012,
            ha="left",
            fontsize=14,
            weight="bold",
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path)


def _delays(axes: Any, lines: Sequence[dict[str, Any]]) -> None:
    """The delay of each window, by the end of the window."""
    for line in lines:
        if line["delays"] and line["engine"] != "drop, weighted":
            name = line["engine"]
            axes.plot(line["ends"], line["delays"], marker="o", markersize=4, color=COLORS[name], label=name)
    axes.axhline(lines[0]["promise"], color=INK, linewidth=1.1, linestyle=":")
    axes.annotate("promised", (0, lines[0]["promise"]), xytext=(4, 4), textcoords="offset points")
    axes.set_yscale("log")
    axes.set_xlim(0, None)
    axes.set_title("how long after its end a window's results were there", loc="left", fontsize=10.5)
    frame(axes, "end of the window, seconds of the stream", "seconds")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.legend(frameon=False)


def _bars(axes: Any, lines: Sequence[dict[str, Any]], values: Sequence[float], title: str, unit: str) -> None:
    at, least = np.arange(len(lines)), min(value for value in values if value > LEAST) / 10
    axes.barh(
        at, [max(value, least) for value in values], color=[COLORS[line["engine"]] for line in lines], height=0.68
    )
    axes.set_yticks(at, [line["engine"] for line in lines])
    axes.invert_yaxis()
    axes.set_xscale("log")
    for y, value in zip(at, values, strict=True):
        text = "none" if value <= LEAST else f"{value:,.0f}" if value >= 100 else f"{value:,.2g}"
        axes.text(max(value, least), y, f" {text}", va="center", fontsize=8.5)
    axes.set_xlim(least, 10 * max(values))
    axes.set_title(f"{title}, in the burst", loc="left", fontsize=10.5)
    frame(axes, unit, "")
    axes.tick_params(axis="y", length=0)
