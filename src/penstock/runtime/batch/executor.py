"""What runs the tasks of a batch and the shares of a merge: an engine, here Spark's.

    tasks of a batch      FusedReader.read, frame_task   ──► TaskReport          `run_tasks`
    shares of a merge     merge_share, compact_share     ──► MergeReport, …      `run_shares`

Nothing else in this folder but the sources that Spark calls itself (`fused`, `frames`) knows which engine it is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol, TypeVar

import pyarrow as pa

from penstock.runtime.batch.outcome import heard, told
from penstock.runtime.machine import memory_taken, note_baseline
from penstock.state.protocol import CompactionReport, Memory, MergeReport, Spent, TaskReport

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

R = TypeVar("R", MergeReport, CompactionReport)
Given = TypeVar("Given", contravariant=True)


class Executor(Protocol[Given]):
    """`Given` is a batch as the engine hands it over."""

    @property
    def parallelism(self) -> int:
        """How many tasks run at the same time now."""
        ...

    def run_tasks(self, given: Given) -> list[TaskReport]:
        """Run the tasks of a batch; their reports, in the order of the tasks."""
        ...

    def run_shares(self, count: int, run: Callable[[int], R], kind: type[R]) -> list[R]:
        """Run numbered tasks that give one report each."""
        ...


@dataclass(frozen=True)
class SparkExecutor:
    """`asked` is the parallelism that the user asked for, if any."""

    spark: SparkSession
    asked: int | None = None

    @property
    def parallelism(self) -> int:
        return max(1, self.asked or self.spark.sparkContext.defaultParallelism)

    def run_tasks(self, given: DataFrame) -> list[TaskReport]:
        """`given` has a row for each task, with what it tells."""
        return heard((row.reference for row in given.collect()), TaskReport)

    def run_shares(self, count: int, run: Callable[[int], R], kind: type[R]) -> list[R]:
        def tasks(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for numbered in numbers:
                for number in numbered.column(0).to_pylist():
                    yield pa.RecordBatch.from_pydict({"report": [share_told(run, number)]})

        rows = self.spark.range(0, count, 1, count).mapInArrow(tasks, "report string").collect()
        return heard((row.report for row in rows), kind)


def share_told(run: Callable[[int], R], number: int) -> str:
    """What the task of a share tells, with what it took."""

    def measured() -> R:
        started = time.perf_counter()
        note_baseline()
        report = run(number)
        return replace(report, spent=Spent(time.perf_counter() - started, Memory(*memory_taken())))

    return told(number, measured, lambda error: f"a merge task failed: {error}")
