"""Whether a run is long enough to be planned for: known before it by its records, later by what batches took."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import Any

import pytest

from penstock.logical.query import Field, QuerySet
from penstock.logical.resolve.app import resolve_app
from penstock.logical.types import INT, TIMESTAMP
from penstock.runtime.batch.job import END, STOPPED
from penstock.runtime.planning.planners import Unplanned, planner_of
from penstock.runtime.planning.replan import Planner
from penstock.runtime.planning.waiting import LEAST, Waiting, ends_of, paid, promise
from penstock.sharing.options import EACH, NONE, OFF, Planning
from penstock.sources.base import OF_FILES, Abilities
from penstock.state.manifest import Manifest, first_manifest
from penstock.state.protocol import Offset, TaskReport
from penstock.state.versions import Version, first_version
from support.alone import read_names
from support.reports import task_report

MANY = 100_000_000
FIELDS = (Field("ts", TIMESTAMP), *(Field(name, INT) for name in "abcdef"))
PAIRS = ("ab", "bc", "cd", "de", "ef", "ac", "bd", "ce", "df", "ad", "be", "cf")


def app_of(pairs: tuple[str, ...] = PAIRS, more: str = "") -> QuerySet:
    text = ["CREATE STREAM s FROM 'csv:s.csv' WATERMARK ts DELAY '1 s';", more]
    for one, other in pairs:
        listed = f"{one}, {other}"
        text.append(
            f"CREATE QUERY q_{one}{other} AS SELECT {listed}, count(*) AS n FROM s [RANGE '1 s'] GROUP BY {listed};"
        )
    return resolve_app("\n".join(text), "app.sql", lambda uri, options: FIELDS)


def waits(*about: Any) -> bool:
    return promise(*about) < 1.0


def at(row: int) -> Manifest:
    """After a batch that ended there."""
    return replace(first_manifest(), offset=Offset().moved("s", row))


def task(app: QuerySet, rows: int, each: int) -> TaskReport:
    """A task whose relations took so many nanoseconds a record each."""
    work = {"probes": rows, "groups": 10, "nanoseconds": each * rows}
    return task_report("s", rows, dict.fromkeys(read_names(app, "s").values(), work))


@dataclass
class Told:
    """A planner that is asked for another version."""

    planning: Planning = field(default_factory=Planning)
    sampling: bool = True
    asked: list[int] = field(default_factory=list)

    def look(self, *about: Any) -> None:
        raise AssertionError("it has samples of tasks")

    def plans(self, *about: Any) -> dict[str, Any]:
        self.asked.append(0)
        return {}

    def next(self, checkpoint: Path, version: Version, *about: Any) -> Version | None:
        self.asked.append(version.number)
        return None


def test_short_runs_wait_and_long_ones_do_not() -> None:
    app, none = app_of(), Offset()
    assert waits(Planning(), app, {"s": 10_000}, none)
    assert not waits(Planning(), app, {"s": MANY}, none)
    assert waits(Planning(), app, {"s": MANY}, none.moved("s", MANY - 10_000))  # it goes on near the end
    assert not waits(Planning(), app, {"s": inf}, none)  # there is no end
    assert not waits(Planning(), app, {}, none)  # nor is one known


def test_more_queries_wait_for_fewer_records() -> None:
    """What sharing may save grows with the relations; a single one has nothing to share."""

    def least(app: QuerySet) -> int:
        return next(1 << n for n in range(40) if not waits(Planning(), app, {"s": 1 << n}, Offset()))

    found = [least(app_of(PAIRS[:count])) for count in (2, 4, 12)]
    assert sorted(found, reverse=True) == found
    assert found[0] > found[-1]
    assert waits(Planning(), app_of(PAIRS[:1]), {"s": MANY}, Offset())


@pytest.mark.parametrize(
    "asked",
    [
        Planning("gc"), Planning(stored=EACH), Planning(memory=1 << 16), Planning(replan=OFF), Planning(tables="lru"),
        Planning(plan_budget=0.1),
    ],
)  # fmt: skip
def test_what_is_asked_for_is_done(asked: Planning) -> None:
    assert not waits(asked, app_of(), {"s": 10}, Offset())


def test_joins_are_planned_at_once() -> None:
    other = "CREATE STREAM t FROM 'csv:t.csv' WATERMARK ts DELAY '1 s'; CREATE QUERY j AS SELECT A.a, count(*) AS n "
    join = "FROM s A [RANGE '1 s'] JOIN t B [RANGE '1 s'] ON A.b = B.b GROUP BY A.a;"
    assert not waits(Planning(), app_of(more=other + join), {"s": 10, "t": 10}, Offset())


def test_who_plans() -> None:
    app = app_of()
    assert isinstance(planner_of(Planning(NONE), app, ends={"s": 10}), Unplanned)
    assert isinstance(planner_of(Planning(), app, ends={"s": 10}), Unplanned)
    least = next(1 << n for n in range(40) if promise(Planning(), app, {"s": 1 << n}, Offset()) >= LEAST)
    assert isinstance(planner_of(Planning(), app, ends={"s": least}), Waiting)
    assert isinstance(planner_of(Planning(), app, ends={"s": MANY}), Planner)
    assert isinstance(planner_of(Planning(), app, ends={"s": 1000}, batch_rows=250), Unplanned)
    assert isinstance(planner_of(Planning(), app, ends={"s": 1000}, batch_rows=200), Planner)
    assert isinstance(planner_of(Planning(), app), Planner)  # to explain a plan there must be one


def test_nobody_looks_at_a_short_run_but_equal_panes_are_one() -> None:
    """Four relations or more; those of other panes, joins and landmark windows have a leaf each."""
    app = app_of(PAIRS[:4], "CREATE QUERY slow AS SELECT a, count(*) AS n FROM s [RANGE '2 s'] GROUP BY a;")
    planner = planner_of(Planning(), app, ends={"s": 10})
    (plan,) = planner.plans(app).values()
    (union,) = plan.unions
    assert len(union.relations) == 4
    assert len(plan.relations) == 2
    assert not plan.tables
    (few,) = planner.plans(app_of(PAIRS[:3])).values()
    assert (len(few.unions), len(few.relations)) == (0, 3)
    (alone,) = planner_of(Planning(NONE), app, ends={"s": 10}).plans(app).values()
    assert (len(alone.unions), len(alone.relations)) == (0, 5)


def test_the_planner_comes_when_batches_take_long_enough(tmp_path: Path) -> None:
    app, told, loaded = app_of(), Told(), list[int]()
    waiting = Waiting(Planning(), {"s": 1_000_000}, lambda: loaded.append(1) or told)  # type: ignore[func-returns-value]
    waiting.look(app, {}, 1000, 2)
    version = first_version(app, lambda since: waiting.plans(app, since), {}, Planning())
    plan = version.plans["s"]
    assert not plan.tables
    assert plan.basis is None
    assert waiting.sampling  # the planner will have no other sample
    for took, row in ((20, 100_000), (20_000, 1_000_000)):  # quick ones; slow ones, but nothing is left
        assert waiting.next(tmp_path, version, [task(app, 100_000, took)], manifest=at(row)) is None
    assert not loaded
    waiting.next(tmp_path, version, [task(app, 100_000, 2_000)], manifest=at(100_000))
    waiting.next(tmp_path, version, [], manifest=at(200_000))
    assert loaded == [1]
    assert told.asked == [version.number, version.number]
    assert waiting.plans(app) == {}  # those of an app that is changed from now on


def test_a_batch_without_records_says_nothing(tmp_path: Path) -> None:
    app = app_of()
    waiting = Waiting(Planning(), {"s": MANY}, Told)
    version = first_version(app, lambda since: waiting.plans(app, since), {}, Planning())
    assert waiting.next(tmp_path, version, [], manifest=at(0)) is None
    assert waiting.begun is None


def test_what_depends_on_the_plan_is_what_counts() -> None:
    app = app_of(PAIRS[:2])
    mine = task(app, 10, 3)
    assert paid([mine], []) == 2 * 30
    closing = [{"r": {"merge": 5, "roll": 7, "finish": 100, "merged": 3}}]
    assert paid([mine, mine], closing) == 4 * 30 + 12


@dataclass(frozen=True)
class Ten:
    """A source of ten records."""

    abilities: Abilities

    def rows(self) -> int:
        return 10


@pytest.mark.parametrize(
    ("abilities", "until", "end"),
    [
        (OF_FILES, END, 10),
        (OF_FILES, STOPPED, inf),
        (replace(OF_FILES, grows=False), STOPPED, 10),
        (replace(OF_FILES, live=True), END, inf),
    ],
)
def test_where_streams_end(abilities: Abilities, until: str, end: float) -> None:
    sources: dict[str, Any] = {"s": Ten(abilities)}
    assert ends_of(sources, until) == {"s": end}
