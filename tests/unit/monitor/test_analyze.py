"""Counters beside predictions: measured figures, unit costs by least squares, and a plan that really ran."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from penstock.app.api import App
from penstock.monitor.analyze import LEAST, measure
from penstock.runtime.batch.job import columns
from penstock.runtime.epoch import Epoch
from penstock.runtime.settings import TaskSettings
from penstock.runtime.task.task import run_task
from penstock.sharing.explain import WAY, explain_plan
from penstock.sources.base import Split
from penstock.sources.registry import open_source
from penstock.state.account import Entry, TaskAccount
from support.alone import names
from support.explained_plans import app, closing, counted, shared_plan

PLAN = shared_plan()
OF = names(app(), "flows")


def test_figures_of_tasks_are_added_up() -> None:
    found = measure(PLAN, [counted(80_000), counted(120_000), replace(counted(5_000), stream="other")])
    assert (found.rows, found.tasks) == (200_000, 2)
    phantom, talkers = found.tables["dst.src"], found.leaves[OF["talkers"]]
    assert phantom["probes"] == 200_000
    assert phantom["probes_per_tuple"] == 1
    assert phantom["evictions"] == 25_000
    assert phantom["evictions_per_tuple"] == phantom["collision_rate"] == 0.125
    assert phantom["flushed_per_task"] == 4_000
    assert phantom["nanoseconds"] == 20 * 200_000 + 30 * 25_000
    assert phantom["cost"] == pytest.approx(20 + 30 / 8)
    assert phantom["bytes"] == 1_000
    assert talkers["groups"] == 1_900
    assert talkers["probes_per_tuple"] == pytest.approx((25_000 + 8_000) / 200_000)
    assert "collision_rate" not in talkers


def test_the_cost_is_that_of_the_middle_task() -> None:
    tasks = [counted(100_000), counted(100_000), counted(100_000, c2=1_500)]
    rate = measure(PLAN, tasks).leaves[OF["rate"]]
    assert rate["cost"] == pytest.approx(15)
    assert rate["nanoseconds"] == pytest.approx(100_000 * (15 + 15 + 1_500))


def test_unit_costs_are_found_by_least_squares() -> None:
    fitted = measure(PLAN, [counted(80_000), counted(120_000), counted(50_000)]).fitted
    assert fitted is not None
    assert fitted["probe"]["cost"] == pytest.approx(20, rel=1e-3)
    assert fitted["probe"]["passing"] == pytest.approx(30, rel=1e-3)
    assert fitted["insert"]["cost"] == pytest.approx(15, rel=1e-3)
    assert fitted["ratio"] == pytest.approx(0.75, rel=1e-3)
    assert fitted["probe"]["expected"] == pytest.approx(10)
    assert fitted["insert"]["expected"] == pytest.approx(12)
    assert (fitted["probe"]["points"], fitted["insert"]["points"]) == (6, 12)
    assert fitted["probe"]["error"] < 1e-3


def test_disturbed_tasks_are_left_out_of_the_fit() -> None:
    calm = [counted(rows) for rows in (80_000, 120_000, 50_000)]
    fitted = measure(PLAN, [*calm, counted(100_000, c1=900, c2=700)]).fitted
    assert fitted is not None
    assert (fitted["probe"]["left_out"], fitted["insert"]["left_out"]) == (2, 4)
    assert fitted["insert"]["cost"] == pytest.approx(15, rel=1e-3)


def test_evictions_that_tell_nothing_are_not_fitted() -> None:
    task = counted(100_000, passing=0)
    task = replace(task, work={name: {**counts, "evictions": 0} for name, counts in task.work.items()})
    fitted = measure(PLAN, [task, task]).fitted
    assert fitted is not None
    assert fitted["probe"]["passing"] is None
    assert fitted["probe"]["cost"] == pytest.approx(20)


def test_of_few_tuples_nothing_is_fitted() -> None:
    task = counted(100)
    task = replace(task, work={n: {**c, "probes": min(c["probes"], LEAST - 1)} for n, c in task.work.items()})
    assert measure(PLAN, [task]).fitted is None


def test_parts_of_closing_are_those_of_the_middle_merge_task() -> None:
    merges = [closing(100_000), closing(100_000, 2.0), closing(100_000, 40.0), {"of another stream": {"merge": 10**9}}]
    found = measure(PLAN, [counted(100_000)], None, merges)
    each = closing(100_000, 2.0).values()
    assert found.closed["merge"] == pytest.approx(3 * sum(one["merge"] for one in each) / 100_000)
    assert found.closed["finish"] == pytest.approx(3 * sum(one["finish"] for one in each) / 100_000)
    assert found.closed["finished"] == pytest.approx(3 * 4_400 / 100_000)
    assert found.closed["roll"] == 0.0
    assert found.factors["merge"] == pytest.approx(2.0, rel=0.2)


def test_the_whole_way_is_predicted_fitted_and_counted() -> None:
    explained = explain_plan(PLAN, 100_000, 32, measured=measure(PLAN, [counted(100_000)], None, [closing(100_000)]))
    parts = explained["parts"]
    assert list(parts) == ["tables", "leaves", "segment", "merge", "roll", "finish", "total", "sink"]
    for name in ("predicted", "fitted", "counted"):
        assert parts["total"][name] == pytest.approx(sum(parts[part][name] for part in WAY))
    assert parts["tables"]["predicted"] + parts["leaves"]["predicted"] == pytest.approx(
        explained["cost"]["nanoseconds"] + explained["behind"]["fresh"]
    )
    assert parts["sink"]["counted"] == pytest.approx(0.55)
    nothing = explain_plan(replace(PLAN, basis=None, behind=None), 100_000, 32)["parts"]
    assert nothing["total"] == {"predicted": None}


def test_a_run_of_no_tuples() -> None:
    found = measure(PLAN, [replace(counted(100_000), account=TaskAccount(Entry()))])
    assert (found.rows, found.tasks, found.tables, found.leaves, found.fitted) == (0, 0, {}, {}, None)
    explained = explain_plan(PLAN, 0, 32, measured=found)
    assert explained["measured"]["cost"] == 0
    assert all(one["measured"] is None for one in explained["relations"])


def test_a_plan_without_predictions_is_measured_all_the_same() -> None:
    bare = replace(PLAN, basis=None)
    explained = explain_plan(bare, 80_000, 32, measured=measure(bare, [counted(80_000)]))
    assert explained["measured"]["fitted"]["probe"]["expected"] is None
    assert explained["relations"][0]["measured"]["probes"] == 80_000


STREAM = "CREATE STREAM s FROM 'generate:flows' WITH (rows = 60000, flow_length = 40);"
QUERIES = "".join(
    f"CREATE QUERY q{i} AS SELECT {keys}, count(*) AS n, sum(bytes) AS b FROM s [RANGE '1 hour'] GROUP BY {keys};"
    for i, keys in enumerate(("src", "dst", "src, dst", "src, dport"))
)


def test_a_real_task_beside_what_was_predicted_of_it(tmp_path: Path) -> None:
    (plan,) = App().sql(STREAM + QUERIES).plans(plan="gc", memory=1 << 17, parallelism=1)
    source = open_source(plan.stream.source, dict(plan.stream.options))
    batches = source.read(Split(0, 60_000), sorted(columns(plan)), 32_768)
    task = run_task(plan, TaskSettings(), Epoch(0), batches, tmp_path / "s")
    explained = explain_plan(plan, 60_000, 32, "gc", measure(plan, [task]))
    assert any(one["kind"] == "phantom" for one in explained["relations"])
    for number, one in enumerate(explained["relations"]):
        found, expected = one["measured"], one["predicted"]
        assert found["bytes"] > 0
        assert found["nanoseconds"] > 0
        if one["parent"] is None:
            assert found["probes"] == 60_000
            assert expected["probes"] == pytest.approx(60_000)
        else:  # everything that leaves a table reaches what it feeds: there is no filter
            above = explained["relations"][one["parent"]]["measured"]
            assert found["probes"] == above["evictions"] + above["flushed_per_task"], number
        if one["table"] == "direct":
            assert found["flushed_per_task"] <= one["buckets"]
            assert 0 <= found["collision_rate"] <= 1
        assert expected["probes"] / 4 < found["probes"] < 4 * expected["probes"], one["name"]
