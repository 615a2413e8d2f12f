"""The picture of docs/anomalies.md: entropies, packets and sources of captures side by side. Needs the extra `plot`.

Drawn from what the query `floods` of examples/anomalies.sql wrote, and so from counts alone: no address is in it.

    python -m penstock.app.pictures.anomalies picture.png 'a flood=out-flood/floods' 'a quiet minute=out-quiet/floods'
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from penstock.app.pictures.traffic import BURST, STYLE, WATER, frame

SECOND = 1_000_000
LINES: Mapping[str, dict[str, Any]] = {
    # Wide and pale: a line that is all but the same lies on it, and both are seen.
    "packets": {"color": "#b9c3cf", "linewidth": 6.0},
    "sources": {"color": WATER, "linewidth": 1.8},
    "source_bits": {"color": WATER, "linewidth": 1.8},
    "destination_bits": {"color": BURST, "linewidth": 1.8},
}


def draw_anomalies(path: Path, captures: Mapping[str, pa.Table]) -> None:
    """A column for each capture, by title; axes are the same in all of them, so that heights can be compared."""
    with mpl.rc_context(STYLE):
        figure = Figure(
            figsize=(11, 5.6), dpi=100, facecolor="white", layout=ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.08)
        )
        grid = figure.subplots(2, len(captures), sharey="row", squeeze=False)
        for column, (title, rows) in enumerate(captures.items()):
            upper, lower = grid[:, column]
            seconds = by_second(rows)
            _steps(upper, seconds, {"source_bits": "sources", "destination_bits": "destinations"})
            _steps(lower, seconds, {"packets": "packets", "sources": "distinct sources"})
            upper.set_title(title, loc="left", weight="bold")
            upper.set_ylim(-0.6, None)
            lower.set_yscale("log")
            lower.set_ylim(10, None)
            frame(upper, "", "entropy, bits" if column == 0 else "")
            frame(lower, "seconds of the capture", "a second" if column == 0 else "")
        for axes in grid[:, -1]:
            axes.legend(loc="upper right", frameon=False, ncols=2)
        figure.savefig(path)


def by_second(rows: pa.Table) -> dict[str, np.ndarray]:
    """The columns of `floods`, a place for every second since the first; NaN where there was no packet."""
    start = rows["window_start"].cast(pa.int64()).to_numpy()
    at = (start - start.min()) // SECOND
    found = {}
    for name in ("packets", "sources", "source_bits", "destination_bits"):
        found[name] = np.full(int(at.max()) + 1, np.nan)
        found[name][at] = rows[name].to_numpy()
    return found


def _steps(axes: Any, seconds: Mapping[str, np.ndarray], labels: Mapping[str, str]) -> None:
    """A level for each second, and nothing where nothing was."""
    for name, label in labels.items():
        values = seconds[name]
        at, levels = np.arange(len(values) + 1), np.append(values, values[-1])  # up to the end of the last second
        axes.step(at, levels, where="post", label=label, **LINES[name])


def main(arguments: list[str]) -> None:
    path, *captures = arguments
    named = (text.split("=", 1) for text in captures)
    draw_anomalies(Path(path), {title: pq.read_table(folder) for title, folder in named})


if __name__ == "__main__":
    main(sys.argv[1:])
