"""DataFrames of the user's as streams: the same tasks, run by `mapInArrow` over each micro-batch.

A streaming DataFrame has offsets of its own, which cannot carry what penstock decides about a batch (watermark,
version of the app). That is logged in the checkpoint before anything runs:

    decisions/00000007.json    what the offset of the fused source would say (`runtime.batch.offsets`)

A static DataFrame is one batch. Rows of DataFrames have no positions: windows of rows are refused over them.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.runtime.batch.executor import Executor
from penstock.runtime.batch.held import done_mark
from penstock.runtime.batch.job import columns
from penstock.runtime.batch.offsets import decide, decision_path, epoch_of, log_decision, read_decision
from penstock.runtime.batch.outcome import told, told_batch
from penstock.runtime.epoch import Epoch
from penstock.runtime.expressions.refreshing import Refresher
from penstock.runtime.settings import TaskSettings
from penstock.sharing.plan import SharedPlan
from penstock.sources.base import OF_FRAMES, Abilities
from penstock.state import versions
from penstock.state.files import put_if_absent
from penstock.state.garbage import SEGMENTS, segment_name
from penstock.state.manifest import Manifest
from penstock.state.protocol import Offset, TaskReport

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass
class FrameFeed:
    """Reports made from the rows of a DataFrame; `ending` is set for the batch that ends the stream."""

    executor: Executor[DataFrame]
    checkpoint: Path
    stream: str
    settings: TaskSettings
    ending: bool = False
    sampling: bool = False
    refresher: Refresher | None = None

    def decision(self, batch: int, before: Manifest) -> Offset:
        # The batch that ends the stream is none of Spark: killed before its manifest, its number may go to data.
        path = decision_path(self.checkpoint, batch, "-end" if self.ending else "")
        if not path.exists():
            known = before if before.batch >= 0 else None
            row = before.stream(self.stream).row
            rows, ends = {self.stream: row}, {self.stream: self.ending}
            offset = decide(self.checkpoint, before.offset, known, rows, ends, self.refresher)
            log_decision(path, offset)
        return read_decision(path)

    def tasks(self, given: DataFrame | None, offset: Offset) -> tuple[list[TaskReport], Offset]:
        if given is None:
            return [], offset
        plan = versions.load(self.checkpoint, offset.plan).plans[self.stream]
        epoch = epoch_of(offset, self.stream, 0, ordered=False)
        run = frame_task(plan, self.settings, epoch, self.checkpoint, self.sampling)
        chosen = given.select(*(f"`{name.replace('`', '``')}`" for name in columns(plan)))
        tasks = self.executor.run_tasks(chosen.mapInArrow(run, "reference string"))
        # Without an order the first record is the least of the first batch.
        least = min((task.least for task in tasks if task.least is not None), default=None)
        row = offset.stream(self.stream).row + sum(task.rows for task in tasks)
        return [replace(task, first=least) for task in tasks], offset.moved(self.stream, row)

    def end_batch(self) -> bool:
        """The end of a DataFrame closes its windows in a batch of its own."""
        self.ending = True
        return True

    def finished(self, batch: int) -> None:
        if self.ending:  # no batch of Spark's: it will not log its end
            put_if_absent(done_mark(self.checkpoint, batch), b"")

    def place(self, stream: str, row: int) -> str:
        return f"row {row + 1} of a partition"

    def abilities(self, stream: str) -> Abilities:
        return OF_FRAMES

    def total(self) -> int | None:
        return None


def frame_task(
    plan: SharedPlan, settings: TaskSettings, epoch: Epoch, checkpoint: Path, sampling: bool = False
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that Spark runs on each partition of a batch."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        from penstock.runtime.expressions.folders import use_folder
        from penstock.runtime.task.sampling import path_of
        from penstock.runtime.task.task import run_task

        use_folder(checkpoint)
        context = TaskContext.get()
        task = context.partitionId() if context is not None else 0
        name = segment_name(epoch.batch, f"{task:04d}", uuid.uuid4().hex[:8])
        sample = path_of(checkpoint, plan.stream.name) if sampling and task == 0 else None
        work = partial(run_task, plan, settings, epoch, batches, checkpoint / SEGMENTS / name, sample=sample)
        text = told(task, work, lambda error: f"task {task} failed: {error}")
        yield told_batch("reference", text)

    return run
