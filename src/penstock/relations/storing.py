"""Which relations are stored, by rule, and how each query closes.

Queries that group the same records by the same attributes and panes are stored once, with all that any of them keeps. A
query that can be rolled up from another one that is stored is not stored itself. `sharing` plans the tables before what
is stored; it does not choose what is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from penstock.logical.expressions import Prefix
from penstock.logical.query import Query, QuerySet
from penstock.logical.window import ROWS
from penstock.relations.closing import Finish, Reader, closing_of, rolls_up
from penstock.relations.component import pane_component
from penstock.relations.relation import Relation, Wanted, bounds_relation, together, wanted_of

ADDRESS_BITS = 129  # a whole address is finer than any prefix of it


@dataclass(frozen=True)
class Stored:
    """The relations of one stream that are stored, and the queries that close from them."""

    relations: tuple[Relation, ...]
    readers: tuple[Reader, ...]

    @cached_property
    def labels(self) -> dict[str, str]:
        """Relations as people know them: by the queries that are finished from them."""
        found: dict[str, list[str]] = {}
        for reader in self.readers:
            if isinstance(reader.closing, Finish):
                found.setdefault(reader.closing.relation, []).append(reader.query)
        return {r.name: "+".join(found.get(r.name, [])) or self._detail_label(r) for r in self.relations}

    def _detail_label(self, relation: Relation) -> str:
        """Of a relation that no query is finished from, but whose rows some need in detail."""
        asked = [(reader.query, reader.asks(relation.name)) for reader in self.reading(relation.name)]
        texts = [f"{query}.{asks[0]}" for query, asks in asked if asks and relation.booked]
        return "+".join(texts) or bounds_label(relation)

    @cached_property
    def of(self) -> dict[str, Relation]:
        """Relations by name."""
        return {relation.name: relation for relation in self.relations}

    @cached_property
    def reach(self) -> dict[str, int]:
        """By relation: how many panes the longest window has that is made of it."""
        found = {}
        for one in self.relations:
            readers = self.reading(one.name) if one.booked else self.readers
            found[one.name] = max((r.window.reach for r in readers if r.window.panes == one.panes), default=0)
        return found

    def reading(self, relation: str) -> tuple[Reader, ...]:
        """The queries that close from a relation."""
        return tuple(reader for reader in self.readers if relation in reader.relations)


def bounds_label(relation: Relation) -> str:
    """Of a relation that belongs to no query: it has the first and last time of each pane of rows."""
    return f"#{pane_component(relation.panes).text}"


def stored(app: QuerySet, stream: str, since: Mapping[str, int] | None = None) -> Stored:
    """What is stored of a stream (or of a query's results); `since` are the versions that brought the queries."""
    queries = app.readers(stream)
    wanted = {query.name: wanted_of(query, (since or {}).get(query.name, 0)) for query in queries}
    kept = _finest(_joined(tuple(one for wants in wanted.values() for one in wants.relations)))
    readers = tuple(_reader(query, wanted[query.name], kept) for query in queries)
    time = app.stream(stream).time
    panes = dict.fromkeys(query.window.panes for query in queries if query.window.axis == ROWS)
    return Stored((*kept, *(bounds_relation(stream, one, time) for one in panes)), readers)


def _reader(query: Query, wanted: Wanted, kept: tuple[Relation, ...]) -> Reader:
    first, *details = (closing_of(one, _nearest(one, kept)) for one in wanted.relations)
    return Reader(query.name, query.window, wanted.groups.choice, query.attributes, first, tuple(details), wanted.asked)


def _joined(wanted: tuple[Relation, ...]) -> tuple[Relation, ...]:
    """Relations of the same groups as one, with the states of all."""
    found: dict[object, list[Relation]] = {}
    for one in wanted:
        grain = (frozenset(one.attributes), one.panes, one.choice, one.landmark, one.loss)
        found.setdefault(grain, []).append(one)
    return tuple(together(same) for same in found.values())


def _finest(relations: tuple[Relation, ...]) -> tuple[Relation, ...]:
    """Those that no other one can be rolled up to; of two that can be made of each other (`src` and `src, src/24`) the
    first."""
    return tuple(
        one
        for number, one in enumerate(relations)
        if not any(
            rolls_up(other, one) and (place < number or not rolls_up(one, other))
            for place, other in enumerate(relations)
            if place != number
        )
    )


def _nearest(wanted: Relation, kept: tuple[Relation, ...]) -> Relation:
    """The coarsest stored relation that a query can be closed from."""
    return min((one for one in kept if rolls_up(one, wanted)), key=lambda one: (fineness(one), one.name))


def fineness(relation: Relation) -> int:
    """Greater for a relation than for all that it can be rolled up to."""
    return sum(a.length if isinstance(a, Prefix) else ADDRESS_BITS for a in relation.attributes)
