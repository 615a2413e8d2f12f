"""The Python API: `App` collects streams and queries, `start` runs them as one Spark streaming query.

app = penstock.App()
app.stream("packets", "parquet:trace.parquet")
app.query("talkers", "SELECT src, count(*) AS n FROM packets [RANGE '1 minute' SLIDE '1 minute'] GROUP BY src")
run = app.start(checkpoint="ckpt"); run.await_end(); run.results("talkers").show()
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from penstock.errors import ConfigError, QueryError
from penstock.logical.query import Field, Query, QuerySet, Stream
from penstock.logical.resolve import resolve_app, resolve_query, resolve_stream
from penstock.runtime.settings import TaskSettings
from penstock.sharing.explain import explain_plan, plan_text
from penstock.sharing.plan import SharedPlan, unshared_plan
from penstock.sources.base import Source, fields
from penstock.sources.fit import check_fields
from penstock.sources.registry import open_source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.runtime.engine import Listener, Run

PLANS = ("auto", "none")
LATER_PLANS = ("gc", "gp", "epes", "tree")
TASK_SETTINGS = tuple(TaskSettings.__dataclass_fields__)


def source_fields(uri: str, options: Mapping[str, str]) -> tuple[Field, ...]:
    """Columns of a source, for streams declared without a schema."""
    return fields(open_source(uri, options).schema())


class App:
    """Streams and queries. With `spark` given, runs in that session; else in one of its own, made at `start`."""

    def __init__(self, spark: SparkSession | None = None, master: str = "local[*]") -> None:
        self._spark, self._master = spark, master
        self._streams: dict[str, Stream] = {}
        self._queries: dict[str, Query] = {}

    def stream(self, name: str, source: str, **options: Any) -> App:
        """Declare a stream over a source URI. Also: `time`, `delay`, `ahead`, `fields`, `options` (of the source)."""
        if not isinstance(source, str):
            raise ConfigError(
                "a DataFrame as a stream is not executable yet", "write it to Parquet and use parquet:FOLDER"
            )
        self._claim(name, self._streams, "stream")
        self._streams[name] = resolve_stream(name, source, source_fields, options.pop("options", None), **options)
        return self

    def query(self, name: str, select: str, sink: str | None = None) -> App:
        """Add a query; its results go to `sink` (a URI), or into a folder of its name below `output`."""
        self._claim(name, self._queries, "query")
        self._queries[name] = resolve_query(name, select, self._streams.values(), sink)
        return self

    def sql(self, text: str, file: str = "app", variables: Mapping[str, str] | None = None) -> App:
        """Add the CREATE STREAM and CREATE QUERY statements of an app's text."""
        app = resolve_app(text, file, source_fields, variables)
        for stream in app.streams:
            self._claim(stream.name, self._streams, "stream")
            self._streams[stream.name] = stream
        for query in app.queries:
            self._claim(query.name, self._queries, "query")
            self._queries[query.name] = query
        return self

    def _claim(self, name: str, taken: Mapping[str, Any], what: str) -> None:
        if name.lower() in (other.lower() for other in taken):
            raise QueryError(f"there are two of {what} '{name}'", "give each its own name")

    def query_set(self) -> QuerySet:
        """The app, checked as far as it can be without running it."""
        if not self._queries:
            raise QueryError("the app has no query", "add one with App.query or CREATE QUERY")
        used = sorted({query.stream for query in self._queries.values()})
        if len(used) > 1:
            raise QueryError(f"queries over several streams ({', '.join(used)}) in one app are not executable yet")
        app = QuerySet((self._streams[used[0]],), tuple(self._queries.values()))
        self.source(app)
        return app

    def source(self, app: QuerySet) -> Source:
        """Open the app's source and see that it has the columns that queries need, as declared."""
        (stream,) = app.streams
        source = open_source(stream.source, dict(stream.options))
        used = {stream.time}.union(*(query.columns for query in app.queries))
        check_fields(tuple(f for f in stream.fields if f.name in used), source.schema(), f"'{stream.source}'")
        return source

    def plan(self, app: QuerySet, kind: str = "auto", memory: int | None = None) -> SharedPlan:
        """Plan the app; sharing is not executable yet, so `auto` is `none`."""
        if kind in LATER_PLANS:
            raise ConfigError(f"--plan {kind} is not executable yet", f"use one of {', '.join(PLANS)}")
        if kind not in PLANS:
            raise ConfigError(f"unknown plan '{kind}'", f"use one of {', '.join(PLANS)}")
        if memory is not None and memory < 0:
            raise ConfigError("memory cannot be negative")
        return unshared_plan(app, memory or 0)

    def explain(self, kind: str = "auto", memory: int | None = None) -> str:
        """The plan as text."""
        return plan_text(self.explain_dict(kind, memory))

    def explain_dict(self, kind: str = "auto", memory: int | None = None) -> dict[str, Any]:
        app = self.query_set()
        return explain_plan(self.plan(app, kind, memory), self.source(app).rows(), TaskSettings().slots)

    def start(
        self,
        checkpoint: str | None = None,
        *,
        plan: str = "auto",
        memory: int | None = None,
        listener: Listener | None = None,
        on_phase: Callable[[str], None] = lambda phase: None,
        **settings: Any,
    ) -> Run:
        """Run the app; returns at once. Settings: see `RunSettings` and `TaskSettings`."""
        from penstock.runtime.engine import RunSettings, start
        from penstock.runtime.session import build_session

        started = time.time()
        app = self.query_set()
        chosen = self.plan(app, plan, memory)
        source = self.source(app)
        planned = time.time()
        run_settings = _settings(RunSettings, checkpoint, settings)
        on_phase("starting Spark")
        if self._spark is None:
            self._spark = build_session(self._master)
        seconds = {"planning": planned - started, "startup": time.time() - planned}
        ignore: Listener = lambda report, manifest: None  # noqa: E731
        return start(self._spark, app, chosen, source, run_settings, listener or ignore, seconds)

    def close(self) -> None:
        """Stop the Spark session."""
        if self._spark is not None:
            self._spark.stop()
            self._spark = None


def _settings(kind: Any, checkpoint: str | None, given: dict[str, Any]) -> Any:
    """RunSettings with TaskSettings inside, from flat keywords; None means the default."""
    given = {name: value for name, value in given.items() if value is not None}
    task = {name: given.pop(name) for name in TASK_SETTINGS if name in given}
    known = set(kind.__dataclass_fields__) - {"task", "checkpoint"}
    for name in given:
        if name not in known:
            raise ConfigError(
                f"unknown setting '{name}'", f"settings are {', '.join(sorted(known | set(TASK_SETTINGS)))}"
            )
    for name, value in {**given, **task}.items():
        if isinstance(value, int) and not isinstance(value, bool) and value < 1:
            raise ConfigError(f"{name} must be at least 1, not {value}")
    if task.get("slots", 1) > 256:
        raise ConfigError(f"slots must be at most 256, not {task['slots']}")
    return kind(checkpoint=checkpoint, task=TaskSettings(**task), **given)
