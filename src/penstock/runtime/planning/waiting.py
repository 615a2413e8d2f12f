"""A planner that waits until there is enough to plan for: a run of a second is over before a plan has paid for itself.

    records that streams still have × what sharing may save of each ──► worth what planning takes?
      before the run: by the number of relations      │ yes
      after each batch: by what it took               ▼
                                        the planner, with the samples that tasks left

Until then relations are stored as a look at the queries alone says (`sharing.plan.united_plans`). A stream that does
not end is planned for at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path

from penstock.logical.query import QuerySet
from penstock.relations.storing import stored
from penstock.runtime.batch.job import STOPPED
from penstock.runtime.meter import MERGE, ROLL
from penstock.runtime.planning.planners import RunPlanner, Unplanned
from penstock.sharing.joins.plans import joins_of
from penstock.sharing.options import AUTO, Planning
from penstock.sharing.plan import SharedPlan
from penstock.sources.base import Source
from penstock.state.manifest import Manifest
from penstock.state.protocol import JoinCounts, Offset, TaskReport, Work
from penstock.state.versions import Version

RECORD = 30.0  # ns that a record takes of each relation, before there is anything to go by
PART = 0.5  # of what relations take without sharing: what is saved of many, where much is;
FEW = 4.0  # and of so many half of that: a table that feeds all of them costs as much as some by themselves
LOADED = 2.5e8  # ns that it takes to load the planner, to sample the sources and to plan,
EACH = 2.5e6  # and so many for each relation
WORTH = 2.0  # times as much as planning takes: what it should promise;
LEAST = 0.25  # of that it must promise to be waited for: tasks leave samples meanwhile, 3 ms a batch
FEW_BATCHES = 4  # after so many a run is over before its data can have changed much


@dataclass
class Waiting:
    """`ends` are the records that each stream has, `load` makes the planner that is waited with."""

    planning: Planning
    ends: Mapping[str, float]
    load: Callable[[], RunPlanner]
    sampling: bool = True
    begun: RunPlanner | None = field(default=None, init=False)

    def look(self, app: QuerySet, sources: Mapping[str, Source], batch_rows: int, parallelism: int) -> None:
        """Nothing depends on them as yet."""

    def plans(self, app: QuerySet, since: Mapping[str, int] | None = None) -> dict[str, SharedPlan]:
        return (self.begun or Unplanned(self.planning, united=True)).plans(app, since)

    def next(
        self,
        checkpoint: Path,
        version: Version,
        tasks: Sequence[TaskReport],
        joins: Sequence[JoinCounts] = (),
        manifest: Manifest | None = None,
        closing: Sequence[Work] = (),
    ) -> Version | None:
        if self.begun is None and self._pays(version, tasks, manifest, closing):
            self.begun = self.load()
        return None if self.begun is None else self.begun.next(checkpoint, version, tasks, joins, manifest, closing)

    def _pays(
        self, version: Version, tasks: Sequence[TaskReport], manifest: Manifest | None, closing: Sequence[Work]
    ) -> bool:
        """Whether what is left to read will take so long that planning may spare more than it takes."""
        if manifest is None or joins_of(version.app):  # joins may have been added
            return True
        rows = sum(task.rows for task in tasks)
        more = sum(left(end, manifest.offset, name) for name, end in self.ends.items())
        relations = sum(len(plan.relations) for plan in version.plans.values())
        return rows > 0 and hope(relations) * paid(tasks, closing) * more / rows >= WORTH * price(relations)


def ends_of(sources: Mapping[str, Source], until: str) -> dict[str, float]:
    """The records that each stream has in all; of one that does not come to an end in this run, any number."""

    def endless(source: Source) -> bool:
        return source.abilities.live or (source.abilities.grows and until == STOPPED)

    return {name: inf if endless(source) else source.rows() for name, source in sources.items()}


def paid(tasks: Iterable[TaskReport], closing: Iterable[Work]) -> float:
    """Nanoseconds of a batch that depend on its plan: of tables, leaves and segments, of merging and rolling up."""
    works = [(("nanoseconds", "segment"), [task.work for task in tasks]), ((MERGE, ROLL), closing)]
    return float(sum(c.get(part, 0) for parts, each in works for work in each for c in work.values() for part in parts))


def short(ends: Mapping[str, float], read: Offset, batch_rows: float) -> bool:
    """Whether what is left are so few batches that data can hardly change on the way: who reads in small batches wants
    plans that follow the data."""
    return all(left(end, read, name) <= FEW_BATCHES * batch_rows for name, end in ends.items())


def left(end: float, read: Offset, stream: str) -> float:
    """Records that a stream still has."""
    return max(0.0, end - read.stream(stream).row)


def hope(relations: int) -> float:
    """The part of what they take that another plan may save."""
    return PART * relations / (relations + FEW)


def price(relations: int) -> float:
    """Nanoseconds that planning takes."""
    return LOADED + EACH * relations


def promise(planning: Planning, app: QuerySet, ends: Mapping[str, float], read: Offset) -> float:
    """What a plan promises to save in a run that begins where this much is read, in parts of what it should. What is
    asked for is done, and a plan that is to stay is made at once; plans of joins are another matter."""
    streams = [stream.name for stream in app.streams]
    if planning != Planning(AUTO, joins=planning.joins) or joins_of(app) or not ends.keys() >= set(streams):
        return inf
    saved, every = 0.0, 0
    for name in streams:
        relations = sum(one.booked for one in stored(app, name).relations)
        every += relations
        if relations > 1:
            saved += hope(relations) * RECORD * relations * left(ends[name], read, name)
    return saved / (WORTH * price(every))
