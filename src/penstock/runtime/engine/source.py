"""The reader of the fused source as Spark sees it: its tasks aggregate and yield only references.

The offset is Spark's write-ahead log, so everything a batch needs to be repeated exactly stands in it. Spark asks for
`latestOffset` in the driver's source process, after the manifest of the batch before was written; what is behind it all
is `runtime.batch.fused`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow

from penstock.runtime.batch.fused import FusedReader, FusedSplit, split_told
from penstock.runtime.batch.job import Job
from penstock.runtime.batch.outcome import told_batch
from penstock.sources.live.contract import live
from penstock.state.data import from_data, to_data
from penstock.state.protocol import Offset

PAUSE = 0.01  # seconds between two looks at live streams
Logged = dict[str, Any]  # an offset as Spark logs it


class SparkSplit(InputPartition):
    """One task's share of a batch."""

    def __init__(self, share: FusedSplit) -> None:
        super().__init__(share.task)
        self.share = share


class SparkReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """What decides and cuts batches, in the words of Spark."""

    def __init__(self, job: Job) -> None:
        self.fused = FusedReader(job)
        self._live = any(live(source) for source in job.sources.values())

    def prepareForTriggerAvailableNow(self) -> None:
        """What there is when the run starts is what it reads: nothing to fix beforehand."""

    def initialOffset(self) -> Logged:
        return to_data(Offset())

    def latestOffset(self, start: Logged, limit: object) -> Logged:
        begin = _offset(start)
        decided = self.fused.decided(begin)
        if decided is not begin:
            return to_data(decided)
        if self._live:  # Spark asks again at once
            time.sleep(PAUSE)
        return start

    def partitions(self, start: Logged, end: Logged) -> list[SparkSplit]:
        return [SparkSplit(split) for split in self.fused.splits(_offset(start), _offset(end))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, SparkSplit)
        text = split_told(self.fused.job.settings, self.fused.checkpoint, partition.share)
        yield told_batch("reference", text)


def _offset(logged: Logged) -> Offset:
    return from_data(Offset, logged, "an offset")
