"""The plans of joins explained: every alternative with what it costs and keeps, as data and as text.

Costs are nanoseconds a slide of the join's window. `counted` are the same alternatives by what merge tasks of a run
counted, `measured` is what the plan that ran took (`explain --analyze`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from penstock.sharing.joins.choice import ASKED, CHEAPEST, ESTIMATED, UNKNOWN, JoinChoice
from penstock.sharing.joins.cost import PricedPlan
from penstock.sharing.joins.plans import plan_name
from penstock.sharing.joins.statistics import FREE, SHARED, JoinStatistics

Explained = dict[str, Any]
COLUMNS = ("", "early", "µs a slide", "tasks", "reading", "combining", "combinations", "state")
FIGURES = ("cost", "tasks", "rows", "combined")  # of a plan, in nanoseconds
WHY = {
    ASKED: "asked for",
    UNKNOWN: "nothing is known of its streams before it runs: what can be aggregated early is",
    ESTIMATED: "the cheapest of {} by a first sample",
    CHEAPEST: "the cheapest of {} by what was counted",
}
STORED = {FREE: "stored anyway for another query", SHARED: "stored with the states of another query"}


@dataclass(frozen=True)
class MeasuredJoin:
    """Of a run: instants that were joined, nanoseconds of tasks and of merge tasks for each, and what was counted;
    `considered` are the alternatives by that."""

    instants: int
    tasks: float
    merges: float
    statistics: JoinStatistics | None
    considered: tuple[PricedPlan, ...]


def explain_join(choice: JoinChoice, measured: MeasuredJoin | None = None) -> Explained:
    """A join as data."""
    counted = {} if measured is None else {one.early: one for one in measured.considered}
    found: Explained = {
        "query": choice.query,
        "chosen": plan_name(choice.early),
        "why": WHY[choice.why].format(len(choice.considered)),
        "sides": _sides(choice, None if measured is None else measured.statistics),
        "considered": [_plan(one, choice, counted.get(one.early)) for one in choice.considered],
    }
    if measured is not None:
        found["measured"] = {
            "instants": measured.instants,
            "cost": measured.tasks + measured.merges,
            "tasks": measured.tasks,
            "merges": measured.merges,
        }
    return found


def _sides(choice: JoinChoice, counted: JoinStatistics | None) -> list[Explained]:
    each = []
    for number, (alias, early) in enumerate(zip(choice.sides, choice.early, strict=True)):
        side: Explained = {"alias": alias, "early": early, "predicted": _side(choice.statistics, number)}
        each.append(side if counted is None else {**side, "counted": _side(counted, number)})
    return each


def _side(known: JoinStatistics | None, number: int) -> Explained | None:
    if known is None:
        return None
    side = known.sides[number]
    return {
        "records_a_slide": side.records,
        "records": side.held,
        "groups": side.groups,
        "rows_if_early": side.rows,
        "panes": side.panes,
        "stored": side.stored,
    }


def _plan(one: PricedPlan, choice: JoinChoice, counted: PricedPlan | None) -> Explained:
    found = {
        "plan": plan_name(one.early),
        "early": [alias for alias, early in zip(choice.sides, one.early, strict=True) if early],
        "chosen": one.early == choice.early,
        **_figures(one),
    }
    return found if counted is None else {**found, "counted": _figures(counted)}


def _figures(one: PricedPlan) -> Explained:
    return {**{name: getattr(one, name) for name in FIGURES}, "combinations": one.combinations, "bytes": one.bytes}


# -- as text


def plan_rows(joined: Explained) -> list[list[str]]:
    """The plans of a join with their figures, below `COLUMNS`; what was counted in a row of its own below each."""
    rows = []
    for plan in joined["considered"]:
        mark = " (chosen)" if plan["chosen"] else ""
        rows.append([plan["plan"] + mark, ", ".join(plan["early"]) or "none", *_shown(plan)])
        if "counted" in plan:
            rows.append(["  counted", "", *_shown(plan["counted"])])
    return rows


def head_lines(joined: Explained) -> Iterator[str]:
    """What was chosen and why, and what the sides hold."""
    yield f"join {joined['query']}: {joined['chosen']}, {joined['why']}"
    yield from (f"  {line}" for line in _side_lines(joined["sides"]))


def measured_lines(joined: Explained) -> Iterator[str]:
    took = joined.get("measured")
    if took is not None:
        parts = f"{_micro(took['tasks'])} in tasks and {_micro(took['merges'])} in merge tasks"
        instants = "1 instant" if took["instants"] == 1 else f"{took['instants']:,} instants"
        yield f"  measured: {_micro(took['cost'])} µs a slide, {parts}, of {instants}"


def _side_lines(sides: list[Explained]) -> Iterator[str]:
    for side in sides:
        known, counted = side["predicted"], side.get("counted")
        if known is not None:
            text = f"{side['alias']} holds {_held(known)}"
            text += f", counted {_held(counted)}" if counted else ""
            shared = STORED.get((counted or known)["stored"])
            yield text + (f"; {shared}" if shared else "")


def _held(known: Explained) -> str:
    return f"{known['records']:,.0f} records in {known['groups']:,.0f} groups"


def _shown(figures: Explained) -> list[str]:
    costs = [_micro(figures[name]) for name in FIGURES]
    return [*costs, f"{figures['combinations']:,.0f}", size(figures["bytes"])]


def _micro(nanoseconds: float) -> str:
    return f"{nanoseconds / 1000:,.0f}" if nanoseconds >= 1e5 else f"{nanoseconds / 1000:,.1f}"


def size(given: float) -> str:
    """
    >>> size(800), size(16_384), size(1_048_500), size(2_097_152)
    ('800 B', '16 KiB', '1.0 MiB', '2.0 MiB')
    """
    if given < 1024:
        return f"{given:.0f} B"
    return f"{given / 1024:.0f} KiB" if given < 1000 * 1024 else f"{given / (1 << 20):.1f} MiB"
