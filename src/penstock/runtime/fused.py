"""The fused source: a Spark streaming data source whose tasks aggregate and yield only references.

The offset is Spark's write-ahead log, so everything a batch needs to be repeated exactly stands in it:

    {"n": batches so far, "row": position, "end": source ended, "wm": watermark before the batch,
     "max": greatest time before the batch, "plan": plan version}

`latestOffset` decides (in the driver's source process, after the manifest of the batch before was written),
`partitions` and `read` only act on what was decided. Heavy modules are imported by the tasks alone.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow

from penstock.errors import PenstockError, RunError
from penstock.runtime.job import Job, decode
from penstock.sources.base import Split
from penstock.state import manifest as manifests
from penstock.state.garbage import SEGMENTS, segment_name

Offset = dict[str, Any]


class FusedSplit(InputPartition):
    """One task's share of a batch."""

    def __init__(self, task: int, split: Split, offset: Offset) -> None:
        super().__init__(task)
        self.task, self.split, self.offset = task, split, offset


class FusedReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Cuts the source into micro-batches and runs their tasks."""

    def __init__(self, job: Job) -> None:
        self.job = job

    def prepareForTriggerAvailableNow(self) -> None:
        """A finite source ends by itself: nothing to fix beforehand."""

    def initialOffset(self) -> Offset:
        return {"n": 0, "row": 0, "end": False, "wm": None, "max": None, "plan": 0}

    def latestOffset(self, start: Offset, limit: Any) -> Offset:
        if start["end"]:
            return start
        job, batch = self.job, start["n"]
        before = manifests.load(Path(job.checkpoint), batch - 1) if batch else None
        if batch and before is None:
            raise RunError(f"manifest {batch - 1} of {job.checkpoint} is missing")
        rows = job.source.rows()
        row = job.source.cut(start["row"], job.batch_rows) if start["row"] < rows else rows
        return {
            "n": batch + 1,
            "row": row,
            "end": row >= rows,
            "wm": before.watermark if before else None,
            "max": before.greatest if before else None,
            "plan": job.plan.version,
        }

    def partitions(self, start: Offset, end: Offset) -> list[FusedSplit]:
        # An empty batch (the end of an empty source) still has a task: its reference carries the end.
        splits = [Split(start["row"], end["row"])]
        if start["row"] < end["row"]:
            splits = self.job.source.splits(start["row"], end["row"], self.job.parallelism)
        return [FusedSplit(task, split, end) for task, split in enumerate(splits)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Errors meant for users travel as data: Spark would wrap them in its own traces."""
        assert isinstance(partition, FusedSplit)
        try:
            reference = self._run(partition)
        except PenstockError as error:
            reference = {"error": [error.fact, error.hint]}
        except OSError as error:
            reference = {
                "error": [f"task {partition.task} failed: {error}", "make room or mend the disk, then run again"]
            }
        yield pa.RecordBatch.from_pydict({"reference": [json.dumps(reference)]})

    def _run(self, partition: FusedSplit) -> dict[str, Any]:
        from penstock.runtime.lfta import Epoch, run_task

        job, offset = self.job, partition.offset
        batch = offset["n"] - 1
        path = Path(job.checkpoint) / SEGMENTS / segment_name(batch, partition.task, uuid.uuid4().hex[:8])
        epoch = Epoch(batch, offset["wm"], offset["max"])
        split = partition.split
        batches = (
            job.source.read(split, job.columns(), job.settings.chunk_rows) if split.stop > split.start else iter(())
        )
        return run_task(job.plan, job.settings, epoch, batches, path)


class FusedSource(DataSource):
    """Registered as format `penstock`; the option `job` says it all."""

    @classmethod
    def name(cls) -> str:
        return "penstock"

    def schema(self) -> str:
        return "reference string"

    def streamReader(self, schema: Any) -> FusedReader:
        return FusedReader(decode(self.options["job"]))
