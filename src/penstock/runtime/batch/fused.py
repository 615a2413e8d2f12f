"""The fused source: micro-batches cut out of penstock's own sources, and tasks that aggregate and tell only references.

`decided` says how far the next batch goes (after the manifest of the batch before was written). An engine logs that
before anything of the batch runs, with everything that it takes to repeat it exactly (`runtime.batch.offsets`);
`splits` and `split_told` only act on what was decided. Heavy modules are imported by the tasks alone.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from penstock.errors import RunError, why
from penstock.faults import reach
from penstock.logical.query import QuerySet
from penstock.runtime.batch.in_step import batch_limits
from penstock.runtime.batch.job import END, Job, columns, parallelism_now
from penstock.runtime.batch.live.decide import Decided, LiveDecider
from penstock.runtime.batch.live.unread import lost, lost_records, picks_alone, triaged
from penstock.runtime.batch.offsets import decide, epoch_of, in_order, manifest_before, position, ranges_of
from penstock.runtime.batch.outcome import told
from penstock.runtime.expressions.refreshing import Refresher
from penstock.runtime.settings import TaskSettings
from penstock.sharing.plan import SharedPlan
from penstock.sources.base import Position, Source, Split, even_splits
from penstock.sources.live.contract import live
from penstock.sources.live.course import Course, before_each, course_of
from penstock.sources.live.picking import read_picks
from penstock.sources.tail import with_arrivals
from penstock.state import versions
from penstock.state.garbage import SEGMENTS, segment_name
from penstock.state.manifest import Manifest
from penstock.state.protocol import Offset, StreamOffset, TaskReport
from penstock.triage.picks import DROP, Picks, key_of

LEAST_LIVE = 1_024  # records of a live stream: a task for fewer costs more than it saves


@dataclass(frozen=True)
class FusedSplit:
    """One task's share of a batch: some rows of one stream, a source that can read them, and the batch's first row;
    `sampled`: the task leaves a sample. Of a live stream `picks` say which of the rows are read (None: all),
    `greatest` is the greatest time before them, and `course` what is known of times that are not read (None: nobody
    asks)."""

    task: int
    stream: str
    split: Split
    source: Source
    offset: Offset
    first: Position
    sampled: bool
    picks: Picks | None = None
    greatest: int | None = None
    course: Course | None = None

    @property
    def step(self) -> int:
        """The k of the task; where nothing is read, there is none."""
        return 0 if self.picks is None or self.dropped else self.picks.k

    @property
    def dropped(self) -> bool:
        return self.picks is not None and self.picks.k == DROP

    @property
    def picked(self) -> np.ndarray | None:
        """The positions of the records that are read; None: all of them."""
        if self.picks is None or self.dropped:
            return None
        return self.picks.rows(self.split.start, self.split.stop)

    @property
    def unread(self) -> int:
        """Records that nobody looks at."""
        return 0 if self.picks is None else self.picks.unread(self.split.start, self.split.stop)


def _as_known(live: StreamOffset, made: StreamOffset) -> StreamOffset:
    """What was decided about a live stream, with what is known of any before a batch."""
    return replace(live, watermark=made.watermark, greatest=made.greatest, first=made.first)


class FusedReader:
    """Cuts the sources into micro-batches and these into tasks."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.checkpoint = Path(job.checkpoint)
        self.sources = dict(job.sources)
        self._refresher = Refresher(self.checkpoint, job.tables)
        self._live = LiveDecider(job) if any(live(source) for source in job.sources.values()) else None

    def decided(self, begin: Offset) -> Offset:
        """The offset of the next batch; `begin` itself if there is none now."""
        if begin.end:
            return begin
        app, before = self._app(), manifest_before(self.checkpoint, begin)
        rows, ends = self._files(begin, before, app)
        moved = any(rows[name] > position(begin, name) or ends[name] != begin.stream(name).end for name in rows)
        found = None if self._live is None else self._live.decided(begin, before, app)
        # Spark runs a first batch whatever it is told: where nothing has arrived yet, it is one without records.
        if begin.n and not moved and found is None:
            return begin
        if self._live is None:
            return decide(self.checkpoint, begin, before, rows, ends, self._refresher)
        return self._with_live(begin, before, rows, ends, found or self._live.none(begin))

    def _files(self, begin: Offset, before: Manifest | None, app: QuerySet) -> tuple[dict[str, int], dict[str, bool]]:
        """How far the next batch goes in streams that are there as they are, and whether they have ended."""
        sources = {name: source for name, source in self.sources.items() if not live(source)}
        if self.job.until != END:
            for name, source in sources.items():
                sources[name] = with_arrivals(self.checkpoint, name, source, position(begin, name))
            self.sources |= sources
        unread = frozenset(name for name, source in sources.items() if position(begin, name) < source.rows())
        most = self.job.batch_rows if self._live is None else self._live.rows_beside(app)
        limits = batch_limits(app, {} if before is None else before.streams, unread, most)
        rows: dict[str, int] = {}
        ends: dict[str, bool] = {}
        for name, source in sources.items():
            at = position(begin, name)
            rows[name] = source.cut(at, limits[name]) if limits.get(name) else at
            ends[name] = begin.stream(name).end or (self.job.until == END and rows[name] >= source.rows())
        return rows, ends

    def _with_live(
        self, begin: Offset, before: Manifest | None, rows: Mapping[str, int], ends: Mapping[str, bool], found: Decided
    ) -> Offset:
        """The offset with what was decided about live streams."""
        more = {name: one.row for name, one in found.streams.items()}
        over = {name: one.end for name, one in found.streams.items()}
        made = decide(self.checkpoint, begin, before, {**rows, **more}, {**ends, **over}, self._refresher)
        known = {name: _as_known(found.streams[name], made.streams[name]) for name in found.streams}
        return replace(made, streams={**made.streams, **known}, slack=found.slack, costs=found.costs)

    def _app(self) -> QuerySet:
        number = versions.newest(self.checkpoint)
        assert number is not None  # written before the query starts
        return versions.load(self.checkpoint, number).app

    def splits(self, begin: Offset, offset: Offset) -> list[FusedSplit]:
        """The tasks of the batch that goes from one offset to the next."""
        app = versions.load(self.checkpoint, offset.plan).app
        splits: list[FusedSplit] = []
        for name, decided in offset.streams.items():
            source, first = self.sources[name], position(begin, name)
            one, stream = in_order(app, offset, name), app.stream(name)
            for start, stop, k in ranges_of(first, decided):
                picks = None if k == 0 else Picks(k, key_of(self.job.seed, name))
                for split in self._splits(source, start, stop, picks, one):
                    number, sampled = len(splits), self.job.sampling and split.start == first and picks is None
                    if live(source):  # what came before is known without reading it again
                        seen, greatest = split.start, source.reached(split.start)
                        asked = picks is not None and (k == DROP or stream.ahead is not None)
                        course = course_of(source, split, stream.time, stream.ahead) if asked else None
                    else:
                        seen, greatest, course = split.start if stream.ahead is None else first, None, None
                    narrow = source.narrowed(Split(seen, split.stop))
                    splits.append(
                        FusedSplit(number, name, split, narrow, offset, seen, sampled, picks, greatest, course)
                    )
        return splits

    def _splits(
        self, source: Source, start: Position, stop: Position, picks: Picks | None, one: bool
    ) -> Iterable[Split]:
        # An empty batch (the end of an empty source) still has a task: its reference carries the end.
        dropped = picks is not None and picks.k == DROP
        if one or start >= stop or dropped or not source.abilities.random_access:
            return [Split(start, stop)]
        tasks = parallelism_now(self.job)
        least = LEAST_LIVE if live(source) else self.job.task_rows
        tasks = max(1, min(tasks, (stop - start) // least))
        if picks is None:
            return source.splits(start, stop, tasks)
        blocks = even_splits(Position(start >> picks.k), Position(stop >> picks.k), tasks)
        return [Split(Position(one.start << picks.k), Position(one.stop << picks.k)) for one in blocks]

    def tasks(self, begin: Offset, offset: Offset) -> FusedTasks:
        return FusedTasks(self.job.settings, self.checkpoint, tuple(self.splits(begin, offset)))


@dataclass(frozen=True)
class FusedTasks:
    """The tasks of a batch by number, for an engine that has no way of its own to hand them out."""

    settings: TaskSettings
    checkpoint: Path
    splits: tuple[FusedSplit, ...]

    def __len__(self) -> int:
        return len(self.splits)

    def __call__(self, number: int) -> str:
        return split_told(self.settings, self.checkpoint, self.splits[number])


def split_told(settings: TaskSettings, checkpoint: Path, share: FusedSplit) -> str:
    """Run a task; what it tells."""
    return told(share.task, partial(_run, settings, checkpoint, share), partial(_failed, share.task, checkpoint))


def _failed(task: int, checkpoint: Path, error: OSError) -> str:
    place = "" if error.filename else f" ({checkpoint})"  # a write that fails does not say of what
    return f"task {task} failed: {error}{place}"


def _run(settings: TaskSettings, checkpoint: Path, share: FusedSplit) -> TaskReport:
    from penstock.runtime.expressions.folders import use_folder
    from penstock.runtime.task.sampling import path_of
    from penstock.runtime.task.task import run_task

    use_folder(checkpoint)
    offset, split, source = share.offset, share.split, share.source
    plan = versions.load(checkpoint, offset.plan).plans[share.stream]
    whole = plan
    plan = picks_alone(plan) if share.dropped else plan if share.picks is not None else plan.exact
    name = segment_name(offset.batch, f"{share.task:04d}", uuid.uuid4().hex[:8])
    batches = _readable(_records(share, plan, columns(plan), settings.chunk_rows), share.stream)
    epoch = epoch_of(offset, share.stream, split.start, greatest=share.greatest, step=share.step)
    with _reading(share.stream):
        epoch = replace(epoch, before=_before(share))
    before = Split(share.first, split.start)
    times = source.read(before, [plan.stream.time], settings.chunk_rows)
    seen = _readable(times, share.stream) if before.stop > before.start else iter(())
    sample = path_of(checkpoint, share.stream) if share.sampled else None
    report = run_task(plan, settings, epoch, batches, checkpoint / SEGMENTS / name, seen, sample, share.picked)
    if share.dropped:
        return lost(report, whole, share.unread)
    return triaged(report, whole, share.unread) if share.unread else report


def _before(share: FusedSplit) -> np.ndarray | None:
    """What MAX AHEAD counts from, where picks are read."""
    if share.course is None or share.course.ahead is None or share.picked is None:
        return None
    return before_each(share.course, share.source, share.picked)


def _records(share: FusedSplit, plan: SharedPlan, names: list[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
    """The records of a task: all of its split, or picks."""
    picks = share.picks
    if share.course is not None and share.dropped:
        return lost_records(share.course, share.source, plan)
    if share.split.stop <= share.split.start:
        return iter(())
    if picks is None:
        return share.source.read(share.split, names, batch_rows)
    return read_picks(share.source, share.split, names, batch_rows, picks)


@contextmanager
def _reading(stream: str) -> Iterator[None]:
    """Where the system cannot read on, an error that says of what."""
    try:
        yield
    except OSError as error:
        file = f" ({error.filename})" if error.filename else ""
        fact = f"stream '{stream}' cannot be read: {why(error)}{file}"
        raise RunError(fact, "mend its source, then run again: it goes on from the checkpoint") from error


def _readable(batches: Iterator[pa.RecordBatch], stream: str) -> Iterator[pa.RecordBatch]:
    """The same batches, or such an error."""
    while True:
        with _reading(stream):
            reach("source.read")
            batch = next(batches, None)
        if batch is None:
            return
        yield batch
