"""Relations: what is aggregated and stored of a stream, of what parts and states it is made.

Equal for planning (`sharing`), for the tables of a task (`runtime.tables`) and for what is stored (`state.segments`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from penstock.aggregates.base import State
from penstock.aggregates.count import COUNTED
from penstock.aggregates.extremes import GREATEST, LEAST
from penstock.aggregates.registry import states_of
from penstock.logical.expressions import Column, Computed, Expression, Prefix
from penstock.logical.query import Attribute, Query, QuerySet
from penstock.logical.types import TIMESTAMP, Kind, Type
from penstock.logical.window import ROWS, Window
from penstock.relations.component import Component, inet6_component, null_component, pane_component, value_component
from penstock.relations.layout import Part

IPV4_BITS = 32
BOUNDS = "#"  # begins the name of a relation that keeps the first and last time of panes of rows


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


def joined_parts(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Each component once, as fine as any asks for it."""
    kept: dict[Component, int] = {}
    for part in parts:
        kept[part.component] = min(part.drop, kept.get(part.component, part.drop))
    return tuple(Part(component, drop) for component, drop in kept.items())


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


def relation(query: Query) -> Relation:
    attributes = tuple(key.attribute for key in query.keys)
    # Two keys may be the same attribute under two names: the relation groups by it once.
    distinct = tuple(dict.fromkeys(attributes))
    arguments = tuple(dict.fromkeys(a.argument for a in query.aggregates if a.argument is not None))
    return Relation(
        query.name, distinct, query.window, query.where, query.columns, arguments, states_of(query.aggregates)
    )


def bounds_relation(window: Window, time: str) -> Relation:
    """The first and last time in each pane of rows, of all tuples: windows of rows are labelled with them."""
    panes = window.panes
    name = f"{BOUNDS}{pane_component(panes).text}"
    kept = (COUNTED.state(time), LEAST.state(time), GREATEST.state(time))
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
