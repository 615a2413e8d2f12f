"""The task: one split of one micro-batch becomes one segment.

    Arrow batch ──► Columns ──► Selection ──► Keys ──► Forest ──► segment
                    records     fates         words    groups

`Task` has the loop and decides when groups are written. All state of a task is in its parts and ends with it; what a
worker remembers beyond is in `runtime.task.worker_cache`. When leaves or dictionaries reach the task's share of memory,
the groups so far are written as a *run* of the segment, and the leaves start empty. Merges put runs together: nothing
is lost.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.aggregates.shape import Growth, Shape
from penstock.faults import drag, reach
from penstock.logical.window import TIME
from penstock.relations.relation import Choice, sieve_of
from penstock.runtime.epoch import Epoch
from penstock.runtime.machine import memory_taken, note_baseline
from penstock.runtime.merge.coarse import coarsened
from penstock.runtime.merge.details.pruning import pruned
from penstock.runtime.profile.survey import BLOCKS, Survey
from penstock.runtime.profile.turns import lasting
from penstock.runtime.settings import TaskSettings
from penstock.runtime.tables.chunk import Chunk, chunk_values
from penstock.runtime.tables.forest import Forest
from penstock.runtime.tables.leaf import Leaf
from penstock.runtime.task import worker_cache
from penstock.runtime.task.columns import Columns, Records
from penstock.runtime.task.gathering import gathered
from penstock.runtime.task.keys import Chosen, Keys
from penstock.runtime.task.sampling import Sampler, first_records, store, survey_of
from penstock.runtime.task.selection import Ledger, Selection, judges_of, sieves, takers_of
from penstock.sharing.plan import SharedPlan
from penstock.sources.base import Source
from penstock.state.account import TaskAccount
from penstock.state.protocol import Memory, Spent, TaskReport, Work
from penstock.state.segments.write import SegmentWriter

Array = np.ndarray
ROW_BYTES = 64  # of a typical group with its share of the index


class Task:
    """Takes chunk after chunk through all relations of a plan, and writes their groups to a segment."""

    def __init__(
        self,
        plan: SharedPlan,
        settings: TaskSettings,
        epoch: Epoch,
        writer: SegmentWriter,
        sample: Path | None = None,
        picked: Array | None = None,
    ) -> None:
        self.plan, self._settings, self.writer, self._sample = plan, settings, writer, sample
        self._picked = picked  # positions of the records, where not all of a range are read
        takers = takers_of(plan.stored)
        each = tuple(dict.fromkeys((*(taker for of in takers.values() for taker in of), *judges_of(plan.stored))))
        self._takers = {relation: tuple(taker.name for taker in of) for relation, of in takers.items()}
        for relation in plan.relations:  # those of a union, by what they choose
            of_choice: dict[Choice, list[str]] = {choice: [] for choice in relation.sieved}
            for taker in takers[relation.name] if of_choice else ():
                if taker.choice in of_choice:
                    of_choice[taker.choice].append(taker.name)
            self._takers |= {sieve_of(choice).of: tuple(names) for choice, names in of_choice.items()}
        self.columns = Columns(plan, epoch, [taker.choice.where for taker in each if taker.choice.where is not None])
        self._selection = Selection(each, epoch)
        self.ledger = Ledger([taker.name for taker in each if taker.booked])
        self.forest = Forest(plan, sieves(takers, epoch), _capacities(plan, settings))
        self._keys = Keys(plan.relations, self.forest.components, self.forest.widest)
        self._shape = Shape.of(self.columns.types)
        self._growth = Growth([state for relation in plan.relations for state in relation.states], self._shape)
        self._capped = {r.name: r.loss.cap for r in plan.relations if r.loss is not None and r.loss.cap}
        self.sampler = Sampler()
        self._row, self._taken = epoch.row, 0
        self.seconds = 0.0  # without reading
        self._written: dict[str, int] = {}  # nanoseconds by relation

    def run(self, batches: Iterator[pa.RecordBatch]) -> None:
        """Take all batches, then end."""
        for batch in gathered(batches, self._settings.chunk_rows):
            began = time.perf_counter()
            self.take(batch)
            drag(batch.num_rows)
            self.seconds += time.perf_counter() - began
        self.end()

    def look_back(self, batches: Iterable[pa.RecordBatch]) -> None:
        """See the times of the batch that stand before this task's records, for MAX AHEAD."""
        self.columns.look_back(batches)

    def take(self, batch: pa.RecordBatch) -> None:
        """Aggregate one chunk."""
        if batch.num_rows:
            self._chunk(batch)
            reach("task.chunk")
            self._taken += batch.num_rows
            if self.columns.nbytes > self._settings.task_memory // 2:
                self.end()
                self.columns.reset()
                self.sampler = Sampler()  # its samples have codes of the dictionaries that are gone

    def work(self) -> Work:
        """What tables and leaves did; `segment` are the nanoseconds of writing a leaf's groups."""
        found, written = self.forest.work(), self._written
        return {name: {**did, "segment": written[name]} if name in written else did for name, did in found.items()}

    def end(self) -> None:
        """End of the epoch: all groups go down into the leaves, and are written."""
        began = time.perf_counter()
        self._drain()
        self._write_run()
        self._keys.remember()
        self.seconds += time.perf_counter() - began

    def survey(self, batch: pa.RecordBatch) -> Survey:
        """What a planner wants to know of these records; nothing is aggregated."""
        records, chosen = self._choose(batch)
        timed = any(relation.panes.axis == TIME for relation in self.plan.relations)
        lasted = lasting(records.places(TIME), BLOCKS) if timed else 0.0
        return replace(survey_of(self.plan.relations, chosen), lasted=lasted)

    def _chunk(self, batch: pa.RecordBatch) -> None:
        records, chosen = self._choose(batch)
        self._fit(records, chosen)
        measured, columns = self._growth.measured, records.columns
        values = {name: chunk_values(name, columns[name], name in measured) for name in self._growth.columns}
        chunk = Chunk(self._keys.pack(chosen), values, records.dictionaries)
        self._write_full(self.forest.take(chunk, chosen.masks, self._memory))
        if self._capped and self._over():
            self._drain()
            self._write_run()
        if self._sample is not None:
            self.sampler.add(chosen)

    def _choose(self, batch: pa.RecordBatch) -> tuple[Records, Chosen]:
        """Which records are for which relation, and their components."""
        records = self.columns.take(batch, self._places(batch.num_rows))
        fates = self._selection.judge(records)
        self.ledger.book(records, fates)
        masks = {relation: fates.taken(takers) for relation, takers in self._takers.items()}
        return records, self._keys.choose(records, masks)

    def _places(self, rows: int) -> Array:
        """Where the next records stand in the stream."""
        if self._picked is not None:
            return self._picked[self._taken : self._taken + rows]
        return np.arange(self._row + self._taken, self._row + self._taken + rows)

    def _fit(self, records: Records, chosen: Chosen) -> None:
        """Make layout and shape hold this chunk; the tables are rewritten if they did not."""
        shape = self._growth.shape(records.columns, chosen.rows)
        if not self._keys.fit(chosen.ranges) or shape is not self._shape:
            self._shape = shape
            self._drain()
            self.forest.lay_out(self._keys.lay_out(), self._shape)

    def _over(self) -> bool:
        """Whether a leaf has more values than its function may keep."""
        counts = self.forest.counts()
        return any(counts[name] > most for name, most in self._capped.items())

    @property
    def _memory(self) -> int:
        """Bytes that tables and leaves may take."""
        return self._settings.task_memory - self.columns.nbytes

    def _drain(self) -> None:
        self._write_full(self.forest.drain(self.columns.dictionaries, self._memory))

    def _write_full(self, work: Iterator[Leaf]) -> None:
        """Do the work of the forest; whenever a leaf is full, write a run."""
        for _ in work:
            self._write_run()

    def _write_run(self) -> None:
        counts, dictionaries = self.forest.counts(), self.columns.dictionaries
        if not any(counts.values()):
            return
        worker_cache.note_groups(counts)
        began = time.thread_time_ns()
        for relation, found in self.forest.emptied(dictionaries):
            groups = found if relation.loss is None else pruned(relation, relation.loss, found)
            coarse = coarsened(relation, groups, self.plan.stored.reach[relation.name])
            self.writer.add(relation.name, groups, coarse, relation.slot_key)
            ended = time.thread_time_ns()
            self._written[relation.name] = self._written.get(relation.name, 0) + ended - began
            began = ended
        self.writer.end_run(dictionaries)


