"""What a burst leaves unread is owed to queries that promise no delay: they stay exact, and come later.

Queries with LIMIT DELAY and others on one live stream do not wait for each other: the others read it as a stream of
their own, `NAME:owed`, with its own position and watermark, as in an app of their own. Nothing of both is shared.

    flows ──► queries with a promise          on time, triaged where a burst leaves no other way
    flows:owed ──► all other queries          exact, behind the first where that takes all the time there is

Which streams there are is decided when a checkpoint is made. Later, queries of a kind come and go, kinds do not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from penstock.errors import QueryError
from penstock.logical.query import Query, QuerySet, Side, Stream

OWED = ":owed"  # no stream that is declared is called so

KINDS = {True: "promises a delay", False: "promises no delay"}


def with_owed(app: QuerySet, live: Callable[[Stream], bool]) -> QuerySet:
    """The app with such streams, where it needs some. Hidden queries promise nothing, and are moved as any others; what
    reads results stays where it is."""
    mixed = {stream.name for stream in app.streams if live(stream) and _mixed(app, stream.name)}
    if not mixed:
        return app
    owed = tuple(replace(stream, name=stream.name + OWED) for stream in app.streams if stream.name in mixed)
    queries = tuple(query if query.promise is not None else _moved(query, mixed) for query in app.queries)
    return QuerySet((*app.streams, *owed), queries, app.tables)


def added(app: QuerySet, found: tuple[Query, ...], live: Callable[[Stream], bool]) -> tuple[Query, ...]:
    """Queries that join a running app, on the streams that are there for their like. Streams cannot come any more."""
    names, fitting = {stream.name for stream in app.streams}, list[Query]()
    for query in found:
        mixed = {s.name for s in app.streams if live(s) and s.name in query.inputs and _mixed_with(app, s.name, query)}
        for name in sorted(mixed):
            if query.promise is not None or name + OWED not in names:
                raise QueryError(*other_kind(query, f"the queries that run on the live stream '{name}'"))
        fitting.append(_moved(query, mixed))
    return tuple(fitting)


def other_kind(query: Query, others: str) -> tuple[str, str]:
    """Why a query cannot join others on a live stream: fact and hint."""
    does, do = KINDS[query.promise is not None], "promise one" if query.promise is None else "promise none"
    hint = "both kinds must be there when a checkpoint is made: start with them on a new one"
    return f"query '{query.name}' {does}, and {others} {do}", hint


def by_kind(app: QuerySet, stream: str) -> dict[bool, Query]:
    """One query of each kind on a declared stream, whether it reads what is owed or not; True: it promises a delay."""
    return {query.promise is not None: query for query in (*app.readers(stream), *app.readers(stream + OWED))}


def owing(stream: str) -> str | None:
    """The declared stream that this one has its records of; None: it is declared itself."""
    return stream.removesuffix(OWED) if stream.endswith(OWED) else None


def _mixed_with(app: QuerySet, stream: str, query: Query) -> bool:
    readers = app.readers(stream)
    return bool(readers) and any((one.promise is None) != (query.promise is None) for one in readers)


def _mixed(app: QuerySet, stream: str) -> bool:
    return len({query.promise is None for query in app.readers(stream)}) > 1


def _moved(query: Query, mixed: set[str]) -> Query:
    if query.join is not None:
        sides, inner = (tuple(_side(side, mixed) for side in of) for of in (query.join.sides, query.join.inner))
        return replace(query, join=replace(query.join, sides=sides, inner=inner))
    return replace(query, stream=query.stream + OWED) if query.stream in mixed else query


def _side(side: Side, mixed: set[str]) -> Side:
    return replace(side, stream=side.stream + OWED) if side.stream in mixed else side
