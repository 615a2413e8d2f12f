"""Closing windows in tasks: panes of many segments into the rows of every kind of window, against the oracle.

Random streams, windows, groupings and aggregates; random cuts into tasks, slots, passes and items; segments with
and without coarser levels; compacted, with panes that no open window holds left out and landmark panes gathered.
"""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from penstock.logical.expressions import Aggregate, Arithmetic, Column, Computed, Literal, Prefix
from penstock.logical.query import Field, Key, Order, OutputColumn, Query, QuerySet, Stream
from penstock.logical.types import BIGINT, DOUBLE, INET, INT, STRING, TIMESTAMP
from penstock.logical.window import ROWS, Window
from penstock.relations.relation import Relation
from penstock.runtime.batch.compaction import Keep, compact_share
from penstock.runtime.batch.compaction import _items as compaction_items
from penstock.runtime.batch.merge_job import ShareWork
from penstock.runtime.epoch import Epoch
from penstock.runtime.merge import windows as closings
from penstock.runtime.merge.items import FOREVER, Cut, due_items, row_bytes, share_out
from penstock.runtime.merge.windows import TaskSegments, window_bounds
from penstock.runtime.settings import TaskSettings
from penstock.runtime.task.task import run_task
from penstock.sharing.plan import SharedPlan, unshared_plan
from penstock.state.protocol import SegmentRef
from penstock.testing.asserts import assert_same_rows
from penstock.testing.oracle.expected import expect
from support.amounts import quick_and
from support.closed import blocks_of, closed_rows, due_of, engine_cuts, reading_of

A, B, S, I = Column("a", INT), Column("b", DOUBLE), Column("s", STRING), Column("i", INET)  # noqa: E741
STREAM = Stream("st", tuple(Field(c.name, c.type) for c in (Column("ts", TIMESTAMP), A, B, S, I)), "x", (), "ts")
NEXT = Computed("=a + 1", Arithmetic("+", A, Literal(1, INT), BIGINT), BIGINT)
COUNT = Aggregate("count", None, BIGINT)
AGGREGATES = [
    COUNT,
    Aggregate("count", A, BIGINT),
    Aggregate("sum", A, BIGINT),
    Aggregate("sum", B, DOUBLE),
    Aggregate("avg", A, DOUBLE),
    Aggregate("var_samp", B, DOUBLE),
    Aggregate("stddev_pop", A, DOUBLE),
    Aggregate("max", S, STRING),
    Aggregate("min", S, STRING),
    Aggregate("min", B, DOUBLE),
    Aggregate("max", I, INET),
    Aggregate("min", I, INET),
]
ADDRESSES = ["10.0.0.1", "10.0.1.2", "192.168.1.1", "2001:db8::1", "2001:db9::2", None]


def random_query(name: str, window: Window, rng: random.Random) -> Query:
    prefixes = [Key(f"p{n}", Prefix(I, n)) for n in (8, 24, 48, 128)]
    keys = rng.sample([Key("a", A), Key("s", S), Key("i", I), Key("c", NEXT), *prefixes], rng.randint(0, 3))
    aggregates = rng.sample(AGGREGATES, rng.randint(1, 4))
    select = [OutputColumn(key.name, key.attribute) for key in keys]
    select += [OutputColumn(f"x{i}", aggregate) for i, aggregate in enumerate(aggregates)]
    order, limit = (), None
    if rng.random() < 0.4:
        exact = [a for a in aggregates if a.type != DOUBLE or a.function == "min"] or [COUNT]
        aggregates += [a for a in exact if a not in aggregates]
        order = (Order(rng.choice(exact), rng.random() < 0.5),)
        limit = rng.choice([None, 1, 3])
    return Query(name, "st", window, None, tuple(keys), tuple(select), None, tuple(aggregates), None, order, limit)


def random_window(rng: random.Random) -> Window:
    size, slide = rng.randint(1, 300), rng.randint(1, 60)
    kind = rng.random()
    if kind < 0.4:
        return Window(size, slide)
    if kind < 0.5:
        return Window(slide, slide)
    if kind < 0.6:
        return Window(rng.randint(150, 300), 1)  # deep: coarser levels
    return Window(None, max(slide, 3)) if kind < 0.8 else Window(min(size, 90), min(slide, 40), ROWS)


