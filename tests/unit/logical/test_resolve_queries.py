"""Computed keys, projections, ORDER BY, and queries on results of queries."""

from __future__ import annotations

import pytest

from penstock.errors import QueryError
from penstock.logical.expressions import Aggregate, Call, Column, Computed, IsNull, Literal, Prefix
from penstock.logical.query import Order, Query, QuerySet
from penstock.logical.render import render
from penstock.logical.resolve.app import resolve_app, resolve_query
from penstock.logical.types import BIGINT, DOUBLE, INET, INT, STRING, TIMESTAMP
from penstock.logical.window import Window

STREAM = """
CREATE STREAM packets (
  ts TIMESTAMP, src INET, dst INET, sport INT, bytes BIGINT, rate DOUBLE, up BOOLEAN, host STRING
) FROM 'pcap:trace.pcap';
CREATE STREAM flows (ts TIMESTAMP, src INET, octets BIGINT) FROM 'csv:flows.csv';
"""
FIVE = "FROM packets [RANGE '5 minutes']"
MINUTE = 60_000_000


def app(text: str) -> QuerySet:
    return resolve_app(STREAM + text, "a.sql", lambda uri, options: ())


def query(select: str) -> Query:
    return app(f"CREATE QUERY q AS {select};").queries[-1]


def keys(resolved: Query) -> list[tuple[str, str]]:
    return [(key.name, key.attribute.name if not isinstance(key.attribute, Prefix) else "/") for key in resolved.keys]


# -- computed keys


def test_grouped_expressions_are_columns_of_the_query() -> None:
    resolved = query(f"SELECT bytes + sport AS n, (bytes + sport) * 2, count(*) {FIVE} GROUP BY bytes+sport")
    (key,) = resolved.keys
    assert isinstance(key.attribute, Computed)
    assert (key.name, key.attribute.name, key.attribute.type) == ("n", "=bytes + sport", BIGINT)
    assert resolved.select[0].expression == key.attribute
    assert render(resolved.select[1].expression) == "(bytes + sport) * 2"
    assert resolved.select[1].expression.left == key.attribute  # type: ignore[union-attr]
    assert resolved.columns == {"bytes", "sport"}


@pytest.mark.parametrize(
    ("select", "group", "key"),
    [
        ("lower(host)", "LOWER(Host)", ("lower(host)", "=lower(host)")),
        ("h", "lower(host) AS h", ("h", "=lower(host)")),
        ("lower(host) AS h", "h", ("h", "=lower(host)")),
        ("lower(host) AS h", "1", ("h", "=lower(host)")),
        ("(host IS NULL) AS missing", "host IS NULL", ("missing", "=host IS NULL")),
        ("bytes / 2", "bytes/2", ("bytes / 2", "=bytes / 2")),
        ("hour(ts)", "extract(hour FROM ts)", ("hour(ts)", "=hour(ts)")),
        ("CASE WHEN up THEN 1 ELSE 0 END AS c", "if(up, 1, 0)", ("c", "=CASE WHEN up THEN 1 ELSE 0 END")),
        ("src/24 = '10.0.0.0/24' AS home", "home", ("home", "=src/24 = '10.0.0.0/24'")),
        ("bytes", "+bytes", ("bytes", "bytes")),
        ("date_trunc('hour', ts) AS h", "h", ("h", "=date_trunc('hour', ts)")),
    ],
)
def test_computed_keys(select: str, group: str, key: tuple[str, str]) -> None:
    resolved = query(f"SELECT {select}, count(*) {FIVE} GROUP BY {group}")
    assert keys(resolved) == [key]
    assert resolved.select[0].expression == resolved.keys[0].attribute


def test_computed_keys_in_having_and_order() -> None:
    resolved = query(
        f"SELECT count(*) AS n {FIVE} GROUP BY bytes % 10 HAVING bytes % 10 > 3 AND n > 1 ORDER BY abs(bytes % 10)"
    )
    key = resolved.keys[0].attribute
    assert resolved.having is not None
    assert render(resolved.having) == "bytes % 10 > 3 AND count(*) > 1"
    assert resolved.order == (Order(Call("abs", (key,), BIGINT)),)


def test_aggregates_of_expressions() -> None:
    resolved = query(f"SELECT sum(bytes * 8), sum(bytes*8) / 2 AS h, max(rate) {FIVE}")
    assert len(resolved.aggregates) == 2
    argument = resolved.aggregates[0].argument
    assert isinstance(argument, Computed)
    assert argument.name == "=bytes * 8"
    assert resolved.aggregates[1].argument == Column("rate", DOUBLE)


# -- tuples


def test_projection() -> None:
    resolved = query(f"SELECT src, src/24 AS net, bytes * 8 AS bits, 'x' AS tag, ts, bytes * 8 {FIVE} WHERE up")
    assert resolved.per_tuple
    assert resolved.aggregates == ()
    assert [key.name for key in resolved.keys] == ["src", "net", "bits", "ts"]
    assert resolved.select[3].expression == Literal("x", STRING)
    assert resolved.select[5].name == "bytes * 8"
    assert resolved.select[2].expression == resolved.select[5].expression == resolved.keys[2].attribute


