"""The entry to `logical`: app text, or a query from Python, to an immutable `QuerySet` with nothing left unresolved.

    text ─► lang.parse ─► statements ─► streams.py, select.py ─► QuerySet ─► sharing

What this module lets through, the engine runs; everything else is a `QueryError` at the word that is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from penstock.errors import QueryError, SourceError
from penstock.lang.ast import CreateQuery, CreateStream, Word
from penstock.lang.durations import LONGEST, parse_duration
from penstock.lang.parse import ParsedApp, parse_app, parse_select
from penstock.lang.text import AppText
from penstock.logical.query import Field, Query, QuerySet, Stream
from penstock.logical.scopes import suggestion
from penstock.logical.select import resolve_select
from penstock.logical.streams import SchemaOf, declared_fields, make_stream, resolve_declared

_FOLDER = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_LONGEST_NAME = 200  # file systems allow 255 bytes for a name; sinks add to it


def resolve_app(text: str, file: str, schema_of: SchemaOf, variables: Mapping[str, str] | None = None) -> QuerySet:
    """Streams and queries of an app; `schema_of(uri, options)` is asked for streams declared without columns."""
    app = parse_app(text, file, variables)
    catalog = _AppCatalog.of(app, schema_of)
    queries: list[Query] = []
    for statement in _queries(app):
        sink = statement.sink.text if statement.sink else None
        queries.append(resolve_select(statement.name.text, statement.select, app.text, catalog, sink))
    return QuerySet(tuple(catalog.used.values()), tuple(queries))


def resolve_query(name: str, select_text: str, streams: Iterable[Stream], sink: str | None = None) -> Query:
    """One SELECT over streams that are already resolved, for `App.query` and `run.add_query`."""
    _check_query_name(name, None, None)
    parsed = parse_select(select_text, f"query {name}")
    return resolve_select(name, parsed.select, parsed.text, _FixedCatalog(tuple(streams)), sink)


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


def _check_query_name(name: str, word: Word | None, text: AppText | None) -> None:
    """A query's name is the name of its folder."""
    if _FOLDER.fullmatch(name) and len(name) <= _LONGEST_NAME:
        return
    fact = f"'{name}' cannot be the name of a query" if len(name) <= _LONGEST_NAME else "the query's name is too long"
    hint = "it names a folder: begin with a letter or _, go on with letters, digits, _ and -"
    raise text.error(word.span, fact, hint) if text and word else QueryError(fact, hint)


@dataclass
class _AppCatalog:
    """The declared streams and tables; `used` fills as queries read them."""

    declared: dict[str, CreateStream]
    schema_of: SchemaOf
    used: dict[str, Stream] = field(default_factory=dict)

    @classmethod
    def of(cls, app: ParsedApp, schema_of: SchemaOf) -> _AppCatalog:
        declared: dict[str, CreateStream] = {}
        names: set[str] = set()
        for statement in app.statements:
            word = statement.name
            # Folders of results and streams share one space of names, also where only the case differs.
            if word.text.casefold() in names:
                raise app.text.error(
                    word.span, f"the name '{word.text}' is taken", "each stream, table and query needs its own"
                )
            names.add(word.text.casefold())
            if isinstance(statement, CreateStream):
                declared[word.text.casefold()] = statement
                declared_fields(statement.columns or (), app.text)
        return cls(declared, schema_of)

    def stream(self, name: Word, text: AppText) -> Stream:
        found = self.declared.get(name.text.casefold())
        if found is None or not name.same(found.name.text):
            hint = suggestion(name.text, [s.name.text for s in self.declared.values()], "the streams")
            raise text.error(name.span, f"unknown stream '{name.text}'", hint)
        if found.table:
            raise text.error(name.span, f"reading the table '{found.name.text}' is not executable yet")
        stream = self.used.get(found.name.text)
        if stream is None:
            if self.used:
                raise text.error(name.span, "an app that reads more than one stream is not executable yet")
            if found.source is None:
                hint = "add FROM 'scheme:address' to its CREATE STREAM"
                raise text.error(name.span, f"stream '{found.name.text}' has no source", hint)
            stream = self.used[found.name.text] = resolve_declared(found, found.source, text, self.schema_of)
        return stream


@dataclass(frozen=True)
class _FixedCatalog:
    """Streams that Python code declared."""

    streams: tuple[Stream, ...]

    def stream(self, name: Word, text: AppText) -> Stream:
        found = [stream for stream in self.streams if name.same(stream.name)]
        exact = [stream for stream in found if stream.name == name.text]
        if not found:
            hint = suggestion(name.text, [s.name for s in self.streams], "the streams")
            raise text.error(name.span, f"unknown stream '{name.text}'", hint)
        return (exact or found)[0]
