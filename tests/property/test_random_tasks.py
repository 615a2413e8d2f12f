"""Random apps through tasks, compaction and merges alone, without Spark: many more cases in the same time.

Splits, chunks, table sizes, memory, direct-mapped fronts, slots, passes, compactions and cuts into merge items are
random; every query must equal the oracle. Nothing is late here: watermarks are the business of `test_random_apps`.
"""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from in_process import bearable

from penstock.logical.query import Query, QuerySet
from penstock.logical.resolve.app import resolve_app
from penstock.relations.relation import wanted_of
from penstock.relations.storage import StoredSource
from penstock.runtime.batch.compaction import Keep, compact_share
from penstock.runtime.batch.compaction import _items as compaction_items
from penstock.runtime.batch.job import columns
from penstock.runtime.batch.merge_job import ShareWork
from penstock.runtime.epoch import Epoch, landmark_start
from penstock.runtime.merge.all_items import items
from penstock.runtime.merge.due import due
from penstock.runtime.merge.items import (
    FOREVER,
    Cut,
    Due,
    Reading,
    Wanting,
    due_items,
    row_bytes,
    share_out,
    wanting_of,
)
from penstock.runtime.merge.rolling import passes
from penstock.runtime.merge.windows import TaskSegments
from penstock.runtime.settings import TaskSettings
from penstock.runtime.task.task import run_task
from penstock.sharing.plan import unshared_plans
from penstock.sources.base import even_splits, fields
from penstock.sources.registry import open_source
from penstock.state.protocol import SegmentRef
from penstock.state.versions import Version
from penstock.testing.apps.generators import random_case
from penstock.testing.asserts import assert_same_rows
from penstock.testing.oracle.expected import expect
from support.amounts import quick_and
from support.appended import appended
from support.closed import blocks_of, closed_rows
from support.in_unions import in_unions
from support.plans import random_plans

SEED = int(os.environ.get("PENSTOCK_SEED", "20261115"))
SLOW = 400
MOST_ITEMS = 60  # of a query, about


