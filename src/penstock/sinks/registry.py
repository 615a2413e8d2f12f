"""Finds the sink that a query names. A new sink adds one line to `SCHEMES`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pyarrow as pa

from penstock.errors import ConfigError
from penstock.sinks import batches, memory
from penstock.sinks.base import DriverOnly, Sink
from penstock.sinks.console import ConsoleSink
from penstock.sinks.discard import DiscardSink
from penstock.sinks.function import FunctionSink, function_name
from penstock.sinks.memory import MemorySink
from penstock.sinks.parquet import ParquetSink
from penstock.sinks.spark import SparkSink
from penstock.state.files import local_path

Open = Callable[[str, str, pa.Schema, Path], Sink]  # query, what follows the scheme, schema, checkpoint


def _folder(scheme: str, kind: str) -> Open:
    """A folder of files: the class `kind` of the module `scheme`, which is loaded when somebody asks for it."""

    def open_folder(query: str, rest: str, schema: pa.Schema, checkpoint: Path) -> Sink:
        if not rest.strip():
            raise ConfigError(f"query '{query}' writes to '{scheme}:', which names no folder", f"write {scheme}:FOLDER")
        sink: Sink = getattr(import_module(f"penstock.sinks.{scheme}"), kind)(
            query, str(local_path(rest, "output")), schema
        )
        return sink

    return open_folder


def _console(query: str, rest: str, schema: pa.Schema, checkpoint: Path) -> Sink:
    name, _, options = rest.partition("?")
    given = dict(parse_qsl(options, keep_blank_values=True))
    rows = given.pop("rows", None)
    if name or given or (rows is not None and not (rows.isdecimal() and int(rows) > 0)):
        raise ConfigError(
            f"query '{query}' writes to unknown sink 'console:{rest}'", "write console: or console:?rows=50"
        )
    staged = str(checkpoint / batches.FOLDER / query)
    return ConsoleSink(query, staged, schema, **({} if rows is None else {"rows": int(rows)}))


def _memory(query: str, rest: str, schema: pa.Schema, checkpoint: Path) -> Sink:
    if rest and not rest.isidentifier():
        raise ConfigError(f"query '{query}': '{rest}' cannot be the name of a view", "write memory: or memory:NAME")
    return MemorySink(query, str(checkpoint / memory.FOLDER / query), schema, rest)


def _discard(query: str, rest: str, schema: pa.Schema, checkpoint: Path) -> Sink:
    if rest:
        raise ConfigError(f"query '{query}' writes to unknown sink 'discard:{rest}'", "write discard:")
    return DiscardSink(query)


SCHEMES: dict[str, Open] = {
    "parquet": _folder("parquet", "ParquetSink"),
    "csv": _folder("csv", "CsvSink"),
    "json": _folder("json", "JsonSink"),
    "console": _console,
    "memory": _memory,
    "discard": _discard,
}


# What people ask for, and what to do until it is there.
ELSEWHERE = frozenset({"kafka", "jdbc", "postgres", "postgresql", "mysql", "delta", "iceberg"})


def open_sink(query: str, sink: Any, output: Path, schema: pa.Schema, checkpoint: Path) -> Sink:
    """The sink of a query: a URI, a function, a SparkSink; without any, the folder `output`/query.

    `schema` is that of the results, strings as strings; `checkpoint` is where rows of sinks without a folder lie.
    """
    checkpoint = checkpoint.absolute()
    if sink is None:
        return ParquetSink(query, str(output.absolute() / query), schema)
    if isinstance(sink, str):
        return _open_uri(query, sink, schema, checkpoint)
    if not callable(sink):
        raise ConfigError(
            f"the sink of query '{query}' is a {type(sink).__name__}",
            "give a URI, a function f(frame, batch) or a SparkSink",
        )
    name = sink.place() if isinstance(sink, SparkSink) else function_name(sink)
    return FunctionSink(query, str(checkpoint / batches.FOLDER / query), schema, DriverOnly(sink), name)


def _open_uri(query: str, uri: str, schema: pa.Schema, checkpoint: Path) -> Sink:
    scheme, colon, rest = uri.partition(":")
    if not colon or scheme.lower() not in SCHEMES:
        if scheme.lower() in ELSEWHERE:
            raise ConfigError(
                f"query '{query}' writes to unknown sink '{uri}': there is no {scheme.lower()}: yet",
                f'from Python: App.query(name, select, sink=SparkSink("{scheme.lower()}", options={{...}}))',
            )
        known = ", ".join(f"{s}:" for s in sorted(SCHEMES))
        raise ConfigError(f"query '{query}' writes to unknown sink '{uri}'", f"a sink starts with one of {known}")
    return SCHEMES[scheme.lower()](query, rest, schema, checkpoint)


def check_claims(sinks: Mapping[str, Sink]) -> None:
    """Refuse two queries that write to one place."""
    taken: dict[str, str] = {}
    for name, sink in sinks.items():
        claim = sink.claim()
        other = taken.setdefault(claim, name) if claim is not None else name
        if other != name:
            raise ConfigError(f"queries '{other}' and '{name}' both write to {sink.place()}", "give each its own")


def check_needs(sinks: Mapping[str, Sink], with_spark: bool) -> None:
    """Refuse sinks that need Spark where there is none."""
    for name, sink in sinks.items():
        if sink.needs_spark() and not with_spark:
            raise ConfigError(
                f"query '{name}' writes to {sink.place()}, which needs Spark",
                "run the app on a Spark master, or send the results to a folder: parquet:, csv:, json:",
            )
