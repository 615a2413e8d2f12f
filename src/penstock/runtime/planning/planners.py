"""Who plans for a run: a planner that looks at the data, or none.

A run without shared plans loads nothing of what chooses them: that is most of what a short query would wait for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Protocol

from penstock.logical.query import QuerySet
from penstock.logs import tell
from penstock.relations.relation import APPEND
from penstock.relations.uniting import Union
from penstock.runtime.batch.held import Held
from penstock.runtime.batch.live.patience import PLANNING, Patience
from penstock.runtime.batch.report import BatchReport
from penstock.runtime.settings import TaskSettings
from penstock.sharing.joins.asked import unpriced_choices
from penstock.sharing.joins.choice import JoinChoice
from penstock.sharing.joins.plans import joins_of, plan_name, side_tables
from penstock.sharing.options import AUTO, NONE, Planning
from penstock.sharing.plan import SharedPlan, joins_in, running_choices, united_plans, unshared_plans, with_joins
from penstock.sources.base import Source
from penstock.state.manifest import Manifest
from penstock.state.protocol import JoinCounts, Offset, TaskReport, Work
from penstock.state.versions import Version

DEAR = 16  # queries: from so many on looks have to be paid for by what is left to read


class RunPlanner(Protocol):
    """Makes plans before the first batch, and better ones after later batches."""

    planning: Planning

    @property
    def sampling(self) -> bool:
        """Whether tasks should leave samples."""
        ...

    def look(self, app: QuerySet, sources: Mapping[str, Source], batch_rows: int, parallelism: int) -> None:
        """See what the sources are like."""
        ...

    def plans(self, app: QuerySet, since: Mapping[str, int] | None = None) -> dict[str, SharedPlan]:
        """A plan for every stream, and for every query whose results are read; `since` are the versions of the app that
        brought its queries."""
        ...

    def next(
        self,
        checkpoint: Path,
        version: Version,
        tasks: Sequence[TaskReport],
        joins: Sequence[JoinCounts] = (),
        manifest: Manifest | None = None,
        closing: Sequence[Work] = (),
    ) -> Version | None:
        """Another version with cheaper plans, if the batch just done shows that there are some; `manifest` is that of
        the batch, `joins` and `closing` what its merge tasks counted."""
        ...


@dataclass
class Unplanned:
    """Every relation has a leaf of its own, or those of the same panes have one together (`united`), whatever the data
    are like."""

    planning: Planning
    sampling: bool = False
    united: bool = False

    def look(self, app: QuerySet, sources: Mapping[str, Source], batch_rows: int, parallelism: int) -> None:
        """Nothing depends on them."""

    def plans(self, app: QuerySet, since: Mapping[str, int] | None = None) -> dict[str, SharedPlan]:
        choices = unpriced_choices(self.planning.joins, app)
        memory, sides = self.planning.memory or 0, side_tables(choices.values())
        made = united_plans(app, since, sides) if self.united else unshared_plans(app, memory, since, sides)
        return with_joins(made, app, choices)

    def next(
        self,
        checkpoint: Path,
        version: Version,
        tasks: Sequence[TaskReport],
        joins: Sequence[JoinCounts] = (),
        manifest: Manifest | None = None,
        closing: Sequence[Work] = (),
    ) -> Version | None:
        return None


def planner_of(
    planning: Planning,
    app: QuerySet,
    task_memory: int = TaskSettings().task_memory,
    ends: Mapping[str, float] | None = None,
    read: Offset | None = None,
    batch_rows: float = inf,
) -> RunPlanner:
    """The one that can do what is asked, for tasks that may take so much memory. In a run over streams of so many
    records, of which this much is read, it may wait until there is enough to plan for, if those are few batches."""
    if planning.plan == NONE and (planning.joins != AUTO or not joins_of(app)):
        return Unplanned(planning)

    def load() -> RunPlanner:
        from penstock.runtime.planning.replan import Planner

        # Looks at the plans of few queries are cheap, and taken whatever is left to read.
        return Planner(planning, task_memory, ends if ends and len(app.queries) >= DEAR else {})

    if ends:
        from penstock.runtime.planning.waiting import LEAST, Waiting, promise, short

        promised = promise(planning, app, ends, read or Offset())
        if promised < 1.0 and short(ends, read or Offset(), batch_rows):
            return Waiting(planning, ends, load) if promised >= LEAST else Unplanned(planning, united=True)
    return load()


@dataclass(frozen=True)
class Replanning:
    """Observes batches, and changes the plans of the app where better ones show."""

    planner: RunPlanner
    held: Held
    patience: Patience = field(default_factory=Patience)

    def __call__(self, report: BatchReport, manifest: Manifest) -> None:
        """Unless somebody is changing the app just now, or has since the batch was decided: its counters belong to
        other plans."""
        held = self.held
        if not self.patience.has_time(PLANNING, manifest.offset.slack):
            return
        if held.changing.acquire(blocking=False):
            try:
                version = held.version
                if manifest.ended or version.number != manifest.offset.plan:
                    return
                with self.patience.timed(PLANNING):
                    better = self.planner.next(held.path, version, report.tasks, report.joins, manifest, report.closing)
                if better is not None:
                    held.amend(better)
                    _tell(report.batch, version, better)
            finally:
                held.changing.release()


def _tell(batch: int, old: Version, new: Version) -> None:
    _tell_joins(batch, old, new)
    for name, plan in new.plans.items():
        last = old.plans[name]
        before, now = last.configuration, plan.configuration
        if plan.tables != last.tables or plan.unions != last.unions:
            stored = "" if plan.unions == last.unions else f", {_stored_as(plan)} ({_stored_as(last)} before)"
            text = f"plan {new.number} of stream {name} from the next batch on: {now} (was {before}){stored}"
            tell("replan", text, batch=batch, stream=name, plan=new.number, configuration=now, before=before)


def _stored_as(plan: SharedPlan) -> str:
    """How many relations are stored as one, for people."""
    if not plan.unions:
        return "each relation stored by itself"
    parts = (f"{len(one.relations)} relations stored as one of {_tables(one)}" for one in plan.unions)
    return " and ".join(parts)


def _tables(union: Union) -> str:
    return "rows" if union.table == APPEND else "groups"


def _tell_joins(batch: int, old: Version, new: Version) -> None:
    known = running_choices(AUTO, old.app, old.plans, old.storage)
    for name, choice in joins_in(new.plans).items():
        before, now = plan_name(known[name].early), plan_name(choice.early)
        if before != now:
            costs = [_told_cost(choice, plan) for plan in (before, now)]
            text = f"plan {new.number} of join {name} from the next batch on: {now}{costs[1]} (was {before}{costs[0]})"
            tell("replan", text, batch=batch, join=name, plan=new.number, configuration=now, before=before)


def _told_cost(choice: JoinChoice, plan: str) -> str:
    cost = next((one.cost for one in choice.considered if plan_name(one.early) == plan), None)
    return "" if cost is None else f", {cost / 1e6:.3g} ms a slide"