@dataclass
class Bench:
    """What the driver knows: segments, and the first and greatest time of every stream and every query's results."""

    folder: Path
    version: Version
    settings: TaskSettings
    rng: np.random.Generator
    references: list[SegmentRef] = field(default_factory=list)
    firsts: dict[str, int | None] = field(default_factory=dict)
    greatest: dict[str, int | None] = field(default_factory=dict)
    files: Iterator[int] = field(default_factory=itertools.count)

    def take(self, stream: str, epoch: Epoch, batches: Iterator[pa.RecordBatch]) -> None:
        """Run one task."""
        path = self.folder / f"{next(self.files)}.seg"
        told = run_task(self.version.plans[stream], self.settings, epoch, batches, path)
        self.references.append(told.segment)
        known = [t for t in (self.greatest.get(stream), told.greatest) if t is not None]
        self.greatest[stream] = max(known, default=None)
        firsts = [t for t in (self.firsts.get(stream), told.least) if t is not None]
        self.firsts[stream] = told.first if epoch.ordered else min(firsts, default=None)

    def compact(self) -> None:
        """Rewrite a random number of the newest segments."""
        at = int(self.rng.integers(0, len(self.references) + 1))
        old = self.references[at:]
        keeps = {
            relation.name: Keep(relation, -FOREVER, None, plan.stored.reach[relation.name])
            for plan in self.version.plans.values()
            for relation in plan.relations
        }
        opened = TaskSegments(self.folder, old)
        cut = [item for keep in keeps.values() for item in compaction_items(keep, opened, self.settings)]
        shares = share_out(cut, int(self.rng.integers(1, 4)))
        work = ShareWork(keeps, str(self.folder), tuple(old), self.settings, next(self.files))
        new = [compact_share(shares, work, number).segment for number in range(len(shares))]
        self.references[at:] = [segment for segment in new if segment.panes]

    def close(self, queries: tuple[Query, ...]) -> dict[str, pa.Table]:
        """All windows of the queries of a level, those together that are read together."""
        segments, found = TaskSegments(self.folder, self.references), {}
        together: dict[Reading, list[Wanting]] = {}
        for query in queries:
            reading, wanting = self.reading(query)
            together.setdefault(reading, []).append(wanting)
        for reading, same in together.items():
            greatest, last = self.greatest.get(reading.stream), None
            if reading.window.landmark:
                last = -FOREVER if greatest is None else greatest // reading.window.slide
            one = due(reading, tuple(same), blocks_of(reading, segments), -FOREVER, FOREVER, last)
            found |= closed_rows(one, segments, self.cuts(one))
        return found

    def reading(self, query: Query) -> tuple[Reading, Wanting]:
        plan, start = self.version.plans[query.stream], None
        (reader,) = (reader for reader in plan.readers if reader.query == query.name)
        if query.window.landmark:
            start = landmark_start(query.window, self.firsts.get(query.stream), None)
        read = [(StoredSource(plan.stored.of[one.relation]),) for one in (reader.closing, *reader.details)]
        wanting = wanting_of(query, wanted_of(query), read)
        return Reading(query.window, wanting.sources, query.stream, plan.stream.time, start), wanting

    def cuts(self, one: Due) -> list[tuple[tuple[str, ...], Cut]]:
        """As the engine does, with any memory, or of any size."""
        if self.rng.random() < 0.4:
            return [(item.names, item.cut) for item in items([one], self.settings, 2)]
        limit = max(int(self.rng.choice([1, 7, 50, 1000])), int(one.rows.sum()) // MOST_ITEMS)
        small = replace(self.settings, task_memory=limit * max(row_bytes(s.relation) for s in one.reading.sources))
        if self.rng.random() < 0.5:
            return [(item.names, item.cut) for item in items([one], small, int(self.rng.integers(1, 4)))]
        return [(item.names, item.cut) for item in due_items(0, one, limit, small)]


@pytest.fixture(autouse=True)
def passes_of_few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small windows have passes of all kinds."""
    monkeypatch.setattr(passes, "FEW_GROUPS", 12)
    monkeypatch.setattr(passes, "SPREAD", 1)


def everything(app: QuerySet) -> QuerySet:
    """The same app with nothing late and nothing ahead."""
    return QuerySet(tuple(replace(s, delay=None, ahead=None) for s in app.streams), app.queries)


def check(seed: int, folder: Path) -> None:
    rng = np.random.default_rng(seed)
    case = random_case(seed)
    text = case.write(folder / "in")
    app = everything(resolve_app(text, "random.sql", lambda uri, options: fields(open_source(uri, options).schema())))
    expected = expect(app, case.data, [case.data.num_rows])
    chosen = bearable(case.settings, case.data.num_rows)
    settings = TaskSettings(chosen.chunk_rows, chosen.table_rows, chosen.task_memory, chosen.slots)
    dice, plans = random.Random(seed), unshared_plans(app)
    if dice.random() < 0.5:
        plans = {name: replace(plan, stored=appended(plan.stored, dice)) for name, plan in plans.items()}
    elif dice.random() < 0.7:
        plans = {name: replace(plan, stored=in_unions(plan.stored, dice)) for name, plan in plans.items()}
    plans = random_plans(plans, dice)
    bench = Bench(folder, Version(0, app, plans, {}), settings, rng)
    (stream,) = app.streams
    source = open_source(stream.source, dict(stream.options))
    for split in even_splits(0, source.rows(), int(rng.integers(1, 6))) if source.rows() else []:
        epoch = Epoch(0, first=bench.firsts.get(stream.name), row=split.start)
        bench.take(stream.name, epoch, source.read(split, columns(bench.version.plans[stream.name]), chosen.chunk_rows))
    for level in app.levels:
        if rng.random() < 0.6:
            bench.compact()
        rows = bench.close(level)
        for query in level:
            if not query.hidden:
                assert_same_rows(
                    rows[query.name], expected.rows[query.name], f"seed {seed}, query {query.name}\n{text}"
                )
            if query.name in bench.version.plans:
                feed(bench, query, rows[query.name], int(rng.integers(1, 4)))


def feed(bench: Bench, query: Query, rows: pa.Table, tasks: int) -> None:
    """Give a query's results to the queries on them, as merge tasks do."""
    if "ts" not in rows.schema.names:
        rows = rows.append_column("ts", rows.column("window_end"))
    for split in even_splits(0, rows.num_rows, tasks) if rows.num_rows else []:
        mine = rows.slice(split.start, split.stop - split.start)
        bench.take(query.name, Epoch(0, ordered=False), iter(mine.to_batches(max_chunksize=bench.settings.chunk_rows)))


@pytest.mark.parametrize("start", quick_and([0, 20, 30], [10]))
def test_tasks_and_merges_match_the_oracle(start: int, tmp_path: Path) -> None:
    for seed in range(500 + start, 510 + start):
        check(seed, tmp_path / str(seed))


def test_a_malformed_record_alone_in_its_block_is_no_result(tmp_path: Path) -> None:
    """All rows of a merge are kept from one query of a union: a bit that never varies, and is not zero."""
    check(20261313, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, SLOW, 20))
def test_many_tasks_and_merges_match_the_oracle(start: int, tmp_path: Path) -> None:
    for seed in range(SEED + start, SEED + start + 20):
        check(seed, tmp_path / str(seed))
