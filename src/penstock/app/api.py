"""The Python API: `App` collects streams and queries, `start` runs them as one Spark streaming query, or without Spark.

app = penstock.App()
app.stream("packets", "parquet:trace.parquet")
app.query("talkers", "SELECT src, count(*) AS n FROM packets [RANGE '1 minute' SLIDE '1 minute'] GROUP BY src")
run = app.start(checkpoint="ckpt"); run.await_end(); run.results("talkers").show()
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from penstock.app.sessions import PROCESS, Sessions
from penstock.app.settings import planning_of, settings_of
from penstock.app.streams import is_frame, table_of, typed_fields, with_types
from penstock.errors import ConfigError, QueryError
from penstock.logical.owed import with_owed
from penstock.logical.query import Field, Query, QuerySet, Stream, Table
from penstock.logical.resolve.app import resolve_app, resolve_queries, resolve_query, resolve_stream
from penstock.logical.resolve.promises.clause import arrives
from penstock.runtime.batch.job import columns
from penstock.runtime.engine.inputs import Inputs
from penstock.runtime.expressions.known_tables import KnownTables
from penstock.runtime.settings import TaskSettings
from penstock.sharing.options import AUTO
from penstock.sharing.plan import SharedPlan, unshared_plan
from penstock.sources.base import OF_FRAMES, Source
from penstock.sources.base import fields as source_fields
from penstock.sources.fit import check_fields, check_window
from penstock.sources.live.preparing import check_live
from penstock.sources.registry import open_source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.runtime.batch.report import Observer
    from penstock.runtime.engine.base import Engine
    from penstock.runtime.run.run import Run
    from penstock.sharing.explain_html import Explanation
    from penstock.sources.arrow.table import TableSource

FRAME, VIEW, TABLE = "frame:", "spark:", "table:"


class App:
    """Streams and queries. With `spark` given, runs in that session, which is never stopped or changed; else in one of
    its own, made at `start`: on `master`, or the one of `spark-submit`, or local[*], with the settings of `conf`.

    With the master `process` there is no Spark: tasks run in processes that penstock forks, `parallelism` at a time.
    """

    def __init__(
        self, spark: SparkSession | None = None, master: str | None = None, conf: Mapping[str, Any] | None = None
    ) -> None:
        self._sessions = Sessions(spark, master, conf)
        self._streams: dict[str, Stream] = {}
        self._queries: dict[str, Query] = {}
        self._frames: dict[str, DataFrame] = {}
        self._tables: dict[str, TableSource] = {}  # streams and tables in memory
        self._joined: dict[str, Table] = {}  # tables that queries join with
        self._functions: dict[str, Any] = {}  # sinks that are no URI
        self._last = ""  # checkpoint of the run that was started last

    def stream(
        self,
        name: str,
        source: Any,
        *,
        fields: tuple[Field, ...] | Mapping[str, str] | None = None,
        types: Mapping[str, str] | None = None,
        options: Mapping[str, str] | None = None,
        **clauses: Any,
    ) -> App:
        """Declare a stream over a source URI, a Spark DataFrame (streaming or static), or a table in memory: a pandas
        or polars DataFrame, an Arrow table, anything with `__arrow_c_stream__`.

        `types` adds to what the source knows: {"src": "INET"} reads that column as an address, the others as they are.
        `fields` says all columns instead, {"ts": "TIMESTAMP", …}: for files without a header, and folders without a
        file. Also: `time`, `delay`, `ahead` (as in WATERMARK), `options` of the source.
        """
        self._claim(name, "stream")
        address = source if isinstance(source, str) else self._given(name, source, options)
        if isinstance(fields, Mapping):
            fields = typed_fields(fields)
        if types is not None:
            fields = with_types(fields or self.fields_of(address, options or {}), types, f"stream '{name}'")
        self._streams[name] = resolve_stream(name, address, self.fields_of, options, fields=fields, **clauses)
        return self

    def _given(self, name: str, source: Any, options: Mapping[str, str] | None) -> str:
        """Take in a source that is an object; the address by which the app knows it."""
        if options:
            raise ConfigError(f"stream '{name}' has options, but no address", "options are for sources like csv:FILE")
        if is_frame(source):
            self._frames[name] = source
            return FRAME + name
        self._tables[name] = table_of(name, source)
        return TABLE + name

    def table(
        self,
        name: str,
        source: Any,
        *,
        fields: tuple[Field, ...] | Mapping[str, str] | None = None,
        types: Mapping[str, str] | None = None,
        options: Mapping[str, str] | None = None,
        match: str | None = None,
        refresh: str | None = None,
    ) -> App:
        """Declare a table to join with: an address like 'csv:owners.csv', a pandas or polars DataFrame, an Arrow table,
        or a Spark DataFrame, which is collected. It is read now, and whole.

        `fields` and `types` as of `stream`. `match="longest"`: of the ranges that hold a value the shortest counts.
        `refresh="10 seconds"`: files that have changed are read again while the app runs, at most so often.
        """
        from penstock.logical.resolve.tables import LONGEST, REFRESH_HINT, refresh_interval

        self._claim(name, "table")
        try:
            interval = None if refresh is None else refresh_interval(refresh)
        except ValueError as problem:
            raise ConfigError(f"refresh of table '{name}': {problem}", REFRESH_HINT) from problem
        if match not in (None, LONGEST):
            raise ConfigError(f"tables cannot be matched by '{match}'", f"match='{LONGEST}' takes the longest prefix")
        if is_frame(source):
            source = source.toArrow()
        address = source if isinstance(source, str) else self._given(name, source, options)
        if isinstance(fields, Mapping):
            fields = typed_fields(fields)
        if types is not None:
            fields = with_types(fields or self.fields_of(address, options or {}), types, f"table '{name}'")
        chosen = tuple((key, str(value)) for key, value in (options or {}).items())
        self._joined[name] = self._reader.read(name, address, chosen, fields, match == LONGEST, interval)
        return self

    def query(self, name: str, select: str, sink: Any = None) -> App:
        """Add a query. `sink`: a URI, a function f(frame, batch), or a SparkSink; without one, results go into a
        folder of the query's name below `output`."""
        self._claim(name, "query")
        uri = sink if isinstance(sink, str) else None
        queries, joined = tuple(self._queries.values()), self._joined.values()
        for query in resolve_query(name, select, self._streams.values(), uri, queries, joined, self._reader):
            self._queries[query.name] = query
        if sink is not None and uri is None:
            self._functions[name] = sink
        return self

    def sql(self, text: str, file: str = "app", variables: Mapping[str, str] | None = None) -> App:
        """Add the CREATE STREAM and CREATE QUERY statements of an app's text."""
        return self._add(resolve_app(text, file, self.fields_of, variables, self._reader))

    def selects(self, text: str) -> App:
        """Add SELECTs on files, which need no names and no streams: `SELECT count(*) AS n FROM 'x.pcap'`."""
        return self._add(resolve_queries(text, self.fields_of, self._reader))

    @property
    def _reader(self) -> KnownTables:
        return KnownTables(self._source)

    def _add(self, app: QuerySet) -> App:
        for table in app.tables:
            self._claim(table.name, "table")
            self._joined[table.name] = table
        for stream in app.streams:
            self._claim(stream.name, "stream")
            self._streams[stream.name] = stream
        for query in app.queries:
            self._claim(query.name, "query")
            self._queries[query.name] = query
        return self

    def _claim(self, name: str, what: str) -> None:
        if name.casefold() in (other.casefold() for other in (*self._streams, *self._queries, *self._joined)):
            raise QueryError(f"the name '{name}' is taken", f"give each {what} its own")

    def fields_of(self, uri: str, options: Mapping[str, str]) -> tuple[Field, ...]:
        """Columns of a source, for streams declared without a schema."""
        frame = self._frame(uri)
        return source_fields(_arrow_schema(frame) if frame is not None else self._source(uri, options).schema())

    def _source(self, uri: str, options: Mapping[str, str], declared: tuple[Field, ...] | None = None) -> Source:
        table = self._tables.get(uri.removeprefix(TABLE)) if uri.startswith(TABLE) else None
        return open_source(uri, options, declared) if table is None else table

    def _frame(self, uri: str) -> DataFrame | None:
        """The DataFrame behind a stream's address, if that is what it names."""
        if uri.startswith(FRAME):
            return self._frames.get(uri.removeprefix(FRAME))
        if uri.startswith(VIEW):
            return self._view(uri.removeprefix(VIEW))
        return None

    def _view(self, name: str) -> DataFrame:
        from pyspark.errors import PySparkException

        try:
            return self.session().table(name)
        except PySparkException as error:
            reason = str(error).strip().splitlines()[0]
            raise ConfigError(f"Spark has no table '{name}': {reason}", "spark:NAME reads a table or view") from None

    def session(self) -> SparkSession:
        """The session that the app runs in; one of its own is started if need be."""
        return self._sessions.get()

    def query_set(self, *, opened: bool = True) -> QuerySet:
        """The app; `opened`: its sources were opened, and have what queries need."""
        app = self._app()
        if opened:
            self.inputs(app)
        return app

    def check(self, checkpoint: str | None = None, **settings: Any) -> QuerySet:
        """The app, if `start` with these settings would not refuse it before anything runs."""
        from penstock.runtime.run.admission import check_start

        app = self._app()
        _, rest = planning_of(settings, app)
        sessions, run_settings = self._sessions, settings_of(checkpoint, rest)
        check_start(app, self._functions, run_settings, self.inputs(app), sessions.with_spark, sessions.master)
        return app

    def _app(self) -> QuerySet:
        if not self._queries:
            raise QueryError("the app has no query", "add one with App.query or CREATE QUERY")
        everything = QuerySet(tuple(self._streams.values()), tuple(self._queries.values()))
        used = {stream.name for query in everything.queries for stream in everything.roots(query)}
        streams = tuple(stream for name, stream in self._streams.items() if name in used)
        return with_owed(QuerySet(streams, everything.queries, tuple(self._joined.values())), arrives)

    def inputs(self, app: QuerySet) -> Inputs:
        """Open the app's sources and see that they have the columns that queries need, as declared."""
        frames = {stream.name: frame for stream in app.streams if (frame := self._frame(stream.source)) is not None}
        if not frames:
            return Inputs({stream.name: self._open(app, stream) for stream in app.streams})
        if len(app.streams) > 1:
            raise QueryError("a DataFrame beside another stream in one app is not executable yet")
        ((name, frame),) = frames.items()
        stream = app.stream(name)
        for query in app.readers(name):
            check_window(query.name, query.window, OF_FRAMES)
        if stream.options:
            raise QueryError(f"the DataFrame '{name}' has no options, but is given '{stream.options[0][0]}'")
        check_fields(_used(app, stream), _arrow_schema(frame), f"the DataFrame '{name}'")
        return Inputs(frame=frame, name=name)

    def _open(self, app: QuerySet, stream: Stream) -> Source:
        source = self._source(stream.source, dict(stream.options), stream.fields)
        check_fields(_used(app, stream), source.schema(), f"'{stream.source}'")
        check_live(stream, source)
        return source

    def plans(self, **options: Any) -> tuple[SharedPlan, ...]:
        """The plan of every stream, and of every query whose results are read, by a first sample of the sources.

        Options: those of `Planning`, `batch_rows`, `parallelism`.
        """
        from penstock.runtime.planning.planners import planner_of

        app = self._app()
        planning, rest = planning_of(options, app)
        settings = settings_of(None, rest)
        planner = planner_of(planning, app, settings.task.task_memory)
        planner.look(app, self.inputs(app).sources, settings.batch_rows, settings.parallelism or os.cpu_count() or 1)
        return tuple(planner.plans(app).values())

    def explain(self, *, analyze: bool = False, **options: Any) -> Explanation:
        """The plan as text, in a notebook as tables; options as of `plans`. With `analyze` the app is run, its results
        are discarded, and what was measured stands beside what was predicted."""
        from penstock.sharing.explain_html import Explanation

        return Explanation(self.explained(analyze=analyze, **options))

    def explain_dict(self, *, analyze: bool = False, **options: Any) -> dict[str, Any]:
        """The plan of the stream; of several, and of results that queries read, as a list below `streams`."""
        from penstock.sharing.explain import explained_dict

        return explained_dict(self.explained(analyze=analyze, **options))

    def explained(self, *, analyze: bool = False, **options: Any) -> list[dict[str, Any]]:
        """The plan of every stream, and of every query whose results are read, as dicts."""
        if not analyze:
            from penstock.sharing.explain import explain_plan

            asked, rows = options.get("plan") or AUTO, self.rows()
            return [
                explain_plan(plan, rows.get(plan.stream.name), TaskSettings().slots, asked)
                for plan in self.plans(**options)
            ]
        from penstock.app.analysis import Analysis

        with Analysis(self, options) as analysis:
            analysis.start().await_end()
            return analysis.explained()

    def rows(self) -> dict[str, int]:
        """Records of every source, as far as sources know them."""
        return {name: source.rows() for name, source in self.inputs(self._app()).sources.items()}

    def discarding(self) -> App:
        """The same app, with results that go wherever a run says, and nowhere that the app names."""
        return self.changed(lambda query: replace(query, sink=None))

    def changed(self, change: Callable[[Query], Query], master: str | None = None) -> App:
        """The same app with other queries, and on another master if one is given."""
        twin = App(master=master)
        if master is None:
            twin._sessions = self._sessions
        twin._streams, twin._frames, twin._tables = dict(self._streams), dict(self._frames), dict(self._tables)
        twin._joined = dict(self._joined)
        twin._queries = {name: change(query) for name, query in self._queries.items()}
        return twin

    def start(
        self,
        checkpoint: str | None = None,
        *,
        listener: Observer | None = None,
        on_phase: Callable[[str], None] = lambda phase: None,
        replace: bool = False,
        **settings: Any,
    ) -> Run:
        """Run the app; returns at once. `listener` is called after every batch. With `replace`, a run of this process
        on the same checkpoint is stopped first (without a checkpoint: the last run of this app); else, while it goes
        on, a new one is refused.

        Settings: see `Planning`, `RunSettings` and `TaskSettings`.
        """
        from penstock.runtime.engine.base import SPARK
        from penstock.runtime.planning.first_look import FirstLook
        from penstock.runtime.run.active import make_way
        from penstock.runtime.run.admission import check_start
        from penstock.runtime.run.start import open_run, start

        started = time.monotonic()
        app = self._app()
        planning, rest = planning_of(settings, app)
        inputs = self.inputs(app)
        run_settings = settings_of(checkpoint, rest)
        with_spark = self._sessions.with_spark
        if run_settings.checkpoint or self._last:
            make_way(run_settings.checkpoint or self._last, replace)
        check_start(app, self._functions, run_settings, inputs, with_spark, self._sessions.master)
        self._sessions.check()
        opened = open_run(SPARK if with_spark else PROCESS, app, inputs, self._functions, run_settings)
        tasks = run_settings.parallelism or os.cpu_count() or 1
        look = FirstLook(planning, app, inputs.sources, run_settings, tasks, opened.manifest.offset)
        planned = time.monotonic()
        on_phase("starting Spark" if with_spark else "starting workers")
        try:
            engine = self._engine(app, with_spark, run_settings.parallelism, on_phase)
            planner = look.planner()
        except BaseException:
            opened.lease.release()
            raise
        seconds = {"planning": planned - started, "startup": time.monotonic() - planned}
        observers = () if listener is None else (listener,)
        try:
            run = start(engine, opened, app, inputs, run_settings, planner, observers, seconds)
        except BaseException:
            engine.close()
            raise
        self._last = run.checkpoint
        return run

    def _engine(self, app: QuerySet, with_spark: bool, parallelism: int | None, tell: Callable[[str], None]) -> Engine:
        if with_spark:
            from penstock.runtime.engine.spark import SparkEngine

            return SparkEngine(self._sessions.get(tell), parallelism, tell)
        from penstock.runtime.engine.process import ProcessEngine

        return ProcessEngine(parallelism, any(query.join is not None for query in app.queries))

    def __repr__(self) -> str:
        shown = [query for query in self._queries.values() if not query.hidden]
        return f"<penstock.App: {len(self._streams)} streams, {len(shown)} queries>"

    def _repr_html_(self) -> str:
        from penstock.app.shown import app_html

        return app_html(self._streams.values(), self._queries.values())

    @property
    def with_spark(self) -> bool:
        """Whether it runs on Spark."""
        return self._sessions.with_spark

    def close(self, wait: bool = True) -> None:
        """End the Spark session, if it is penstock's own and no other app runs in it. Without `wait`: this process ends
        now, and a Spark that is on this machine alone by itself after it."""
        self._sessions.close(wait)


def _used(app: QuerySet, stream: Stream) -> tuple[Field, ...]:
    used = columns(unshared_plan(app, stream.name))
    return tuple(field for field in stream.fields if field.name in used)


def _arrow_schema(frame: DataFrame) -> Any:
    from pyspark.sql.pandas.types import to_arrow_schema

    # Columns of types that Arrow does not know cannot be read, but do not stand in the way of the others.
    usable = [field.name for field in frame.schema.fields if field.dataType.typeName() not in ("void", "variant")]
    return to_arrow_schema(frame.select(*(f"`{name}`" for name in usable)).schema, timezone="UTC")
