"""Plans: which relations a task keeps, of what parts and states they are made, and the tree of tables before them.

A plan is data: frozen, small, pickled to the tasks, independent of the packed layout (which each task makes
from the values it meets). Every query ends in an exact table, its *leaf*. Before the leaves stand tables of bounded
size in a tree (`Table`): phantoms, which feed several relations, and fronts of queries. `--plan none` has leaves alone.

    logical queries ──► unshared_plan, sharing.planner ──► SharedPlan ──► explain / runtime.lfta
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from penstock.logical.expressions import Aggregate, Column, Computed, Expression, Prefix
from penstock.logical.query import Attribute, Query, QuerySet, Stream
from penstock.logical.types import TIMESTAMP, Kind, Type
from penstock.logical.window import ROWS, Panes, Window
from penstock.sharing.configuration import STREAM, Configuration
from penstock.sharing.costs import Costs
from penstock.sharing.layout import Part

IPV4_BITS = 32
VARIANCES = ("var_samp", "var_pop", "stddev_samp", "stddev_pop")
DIRECT, EXACT = "direct", "exact"  # kinds of tables besides LRU
EVICT, KEEP, LRU = "evict", "keep", "lru"  # which entry leaves a table where there is no room for a newcomer
BOUNDS = "#"  # begins the name of a relation that keeps the first and last time of panes of rows


@dataclass(frozen=True, order=True)
class State:
    """One thing a row keeps besides its key and count(*): `count`, `sum`, `min`, `max` or `moments` of a column."""

    kind: str
    column: str


@dataclass(frozen=True)
class Relation:
    """What one table groups by and keeps. `where` and `columns` decide which tuples reach it.

    `arguments` are the columns that states are of; `columns` all columns of the stream that are read.
    """

    query: str
    attributes: tuple[Attribute, ...]
    window: Window
    where: Expression | None
    columns: frozenset[str]
    arguments: tuple[Column | Computed, ...]
    states: tuple[State, ...]

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The components of the key, the pane's number first, each once (`src` and `src/24` share one)."""
        pane = Part(pane_component(self.window.panes))
        return joined_parts((pane, *(part for attribute in self.attributes for part in attribute_parts(attribute))))

    @cached_property
    def types(self) -> dict[str, Type]:
        """The types of the columns, made or read, that keys and states are of."""
        whole = (a.column if isinstance(a, Prefix) else a for a in self.attributes)
        return {column.name: column.type for column in (*whole, *self.arguments)}

    @cached_property
    def computed(self) -> tuple[Computed, ...]:
        """The columns that the relation makes itself."""
        found = (a for a in (*self.attributes, *self.arguments) if isinstance(a, Computed))
        return tuple(dict.fromkeys(found))


@dataclass(frozen=True)
class Table:
    """A table of bounded size. What it evicts falls to the leaves of `queries` and to the tables it is the parent of.

    Its key and states are those that all queries at or below it need, so it need not say them. The policies `EVICT` and
    `KEEP` are of direct-mapped tables: what collides with a resident evicts it, or only when that was met less often. A
    table with `LRU` is chained, and evicts what it has not met for longest, when all its `buckets` are taken.
    """

    name: str
    parent: int  # among the plan's tables; STREAM: fed by the tuples themselves
    queries: tuple[str, ...]
    buckets: int
    policy: str = EVICT

    @property
    def kind(self) -> str:
        return LRU if self.policy == LRU else DIRECT


@dataclass(frozen=True)
class Priced:
    """What the cost model expects of a relation (seed smap, Eq. 7 and 8; aggregate-tree, Eq. 1; `sharing.outflow`).

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
    kind: str = DIRECT


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


def joined_parts(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Each component once, as fine as any asks for it."""
    kept: dict[str, int] = {}
    for part in parts:
        kept[part.component] = min(part.drop, kept.get(part.component, part.drop))
    return tuple(Part(component, drop) for component, drop in kept.items())


def sieve_component(query: str) -> str:
    """1 where a tuple is not for this query (and those that choose alike), though it is for others of a table."""
    return f"sieve:{query}"


def pane_component(panes: Panes) -> str:
    return f"pane:{panes.axis}:{panes.slide}:{panes.cut}"


def value_component(column: str) -> str:
    """The value itself: integer, order bits of a float, IPv4 number, or code of a string."""
    return f"value:{column}"


def null_component(column: str) -> str:
    return f"null:{column}"


def inet6_component(column: str, length: int | None = None) -> str:
    """Code + 1 of an IPv6 address (or of its prefix); 0 where the address is IPv4 or NULL."""
    return f"inet6:{column}" if length is None else f"inet6/{length}:{column}"


def column_of(component: str) -> str:
    """The column that a component belongs to."""
    return component.partition(":")[2]


def dictionary_component(column: str, kind: Kind) -> str:
    """Where the bytes are that codes of a column's values refer to."""
    return value_component(column) if kind is Kind.STRING else inet6_component(column)


def attribute_parts(attribute: Attribute) -> tuple[Part, ...]:
    """Components of a grouping attribute, in canonical order.

    A prefix masks the IPv4 number of its address and has a code of its own for the IPv6 side.
    """
    match attribute:
        case Prefix(column, length):
            name, drop = column.name, max(0, IPV4_BITS - length)
            return (
                Part(value_component(name), drop),
                Part(inet6_component(name, length)),
                Part(null_component(name)),
            )
        case Column(name, kind) if kind.kind is Kind.INET:
            return (Part(value_component(name)), Part(inet6_component(name)), Part(null_component(name)))
    return (Part(value_component(attribute.name)), Part(null_component(attribute.name)))


def states(aggregates: tuple[Aggregate, ...]) -> tuple[State, ...]:
    """The states that these aggregates need; count(x) also tells whether there was any value."""
    needed: dict[State, None] = {}
    for aggregate in aggregates:
        if aggregate.argument is None:
            continue
        name = aggregate.argument.name
        needed[State("count", name)] = None
        if aggregate.function in ("sum", "avg"):
            needed[State("sum", name)] = None
        elif aggregate.function in ("min", "max"):
            needed[State(aggregate.function, name)] = None
        elif aggregate.function in VARIANCES:
            needed[State("moments", name)] = None
    return tuple(needed)


def relation(query: Query) -> Relation:
    attributes = tuple(key.attribute for key in query.keys)
    # Two keys may be the same attribute under two names: the relation groups by it once.
    distinct = tuple(dict.fromkeys(attributes))
    arguments = tuple(dict.fromkeys(a.argument for a in query.aggregates if a.argument is not None))
    return Relation(query.name, distinct, query.window, query.where, query.columns, arguments, states(query.aggregates))


def bounds_relation(window: Window, time: str) -> Relation:
    """The first and last time in each pane of rows, of all tuples: windows of rows are labelled with them."""
    panes = window.panes
    name = f"{BOUNDS}{pane_component(panes)}"
    kept = (State("count", time), State("min", time), State("max", time))
    return Relation(name, (), window, None, frozenset((time,)), (Column(time, TIMESTAMP),), kept)


def bounds_of(query: Query, time: str) -> Relation | None:
    return bounds_relation(query.window, time) if query.window.axis == ROWS else None


def relations(app: QuerySet, stream: str) -> tuple[Relation, ...]:
    """One for every query on a stream (or on a query's results), and the bounds of panes of rows."""
    found = {query.name: relation(query) for query in app.readers(stream)}
    for query in app.readers(stream):
        bounds = bounds_of(query, app.stream(stream).time)
        if bounds is not None:
            found.setdefault(bounds.query, bounds)
    return tuple(found.values())


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
