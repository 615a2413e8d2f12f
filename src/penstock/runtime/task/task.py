"""The task: one split of one micro-batch through PACK and the tables into one segment.

    Arrow batch ──► ingest ──► select (WHERE, late, account) ──► layout, pack ──► tree, leaves ──► segment

All of a task's state lives here and ends with it. When tables and dictionaries reach the task's memory cap,
the groups are written early as a run of the segment and the tables start anew: merged above, never lost.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.aggregates.shape import Growth, Shape
from penstock.faults import reach
from penstock.kernels.tables.pack import component_range, pane_number
from penstock.logical.expressions import Column, Expression, Prefix
from penstock.logical.window import ROWS
from penstock.relations.component import (
    Component,
    Tag,
    inet6_component,
    null_component,
    pane_component,
    sieve_component,
    value_component,
)
from penstock.relations.layout import Layout, Range, lay_out, union
from penstock.relations.relation import Relation
from penstock.runtime.epoch import Epoch
from penstock.runtime.expressions.evaluate import Operand, Scope, evaluate
from penstock.runtime.memory import memory_report, note_baseline
from penstock.runtime.merge.coarse import coarsened
from penstock.runtime.profile.survey import Survey
from penstock.runtime.settings import TaskSettings
from penstock.runtime.tables.chunk import Chunk, chunk_values, numbers, pack_words
from penstock.runtime.tables.forest import Tree
from penstock.runtime.tables.leaf import Leaf
from penstock.runtime.tables.rows import Cut
from penstock.runtime.task.columns import Ingest, Ingested
from penstock.runtime.task.report import counted, sizes
from penstock.runtime.task.sampling import TUPLES, Chosen, Sampler, store, survey_of
from penstock.runtime.task.selection import Ledger, Selector, Tuples, sieves
from penstock.runtime.task.times import Times
from penstock.sharing.plan import SharedPlan
from penstock.sources.base import BAD, FAULT, START, UNREADABLE, Position, Source, Split
from penstock.state.account import TaskAccount
from penstock.state.protocol import Spent, TaskReport
from penstock.state.segments.write import SegmentWriter

Array = np.ndarray
ROW_BYTES = 64  # of a typical group with its share of the index
# Groups of each query in this worker's last task, and ranges of components in its last tasks: caches that save growing
# tables and laying keys out anew, never truth.
_groups_seen: dict[str, int] = {}
_ranges_seen: dict[tuple[Relation, ...], deque[dict[Component, Range]]] = {}
PLANS_SEEN, TASKS_SEEN = 16, 8
FIRST_RUNS = 8  # that a sample before the run is made of: a file may have to be read up to each of them


class Lfta:
    """Runs chunks through all relations of a plan and writes their groups to a segment."""

    def __init__(
        self,
        plan: SharedPlan,
        settings: TaskSettings,
        epoch: Epoch,
        writer: SegmentWriter,
        sample: Path | None = None,
    ) -> None:
        self.plan, self.settings, self.epoch, self.writer, self.sample = plan, settings, epoch, writer, sample
        used = frozenset().union(*(r.columns for r in plan.relations)) | {plan.stream.time}
        self.fields = tuple(f for f in plan.stream.fields if f.name in used)
        self.computed = tuple(dict.fromkeys(c for r in plan.relations for c in r.computed))
        self.prefixes = frozenset(
            (a.column.name, a.length) for r in plan.relations for a in r.attributes if isinstance(a, Prefix)
        )
        self.ingest = Ingest(self.fields, self.prefixes, self.computed)
        self.selector = Selector(plan.relations, epoch)
        windows = [relation.window for relation in plan.relations]
        self.panes = tuple(dict.fromkeys(window.panes for window in windows))
        longest = max((w.length + w.slide for w in windows if w.axis != ROWS), default=0)
        self.times = Times(plan.stream, epoch, longest, self.selector.ledger)
        self.tree = Tree(plan, sieves(plan.relations, epoch), self._absorb)
        self.components = sorted({p.component for r in plan.relations for p in r.parts} | self.tree.components)
        types = {f.name: f.type for f in self.fields} | {c.name: c.type for c in self.computed}
        self.shape = Shape.of(types)
        self.growth = Growth((s for r in plan.relations for s in r.states), self.shape)
        self.ranges: dict[Component, Range] = {}  # that the layout must hold
        self.met: dict[Component, Range] = {}
        self.layout: Layout | None = None
        self.leaves: list[Leaf] = []
        self.row = epoch.row
        self.seconds = 0.0  # without reading
        self.sampler = Sampler()

    def run(self, batches: Iterator[pa.RecordBatch]) -> None:
        for batch in batches:
            began = time.perf_counter()
            self.take(batch)
            self.seconds += time.perf_counter() - began
        self.end()

    def look_back(self, batches: Iterable[pa.RecordBatch]) -> None:
        """See the times of the batch that stand before this task's tuples, for MAX AHEAD; another task books them."""
        name, ledger = self.plan.stream.time, Ledger()
        times = Times(self.plan.stream, self.epoch, self.times.longest, ledger)
        for batch in batches:
            flags = batch.column(BAD + name) if BAD + name in batch.schema.names else None
            times.judge(self.ingest.column(name, batch.column(name), flags), 0)
        self.times.greatest = times.greatest

    def take(self, batch: pa.RecordBatch) -> None:
        """Aggregate one chunk."""
        if batch.num_rows:
            self._chunk(batch)
            reach("task.chunk")
            self.row += batch.num_rows
            if self.ingest.nbytes > self.settings.task_memory // 2:
                self.end()
                self.ingest.reset()
                self.sampler = Sampler()  # codes of strings begin anew

    def end(self) -> None:
        """End of the epoch: flush top-down, then write."""
        began = time.perf_counter()
        self._drain()
        self._write_run()
        if len(_ranges_seen) >= PLANS_SEEN:
            _ranges_seen.clear()
        _ranges_seen.setdefault(self.plan.relations, deque(maxlen=TASKS_SEEN)).append(self.met)
        self.seconds += time.perf_counter() - began

    def _chunk(self, batch: pa.RecordBatch) -> None:
        columns, chosen = self._choose(batch)
        self._fit(chosen.ranges, self.growth.shape(columns, batch.num_rows))
        assert self.layout is not None
        measured = self.growth.measured
        values = {name: chunk_values(name, columns[name], name in measured) for name in self.growth.columns}
        words = pack_words(self.layout, chosen.components, batch.num_rows)
        chunk = Chunk(words, values, self.ingest.dictionaries)
        self.tree.take(chunk, chosen.masks)
        self._feed_leaves(chunk, chosen.masks)
        if self.sample is not None:
            self.sampler.add(chosen)

    def survey(self, batch: pa.RecordBatch) -> Survey:
        """What a planner wants to know of these tuples; nothing is aggregated."""
        return survey_of(self.plan.relations, self._choose(batch)[1])

    def _choose(self, batch: pa.RecordBatch) -> tuple[dict[str, Ingested], Chosen]:
        """Which tuples are for which query, and their components."""
        columns = self._columns(batch)
        ts, timely = self._time(columns[self.plan.stream.time])
        scope = Scope(lambda expression: self._operand(expression, columns), batch.num_rows)
        for made in self.computed:
            columns[made.name] = self.ingest.computed(made, evaluate(made.expression, scope))
        places = np.arange(self.row, self.row + batch.num_rows)
        masks = self.selector.select(Tuples(ts, places, timely, columns, scope))
        return columns, Chosen(masks, *self._components(columns, ts, places, masks), batch.num_rows)

    def _columns(self, batch: pa.RecordBatch) -> dict[str, Ingested]:
        """The columns that some query reads; books values that do not fit and records that cannot be read."""
        present = set(batch.schema.names)
        ledger, known = self.selector.ledger, np.zeros(batch.num_rows, bool)
        for flag, prefix in ((UNREADABLE, "unreadable record: "), (FAULT, "")):
            if flag in present:
                known |= self._blame(batch.column(flag), prefix)
        columns = {}
        for field in self.fields:
            flags = batch.column(BAD + field.name) if BAD + field.name in present else None
            column = columns[field.name] = self.ingest.column(field.name, batch.column(field.name), flags)
            if column.bad is not None:
                ledger.blame(f"{field.name} is not a valid {field.type}", column.bad & ~known, self.row)
        return columns

    def _blame(self, reasons: pa.Array, prefix: str) -> Array:
        """Book records for the reasons that the source gives; returns which they are."""
        for reason in reasons.unique().drop_null().to_pylist():
            marked = pc.fill_null(pc.equal(reasons, reason), False).to_numpy(zero_copy_only=False)
            self.selector.ledger.blame(prefix + reason, marked, self.row)
        given: Array = reasons.is_valid().to_numpy(zero_copy_only=False)
        return given

    def _time(self, column: Ingested) -> tuple[Array, Array | None]:
        known = self.times.first
        judged = self.times.judge(column, self.row)
        if known is None and self.times.first is not None and self.epoch.ordered:  # landmark windows begin here
            self.selector.start(replace(self.epoch, first=self.times.first))
        return judged

    def _operand(self, expression: Expression, columns: dict[str, Ingested]) -> Operand:
        assert isinstance(expression, Column)
        return self.ingest.operand(expression.name, columns[expression.name])

    def _components(
        self, columns: dict[str, Ingested], ts: Array, rows: Array, masks: dict[str, Array | None]
    ) -> tuple[dict[Component, Array], dict[Component, Range]]:
        """All components that some relation needs, and their ranges; one left out is zero everywhere."""
        found: dict[Component, Array] = {}
        for name, column in columns.items():
            found[value_component(name)] = column.numbers
            if len(column.valid):
                found[null_component(name)] = (column.valid == 0).astype(np.int64)
            if column.inet6 is not None:
                found[inet6_component(name)] = column.inet6
                for length in (n for prefixed, n in self.prefixes if prefixed == name):
                    found[inet6_component(name, length)] = self.ingest.prefix(name, length, column.inet6)
        for panes in self.panes:
            number = np.empty(len(ts), np.int64)
            pane_number(rows if panes.axis == ROWS else ts, panes.slide, panes.cut, number)
            found[pane_component(panes)] = number
        for query, mask in masks.items():
            if mask is not None and sieve_component(query) in self.tree.components:
                found[sieve_component(query)] = (~mask).astype(np.int64)
        found = {name: found[name] for name in self.components if name in found}
        return found, {name: self._range(name, found, columns) for name in self.components}

    def _range(self, component: Component, found: dict[Component, Array], columns: dict[str, Ingested]) -> Range:
        if component in self.ingest.dictionaries:
            return 0, self.ingest.dictionaries[component].count
        if component.tag in (Tag.NULL, Tag.SIEVE):
            return 0, int(component in found)
        if component.tag is Tag.PANE:
            return int(found[component].min()), int(found[component].max())
        low, high = component_range(found[component], columns[component.of].valid)
        # Prefixes mask an address's own bits, so its field must start at zero.
        return (min(0, low), high) if (inet6_component(component.of) in self.ingest.dictionaries) else (low, high)

    def _fit(self, ranges: dict[Component, Range], shape: Shape) -> None:
        """Make layout and shape hold this chunk, rewriting the tables if they did not."""
        # Every value met counts, also one that the present layout happens to hold: the next one must hold it too.
        self.met = union(self.met, {name: span for name, span in ranges.items() if span[0] <= span[1]})
        self.ranges = union(self.ranges if self.layout else self._expected(), self.met)
        if self.layout is not None and self.layout.holds(self.ranges) and self.shape.covers(shape):
            return
        self.shape = replace(
            self.shape, nullable=self.shape.nullable | shape.nullable, wide=self.shape.wide | shape.wide
        )
        spans = {name: self.ranges.get(name, (0, 0)) for name in self.components}
        self.layout = lay_out(spans, self.tree.widest, self.layout.places if self.layout else None)
        if self.leaves:
            self._drain()
            for leaf in self.leaves:
                leaf.rebuild(self.layout, self.shape)
        else:
            sized = zip(self.plan.relations, self._capacities(), strict=True)
            self.leaves = [Leaf(relation, self.layout, self.shape, rows) for relation, rows in sized]
        self.tree.lay_out(self.layout, self.shape, self.leaves)

    def _expected(self) -> dict[Component, Range]:
        """Ranges as in the worker's last tasks; panes go on from the first one, as many as there were."""
        found: dict[Component, Range] = {}
        for seen in _ranges_seen.get(self.plan.relations, ()):
            known = {name: span for name, span in seen.items() if name in self.components}  # others are of other plans
            for name in [name for name in known if name.tag is Tag.PANE]:
                low, high = known.pop(name)
                if name in self.met:
                    known[name] = (self.met[name][0], self.met[name][0] + high - low)
            found = union(found, known)
        return found

    def _capacities(self) -> list[int]:
        """Rows of fresh tables: as many groups as each relation had in the worker's last run, memory permitting."""
        # A little more than last time: growing by one group costs a new index.
        seen = [_groups_seen.get(relation.query, 0) * 9 // 8 for relation in self.plan.relations]
        part = min(1.0, 0.8 * self.settings.task_memory / (ROW_BYTES * max(1, sum(seen))))
        return [max(self.settings.table_rows, int(part * groups)) for groups in seen]

    def _feed_leaves(self, chunk: Chunk, masks: dict[str, Array | None]) -> None:
        """Leaves that no table feeds take the tuples themselves."""
        chosen: dict[int, Array] = {}
        for leaf in self.leaves:
            if leaf.relation in self.plan.unfed:
                mask = masks[leaf.relation.query]
                if id(mask) not in chosen:
                    chosen[id(mask)] = numbers(mask, chunk.words.shape[1])
                rows = chosen[id(mask)]
                self._absorb(leaf, chunk, rows, leaf.format.cut)

    def _absorb(self, leaf: Leaf, chunk: Chunk, rows: Array, cut: Cut) -> None:
        done, keys = 0, leaf.keys(chunk.words, rows, cut)
        while True:
            done = leaf.absorb(chunk, rows, keys, self._room, done)
            if done == len(rows):
                return
            self._write_run()

    def _room(self) -> int:
        return self.settings.task_memory - self.nbytes

    @property
    def nbytes(self) -> int:
        return sum(leaf.nbytes for leaf in self.leaves) + self.tree.nbytes + self.ingest.nbytes

    def _drain(self) -> None:
        if self.leaves:
            self.tree.drain(self.ingest.dictionaries)

    def _write_run(self) -> None:
        if not any(leaf.count for leaf in self.leaves):
            return
        for leaf in self.leaves:
            # A task's last run is often short: forget slowly.
            query = leaf.relation.query
            _groups_seen[query] = max(leaf.count, _groups_seen.get(query, 0) * 3 // 4)
            for groups in leaf.pieces(self.ingest.dictionaries):
                self.writer.add(query, groups, coarsened(leaf.relation, groups))
            leaf.restart()
        self.writer.end_run(self.ingest.dictionaries)


def run_task(
    plan: SharedPlan,
    settings: TaskSettings,
    epoch: Epoch,
    batches: Iterator[pa.RecordBatch],
    path: Path,
    before: Iterable[pa.RecordBatch] = (),
    sample: Path | None = None,
) -> TaskReport:
    """Aggregate a split into a segment at `path`.

    `before` has the times of the batch that stand before the split, where the stream has MAX AHEAD; `sample` is where
    to leave a sample of the tuples.
    """
    started = time.perf_counter()
    note_baseline()
    writer = SegmentWriter(path, settings.slots)
    lfta = Lfta(plan, settings, epoch, writer, sample)
    lfta.look_back(before)
    lfta.run(batches)
    survey = lfta.sampler.survey(plan.relations)
    if sample is not None and survey is not None:
        store(sample, survey)
    return replace(task_report(lfta), spent=Spent(time.perf_counter() - started, memory_report()))


def sampled(plan: SharedPlan, source: Source, batch_rows: int) -> Survey | None:
    """What a planner wants to know of a source's first batch."""
    writer: Any = None  # nothing is written
    lfta = Lfta(plan, TaskSettings(), Epoch(0), writer)
    names = [field.name for field in lfta.fields]
    batches = [b for split in _runs(source, batch_rows) for b in source.read(split, names, TUPLES)]
    batches = [batch for batch in batches if batch.num_rows]
    if not batches:
        return None
    alike = all(batch.schema == batches[0].schema for batch in batches)
    whole = pa.Table.from_batches(batches).combine_chunks().to_batches() if alike else batches
    return lfta.survey(max(whole, key=len))


def _runs(source: Source, batch_rows: int) -> list[Split]:
    """A few runs from all over the first batch; one from its start where that is all of it, or all that is cheap."""
    rows = min(batch_rows, source.rows())
    if rows <= TUPLES or not source.abilities.random_access:
        return [Split(START, Position(min(rows, TUPLES)))]
    run, step = TUPLES // FIRST_RUNS, rows // FIRST_RUNS
    return [Split(Position(start), Position(start + run)) for start in range(0, FIRST_RUNS * step, step)]


def task_report(lfta: Lfta) -> TaskReport:
    """What a task tells the driver; ends its segment."""
    ledger, times = lfta.selector.ledger, lfta.times
    return TaskReport(
        lfta.plan.stream.name,
        lfta.writer.close(),
        TaskAccount(ledger.stream, ledger.queries, ledger.reasons),
        {reason: tuple(rows) for reason, rows in ledger.places.items()},
        times.greatest,
        times.least,
        times.first,
        counted(lfta.tree, lfta.leaves),
        sizes(lfta.tree, lfta.leaves),
        lfta.seconds,
    )
