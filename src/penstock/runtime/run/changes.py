"""What may change about an app on a checkpoint: queries may be added and dropped, between runs (`adopt`) and while one
goes on (`Amending`); anything else is refused, with advice.

Either makes a new version of the app, which the next batch that is decided takes up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.errors import ConfigError, QueryError, StateError
from penstock.logical.owed import KINDS, OWED, added, by_kind, other_kind, owing
from penstock.logical.query import Query, QuerySet
from penstock.logical.resolve.app import resolve_query
from penstock.logical.resolve.promises.clause import arrives
from penstock.runtime.batch.held import Held
from penstock.runtime.expressions.known_tables import KnownTables
from penstock.runtime.planning.planners import RunPlanner
from penstock.runtime.settings import RunSettings
from penstock.sharing.options import Planning
from penstock.sinks.base import Sink
from penstock.sinks.registry import check_claims, check_needs
from penstock.sinks.schema import open_query_sink
from penstock.sources.base import Abilities, Source
from penstock.sources.fit import check_fields, check_window
from penstock.state import manifest as manifests
from penstock.state import versions
from penstock.state.manifest import Manifest
from penstock.state.versions import Planned, Version

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ADVICE = "drop it and add the changed one under a new name, or use another checkpoint"


def adopt(
    checkpoint: Path,
    app: QuerySet,
    planning: Planning,
    planned: Planned,
    outputs: Mapping[str, str],
    manifest: Manifest | None = None,
) -> Version:
    """The version that a run goes on with: the newest, if app and planning are the same, else a new one."""
    number = versions.newest(checkpoint)
    if number is None:
        first = versions.first_version(app, planned, outputs, planning)
        versions.store(checkpoint, first)
        return first
    last = versions.load(checkpoint, number)
    if app == last.app and planning == last.planning:
        return last
    new = versions.next_version(last, app, planned, manifest, outputs, planning)
    versions.store(checkpoint, new)
    return new


def check_changes(checkpoint: Path, last: Version, app: QuerySet, outputs: Mapping[str, str]) -> None:
    known = {table.name: table for table in last.app.tables}
    for table in app.tables:
        if table.name in known and known[table.name].digest != table.digest:
            raise StateError(
                f"table '{table.name}' has changed since checkpoint {checkpoint} was made with it",
                "restore it as it was, or use another checkpoint",
            )
    for stream in app.streams:
        for old in last.app.streams:
            if old.name == stream.name and old != stream:
                raise StateError(
                    f"stream '{stream.name}' differs from the one that checkpoint {checkpoint} was made with: "
                    f"{_difference(old, stream)}",
                    "run the app with the stream as it was, or use another checkpoint",
                )
    _check_kinds(checkpoint, last.app, app)
    for old in last.app.streams:
        if old.name not in {stream.name for stream in app.streams}:
            raise StateError(
                f"checkpoint {checkpoint} reads stream '{old.name}', but no query of this app does",
                "keep at least one of its queries, or use another checkpoint",
            )
    old_queries = {query.name: query for query in last.app.queries}
    for query in app.queries:
        _check_query(checkpoint, last, old_queries.get(query.name), query, outputs)


def _check_kinds(checkpoint: Path, last: QuerySet, app: QuerySet) -> None:
    """Queries that promise a delay and others read a live stream apart, if both are there: so it stays."""
    for stream in filter(arrives, last.streams):
        had, has = by_kind(last, stream.name), by_kind(app, stream.name)
        for promised, query in has.items():
            if had and promised not in had:
                others = f"the queries of checkpoint {checkpoint} on the live stream '{stream.name}'"
                raise StateError(*other_kind(query, others))
        for promised in had:
            if has and promised not in has:
                raise StateError(
                    f"checkpoint {checkpoint} has a query on the live stream '{stream.name}' that {KINDS[promised]}, "
                    "but this app has none",
                    "keep at least one of these queries, or use another checkpoint",
                )


def _check_query(checkpoint: Path, last: Version, old: Query | None, query: Query, outputs: Mapping[str, str]) -> None:
    if old is None:
        if query.name.casefold() in {name.casefold() for name in last.retired}:
            raise StateError(
                f"checkpoint {checkpoint} had a query '{query.name}' that was dropped", "add it under a new name"
            )
        return
    if old != query:
        raise StateError(
            f"query '{query.name}' differs from the one that checkpoint {checkpoint} was made with: "
            f"{_difference(old, query)}",
            ADVICE,
        )
    place = last.outputs.get(query.name)
    if query.name in outputs and place != outputs[query.name]:
        raise StateError(
            f"query '{query.name}' of checkpoint {checkpoint} writes to {place}, not {outputs[query.name]}",
            "give the same --output as before, or use another checkpoint",
        )


def _difference(old: object, new: object) -> str:
    """The first part that differs, in the words of SQL."""
    words = {
        "fields": "its columns", "source": "its source", "options": "its options", "time": "its time column",
        "delay": "its watermark delay", "ahead": "its MAX AHEAD", "window": "its window", "where": "its WHERE",
        "keys": "its GROUP BY", "select": "its select list", "having": "its HAVING", "stream": "what it reads",
        "sink": "its sink", "order": "its ORDER BY", "limit": "its LIMIT", "per_tuple": "its DISTINCT",
        "join": "what it joins", "promise": "its LIMIT DELAY", "keep": "its ON OVERLOAD KEEP",
    }  # fmt: skip
    for name in old.__dataclass_fields__:  # type: ignore[attr-defined]
        if name != "aggregates" and getattr(old, name) != getattr(new, name):  # those follow from the others
            return f"{words.get(name, name)} changed"
    return "it changed"


# -- while it runs


@dataclass(frozen=True)
class Amending:
    """What changing a running app takes; `session` is Spark's, if there is one, `sinks` are those of the driver,
    `tables` what those that are read again held when the run began, by name."""

    session: SparkSession | None
    held: Held
    planner: RunPlanner
    sinks: dict[str, Sink]
    sources: Mapping[str, Source]
    abilities: Callable[[str], Abilities]  # of a stream
    settings: RunSettings
    tables: Mapping[str, str] = field(default_factory=dict)

    def add(self, name: str, select: str, sink: Any) -> None:
        with self.held.changing:
            self.held.amend(self._added(name, select, sink))

    def drop(self, name: str) -> None:
        with self.held.changing:
            self.held.amend(self._dropped(name))

    def _added(self, name: str, select: str, sink: Any) -> Version:
        """The app with one more query; its sink is ready before any batch may use it."""
        last = self.held.version
        taken = {query.name.casefold() for query in last.app.queries} | {old.casefold() for old in last.retired}
        if name.casefold() in taken:
            raise QueryError(f"the name '{name}' is taken, or a dropped query had it", "choose another name")
        uri = sink if isinstance(sink, str) else None
        found = added(last.app, self._resolved(last.app, name, select, uri), arrives)
        app = QuerySet(last.app.streams, (*last.app.queries, *found), last.app.tables)
        for one in found:
            for root in app.roots(one):
                for window in one.windows_on(root.name):
                    check_window(name, window, self.abilities(root.name))
        opened = open_query_sink(found[-1], None if uri else sink, self.settings.output, self.held.path)
        check_claims({**self.sinks, name: opened})
        check_needs({name: opened}, self.session is not None)
        new = self._next(last, app, {name: opened.place()})
        self._check_sources(new)
        if self.session is not None:
            opened.bind(self.session)
        opened.prepare(self.held.owner, self.settings.overwrite)
        self.sinks[name] = opened
        return new

    def _resolved(self, app: QuerySet, name: str, select: str, uri: str | None) -> tuple[Query, ...]:
        """The query, if it can take tables as its first batch will see them. One may be read again before that, and is
        then taken back to what the run began with where the query cannot take it: that must fit as well."""
        newest = manifests.newest(self.held.path)
        contents = [self.tables, *([newest.offset.contents] if newest is not None and newest.offset.tables else [])]
        found: tuple[Query, ...] = ()
        for versions_of in contents:
            known = KnownTables(versions=versions_of)
            found = tuple(resolve_query(name, select, app.streams, uri, app.queries, app.tables, known))
        return found

    def _check_sources(self, new: Version) -> None:
        """Columns that only the new query reads must fit, too."""
        for name, source in self.sources.items():
            if name in new.plans:
                plan = new.plans[name]
                check_fields(plan.fields, source.schema(), f"'{plan.stream.source}'")

    def _dropped(self, name: str) -> Version:
        """The app without a query, and without the hidden ones that only it reads."""
        last = self.held.version
        queries = {query.name: query for query in last.app.queries if not query.hidden}
        if name not in queries:
            raise ConfigError(f"there is no query '{name}'", f"queries are {', '.join(sorted(queries))}")
        readers = last.app.readers(name)
        if readers:
            raise ConfigError(f"query '{readers[0].name}' reads the results of '{name}'", "drop that one first")
        gone = {name} | {q.name for q in last.app.queries if q.hidden and q.name.startswith(f"{name}.")}
        left = tuple(query for query in last.app.queries if query.name not in gone)
        app = QuerySet(last.app.streams, left, last.app.tables)
        read = {stream.name for query in left for stream in app.roots(query)}
        for stream in last.app.streams:
            if stream.name not in read:
                raise ConfigError(
                    f"'{name}' is the last query on {_told(last.app, stream.name)}", "stop the run instead"
                )
        return self._next(last, app)

    def _next(self, last: Version, app: QuerySet, outputs: Mapping[str, str] | None = None) -> Version:
        newest = manifests.newest(self.held.path)
        return versions.next_version(last, app, partial(self.planner.plans, app), newest, outputs)


def _told(app: QuerySet, stream: str) -> str:
    """A stream, in words for people: they know of no stream that is owed."""
    declared = owing(stream) or stream
    if declared + OWED not in {one.name for one in app.streams}:
        return f"stream '{declared}'"
    return f"the live stream '{declared}' that {KINDS[stream == declared]}"
