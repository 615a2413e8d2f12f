"""Unit costs from counters: tasks that take so many times as long make the costs go half of the way there."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.logical.resolve.app import resolve_app
from penstock.runtime.meter import FINISH, MERGE, ROLL
from penstock.runtime.profile.fitting import MOST, factors, fitted, scaled
from penstock.runtime.profile.statistics import Known
from penstock.runtime.task.task import sampled
from penstock.sharing.graph.lattice import lattice
from penstock.sharing.model.partial_groups import Handed, behind, columns_of
from penstock.sharing.model.unit_costs import USUAL
from penstock.sharing.options import Planning
from penstock.sharing.plan import SharedPlan, unshared_plan
from penstock.sharing.planner import plan_stream
from penstock.sharing.predicted import unit_prices
from penstock.sources.base import fields
from penstock.sources.registry import open_source
from penstock.state.protocol import TaskReport, Work
from support.reports import task_report

ROWS = 100_000
KEYS = ("a", "b", "c")


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> SharedPlan:
    """A shared one, with tables."""
    path = tmp_path_factory.mktemp("data") / "in.parquet"
    columns: dict[str, Any] = {name: [(i * (7 + n)) % (50 + n) for i in range(4000)] for n, name in enumerate(KEYS)}
    pq.write_table(pa.table({"ts": pa.array(range(4000), pa.timestamp("us")), **columns}), path)
    text = f"CREATE STREAM s FROM 'parquet:{path}' WATERMARK ts DELAY '0 s';" + "".join(
        f"CREATE QUERY q{n} AS SELECT {', '.join(keys)}, count(*) AS n FROM s [RANGE '1 s'] GROUP BY {', '.join(keys)};"
        for n, keys in enumerate((("a",), ("b",), ("a", "b"), ("b", "c")))
    )
    source = open_source(f"parquet:{path}", {})
    app = resolve_app(text, "test", lambda uri, options: fields(source.schema()))
    bare = unshared_plan(app, "s")
    survey = sampled(bare, source, 4000)
    assert survey is not None
    known = Known(lattice(bare.relations), survey, float(ROWS))
    made = plan_stream(app.streams[0], bare.stored, Planning("gc"), known, USUAL, 1 << 18)
    assert made.tables
    return made


def task(plan: SharedPlan, tables: float, leaves: float, segment: float = 1.0) -> TaskReport:
    """One that takes so many times as long as its plan says."""
    assert plan.basis is not None
    units = unit_prices(plan.basis)
    work: dict[str, Mapping[str, int]] = {}
    for table in plan.tables:
        due = ROWS * units.probe[table.name] + 300 * plan.basis.costs.passing
        work[f"@{table.name}"] = {"probes": ROWS, "evictions": 200, "flushed": 100, "nanoseconds": int(tables * due)}
    for relation in plan.relations:
        due, groups = ROWS * units.insert[relation.name], 40_000
        handed = behind([Handed(relation, float(groups))], 1.0, plan.basis.costs)
        written, due = handed.segment, due + handed.fresh
        took = {"nanoseconds": int(leaves * due), "segment": int(segment * written)}
        work[relation.name] = {"probes": ROWS, "groups": groups, **took}
    return task_report("s", ROWS, work)


def test_tables_leaves_and_what_is_behind_are_told_apart(plan: SharedPlan) -> None:
    found = fitted(plan, [task(plan, 2.0, 0.5, 3.0)])
    assert found is not None
    assert found.probe_at(1 << 20) == pytest.approx(sqrt(2.0) * USUAL.probe_at(1 << 20), rel=1e-3)
    assert found.recent_at(1 << 14) == pytest.approx(sqrt(2.0) * USUAL.recent_at(1 << 14), rel=1e-3)
    assert found.passing == pytest.approx(sqrt(2.0) * USUAL.passing, rel=1e-3)
    assert found.insert_at(1 << 20) == pytest.approx(sqrt(0.5) * USUAL.insert_at(1 << 20), rel=1e-3)
    assert found.partial(4) == pytest.approx(sqrt(3.0) * USUAL.partial(4), rel=1e-3)
    assert found.fresh == pytest.approx(sqrt(0.5) * USUAL.fresh, rel=1e-3)
    assert found.fold == pytest.approx(USUAL.fold, rel=1e-3)  # twice and half as dear


def closing(plan: SharedPlan, merge: float, roll: float, finish: float) -> Work:
    """A merge task that takes so many times as long as it should for what it does."""
    first, second, costs = *plan.relations[:2], USUAL
    merged = 100_000 * costs.merge.of(columns_of(first)) + 3 * costs.merging
    rolled = 500_000 * costs.rolled.row + 200_000 * costs.rolled.column + 90_000 * costs.grouped
    rolled += 5 * costs.read + 4 * costs.coding
    finished = 400_000 * costs.finish + 1_000 * costs.shown + 7 * costs.close + 6 * costs.spelled + 500 * costs.ordered
    return {
        first.name: {"merged": 100_000, "merges": 3, "merge": int(merge * merged)},
        second.name: {
            "rolled": 500_000, "coded": 200_000, "filled": 90_000, "rollups": 5, "codings": 4,
            "roll": int(roll * rolled), "cells": 400_000, "shown": 1_000, "closed": 7, "spelled": 6, "ordered": 500,
            "finish": int(finish * finished),
        },
        "of another stream": {"merged": 10, "merges": 1, "merge": 10**12},
    }  # fmt: skip


def test_merges_roll_ups_and_results_are_told_apart(plan: SharedPlan) -> None:
    tasks, merges = [task(plan, 1.0, 1.0)], [closing(plan, 3.0, 2.0, 0.5), closing(plan, 3.0, 2.0, 0.5)]
    found = fitted(plan, tasks, [*merges, closing(plan, 90.0, 90.0, 90.0)])
    assert found is not None
    assert found.merge.of(4) == pytest.approx(sqrt(3.0) * USUAL.merge.of(4), rel=1e-3)
    for name in ("row", "column"):
        assert getattr(found.rolled, name) == pytest.approx(sqrt(2.0) * getattr(USUAL.rolled, name), rel=1e-3)
    for name in ("grouped", "read", "coding"):
        assert getattr(found, name) == pytest.approx(sqrt(2.0) * getattr(USUAL, name), rel=1e-3)
    assert found.merging == pytest.approx(sqrt(3.0) * USUAL.merging, rel=1e-3)
    for name in ("finish", "shown", "close", "spelled", "ordered"):
        assert getattr(found, name) == pytest.approx(sqrt(0.5) * getattr(USUAL, name), rel=1e-3)
    assert found.segment == USUAL.segment
    times = factors(plan, tasks, merges)
    assert (times[MERGE], times[ROLL], times[FINISH]) == pytest.approx((3.0, 2.0, 0.5), rel=1e-3)


def test_what_takes_next_to_nothing_tells_nothing(plan: SharedPlan) -> None:
    name = plan.relations[0].name
    few = {name: {"cells": 3, "finish": 10**9}}
    assert FINISH not in factors(plan, [task(plan, 1.0, 1.0)], [few])


def test_the_middle_task_counts(plan: SharedPlan) -> None:
    found = fitted(plan, [task(plan, 1.0, 1.0), task(plan, 1.0, 1.0), task(plan, 50.0, 50.0)])
    assert found is not None
    assert found.probe_at(1 << 18) == pytest.approx(USUAL.probe_at(1 << 18), rel=1e-3)


def test_a_disturbance_is_bounded(plan: SharedPlan) -> None:
    found = fitted(plan, [task(plan, 1e6, 1e6)])
    assert found is not None
    assert found.insert_at(1 << 18) == pytest.approx(sqrt(MOST) * USUAL.insert_at(1 << 18))


def test_nothing_is_told_by_nothing(plan: SharedPlan) -> None:
    assert fitted(plan, []) is None
    assert fitted(plan, [task_report("s", 10, {})]) is None


def test_costs_are_those_of_before_times_a_factor() -> None:
    assert scaled(USUAL, 1.0, 1.0, {}) == USUAL
    found = scaled(USUAL, 4.0, 1.0, {})
    assert (found.fold, found.word) == (2.0 * USUAL.fold, 2.0 * USUAL.word)
    assert found.insert == USUAL.insert
