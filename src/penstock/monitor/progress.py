"""The progress display of `penstock run`: rows, rate, windows closed, how far behind; on stderr.

`ProgressDisplay` is fed once per micro-batch by the driver; between batches only its clock moves.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from penstock.monitor.account import bytes_text, time_text
from penstock.runtime.batch.report import waiting_text

if TYPE_CHECKING:
    from rich.console import Console

    from penstock.runtime.batch.report import BatchReport
    from penstock.state.manifest import Manifest


class ProgressDisplay:
    """A live line for people."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn(
                "{task.fields[rows]} rows  {task.fields[rate]}  {task.fields[windows]} windows  "
                "{task.fields[kept]}  {task.fields[lag]}"
            ),
            TimeElapsedColumn(),
            console=console,
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
            lag=waiting_text(report.arrivals, report.late)
            if report.arrivals
            else _lag(report.behind, report.watermarks),
        )


def _lag(behind: int | None, watermarks: Mapping[str, int | None]) -> str:
    """How far behind, where that is known; the watermark of a single stream."""
    text = "" if behind is None else f"{behind:,} rows behind" if behind > 0 else "caught up"
    only = next(iter(watermarks.values())) if len(watermarks) == 1 else None
    shown = "" if only is None else f"watermark {time_text(only)}"
    return ", ".join(part for part in (text, shown) if part)