def test_projection_of_constants() -> None:
    resolved = query(f"SELECT 1 AS one, 1 + 1 AS two {FIVE}")
    assert (resolved.per_tuple, resolved.keys) == (True, ())


@pytest.mark.parametrize("star", ["*", "packets.*", "p.*"])
def test_star(star: str) -> None:
    resolved = query(f"SELECT {star}, bytes + 1 AS more FROM packets p [RANGE '1 s']")
    assert [output.name for output in resolved.select] == [
        "ts", "src", "dst", "sport", "bytes", "rate", "up", "host", "more",
    ]  # fmt: skip
    assert resolved.select[1].expression == Column("src", INET)


def test_projection_ordered_by_what_is_not_selected() -> None:
    resolved = query(f"SELECT src AS bytes {FIVE} ORDER BY packets.bytes DESC, 1 LIMIT 3")
    assert [key.name for key in resolved.keys] == ["bytes", "bytes'"]
    assert resolved.order == (Order(Column("bytes", BIGINT), True), Order(Column("src", INET)))


def test_distinct() -> None:
    resolved = query(f"SELECT DISTINCT src, lower(host) AS h, 1 AS one {FIVE} ORDER BY h")
    assert not resolved.per_tuple
    assert keys(resolved) == [("src", "src"), ("h", "=lower(host)")]
    bucketed = query("SELECT DISTINCT ts/5 AS tb, src FROM packets")
    assert bucketed.window == Window(5 * MINUTE, 5 * MINUTE)


def test_distinct_of_groups_is_no_news() -> None:
    assert query(f"SELECT DISTINCT src, count(*) AS n {FIVE} GROUP BY src") == query(
        f"SELECT src, count(*) AS n {FIVE} GROUP BY src"
    )


# -- ORDER BY and LIMIT


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("n", ["count(*)"]),
        ("n DESC, src", ["count(*) DESC", "src"]),
        ("2 DESC, 1 ASC", ["count(*) DESC", "src"]),
        ("N + 1, sum(bytes) DESC", ["count(*) + 1", "sum(bytes) DESC"]),
        ("n, n DESC, n", ["count(*)", "count(*) DESC"]),
        ("src NULLS FIRST", ["src"]),
        ("src DESC NULLS LAST", ["src DESC"]),
        ("src NULLS LAST", ["src IS NULL", "src"]),
        ("src DESC NULLS FIRST", ["src IS NULL DESC", "src DESC"]),
        ("-n", ["0 - count(*)"]),
    ],
)
def test_order(order: str, expected: list[str]) -> None:
    resolved = query(f"SELECT src, count(*) AS n {FIVE} GROUP BY src ORDER BY {order} LIMIT 10")
    assert [render(o.expression) + (" DESC" if o.descending else "") for o in resolved.order] == expected
    assert resolved.limit == 10


def test_output_names_go_before_columns_in_order() -> None:
    resolved = query(f"SELECT src, sum(rate) AS bytes {FIVE} GROUP BY src, bytes ORDER BY bytes, packets.bytes")
    assert [render(o.expression) for o in resolved.order] == ["sum(rate)", "bytes"]


def test_aggregates_of_order_are_collected() -> None:
    resolved = query(f"SELECT src {FIVE} GROUP BY src ORDER BY max(rate)")
    assert resolved.aggregates == (Aggregate("max", Column("rate", DOUBLE), DOUBLE),)
    assert resolved.limit is None


def test_an_aggregate_in_order_alone_makes_one_group() -> None:
    resolved = query(f"SELECT 1 AS one {FIVE} ORDER BY count(*) LIMIT 0")
    assert (resolved.per_tuple, resolved.limit) == (False, 0)


# -- queries on results


def test_results_are_streams() -> None:
    resolved = app(
        """CREATE QUERY busy AS SELECT net, sum(n) AS total FROM minutes [RANGE '1 hour'] WHERE n > 10 GROUP BY net;
        CREATE QUERY minutes AS SELECT src/24 AS net, count(*) AS n FROM packets EVERY 1 MINUTE GROUP BY net;
        CREATE QUERY other AS SELECT count(*) FROM flows EVERY 1 MINUTE;"""
    )
    assert [q.name for q in resolved.queries] == ["minutes", "busy", "other"]
    assert [stream.name for stream in resolved.streams] == ["packets", "flows"]
    busy = resolved.query("busy")
    assert busy.stream == "minutes"
    assert busy.keys[0].attribute == Column("net", STRING)
    assert [stream.name for stream in resolved.roots(busy)] == ["packets"]
    assert [field.name for field in resolved.stream("minutes").fields] == [
        "net", "n", "window_start", "window_end", "ts",
    ]  # fmt: skip


