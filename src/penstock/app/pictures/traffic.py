"""The picture of the demo: traffic with its bursts, protocol mix, top talkers. Needs the extra `plot`.

Drawn from result tables alone: what is seen here is what the queries wrote.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pyarrow as pa
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

NAMES = {1: "ICMP", 6: "TCP", 17: "UDP"}
INK, WATER, BURST, GRID = "#1f2a37", "#1b7f9e", "#e4572e", "#d8dee6"
MIX = ("#1b7f9e", "#f2b134", "#7c6a9c", "#98a5b3")
STYLE: Any = {
    "font.size": 10.0,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": GRID,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
TALKERS = 12
MEGABIT = 1e6 / 8


def draw_demo(path: Path, rate: pa.Table, protocols: pa.Table, talkers: pa.Table) -> None:
    """`rate` per second, `protocols` per window, `talkers` of one window with the most bytes first."""
    with mpl.rc_context(STYLE):
        figure = Figure(
            figsize=(13, 8.2), dpi=120, facecolor="white", layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.1)
        )
        grid = figure.add_gridspec(2, 2, height_ratios=(1.05, 1), width_ratios=(1.25, 1))
        _traffic(figure.add_subplot(grid[0, :]), rate)
        _mix(figure.add_subplot(grid[1, 0]), protocols)
        _talkers(figure.add_subplot(grid[1, 1]), talkers)
        records = int(np.sum(rate["records"].to_numpy()))
        title = f"penstock: {records:,} flow records, one scan, a dozen queries"
        figure.suptitle(title, x=0.012, ha="left", fontsize=15, weight="bold")
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path)


def minutes(table: pa.Table) -> np.ndarray:
    """Minutes of stream time since the first window of the table."""
    start = table["window_start"].cast(pa.int64()).to_numpy()
    since: np.ndarray = (start - start.min()) / 60e6
    return since


def bursts(records: np.ndarray) -> list[tuple[int, int]]:
    """Runs [start, stop) of seconds with more than twice the usual records.

    >>> bursts(np.array([5, 5, 30, 31, 5, 5, 20]))
    [(2, 4), (6, 7)]
    """
    high = np.concatenate([[0], (records > 2 * np.median(records)).astype(np.int8), [0]])
    edges = np.flatnonzero(np.diff(high))
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def _traffic(axes: Any, rate: pa.Table) -> None:
    rate = rate.sort_by("window_start")
    at, records = minutes(rate), rate["records"].to_numpy()
    megabits = rate["bytes"].to_numpy() / MEGABIT
    second = 1 / 60
    found = bursts(records)
    axes.fill_between(at, megabits, step="post", color=WATER, alpha=0.25, linewidth=0)
    axes.step(at, megabits, where="post", color=WATER, linewidth=1.2, label="traffic per second")
    for number, (start, stop) in enumerate(found):
        axes.axvspan(
            at[start], at[stop - 1] + second, color=BURST, alpha=0.16, linewidth=0, label=None if number else "burst"
        )
    peak = int(np.argmax(megabits))
    axes.annotate(
        f"peak {megabits[peak]:,.0f} Mbit/s, {records[peak]:,} records a second",
        (at[peak] + second / 2, megabits[peak]),
        xytext=(0, 6),
        textcoords="offset points",
        ha="left" if peak < len(at) / 2 else "right",
        color=BURST,
        fontsize=9.5,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5},
    )
    axes.set_title(f"traffic: {len(found)} bursts over a calm stream   (query rate, windows of 1 s)", loc="left")
    frame(axes, "minutes of stream time", "Mbit/s")
    axes.set_xlim(0, at[-1] + second)
    axes.set_ylim(0, 1.15 * megabits.max())
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), frameon=False, ncols=2, borderaxespad=0.2)


def _mix(axes: Any, protocols: pa.Table) -> None:
    """Bytes of each protocol in every window, as shares of the whole."""
    windows, index = np.unique(protocols["window_start"].cast(pa.int64()).to_numpy(), return_inverse=True)
    numbers, which = np.unique(protocols["proto"].to_numpy(), return_inverse=True)
    share = np.zeros((len(numbers), len(windows)))
    share[which, index] = protocols["bytes"].to_numpy()
    order = np.argsort(-share.sum(axis=1))
    total = 100 * share.sum(axis=1) / share.sum()
    share = 100 * share / share.sum(axis=0)
    at = (windows - windows[0]) / 60e6
    edges = np.append(at, at[-1] + (at[1] - at[0] if len(at) > 1 else 1))
    base = np.zeros(len(edges))
    for color, row in zip(MIX, order, strict=False):
        top = base + np.append(share[row], share[row][-1])
        name = NAMES.get(int(numbers[row]), f"protocol {numbers[row]}")
        axes.fill_between(edges, base, top, step="post", color=color, linewidth=0, label=f"{name} {total[row]:.1f} %")
        base = top
    axes.set_title("protocol mix by bytes   (query protocols, windows of 10 s)", loc="left")
    frame(axes, "minutes of stream time", "% of bytes")
    axes.set_xlim(0, edges[-1])
    axes.set_ylim(0, 100)
    axes.legend(loc="lower left", frameon=True, framealpha=0.9, edgecolor="none")


def _talkers(axes: Any, talkers: pa.Table) -> None:
    top = talkers.slice(0, TALKERS)
    at = np.arange(top.num_rows)
    megabytes = top["bytes"].to_numpy() / 1e6
    axes.barh(at, megabytes, color=WATER, height=0.72)
    axes.set_yticks(at, top["src"].to_pylist(), family="monospace", fontsize=9)
    axes.invert_yaxis()
    for y, value, records in zip(at, megabytes, top["records"].to_pylist(), strict=True):
        axes.text(value, y, f" {records:,} records", va="center", fontsize=8.5, color=INK)
    start = top["window_start"][0].as_py()
    axes.set_title(f"top talkers of the busiest minute, {start:%H:%M}   (query talkers)", loc="left")
    frame(axes, "MB sent", "")
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    axes.set_xlim(0, 1.22 * megabytes.max())


def frame(axes: Any, x: str, y: str) -> None:
    """Names of the axes, and a grid below what is drawn."""
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
