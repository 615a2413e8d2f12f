"""The driver of micro-batches: foreachBatch, from references to manifest.

    collect references ──► watermark, account ──► close windows (merge job) ──► commit manifest ──► publish

A batch whose manifest exists is only published again; any other is done from the manifest before it. Whatever
a killed attempt left behind is named by no manifest and is collected as garbage.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import xxhash
from pyspark.sql import DataFrame, SparkSession

from penstock.errors import PenstockError, RunError, StateError
from penstock.faults import reach
from penstock.logical.query import Query, QuerySet
from penstock.runtime.job import Job
from penstock.runtime.merge_job import MergeWork, run_merge_job
from penstock.runtime.merge_plan import Closing, closing, items, share_out
from penstock.sinks.base import Owner, Sink
from penstock.state import account, garbage
from penstock.state import manifest as manifests
from penstock.state.lease import Lease
from penstock.state.manifest import Manifest


@dataclass
class BatchReport:
    """What happened in a batch of this run, for progress and summary."""

    batch: int
    rows: int
    offset: dict[str, Any]
    watermark: int | None
    closed: int
    finished_at: float
    task_seconds: float
    merge_seconds: float
    memory: dict[str, int]  # of tasks and merge tasks: greatest baseline, peak and peak above baseline


@dataclass
class BatchDriver:
    """foreachBatch of one run. `failure` keeps the error as it was raised, before Spark wraps it."""

    spark: SparkSession
    app: QuerySet
    job: Job
    digest: str
    owner: Owner
    sinks: dict[str, Sink]
    lease: Lease
    manifest: Manifest
    listener: Callable[[BatchReport, Manifest], None] = lambda report, manifest: None
    failure: PenstockError | None = None
    reports: list[BatchReport] = field(default_factory=list)

    def __call__(self, references: DataFrame, batch: int) -> None:
        try:
            self._run(references, batch)
        except PenstockError as error:
            self.failure = error
            raise
        except ConnectionError:  # to a JVM that is gone: reported as that where the run is awaited
            raise
        except OSError as error:
            self.failure = RunError(f"batch {batch} failed: {error}", "make room or mend the disk, then run again")
            raise self.failure from error

    @property
    def checkpoint(self) -> Path:
        return Path(self.job.checkpoint)

    def _run(self, references: DataFrame, batch: int) -> None:
        self.lease.check()
        offset = read_offset(self.checkpoint, batch)
        digest = xxhash.xxh3_64_hexdigest(json.dumps([self.digest, offset]).encode())
        done = manifests.load(self.checkpoint, batch)
        if done is not None:
            if done.digest != digest:
                raise StateError(f"manifest {batch} of {self.checkpoint} belongs to other offsets or another app")
            publish(done, self.sinks)
            self.manifest = done
            return
        if self.manifest.batch != batch - 1:
            raise StateError(f"manifest {batch - 1} of {self.checkpoint} is missing", "restore it from a copy")
        self.collect_garbage()
        started = time.perf_counter()
        tasks = [json.loads(row.reference) for row in references.collect()]
        for task in tasks:
            if "error" in task:
                raise RunError(*task["error"])
        reach("batch.collected")
        collected = time.perf_counter()
        manifest, merged = self._advance(batch, digest, offset, tasks)
        self.lease.check()
        for sink in self.sinks.values():
            sink.check(self.owner)
        manifests.put(self.checkpoint, manifest)
        publish(manifest, self.sinks)
        self._report(manifest, tasks, merged, collected - started, time.perf_counter() - collected)

    def collect_garbage(self) -> None:
        """Delete what nobody needs once Spark has committed the newest batch."""
        batch = self.manifest.batch
        if committed(self.checkpoint, batch):
            garbage.collect(self.checkpoint, batch)

    def _advance(
        self, batch: int, digest: str, offset: dict[str, Any], tasks: list[dict[str, Any]]
    ) -> tuple[Manifest, list[dict[str, Any]]]:
        """The manifest after this batch; runs the merge job if windows close."""
        before = self.manifest
        times = [task["greatest"] for task in tasks if task["greatest"] is not None]
        greatest = max([*times, *([] if before.greatest is None else [before.greatest])], default=None)
        watermark = before.watermark
        delay = self.job.plan.stream.delay
        if delay is not None and greatest is not None:
            watermark = greatest - delay if watermark is None else max(watermark, greatest - delay)
        segments = before.segments + [task["segment"] for task in tasks]
        closed, reports = self._close(batch, watermark, offset["end"], segments)
        results = dict(before.results)
        for query in self.app.queries:
            rows = sum(report["rows"].get(query.name, 0) for report in reports)
            windows = len(closed.windows(query.name)[0])
            old = results[query.name]
            results[query.name] = {"windows": old["windows"] + windows, "rows": old["rows"] + rows}
        manifest = Manifest(
            batch=batch,
            digest=digest,
            offset=offset,
            watermark=watermark,
            greatest=greatest,
            ended=offset["end"],
            plan_version=offset["plan"],
            segments=manifests.live_segments(segments, watermark, offset["end"]),
            account=account.total((task["account"] for task in tasks), before.account),
            results=results,
            work=_add_work(before.work, tasks),
            staged=[name for report in reports for name in report["staged"]],
            rows=sum(task["account"]["stream"]["input"] for task in tasks),
        )
        return manifest, reports

    def _close(
        self, batch: int, watermark: int | None, ended: bool, segments: list[dict[str, Any]]
    ) -> tuple[Closing, list[dict[str, Any]]]:
        """Merge and stage the windows that the new watermark closes."""
        before = self.manifest.watermark
        spans = {q.name: closing(before, watermark, ended, q.window.size) for q in self.app.queries}
        closed = Closing(self.app.queries, spans)
        folder = self.checkpoint / garbage.SEGMENTS
        affected = [s for s in segments if _touches(s, self.app.queries, spans)]
        closed.read(folder, affected)
        tasks = max(1, self.job.parallelism)
        shares = share_out(items(closed, self.job.settings, tasks), tasks)
        if not shares:
            return closed, []
        queries = {query.name: query for query in self.app.queries}
        work = MergeWork(queries, self.sinks, str(folder), affected, batch)
        return closed, run_merge_job(self.spark, shares, work)

    def _report(
        self, manifest: Manifest, tasks: list[dict[str, Any]], merged: list[dict[str, Any]], first: float, second: float
    ) -> None:
        windows = sum(r["windows"] for r in manifest.results.values())
        closed = windows - sum(r["windows"] for r in self.manifest.results.values())
        report = BatchReport(
            manifest.batch, manifest.rows, manifest.offset, manifest.watermark, closed, time.time(), first, second,
            memory_of(merged, "merge") | memory_of(tasks, "lfta"),
        )  # fmt: skip
        self.manifest = manifest
        self.reports.append(report)
        self.listener(report, manifest)


def memory_of(tasks: list[dict[str, Any]], kind: str) -> dict[str, int]:
    """The greatest memory of these tasks, in bytes."""
    return {
        "baseline_bytes": max((task["baseline_memory"] for task in tasks), default=0),
        f"{kind}_peak_bytes": max((task["peak_memory"] for task in tasks), default=0),
        f"{kind}_above_baseline_bytes": max((t["peak_memory"] - t["baseline_memory"] for t in tasks), default=0),
    }


def publish(manifest: Manifest, sinks: dict[str, Sink]) -> None:
    """Roll the staged results of a committed batch forward."""
    for query, staged, final in manifest.staged:
        sinks[query].publish(staged, final)


def committed(checkpoint: Path, batch: int) -> bool:
    """Whether Spark has logged the batch as done: it will never be replayed."""
    return (checkpoint / "spark" / "commits" / str(batch)).exists()


def read_offset(checkpoint: Path, batch: int) -> dict[str, Any]:
    """The end offset of a batch from Spark's write-ahead log: a version, metadata, then one line per source."""
    lines = (checkpoint / "spark" / "offsets" / str(batch)).read_text().splitlines()
    offset: dict[str, Any] = json.loads(lines[2])
    return offset


def _touches(segment: dict[str, Any], queries: tuple[Query, ...], spans: dict[str, tuple[int, int]]) -> bool:
    for query in queries:
        first, beyond = spans[query.name]
        windows = segment["windows"].get(str(query.window.size), [])
        if windows and windows[-1] >= first and windows[0] < beyond:
            return True
    return False


def _add_work(before: dict[str, dict[str, int]], tasks: list[dict[str, Any]]) -> dict[str, dict[str, int]]:
    work = {name: dict(counts) for name, counts in before.items()}
    for task in tasks:
        for name, counts in task["work"].items():
            for what, count in counts.items():
                work[name][what] += count
    return work
