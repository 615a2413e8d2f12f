"""The merge job: tasks that merge, finish and stage all closed windows of a level of queries.

Where another query reads the results, the task aggregates them for it right away (`runtime.task.task`), into a
segment of its own: results never leave the task as rows.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

import pyarrow as pa

from penstock.runtime.epoch import Epoch
from penstock.runtime.merge.items import Cut, MergeItem, Reading, Wanting
from penstock.runtime.merge.join.reading import JoinReading, JoinWanting
from penstock.runtime.meter import SINK
from penstock.runtime.sent import Sent
from penstock.runtime.settings import TaskSettings
from penstock.sharing.plan import SharedPlan
from penstock.sinks.base import Sink
from penstock.state.garbage import segment_name
from penstock.state.protocol import (
    HeldCounts,
    JoinCounts,
    MergeReport,
    SegmentRef,
    Spent,
    Staged,
    TaskReport,
    WindowCounts,
)

if TYPE_CHECKING:
    from penstock.runtime.merge.item import Merged
    from penstock.runtime.merge.join.spread import SpreadReading
    from penstock.runtime.merge.windows import TaskSegments
    from penstock.runtime.task.task import Task
    from penstock.state.segments.write import SegmentWriter

T = TypeVar("T")


@dataclass(frozen=True)
class ShareWork(Generic[T]):
    """What all tasks of a job over segments share: what is done with each relation or query that items name, the
    folder and the references of the segments to read."""

    named: Mapping[str, T]
    folder: str
    references: tuple[SegmentRef, ...]
    settings: TaskSettings
    batch: int


@dataclass(frozen=True)
class How:
    """How a query closes: what is read, what it is finished from, and where its results go (None: only to its
    readers)."""

    reading: Reading | JoinReading | SpreadReading
    wanting: Wanting | JoinWanting
    sink: Sink | None


@dataclass(frozen=True)
class Closed:
    """A query whose windows close: how that is done with those that are read together (most of it is the same for
    all of them), the plan and epoch of the queries that read it, and the first window whose account is kept."""

    query: str
    together: Sent[Mapping[str, How]]
    readers: SharedPlan | None
    epoch: Epoch
    least: int

    @property
    def how(self) -> How:
        return self.together.value[self.query]

    @property
    def reading(self) -> Reading | JoinReading | SpreadReading:
        return self.how.reading

    @property
    def wanting(self) -> Wanting | JoinWanting:
        return self.how.wanting

    @property
    def sink(self) -> Sink | None:
        return self.how.sink


def merge_share(shares: list[list[MergeItem]], work: ShareWork[Closed], number: int) -> MergeReport:
    """Merge, finish and stage some items."""
    from penstock.runtime.expressions.folders import use_folder
    from penstock.runtime.merge.windows import TaskSegments

    use_folder(Path(work.folder).parent)
    with TaskSegments(Path(work.folder), work.references) as opened, ExitStack() as writers:
        return _merge_items(shares[number], work, number, opened, writers)


def _merge_items(
    items: list[MergeItem], work: ShareWork[Closed], number: int, opened: TaskSegments, writers: ExitStack
) -> MergeReport:
    attempt = uuid.uuid4().hex[:8]
    staged: list[Staged] = []
    rows, size = dict.fromkeys(sorted({name for item in items for name in item.names}), 0), 0
    windows: list[WindowCounts] = []
    joins: list[JoinCounts] = []
    feeds: dict[str, Task] = {}
    spread = _Spread(work, number, attempt, writers)
    for item in items:
        together = [work.named[name] for name in item.names]
        if spread.take(together[0], item.cut, opened):
            continue
        for merged in _merged(together, item.cut, opened):
            closed, table = work.named[merged.query], merged.table
            joins += [] if merged.counts is None else [merged.counts]
            if closed.sink is not None:
                windows.append(merged.tally.report(merged.query, closed.least))
            if not table.num_rows:
                continue
            rows[merged.query] += table.num_rows
            if closed.sink is not None:
                charged = merged.relation or merged.query
                with opened.meter.part(charged, SINK):
                    part = closed.sink.stage(table, work.batch, item.cut.part, attempt)
                opened.meter.count(charged, staged=table.num_rows)
                staged.append(Staged(merged.query, *part))
                size += staged_size(staged[-1].staged)
            if closed.readers is not None:
                if merged.query not in feeds:
                    task = f"m{number:03d}-{attempt}"
                    feeds[merged.query] = _new_feed(closed, work, task, len(feeds), writers)
                _feed(feeds[merged.query], table, work.settings.chunk_rows)
            del merged, table  # before the next query's are made
    joined, held = spread.ended()
    joins += [one.counts for one in held]
    return MergeReport(
        tuple(staged), size, rows, tuple(windows), opened.bytes_read, _ended(feeds), Spent(), joined, held,
        tuple(joins), opened.meter.work(),
    )  # fmt: skip


class _Spread:
    """Parts of joins that are too large for one task, in one segment of a task."""

    def __init__(self, work: ShareWork[Closed], number: int, attempt: str, writers: ExitStack) -> None:
        self._work, self._writers = work, writers
        self._name = segment_name(work.batch, f"j{number:03d}", attempt)
        self._writer: SegmentWriter | None = None
        self._held: list[HeldCounts] = []

    def take(self, closed: Closed, cut: Cut, opened: TaskSegments) -> bool:
        """Join a part, if this is one."""
        if not isinstance(closed.reading, JoinReading) or not isinstance(closed.wanting, JoinWanting):
            return False
        if cut.turn is None:
            return False
        from penstock.runtime.merge.join.spread import write_part
        from penstock.state.segments.write import SegmentWriter

        if self._writer is None:
            path = Path(self._work.folder) / self._name
            self._writer = self._writers.enter_context(SegmentWriter(path, self._work.settings.slots))
        self._held.append(write_part(closed.reading, closed.wanting, cut, opened, self._writer))
        return True

    def ended(self) -> tuple[tuple[SegmentRef, ...], tuple[HeldCounts, ...]]:
        return (() if self._writer is None else (self._writer.close(),)), tuple(self._held)


def _merged(together: list[Closed], cut: Cut, opened: TaskSegments) -> Iterator[Merged]:
    """The finished results of queries that are read together, or of a join."""
    reading = together[0].reading
    if isinstance(reading, Reading):
        from penstock.runtime.merge.item import merge_item

        return merge_item(reading, [one.wanting for one in together if isinstance(one.wanting, Wanting)], cut, opened)
    from penstock.runtime.merge.join.item import join_item
    from penstock.runtime.merge.join.spread import spread_item

    joins = [one.wanting for one in together if isinstance(one.wanting, JoinWanting)]
    if isinstance(reading, JoinReading):
        return join_item(reading, joins, cut, opened)
    return spread_item(reading, joins, cut, opened)


def staged_size(staged: str) -> int:
    """Bytes of a staged part; a sink that keeps nothing names no file."""
    return Path(staged).stat().st_size if staged else 0


def _new_feed(closed: Closed, work: ShareWork[Closed], task: str, number: int, writers: ExitStack) -> Task:
    """The task that aggregates a query's results for its readers."""
    from penstock.runtime.task.task import Task
    from penstock.state.segments.write import SegmentWriter

    assert closed.readers is not None
    path = Path(work.folder) / segment_name(work.batch, task, f"{number:02d}")
    writer = writers.enter_context(SegmentWriter(path, work.settings.slots))
    return Task(closed.readers, work.settings, closed.epoch, writer)


def _feed(task: Task, table: pa.Table, chunk_rows: int) -> None:
    """Give result rows to the queries that read them."""
    if "ts" not in table.schema.names and "window_end" in table.schema.names:
        table = table.append_column("ts", table.column("window_end"))
    for batch in table.to_batches(max_chunksize=chunk_rows):
        task.take(batch)


def _ended(feeds: dict[str, Task]) -> tuple[TaskReport, ...]:
    from penstock.runtime.task.task import task_report

    for task in feeds.values():
        task.end()
    return tuple(task_report(task) for task in feeds.values())
