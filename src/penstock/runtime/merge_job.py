"""The merge job: one Spark job that merges, finishes and stages all closed windows of all queries."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from penstock.errors import PenstockError, RunError
from penstock.logical.query import Query
from penstock.runtime.memory import memory_report, note_baseline
from penstock.runtime.merge_plan import MergeItem
from penstock.sinks.base import Sink


@dataclass(frozen=True)
class MergeWork:
    """What all merge tasks of a batch share."""

    queries: dict[str, Query]
    sinks: dict[str, Sink]
    segments: str
    references: list[dict[str, Any]]
    batch: int


def run_merge_job(spark: SparkSession, shares: list[list[MergeItem]], work: MergeWork) -> list[dict[str, Any]]:
    """Run each share of the items as a task; returns one report per task."""
    numbers = spark.range(0, len(shares), 1, len(shares))
    rows = numbers.mapInArrow(merge_task(shares, work), "report string").collect()
    reports = [json.loads(row.report) for row in rows]
    for report in reports:
        if "error" in report:
            raise RunError(*report["error"])
    return reports


def merge_task(
    shares: list[list[MergeItem]], work: MergeWork
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that Spark runs on each share's number."""

    def run(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for numbered in numbers:
            for share in numbered.column(0).to_pylist():
                report = merge_share(shares[share], work)
                yield pa.RecordBatch.from_pydict({"report": [json.dumps(report)]})

    return run


def merge_share(share: list[MergeItem], work: MergeWork) -> dict[str, Any]:
    """Merge, finish and stage some items. Errors meant for users travel as data, as in `runtime.fused`."""
    from penstock.runtime.merge import Segments, merge_item

    started, attempt = time.perf_counter(), uuid.uuid4().hex[:8]
    note_baseline()
    opened = Segments(Path(work.segments), work.references)
    staged, rows = [], dict.fromkeys(sorted({item.query for item in share}), 0)
    try:
        for item in share:
            table = merge_item(work.queries[item.query], item, opened)
            if table.num_rows:
                staged.append([item.query, *work.sinks[item.query].stage(table, work.batch, item.part, attempt)])
                rows[item.query] += table.num_rows
    except PenstockError as error:
        return {"error": [error.fact, error.hint]}
    except OSError as error:
        return {"error": [f"merge of batch {work.batch} failed: {error}", "make room or mend the disk, then run again"]}
    return {"staged": staged, "rows": rows, "seconds": time.perf_counter() - started, **memory_report()}
