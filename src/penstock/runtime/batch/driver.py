"""The driver of micro-batches: foreachBatch, from references to manifest.

    references ──► watermark, account ──► close windows (merge jobs) ──► compact ──► windows' accounts
               ──► commit manifest ──► publish

A batch whose manifest exists is only published again; any other is done from the manifest before it. Whatever
a killed attempt left behind is named by no manifest and is collected as garbage.
"""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import xxhash
from pyspark.sql import DataFrame, SparkSession

from penstock.errors import PenstockError, RunError, StateError
from penstock.faults import reach
from penstock.runtime import work
from penstock.runtime.batch.close import Array, Hfta, Streams, live, open_panes
from penstock.runtime.batch.compaction import compact, keeps_of
from penstock.runtime.batch.feed import Feed, Task, done_mark
from penstock.runtime.batch.job import Job
from penstock.runtime.batch.offsets import Offset
from penstock.runtime.batch.replan import Planner
from penstock.sharing.options import NONE, Planning
from penstock.sinks.base import Owner, Sink
from penstock.state import account, garbage, versions
from penstock.state import manifest as manifests
from penstock.state.lease import Lease
from penstock.state.manifest import Manifest, stream_state, volume_since
from penstock.state.segments.opened import Segments
from penstock.state.versions import Version
from penstock.state.windows import write_windows

REMEMBERED = 1_000  # batches of a run that its summary lists: the last ones


@dataclass
class BatchReport:
    """What happened in a batch of this run, for progress and summary."""

    batch: int
    rows: int
    offset: Offset
    watermark: Any  # by stream; of one stream, its own
    closed: int
    finished_at: float
    task_seconds: float
    merge_seconds: float
    memory: dict[str, int]  # of tasks and merge tasks: greatest baseline, peak and peak above baseline
    bytes: dict[str, int]  # `state.manifest.volume_since` the batch before
    tasks: list[Task] = field(default_factory=list)  # their counters; for the listener only, not remembered


