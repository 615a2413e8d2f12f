"""Names of streams and queries: those of an app's text, in any order, and those that Python code made."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.errors import QueryError
from penstock.lang.ast import CreateQuery, CreateStream, Word
from penstock.lang.parse import ParsedApp
from penstock.lang.text import AppText
from penstock.logical.query import Query, Stream, Table
from penstock.logical.resolve.joins.tables import Tables
from penstock.logical.resolve.nesting import resolve_nested
from penstock.logical.resolve.promises.clause import check_readable
from penstock.logical.resolve.promises.keep import reservoir
from penstock.logical.resolve.scopes import Input, results_input, suggestion, table_input
from penstock.logical.resolve.streams import SchemaOf, declared_fields, file_stream, resolve_declared
from penstock.logical.resolve.tables import resolve_table

_LONGEST_CHAIN = 40  # queries on results of queries on results; far from Python's limit
_OWN_NAME = "each stream, table and query needs its own"


@dataclass
class AppCatalog:
    """An app's declarations; `streams` and `resolved` fill as queries read them, each query after what it reads.

    Where all is `bounded`, also streams need no window and no time.
    """

    declared: dict[str, CreateStream | CreateQuery]
    schema_of: SchemaOf
    tables: Tables
    bounded: bool = False
    streams: dict[str, Stream] = field(default_factory=dict)
    resolved: list[Query] = field(default_factory=list)
    files: dict[str, Stream] = field(default_factory=dict)  # by address
    read: dict[str, Table] = field(default_factory=dict)  # tables
    _results: dict[str, Query] = field(default_factory=dict)
    _path: list[str] = field(default_factory=list)  # of queries that wait for those they read

    @classmethod
    def of(cls, app: ParsedApp, schema_of: SchemaOf, tables: Tables, bounded: bool = False) -> AppCatalog:
        declared: dict[str, CreateStream | CreateQuery] = {}
        for statement in app.statements:
            word = statement.name
            # Folders of results and streams share one space of names, also where only the case differs.
            if word.text.casefold() in declared:
                raise app.text.error(word.span, f"the name '{word.text}' is taken", _OWN_NAME)
            declared[word.text.casefold()] = statement
            if isinstance(statement, CreateStream):
                declared_fields(statement.columns or (), app.text)
        return cls(declared, schema_of, tables, bounded)

    def find(self, name: Word, text: AppText) -> Input:
        found = self.declared.get(name.text.casefold())
        if found is None or not name.same(found.name.text):
            hint = suggestion(name.text, [s.name.text for s in self.declared.values()], "the streams and queries")
            if not any(isinstance(one, CreateStream) for one in self.declared.values()):
                hint = "declare it with CREATE STREAM, or name a file in quotes: FROM 'flows.parquet'"
            raise text.error(name.span, f"unknown stream or query '{name.text}'", hint)
        if isinstance(found, CreateQuery):
            self._check_path(found, name, text)
            query = self.query(found, text)
            check_readable(query, name, text)
            return results_input(query, found.name.text, self.bounded)
        if found.table:
            return table_input(self._table(found, name, text))
        return Input(self._stream(found, name, text), found.name.text, bounded=self._bounded(found))

    def file(self, address: Word, text: AppText) -> Input:
        """A file is a stream of its own, the same one wherever it is named."""
        stream = self.files.get(address.text)
        if stream is None:
            taken = {*self.declared, *(known.name.casefold() for known in self.streams.values())}
            stream = file_stream(address, text, self.schema_of, taken)
            self.files[address.text] = self.streams[stream.name] = stream
        return Input(stream, address.text, bounded=True, file=True)

    def query(self, statement: CreateQuery, text: AppText) -> Query:
        """Resolve a query, and those it reads before it, unless that has been done."""
        name = statement.name.text
        if name not in self._results:
            self._path.append(name)
            sink = statement.sink.text if statement.sink else None
            queries = resolve_nested(name, statement.select, text, self, sink)
            self._path.pop()
            self._check_keeping(queries[-1], text)
            self.resolved.extend(queries)
            self._results[name] = queries[-1]
        return self._results[name]

    def _bounded(self, declared: CreateStream) -> bool:
        """A WATERMARK says that windows close while the stream goes on."""
        return self.bounded and declared.watermark is None

    def _check_keeping(self, query: Query, text: AppText) -> None:
        """What a stream keeps in a burst matters where a delay is promised."""
        for name in query.inputs if query.promise is not None else ():
            declared = self.declared.get(name.casefold())
            if isinstance(declared, CreateStream):
                reservoir(declared.overload, text)

    def _check_path(self, found: CreateQuery, name: Word, text: AppText) -> None:
        path, wanted = self._path, found.name.text
        if wanted in path:
            told = " reads ".join(f"'{query}'" for query in (*path[path.index(wanted) :], wanted))
            raise text.error(name.span, f"a cycle of queries: {told}", "a query cannot read its own results")
        if len(path) >= _LONGEST_CHAIN and wanted not in self._results:
            fact = f"more than {_LONGEST_CHAIN} queries read each other's results in a row"
            raise text.error(name.span, fact)

    def _stream(self, found: CreateStream, name: Word, text: AppText) -> Stream:
        called = found.name.text
        if called not in self.streams:
            if found.source is None:
                hint = "add FROM 'scheme:address' to its CREATE STREAM"
                raise text.error(name.span, f"stream '{called}' has no source", hint)
            needed = not self._bounded(found)
            self.streams[called] = resolve_declared(found, found.source, text, self.schema_of, needed)
        return self.streams[called]

    def _table(self, found: CreateStream, name: Word, text: AppText) -> Table:
        called = found.name.text
        if called not in self.read:
            if found.source is None:
                hint = "add FROM 'csv:file.csv' to its CREATE TABLE"
                raise text.error(name.span, f"table '{called}' has no source", hint)
            self.read[called] = resolve_table(found, found.source, text, self.tables)
        return self.read[called]


@dataclass(frozen=True)
class FixedCatalog:
    """Streams, tables and queries that Python code declared."""

    streams: tuple[Stream, ...]
    tables: Tables
    queries: tuple[Query, ...] = ()
    known: tuple[Table, ...] = ()
    bounded: bool = False

    def find(self, name: Word, text: AppText) -> Input:
        shown = [query for query in self.queries if not query.hidden]
        known = [Input(stream, stream.name) for stream in self.streams] + [table_input(one) for one in self.known]
        known += [results_input(query, query.name, self.bounded) for query in shown]
        found = [candidate for candidate in known if name.same(candidate.name)]
        exact = [candidate for candidate in found if candidate.name == name.text]
        if not found:
            hint = suggestion(name.text, [candidate.name for candidate in known], "the streams and queries")
            raise text.error(name.span, f"unknown stream or query '{name.text}'", hint)
        chosen = (exact or found)[0]
        for query in shown:
            if chosen.results and query.name == chosen.name:
                check_readable(query, name, text)
        return chosen

    def file(self, address: Word, text: AppText) -> Input:
        hint = "declare it: app.stream(name, address); or use App.sql, or penstock query"
        raise text.error(address.span, "a file in FROM cannot be read here", hint)

    def check_free(self, name: str) -> None:
        """A query needs a name of its own."""
        taken = [stream.name for stream in self.streams] + [query.name for query in self.queries]
        taken += [table.name for table in self.known]
        if name.casefold() in (other.casefold() for other in taken):
            raise QueryError(f"the name '{name}' is taken", _OWN_NAME)
