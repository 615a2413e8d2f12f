"""What is stored, reconsidered while a run goes on: by counters, by what was counted once, and not over and over."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.logical.query import QuerySet
from penstock.logical.resolve.app import resolve_app
from penstock.relations.relation import APPEND, Relation
from penstock.runtime.planning import replan as planners
from penstock.runtime.planning.replan import Planner
from penstock.runtime.planning.restoring import MOST_STAYS, STAYS, Stay
from penstock.runtime.task import sampling
from penstock.runtime.task.task import sampled
from penstock.sharing.model.unit_costs import USUAL
from penstock.sharing.options import Planning
from penstock.sharing.plan import unshared_plan
from penstock.sources.base import fields
from penstock.sources.registry import open_source
from penstock.state.protocol import TaskReport
from penstock.state.versions import Version, first_version
from support.reports import task_report

ROWS, TASKS, WIDE = 1_000_000, 4, "abcdefgh"
PAIRS = [one + other for place, one in enumerate(WIDE) for other in WIDE[:place]]
Groups = Callable[[Relation], float]


@pytest.fixture(autouse=True)
def same_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    """On every machine."""
    monkeypatch.setattr(planners, "calibrated", lambda: USUAL)
    monkeypatch.setattr(planners, "cache_size", lambda: 1 << 20)


@pytest.fixture
def app(tmp_path: Path) -> tuple[QuerySet, dict[str, Any]]:
    dice = np.random.default_rng(1)
    columns = {name: dice.integers(0, 10, 20_000) for name in WIDE}
    times = pa.array(np.arange(20_000) * 100, pa.timestamp("us"))
    pq.write_table(pa.table({"ts": times, **columns}), tmp_path / "in.parquet")
    text = [f"CREATE STREAM s FROM 'parquet:{tmp_path / 'in.parquet'}';"]
    for pair in PAIRS:
        listed = ", ".join(pair)
        select = f"SELECT {listed}, count(*) AS n FROM s [WINDOW '60 s'] GROUP BY {listed}"
        text.append(f"CREATE QUERY q_{pair} AS {select};")
    found = resolve_app("\n".join(text), "app.sql", lambda uri, options: fields(open_source(uri, options).schema()))
    return found, {"s": open_source(found.streams[0].source, {})}


class Run:
    """A run as a planner sees it; `groups` says how many groups a relation has in a task."""

    def __init__(self, app: QuerySet, sources: dict[str, Any], folder: Path) -> None:
        self.folder, self.planner = folder, Planner(Planning(memory=1 << 20))
        survey = sampled(unshared_plan(app, "s"), sources["s"], 1 << 20)
        assert survey is not None
        self.sample = survey
        self.version: Version = first_version(app, lambda since: {"s": unshared_plan(app, "s")}, {}, Planning())
        self.changes: list[int] = []

    def batches(self, count: int, groups: Groups) -> None:
        for number in range(count):
            plan = self.version.plans["s"]
            sampling.store(sampling.path_of(self.folder, "s"), self.sample)
            tasks = [self._report(groups) for _ in range(TASKS)]
            found = self.planner.next(self.folder, self.version, tasks)
            if found is not None:
                self.version = found
                if found.plans["s"].unions != plan.unions:
                    self.changes.append(number)

    def _report(self, groups: Groups) -> TaskReport:
        work = {}
        for one in self.version.plans["s"].relations:
            found = ROWS if one.table == APPEND else int(groups(one))
            work[one.name] = {"probes": ROWS, "groups": found, "nanoseconds": 50 * ROWS, "segment": 60 * found}
        return task_report("s", ROWS, work)

    @property
    def united(self) -> bool:
        return bool(self.version.plans["s"].unions)


@pytest.fixture
def run(app: tuple[QuerySet, dict[str, Any]], tmp_path: Path) -> Run:
    return Run(*app, tmp_path)


def hovering(pair: float, whole: float, by: float = 0.0) -> Groups:
    dice = np.random.default_rng(7)

    def groups(relation: Relation) -> float:
        found = pair if len(relation.attributes) <= 2 else whole
        return float(found * (1.0 + dice.uniform(-by, by)))

    return groups


def test_counters_bring_relations_together_and_apart(run: Run) -> None:
    """The sample knows a hundred groups of each pair; tasks count as many as records, then a few."""
    run.batches(2, hovering(700_000, 900_000))
    assert run.united
    assert run.version.storage.number == run.version.number > 0
    assert len(run.version.storages) == 2
    plan = run.version.plans["s"]
    assert sorted(one for union in plan.unions for one in union.relations) == sorted(
        one.name for one in unshared_plan(run.version.app, "s").relations
    )
    run.batches(3 * STAYS, hovering(90, 900_000))
    assert len(run.changes) == 1  # it cannot tell: what pairs have now nobody counts


def test_what_was_counted_once_is_remembered(run: Run) -> None:
    """By the sample a union has few groups. When it was tried, it had as many as records, and it is not tried again."""
    run.batches(150, hovering(100, 1_000_000))
    assert len(run.changes) <= 2
    assert not run.united or run.version.plans["s"].unions[0].table == APPEND


@pytest.mark.parametrize("pair", [1_000, 50_000, 200_000])
@pytest.mark.parametrize("whole", [1.5, 4.0])
def test_figures_that_hover_do_not_switch_back_and_forth(pair: int, whole: float, run: Run) -> None:
    run.batches(120, hovering(pair, min(ROWS, whole * pair), 0.25))
    assert len(run.changes) <= 2, run.changes


def test_stays_become_longer() -> None:
    stay, lasted = Stay({}), []
    for _ in range(8):
        lasted.append(next(n for n in range(1, 1000) if stay.over(lambda then: False)))
        stay = stay.again({})
    assert lasted == [8, 16, 32, 64, 128, 128, 128, 128]
    assert lasted[0] == STAYS
    assert lasted[-1] == MOST_STAYS
    assert Stay({}).over(lambda then: True)  # figures have changed much
