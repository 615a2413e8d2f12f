"""The merge job: one Spark job that merges, finishes and stages all closed windows of a level of queries.

Where another query reads the results, the task aggregates them for it right away (`runtime.task.task`), into a
segment of its own: results never leave the task as rows.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import SparkSession

from penstock.errors import PenstockError, RunError
from penstock.logical.query import Query
from penstock.runtime.epoch import Epoch
from penstock.runtime.machine import memory_report, note_baseline
from penstock.runtime.merge.items import MergeItem
from penstock.runtime.settings import TaskSettings
from penstock.sharing.plan import SharedPlan
from penstock.sinks.base import Sink
from penstock.state.garbage import segment_name

if TYPE_CHECKING:
    from penstock.runtime.merge.windows import Segments


@dataclass(frozen=True)
class Closed:
    """A query whose windows close: where its results go (None: only to its readers), what finishing needs, the
    plan and epoch of the queries that read it, and the first window whose account is kept."""

    query: Query
    sink: Sink | None
    time: str
    landmark: int | None
    readers: SharedPlan | None
    epoch: Epoch
    least: int


@dataclass(frozen=True)
class MergeWork:
    """What all merge tasks of a batch share."""

    queries: Mapping[str, Closed]
    segments: str
    references: list[dict[str, Any]]
    settings: TaskSettings
    batch: int


def run_job(spark: SparkSession, shares: int, run: Callable[[int], dict[str, Any]]) -> list[dict[str, Any]]:
    """Run numbered tasks that give one report each. Errors meant for users travel as data (`runtime.batch.fused`)."""

    def tasks(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for numbered in numbers:
            for number in numbered.column(0).to_pylist():
                report = _reported(run, number)
                yield pa.RecordBatch.from_pydict({"report": [json.dumps(report)]})

    rows = spark.range(0, shares, 1, shares).mapInArrow(tasks, "report string").collect()
    reports = [json.loads(row.report) for row in rows]
    for report in reports:
        if "error" in report:
            raise RunError(*report["error"])
    return reports


def _reported(run: Callable[[int], dict[str, Any]], number: int) -> dict[str, Any]:
    started = time.perf_counter()
    note_baseline()
    try:
        report = run(number)
    except PenstockError as error:
        return {"error": [error.fact, error.hint]}
    except OSError as error:
        return {"error": [f"a merge task failed: {error}", "make room or mend the disk, then run again"]}
    return report | {"seconds": time.perf_counter() - started, **memory_report()}


def merge_share(shares: list[list[MergeItem]], work: MergeWork, number: int) -> dict[str, Any]:
    """Merge, finish and stage some items."""
    from penstock.runtime.merge.windows import Segments

    with Segments(Path(work.segments), work.references) as opened:
        return _merge_items(shares[number], work, number, opened)


def _merge_items(items: list[MergeItem], work: MergeWork, number: int, opened: Segments) -> dict[str, Any]:
    from penstock.runtime.merge.windows import Setting, merge_item

    attempt = uuid.uuid4().hex[:8]
    staged, rows, size = [], dict.fromkeys(sorted({item.query for item in items}), 0), 0
    windows: list[list[Any]] = []
    feeds: dict[str, Any] = {}
    for item in items:
        closed = work.queries[item.query]
        merged = merge_item(closed.query, item, opened, Setting(closed.time, closed.landmark))
        table = merged.table
        if closed.sink is not None:
            windows.append([item.query, merged.tally.report(closed.least)])
        if not table.num_rows:
            continue
        rows[item.query] += table.num_rows
        if closed.sink is not None:
            staged.append([item.query, *closed.sink.stage(table, work.batch, item.part, attempt)])
            size += _size(staged[-1][1])
        if closed.readers is not None:
            _feed(feeds, closed, work, f"m{number:03d}-{attempt}", table)
    return {
        "staged": staged,
        "staged_bytes": size,
        "rows": rows,
        "windows": windows,
        "read": opened.bytes_read,
        "feeds": _ended(feeds),
    }


def _size(staged: str) -> int:
    """Bytes of a staged part; a sink that keeps nothing names no file."""
    return Path(staged).stat().st_size if staged else 0


def _feed(feeds: dict[str, Any], closed: Closed, work: MergeWork, task: str, table: pa.Table) -> None:
    """Give result rows to the queries that read them."""
    from penstock.runtime.task.task import Task
    from penstock.state.segments.write import SegmentWriter

    name = closed.query.name
    if name not in feeds:
        assert closed.readers is not None
        path = Path(work.segments) / segment_name(work.batch, task, f"{len(feeds):02d}")
        feeds[name] = Task(closed.readers, work.settings, closed.epoch, SegmentWriter(path, work.settings.slots))
    if "ts" not in table.schema.names:
        table = table.append_column("ts", table.column("window_end"))
    for batch in table.to_batches(max_chunksize=work.settings.chunk_rows):
        feeds[name].take(batch)


def _ended(feeds: dict[str, Any]) -> list[dict[str, Any]]:
    from penstock.runtime.task.task import task_report

    reports = []
    for task in feeds.values():
        task.end()
        reports.append(task_report(task))
    return reports
