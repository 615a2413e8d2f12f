"""Sides of a join whose groups are stored anyway, for another query: such a side is early for nothing, or nearly so."""

from __future__ import annotations

from dataclasses import replace

from penstock.logical.query import Join, Query, QuerySet
from penstock.relations.joining import side_relation
from penstock.relations.relation import APPEND, EXACT, Relation, wanted_of
from penstock.relations.sides import SideTables, is_counted
from penstock.relations.storing import replaces, stored
from penstock.sharing.joins.statistics import ALONE, FREE, SHARED


def side_groups(query: Query, join: Join) -> list[Relation]:
    """What each side is, if it is aggregated early and nothing is shared."""
    wanted = wanted_of(query)
    return [side_relation(query, side, wanted) for side in join.sides]


def stored_anyway(app: QuerySet, query: Query, join: Join, others: SideTables) -> tuple[str, ...]:
    """For each side what an early one adds to what is stored for other queries (`SideFigures.stored`), if the sides of
    other joins are as `others` says."""
    rest = QuerySet(app.streams, tuple(one for one in app.queries if one.name != query.name), app.tables)
    found = []
    for side, mine in zip(join.sides, side_groups(query, join), strict=True):
        known = stored(rest, side.stream, None, others).relations if rest.readers(side.stream) else ()
        exact = [one for one in known if one.table == EXACT and not is_counted(side)]
        found.append(_stored(mine, exact))
    return tuple(found)


def _stored(mine: Relation, exact: list[Relation]) -> str:
    if mine.table == APPEND:
        return ALONE
    if any(replaces(one, mine) for one in exact):
        return FREE
    bare = replace(mine, states=(), arguments=())
    same = {frozenset(mine.attributes)}
    return SHARED if any(frozenset(one.attributes) in same and replaces(one, bare) for one in exact) else ALONE
