"""Queries added to and dropped from a running app: a new version of the app, which the next batch takes up."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.errors import ConfigError, QueryError
from penstock.logical.query import QuerySet
from penstock.logical.resolve.app import resolve_query
from penstock.runtime.batch.job import columns
from penstock.sinks.registry import check_claims
from penstock.sinks.schema import open_query_sink
from penstock.sources.fit import check_fields, check_window
from penstock.state.versions import Version

if TYPE_CHECKING:
    from penstock.runtime.batch.driver import BatchDriver
    from penstock.runtime.settings import RunSettings


def added(driver: BatchDriver, name: str, select: str, sink: Any, settings: RunSettings) -> Version:
    """The app with one more query; its sink is ready before any batch may use it."""
    last = driver.version
    taken = {query.name.casefold() for query in last.app.queries} | {old.casefold() for old in last.retired}
    if name.casefold() in taken:
        raise QueryError(f"the name '{name}' is taken, or a dropped query had it", "choose another name")
    uri = sink if isinstance(sink, str) else None
    found = resolve_query(name, select, last.app.streams, uri, last.app.queries)
    app = QuerySet(last.app.streams, (*last.app.queries, *found))
    query = found[-1]
    for one in found:
        check_window(name, one.window, driver.feed.abilities(app.root(one).name))
    opened = open_query_sink(query, None if uri else sink, settings.output, Path(driver.job.checkpoint))
    check_claims({**driver.sinks, name: opened})
    outputs = {**last.outputs, name: opened.place()}
    new = Version(last.number + 1, app, driver.planner.plans(app), outputs, last.retired, last.planning)
    for stream, source in driver.job.sources.items():
        if stream in new.plans:
            used = columns(new.plans[stream])
            fields = tuple(f for f in new.plans[stream].stream.fields if f.name in used)
            check_fields(fields, source.schema(), f"'{new.plans[stream].stream.source}'")
    opened.bind(driver.spark)
    opened.prepare(driver.owner, settings.overwrite)
    driver.sinks[name] = opened
    return new


def dropped(driver: BatchDriver, name: str) -> Version:
    """The app without a query, and without the hidden ones that only it reads."""
    last = driver.version
    queries = {query.name: query for query in last.app.queries if not query.hidden}
    if name not in queries:
        raise ConfigError(f"there is no query '{name}'", f"queries are {', '.join(sorted(queries))}")
    readers = last.app.readers(name)
    if readers:
        raise ConfigError(f"query '{readers[0].name}' reads the results of '{name}'", "drop that one first")
    gone = {name} | {q.name for q in last.app.queries if q.hidden and q.name.startswith(f"{name}.")}
    left = tuple(query for query in last.app.queries if query.name not in gone)
    app = QuerySet(last.app.streams, left)
    for stream in last.app.streams:
        if not any(app.root(query).name == stream.name for query in left):
            raise ConfigError(f"'{name}' is the last query on stream '{stream.name}'", "stop the run instead")
    plans = driver.planner.plans(app)
    return Version(last.number + 1, app, plans, last.outputs, last.retired | gone, last.planning)
