"""The planner of a run: plans for its streams, made again when the data change (`sharing.planner` chooses them).

    first sample ──► plans ──► version 0
    each batch: sample, counters ──► drifted? ──► cheaper plan? ──► next version

A plan is a file of the checkpoint that offsets name (`state.versions`), so it may be changed between any two
batches: a replay runs the one that its batch was decided with. Statistics live in the driver alone: a run that goes on
keeps the plan it finds and begins to gather them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path

from penstock.errors import ConfigError, PenstockError
from penstock.logical.query import QuerySet, Stream
from penstock.relations.relation import Relation
from penstock.relations.sides import SideTables
from penstock.relations.storing import Stored, stored
from penstock.relations.uniting import Union
from penstock.runtime.machine import cache_size
from penstock.runtime.planning.figures import Signature, Tasks, drift, signature, spent, taken
from penstock.runtime.planning.joins import JoinPlanner
from penstock.runtime.planning.restoring import Counted, Stay, counted_groups, made_of, moving, restated, stored_in
from penstock.runtime.planning.waiting import WORTH, left, paid
from penstock.runtime.profile.calibrate import calibrated
from penstock.runtime.profile.fitting import fitted
from penstock.runtime.profile.joined import Sampled
from penstock.runtime.profile.statistics import Known, measured_depths, rows_of
from penstock.runtime.profile.survey import Survey, with_sieves
from penstock.runtime.settings import TaskSettings
from penstock.runtime.task import sampling
from penstock.sharing import planner as sharing
from penstock.sharing.graph.lattice import lattice
from penstock.sharing.joins.cost import JoinCosts
from penstock.sharing.joins.plans import joins_of, side_tables
from penstock.sharing.model.unit_costs import Costs
from penstock.sharing.options import AUTO, EACH, NONE, OFF, ONE, Planning
from penstock.sharing.plan import SharedPlan, joins_in, running_choices, unshared_plan, with_joins
from penstock.sharing.planner import plan_stream, reprice
from penstock.sharing.unions import chosen_unions, way_behind
from penstock.sources.base import START, Source
from penstock.state.manifest import Manifest
from penstock.state.protocol import JoinCounts, Work
from penstock.state.versions import Version, restored

DRIFT = 1.25  # a figure that changes by this factor calls for a look at the plan,
STRONG = 2.0  # and by this one also where the last looks have changed nothing
MOST_REST = 16  # batches between looks that change nothing
GAIN = 0.9  # of the old cost: what a new plan must promise to stay below, and other ways to store as well
SWITCH = 5e6  # ns that a change of plans may cost: a file, and tables that get a new layout
LASTS = 8  # batches that a plan is expected to last
LOOK = 2.5e6  # ns that a look at the plan takes for each query,
LOOKING = 5e7  # and so many in any case
HOPE = 0.25  # of the part by which figures have changed: what a look may save at most
SPENT = 0.05  # of what probes take without sharing while a plan lasts: what planning again may take,
PROBE = 30e-9  # seconds each, about,
LEAST_TIME = 0.05  # and so many seconds in any case; the first plan of a run that is known to end as well
TABLES = 0.25  # of a task's memory: what the tables before the leaves may take
LEAST_TUPLES = 1_000  # of a sample, unless tasks have fewer


@dataclass
class Look:
    """When a plan was last thought about: the figures of then, and how many batches not to look again for."""

    signature: Signature
    rest: int = 0
    pause: int = 0


def _bare(kept: tuple[Relation, ...]) -> bool:
    """Whether there is nothing that a table could stand before."""
    return not any(relation.booked for relation in kept)


@dataclass(frozen=True)
class Way:
    """A plan, and nanoseconds of a record's whole way to its groups; none: nothing was known of the stream."""

    plan: SharedPlan
    cost: float

    @property
    def name(self) -> str:
        return ONE if self.plan.unions else EACH