@pytest.mark.parametrize("time", ["ts", "window_end"])
def test_buckets_of_results(time: str) -> None:
    resolved = app(
        f"""CREATE QUERY minutes AS SELECT count(*) AS n FROM packets EVERY 1 MINUTE;
        CREATE QUERY q AS SELECT tb, max(n), max(window_start) AS began FROM minutes GROUP BY {time}/5 AS tb;"""
    )
    assert resolved.query("q").window == Window(5 * MINUTE, 5 * MINUTE)
    assert resolved.query("q").select[2].expression.type == TIMESTAMP


def test_star_of_results_is_their_select_list() -> None:
    resolved = app(
        """CREATE QUERY minutes AS SELECT src, count(*) AS n FROM packets EVERY 1 MINUTE GROUP BY src;
        CREATE QUERY q AS SELECT * FROM minutes [RANGE '1 hour'] ORDER BY n DESC LIMIT 3;"""
    )
    assert [output.name for output in resolved.query("q").select] == ["src", "n"]


def test_with() -> None:
    resolved = app(
        f"""CREATE QUERY q AS
        WITH a AS (SELECT src, count(*) AS n {FIVE} GROUP BY src), unused AS (SELECT count(*) FROM flows EVERY 1 DAY),
             b AS (SELECT src, max(n) AS m FROM a [RANGE '10 minutes'] GROUP BY src)
        SELECT B.src, sum(m) FROM b [RANGE '1 hour'] GROUP BY b.src;"""
    )
    assert [(q.name, q.stream, q.hidden) for q in resolved.queries] == [
        ("q.a", "packets", True),
        ("q.b", "q.a", True),
        ("q", "q.b", False),
    ]
    assert [stream.name for stream in resolved.streams] == ["packets"]


def test_with_hides_a_stream() -> None:
    resolved = query("WITH packets AS (SELECT src FROM packets EVERY 1 s) SELECT count(*) FROM packets EVERY 1 MINUTE")
    assert resolved.stream == "q.packets"


def test_subqueries() -> None:
    resolved = app(
        f"""CREATE QUERY q AS SELECT max(x.n) FROM (SELECT src, sum(n) AS n FROM (
            SELECT src, count(*) AS n {FIVE} GROUP BY src) [RANGE '10 minutes'] GROUP BY src) AS x [RANGE '1 hour'];
        CREATE QUERY p AS SELECT count(*) FROM (SELECT * {FIVE}) AS "odd name" EVERY 1 DAY;"""
    )
    assert [q.name for q in resolved.queries] == ["q.x.sub1", "q.x", "q", "p.odd_name", "p"]


def test_hidden_names_do_not_meet() -> None:
    resolved = app(
        f"""CREATE QUERY q AS WITH sub1 AS (SELECT src {FIVE})
        SELECT count(*) FROM (SELECT src FROM sub1 EVERY 5 MINUTES) EVERY 1 HOUR;"""
    )
    assert [q.name for q in resolved.queries] == ["q.sub1", "q.sub1-2", "q"]


def test_long_chains_of_queries() -> None:
    def chain(length: int) -> str:
        reads = [f"CREATE QUERY q{i} AS SELECT count(*) FROM q{i + 1} EVERY 1 s;" for i in range(length)]
        return " ".join([*reads, f"CREATE QUERY q{length} AS SELECT count(*) FROM packets EVERY 1 s;"])

    assert len(app(chain(39)).queries) == 40
    with pytest.raises(QueryError, match="more than 40 queries"):
        app(chain(1000))


# -- from Python


def test_resolve_query_on_results() -> None:
    first = app(f"CREATE QUERY minutes AS SELECT src, count(*) AS n {FIVE} GROUP BY src;")
    hidden, last = resolve_query(
        "top",
        "WITH a AS (SELECT * FROM MINUTES EVERY 5 MINUTES) SELECT max(n) FROM a EVERY 1 HOUR",
        first.streams,
        "memory:",
        first.queries,
    )
    assert (hidden.name, hidden.stream, hidden.hidden, hidden.sink) == ("top.a", "minutes", True, None)
    assert (last.name, last.stream, last.sink) == ("top", "top.a", "memory:")


@pytest.mark.parametrize("name", ["packets", "Minutes"])
def test_names_are_taken(name: str) -> None:
    first = app(f"CREATE QUERY minutes AS SELECT count(*) {FIVE};")
    with pytest.raises(QueryError, match="is taken"):
        resolve_query(name, f"SELECT count(*) {FIVE}", first.streams, queries=first.queries)


def test_a_typed_null_may_be_selected() -> None:
    resolved = query(f"SELECT CAST(NULL AS INT) AS nothing, src IS NULL AS missing {FIVE}")
    assert resolved.select[0].expression.type == INT
    assert isinstance(resolved.select[1].expression, Computed)
    assert isinstance(resolved.select[1].expression.expression, IsNull)
