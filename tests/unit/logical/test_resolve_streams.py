"""Streams: types, schemas from the source, time columns, and streams declared from Python."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from penstock.errors import QueryError, SourceError
from penstock.logical.query import Field, Stream
from penstock.logical.resolve.app import resolve_app, resolve_query, resolve_stream
from penstock.logical.types import BIGINT, BOOLEAN, DOUBLE, INET, INT, SMALLINT, STRING, TIMESTAMP, TINYINT, Type

FIELDS = (Field("ts", TIMESTAMP), Field("a", INT))


def schema_of(uri: str, options: Mapping[str, str]) -> tuple[Field, ...]:
    if uri.startswith("missing:"):
        raise SourceError("no such file", "look elsewhere")
    return () if uri.startswith("nothing:") else FIELDS


def stream(declaration: str) -> Stream:
    text = f"CREATE STREAM r {declaration};\nCREATE QUERY q AS SELECT count(*) FROM r [RANGE '1 s'];"
    return resolve_app(text, "a.sql", schema_of).streams[0]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("TINYINT", TINYINT),
        ("SMALLINT", SMALLINT),
        ("INT", INT),
        ("integer", INT),
        ("BIGINT", BIGINT),
        ("FLOAT", DOUBLE),
        ("REAL", DOUBLE),
        ("DOUBLE", DOUBLE),
        ("DOUBLE PRECISION", DOUBLE),
        ("BOOLEAN", BOOLEAN),
        ("TIMESTAMP", TIMESTAMP),
        ("STRING", STRING),
        ("VARCHAR(20)", STRING),
        ("VARCHAR", STRING),
        ("TEXT", STRING),
        ("CHAR(3)", STRING),
        ("INET", INET),
    ],
)
def test_types(name: str, kind: Type) -> None:
    assert stream(f"(ts TIMESTAMP, a {name}) FROM 'csv:a'").fields[1] == Field("a", kind)


@pytest.mark.parametrize(
    ("columns", "clause", "time"),
    [
        ("a INT, ts TIMESTAMP, b TIMESTAMP", "", "ts"),
        ("a TIMESTAMP, Time TIMESTAMP", "", "Time"),
        ("time TIMESTAMP, ts TIMESTAMP", "", "ts"),
        ("ts INT, seen TIMESTAMP", "", "seen"),
        ("ts TIMESTAMP, seen TIMESTAMP", "WATERMARK SEEN DELAY '1 s'", "seen"),
    ],
)
def test_time_column(columns: str, clause: str, time: str) -> None:
    assert stream(f"({columns}) FROM 'csv:a' {clause}").time == time


def test_watermark() -> None:
    resolved = stream("(ts TIMESTAMP) FROM 'csv:a' WATERMARK ts DELAY '500 milliseconds' MAX AHEAD 1 HOUR")
    assert (resolved.delay, resolved.ahead) == (500_000, 3_600_000_000)
    without = stream("(ts TIMESTAMP) FROM 'csv:a'")
    assert (without.delay, without.ahead) == (None, None)
    assert stream("(ts TIMESTAMP) FROM 'csv:a' WATERMARK ts DELAY '0 s'").delay == 0


def test_schema_from_the_source() -> None:
    asked: list[tuple[str, dict[str, str]]] = []

    def remember(uri: str, options: Mapping[str, str]) -> tuple[Field, ...]:
        asked.append((uri, dict(options)))
        return FIELDS

    text = """CREATE STREAM r FROM 'pcap:a' WITH (speed = 'max');
    CREATE STREAM unused FROM 'pcap:b';
    CREATE STREAM written (ts TIMESTAMP) FROM 'pcap:c';
    CREATE QUERY p AS SELECT count(*) FROM r [RANGE '1 s'];
    CREATE QUERY q AS SELECT a, count(*) FROM r [RANGE '1 s'] GROUP BY a;"""
    resolved = resolve_app(text, "a.sql", remember).streams[0]
    assert resolved == Stream("r", FIELDS, "pcap:a", (("speed", "max"),), "ts")
    assert asked == [("pcap:a", {"speed": "max"})]


def test_source_error_keeps_its_words() -> None:
    with pytest.raises(QueryError, match="no such file") as caught:
        stream("FROM 'missing:a'")
    assert caught.value.hint == "look elsewhere"
    assert caught.value.place is not None
    assert isinstance(caught.value.__cause__, SourceError)


def test_source_without_columns() -> None:
    with pytest.raises(QueryError, match="no columns that can be read"):
        stream("FROM 'nothing:a'")


def test_columns_that_differ_in_case() -> None:
    def two(uri: str, options: Mapping[str, str]) -> tuple[Field, ...]:
        return (*FIELDS, Field("A", STRING), Field("b", INT))

    text = "CREATE STREAM r FROM 'x:a'; CREATE QUERY q AS SELECT count({}) FROM r [RANGE '1 s'];"
    for written, found in (("a", "a"), ("A", "A"), ('"A"', "A"), ("B", "b")):
        aggregate = resolve_app(text.format(written), "a.sql", two).queries[0].aggregates[0]
        assert aggregate.argument is not None
        assert aggregate.argument.name == found


# -- from Python


def test_resolve_stream() -> None:
    resolved = resolve_stream("r", "pcap:a", schema_of, {"speed": "max"}, delay="500 ms", ahead=7)
    assert resolved == Stream("r", FIELDS, "pcap:a", (("speed", "max"),), "ts", 500_000, 7)


def test_resolve_stream_with_fields() -> None:
    fields = (Field("began", TIMESTAMP), Field("ended", TIMESTAMP))
    assert resolve_stream("r", "x:a", schema_of, fields=fields, time="ended").time == "ended"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"uri": "missing:a"}, "stream 'r': no such file"),
        ({"uri": "nothing:a"}, "has no TIMESTAMP column"),
        ({"time": "tss"}, "unknown time column 'tss'"),
        ({"time": "a"}, "must be TIMESTAMP, but 'a' is INT"),
        ({"delay": "5"}, "delay: the duration '5' needs a unit"),
        ({"ahead": -1}, "impossible ahead"),
    ],
)
def test_resolve_stream_refuses(arguments: dict[str, str], problem: str) -> None:
    uri = arguments.pop("uri", "pcap:a")
    with pytest.raises(QueryError, match=problem):
        resolve_stream("r", uri, schema_of, **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "select", "problem"),
    [
        ("a b", "SELECT count(*) FROM r [RANGE '1 s']", "cannot be the name of a query"),
        ("", "SELECT count(*) FROM r [RANGE '1 s']", "cannot be the name of a query"),
        ("x" * 300, "SELECT count(*) FROM r [RANGE '1 s']", "too long"),
        ("q", "", "the query is empty"),
        ("q", "SELECT count(*) FROM s [RANGE '1 s']", "unknown stream or query 's'"),
        ("q", "SELECT b FROM r [RANGE '1 s']", "query q:1:8: unknown column 'b'"),
        ("q", "CREATE QUERY q AS SELECT 1", "expected SELECT, found 'CREATE'"),
    ],
)
def test_resolve_query_refuses(name: str, select: str, problem: str) -> None:
    streams = [Stream("r", FIELDS, "x:a", (), "ts")]
    with pytest.raises(QueryError) as caught:
        resolve_query(name, select, streams)
    assert problem in str(caught.value)