@dataclass
class BatchDriver:
    """foreachBatch of one run. `failure` keeps the error as it was raised, before Spark wraps it."""

    spark: SparkSession
    job: Job
    feed: Feed
    owner: Owner
    sinks: dict[str, Sink]
    lease: Lease
    manifest: Manifest
    planner: Planner = field(default_factory=lambda: Planner(Planning(NONE)))
    listener: Callable[[BatchReport, Manifest], None] = lambda report, manifest: None
    failure: PenstockError | None = None
    done: int = 0
    reports: deque[BatchReport] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    forgotten_at: float | None = None  # when the last batch ended that is no more among the reports
    changing: threading.Lock = field(default_factory=threading.Lock)
    peaks: dict[str, int] = field(default_factory=dict)  # greatest figures of memory over all batches of the run
    opened: Segments = field(init=False)  # their indexes, as long as they live

    def __post_init__(self) -> None:
        self.opened = Segments(self.checkpoint / garbage.SEGMENTS)

    def __call__(self, given: DataFrame | None, batch: int) -> None:
        try:
            self._run(given, batch)
        except PenstockError as error:
            self.failure = error
            raise
        except ConnectionError:  # to a JVM that is gone: reported as that where the run is awaited
            raise
        except OSError as error:
            self.failure = RunError(f"batch {batch} failed: {error}", "make room or mend the disk, then run again")
            raise self.failure from error
        finally:
            self.done += 1

    @property
    def checkpoint(self) -> Path:
        return Path(self.job.checkpoint)

    @property
    def version(self) -> Version:
        """The app as it is now."""
        number = versions.newest(self.checkpoint)
        assert number is not None
        return versions.load(self.checkpoint, number)

    def amend(self, version: Version) -> None:
        """Change the app or its plans: the next batch that is decided takes that up. Whoever calls it is `changing`."""
        self.lease.check()
        versions.store(self.checkpoint, version)

    def _replan(self, tasks: list[Task]) -> None:
        """Better plans, unless somebody is changing the app just now, or has since the batch was decided: its counters
        belong to other plans."""
        if self.changing.acquire(blocking=False):
            try:
                version, ran = self.version, self.manifest.offset["plan"]
                if self.manifest.ended or version.number != ran:
                    return
                better = self.planner.next(self.checkpoint, version, tasks)
                if better is not None:
                    self.amend(better)
            finally:
                self.changing.release()

    def _run(self, given: DataFrame | None, batch: int) -> None:
        self.lease.check()
        offset = self.feed.decision(batch, self.manifest)
        digest = xxhash.xxh3_64_hexdigest(json.dumps([self.owner.id, offset]).encode())
        done = manifests.load(self.checkpoint, batch)
        if done is not None:
            if done.digest != digest:
                raise StateError(f"manifest {batch} of {self.checkpoint} belongs to other offsets or another app")
            publish(done, self.sinks)
            self.feed.finished(batch)
            self.manifest = done
            return
        if self.manifest.batch != batch - 1:
            raise StateError(f"manifest {batch - 1} of {self.checkpoint} is missing", "restore it from a copy")
        self.collect_garbage()
        started = time.perf_counter()
        tasks = self.feed.tasks(given, offset)
        reach("batch.collected")
        collected = time.perf_counter()
        manifest, merged, accounts = self._advance(batch, digest, offset, tasks)
        self.lease.check()
        for sink in self.sinks.values():
            sink.check(self.owner)
        for name, records in accounts.items():
            write_windows(self.checkpoint, name, manifest.results[name]["windows"], records)
        manifests.put(self.checkpoint, manifest)
        publish(manifest, self.sinks)
        self.feed.finished(batch)
        self._report(manifest, tasks, merged, collected - started, time.perf_counter() - collected)
        self._replan(tasks)

    def collect_garbage(self) -> None:
        """Delete what nobody needs once Spark has committed the newest batch."""
        batch = self.manifest.batch
        if committed(self.checkpoint, batch):
            garbage.collect(self.checkpoint, batch)

    def _advance(
        self, batch: int, digest: str, offset: Offset, tasks: list[Task]
    ) -> tuple[Manifest, list[Task], dict[str, Array]]:
        """The manifest after this batch, reports of its merge jobs (if windows close), and the windows' accounts."""
        before, version = self.manifest, versions.load(self.checkpoint, offset["plan"])
        streams = moved(before, version, offset, tasks)
        segments = before.segments + [task["segment"] for task in tasks]
        self.opened.keep(segments)
        hfta = Hfta(self.spark, self.job, version, self.sinks, before, offset, streams, segments, self.opened)
        hfta.close()
        floors = open_panes(version, hfta.streams)
        kept = [{"unit": str(batch)} | segment for segment in live(hfta.segments, floors)]
        keeps = keeps_of(version, floors, hfta.streams)
        kept, compactions = compact(self.spark, self.job, version, kept, self.opened, keeps, batch)
        written = [*tasks, *hfta.feeds]
        manifest = Manifest(
            batch=batch,
            digest=digest,
            offset=offset,
            streams=hfta.streams,
            ended=offset["end"],
            segments=kept,
            account=self._account(before, written),
            results=_add_results(before.results, version, hfta),
            work=work.added(before.work, version.plans.values(), written),
            volume=_add_volume(before.volume, written, hfta.reports, compactions),
            staged=[name for report in hfta.reports for name in report["staged"]],
            rows=sum(task["account"]["stream"]["input"] for task in tasks),
        )
        return manifest, hfta.reports + compactions, hfta.accounts

    def _account(self, before: Manifest, tasks: list[Task]) -> dict[str, Any]:
        total = before.account
        for task in tasks:
            stream = task["stream"]
            places = {reason: [self.feed.place(stream, row) for row in rows] for reason, rows in task["places"].items()}
            total = account.book(total, stream, task["account"], places)
        return total

    def _report(self, manifest: Manifest, tasks: list[Task], merged: list[Task], first: float, second: float) -> None:
        windows = sum(r["windows"] for r in manifest.results.values())
        closed = windows - sum(r["windows"] for r in self.manifest.results.values())
        report = BatchReport(
            manifest.batch, manifest.rows, manifest.offset, watermark_of(manifest), closed, time.monotonic(), first,
            second, memory_of(merged, "merge") | memory_of(tasks, "lfta"), volume_since(manifest, self.manifest),
            [_counters(task) for task in (*tasks, *(feed for one in merged for feed in one.get("feeds", ())))],
        )  # fmt: skip
        self.manifest = manifest
        if len(self.reports) == REMEMBERED:
            self.forgotten_at = self.reports[0].finished_at
        self.reports.append(replace(report, tasks=[]))
        self.peaks = {name: max(self.peaks.get(name, 0), most) for name, most in report.memory.items()}
        self.listener(report, manifest)


