"""Queries that are stored by themselves, for tests of planning: nothing is rolled up before it is planned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from penstock.logical.query import Query, QuerySet, side_name
from penstock.logical.window import ROWS
from penstock.relations.closing import Finish, Reader
from penstock.relations.joining import grouped_side, side_choice, side_relation
from penstock.relations.relation import Relation, Wanted, bounds_relation, picks_relations, wanted_of
from penstock.relations.sides import ALL_EARLY, SideTables
from penstock.relations.storing import Stored, stored


def alone(app: QuerySet, stream: str, since: Mapping[str, int] | None = None, tables: SideTables = ALL_EARLY) -> Stored:
    """A relation for every query and every side of a join, equal ones once."""
    queries = [query for query in app.readers(stream) if query.join is None]
    wanted = {query.name: wanted_of(query, (since or {}).get(query.name, 0)) for query in queries}
    readers = [_reader(query, wanted[query.name]) for query in queries]
    panes = dict.fromkeys(query.window.panes for query in queries if query.window.axis == ROWS)
    bounds = [bounds_relation(stream, one, app.stream(stream).time) for one in panes]
    sides = dict(_sides(app, stream, since or {}, tables))
    kept = (relation for one in wanted.values() for relation in one.relations)
    picks = (
        one for query in app.readers(stream) for one, _ in picks_relations(query, (since or {}).get(query.name, 0))
    )
    bounds += [one for one in picks if one.stream == stream]
    return Stored(tuple(dict.fromkeys((*kept, *sides.values(), *bounds))), (*readers, *sides))


def _sides(
    app: QuerySet, stream: str, since: Mapping[str, int], tables: SideTables
) -> Iterator[tuple[Reader, Relation]]:
    """The sides of joins that read a stream, and what each is closed from."""
    for query in app.readers(stream):
        first = since.get(query.name, 0)
        for side in () if query.join is None else query.join.streams:
            if side.stream == stream:
                wanted = wanted_of(query, first)
                kept = side_relation(query, side, wanted, first, tables.of(query.name, side))
                choice = side_choice(side, grouped_side(query, side, wanted, first))
                name = side_name(query.name, side.alias)
                yield Reader(name, side.window, choice, kept.attributes, Finish(kept.name)), kept


def _reader(query: Query, wanted: Wanted) -> Reader:
    first, *details = (Finish(relation.name) for relation in wanted.relations)
    return Reader(query.name, query.window, wanted.groups.choice, query.attributes, first, tuple(details), wanted.asked)


def read_names(app: QuerySet, stream: str) -> dict[str, str]:
    """The relation that each query closes from, as the engine stores them."""
    return {reader.query: reader.closing.relation for reader in stored(app, stream).readers}


def names(app: QuerySet, stream: str) -> dict[str, str]:
    """The relation of each query."""
    return {reader.query: reader.closing.relation for reader in alone(app, stream).readers}
