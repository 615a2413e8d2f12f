"""The engine's pane-wise joins and the operator of the aggregation-join paper: equal, slide by slide.

The operator (`experiments.join`) takes one record at a time and subtracts what leaves; the engine puts windows together
from panes. At every instant AS_out must be the engine's rows, whatever its plan.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from in_process import Engine, read_output

import penstock as ps
from experiments.join.events import LANDMARK, RELATION, SLIDING, Records, TimeWindow, drawn, spans, timed_events
from experiments.join.operator import AggregationJoin, Function, JoinQuery, Plan
from penstock.runtime.planning.replan import Planner
from penstock.sharing.joins.asked import AUTO, EARLY, LATE
from penstock.sharing.options import Planning
from penstock.testing.apps.generators import Settings
from support.amounts import quick_and

SECOND = 1_000_000
START = 1_800_000_000 * SECOND  # a multiple of all slides
SPAN = 40 * SECOND
NAMES = ("sum", "avg", "min", "max")
SIDES = "ABC"

Groups = dict[tuple[int, ...], tuple[Any, ...]]


@dataclass(frozen=True)
class Case:
    """Streams, tables, their windows, and the slide."""

    seed: int
    records: tuple[Records, ...]
    windows: tuple[TimeWindow, ...]
    slide: int

    @property
    def functions(self) -> tuple[Function, ...]:
        return (Function("count"), *(Function(name, k) for k in range(len(self.records)) for name in NAMES))

    def write(self, folder: Path) -> str:
        """Files, and the app that reads them."""
        statements = []
        for side, records, window in zip(SIDES, self.records, self.windows, strict=False):
            columns = {"g": records.groups, "j": records.keys, "a": records.values}
            times = pa.array(records.times, pa.timestamp("us"))
            table = pa.table({**columns, **({} if window.kind == RELATION else {"ts": times})})
            (folder / side).mkdir(parents=True)
            pq.write_table(table, folder / side / "part.parquet", row_group_size=64)
            place = f"'parquet:{folder}/{side}'"
            if window.kind == RELATION:
                statements.append(f"CREATE TABLE s{side} FROM {place};")
            else:
                statements.append(f"CREATE STREAM s{side} FROM {place} WATERMARK ts DELAY '1 second';")
        return "\n".join([*statements, self.query()])

    def query(self) -> str:
        sides = SIDES[: len(self.records)]
        groups = ", ".join(f"{side}.g" for side in sides)
        shown = ", ".join("count(*)" if f.name == "count" else f"{f.name}({SIDES[f.stream]}.a)" for f in self.functions)
        aliases = [f"{part} AS v{i}" for i, part in enumerate(shown.split(", "))]
        keys = [f"{side}.g AS g{i}" for i, side in enumerate(sides)]
        froms = ", ".join(
            f"s{side} {_words(window, self.slide)} AS {side}" for side, window in zip(sides, self.windows, strict=True)
        )
        where = " AND ".join(f"A.j = {side}.j" for side in sides[1:])
        return (
            f"CREATE QUERY q AS SELECT {', '.join([*keys, *aliases])} FROM {froms} WHERE {where} GROUP BY {groups} "
            f"EVERY {self.slide // SECOND} SECONDS;"
        )

    def some_bits(self) -> str:
        """A plan that is neither early nor late throughout; tables have no bit."""
        streams = sum(window.kind != RELATION for window in self.windows)
        bits = [f"{number:0{streams}b}" for number in range(1, 2**streams - 1)]
        return random.Random(self.seed).choice(bits)

    def instants(self) -> Iterator[tuple[int, int]]:
        """The first, and those after it."""
        return ((t, t + self.slide) for t in range(START, START + SPAN + 20 * SECOND, self.slide))


def _words(window: TimeWindow, slide: int) -> str:
    if window.kind == SLIDING:
        return f"[RANGE '{window.length // SECOND} seconds' SLIDE '{slide // SECOND} seconds']"
    return "[WINDOW UNTIL NOW]" if window.kind == LANDMARK else ""


def random_case(seed: int, m: int) -> Case:
    rng, dice = np.random.default_rng(seed), random.Random(seed)
    slide = dice.choice([1, 2, 4]) * SECOND
    kinds = [SLIDING, *(dice.choice([SLIDING, SLIDING, LANDMARK, RELATION]) for _ in range(m - 1))]
    if kinds.count(RELATION) == m - 1:
        kinds[-1] = SLIDING  # a stream and tables are no join of windows
    windows = tuple(TimeWindow(kind, slide * dice.choice([1, 2, 3, 5])) for kind in kinds)
    keys, count = dice.choice([2, 5, 9]), 200 if m == 2 else 70
    records = []
    for window in windows:
        times = START + np.sort(rng.integers(0, SPAN, 8 if window.kind == RELATION else count))
        made = drawn(rng, times, dice.choice([1, 3, 8]), keys, dice.choice([4, 1000]))
        records.append(Records(made.times, made.groups, made.keys, made.values - 2))
    return Case(seed, tuple(records), windows, slide)


def by_operator(case: Case, plan: Plan) -> dict[int, Groups]:
    """AS_out at every instant, where it has groups."""
    times, events = timed_events(case.records, case.windows)
    query = JoinQuery(tuple(spans(case.records, case.windows)), case.functions)
    join, found = AggregationJoin(query, plan), {}
    join.run(events[times < START])
    for before, instant in case.instants():
        join.run(events[(times >= before) & (times < instant)])
        if any(window.kind == SLIDING and not size for window, size in zip(case.windows, join.sizes, strict=True)):
            assert join.groups() == {}
        if groups := join.groups():
            found[instant] = groups
    return found


def by_engine(case: Case, folder: Path, joins: str) -> dict[int, Groups]:
    app = ps.App(master="process").sql(case.write(folder / "in"))
    queries = app.query_set()
    settings = Settings(37, 2, 1 << 16, 1 << 22, 16, 64, 4)
    engine = Engine(folder, queries, app.inputs(queries).sources, settings, Planner(Planning("none", joins=joins)))
    engine.finish()
    return rows_by_instant(engine.rows("q"), len(case.records))


def rows_by_instant(rows: pa.Table | None, m: int) -> dict[int, Groups]:
    found: dict[int, Groups] = defaultdict(dict)
    assert rows is not None
    ends = rows["window_end"].cast(pa.timestamp("us")).cast(pa.int64()).to_pylist()
    groups = zip(*(rows[f"g{i}"].to_pylist() for i in range(m)), strict=True)
    values = zip(*(rows[f"v{i}"].to_pylist() for i in range(rows.num_columns - 2 - m)), strict=True)
    for end, group, value in zip(ends, groups, values, strict=True):
        assert group not in found[end]
        found[end][group] = value
    return dict(found)


def assert_equal(found: dict[int, Groups], expected: dict[int, Groups], place: str) -> None:
    assert found.keys() == expected.keys(), place
    for instant, groups in expected.items():
        assert found[instant].keys() == groups.keys(), f"{place}, instant {instant}"
        for group, values in groups.items():
            assert found[instant][group] == pytest.approx(values, rel=1e-12), f"{place}, instant {instant}, {group}"


def check(seed: int, m: int, folder: Path) -> None:
    case = random_case(seed, m)
    place = f"seed {seed}, m = {m}: {case.windows}, slide {case.slide}\n{case.query()}"
    plans: Sequence[Plan] = JoinQuery(tuple(spans(case.records, case.windows)), case.functions).plans
    expected = by_operator(case, plans[0])
    assert len(expected) > 5, place
    for plan in plans[1:]:
        assert by_operator(case, plan) == expected, place
    for joins in (AUTO, EARLY, LATE, case.some_bits()):
        assert_equal(by_engine(case, folder / joins, joins), expected, f"{place}\n{joins}")


@pytest.mark.parametrize("seed", quick_and(range(2), range(100, 160)))
def test_two_streams(seed: int, tmp_path: Path) -> None:
    check(seed, 2, tmp_path)


@pytest.mark.parametrize("seed", quick_and(range(2), range(100, 160)))
def test_three_streams(seed: int, tmp_path: Path) -> None:
    check(seed, 3, tmp_path)


@pytest.mark.parametrize("joins", quick_and([EARLY], [LATE]))
def test_with_worker_processes(joins: str, tmp_path: Path) -> None:
    case = random_case(7, 3)
    app = ps.App(master="process").sql(case.write(tmp_path / "in"))
    run = app.start(str(tmp_path / "ckpt"), output=str(tmp_path / "out"), batch_rows=50, joins=joins)
    run.await_end()
    found = rows_by_instant(read_output(tmp_path / "out" / "q"), 3)
    assert_equal(found, by_operator(case, (True, False, True)), joins)
