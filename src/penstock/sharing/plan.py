"""Plans: which relations a task keeps, of what parts and states they are made, and the tree of tables before them.

A plan is data: frozen, small, pickled to the tasks, independent of the packed layout (which each task makes
from the values it meets). Every query ends in an exact table, its *leaf*. Before the leaves stand tables of bounded
size in a tree (`Table`): phantoms, which feed several relations, and fronts of queries. `--plan none` has leaves alone.

    logical queries ──► unshared_plan, sharing.planner ──► SharedPlan ──► explain / runtime.lfta
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from penstock.logical.query import Field, QuerySet, Stream
from penstock.relations.relation import Relation, relations
from penstock.sharing.graph.configuration import STREAM, Configuration
from penstock.sharing.model.kinds.direct import DIRECT, EVICT
from penstock.sharing.model.kinds.registry import kind_replacing
from penstock.sharing.model.unit_costs import Costs


@dataclass(frozen=True)
class Table:
    """A table of bounded size. What it evicts falls to the leaves of `queries` and to the tables it is the parent of.

    Its key and states are those that all queries at or below it need, so it need not say them. `policy` is the name of
    a replacement, which tells the kind of table (`sharing.model.kinds`).
    """

    name: str
    parent: int  # among the plan's tables; STREAM: fed by the tuples themselves
    queries: tuple[str, ...]
    buckets: int
    policy: str = EVICT

    @property
    def kind(self) -> str:
        return kind_replacing(self.policy).name


@dataclass(frozen=True)
class Priced:
    """What the cost model expects of a relation (seed smap, Eq. 7 and 8; aggregate-tree, Eq. 1; `sharing.model.flow`).

    `groups` are those of a task, `entry` is in bytes, `length` the flow length l_a. Its table passes on `rate` of what
    reaches it, and `occupied` entries of a task besides. `share` of the tuples are for it; a tuple of the stream that
    reaches it costs `probe` ns in its table, and `insert` in the leaves of its `queries` (none: a phantom).
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
    queries: tuple[str, ...] = ()
    kind: str = DIRECT.name


@dataclass(frozen=True)
class Basis:
    """What a plan was chosen by: `cost` in nanoseconds a tuple, `flushing` nanoseconds at the end of a task,
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
    """All relations of one stream, and the tables before them, parents first. `configuration` is the papers'
    notation; `basis` is None where nothing was known of the stream."""

    stream: Stream
    relations: tuple[Relation, ...]
    configuration: str
    tables: tuple[Table, ...] = ()
    basis: Basis | None = None

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """Columns of the stream that some query reads, and the time, in the stream's order."""
        used = frozenset().union(*(r.columns for r in self.relations)) | {self.stream.time}
        return tuple(field for field in self.stream.fields if field.name in used)

    @cached_property
    def below(self) -> tuple[tuple[Relation, ...], ...]:
        """For each table the relations at or below it, in the order of the plan."""
        found: list[set[str]] = [set(table.queries) for table in self.tables]
        for number in reversed(range(len(self.tables))):
            parent = self.tables[number].parent
            if parent != STREAM:
                found[parent] |= found[number]
        return tuple(tuple(r for r in self.relations if r.query in names) for names in found)

    @cached_property
    def unfed(self) -> tuple[Relation, ...]:
        """Relations whose leaves are fed by the stream itself."""
        fed = {query for table in self.tables for query in table.queries}
        return tuple(r for r in self.relations if r.query not in fed)


def unshared_plan(app: QuerySet, stream: str, memory: int = 0) -> SharedPlan:
    """One exact table per query. `memory` bytes, if any, are shared by direct-mapped tables before them."""
    kept, names = relations(app, stream), tuple(query.name for query in app.readers(stream))
    share = memory // max(1, len(names))
    fronts = [(r.query, share // (8 * (2 + len(r.attributes) + 2 * len(r.states)))) for r in kept if r.query in names]
    tables = tuple(Table(name, STREAM, (name,), buckets) for name, buckets in fronts if buckets)
    return SharedPlan(app.stream(stream), kept, " ".join(names), tables)


def unshared_plans(app: QuerySet, memory: int = 0) -> dict[str, SharedPlan]:
    """Plans for every stream, and for every query whose results are read."""
    return {name: unshared_plan(app, name, memory) for name in dict.fromkeys(query.stream for query in app.queries)}
