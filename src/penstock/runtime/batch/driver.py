"""The driver of micro-batches: foreachBatch, from references to manifest.

    references ──► watermark, account ──► close windows (merge jobs) ──► compact ──► windows' accounts
               ──► commit manifest ──► publish

A batch whose manifest exists is only published again; any other is done from the manifest before it. Whatever
a killed attempt left behind is named by no manifest and is collected as garbage.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from logging import ERROR
from typing import Any, Generic, TypeVar

import xxhash

from penstock.clock import instant
from penstock.errors import PenstockError, RunError, StateError
from penstock.faults import reach
from penstock.logs import tell
from penstock.runtime import work
from penstock.runtime.batch.close import Array, Hfta, live, open_panes, stage_empty
from penstock.runtime.batch.compaction import Keep, chosen, compact, keeps_of
from penstock.runtime.batch.context import Context
from penstock.runtime.batch.executor import Executor
from penstock.runtime.batch.feed import Feed
from penstock.runtime.batch.held import Held
from penstock.runtime.batch.live import arrivals, delays
from penstock.runtime.batch.live.patience import COMPACTION, GARBAGE, Patience
from penstock.runtime.batch.merge_job import staged_size
from penstock.runtime.batch.report import BatchReport, Late, Observer, peaks
from penstock.runtime.merge.together.readings import Readings
from penstock.runtime.sent import Sent
from penstock.runtime.settings import TaskSettings
from penstock.sinks.base import Sink
from penstock.state import garbage, versions
from penstock.state import manifest as manifests
from penstock.state.account import Account
from penstock.state.data import to_data
from penstock.state.manifest import Manifest
from penstock.state.protocol import (
    CompactionReport,
    MergeReport,
    Offset,
    Results,
    SegmentRef,
    Staged,
    StreamState,
    TaskReport,
    Timings,
    Volume,
)
from penstock.state.segments.opened import Segments
from penstock.state.versions import Version
from penstock.state.windows import write_windows

GARBAGE_EVERY = 16  # batches, where there is no time
Given = TypeVar("Given")  # a batch as the engine's loop hands it over


@dataclass(frozen=True)
class Advanced:
    """A batch that is ready to be committed: its manifest, the records of its windows, and what its tasks told."""

    manifest: Manifest
    windows: Mapping[str, Array]
    tasks: Sequence[TaskReport]
    merged: Sequence[MergeReport]
    compacted: Sequence[CompactionReport]
    merging: float = 0.0  # seconds of closing and compaction

    @property
    def feeds(self) -> list[TaskReport]:
        return [feed for report in self.merged for feed in report.feeds]


@dataclass
class BatchDriver(Generic[Given]):
    """foreachBatch of one run. `failure` keeps the error as it was raised, before Spark wraps it; `opened` are the
    indexes of segments, as long as they live; `tables` are contents that the run may always go back to, `origin` is
    what instants are told by (`penstock.clock`), `sent` what tasks know of batches before, `readings` what this process
    does."""

    executor: Executor[Any]
    settings: TaskSettings
    feed: Feed[Given]
    held: Held
    sinks: dict[str, Sink]
    manifest: Manifest
    observers: Sequence[Observer] = ()
    failure: PenstockError | None = None
    done: int = 0
    tables: frozenset[str] = frozenset()
    origin: int = 0
    patience: Patience = field(default_factory=Patience)
    opened: Segments = field(init=False)
    sent: dict[str, Sent[Any]] = field(default_factory=dict)
    readings: Readings = field(default_factory=Readings)

    def __post_init__(self) -> None:
        self.opened = Segments(self.held.path / garbage.SEGMENTS)

    def __call__(self, given: Given | None, batch: int) -> None:
        try:
            self._run(given, batch)
        except PenstockError as error:
            self._fail(error, batch)
            raise
        except ConnectionError:  # to a JVM that is gone: reported as that where the run is awaited
            raise
        except OSError as error:
            failure = RunError(f"batch {batch} failed: {error}", "make room or mend the disk, then run again")
            self._fail(failure, batch)
            raise failure from error
        finally:
            self.done += 1

    def _fail(self, error: PenstockError, batch: int) -> None:
        self.failure = error
        tell("failure", f"batch {batch} failed: {error.fact}", ERROR, batch=batch, fact=error.fact, hint=error.hint)

    def _run(self, given: Given | None, batch: int) -> None:
        checkpoint, held = self.held.path, self.held
        held.lease.check()
        offset = self.feed.decision(batch, self.manifest)
        digest = xxhash.xxh3_64_hexdigest(json.dumps([held.owner.id, to_data(offset)]).encode())
        done = manifests.load(checkpoint, batch)
        if done is not None:
            if done.digest != digest:
                raise StateError(f"manifest {batch} of {checkpoint} belongs to other offsets or another app")
            publish(done, self.sinks)
            self.feed.finished(batch)
            self.manifest = done
            return
        if self.manifest.batch != batch - 1:
            raise StateError(f"manifest {batch - 1} of {checkpoint} is missing", "restore it from a copy")
        if self.patience.has_time(GARBAGE, offset.slack) or batch % GARBAGE_EVERY == 0:
            with self.patience.timed(GARBAGE):
                self.collect_garbage(offset)
        started = time.perf_counter()
        tasks, offset = self.feed.tasks(given, offset)
        reach("batch.collected")
        collected = time.perf_counter()
        advanced = self._advance(digest, offset, tasks)
        if is_live(offset):
            manifest = replace(advanced.manifest, timings=_timings(advanced, collected - started, started))
            advanced = replace(advanced, manifest=manifest)
        manifest = advanced.manifest
        held.lease.check()
        for sink in self.sinks.values():
            sink.check(held.owner)
        for name, records in advanced.windows.items():
            write_windows(checkpoint, name, manifest.results[name].windows, records)
        manifests.put(checkpoint, manifest)
        publish(manifest, self.sinks)
        late = dict[str, Late]()
        if is_live(offset):
            app = versions.load(checkpoint, offset.plan).app
            late = delays.write(checkpoint, app, manifest, advanced.windows, instant(self.origin))
        self.feed.finished(batch)
        self._report(advanced, collected - started, time.perf_counter() - collected, late)

    def collect_garbage(self, decided: Offset | None = None) -> None:
        """Delete what nobody needs once Spark has committed the newest batch. Versions of tables are only deleted
        where it is known what was decided since: that may have gone back to an old one."""
        needed = None if decided is None else self.tables.union(decided.contents.values())
        self.held.collect_garbage(self.manifest.batch, needed)

    def _advance(self, digest: str, offset: Offset, tasks: Sequence[TaskReport]) -> Advanced:
        before, version = self.manifest, versions.load(self.held.path, offset.plan)
        context = Context(
            self.executor, self.settings, self.held.path, version, before, offset, self.sent, self.readings
        )
        streams = moved(before, version, offset, tasks)
        segments = [*before.segments, *(context.stored(task.segment) for task in tasks)]
        self.opened.keep(segments)
        hfta = Hfta(context, self.sinks, streams, segments, self.opened)
        began = time.perf_counter()
        hfta.close()
        floors = open_panes(version, hfta.streams, hfta.opened)
        kept = [s if s.unit else replace(s, unit=str(context.batch)) for s in live(hfta.segments, floors)]
        kept, compacted = self._compacted(context, kept, keeps_of(version, floors, hfta.streams))
        merging = time.perf_counter() - began
        written = [*tasks, *hfta.feeds]
        results = _add_results(before.results, version, hfta)
        staged = [part for report in hfta.reports for part in report.staged]
        empty = stage_empty(context, hfta.streams, results, self.sinks)
        manifest = Manifest(
            batch=context.batch,
            digest=digest,
            offset=offset,
            streams=hfta.streams,
            ended=offset.end,
            segments=tuple(kept),
            account=self._account(before, written),
            results=results,
            work=work.added(before.work, version.plans.values(), written),
            volume=_add_volume(before.volume, written, hfta.reports, compacted, empty),
            staged=(*staged, *empty),
            rows=sum(task.rows for task in tasks),
        )
        return Advanced(manifest, hfta.accounts, tasks, hfta.reports, compacted, merging)

    def _compacted(
        self, context: Context, kept: list[SegmentRef], keeps: Mapping[str, Keep]
    ) -> tuple[list[SegmentRef], list[CompactionReport]]:
        hurried = not self.patience.has_time(COMPACTION, context.offset.slack)
        if chosen(kept, hurried) == len(kept):
            return kept, []
        with self.patience.timed(COMPACTION):
            return compact(context, kept, self.opened, keeps, hurried)

    def _account(self, before: Manifest, tasks: Iterable[TaskReport]) -> Account:
        total = before.account
        for task in tasks:
            places = {
                reason: tuple(self.feed.place(task.stream, row) for row in rows) for reason, rows in task.places.items()
            }
            total = total.book(task.stream, task.account, places)
        return total

    def _report(self, advanced: Advanced, task_seconds: float, merge_seconds: float, late: Mapping[str, Late]) -> None:
        manifest, before = advanced.manifest, self.manifest
        self.manifest = manifest
        merged = [*(one.spent for one in advanced.merged), *(one.spent for one in advanced.compacted)]
        report = BatchReport(
            batch=manifest.batch,
            rows=manifest.rows,
            total=self.feed.total(),
            offset=manifest.offset,
            watermarks=manifest.watermarks,
            closed=manifest.windows - before.windows,
            finished_at=time.monotonic(),
            task_seconds=task_seconds,
            merge_seconds=merge_seconds,
            memory=peaks([task.spent for task in advanced.tasks], merged),
            volume=manifest.volume - before.volume,
            kept=manifest.kept_bytes,
            tasks=(*advanced.tasks, *advanced.feeds),
            joins=tuple(counts for one in advanced.merged for counts in one.joins),
            closing=tuple(one.work for one in advanced.merged if one.work),
            arrivals=arrivals.of(manifest.offset, instant(self.origin)),
            late=late,
        )
        for observer in self.observers:
            observer(report, manifest)


def is_live(offset: Offset) -> bool:
    """Whether records of some stream arrive by the clock."""
    return any(stream.clock is not None for stream in offset.streams.values())


def _timings(advanced: Advanced, tasks: float, started: float) -> Timings:
    account = [task.account.stream for task in advanced.tasks]
    left = sum(one.triaged for one in account)
    instants = {end for records in advanced.windows.values() for end in records["end"].tolist()}
    now = time.perf_counter()
    return Timings(
        sum(one.input for one in account) - left,
        left,
        len(instants),
        bool(advanced.compacted),
        tasks,
        advanced.merging,
        now - started,
    )


def moved(before: Manifest, version: Version, offset: Offset, tasks: Sequence[TaskReport]) -> dict[str, StreamState]:
    """The streams' state after the tasks of a batch; results that queries read are not moved yet."""
    streams = dict(before.streams)
    for stream in version.app.streams:
        mine = [task for task in tasks if task.stream == stream.name]
        known, decided = before.stream(stream.name), offset.streams[stream.name]
        greatest = _latest(known.greatest, decided.reached, *(task.greatest for task in mine))
        come = _latest(greatest, decided.tick)
        watermark = known.watermark
        if stream.delay is not None and come is not None:
            watermark = _latest(watermark, come - stream.delay)
        firsts = [task.first for task in mine if task.first is not None]
        first = firsts[0] if known.first is None and firsts else known.first
        streams[stream.name] = StreamState(decided.row, watermark, greatest, first, decided.end)
    return streams


