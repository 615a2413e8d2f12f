"""The fused source: a Spark streaming data source whose tasks aggregate and yield only references.

The offset is Spark's write-ahead log, so everything a batch needs to be repeated exactly stands in it
(`runtime.batch.offsets`). `latestOffset` decides (in the driver's source process, after the manifest of the batch
before was written), `partitions` and `read` only act on what was decided. Heavy modules are imported by the tasks
alone.
"""

from __future__ import annotations

import signal
import uuid
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow

from penstock.errors import RunError, why
from penstock.faults import reach
from penstock.runtime.batch.job import END, Job, columns, decode
from penstock.runtime.batch.offsets import decide, epoch_of, in_order, manifest_before, position
from penstock.runtime.batch.outcome import told
from penstock.sources.base import Position, Source, Split
from penstock.sources.tail import with_arrivals
from penstock.state import versions
from penstock.state.data import from_data, to_data
from penstock.state.garbage import SEGMENTS, segment_name
from penstock.state.protocol import Offset, TaskReport

Logged = dict[str, Any]  # an offset as Spark logs it


class FusedSplit(InputPartition):
    """One task's share of a batch: some rows of one stream, a source that can read them, and the batch's first row."""

    def __init__(self, task: int, stream: str, split: Split, source: Source, offset: Offset, first: Position) -> None:
        super().__init__(task)
        self.task, self.stream, self.split, self.source, self.offset = task, stream, split, source, offset
        self.first = first
        self.sampled = False


class FusedReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Cuts the sources into micro-batches and runs their tasks."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.checkpoint = Path(job.checkpoint)
        self.sources = dict(job.sources)

    def prepareForTriggerAvailableNow(self) -> None:
        """What there is when the run starts is what it reads: nothing to fix beforehand."""

    def initialOffset(self) -> Logged:
        return to_data(Offset())

    def latestOffset(self, start: Logged, limit: object) -> Logged:
        begin = _offset(start)
        if begin.end:
            return start
        before = manifest_before(self.checkpoint, begin)
        rows, ends = {}, {}
        for name in self.sources:
            at = position(begin, name)
            if self.job.until != END:
                self.sources[name] = with_arrivals(self.checkpoint, name, self.sources[name], at)
            source = self.sources[name]
            rows[name] = source.cut(at, self.job.batch_rows) if at < source.rows() else at
            ends[name] = begin.stream(name).end or (self.job.until == END and rows[name] >= source.rows())
        moved = (rows[name] > position(begin, name) or ends[name] != begin.stream(name).end for name in rows)
        return to_data(decide(self.checkpoint, begin, before, rows, ends)) if any(moved) else start

    def partitions(self, start: Logged, end: Logged) -> list[FusedSplit]:
        begin, offset = _offset(start), _offset(end)
        app = versions.load(self.checkpoint, offset.plan).app
        splits: list[FusedSplit] = []
        for name in offset.streams:
            first = position(begin, name)
            for split in self._splits(name, first, position(offset, name), in_order(app, offset, name)):
                seen = split.start if app.stream(name).ahead is None else first
                source = self.sources[name].narrowed(Split(seen, split.stop))
                splits.append(FusedSplit(len(splits), name, split, source, offset, seen))
                splits[-1].sampled = self.job.sampling and split.start == first
        return splits

    def _splits(self, stream: str, start: Position, stop: Position, one: bool) -> list[Split]:
        # An empty batch (the end of an empty source) still has a task: its reference carries the end.
        source = self.sources[stream]
        if one or start >= stop or not source.abilities.random_access:
            return [Split(start, stop)]
        return source.splits(start, stop, self.job.parallelism)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, FusedSplit)
        text = told(partition.task, partial(self._run, partition), partial(self._failed, partition.task))
        yield pa.RecordBatch.from_pydict({"reference": [text]})

    def _failed(self, task: int, error: OSError) -> str:
        place = "" if error.filename else f" ({self.checkpoint})"  # a write that fails does not say of what
        return f"task {task} failed: {error}{place}"

    def _run(self, partition: FusedSplit) -> TaskReport:
        from penstock.runtime.task.sampling import path_of
        from penstock.runtime.task.task import run_task

        settings, offset, split = self.job.settings, partition.offset, partition.split
        plan = versions.load(self.checkpoint, offset.plan).plans[partition.stream]
        name = segment_name(offset.batch, f"{partition.task:04d}", uuid.uuid4().hex[:8])
        read = partition.source.read(split, columns(plan), settings.chunk_rows)
        batches = _readable(read, partition.stream) if split.stop > split.start else iter(())
        epoch = epoch_of(offset, partition.stream, split.start)
        before = Split(partition.first, split.start)
        times = partition.source.read(before, [plan.stream.time], settings.chunk_rows)
        seen = _readable(times, partition.stream) if before.stop > before.start else iter(())
        sample = path_of(self.checkpoint, partition.stream) if partition.sampled else None
        return run_task(plan, settings, epoch, batches, self.checkpoint / SEGMENTS / name, seen, sample)


def _offset(logged: Logged) -> Offset:
    return from_data(Offset, logged, "an offset")


def _readable(batches: Iterator[pa.RecordBatch], stream: str) -> Iterator[pa.RecordBatch]:
    """The same batches; where the system cannot read on, an error that says of what."""
    while True:
        try:
            reach("source.read")
            batch = next(batches, None)
        except OSError as error:
            file = f" ({error.filename})" if error.filename else ""
            fact = f"stream '{stream}' cannot be read: {why(error)}{file}"
            raise RunError(fact, "mend its source, then run again: it goes on from the checkpoint") from error
        if batch is None:
            return
        yield batch


class FusedSource(DataSource):
    """Registered as format `penstock`; the option `job` says it all."""

    @classmethod
    def name(cls) -> str:
        return "penstock"

    def schema(self) -> str:
        return "reference string"

    def streamReader(self, schema: Any) -> FusedReader:
        # Called in processes of Spark alone. Ctrl-C reaches all processes of a terminal; the driver answers it.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        return FusedReader(decode(self.options["job"]))
