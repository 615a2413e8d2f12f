"""Queries that are stored by themselves, for tests of planning: nothing is rolled up before it is planned."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.logical.query import QuerySet
from penstock.logical.window import ROWS
from penstock.relations.closing import Finish, Reader
from penstock.relations.relation import bounds_relation, relation_of
from penstock.relations.storing import Stored, stored


def alone(app: QuerySet, stream: str, since: Mapping[str, int] | None = None) -> Stored:
    """A relation for every query, equal ones once."""
    queries = app.readers(stream)
    wanted = {query.name: relation_of(query, (since or {}).get(query.name, 0)) for query in queries}
    readers = tuple(
        Reader(q.name, q.window, wanted[q.name].choice, q.attributes, Finish(wanted[q.name].name)) for q in queries
    )
    panes = dict.fromkeys(query.window.panes for query in queries if query.window.axis == ROWS)
    bounds = [bounds_relation(stream, one, app.stream(stream).time) for one in panes]
    return Stored(tuple(dict.fromkeys((*wanted.values(), *bounds))), readers)


def read_names(app: QuerySet, stream: str) -> dict[str, str]:
    """The relation that each query closes from, as the engine stores them."""
    return {reader.query: reader.closing.relation for reader in stored(app, stream).readers}


def names(app: QuerySet, stream: str) -> dict[str, str]:
    """The relation of each query."""
    return {reader.query: reader.closing.relation for reader in alone(app, stream).readers}
