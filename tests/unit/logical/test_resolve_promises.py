"""LIMIT DELAY TO: what queries with a promise resolve to, and what a stream keeps."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from penstock.errors import QueryError
from penstock.logical.expressions import ERROR, ESTIMATED, EXACT, Aggregate, Column, Comparison, Logic, Triaged
from penstock.logical.query import WEIGHT, Query, QuerySet, side_column
from penstock.logical.render import render
from penstock.logical.resolve.app import resolve_app, resolve_queries, resolve_query, resolve_stream
from penstock.logical.rewrite import inputs_read, own
from penstock.logical.types import BIGINT, DOUBLE, INET, STRING
from penstock.sinks.schema import result_schema
from support.declared_tables import Declared

SECOND = 1_000_000
COLUMNS = "(ts TIMESTAMP, src INET, dst INET, proto INT, bytes BIGINT, rate DOUBLE, host STRING)"
STREAM = f"CREATE STREAM packets {COLUMNS} FROM 'pcap:trace.pcap' WATERMARK ts DELAY '1 second'"
OWNERS = "CREATE TABLE owners (low INET, high INET, name STRING) FROM 'csv:owners.csv';"
WINDOW = "FROM packets [RANGE '5 minutes']"
DELAY = "LIMIT DELAY TO '2 seconds'"
COUNT = Aggregate("count", None, BIGINT)
BYTES = Aggregate("sum", Column("bytes", BIGINT), BIGINT)


def app(text: str, several: bool = False) -> QuerySet:
    return resolve_app(text, "a.sql", lambda uri, options: (), tables=Declared(several))


def query(select: str, several: bool = False) -> Query:
    return app(f"{STREAM}; {OWNERS} CREATE QUERY q AS {select};", several).query("q")


def names(resolved: Query) -> list[str]:
    return [output.name for output in resolved.select]


def without_promise(resolved: Query, kept: list[str]) -> Query:
    """What is left of a query with a promise when all that the clause adds is taken out."""
    shown = tuple(output for output in resolved.select if output.name in kept)
    keys = tuple(key for key in resolved.keys if key.name != "weight")
    return replace(resolved, promise=None, select=shown, keys=keys)


# -- columns


def test_aggregates_are_followed_by_their_parts() -> None:
    resolved = query(f"SELECT src, count(*) AS n, avg(rate) AS mean {WINDOW} GROUP BY src {DELAY}")
    assert resolved.promise == 2 * SECOND
    mean = Aggregate("avg", Column("rate", DOUBLE), DOUBLE)
    assert [(output.name, output.expression) for output in resolved.select] == [
        ("src", Column("src", INET)),
        ("n", COUNT),
        ("exact_n", Triaged(COUNT, EXACT, BIGINT)),
        ("estimated_n", Triaged(COUNT, ESTIMATED, BIGINT)),
        ("error_n", Triaged(COUNT, ERROR, DOUBLE)),
        ("mean", mean),
        ("exact_mean", Triaged(mean, EXACT, DOUBLE)),
        ("estimated_mean", Triaged(mean, ESTIMATED, DOUBLE)),
        ("error_mean", Triaged(mean, ERROR, DOUBLE)),
    ]
    assert resolved.aggregates == (COUNT, mean)
    assert [key.name for key in resolved.keys] == ["src"]
    assert resolved.columns == {"src", "rate"}


def test_expressions_of_aggregates_and_keys() -> None:
    resolved = query(
        f"""SELECT host, sum(bytes) / count(*), max(host) AS last, proto * 2 AS twice
        {WINDOW} GROUP BY host, proto {DELAY}"""
    )
    whole = "sum(bytes) / count(*)"
    assert names(resolved) == [
        "host", whole, f"exact_{whole}", f"estimated_{whole}", f"error_{whole}", "last", "exact_last",
        "estimated_last", "error_last", "twice",
    ]  # fmt: skip
    types = [output.expression.type for output in resolved.select[5:9]]
    assert types == [STRING, STRING, STRING, DOUBLE]
    assert resolved.aggregates == (BYTES, COUNT, Aggregate("max", Column("host", STRING), STRING))


def test_types_of_the_result() -> None:
    resolved = query(f"SELECT src, sum(bytes) AS bytes, max(ts) AS last {WINDOW} GROUP BY src {DELAY}")
    time = pa.timestamp("us", tz="UTC")
    assert [(field.name, field.type) for field in result_schema(resolved)] == [
        ("src", pa.string()),
        *((name, pa.int64()) for name in ("bytes", "exact_bytes", "estimated_bytes")),
        ("error_bytes", pa.float64()),
        *((name, time) for name in ("last", "exact_last", "estimated_last")),
        ("error_last", pa.float64()),
        ("window_start", time),
        ("window_end", time),
    ]


@pytest.mark.parametrize(
    ("select", "kept"),
    [
        (
            f"SELECT src, count(*) AS n, sum(bytes) AS b {WINDOW} GROUP BY src HAVING n > 3 ORDER BY b",
            ["src", "n", "b"],
        ),
        (f"SELECT count(*), ts {WINDOW}", ["count(*)", "ts"]),
        (f"SELECT DISTINCT src, dst {WINDOW}", ["src", "dst"]),
        (f"SELECT src/24 AS net {WINDOW} GROUP BY src/24", ["net"]),
        (f"SELECT tb, median(rate) AS m {WINDOW} GROUP BY ts/5 AS tb", ["tb", "m"]),
        (f"SELECT src, bytes * 2 AS twice {WINDOW} WHERE proto = 6 ORDER BY dst LIMIT 3", ["src", "twice"]),
        (f"SELECT * {WINDOW}", ["ts", "src", "dst", "proto", "bytes", "rate", "host"]),
    ],
)
def test_all_else_is_as_without_the_promise(select: str, kept: list[str]) -> None:
    assert without_promise(query(f"{select} {DELAY}"), kept) == query(select)


def test_groups_without_aggregates_have_no_other_columns() -> None:
    for select in (f"SELECT DISTINCT src, dst {WINDOW}", f"SELECT src, dst {WINDOW} GROUP BY src, dst"):
        resolved = query(f"{select} {DELAY}")
        assert names(resolved) == ["src", "dst"]
        assert not resolved.per_tuple


def test_records_have_a_weight() -> None:
    resolved = query(f"SELECT src, bytes {WINDOW} ORDER BY weight DESC, dst {DELAY}")
    assert resolved.per_tuple
    assert names(resolved) == ["src", "bytes", "weight"]
    assert [(key.name, render(key.attribute)) for key in resolved.keys] == [
        ("src", "src"), ("bytes", "bytes"), ("weight", '"#weight"'), ("dst", "dst")
    ]  # fmt: skip
    assert [order.expression for order in resolved.order] == [WEIGHT, Column("dst", INET)]
    assert result_schema(resolved).field("weight").type == pa.int64()


def test_a_column_called_weight_is_ordered_by_where_it_is_named_with_its_stream() -> None:
    text = STREAM.replace("rate DOUBLE", "weight DOUBLE")
    resolved = app(f"{text}; CREATE QUERY q AS SELECT src {WINDOW} ORDER BY packets.weight {DELAY}").query("q")
    assert [key.name for key in resolved.keys] == ["src", "weight", "weight'"]
    assert resolved.order[0].expression == Column("weight", DOUBLE)
    assert resolved.select[-1].expression == WEIGHT


# -- HAVING, ORDER BY


def test_having_and_order_act_on_whole_and_parts() -> None:
    resolved = query(
        f"""SELECT src, sum(bytes) AS b {WINDOW} GROUP BY src
        HAVING error_b < 10 AND b > 5 ORDER BY estimated_b DESC, exact_b + 1, 2 LIMIT 7 {DELAY}"""
    )
    assert isinstance(resolved.having, Logic)
    few, many = resolved.having.operands
    assert isinstance(few, Comparison)
    assert few.left == Triaged(BYTES, ERROR, DOUBLE)
    assert render(few) == "error sum(bytes) < 10"
    assert render(many) == "sum(bytes) > 5"
    assert resolved.order[0].expression == Triaged(BYTES, ESTIMATED, BIGINT)
    assert render(resolved.order[1].expression) == "exact sum(bytes) + 1"
    assert resolved.order[-1].expression == BYTES
    assert resolved.limit == 7
    assert resolved.aggregates == (BYTES,)


def test_numbers_count_the_select_list_as_written() -> None:
    listed = f"SELECT count(*) AS n, sum(bytes) AS b {WINDOW} GROUP BY src ORDER BY 2"
    assert query(f"{listed} {DELAY}").order == query(listed).order


# -- joins


FOUND = "FROM packets P [RANGE '5 minutes'], owners O WHERE P.src >= O.low AND P.src < O.high"


@pytest.mark.parametrize("several", [False, True])
def test_aggregates_beside_a_table(several: bool) -> None:
    resolved = query(f"SELECT O.name, sum(P.bytes) AS b {FOUND} GROUP BY O.name HAVING error_b < 2 {DELAY}", several)
    assert names(resolved) == ["name", "b", "exact_b", "estimated_b", "error_b"]
    (total,) = resolved.aggregates
    assert [output.expression for output in resolved.select[1:]] == [
        total, Triaged(total, EXACT, BIGINT), Triaged(total, ESTIMATED, BIGINT), Triaged(total, ERROR, DOUBLE)
    ]  # fmt: skip
    assert (resolved.join is not None) is several
    assert render(total) == ("sum(P.bytes)" if several else "sum(bytes)")


def test_weight_of_a_record_with_its_only_row() -> None:
    resolved = query(f"SELECT P.src, O.name {FOUND} {DELAY}")
    assert resolved.join is None
    assert resolved.select[-1].expression == WEIGHT
    assert resolved.keys[-1].attribute == WEIGHT


def test_weight_of_rows_that_a_table_multiplies() -> None:
    resolved = query(f"SELECT P.src, O.name {FOUND} {DELAY}", several=True)
    assert resolved.join is not None
    weight = resolved.keys[-1].attribute
    assert isinstance(weight, Column)
    assert weight.name == side_column("P", WEIGHT.name)
    assert resolved.select[-1].expression == weight
    assert inputs_read(weight) == {"P"}
    assert own(weight, "P") == WEIGHT


def test_a_table_may_come_first_and_be_asked() -> None:
    resolved = query(
        f"""SELECT P.src FROM owners O, packets P [RANGE '5 minutes'] WHERE P.host = O.name
        AND NOT EXISTS (SELECT 1 FROM owners X WHERE X.name = P.host AND X.low = P.dst) {DELAY}""",
        several=True,
    )
    assert render(resolved.select[-1].expression) == '"P.#weight"'


# -- which delay of which stream


@pytest.mark.parametrize("delay", ["1 second", "1 s", "1 h 1 min"])
def test_a_promise_may_be_as_short_as_the_watermarks_delay(delay: str) -> None:
    assert query(f"SELECT count(*) {WINDOW} LIMIT DELAY TO '{delay}'").promise


@pytest.mark.parametrize(
    ("speed", "least"),
    [("1", 1_000_000), ("0.1", 10_000_000), ("4", 250_000), ("2.5", 400_000), ("3", 333_334), ("max", 1_000_000)],
)
def test_speed_shortens_the_least_promise(speed: str, least: int) -> None:
    text = f"CREATE STREAM packets {COLUMNS} FROM 'replay:pcap:a' WITH (speed = '{speed}') WATERMARK ts DELAY '1 s';"

    def promised(delay: int) -> int | None:
        return app(f"{text} CREATE QUERY q AS SELECT count(*) {WINDOW} LIMIT DELAY TO {delay} us;").query("q").promise

    assert promised(least) == least
    with pytest.raises(QueryError, match="is too short: windows of 'packets' stay open 1 second") as caught:
        promised(least - 1)
    assert caught.value.hint.startswith("promise ")


def test_speed_is_nothing_to_files() -> None:
    text = STREAM.replace("WATERMARK", "WITH (speed = 4) WATERMARK")
    with pytest.raises(QueryError, match="stay open 1 second after their end \\(WATERMARK\\)"):
        app(f"{text}; CREATE QUERY q AS SELECT count(*) {WINDOW} LIMIT DELAY TO '500 ms';")


def test_finite_streams_need_no_watermark() -> None:
    text = STREAM.partition("WATERMARK")[0]
    resolved = app(f"{text}; CREATE QUERY q AS SELECT count(*) {WINDOW} LIMIT DELAY TO '1 ms';").query("q")
    assert resolved.promise == 1_000


def test_windows_until_now_end_too() -> None:
    resolved = query(f"SELECT count(*) AS n FROM packets [WINDOW UNTIL NOW] EVERY 1 MINUTE {DELAY}")
    assert resolved.window.landmark
    assert resolved.promise == 2 * SECOND


def test_files_in_from_with_a_window() -> None:
    fields = app(f"{STREAM}; CREATE QUERY q AS SELECT count(*) {WINDOW}").streams[0].fields
    select = "SELECT count(*) AS n FROM 'trace.parquet' [RANGE '5 minutes']"
    assert resolve_queries(f"{select} {DELAY}", lambda uri, options: fields).queries[0].promise == 2 * SECOND


# -- Python


def test_queries_over_declared_streams() -> None:
    fields = app(f"{STREAM}; CREATE QUERY q AS SELECT count(*) {WINDOW}").streams[0].fields
    stream = resolve_stream("packets", "pcap:a", lambda uri, options: (), fields=fields, delay="1 second")
    (resolved,) = resolve_query("q", f"SELECT count(*) AS n {WINDOW} {DELAY}", [stream])
    assert names(resolved) == ["n", "exact_n", "estimated_n", "error_n"]
    with pytest.raises(QueryError, match="the results of 'q' may be estimates"):
        resolve_query("r", "SELECT max(n) FROM q [RANGE '1 hour']", [stream], queries=[resolved])
    with pytest.raises(QueryError, match="too short"):
        resolve_query("r", f"SELECT count(*) {WINDOW} LIMIT DELAY TO '1 ms'", [stream])
    frame = replace(stream, source="frame:packets")
    with pytest.raises(QueryError, match="on the DataFrame 'packets'"):
        resolve_query("r", f"SELECT count(*) {WINDOW} {DELAY}", [frame])


# -- what a stream keeps


@pytest.mark.parametrize(
    ("clause", "keep"),
    [
        ("", None),
        ("ON OVERLOAD KEEP RESERVOIR", None),
        ("ON OVERLOAD KEEP AUTO", None),
        ("ON OVERLOAD KEEP reservoir (1)", 1),
        ("ON OVERLOAD KEEP Reservoir ((1000000))", 1_000_000),
    ],
)
def test_sizes_of_reservoirs(clause: str, keep: int | None) -> None:
    (stream,) = app(f"{STREAM} {clause}; CREATE QUERY q AS SELECT count(*) {WINDOW} {DELAY};").streams
    assert stream.keep == keep


@pytest.mark.parametrize("kind", ["MHIST", "GRID (64, 64)", "WAVELET", "SKETCH", "RESERVOIR (0)", "AUTO ('x')"])
def test_what_is_kept_matters_only_to_promises(kind: str) -> None:
    text = f"{STREAM} ON OVERLOAD KEEP {kind}; CREATE QUERY q AS SELECT count(*) {WINDOW};"
    plain = f"{STREAM}; CREATE QUERY q AS SELECT count(*) {WINDOW};"
    assert app(text) == app(plain)
    other = (
        f"CREATE STREAM others {COLUMNS} FROM 'pcap:b'; CREATE QUERY p AS SELECT count(*) FROM others EVERY 5 MINUTES"
    )
    assert app(f"{text} {other} {DELAY}").query("p").promise
    with pytest.raises(QueryError):
        app(f"{text} CREATE QUERY p AS SELECT count(*) {WINDOW} {DELAY}")
