"""Plans: the relations of a stream that are stored, how queries close from them, and the tables before them.

A plan is data: frozen, small, and independent of the packed layout, which each task makes from the values it meets.
Every stored relation ends in a table without limit, its *leaf*. Before the leaves stand tables of bounded size in a
tree (`Table`): phantoms, which feed several relations, and fronts of single ones. `--plan none` has leaves alone.

    queries ──► relations.storing ──► unshared_plan, sharing.planner ──► SharedPlan ──► explain, runtime.task
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from penstock.aggregates.registry import accumulator_of
from penstock.logical.query import WEIGHT, Field, QuerySet, Stream
from penstock.logical.window import ALL, Panes
from penstock.relations.closing import Reader
from penstock.relations.relation import EXACT, Relation
from penstock.relations.sides import ALL_EARLY, SideTables
from penstock.relations.storage import Storage, side_table
from penstock.relations.storing import Stored, stored
from penstock.relations.uniting import Union, unitable, united
from penstock.sharing.graph.configuration import STREAM, Configuration
from penstock.sharing.joins.asked import unpriced_choices
from penstock.sharing.joins.choice import JoinChoice
from penstock.sharing.joins.plans import joins_of
from penstock.sharing.model.kinds.direct import DIRECT, EVICT
from penstock.sharing.model.kinds.registry import kind_replacing
from penstock.sharing.model.partial_groups import Behind
from penstock.sharing.model.unit_costs import Costs


@dataclass(frozen=True)
class Table:
    """A table of bounded size. What it evicts falls to the leaves of some relations and to the tables it is the parent
    of.

    Its key and states are those that all relations at or below it need, so it need not say them. `policy` is the name
    of a replacement, which tells the kind of table (`sharing.model.kinds`).
    """

    name: str
    parent: int  # among the plan's tables; STREAM: fed by the records themselves
    leaves: tuple[str, ...]  # names of relations
    buckets: int
    policy: str = EVICT

    @property
    def kind(self) -> str:
        return kind_replacing(self.policy).name


@dataclass(frozen=True)
class Priced:
    """What the cost model expects of a relation (seed smap, Eq. 7 and 8; aggregate-tree, Eq. 1; `sharing.model.flow`).

    `groups` are those of a task, `entry` is in bytes, `length` the flow length l_a. Its table passes on `rate` of what
    reaches it, and `occupied` entries of a task besides. `share` of the records are for it; a record of the stream that
    reaches it costs `probe` ns in its table, and `insert` in its `leaves` (none: a phantom).
    """

    name: str
    depth: int
    groups: float
    buckets: int
    entry: float
    length: float
    rate: float
    occupied: float
    share: float = 1.0
    probe: float = 0.0
    insert: float = 0.0
    leaves: tuple[str, ...] = ()
    kind: str = DIRECT.name


@dataclass(frozen=True)
class Basis:
    """What a plan was chosen by: `cost` in nanoseconds a record, `flushing` nanoseconds at the end of a task,
    `considered` the cost of each alternative; `spaces` of the configuration's nodes in bytes."""

    chosen: str
    memory: int
    rows: float
    costs: Costs
    cost: float
    flushing: float
    considered: tuple[tuple[str, float], ...]
    relations: tuple[Priced, ...]
    configuration: Configuration
    spaces: tuple[float, ...]


@dataclass(frozen=True)
class SharedPlan:
    """What is stored of one stream, and the tables before it, parents first. `configuration` is the papers'
    notation; `basis` is None where nothing was known of the stream. `joins` are the plans of joins whose first stream
    this is. `unions` are the relations, as they are by rule, that are stored as one; `ways` has what the whole way
    from a record to its groups was priced at, in nanoseconds, where there was a choice (`sharing.unions`), `behind`
    what is expected behind the leaves."""

    stream: Stream
    stored: Stored
    configuration: str
    tables: tuple[Table, ...] = ()
    basis: Basis | None = None
    joins: tuple[JoinChoice, ...] = ()
    unions: tuple[Union, ...] = ()
    ways: tuple[tuple[str, float], ...] = ()
    behind: Behind | None = None

    @property
    def relations(self) -> tuple[Relation, ...]:
        return self.stored.relations

    @property
    def readers(self) -> tuple[Reader, ...]:
        return self.stored.readers

    @cached_property
    def exact(self) -> SharedPlan:
        """The same for tasks that read all records: they keep nothing that only estimates need."""
        if not any(WEIGHT.name in relation.types for relation in self.relations):
            return self
        kept = tuple(_without_picks(one) for one in self.relations if one.booked or WEIGHT.name not in one.types)
        return replace(self, stored=replace(self.stored, relations=kept))

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """Columns of the stream that some query reads, and the time if one has a window, in the stream's order."""
        used = frozenset().union(*(relation.choice.columns for relation in self.relations))
        used |= frozenset().union(*(reader.choice.columns for reader in self.readers))
        if any(r.panes.axis != ALL for r in self.relations):
            used |= {self.stream.time}
        # Records are counted by some column, even if nobody asks for one.
        return tuple(field for field in self.stream.fields if field.name in used) or self.stream.fields[:1]

    @cached_property
    def below(self) -> tuple[tuple[Relation, ...], ...]:
        """For each table the relations at or below it, in the order of the plan."""
        found: list[set[str]] = [set(table.leaves) for table in self.tables]
        for number in reversed(range(len(self.tables))):
            parent = self.tables[number].parent
            if parent != STREAM:
                found[parent] |= found[number]
        return tuple(tuple(r for r in self.relations if r.name in names) for names in found)

    @cached_property
    def unfed(self) -> tuple[Relation, ...]:
        """Relations whose leaves are fed by the stream itself."""
        fed = {name for table in self.tables for name in table.leaves}
        return tuple(r for r in self.relations if r.name not in fed)


