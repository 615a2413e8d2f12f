"""Explanations as data: predicted figures add up to the plan's cost, and say why a plan was taken."""

from __future__ import annotations

import json
from typing import Any

import pytest

from penstock.app.api import App
from penstock.sharing.explain import explain_plan, explained_dict
from penstock.sharing.plan import unshared_plan
from penstock.sharing.predicted import gains, predict, without_sharing
from support.explained_plans import BUCKETS, ROWS, app, shared_plan

PLAN = shared_plan()
assert PLAN.basis is not None
BASIS = PLAN.basis


def relation(explained: dict[str, Any], name: str, table: str) -> dict[str, Any]:
    return next(one for one in explained["relations"] if one["name"] == name and one["table"] == table)


def test_costs_of_the_relations_sum_up_to_that_of_the_plan() -> None:
    explained = explain_plan(PLAN, 1_000_000, 32)
    assert sum(one["predicted"]["cost"] for one in explained["relations"]) == pytest.approx(BASIS.cost)
    assert explained["cost"]["nanoseconds"] == BASIS.cost
    assert explained["cost"]["of_no_relation"] == pytest.approx(0, abs=1e-9)
    assert explained["cost"]["without_sharing"] == pytest.approx(12 * (1 + 0.5 + 1 + 1))
    assert explained["cost"]["ratio"] == pytest.approx(BASIS.cost / 42)
    assert without_sharing(shared_plan(considered=(("gc-sl", 1.0),)).basis) == pytest.approx(42)  # type: ignore[arg-type]


def test_what_leaves_a_table_reaches_all_that_it_feeds() -> None:
    explained = explain_plan(PLAN, 1_000_000, 32)
    above = relation(explained, "dst.src", "direct")["predicted"]
    down = above["evictions_per_tuple"] + above["flushed_per_task"] / ROWS
    assert above["probes_per_tuple"] == 1
    assert above["collision_rate"] == pytest.approx(above["evictions_per_tuple"])
    assert relation(explained, "talkers", "exact")["predicted"]["probes_per_tuple"] == pytest.approx(down)
    assert relation(explained, "pairs", "exact")["predicted"]["probes_per_tuple"] == pytest.approx(down / 2)
    front = relation(explained, "nets", "direct")["predicted"]
    assert front["probes_per_tuple"] == pytest.approx(down)
    passed = front["evictions_per_tuple"] + front["flushed_per_task"] / ROWS
    assert relation(explained, "nets", "exact")["predicted"]["probes_per_tuple"] == pytest.approx(passed)
    assert relation(explained, "rate", "exact")["predicted"]["probes_per_tuple"] == 1


def test_totals_are_those_of_all_rows() -> None:
    explained = explain_plan(PLAN, 1_000_000, 32)
    figures = relation(explained, "dst.src", "direct")["predicted"]
    assert figures["probes"] == 1_000_000
    assert figures["evictions"] == round(1_000_000 * figures["evictions_per_tuple"])
    assert relation(explain_plan(PLAN, None, 32), "dst.src", "direct")["predicted"]["probes"] is None


def test_relations_say_what_they_are() -> None:
    explained = explain_plan(PLAN, 1_000_000, 32)
    kinds = [(one["name"], one["kind"], one["table"], one["fed_by"], one["parent"]) for one in explained["relations"]]
    assert kinds == [
        ("dst.src", "phantom", "direct", "stream", None),
        ("nets", "front", "direct", "dst.src", 0),
        ("talkers", "query", "exact", "dst.src", 0),
        ("pairs", "query", "exact", "dst.src", 0),
        ("nets", "query", "exact", "nets", 1),
        ("rate", "query", "exact", "stream", None),
    ]
    phantom, front = explained["relations"][:2]
    assert phantom["key"] == {"columns": ["src", "dst"], "panes": ["1 min", "5 min"], "choices": ["proto = 6"]}
    assert front["key"] == {"columns": ["src/24"], "panes": ["5 min"], "choices": []}
    assert phantom["queries"] == ["talkers", "pairs", "nets"]
    assert phantom["feeds"] == ["nets", "pairs", "talkers"]
    assert [one["buckets"] for one in explained["relations"]] == [5_000, 100, 0, 0, 0, 0]
    assert [one["replacement"] for one in (phantom, front)] == ["evict", "keep"]
    assert explained["memory"] == 40 * sum(BUCKETS)
    assert json.loads(json.dumps(explained)) == explained


