"""The progress display of `penstock run`: rows, rate, windows closed, how far behind; on stderr.

`ProgressDisplay` is fed once per micro-batch by the driver; between batches only its clock moves.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

if TYPE_CHECKING:
    from penstock.runtime.batch.report import BatchReport
    from penstock.state.manifest import Manifest

UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


class ProgressDisplay:
    """A live line for people; nothing where output is quiet."""

    def __init__(self, console: Console, quiet: bool) -> None:
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn(
                "{task.fields[rows]} rows  {task.fields[rate]}  {task.fields[windows]} windows  "
                "{task.fields[kept]}  {task.fields[lag]}"
            ),
            TimeElapsedColumn(),
            # Older versions of rich end a line that was never begun: a console that is quiet swallows it.
            console=Console(quiet=True) if quiet else console,
            disable=quiet,
        )
        self._task = self._progress.add_task("starting", total=None, rows="0", rate="", windows=0, kept="", lag="")
        self._rows = 0
        self._first: tuple[float, int] | None = None  # clock and rows after the first batch: the start is no rate

    def __enter__(self) -> ProgressDisplay:
        self._progress.start()
        return self

    def __exit__(self, kind: object, *exception: object) -> None:
        if kind is None:
            self._progress.stop()
        else:  # the message that follows says more than a bar that stands still
            self._progress.live.transient = True
            self._progress.live.stop()

    def phase(self, name: str) -> None:
        self._progress.update(self._task, description=name)

    def observe(self, report: BatchReport, manifest: Manifest) -> None:
        """A micro-batch ended."""
        self._rows += report.rows
        now, rate = time.perf_counter(), ""
        if self._first is None:
            self._first = (now, self._rows)
        else:
            rate = f"{(self._rows - self._first[1]) / (now - self._first[0]):,.0f} rows/s"
        self._progress.update(
            self._task,
            completed=self._rows if report.behind is None or report.total is None else report.total - report.behind,
            total=report.total,
            description=f"batch {report.batch}",
            rows=f"{self._rows:,}",
            rate=rate,
            windows=manifest.windows,
            kept=f"{bytes_text(report.kept)} kept",
            lag=_lag(report.behind, report.watermarks),
        )


def _lag(behind: int | None, watermarks: Mapping[str, int | None]) -> str:
    """How far behind, where that is known; the watermark of a single stream."""
    text = "" if behind is None else f"{behind:,} rows behind" if behind > 0 else "caught up"
    only = next(iter(watermarks.values())) if len(watermarks) == 1 else None
    shown = "" if only is None else f"watermark {time_text(only)}"
    return ", ".join(part for part in (text, shown) if part)


def time_text(microseconds: int) -> str:
    """A time for people; numbers beyond the calendar stay numbers."""
    try:
        return datetime.fromtimestamp(microseconds / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return f"{microseconds} us"


def bytes_text(count: int) -> str:
    """A number of bytes for people.

    >>> bytes_text(999), bytes_text(1_234_567), bytes_text(20_000_000_000)
    ('999 B', '1.2 MB', '20.0 GB')
    """
    size, unit = float(count), 0
    while size >= 1000 and unit < len(UNITS) - 1:
        size, unit = size / 1000, unit + 1
    return f"{size:.1f} {UNITS[unit]}" if unit else f"{count} B"


def bytes_line(summary: dict[str, Any]) -> str:
    """What went through the state, and what is left of it."""
    state = summary["state"]
    text = {name: bytes_text(state[name]) for name in ("written", "read", "compacted", "bytes", "results")}
    compacted = f"{text['compacted']} by compactions, " if state["compactions"] else ""
    return (
        f"bytes: {text['written']} written by tasks, {compacted}{text['read']} read to close windows, "
        f"{text['bytes']} kept; results {text['results']}"
    )


def account_table(summary: dict[str, Any]) -> Table:
    """The closing account: per query and for the stream."""
    title = "closing account: input = exact + triaged + late + filtered + malformed"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    parts = ("input", "exact", "triaged", "late", "filtered", "malformed")
    for name in ("query", "windows", "rows", *parts):
        table.add_column(name, justify="left" if name == "query" else "right", no_wrap=True)
    for name, query in summary["queries"].items():
        entry = query["accounting"]
        table.add_row(name, f"{query['windows']:,}", f"{query['rows']:,}", *(f"{entry[part]:,}" for part in parts))
    table.add_section()
    several = "input" not in summary["accounting"]
    for name, entry in summary["accounting"].items() if several else [("", summary["accounting"])]:
        label = f"(stream {name})" if several else "(stream)"
        table.add_row(label, "", "", *(f"{entry[part]:,}" for part in parts))
    return table


def malformed_lines(summary: dict[str, Any]) -> list[str]:
    """Why records were malformed, how many, and where the first ones stand."""
    reasons, places = summary["malformed"], summary["malformed_places"]
    if "input" not in summary["accounting"]:  # by stream
        reasons = {f"{s}: {reason}": n for s, found in reasons.items() for reason, n in found.items()}
        places = {f"{s}: {reason}": at for s, found in places.items() for reason, at in found.items()}
    return [
        f"malformed: {reason}: {count:,}" + (f" (first: {'; '.join(places[reason])})" if places.get(reason) else "")
        for reason, count in reasons.items()
    ]
