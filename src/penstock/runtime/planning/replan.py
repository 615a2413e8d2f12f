"""The planner of a run: plans for its streams, made again when the data change (`sharing.planner` chooses them).

    first sample ──► plans ──► version 0
    each batch: sample, counters ──► drifted? ──► cheaper plan? ──► next version

A plan is a file of the checkpoint that offsets name (`state.versions`), so it may be changed between any two
batches: a replay runs the one that its batch was decided with. Statistics live in the driver alone: a run that goes on
keeps the plan it finds and begins to gather them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import exp, fsum, inf, log, sqrt
from pathlib import Path
from statistics import median

from penstock.errors import ConfigError, PenstockError
from penstock.logical.query import QuerySet, Stream
from penstock.relations.relation import Relation
from penstock.relations.sides import SideTables
from penstock.relations.storing import Stored, stored
from penstock.runtime.machine import cache_size
from penstock.runtime.planning.join_costs import calibrated_joins
from penstock.runtime.planning.joins import JoinPlanner
from penstock.runtime.profile.calibrate import calibrated
from penstock.runtime.profile.fitting import fitted
from penstock.runtime.profile.joined import Sampled
from penstock.runtime.profile.statistics import Known, exact_groups, measured_depths, rows_of
from penstock.runtime.profile.survey import Survey, with_sieves
from penstock.runtime.settings import TaskSettings
from penstock.runtime.task import sampling
from penstock.sharing import planner as sharing
from penstock.sharing.graph.grain import union
from penstock.sharing.graph.lattice import Lattice, lattice
from penstock.sharing.joins.plans import joins_of, side_tables
from penstock.sharing.model.unit_costs import Costs
from penstock.sharing.options import AUTO, EACH, NONE, OFF, ONE, Planning
from penstock.sharing.plan import SharedPlan, joins_in, running_choices, unshared_plan, with_joins
from penstock.sharing.planner import plan_stream, reprice
from penstock.sharing.unions import chosen_unions, stored_as, way_behind
from penstock.sources.base import Source
from penstock.state.manifest import Manifest
from penstock.state.protocol import JoinCounts, TaskReport
from penstock.state.versions import Version, restored

DRIFT = 1.25  # a figure that changes by this factor calls for a look at the plan,
STRONG = 2.0  # and by this one also where the last looks have changed nothing
MOST_REST = 16  # batches between looks that change nothing
GAIN = 0.9  # of the old cost: what a new plan must promise to stay below
SWITCH = 5e6  # ns that a change of plans may cost: a file, and tables that get a new layout
LASTS = 8  # batches that a plan is expected to last
LOOK = 2.5e6  # ns that a look at the plan takes for each query
HOPE = 0.25  # of the part by which figures have changed: what a look may save at most
FEW = 64  # groups of a sample, more or less: with the best plan as with the next best they cost nothing
TABLES = 0.25  # of a task's memory: what the tables before the leaves may take
LEAST_TUPLES = 1_000  # of a sample, unless tasks have fewer
Tasks = Sequence[TaskReport]


Signature = dict[object, float]


@dataclass
class Look:
    """When a plan was last thought about: the figures of then, and how many batches not to look again for."""

    signature: Signature
    rest: int = 0
    pause: int = 0


def _bare(kept: tuple[Relation, ...]) -> bool:
    """Whether there is nothing that a table could stand before."""
    return not any(relation.booked for relation in kept)


@dataclass
class Planner:
    """`known` has the statistics of each stream, `looked` what its plan was last thought about with, `taken` the
    relations that were stored when its sample was taken. `costs` are unit costs that its tasks were found to have.
    `task_memory` is that of a task, with its leaves."""

    planning: Planning
    task_memory: int = TaskSettings().task_memory
    known: dict[str, Known] = field(default_factory=dict)
    looked: dict[str, Look] = field(default_factory=dict)
    taken: dict[str, tuple[Relation, ...]] = field(default_factory=dict)
    costs: dict[str, Costs] = field(default_factory=dict)
    joins: JoinPlanner = field(init=False)

    def __post_init__(self) -> None:
        self.joins = JoinPlanner(self.planning.joins, lambda: (calibrated_joins(), calibrated()))

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
                relations, rows = stored(app, name).relations, min(source.rows(), batch_rows)
                self.known[name] = Known(lattice(relations), survey, max(1.0, rows / max(1, parallelism)))
                self.taken[name] = relations
                self.joins.samples[name] = Sampled(relations, survey, rows, source.rows())
        if self.planning.plan != NONE or joined:
            calibrated()
        if joined:
            calibrated_joins()

    def plans(self, app: QuerySet, since: Mapping[str, int] | None = None) -> dict[str, SharedPlan]:
        """A plan for every stream, and for every query whose results are read; `since` are the versions of the app that
        brought its queries."""
        names = dict.fromkeys(name for query in app.queries for name in query.inputs)
        choices = self.joins.choices(app)
        sides = side_tables(choices.values())
        return with_joins({name: self._plan(app, name, since or {}, sides) for name in names}, app, choices)

    def _plan(
        self,
        app: QuerySet,
        name: str,
        since: Mapping[str, int],
        sides: SideTables,
        before: SharedPlan | None = None,
    ) -> SharedPlan:
        """In place of one `before` planning takes no longer than it may, whatever is asked for: a batch waits."""
        kept, known = stored(app, name, since, sides), self.known.get(name)
        now = kept if before is None else stored_as(kept, before.unions)
        if known is not None:
            known = replace(known, survey=with_sieves(known.survey, self.taken.get(name, ()), now.relations))
        if (
            self.planning.plan == NONE
            or known is None
            or _bare(kept.relations)
            or not self._covers(known, now.relations)
        ):
            memory = self.planning.memory or 0 if self.planning.plan == NONE else 0
            return unshared_plan(app, name, memory, since, sides)
        planning = self.planning
        if before is not None and planning.plan_budget is None:
            planning = replace(planning, plan_budget=sharing.BUDGET)
        return self._cheapest(app.stream(name), kept, known, planning, before)

    def _cheapest(
        self, stream: Stream, kept: Stored, known: Known, planning: Planning, before: SharedPlan | None
    ) -> SharedPlan:
        """With each relation stored by itself, or some as one; in place of another plan, stored as there."""
        costs = self.costs.get(stream.name) or calibrated()
        if before is not None:
            ways = [before.unions]
        elif planning.plan != AUTO and planning.stored == AUTO:
            ways = [()]  # as the papers have it
        else:
            unions = chosen_unions(kept, planning.stored, known.of(lattice(kept.relations)), costs)
            ways = [unions] if planning.stored != AUTO or not unions else [(), unions]
        found: list[tuple[float, SharedPlan]] = []
        for unions in ways:
            mine = stored_as(kept, unions)
            of = replace(known, survey=with_sieves(known.survey, kept.relations, mine.relations))
            of = of.of(lattice(mine.relations))
            plan = plan_stream(stream, mine, planning, of, costs, self.memory, before, self.most)
            cost = 0.0 if plan.basis is None else plan.basis.cost
            found.append((cost + way_behind(mine, of, costs), replace(plan, unions=unions)))
        priced = tuple((ONE if plan.unions else EACH, cost) for cost, plan in found)
        best = min(found, key=lambda pair: pair[0])[1]
        return replace(best, ways=priced if before is None else before.ways)

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
    ) -> Version | None:
        """Another version with cheaper plans, if the batch just done shows that there are some; `manifest` is that of
        the batch, `joins` what its merge tasks counted."""
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
            if survey is None or not survey.tuples or not rows_of(mine) or _bare(version.plans[stream.name].relations):
                continue
            better = self._better(version, version.plans[stream.name], mine, survey)
            if better is not None:
                changed[stream.name] = better
        if not changed:
            return None
        return replace(version, number=version.number + 1, plans={**version.plans, **changed})

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

    def _better(self, version: Version, plan: SharedPlan, tasks: Tasks, survey: Survey) -> SharedPlan | None:
        name, net = plan.stream.name, lattice(plan.relations)
        rows = rows_of(tasks)
        if survey.tuples < min(LEAST_TUPLES, rows) or not self._covers(Known(net, survey, rows), plan.relations):
            return None
        if not self._worth_a_look(
            name, _signature(net, survey.thinned()), _spent(tasks) / (LOOK * len(plan.relations))
        ):
            return None
        sampled = Known(net, survey, rows, exact_groups(net, tasks))
        known = replace(sampled, depths=measured_depths(plan, tasks, sampled))
        self.known[name], self.taken[name] = known, plan.relations
        costs = fitted(plan, tasks)
        if costs is not None:
            self.costs[name] = costs
        try:
            sides = side_tables(joins_in(version.plans).values())
            found = replace(self._plan(version.app, name, version.since, sides, plan), joins=plan.joins)
        except ConfigError:  # more candidates than the chooser takes: at the start a user is told, now the plan stays
            return None
        old = min(reprice(plan, known, self.costs.get(name) or calibrated()), _taken(tasks))
        assert found.basis is not None
        gain = old - found.basis.cost
        if found.tables == plan.tables or found.basis.cost > GAIN * old or gain * rows * len(tasks) * LASTS < SWITCH:
            return None
        self.looked[name].pause = self.looked[name].rest = 0
        return found

    def _worth_a_look(self, name: str, now: Signature, spent: float = inf) -> bool:
        """After the first batch, when its counters are known, and when figures have changed since the last look: much,
        or so that it may save more than it takes; `spent` is what a task takes, in looks.

        Looks that change nothing become rare, unless much has changed.
        """
        last = self.looked.get(name)
        drift = inf if last is None else _drift(last.signature, now)
        if last is not None and drift < STRONG and last.rest:
            last.rest -= 1
            return False
        if drift < DRIFT or (drift < STRONG and spent * LASTS * HOPE * (1.0 - 1.0 / drift) < 1.0):
            return False
        pause = 0 if last is None else min(MOST_REST, 2 * last.pause + 1)
        self.looked[name] = Look(now, pause, pause)
        return True


def _spent(tasks: Tasks) -> float:
    """Nanoseconds of a task in tables and leaves."""
    spent = [float(counts["nanoseconds"]) for task in tasks for counts in task.work.values()]
    return sum(spent) / max(1, len(tasks))


def _taken(tasks: Tasks) -> float:
    """Nanoseconds a record in tables and leaves, of the middle task: a plan that is cheaper than its price stays."""
    each = [sum(counts["nanoseconds"] for counts in task.work.values()) / task.rows for task in tasks if task.rows]
    return float(median(each)) if each else inf


def _signature(net: Lattice, survey: Survey) -> Signature:
    """Groups in the sample, of the queries and of the finest of all phantoms, and how long flows of many groups are."""
    grains = dict.fromkeys((*net.grains.values(), union(*net.grains.values())))
    groups = {grain: survey.counted(grain, net).groups for grain in grains}
    lengths: Signature = {(grain, "length"): survey.length(grain, net) for grain in grains if groups[grain] > FEW}
    return lengths | {grain: float(FEW + count) for grain, count in groups.items()}


def _drift(before: Signature, now: Signature) -> float:
    """By which factor figures have changed since then, in the mean square: of many, some always have."""
    changes = [abs(log(now[key] / before[key])) for key in now if key in before]
    return exp(sqrt(fsum(change**2 for change in changes) / len(changes))) if changes else 1.0


def sample_source(app: QuerySet, stream: str, source: Source, batch_rows: int) -> Survey | None:
    """Records of a source's first batch; None where there are none. What is wrong with it, the run will say."""
    from penstock.runtime.task.task import sampled

    try:
        return sampled(unshared_plan(app, stream).exact, source, batch_rows)
    except (OSError, PenstockError):
        return None