def test_phantoms_say_whom_they_serve_and_what_that_saves() -> None:
    (phantom,) = explain_plan(PLAN, None, 32)["phantoms"]
    assert phantom["name"] == "dst.src"
    assert phantom["queries"] == ["talkers", "pairs", "nets"]
    assert phantom["cost_if_fed_by_stream"] == pytest.approx(12 * (1 + 0.5 + 1))
    assert phantom["cost"] == pytest.approx(BASIS.cost - 12)  # all but `rate`
    assert gains(BASIS, predict(BASIS))["nets"][1] == pytest.approx(12)


REASONS = {
    "cheapest": ({}, "auto", "the cheapest of 2: 3"),
    "asked": ({}, "gc", "asked for: 3"),
    "dear": ({"cost": 84.0}, "gp", "asked for: 84.0 ns a tuple, 100 % more than 42.0 without sharing"),
    "worth too little": (
        {"chosen": "none", "cost": 42.0, "considered": (("none", 42.0), ("gc-sl", 41.0))},
        "auto",
        "gc-sl would save 2 % only: a shared plan has to promise 5 %",
    ),
    "dearer": (
        {"chosen": "none", "cost": 42.0, "considered": (("none", 42.0), ("gc-sl", 50.0), ("gc-pl", 60.0))},
        "auto",
        "no phantom pays: the cheapest plan that has any, gc-sl, costs 50.0 ns a tuple",
    ),
    "alone": ({"chosen": "none", "considered": (("none", 42.0),)}, "gc", "there is no phantom to choose"),
}


@pytest.mark.parametrize("name", REASONS)
def test_why(name: str) -> None:
    changes, asked, words = REASONS[name]
    assert explain_plan(shared_plan(**changes), None, 32, asked)["why"].startswith(words)


def test_without_knowledge_nothing_is_predicted() -> None:
    explained = explain_plan(unshared_plan(app(), "flows", 65_536), 1000, 32)
    assert "nothing is known" in explained["why"]
    assert "asked for" in explain_plan(unshared_plan(app(), "flows"), 1000, 32, "none")["why"]
    assert (explained["phantoms"], explained["considered"], explained["unit_costs"]) == ([], {}, None)
    assert explained["cost"]["nanoseconds"] is None
    assert explained["cost"]["probes_per_tuple"] is None  # what fronts pass on is not known
    assert relation(explained, "rate", "direct")["predicted"] == {"probes": None, "evictions": None, "cost": None}
    bare = explain_plan(unshared_plan(app(), "flows"), 1000, 32)
    assert [one["predicted"]["probes"] for one in bare["relations"]] == [1000] * 4
    assert bare["cost"]["probes_per_tuple"] == bare["cost"]["probes_without_sharing"] == 4


def test_one_plan_is_no_list() -> None:
    one, other = explain_plan(PLAN, 1, 32), explain_plan(PLAN, 2, 32)
    assert explained_dict([one]) is one
    assert explained_dict([one, other]) == {"streams": [one, other]}


STREAM = "CREATE STREAM s FROM 'generate:flows' WITH (rows = 20000);"
QUERIES = "".join(
    f"CREATE QUERY q{i} AS SELECT {keys}, count(*) AS n FROM s [RANGE '1 minute'] GROUP BY {keys};"
    for i, keys in enumerate(("src", "dst", "src, dst", "src, dport"))
)


@pytest.mark.parametrize("plan", ["auto", "gc", "gp"])
def test_parts_of_planned_costs_leave_little(plan: str) -> None:
    explained = App().sql(STREAM + QUERIES).explain_dict(plan=plan, memory=1 << 16)
    cost = explained["cost"]
    assert explained["task_rows"] <= 20_000
    assert abs(cost["of_no_relation"]) < 0.01 * cost["nanoseconds"]
    assert cost["probes_without_sharing"] == pytest.approx(4)
    assert all(one["predicted"]["cost"] >= 0 for one in explained["relations"])
