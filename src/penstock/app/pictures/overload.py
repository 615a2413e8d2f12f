"""The picture of a burst: what arrived, how late results came, and what of them was estimated. Needs the extra `plot`.

Drawn from what a run wrote (`app.demos.windows`) and from its trace.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
import pyarrow as pa
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from penstock.app.demos import burst
from penstock.app.demos.windows import reading
from penstock.app.pictures.traffic import BURST, INK, STYLE, WATER, frame

if TYPE_CHECKING:
    from penstock.app.demos.overload import Seen

ESTIMATED, QUEUED = "#f2b134", "#98a5b3"
KINDS = ((WATER, "exact"), (ESTIMATED, "partly estimated"), (BURST, "later than promised"))
EVERY = 0.5  # seconds of a step of what arrives
THOUSAND, MEGA = 1e3, 1e6


def draw_overload(path: Path, seen: Seen, group: dict[str, np.ndarray], name: str) -> None:
    """`group`: one group over time, as `windows.group_windows` has it."""
    with mpl.rc_context(STYLE):
        figure = Figure(
            figsize=(12, 10.5), dpi=120, facecolor="white", layout=ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.12)
        )
        rate, late, parts = figure.subplots(3, 1, height_ratios=(1.1, 0.9, 1), sharex=True)
        _arriving(rate, seen)
        _delays(late, seen)
        _parts(parts, seen, group, name)
        times = burst.arrivals(seen.trace, 1.0).max() * seen.speed / seen.capacity.rate
        title = f"penstock: a burst of {times:.1f} times what can be read, results promised within 2 seconds"
        figure.suptitle(title, x=0.012, ha="left", fontsize=15, weight="bold")
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path)


def _arriving(axes: Any, seen: Seen) -> None:
    """Both rates by the clock: at a lower speed fewer records arrive in a second."""
    scale = seen.speed / THOUSAND
    arrived = burst.arrivals(seen.trace, EVERY) / EVERY * scale
    at = np.arange(len(arrived) + 1) * EVERY
    axes.stairs(arrived, at, fill=True, color=WATER, alpha=0.25, linewidth=0)
    axes.stairs(arrived, at, color=WATER, linewidth=1.3, label="arrives", baseline=None)
    axes.axhline(seen.capacity.rate / THOUSAND, color=BURST, linewidth=1.4, linestyle="--")
    axes.annotate(
        f"can be read: {seen.capacity.rate / THOUSAND:,.0f} thousand a second",
        (0, seen.capacity.rate / THOUSAND),
        xytext=(6, 5),
        textcoords="offset points",
        color=BURST,
    )
    times = seen.trace["ts"].cast(pa.int64()).to_numpy()
    when, reads = reading(seen.summary["batches"], "flows", times)
    spans = np.diff(when)
    used = spans > 0
    axes.stairs(
        (reads[:-1] / np.where(used, spans, 1)) * used * scale,
        when,
        color=INK,
        linewidth=1.2,
        baseline=None,
        label="is read, batch by batch",
    )
    axes.set_title("what arrives, and what of it is read", loc="left")
    frame(axes, "", "thousand records a second")
    axes.set_ylim(0, 1.12 * arrived.max())
    axes.legend(loc="upper right", frameon=False)


def _delays(axes: Any, seen: Seen) -> None:
    """The delay of each window at its end, beside what it would be with all records read."""
    arrived = burst.arrivals(seen.trace, EVERY)
    waits = burst.waiting(arrived, EVERY, seen.capacity.rate / seen.speed) / seen.speed
    at = (np.arange(len(waits)) + 1) * EVERY
    ends, late = np.array([one.end for one in seen.windows]), np.array([one.late for one in seen.windows])
    axes.plot(at, waits, color=QUEUED, linewidth=1.6)
    peak = int(np.argmax(waits))
    axes.annotate(
        f"with all records read: up to {waits[peak]:.0f} s (computed)",
        (at[peak], waits[peak]),
        xytext=(6, 8),
        textcoords="offset points",
        color="#6b7785",
    )
    kinds = np.array([2 if one.overdue else 1 if one.estimated else 0 for one in seen.windows])
    for kind, (color, label) in enumerate(KINDS):
        if (kinds == kind).any():
            axes.bar(ends[kinds == kind], late[kinds == kind], width=1.6, color=color, zorder=2, label=label)
    for x, y in zip(ends, late, strict=True):
        box = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
        axes.annotate(
            f"{y:.1f} s", (x, y), xytext=(0, 5), textcoords="offset points", ha="center", fontsize=9, bbox=box
        )
    promise = 2.0
    axes.axhline(promise, color=INK, linewidth=1.2, linestyle=":")
    axes.annotate("promised", (0, promise), xytext=(6, 4), textcoords="offset points")
    axes.set_yscale("symlog", linthresh=4, linscale=2.2)
    axes.set_yticks([0, 1, 2, 4, 10, 30, 100], ["0", "1", "2", "4", "10", "30", "100"])
    axes.set_ylim(0, 2.5 * max(4.0, waits.max()))
    axes.set_title("how long after the end of each window its results were there", loc="left")
    frame(axes, "", "seconds")
    axes.legend(loc="upper left", bbox_to_anchor=(0, 0.86), frameon=False)


def _parts(axes: Any, seen: Seen, group: dict[str, np.ndarray], name: str) -> None:
    """Exact and estimated part of a group, with two standard errors, beside the truth."""
    width = seen.windows[0].end - seen.windows[0].start
    middle = (np.arange(len(group["truth"])) + 0.5) * width
    exact, estimated, error = (group[part] / MEGA for part in ("exact_bytes", "estimated_bytes", "error_bytes"))
    axes.bar(middle, exact, width=0.55 * width, color=WATER, label="of records that were read")
    axes.bar(middle, estimated, bottom=exact, width=0.55 * width, color=ESTIMATED, label="estimated")
    rough = error > 0
    axes.errorbar(
        middle[rough],
        (exact + estimated)[rough],
        yerr=2 * error[rough],
        fmt="none",
        ecolor=INK,
        capsize=5,
        label="± two standard errors",
    )
    truth = group["truth"] / MEGA
    axes.hlines(truth, middle - 0.36 * width, middle + 0.36 * width, color=BURST, linewidth=2, label="truth", zorder=3)
    for x, told, true in zip(middle, exact + estimated, truth, strict=True):
        off = 100 * (told / true - 1) if true else 0.0
        text = "exact" if abs(off) < 1e-9 else f"off by {off:+.1f} %".replace("-", "−")
        axes.annotate(text, (x, max(told, true)), xytext=(0, 12), textcoords="offset points", ha="center", fontsize=9)
    axes.set_title(f"bytes of {name} in each window   (query services)", loc="left")
    frame(axes, "seconds of the stream", "MB")
    axes.set_xlim(0, len(truth) * width + 2)
    axes.set_ylim(0, 1.22 * truth.max())
    axes.legend(loc="upper left", frameon=False)
