"""Plans of joins between batches: chosen by what was counted, changed where that pays, and stored in a new version."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from penstock.relations.relation import APPEND, EXACT
from penstock.relations.storage import side_table, sources
from penstock.runtime.planning import joins as joining
from penstock.runtime.planning.joins import JoinPlanner
from penstock.runtime.planning.replan import Planner
from penstock.sharing.explain import explain_plan
from penstock.sharing.explain_html import plan_html
from penstock.sharing.joins.asked import unpriced_choices
from penstock.sharing.joins.choice import ASKED, CHEAPEST, JoinChoice
from penstock.sharing.joins.cost import USUAL
from penstock.sharing.joins.statistics import FREE, SHARED
from penstock.sharing.joins.stored import stored_anyway
from penstock.sharing.model.unit_costs import USUAL as UNITS
from penstock.sharing.options import NONE, OFF, Planning
from penstock.sharing.plan import joins_in, unshared_plans
from penstock.state.data import from_data, to_data
from penstock.state.protocol import HeldAt, JoinCounts, SideCounts
from penstock.state.versions import Version, first_version
from support.explained_joins import chosen, join_app, joined_plan

APP = join_app()
MANY = 100_000.0


def counts(groups: float, instants: int = 20) -> JoinCounts:
    """A has so many groups, B as many as records."""
    sides = SideCounts(MANY, groups, groups, 20), SideCounts(1000, 1000, 1000, 5)
    pairs = {"00": 1e6, "01": 1e6, "10": 10 * groups, "11": 10 * groups}
    return JoinCounts("j", instants, 100, 1, True, HeldAt(1000, sides, pairs))


def planner(asked: str = "auto") -> JoinPlanner:
    return JoinPlanner(asked, lambda: (USUAL, UNITS))


def early(choices: dict[str, JoinChoice]) -> tuple[bool, ...]:
    return choices["j"].early


def test_what_is_counted_decides() -> None:
    now = planner().choices(APP)
    assert early(now) == (True, True)  # nothing is known
    found = planner().next(APP, now, [], [counts(2000)])
    assert (early(found), found["j"].why) == ((True, True), CHEAPEST)  # B has few records: no reason to change
    assert early(planner().next(APP, found, [], [counts(MANY)])) == (False, False)
    assert early(planner().next(APP, found, [], [replace(counts(MANY), held=None)])) == (True, True)


def test_a_change_must_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    now = {"j": JoinChoice("j", ("A", "B"), (True, False))}
    kept = planner().next(APP, now, [], [counts(MANY, instants=1)])
    monkeypatch.setattr(joining, "SWITCH", 1e12)
    assert early(planner().next(APP, now, [], [counts(MANY)])) == (True, False)
    monkeypatch.setattr(joining, "SWITCH", 0.0)
    assert early(planner().next(APP, now, [], [counts(MANY)])) == (False, False)
    monkeypatch.setattr(joining, "GAIN", 0.1)
    stays = planner().next(APP, now, [], [counts(MANY)])["j"]
    assert stays.early == (True, False)
    assert stays.statistics is not None  # what it costs now is known all the same
    assert kept["j"].considered


def test_a_plan_that_is_asked_for_stays() -> None:
    asked = unpriced_choices("10", APP)
    assert planner("10").next(APP, asked, [], [counts(MANY)])["j"] == asked["j"]
    assert asked["j"].why == ASKED


def version(planning: Planning) -> tuple[Planner, Version]:
    made = Planner(planning)
    made.joins = planner(planning.joins)  # costs of no machine
    return made, first_version(APP, partial(made.plans, APP), {}, planning)


@pytest.mark.parametrize("plan", ["auto", NONE])
def test_a_change_is_a_version_with_another_storage(plan: str, tmp_path: Path) -> None:
    made, first = version(Planning(plan))
    assert made.next(tmp_path, first, [], []) is None
    second = made.next(tmp_path, first, [], [counts(MANY)])
    assert second is not None
    assert (second.number, joins_in(second.plans)["j"].early) == (1, (False, False))
    sides = APP.query("j").join.sides  # type: ignore[union-attr]
    assert [side_table(one, "j", sides[0]) for one in second.storages] == [EXACT, APPEND]
    third = made.next(tmp_path, second, [], [counts(2000)])
    assert third is not None
    assert [sorted(one.storages or ()) for one in sources(third.storages, "j:A")] == [[0, 2], [1]]
    assert made.next(tmp_path, third, [], [counts(2100)]) is None
    assert from_data(Version, json.loads(json.dumps(to_data(third))), "version") == third


def test_nothing_changes_where_the_first_plan_is_kept(tmp_path: Path) -> None:
    made, first = version(Planning(replan=OFF))
    assert made.next(tmp_path, first, [], [counts(MANY)]) is None


def test_what_is_stored_tells_the_plan_where_no_plan_does(tmp_path: Path) -> None:
    """As in checkpoints of before."""
    made, first = version(Planning())
    bare = replace(first, plans=unshared_plans(APP))
    assert joins_in(bare.plans) == {}
    second = made.next(tmp_path, bare, [], [counts(MANY)])
    assert second is not None
    assert joins_in(second.plans)["j"].early == (False, False)


def test_sides_that_are_stored_for_other_queries() -> None:
    same = "CREATE QUERY q AS SELECT k, g, sum(v) AS n FROM s [RANGE '1 minute'] GROUP BY k, g;"
    other = same.replace("sum(v)", "max(v)")
    for more, expected in ((same, FREE), (other, SHARED), ("", "alone")):
        app = join_app(more)
        query = app.query("j")
        assert query.join is not None
        none = joining.side_tables(())
        assert stored_anyway(app, query, query.join, none) == (expected, "alone")
        found = planner().next(app, planner().choices(app), [], [counts(MANY)])
        assert early(found)[0] == (expected != "alone")


def test_plans_are_shown_in_notebooks() -> None:
    shown = plan_html(explain_plan(joined_plan(chosen()), None, 32))
    assert all(name in shown for name in ("plans of join j", "EAP11", "EAP10", "EAP01", "LAP"))
