"""The entry to `logical`: app text, or a query from Python, to an immutable `QuerySet` with nothing left unresolved.

    text ─► lang.parse ─► statements ─► catalog.py ─► streams.py, nesting.py, select.py ─► QuerySet ─► sharing

What this module lets through, the engine runs; everything else is a `QueryError` at the word that is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from penstock.errors import QueryError, SourceError
from penstock.lang.ast import CreateQuery, Word
from penstock.lang.durations import LONGEST, parse_duration
from penstock.lang.parse import ParsedApp, parse_app, parse_queries, parse_select
from penstock.lang.text import AppText
from penstock.logical.expressions import Match
from penstock.logical.query import Field, Query, QuerySet, Stream, Table
from penstock.logical.resolve.catalog import AppCatalog, FixedCatalog
from penstock.logical.resolve.joins.tables import Tables
from penstock.logical.resolve.nesting import resolve_nested
from penstock.logical.resolve.streams import SchemaOf, make_stream

_FOLDER = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_LONGEST_NAME = 200  # file systems allow 255 bytes for a name; sinks add to it


def resolve_app(
    text: str,
    file: str,
    schema_of: SchemaOf,
    variables: Mapping[str, str] | None = None,
    tables: Tables | None = None,
) -> QuerySet:
    """Streams and queries of an app; `schema_of(uri, options)` is asked for streams declared without columns, `tables`
    reads tables."""
    return _resolved(parse_app(text, file, variables), schema_of, tables or NoTables())


def resolve_queries(text: str, schema_of: SchemaOf, tables: Tables | None = None) -> QuerySet:
    """The same of a text that may have SELECTs without CREATE QUERY, as `penstock query` takes it."""
    return _resolved(parse_queries(text, "query"), schema_of, tables or NoTables(), bounded=True)


class NoTables:
    """Where there is nothing to read tables with."""

    def read(
        self,
        name: str,
        uri: str,
        options: tuple[tuple[str, str], ...],
        fields: tuple[Field, ...] | None,
        longest: bool,
        refresh: int | None = None,
    ) -> Table:
        raise SourceError(f"table '{name}' cannot be read here")

    def several(self, match: Match) -> bool:
        raise AssertionError(f"table '{match.table}' was never read")

    def problem(self, match: Match) -> str | None:
        return None


def _resolved(app: ParsedApp, schema_of: SchemaOf, tables: Tables, bounded: bool = False) -> QuerySet:
    catalog = AppCatalog.of(app, schema_of, tables, bounded)
    for statement in _queries(app):
        catalog.query(statement, app.text)
    queries = tuple(catalog.resolved)
    read = {name for query in queries for name in query.inputs}
    streams = tuple(stream for stream in catalog.streams.values() if stream.name in read)
    return QuerySet(streams, queries, tuple(catalog.read.values()))


def resolve_query(
    name: str,
    select_text: str,
    streams: Iterable[Stream],
    sink: str | None = None,
    queries: Iterable[Query] = (),
    known: Iterable[Table] = (),
    tables: Tables | None = None,
) -> tuple[Query, ...]:
    """One SELECT over streams and queries that are already resolved, for `App.query` and `run.add_query`.

    Gives the query last, before it the hidden ones that stand inside it.
    """
    _check_query_name(name, None, None)
    catalog = FixedCatalog(tuple(streams), tables or NoTables(), tuple(queries), tuple(known))
    catalog.check_free(name)
    parsed = parse_select(select_text, f"query {name}")
    return resolve_nested(name, parsed.select, parsed.text, catalog, sink)


def resolve_stream(
    name: str,
    uri: str,
    schema_of: SchemaOf,
    options: Mapping[str, str] | None = None,
    *,
    fields: tuple[Field, ...] | None = None,
    time: str | None = None,
    delay: str | int | None = None,
    ahead: str | int | None = None,
) -> Stream:
    """A stream without SQL text, for `App.stream`; durations are text like '500 ms' or microseconds."""
    chosen = dict(options or {})
    if fields is None:
        try:
            fields = schema_of(uri, chosen)
        except SourceError as problem:
            raise QueryError(f"stream '{name}': {problem.fact}", problem.hint) from problem
    return make_stream(name, fields, uri, chosen, time, _microseconds(delay, "delay"), _microseconds(ahead, "ahead"))


def _microseconds(duration: str | int | None, what: str) -> int | None:
    if isinstance(duration, str):
        try:
            duration = parse_duration(duration)
        except ValueError as problem:
            raise QueryError(f"{what}: {problem}", "write it like '5 minutes' or '500 ms'") from None
    if duration is not None and not 0 <= duration <= LONGEST:
        raise QueryError(f"impossible {what}: it must be between zero and 292,000 years")
    return duration


def _queries(app: ParsedApp) -> list[CreateQuery]:
    queries = [statement for statement in app.statements if isinstance(statement, CreateQuery)]
    for query in queries:
        _check_query_name(query.name.text, query.name, app.text)
        if query.sink and not query.sink.text.strip():
            raise app.text.error(query.sink.span, "an empty sink address", "write it like 'parquet:out'")
    if not queries:
        span = app.statements[0].name.span
        raise app.text.error(span, "the app has no query", "add CREATE QUERY name AS SELECT ...")
    return queries


def _wrong_in(name: str) -> str:
    """What keeps a text from being the name of a folder everywhere.

    >>> _wrong_in("größe")
    "'ö' cannot be in it, only a to z, A to Z, digits, _ and -"
    """
    if len(name) > _LONGEST_NAME:
        return f"it has {len(name)} characters, and {_LONGEST_NAME} are the most"
    other = re.search(r"[^A-Za-z0-9_-]", name)
    if other is not None:
        return f"'{other[0]}' cannot be in it, only a to z, A to Z, digits, _ and -"
    return f"it cannot begin with '{name[:1]}', only with a to z, A to Z or _"


def _check_query_name(name: str, word: Word | None, text: AppText | None) -> None:
    """A query's name is the name of its folder."""
    if _FOLDER.fullmatch(name) and len(name) <= _LONGEST_NAME:
        return
    fact = f"'{name}' cannot be the name of a query" if len(name) <= _LONGEST_NAME else "the query's name is too long"
    hint = f"it names a folder: {_wrong_in(name)}"
    raise text.error(word.span, fact, hint) if text and word else QueryError(fact, hint)