def moved(before: Manifest, version: Version, offset: Offset, tasks: list[Task]) -> Streams:
    """The streams' state after the tasks of a batch; results that queries read are not moved yet."""
    streams = {name: dict(state) for name, state in before.streams.items()}
    for stream in version.app.streams:
        mine = [task for task in tasks if task["stream"] == stream.name]
        known = stream_state(before, stream.name)
        times = [t["greatest"] for t in mine if t["greatest"] is not None]
        greatest = max([*times, *([] if known["greatest"] is None else [known["greatest"]])], default=None)
        watermark = known["watermark"]
        if stream.delay is not None and greatest is not None:
            watermark = greatest - stream.delay if watermark is None else max(watermark, greatest - stream.delay)
        firsts = [t["first"] for t in mine if t["first"] is not None]
        decided = offset["streams"][stream.name]
        streams[stream.name] = {
            "row": decided["row"],
            "watermark": watermark,
            "greatest": greatest,
            "first": firsts[0] if known["first"] is None and firsts else known["first"],
            "ended": decided["end"],
        }
    return streams


def watermark_of(manifest: Manifest) -> Any:
    """The watermark of the only declared stream; of several, by name; None before the first batch."""
    declared = {name: manifest.streams[name]["watermark"] for name in manifest.offset.get("streams", {})}
    return declared if len(declared) > 1 else next(iter(declared.values()), None)


def memory_of(tasks: list[Task], kind: str) -> dict[str, int]:
    """The greatest memory of these tasks, in bytes."""
    return {
        "baseline_bytes": max((task["baseline_memory"] for task in tasks), default=0),
        f"{kind}_peak_bytes": max((task["peak_memory"] for task in tasks), default=0),
        f"{kind}_above_baseline_bytes": max((t["peak_memory"] - t["baseline_memory"] for t in tasks), default=0),
    }


def _counters(task: Task) -> Task:
    """What a task counted."""
    return {"rows": task["account"]["stream"]["input"]} | {name: task[name] for name in ("stream", "work", "bytes")}


def publish(manifest: Manifest, sinks: Mapping[str, Sink]) -> None:
    """Roll the staged results of a committed batch forward."""
    for query in dict.fromkeys(name for name, _, _ in manifest.staged):
        if query in sinks:  # else it was dropped, and its sink cannot be opened any more
            parts = sorted((staged, final) for name, staged, final in manifest.staged if name == query)
            sinks[query].publish(manifest.batch, parts)


def committed(checkpoint: Path, batch: int) -> bool:
    """Whether Spark has logged the batch as done (or, of a DataFrame's last batch, we have): it is never replayed."""
    return (checkpoint / "spark" / "commits" / str(batch)).exists() or done_mark(checkpoint, batch).exists()


def _add_results(before: dict[str, dict[str, int]], version: Version, hfta: Hfta) -> dict[str, dict[str, int]]:
    results = dict(before)
    for query in version.app.queries:
        old = results.get(query.name, {"windows": 0, "rows": 0})
        rows = sum(report["rows"].get(query.name, 0) for report in hfta.reports)
        windows = hfta.windows.get(query.name, 0)
        results[query.name] = {"windows": old["windows"] + windows, "rows": old["rows"] + rows}
    return results


def _add_volume(before: dict[str, int], tasks: list[Task], merged: list[Task], compacted: list[Task]) -> dict[str, int]:
    return {
        "written": before["written"] + sum(task["segment"]["bytes"] for task in tasks),
        "read": before["read"] + sum(report["read"] for report in merged),
        "compacted": before["compacted"] + sum(report["segment"]["bytes"] for report in compacted),
        "results": before["results"] + sum(report["staged_bytes"] for report in merged),
        "compactions": before["compactions"] + bool(compacted),
    }