@dataclass
class Planner:
    """`known` has the statistics of each stream, `looked` what its plan was last thought about with, `taken` the
    relations by rule when its sample was taken. `costs` are unit costs that its tasks were found to have, `counted` has
    the groups of all that was stored, `stays` since when that is stored which is. `totals` are the records that there
    were when it began, `ends` those that there are in all where a run knows that. `task_memory` is that of a task, with
    its leaves."""

    planning: Planning
    task_memory: int = TaskSettings().task_memory
    ends: Mapping[str, float] = field(default_factory=dict)
    known: dict[str, Known] = field(default_factory=dict)
    looked: dict[str, Look] = field(default_factory=dict)
    taken: dict[str, tuple[Relation, ...]] = field(default_factory=dict)
    costs: dict[str, Costs] = field(default_factory=dict)
    counted: dict[str, Counted] = field(default_factory=dict)
    stays: dict[str, Stay] = field(default_factory=dict)
    totals: dict[str, int] = field(default_factory=dict)
    joins: JoinPlanner = field(init=False)
    _rules: dict[str, tuple[int, Stored]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self.joins = JoinPlanner(self.planning.joins, _costs_of_joins)

    @property
    def memory(self) -> float:
        """The cache of a core, unless told; `auto` begins with half: leaves and records need some as well."""
        if self.planning.memory is not None:
            return self.planning.memory
        return cache_size() / 2 if self.planning.plan == AUTO else cache_size()

    @property
    def most(self) -> float:
        """What `auto` may take unless told: tables beyond the cache of a core, as long as leaves have room."""
        free = self.planning.memory is None and self.planning.plan == AUTO
        return TABLES * self.task_memory if free else 0.0

    @property
    def sampling(self) -> bool:
        """Whether tasks should leave samples."""
        return self.planning.plan != NONE and self.planning.replan != OFF

    def look(self, app: QuerySet, sources: Mapping[str, Source], batch_rows: int, parallelism: int) -> None:
        """A first sample of every source."""
        joined = {side.stream for _, join in joins_of(app) for side in join.sides}
        self.joins.parallelism = max(1, parallelism)
        for name, source in sources.items():
            if self.planning.plan == NONE and name not in joined:
                continue
            survey = sample_source(app, name, source, batch_rows)
            if survey is not None and survey.tuples:
                relations, rows = stored(app, name).relations, source.cut(START, batch_rows)  # it may end before
                tasks = max(1, parallelism)
                spans = tasks if source.abilities.random_access else 1  # else of the first records alone
                known = Known(lattice(relations), survey, max(1.0, rows / tasks), tasks=tasks, spans=spans)
                self.known[name] = known
                self.taken[name], self.totals[name] = relations, source.rows()
                self.joins.samples[name] = Sampled(relations, survey, rows, source.rows())
        if self.planning.plan != NONE or joined:
            calibrated()
        if joined:
            _costs_of_joins()

    def plans(self, app: QuerySet, since: Mapping[str, int] | None = None) -> dict[str, SharedPlan]:
        """A plan for every stream, and for every query whose results are read; `since` are the versions of the app that
        brought its queries."""
        names = dict.fromkeys(name for query in app.queries for name in query.inputs)
        choices = self.joins.choices(app)
        sides = side_tables(choices.values())
        return with_joins({name: self._plan(app, name, since or {}, sides) for name in names}, app, choices)

    def _plan(self, app: QuerySet, name: str, since: Mapping[str, int], sides: SideTables) -> SharedPlan:
        kept, known = stored(app, name, since, sides), self.known.get(name)
        if known is not None:
            known = replace(known, survey=with_sieves(known.survey, self.taken.get(name, ()), kept.relations))
        if (
            self.planning.plan == NONE
            or known is None
            or _bare(kept.relations)
            or not self._covers(known, kept.relations)
        ):
            memory = self.planning.memory or 0 if self.planning.plan == NONE else 0
            return unshared_plan(app, name, memory, since, sides)
        return self._cheapest(app.stream(name), kept, known.of(lattice(kept.relations)))

    def _cheapest(self, stream: Stream, kept: Stored, known: Known) -> SharedPlan:
        """With each relation stored by itself, or some as one."""
        asked, costs = self.planning.stored, self._costs(stream.name)
        unions = self._unions(kept, known, costs)
        each = [()] if asked == AUTO or not unions else []
        found: list[Way] = []
        behind = {ways: self._behind(stream, *stored_in(kept, ways, known)) for ways in [*each, unions]}
        for ways in sorted(behind, key=lambda one: behind[one]):
            if not found or asked != AUTO or behind[ways] < found[0].cost:  # else it is dearer whatever the tables
                found.append(self._way(stream, kept, ways, known, self.planning))
        best = min(found, key=lambda way: way.cost)
        return replace(best.plan, ways=tuple((way.name, way.cost) for way in found))

    def _unions(self, kept: Stored, known: Known, costs: Costs) -> tuple[Union, ...]:
        """Those that are asked for, or promise most; with a chooser of the papers what is stored is as they have it."""
        asked = self.planning.stored
        return () if asked == AUTO != self.planning.plan else chosen_unions(kept, asked, known, costs)

    def _way(
        self,
        stream: Stream,
        kept: Stored,
        unions: tuple[Union, ...],
        known: Known,
        planning: Planning,
        before: SharedPlan | None = None,
    ) -> Way:
        """A plan that stores these as one; `known` is of relations by rule."""
        (mine, of), costs = stored_in(kept, unions, known), self._costs(stream.name)
        total = self.totals.get(stream.name, inf)
        always = LEAST_TIME if self.ends else sharing.ALWAYS
        plan = plan_stream(stream, mine, planning, of, costs, self.memory, before, self.most, total, always)
        cost = 0.0 if plan.basis is None else plan.basis.cost
        return Way(replace(plan, unions=unions), cost + (0.0 if plan.behind is None else plan.behind.cost))

    def _behind(self, stream: Stream, kept: Stored, known: Known) -> float:
        """Nanoseconds of a record behind the leaves."""
        return way_behind(kept, known, self._costs(stream.name), stream, self.totals.get(stream.name, inf)).cost

    def _costs(self, stream: str) -> Costs:
        return self.costs.get(stream) or calibrated()

    def _covers(self, known: Known, kept: tuple[Relation, ...]) -> bool:
        """Whether the sample has all components that these relations need: not those of a query that was just added."""
        net = lattice(kept)
        needed = {part.component for grain in net.grains.values() for part in net.parts(grain)}
        return needed <= known.survey.layout.places.keys()

    def next(
        self,
        checkpoint: Path,
        version: Version,
        tasks: Tasks,
        joins: Sequence[JoinCounts] = (),
        manifest: Manifest | None = None,
        closing: Sequence[Work] = (),
    ) -> Version | None:
        """Another version with cheaper plans, if the batch just done shows that there are some; `manifest` is that of
        the batch, `joins` and `closing` what its merge tasks counted."""
        if self.planning.replan == OFF:
            return None
        switched = self._switched(version, tasks, joins, manifest)
        if switched is not None:
            return switched
        if not self.sampling:
            return None
        changed = {}
        for stream in version.app.streams:
            mine = [task for task in tasks if task.stream == stream.name]
            survey = sampling.load(sampling.path_of(checkpoint, stream.name))
            plan = version.plans[stream.name]
            if survey is None or not survey.tuples or not rows_of(mine) or _bare(plan.relations):
                continue
            more = inf if manifest is None else left(self.ends.get(stream.name, inf), manifest.offset, stream.name)
            if self.planning.plan_budget is None and not _worth_it(plan, mine, closing, more):
                continue
            better = self._better(version, plan, mine, survey, closing, more)
            if better is not None:
                changed[stream.name] = better
        if not changed:
            return None
        plans = {**version.plans, **changed}
        if any(plan.stored != version.plans[name].stored for name, plan in changed.items()):
            return restored(version, plans, manifest)
        return replace(version, number=version.number + 1, plans=plans)

    def _switched(
        self, version: Version, tasks: Tasks, joins: Sequence[JoinCounts], manifest: Manifest | None
    ) -> Version | None:
        """Another version with other plans of joins, which are stored in other ways from then on."""
        if not joins:
            return None
        before = running_choices(self.planning.joins, version.app, version.plans, version.storage)
        choices = self.joins.next(version.app, before, tasks, joins)
        changed = {name for name, choice in choices.items() if choice.early != before[name].early}
        if not changed:
            return None
        sides = side_tables(choices.values())
        streams = {side.stream for query, join in joins_of(version.app) if query.name in changed for side in join.sides}
        plans = {
            name: self._plan(version.app, name, version.since, sides) if name in streams else plan
            for name, plan in version.plans.items()
        }
        return restored(version, with_joins(plans, version.app, choices), manifest)

    def _better(
        self, version: Version, plan: SharedPlan, tasks: Tasks, survey: Survey, closing: Sequence[Work], more: float
    ) -> SharedPlan | None:
        """A better plan for the records that are left, if one shows."""
        name, rows = plan.stream.name, rows_of(tasks)
        kept = self._by_rule(version, name)
        net, survey = lattice(kept.relations), with_sieves(survey, plan.relations, kept.relations)
        known = Known(net, survey, rows, tasks=sum(1 for task in tasks if task.rows))
        if survey.tuples < min(LEAST_TUPLES, rows) or not self._covers(known, kept.relations):
            return None
        figures, stay = signature(net, survey.thinned()), self.stays.get(name)
        due = stay is not None and stay.over(lambda then: drift(then, figures) >= STRONG)
        looks = spent(tasks) / (LOOK * len(plan.relations))
        if not self._worth_a_look(name, figures, looks) and not due:
            return None
        made, groups = made_of(kept, plan.unions), counted_groups(plan, tasks)
        known = self.counted.setdefault(name, Counted()).told(known, made, groups)
        running = restated(known, made, lattice(plan.relations))
        running = replace(running, depths=measured_depths(plan, tasks, running))
        self.known[name], self.taken[name] = replace(known, depths=running.depths), kept.relations
        costs = fitted(plan, tasks, closing)
        if costs is not None:
            self.costs[name] = costs
        try:
            records = min(more, rows * len(tasks) * LASTS)
            found = self._again(plan, kept, running, tasks, stay is not None and stay.rest > 0, records)
        except ConfigError:  # more candidates than the chooser takes: at the start a user is told, now the plan stays
            return None
        if found is None:
            return None
        self.looked[name].pause = self.looked[name].rest = 0
        if found.unions != plan.unions:
            self.stays[name] = Stay(figures) if stay is None else stay.again(figures)
        return replace(found, joins=plan.joins)

    def _by_rule(self, version: Version, name: str) -> Stored:
        """What would be stored if nothing were stored as one; of 78 queries it takes 10 ms to say so."""
        if self._rules.get(name, (None,))[0] != version.number:
            sides = side_tables(joins_in(version.plans).values())
            self._rules[name] = version.number, stored(version.app, name, version.since, sides)
        return self._rules[name][1]

    def _again(
        self, plan: SharedPlan, kept: Stored, running: Known, tasks: Tasks, stays: bool, records: float
    ) -> SharedPlan | None:
        """A plan that is enough cheaper for so many records than the one that runs, with what it stores or, unless that
        `stays`, stored in another way. It takes no longer than it may, whatever is asked for: a batch waits."""
        name, planning = plan.stream.name, self.planning
        known, costs = self.known[name], self._costs(name)
        if planning.plan_budget is None:
            worth = max(LEAST_TIME, SPENT * PROBE * records * len(kept.relations))
            planning = replace(planning, plan_budget=min(sharing.BUDGET, worth))
        old = min(reprice(plan, running, costs), taken(tasks))
        behind = self._behind(plan.stream, plan.stored, running)
        if not stays:
            for way in self._other_ways(plan, kept, known, planning, old + behind, records):
                moved = moving(kept, plan, way.plan, known, costs, len(tasks))
                if planning.stored != AUTO or _pays(old + behind, way.cost, records, moved):
                    return replace(way.plan, ways=((ONE if plan.unions else EACH, old + behind), (way.name, way.cost)))
        found = self._way(plan.stream, kept, plan.unions, known, planning, plan).plan
        assert found.basis is not None
        if found.tables == plan.tables or not _pays(old, found.basis.cost, records):
            return None
        return replace(found, ways=plan.ways)

    def _other_ways(
        self, plan: SharedPlan, kept: Stored, known: Known, planning: Planning, whole: float, records: float
    ) -> Iterator[Way]:
        """Plans that store something else, the cheapest first, of those whose way behind the leaves leaves hope; for as
        long as that much is worth."""
        costs, asked = self._costs(plan.stream.name), planning.stored
        tried = dict.fromkeys([self._unions(kept, known, costs), *([()] if asked == AUTO else [])])
        tried.pop(plan.unions, None)
        budget = sharing.BUDGET if planning.plan_budget is None else planning.plan_budget
        found = []
        for unions in tried:
            least = self._behind(plan.stream, *stored_in(kept, unions, known))
            if asked != AUTO or least <= GAIN * whole:
                worth = max(LEAST_TIME / 2, SPENT * 1e-9 * (whole - least) * records)
                begins = replace(planning, plan_budget=min(budget, worth) / sharing.FIRST)  # with nothing
                found.append(self._way(plan.stream, kept, unions, known, begins))
        yield from sorted(found, key=lambda way: way.cost)

    def _worth_a_look(self, name: str, now: Signature, spent: float = inf) -> bool:
        """After the first batch, when its counters are known, and when figures have changed since the last look: much,
        or so that it may save more than it takes; `spent` is what a task takes, in looks.

        Looks that change nothing become rare, unless much has changed.
        """
        last = self.looked.get(name)
        changed = inf if last is None else drift(last.signature, now)
        if last is not None and changed < STRONG and last.rest:
            last.rest -= 1
            return False
        if changed < DRIFT or (changed < STRONG and spent * LASTS * HOPE * (1.0 - 1.0 / changed) < 1.0):
            return False
        pause = 0 if last is None else min(MOST_REST, 2 * last.pause + 1)
        self.looked[name] = Look(now, pause, pause)
        return True


def _worth_it(plan: SharedPlan, tasks: Tasks, closing: Sequence[Work], more: float) -> bool:
    """Whether a look promises to save more than it takes, of so many records that are left."""
    mine = {relation.name for relation in plan.relations}
    merged = [{name: counts for name, counts in work.items() if name in mine} for work in closing]
    each = paid(tasks, merged) / sum(task.rows for task in tasks)
    return more == inf or HOPE * each * more >= WORTH * (LOOKING + LOOK * len(plan.readers))


def _costs_of_joins() -> tuple[JoinCosts, Costs]:
    """Loaded where something is joined: what measures them loads all that joins."""
    from penstock.runtime.planning.join_costs import calibrated_joins

    return calibrated_joins(), calibrated()


def _pays(old: float, new: float, records: float, moved: float = 0.0) -> bool:
    """Whether a cost is enough below another one, for so many records, to be worth a change that costs so much more
    than another file."""
    return new <= GAIN * old and (old - new) * records >= SWITCH + moved


def sample_source(app: QuerySet, stream: str, source: Source, batch_rows: int) -> Survey | None:
    """Records of a source's first batch; None where there are none. What is wrong with it, the run will say."""
    from penstock.runtime.task.task import sampled

    try:
        return sampled(unshared_plan(app, stream).exact, source, batch_rows)
    except (OSError, PenstockError):
        return None
