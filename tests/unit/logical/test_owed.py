"""Queries without a promise read a live stream of their own, where others promise a delay."""

from __future__ import annotations

import pytest

from penstock.errors import QueryError
from penstock.logical.owed import OWED, added, by_kind, owing, with_owed
from penstock.logical.query import QuerySet, Stream
from penstock.logical.resolve.app import resolve_app
from support.declared_tables import Declared

COLUMNS = "(ts TIMESTAMP, src INET, dst INET, bytes BIGINT)"
STREAMS = f"""
CREATE STREAM flows {COLUMNS} FROM 'replay:pcap:a' WATERMARK ts DELAY '1 second' ON OVERLOAD KEEP RESERVOIR (50);
CREATE STREAM alerts {COLUMNS} FROM 'replay:pcap:b' WATERMARK ts DELAY '1 second';
CREATE TABLE owners (address INET, name STRING) FROM 'csv:owners.csv';
"""
PROMISED = """
CREATE QUERY talkers AS
  SELECT src, sum(bytes * 2) AS b FROM flows [RANGE '1 minute'] GROUP BY src LIMIT DELAY TO '2 seconds';
"""
PLAIN = "CREATE QUERY totals AS SELECT src, sum(bytes * 2) AS b FROM flows [RANGE '1 minute'] GROUP BY src;"


def app(queries: str, several: bool = False) -> QuerySet:
    return resolve_app(STREAMS + queries, "a.sql", lambda uri, options: (), tables=Declared(several))


def live(stream: Stream) -> bool:
    return stream.source.startswith("replay:")


def inputs(found: QuerySet) -> dict[str, tuple[str, ...]]:
    return {query.name: query.inputs for query in found.queries}


def test_both_kinds_on_one_live_stream() -> None:
    before = app(PROMISED + PLAIN)
    found = with_owed(before, live)
    assert inputs(found) == {"talkers": ("flows",), "totals": ("flows:owed",)}
    first, second = found.streams
    assert (first.name, second.name) == ("flows", "flows" + OWED)
    assert (first.source, first.fields, first.delay) == (second.source, second.fields, second.delay)
    assert found.query("talkers") == before.query("talkers")
    assert found.query("totals").aggregates == before.query("totals").aggregates
    assert found.tables == before.tables
    assert found.roots(found.query("totals")) == (second,)


def test_nothing_to_do() -> None:
    for queries in (PROMISED, PLAIN):
        one = app(queries)
        assert with_owed(one, live) is one
    both = app(PROMISED + PLAIN)
    assert with_owed(both, lambda stream: False) is both
    once = with_owed(both, live)
    assert with_owed(once, live) is once


def test_only_streams_that_are_mixed() -> None:
    found = with_owed(app(f"{PROMISED} {PLAIN} {PLAIN.replace('flows', 'alerts').replace('totals', 'others')}"), live)
    assert inputs(found) == {"talkers": ("flows",), "totals": ("flows:owed",), "others": ("alerts",)}
    assert {stream.name for stream in found.streams} == {"flows", "alerts", "flows:owed"}


def test_hidden_queries_and_what_reads_results() -> None:
    found = with_owed(
        app(
            f"""{PROMISED}
            CREATE QUERY busy AS
              WITH m AS (SELECT src, count(*) AS n FROM flows [RANGE '1 minute'] GROUP BY src)
              SELECT src, max(n) AS n FROM m [RANGE '5 minutes'] GROUP BY src;
            CREATE QUERY busiest AS SELECT max(n) AS n FROM busy [RANGE '1 hour'];"""
        ),
        live,
    )
    assert inputs(found) == {
        "talkers": ("flows",),
        "busy.m": ("flows:owed",),
        "busy": ("busy.m",),
        "busiest": ("busy",),
    }
    assert [stream.name for stream in found.roots(found.query("busiest"))] == ["flows:owed"]
    assert [[query.name for query in level] for level in found.levels] == [["talkers", "busy.m"], ["busy"], ["busiest"]]


def test_joins() -> None:
    found = with_owed(
        app(
            f"""{PROMISED}
            CREATE QUERY pairs AS
              SELECT A.src, count(*) AS n
              FROM flows A [RANGE '1 minute'], alerts B [RANGE '1 minute'], flows C [RANGE '1 minute']
              WHERE A.src = B.src AND B.src = C.dst GROUP BY A.src;
            CREATE QUERY quiet AS
              SELECT B.src FROM alerts B [RANGE '1 minute']
              WHERE NOT EXISTS (SELECT 1 FROM flows F [RANGE '1 minute'] WHERE F.src = B.src);
            CREATE QUERY owned AS
              SELECT O.name, count(*) AS n FROM flows F [RANGE '1 minute'], owners O
              WHERE F.src = O.address GROUP BY O.name LIMIT DELAY TO '3 seconds';
            CREATE QUERY owned-later AS
              SELECT O.name, count(*) AS n FROM flows F [RANGE '1 minute'], owners O
              WHERE F.src = O.address GROUP BY O.name;""",
            several=True,
        ),
        live,
    )
    assert inputs(found) == {
        "talkers": ("flows",),
        "pairs": ("flows:owed", "alerts"),
        "quiet": ("alerts", "flows:owed"),
        "owned": ("flows",),
        "owned-later": ("flows:owed",),
    }
    pairs = found.query("pairs").join
    assert pairs is not None
    assert [side.stream for side in pairs.sides] == ["flows:owed", "alerts", "flows:owed"]
    assert [side.alias for side in pairs.sides] == ["A", "B", "C"]
    assert {query.name for query in found.readers("flows")} == {"talkers", "owned"}


def test_queries_join_those_of_their_kind() -> None:
    both, later = with_owed(app(PROMISED + PLAIN), live), PLAIN.replace("totals", "more")
    (plain,) = app(later).queries
    assert [query.inputs for query in added(both, (plain,), live)] == [("flows:owed",)]
    assert added(app(PLAIN), (plain,), live) == (plain,)
    (promised,) = app(PROMISED.replace("talkers", "more")).queries
    assert added(both, (promised,), live) == added(app(PROMISED), (promised,), live) == (promised,)
    for there, query, told in (
        (PROMISED, plain, "promises no delay, and the queries that run on the live stream 'flows' promise one"),
        (PLAIN, promised, "promises a delay, and the queries that run on the live stream 'flows' promise none"),
    ):
        with pytest.raises(QueryError) as caught:
            added(app(there), (query,), live)
        assert caught.value.fact == f"query 'more' {told}"
    assert {kind: query.name for kind, query in by_kind(both, "flows").items()} == {True: "talkers", False: "totals"}


def test_names() -> None:
    assert owing("flows:owed") == "flows"
    assert owing("flows") is None
    assert owing("flows:owed:owed") == "flows:owed"