def random_data(rng: random.Random, seed: int) -> pa.Table:
    dice, n = np.random.default_rng(seed), rng.choice([1, 50, 500, 2000])
    times = dice.integers(0, rng.choice([50, 200, 1000]), n) + rng.choice([-100, 0, 10**15])
    times = np.sort(times) if rng.random() < 0.5 else times
    return pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us", tz="UTC")),
            "a": pa.array(dice.integers(-3, 4, n), pa.int32(), mask=dice.random(n) < 0.1),
            "b": pa.array(dice.normal(1e6, 1, n), mask=dice.random(n) < 0.1),
            "s": pa.array([rng.choice(["", "k", "k1", "é", "z" * 40, None]) for _ in range(n)], pa.string()),
            "i": pa.array(rng.choices(ADDRESSES, k=n), pa.string()),
        }
    )


@dataclass
class Ran:
    """Tasks over all rows of a stream."""

    plan: SharedPlan
    settings: TaskSettings
    folder: Path
    references: tuple[SegmentRef, ...]
    first: int
    greatest: int
    number: int = 0

    def compact(self, rng: random.Random, keeps: dict[str, Keep]) -> None:
        opened = TaskSegments(self.folder, self.references)
        cut = [item for keep in keeps.values() for item in compaction_items(keep, opened, self.settings)]
        shares = share_out(cut, rng.randint(1, 3))
        self.number += 1
        work = ShareWork(keeps, str(self.folder), self.references, self.settings, self.number)
        self.references = tuple(compact_share(shares, work, share).segment for share in range(len(shares)))

    def close(self, query: Query, first: int, beyond: int, rng: random.Random) -> pa.Table:
        """The windows [first, beyond), in items as the engine cuts them or of any size."""
        segments, window = TaskSegments(self.folder, self.references), query.window
        last = self.greatest // window.slide if window.landmark else None
        landmark = self.first // window.slide * window.slide if window.landmark else None
        reading = reading_of(query, [self.stored_for(query)], landmark=landmark)
        due = due_of(reading, (query,), blocks_of(reading, segments), first, beyond, last)
        cut = engine_cuts(due, self.settings)
        if rng.random() < 0.5:
            limit = max(rng.choice([1, 20, 300]), int(due.rows.sum()) // 40)
            small = replace(self.settings, task_memory=limit * row_bytes(self.stored_for(query)))
            cut = [(item.names, item.cut) for item in due_items(0, due, limit, small)]
        return closed_rows(due, segments, cut)[query.name]

    def stored_for(self, query: Query) -> Relation:
        """The relation that a query closes from."""
        (reader,) = (reader for reader in self.plan.readers if reader.query == query.name)
        return self.plan.stored.of[reader.closing.relation]


def run(app: QuerySet, data: pa.Table, folder: Path, rng: random.Random) -> Ran:
    rows = data.num_rows
    settings = TaskSettings(
        chunk_rows=rng.choice([1, 7, 100]) if rows < 600 else 500,
        table_rows=4,
        task_memory=rng.choice([20_000 + 200 * rows, 10**8]),
        slots=rng.choice([1, 3, 8]),
    )
    plan = unshared_plan(app, "st", rng.choice([0, 2000]))
    edges = sorted({0, rows, *(rng.randint(0, rows) for _ in range(rng.randint(0, 3)))})
    references, first = [], None
    for start, stop in itertools.pairwise(edges):
        epoch = Epoch(0, first=first, row=start)
        batches = iter(data.slice(start, stop - start).to_batches(max_chunksize=settings.chunk_rows))
        told = run_task(plan, settings, epoch, batches, folder / f"{start}.seg")
        first = told.first
        references.append(told.segment)
    times = data["ts"].cast(pa.int64()).to_numpy()
    assert first == times[0]
    return Ran(plan, settings, folder, tuple(references), int(times[0]), int(times.max()))


def random_app(seed: int) -> tuple[random.Random, QuerySet, pa.Table]:
    rng = random.Random(seed)
    data = random_data(rng, seed)
    queries = tuple(random_query(f"q{i}", random_window(rng), rng) for i in range(4))
    return rng, QuerySet((STREAM,), queries), data


@pytest.mark.parametrize("seed", quick_and(range(20), range(20, 40)))
def test_every_window_of_every_kind(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, app, data = random_app(seed)
    few = {1: 1, 50: 7, 500: 500}.get(data.num_rows, 1 << 16)
    monkeypatch.setattr(closings, "PIECE", rng.choice([1 << 16, few]))
    ran = run(app, data, tmp_path, rng)
    if rng.random() < 0.5:
        ran.compact(rng, {r.name: Keep(r, -FOREVER, None, ran.plan.stored.reach[r.name]) for r in ran.plan.relations})
    expected = expect(app, data, [data.num_rows])
    for query in app.queries:
        got = ran.close(query, -FOREVER, FOREVER, rng)
        assert_same_rows(got, expected.rows[query.name], f"seed {seed} {query}")


@pytest.mark.parametrize("seed", quick_and(range(100, 110), range(110, 125)))
def test_open_windows_after_compaction(seed: int, tmp_path: Path) -> None:
    """Panes that no open window holds are left out, those that all coming landmark windows hold become one: what is
    still open must come out as before."""
    rng, app, data = random_app(seed)
    ran = run(app, data, tmp_path, rng)
    times = data["ts"].cast(pa.int64()).to_numpy()
    expected = expect(app, data, [data.num_rows])
    whole = replace(ran)
    place = {"time": int(times.min()), ROWS: 0}
    for _ in range(rng.randint(1, 3)):  # compacted again and again as the watermark moves
        place["time"] = rng.randint(place["time"], ran.greatest)
        place[ROWS] = rng.randint(place[ROWS], data.num_rows)
        keeps = {}
        for relation in ran.plan.relations:
            readers, reach = ran.plan.stored.reading(relation.name), ran.plan.stored.reach[relation.name]
            floors = [(r.window, r.window.first_open(place[r.window.axis]) or 0) for r in readers]
            gather = floors[0][1] if relation.landmark is not None else None
            # Relations of the first and last times serve several windows: all their panes stay.
            first = -FOREVER if gather is not None or not relation.booked else min(w.first_pane(k) for w, k in floors)
            keeps[relation.name] = Keep(relation, first, gather, reach)
        before = sum(_rows(ran, name) for name in keeps)
        ran.compact(rng, keeps)
        assert sum(_rows(ran, name) for name in keeps) <= before
    for query in app.queries:
        window = query.window
        opened = window.first_open(place[window.axis])
        assert opened is not None
        wanted = whole.close(query, opened, FOREVER, rng)
        if window.axis != ROWS:  # those are known by the times of their first and last row alone
            ends = expected.rows[query.name]["window_end"].cast(pa.int64()).to_numpy()
            still = expected.rows[query.name].filter(pa.array(ends >= window.end(opened)))
            assert_same_rows(wanted, still, f"seed {seed}, as it was {query}")
        got = ran.close(query, opened, FOREVER, rng)
        assert_same_rows(got, wanted, f"seed {seed} {query}")
        if window.landmark:
            panes = {
                int(p)
                for block in TaskSegments(tmp_path, ran.references).blocks(ran.stored_for(query).name)
                for p in block.panes
            }
            assert all(pane >= opened for pane in panes)


def _rows(ran: Ran, name: str) -> int:
    return sum(block.rows for block in TaskSegments(ran.folder, ran.references).blocks(name))


# -- details


def test_windows_of_rows_are_labelled_with_the_times_of_all_their_rows(tmp_path: Path) -> None:
    """Also of those that WHERE or a NULL keeps from the query."""
    data = pa.table(
        {
            "ts": pa.array([9, 1, 5, 7, 3, 8], pa.timestamp("us", tz="UTC")),
            "a": pa.array([1, 1, 2, 1, 2, 1], pa.int32()),
            **{name: pa.nulls(6, kind) for name, kind in (("b", pa.float64()), ("s", pa.string()), ("i", pa.string()))},
        }
    )
    count, key = (OutputColumn("n", COUNT),), (Key("a", A),)
    query = Query("q", "st", Window(4, 2, ROWS), None, key, count, None, (COUNT,), None)
    ran = run(QuerySet((STREAM,), (query,)), data, tmp_path, random.Random(1))
    bounds = window_bounds(
        reading_of(query), Cut(0, -1, 3, 0, ran.settings.slots), TaskSegments(tmp_path, ran.references)
    )
    starts, ends = bounds.of(np.array([2, -1, 0, 1, 1]))
    assert starts.tolist() == [3, 1, 1, 3, 3]
    assert ends.tolist() == [8, 9, 9, 8, 8]


def test_a_segment_is_opened_once_and_only_where_it_has_the_query(tmp_path: Path) -> None:
    segments = TaskSegments(tmp_path, [SegmentRef("gone.seg", 1, 1, {"other": (0, 1)})])
    assert list(segments.blocks("q")) == []
    assert segments.bytes_read == 0
