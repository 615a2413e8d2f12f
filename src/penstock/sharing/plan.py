"""Plans: which relations a task keeps, of what parts and states they are made, which table each gets.

A plan is data: frozen, small, pickled to the tasks, independent of the packed layout (which each task makes
from the values it meets).  `--plan none` has one relation per query, fed by the stream.

    logical queries ──► unshared_plan ──► SharedPlan ──► explain / runtime.lfta
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.logical.expressions import Aggregate, Column, Expression, Prefix
from penstock.logical.query import Query, QuerySet, Stream
from penstock.logical.types import Kind
from penstock.sharing.layout import Part

IPV4_BITS = 32


@dataclass(frozen=True, order=True)
class State:
    """One thing a row keeps besides its key and count(*): `count`, `sum`, `min` or `max` of a column."""

    kind: str
    column: str


@dataclass(frozen=True)
class Relation:
    """What one table groups by and keeps. `where` and `columns` decide which tuples reach it."""

    query: str
    attributes: tuple[Column | Prefix, ...]
    window: int
    where: Expression | None
    columns: frozenset[str]
    states: tuple[State, ...]
    buckets: int = 0  # of the direct-mapped table before the exact one; 0: none

    @property
    def parts(self) -> tuple[Part, ...]:
        """The components of the key, the window's number first, each once (`src` and `src/24` share one)."""
        kept = {window_component(self.window): 0}
        for part in (p for attribute in self.attributes for p in attribute_parts(attribute)):
            kept[part.component] = min(part.drop, kept.get(part.component, part.drop))
        return tuple(Part(component, drop) for component, drop in kept.items())


@dataclass(frozen=True)
class SharedPlan:
    """All relations of one stream. `configuration` is the papers' notation."""

    stream: Stream
    relations: tuple[Relation, ...]
    configuration: str
    version: int = 0


def window_component(size: int) -> str:
    return f"window:{size}"


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


def attribute_parts(attribute: Column | Prefix) -> tuple[Part, ...]:
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
        case Column(name):
            return (Part(value_component(name)), Part(null_component(name)))


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
    return tuple(needed)


def relation(query: Query, buckets: int = 0) -> Relation:
    attributes = tuple(key.attribute for key in query.keys)
    # Two keys may be the same attribute under two names: the relation groups by it once.
    distinct = tuple(dict.fromkeys(attributes))
    return Relation(
        query.name, distinct, query.window.size, query.where, query.columns, states(query.aggregates), buckets
    )


def unshared_plan(app: QuerySet, memory: int = 0) -> SharedPlan:
    """One exact table per query. `memory` bytes, if any, are shared by direct-mapped tables before them."""
    stream = app.stream(app.queries[0].stream)
    share = memory // len(app.queries)
    relations = []
    for query in app.queries:
        bare = relation(query)
        row_bytes = 8 * (2 + len(bare.attributes) + 2 * len(bare.states))
        relations.append(relation(query, share // row_bytes))
    configuration = " ".join(query.name for query in app.queries)
    return SharedPlan(stream, tuple(relations), configuration)