def _latest(*times: int | None) -> int | None:
    return max((time for time in times if time is not None), default=None)


def publish(manifest: Manifest, sinks: Mapping[str, Sink]) -> None:
    """Roll the staged results of a committed batch forward."""
    for query in dict.fromkeys(part.query for part in manifest.staged):
        if query in sinks:  # else it was dropped, and its sink cannot be opened any more
            parts = sorted((part.staged, part.final) for part in manifest.staged if part.query == query)
            sinks[query].publish(manifest.batch, parts)


def _add_results(before: Mapping[str, Results], version: Version, hfta: Hfta) -> dict[str, Results]:
    results = dict(before)
    for query in version.app.queries:
        old = results.get(query.name, Results())
        rows = sum(report.rows.get(query.name, 0) for report in hfta.reports)
        results[query.name] = Results(old.windows + hfta.windows.get(query.name, 0), old.rows + rows)
    return results


def _add_volume(
    before: Volume,
    tasks: Iterable[TaskReport],
    merged: Iterable[MergeReport],
    compacted: Sequence[CompactionReport],
    empty: Iterable[Staged],
) -> Volume:
    merged = list(merged)
    return Volume(
        before.written + sum(task.segment.bytes for task in tasks),
        before.read + sum(report.read for report in merged),
        before.compacted + sum(report.segment.bytes for report in compacted),
        before.results
        + sum(report.staged_bytes for report in merged)
        + sum(staged_size(part.staged) for part in empty),
        before.compactions + bool(compacted),
    )
