"""Observers of batches: what a run remembers, and what its progress shows."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

from rich.console import Console

from penstock.monitor.progress import ProgressDisplay
from penstock.runtime.batch.report import BatchReport, Peaks, peaks
from penstock.runtime.run import history
from penstock.runtime.run.history import History
from penstock.runtime.run.summary import shown_volume, shown_watermark
from penstock.state.manifest import first_manifest
from penstock.state.protocol import Memory, Offset, Results, Spent, Volume
from support.reports import task_report


def report(batch: int, **changes: object) -> BatchReport:
    offset = Offset(batch + 1).moved("s", 100 * (batch + 1))
    made = BatchReport(
        batch, 100, 1000, offset, {"s": 5_000_000}, 1, float(batch), 0.1, 0.2, Peaks(10, 20, 10, 30, 20),
        Volume(written=7), 42, (task_report("s", 100),),
    )  # fmt: skip
    return replace(made, **changes)  # type: ignore[arg-type]


def test_the_last_batches_are_remembered_without_their_counters() -> None:
    known = History()
    assert (known.peaks, known.forgotten_at) == (None, None)
    for batch in range(history.REMEMBERED + 3):
        known(report(batch), first_manifest())
    assert len(known.reports) == history.REMEMBERED
    assert (known.reports[0].batch, known.forgotten_at) == (3, 2.0)
    assert {one.tasks for one in known.reports} == {()}
    known(report(7, memory=Peaks(1, 99, 1, 1, 1)), first_manifest())
    assert known.peaks == Peaks(10, 99, 10, 30, 20)


def test_the_greatest_memory_of_tasks() -> None:
    tasks = [Spent(1.0, Memory(100, 150)), Spent(1.0, Memory(120, 140))]
    assert peaks(tasks, [Spent(1.0, Memory(500, 900))]) == Peaks(120, 900, 400, 150, 50)
    assert peaks([], []) == Peaks()


def test_progress_adds_batches_up() -> None:
    out = StringIO()
    display = ProgressDisplay(Console(file=out, width=200, force_terminal=True))
    manifest = replace(first_manifest(), results={"q": Results(3, 9), "r": Results(4, 1)})
    with display:
        display.observe(report(0), manifest)
        display.observe(report(1), manifest)
    shown = out.getvalue()
    assert "200 rows" in shown
    assert "7 windows" in shown
    assert "800 rows behind, watermark 1970-01-01 00:00:05" in shown


def test_watermarks_and_volumes_as_users_have_them() -> None:
    assert shown_watermark({}) is None
    assert shown_watermark({"s": None}) is None
    assert shown_watermark({"s": 5}) == 5
    assert shown_watermark({"s": 5, "t": None}) == {"s": 5, "t": None}
    assert shown_volume(Volume(1, 2, 3, 4, 5), 6) == {
        "written": 1, "read": 2, "compacted": 3, "results": 4, "compactions": 5, "kept": 6,
    }  # fmt: skip
