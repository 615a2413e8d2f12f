"""The fused source: a Spark streaming data source whose tasks aggregate and yield only references.

The offset is Spark's write-ahead log, so everything a batch needs to be repeated exactly stands in it
(`runtime.batch.offsets`). `latestOffset` decides (in the driver's source process, after the manifest of the batch
before was written), `partitions` and `read` only act on what was decided. Heavy modules are imported by the tasks
alone.
"""

from __future__ import annotations

import json
import signal
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow

from penstock.errors import PenstockError, RunError, why
from penstock.faults import reach
from penstock.runtime.batch.job import END, Job, columns, decode
from penstock.runtime.batch.offsets import (
    Offset,
    decide,
    epoch_of,
    has_ended,
    in_order,
    initial_offset,
    manifest_before,
    position,
)
from penstock.sources.base import Position, Source, Split
from penstock.sources.tail import with_arrivals
from penstock.state import versions
from penstock.state.garbage import SEGMENTS, segment_name


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

    def initialOffset(self) -> Offset:
        return initial_offset()

    def latestOffset(self, start: Offset, limit: Any) -> Offset:
        if start["end"]:
            return start
        before = manifest_before(self.checkpoint, start)
        rows, ends = {}, {}
        for name in self.sources:
            at = position(start, name)
            if self.job.until != END:
                self.sources[name] = with_arrivals(self.checkpoint, name, self.sources[name], at)
            source = self.sources[name]
            rows[name] = source.cut(at, self.job.batch_rows) if at < source.rows() else at
            ends[name] = has_ended(start, name) or (self.job.until == END and rows[name] >= source.rows())
        moved = (rows[name] > position(start, name) or ends[name] != has_ended(start, name) for name in rows)
        return decide(self.checkpoint, start, before, rows, ends) if any(moved) else start

    def partitions(self, start: Offset, end: Offset) -> list[FusedSplit]:
        app = versions.load(self.checkpoint, end["plan"]).app
        splits: list[FusedSplit] = []
        for name in end["streams"]:
            first = position(start, name)
            for split in self._splits(name, first, position(end, name), in_order(app, end, name)):
                begin = split.start if app.stream(name).ahead is None else first
                source = self.sources[name].narrowed(Split(begin, split.stop))
                splits.append(FusedSplit(len(splits), name, split, source, end, begin))
                splits[-1].sampled = self.job.sampling and split.start == first
        return splits

    def _splits(self, stream: str, start: Position, stop: Position, one: bool) -> list[Split]:
        # An empty batch (the end of an empty source) still has a task: its reference carries the end.
        source = self.sources[stream]
        if one or start >= stop or not source.abilities.random_access:
            return [Split(start, stop)]
        return source.splits(start, stop, self.job.parallelism)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Errors meant for users travel as data: Spark would wrap them in its own traces."""
        assert isinstance(partition, FusedSplit)
        try:
            reference = self._run(partition)
        except PenstockError as error:
            reference = {"error": [error.fact, error.hint]}
        except OSError as error:
            place = "" if error.filename else f" ({self.checkpoint})"  # a write that fails does not say of what
            fact = f"task {partition.task} failed: {error}{place}"
            reference = {"error": [fact, "make room or mend the disk, then run again"]}
        yield pa.RecordBatch.from_pydict({"reference": [json.dumps(reference | {"task": partition.task})]})

    def _run(self, partition: FusedSplit) -> dict[str, Any]:
        from penstock.runtime.task.sampling import path_of
        from penstock.runtime.task.task import run_task

        settings, offset, split = self.job.settings, partition.offset, partition.split
        plan = versions.load(self.checkpoint, offset["plan"]).plans[partition.stream]
        name = segment_name(offset["n"] - 1, f"{partition.task:04d}", uuid.uuid4().hex[:8])
        read = partition.source.read(split, columns(plan), settings.chunk_rows)
        batches = _readable(read, partition.stream) if split.stop > split.start else iter(())
        epoch = epoch_of(offset, partition.stream, split.start)
        before = Split(partition.first, split.start)
        times = partition.source.read(before, [plan.stream.time], settings.chunk_rows)
        seen = _readable(times, partition.stream) if before.stop > before.start else iter(())
        sample = path_of(self.checkpoint, partition.stream) if partition.sampled else None
        return run_task(plan, settings, epoch, batches, self.checkpoint / SEGMENTS / name, seen, sample)


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
