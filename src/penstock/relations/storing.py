"""Which relations are stored, by rule, and how each query closes.

Queries that group the same records by the same attributes and panes are stored once, with all that any of them keeps. A
query that can be rolled up from another one that is stored is not stored itself. `sharing` plans the tables before what
is stored; it does not choose what is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from penstock.lang.durations import format_duration
from penstock.logical.expressions import Prefix
from penstock.logical.query import Attribute, Query, QuerySet, Side, side_name
from penstock.logical.render import render
from penstock.logical.window import ROWS
from penstock.relations.closing import Finish, Reader, closing_of, rolls_up
from penstock.relations.component import pane_component
from penstock.relations.joining import grouped_side, side_choice, side_relation
from penstock.relations.relation import (
    APPEND,
    EXACT,
    Relation,
    Wanted,
    attribute_text,
    bounds_relation,
    named,
    picks_relations,
    together,
    wanted_of,
)
from penstock.relations.sides import ALL_EARLY, SideTables

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
        texts = [f"{query}.{asks[0]}".removesuffix(".") for query, asks in asked if asks and relation.booked]
        if not texts and relation.booked:
            return ".".join(attribute_text(attribute) for attribute in relation.attributes) or "all"
        return "+".join(texts) or bounds_label(relation)

    @cached_property
    def of(self) -> dict[str, Relation]:
        """Relations by name."""
        return {relation.name: relation for relation in self.relations}

    @cached_property
    def reach(self) -> dict[str, int]:
        """By relation: how many panes the longest window has that is made of it. Rows that are appended are never
        merged for one."""
        found = {}
        for one in self.relations:
            readers = self.reading(one.name) if one.booked else [r for r in self.readers if r.window.panes == one.panes]
            readers = [r for r in readers if one.table == EXACT or r.joined or isinstance(r.closing, Finish)]
            found[one.name] = max((r.window.over(one.panes).reach for r in readers), default=0)
        return found

    def reading(self, relation: str) -> tuple[Reader, ...]:
        """The queries that close from a relation."""
        return self._reading.get(relation, ())

    @cached_property
    def _reading(self) -> dict[str, tuple[Reader, ...]]:
        found: dict[str, list[Reader]] = {}
        for reader in self.readers:
            for relation in reader.relations:
                found.setdefault(relation, []).append(reader)
        return {relation: tuple(readers) for relation, readers in found.items()}


def bounds_label(relation: Relation) -> str:
    """Of a relation that belongs to no query: it has the first and last time of each pane of rows, or its picks."""
    return f"#{'picks ' if relation.attributes else ''}{pane_component(relation.panes).text}"


RECENT = 4  # answers that are kept, with what was asked
_recent: tuple[tuple[QuerySet, object, Stored], ...] = ()


def stored(app: QuerySet, stream: str, since: Mapping[str, int] | None = None, sides: SideTables = ALL_EARLY) -> Stored:
    """What is stored of a stream (or of a query's results); `since` are the versions that brought the queries, `sides`
    says which sides of joins are aggregated before. The last answers are kept: all pairs of relations are looked at,
    and whatever begins a run asks again."""
    global _recent
    asked = stream, {query: version for query, version in (since or {}).items() if version}, sides
    for of, known, found in _recent:
        if of is app and known == asked:
            return found
    found = _stored(app, stream, since, sides)
    _recent = (app, asked, found), *_recent[: RECENT - 1]
    return found


def _stored(app: QuerySet, stream: str, since: Mapping[str, int] | None, sides: SideTables) -> Stored:
    queries = app.readers(stream)
    wanted = {query.name: wanted_of(query, (since or {}).get(query.name, 0)) for query in queries}
    plain = [query for query in queries if query.join is None]
    joined = [
        _stored_side(query, side, wanted[query.name], (since or {}).get(query.name, 0), sides.of(query.name, side))
        for query in queries
        if query.join is not None
        for side in query.join.streams
        if side.stream == stream
    ]
    wants = [one for query in plain for one in wanted[query.name].relations]
    kept = _slotted(_finest(_joined((*wants, *(one.wanted for one in joined)))), joined)
    readers = [_reader(query, wanted[query.name], kept) for query in plain]
    readers += [_side_reader(one, kept) for one in joined]
    time = app.stream(stream).time
    panes = dict.fromkeys(query.window.panes for query in plain if query.window.axis == ROWS)
    bounds = (bounds_relation(stream, one, time) for one in panes)
    picks = (one for query in queries for one, _ in picks_relations(query, (since or {}).get(query.name, 0)))
    return Stored((*kept, *bounds, *dict.fromkeys(one for one in picks if one.stream == stream)), tuple(readers))


@dataclass(frozen=True)
class StoredSide:
    """A side of a join, what it would be closed from if nothing were shared, and the groups of the records that it
    takes."""

    query: Query
    side: Side
    wanted: Relation
    grouped: Relation


def _reader(query: Query, wanted: Wanted, kept: tuple[Relation, ...]) -> Reader:
    first, *details = (closing_of(one, _nearest(one, kept)) for one in wanted.relations)
    ordered = bool(query.order) or query.limit is not None
    choice = wanted.groups.choice
    return Reader(
        query.name, query.window, choice, query.attributes, first, tuple(details), wanted.asked, ordered=ordered
    )


def _stored_side(query: Query, side: Side, wanted: Wanted, since: int, table: str) -> StoredSide:
    made = side_relation(query, side, wanted, since, table)
    return StoredSide(query, side, made, grouped_side(query, side, wanted, since, table))


def _side_reader(one: StoredSide, kept: tuple[Relation, ...]) -> Reader:
    side, wanted = one.side, one.wanted
    closing = closing_of(wanted, _nearest(wanted, kept))
    name, choice = side_name(one.query.name, side.alias), side_choice(side, one.grouped)
    return Reader(name, side.window, choice, wanted.attributes, closing, joined=_joined_text(one))


def _joined_text(one: StoredSide) -> str:
    """What a side is joined with, and by what, for people."""
    join = one.query.join
    assert join is not None
    others = [f"{side.stream} {side.alias}" for side in join.sides if side != one.side]
    others += [f"rows of {table.match.table} {table.alias}" for table in join.tables]
    by = f" by {', '.join(attribute_text(key) for key in one.side.key)}" if one.side.key else ""
    pairs = "" if join.pairs is None else f", where {render(join.pairs)}"
    with_ = f" with {' and '.join(others)}" if others else ""
    every = f"every {format_duration(one.query.window.slide)}"
    if one.side in join.inner:
        return f"asked for{by or ' all of it'}, {every}"
    joined = [f"joined{by}{with_}{pairs}"] if others or pairs or not join.tests else []
    asked = {test.inner: f"kept where {test.inner} has {'none' if test.negated else 'one'}" for test in join.tests}
    return ", ".join((*joined, *asked.values(), every))


def _slotted(kept: tuple[Relation, ...], sides: Iterable[StoredSide]) -> tuple[Relation, ...]:
    """The same, with slots by the key of the first join that reads a relation: its rows then stand where those of the
    other sides do. A relation that has such slots already keeps them."""
    found = {relation.name: relation for relation in kept}
    for one in sides:
        near = _nearest(one.wanted, kept)
        relation, key = found[near.name], one.side.key
        if relation.slots is None and key and set(key) <= set(relation.attributes):
            rest = tuple(attribute for attribute in relation.attributes if attribute not in key)
            found[near.name] = named(replace(relation, attributes=(*key, *rest), slots=len(key)))
    return tuple(found.values())


def _joined(wanted: tuple[Relation, ...]) -> tuple[Relation, ...]:
    """Relations of the same groups as one, with the states of all."""
    found: dict[object, list[Relation]] = {}
    for one in wanted:
        grain = (frozenset(one.attributes), one.panes, one.choice, one.landmark, one.loss, one.table, one.of)
        found.setdefault(grain, []).append(one)
    return tuple(together(same) for same in found.values())


def _finest(relations: tuple[Relation, ...]) -> tuple[Relation, ...]:
    """Those that no other one is stored in place of; of two that can be made of each other (`src` and `src, src/24`)
    the first."""
    return tuple(
        one
        for number, one in enumerate(relations)
        if not any(
            replaces(other, one) and (place < number or not replaces(one, other))
            for place, other in enumerate(relations)
            if place != number
        )
    )


def replaces(fine: Relation, coarse: Relation) -> bool:
    """Whether one relation is stored in place of another, which is rolled up from it. Groups are not made of rows that
    are stored record by record; the side of a join that would be is early where its groups are there anyway."""
    return rolls_up(fine, coarse) and not (fine.table == APPEND and coarse.table == EXACT)


def _nearest(wanted: Relation, kept: tuple[Relation, ...]) -> Relation:
    """The coarsest stored relation that a query can be closed from."""
    return min((one for one in kept if replaces(one, wanted)), key=lambda one: (fineness(one), one.name))


def fineness(relation: Relation) -> int:
    """Greater for a relation than for all that it can be rolled up to."""
    return sum(attribute_fineness(attribute) for attribute in relation.attributes)


def attribute_fineness(attribute: Attribute) -> int:
    return attribute.length if isinstance(attribute, Prefix) else ADDRESS_BITS
