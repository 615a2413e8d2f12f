"""A join with a choice made by hand, and what a run of it counted; for tests of explanations."""

from __future__ import annotations

from dataclasses import replace

from penstock.logical.query import QuerySet
from penstock.logical.resolve.app import resolve_app
from penstock.sharing.explain_joins import MeasuredJoin
from penstock.sharing.joins.choice import JoinChoice
from penstock.sharing.joins.choose import cheapest, considered
from penstock.sharing.joins.cost import USUAL
from penstock.sharing.joins.plans import plans_of
from penstock.sharing.joins.statistics import FREE, JoinStatistics, SideFigures
from penstock.sharing.model.unit_costs import USUAL as UNITS
from penstock.sharing.plan import SharedPlan, unshared_plan

STREAMS = """CREATE STREAM s (ts TIMESTAMP, k INT, g INT, v INT) FROM 'csv:s' WATERMARK ts DELAY '1 s';
CREATE STREAM t (ts TIMESTAMP, k INT, h INT) FROM 'csv:t' WATERMARK ts DELAY '1 s';
"""
JOIN = """CREATE QUERY j AS SELECT A.g, B.h, sum(A.v) AS n FROM s A [RANGE '1 minute'], t B [RANGE '1 minute']
WHERE A.k = B.k GROUP BY A.g, B.h;
"""


def join_app(more: str = "") -> QuerySet:
    return resolve_app(STREAMS + JOIN + more, "app.sql", lambda uri, options: ())


def statistics(groups: float, stored: str = "alone") -> JoinStatistics:
    """Side A has 100,000 records in so many groups, B 1,000 in 50."""
    sides = (
        SideFigures(1e5, 1e5, groups, groups, codes=20, kept=1, stored=stored),
        SideFigures(1e3, 1e3, 50, 50, codes=5),
    )
    pairs = {"00": 1e6, "01": 5e4, "10": 10 * groups, "11": groups / 2}
    return JoinStatistics(sides, pairs, 100, 1, 100, measured=True)


def chosen(groups: float = 2_000, stored: str = "alone") -> JoinChoice:
    plans = plans_of(join_app().query("j").join)  # type: ignore[arg-type]
    return cheapest(JoinChoice("j", ("A", "B"), (True, True)), plans, statistics(groups, stored), USUAL, UNITS)


def joined_plan(choice: JoinChoice) -> SharedPlan:
    return replace(unshared_plan(join_app(), "s"), joins=(choice,))


def measured_join() -> MeasuredJoin:
    """A run that counted twice as many groups."""
    known, plans = statistics(4_000, FREE), plans_of(join_app().query("j").join)  # type: ignore[arg-type]
    return MeasuredJoin(12, 1_500_000.0, 250_000.0, known, considered(plans, known, USUAL, UNITS))