def _without_picks(relation: Relation) -> Relation:
    states = tuple(state for state in relation.states if not accumulator_of(state).picked)
    return relation if states == relation.states else replace(relation, states=states)


MANY = 4  # relations that are stored as one where nothing is known of the data


def unshared_plan(
    app: QuerySet,
    stream: str,
    memory: int = 0,
    since: Mapping[str, int] | None = None,
    sides: SideTables = ALL_EARLY,
) -> SharedPlan:
    """A leaf for every relation. `memory` bytes, if any, are shared by direct-mapped tables before them; `since`
    are the versions of the app that brought its queries, `sides` says which sides of joins are early."""
    kept = stored(app, stream, since, sides)
    booked = [relation for relation in kept.relations if relation.booked]
    share = memory // max(1, len(booked))
    fronts = [(r, share // (8 * (2 + len(r.attributes) + 2 * len(r.states)))) for r in booked]
    tables = tuple(Table(kept.labels[r.name], STREAM, (r.name,), buckets) for r, buckets in fronts if buckets)
    return SharedPlan(app.stream(stream), kept, " ".join(kept.labels[r.name] for r in booked), tables)


def united_plans(
    app: QuerySet, since: Mapping[str, int] | None = None, sides: SideTables = ALL_EARLY
) -> dict[str, SharedPlan]:
    """Plans for data that nobody has looked at: `MANY` relations or more of the same panes that may be stored as one
    are, so that a record makes one operation for all of them. Others have a leaf each."""
    return {name: _united(plan) for name, plan in unshared_plans(app, 0, since, sides).items()}


def _united(plan: SharedPlan) -> SharedPlan:
    alike: dict[tuple[int, Panes], list[str]] = {}
    for number, chain in enumerate(unitable(plan.stored)):
        for relation in chain:
            alike.setdefault((number, relation.panes), []).append(relation.name)
    unions = tuple(Union(tuple(names)) for names in alike.values() if len(names) >= MANY)
    if not unions:
        return plan
    stored = united(plan.stored, unions)
    booked = (relation for relation in stored.relations if relation.booked)
    return replace(plan, stored=stored, configuration=" ".join(stored.labels[r.name] for r in booked), unions=unions)


def unshared_plans(
    app: QuerySet, memory: int = 0, since: Mapping[str, int] | None = None, sides: SideTables = ALL_EARLY
) -> dict[str, SharedPlan]:
    """Plans for every stream, and for every query whose results are read."""
    names = dict.fromkeys(name for query in app.queries for name in query.inputs)
    return {name: unshared_plan(app, name, memory, since, sides) for name in names}


def with_joins(
    plans: Mapping[str, SharedPlan], app: QuerySet, choices: Mapping[str, JoinChoice]
) -> dict[str, SharedPlan]:
    """The same, each with the plans of the joins whose first stream it has."""
    first: dict[str, list[JoinChoice]] = {}
    for query, join in joins_of(app):
        first.setdefault(join.sides[0].stream, []).append(choices[query.name])
    return {name: replace(plan, joins=tuple(first.get(name, ()))) for name, plan in plans.items()}


def joins_in(plans: Mapping[str, SharedPlan]) -> dict[str, JoinChoice]:
    """The plans of all joins, by query."""
    return {one.query: one for plan in plans.values() for one in plan.joins}


def running_choices(
    asked: str, app: QuerySet, plans: Mapping[str, SharedPlan], storage: Storage
) -> dict[str, JoinChoice]:
    """The plans of all joins; of one that no plan tells of, what is stored does."""
    known = joins_in(plans)
    found = unpriced_choices(asked, app)
    for query, join in joins_of(app):
        early = tuple(side_table(storage, query.name, side) == EXACT for side in join.sides)
        found[query.name] = known.get(query.name) or replace(found[query.name], early=early)
    return found