def _capacities(plan: SharedPlan, settings: TaskSettings) -> dict[str, int]:
    """Rows of each leaf at the start: as many groups as it had in the worker's last run, memory permitting."""
    # A little more than last time: growing by one group costs a new index.
    seen = {relation.name: worker_cache.groups_of(relation.name) * 9 // 8 for relation in plan.relations}
    part = min(1.0, 0.8 * settings.task_memory / (ROW_BYTES * max(1, sum(seen.values()))))
    return {name: max(settings.table_rows, int(part * groups)) for name, groups in seen.items()}


def run_task(
    plan: SharedPlan,
    settings: TaskSettings,
    epoch: Epoch,
    batches: Iterator[pa.RecordBatch],
    path: Path,
    before: Iterable[pa.RecordBatch] = (),
    sample: Path | None = None,
    picked: Array | None = None,
) -> TaskReport:
    """Aggregate a split into a segment at `path`.

    `before` has the times of the batch that stand before the split, where the stream has MAX AHEAD; `sample` is where
    to leave a sample of the records. `picked` are the positions of the records, where they are picks.
    """
    started = time.perf_counter()
    note_baseline()
    with SegmentWriter(path, settings.slots) as writer:
        task = Task(plan, settings, epoch, writer, sample, picked)
        task.look_back(before)
        task.run(batches)
        survey = task.sampler.survey(plan.stored, task.columns.dictionaries)
        if sample is not None and survey is not None:
            store(sample, survey)
        report = task_report(task)
    return replace(report, spent=Spent(time.perf_counter() - started, Memory(*memory_taken())))


def sampled(plan: SharedPlan, source: Source, batch_rows: int) -> Survey | None:
    """What a planner wants to know of a source's first batch."""
    writer: Any = None  # nothing is written
    task = Task(plan, TaskSettings(), Epoch(0), writer)
    batch = first_records(source, [field.name for field in plan.fields], batch_rows)
    return None if batch is None else task.survey(batch)


def task_report(task: Task) -> TaskReport:
    """What a task tells the driver; ends its segment."""
    ledger, times = task.ledger, task.columns.times
    return TaskReport(
        task.plan.stream.name,
        task.writer.close(),
        TaskAccount(ledger.stream, ledger.queries, ledger.reasons),
        {reason: tuple(rows) for reason, rows in ledger.places.items()},
        times.greatest,
        times.least,
        times.first,
        task.work(),
        task.forest.sizes(),
        task.seconds,
    )
