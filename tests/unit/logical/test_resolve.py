"""Queries that run: what resolution makes of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from penstock.errors import QueryError
from penstock.logical.expressions import Aggregate, Bucket, Column, Expression, InList, Literal, Logic, Prefix
from penstock.logical.query import Query, QuerySet
from penstock.logical.render import render
from penstock.logical.resolve.app import resolve_app, resolve_query
from penstock.logical.resolve.joins.tables import Tables
from penstock.logical.types import BIGINT, BOOLEAN, DOUBLE, INET, INT, STRING, TIMESTAMP, TINYINT
from penstock.logical.window import ROWS, Window
from support.declared_tables import Declared

STREAM = """
CREATE STREAM packets (
  ts TIMESTAMP, src INET, dst INET, sport INT, proto TINYINT, bytes BIGINT, rate DOUBLE, up BOOLEAN, host STRING
) FROM 'pcap:trace.pcap';
"""
SECOND = 1_000_000
FIVE = "FROM packets [RANGE '5 minutes']"


def app(text: str, tables: Tables | None = None) -> QuerySet:
    return resolve_app(text, "a.sql", lambda uri, options: (), tables=tables)


def query(select: str) -> Query:
    return app(f"{STREAM} CREATE QUERY q AS {select};").queries[0]


def condition(text: str) -> Expression:
    where = query(f"SELECT count(*) {FIVE} WHERE {text}").where
    assert where is not None
    return where


def names(resolved: Query) -> list[str]:
    return [output.name for output in resolved.select]


def test_the_whole_query() -> None:
    resolved = query(f"SELECT src, count(*) AS n {FIVE} WHERE proto = 6 GROUP BY src HAVING n > 100")
    assert resolved.name == "q"
    assert resolved.stream == "packets"
    assert resolved.window.range == 300_000_000
    assert [(key.name, key.attribute) for key in resolved.keys] == [("src", Column("src", INET))]
    assert resolved.aggregates == (Aggregate("count", None, BIGINT),)
    assert render(resolved.where or Bucket()) == "proto = 6"
    assert render(resolved.having or Bucket()) == "count(*) > 100"
    assert resolved.sink is None
    assert resolved.columns == {"proto", "src"}


# -- windows


@pytest.mark.parametrize(
    "tail",
    [
        "[RANGE '5 minutes' SLIDE '5 minutes']",
        "[RANGE BY '5 minutes' SLIDE BY '300 sec']",
        "[range 5 minutes]",
        "[RANGE 300 s SLIDE 5 MIN]",
        "[WINDOW '5 minutes']",
        "[Window 5 Minutes Slide 300000 ms]",
        "[WINDOW INTERVAL '5' MINUTE]",
        "p [RANGE '5 minutes']",
        "AS p [RANGE '5 minutes']",
        "[RANGE '5 minutes'] p",
        "[RANGE '5 minutes'] AS p",
        "EVERY 5 MINUTES",
        "EVERY '5 minutes'",
        "[RANGE '5 minutes'] EVERY 5 MINUTES",
        "[RANGE '5 minutes' SLIDE '5 minutes'] EVERY 300 SECONDS",
        "GROUP BY ts/5",
        "GROUP BY ts/5 AS tb",
        "GROUP BY src EVERY 5 MINUTES",
        "GROUP BY src HAVING count(*) > 1 EVERY 5 MINUTES",
        "GROUP BY src EVERY 5 MINUTES HAVING count(*) > 1",
        "GROUP BY ts/5 AS tb, src EVERY 5 MINUTES",
        "[RANGE '5 minutes'] GROUP BY (ts)/5 AS tb, src",
    ],
)
def test_tumbling_windows(tail: str) -> None:
    assert query(f"SELECT count(*) FROM packets {tail}").window == Window(300_000_000, 300_000_000)


@pytest.mark.parametrize(
    ("tail", "window"),
    [
        ("[RANGE '30 sec' SLIDE '5 sec']", Window(30 * SECOND, 5 * SECOND)),
        ("[RANGE BY '30 sec' SLIDE BY '7 sec']", Window(30 * SECOND, 7 * SECOND)),
        ("[RANGE '5 sec' SLIDE '30 sec']", Window(5 * SECOND, 30 * SECOND)),
        ("[RANGE '30 sec'] EVERY 5 SECONDS", Window(30 * SECOND, 5 * SECOND)),
        ("[WINDOW 1 HOUR] EVERY 1 MINUTE", Window(3600 * SECOND, 60 * SECOND)),
        ("[WINDOW 1 HOUR SLIDE 1 MINUTE] EVERY 60 SECONDS", Window(3600 * SECOND, 60 * SECOND)),
        ("[WINDOW UNTIL NOW] EVERY 1 MINUTE", Window(None, 60 * SECOND)),
        ("[WINDOW UNTIL NOW] GROUP BY ts/5 AS tb", Window(None, 300 * SECOND)),
        ("[WINDOW UNTIL NOW] GROUP BY ts/5 AS tb EVERY 5 MINUTES", Window(None, 300 * SECOND)),
        ("[ROWS 100]", Window(100, 100, ROWS)),
        ("[ROWS 100 SLIDE 10]", Window(100, 10, ROWS)),
        ("[rows 10 slide by 100 rows] p", Window(10, 100, ROWS)),
    ],
)
def test_other_windows(tail: str, window: Window) -> None:
    assert query(f"SELECT count(*) FROM packets {tail}").window == window


# -- keys and names


def test_bucket_is_no_key() -> None:
    resolved = query("SELECT tb, src, count(*) FROM packets GROUP BY ts/5 AS tb, src")
    assert resolved.select[0].expression == Bucket()
    assert names(resolved) == ["tb", "src", "count(*)"]
    assert [key.name for key in resolved.keys] == ["src"]


@pytest.mark.parametrize(
    ("select", "group", "name"),
    [("tb", "ts/5 AS tb", "tb"), ("TB", "ts/5 AS tb", "tb"), ("ts/5", "ts/5", "ts/5"), ("ts/5 AS b", "b", "b")],
)
def test_bucket_names(select: str, group: str, name: str) -> None:
    resolved = query(f"SELECT {select}, count(*) FROM packets GROUP BY {group}")
    assert resolved.select[0].expression == Bucket()
    assert resolved.select[0].name == name


@pytest.mark.parametrize(
    ("select", "group", "key", "output"),
    [
        ("src", "src", "src", "src"),
        ("SRC", "Src", "src", "src"),
        ('"src"', "SRC", "src", "src"),
        ("packets.src", "PACKETS.src", "src", "src"),
        ("src AS a", "src", "a", "a"),
        ("src a", "a", "a", "a"),
        ("src", "1", "src", "src"),
        ("(src)", "(src)", "src", "src"),
        ("s", "src AS s", "s", "s"),
        ("src", "src AS s", "src", "src"),
        ("dst AS src", "dst", "src", "src"),
    ],
)
def test_column_keys(select: str, group: str, key: str, output: str) -> None:
    resolved = query(f"SELECT {select}, count(*) {FIVE} GROUP BY {group}")
    assert [k.name for k in resolved.keys] == [key]
    assert resolved.select[0].name == output


@pytest.mark.parametrize(
    ("select", "group", "name"),
    [
        ("src/24", "src/24", "src/24"),
        ("src / 24", "SRC/24", "src/24"),
        ("src/24 AS net", "src/24", "net"),
        ("src/24 AS net", "net", "net"),
        ("src/24 AS net", "1", "net"),
        ("net", "src/24 AS net", "net"),
        ("packets.src/24", "src/24", "src/24"),
    ],
)
def test_prefix_keys(select: str, group: str, name: str) -> None:
    resolved = query(f"SELECT {select}, count(*) {FIVE} GROUP BY {group}")
    assert resolved.keys[0].attribute == Prefix(Column("src", INET), 24)
    assert resolved.keys[0].name == name
    assert resolved.select[0].name == name


def test_keys_may_be_left_out_and_repeated() -> None:
    resolved = query(f"SELECT count(*) {FIVE} GROUP BY src, src/8, src, dst")
    assert [key.name for key in resolved.keys] == ["src", "src/8", "dst"]


@pytest.mark.parametrize("length", [0, 1, 32, 33, 64, 128])
def test_prefix_lengths(length: int) -> None:
    resolved = query(f"SELECT count(*) {FIVE} GROUP BY src/{length}")
    assert resolved.keys[0].attribute == Prefix(Column("src", INET), length)


def test_group_by_without_aggregates() -> None:
    assert query(f"SELECT src {FIVE} GROUP BY src").aggregates == ()


# -- aggregates


@pytest.mark.parametrize(
    ("call", "name", "kind"),
    [
        ("count(*)", "count(*)", BIGINT),
        ("COUNT(*)", "count(*)", BIGINT),
        ("count(1)", "count(*)", BIGINT),
        ("count(packets.*)", "count(*)", BIGINT),
        ("count(SRC)", "count(src)", BIGINT),
        ("Sum(Bytes)", "sum(bytes)", BIGINT),
        ("sum(proto)", "sum(proto)", BIGINT),
        ("sum(rate)", "sum(rate)", DOUBLE),
        ("avg(proto)", "avg(proto)", DOUBLE),
        ("min(proto)", "min(proto)", TINYINT),
        ("max(ts)", "max(ts)", TIMESTAMP),
        ("min(up)", "min(up)", BOOLEAN),
        ("max(host)", "max(host)", STRING),
        ("min(SRC)", "min(src)", INET),
        ("variance(proto)", "var_samp(proto)", DOUBLE),
        ("var_samp(proto)", "var_samp(proto)", DOUBLE),
        ("var_pop(rate)", "var_pop(rate)", DOUBLE),
        ("stddev(bytes)", "stddev_samp(bytes)", DOUBLE),
        ("STDDEV_POP(bytes)", "stddev_pop(bytes)", DOUBLE),
        ("sum(bytes * 8)", "sum(bytes * 8)", BIGINT),
        ("avg(length(host))", "avg(length(host))", DOUBLE),
        ("max(rate - 1)", "max(rate - 1)", DOUBLE),
        ("count((bytes))", "count(bytes)", BIGINT),
        ("count(src/24)", "count(src)", BIGINT),
        ("count(NULL)", "count(NULL)", BIGINT),
        ("sum(1)", "sum(1)", BIGINT),
        ("count(*) FILTER (WHERE up)", "count(CASE WHEN up THEN 1 END)", BIGINT),
        ("count(1) FILTER (WHERE proto = 6)", "count(CASE WHEN proto = 6 THEN 1 END)", BIGINT),
        ("sum(bytes) FILTER (WHERE up)", "sum(CASE WHEN up THEN bytes END)", BIGINT),
        ("min(proto) FILTER (WHERE up)", "min(CASE WHEN up THEN proto END)", TINYINT),
    ],
)
def test_aggregates(call: str, name: str, kind: object) -> None:
    resolved = query(f"SELECT {call} {FIVE}")
    assert resolved.select[0].name == name
    assert resolved.aggregates[0].type == kind


def test_aggregates_are_collected_once_in_order() -> None:
    resolved = query(f"SELECT sum(bytes), count(*), sum(bytes) + 1 AS b {FIVE} HAVING max(rate) > 1 AND count(*) > 2")
    assert [render(aggregate) for aggregate in resolved.aggregates] == ["sum(bytes)", "count(*)", "max(rate)"]


def test_expressions_over_aggregates() -> None:
    resolved = query(f"SELECT sum(bytes) / count(*), -count(*) AS m, (sum(proto) + 1) * 2 {FIVE}")
    assert names(resolved) == ["sum(bytes) / count(*)", "m", "(sum(proto) + 1) * 2"]
    assert [output.expression.type for output in resolved.select] == [DOUBLE, BIGINT, BIGINT]


# -- conditions


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("PROTO = 6", "proto = 6"),
        ("packets.proto != 6 and 6 <> proto", "proto <> 6 AND 6 <> proto"),
        ("up", "up"),
        ("not up or not (up and up)", "NOT up OR NOT (up AND up)"),
        ("up and (up and up)", "up AND up AND up"),
        ("up or up and up", "up OR up AND up"),
        ("(up or up) and up", "(up OR up) AND up"),
        ("proto in (6, 17)", "proto IN (6, 17)"),
        ("proto not in (6, 17, null)", "proto NOT IN (6, 17, NULL)"),
        ("bytes between 1 and 2", "bytes >= 1 AND bytes <= 2"),
        ("bytes not between 1 and 2", "NOT (bytes >= 1 AND bytes <= 2)"),
        ("host is null or host is not null", "host IS NULL OR host IS NOT NULL"),
        ("host like '%it''s'", "host LIKE '%it''s'"),
        ("host not like '_'", "host NOT LIKE '_'"),
        ("bytes * (2 + proto) - 1 > rate / 2 % 3", "bytes * (2 + proto) - 1 > rate / 2 % 3"),
        ("bytes - (1 - 2) > 0", "bytes - (1 - 2) > 0"),
        ("bytes > -9223372036854775808", "bytes > -9223372036854775808"),
        ("-bytes < +5", "0 - bytes < 5"),
        ("rate > 1e3 and rate < .5", "rate > 1000.0 AND rate < 0.5"),
        ("ts >= '2024-05-06'", "ts >= TIMESTAMP '2024-05-06 00:00:00'"),
        ("ts < timestamp '2024-05-06T07:08:09.123Z'", "ts < TIMESTAMP '2024-05-06 07:08:09.123000'"),
        ("'2024-05-06 01:00:00+01:00' = ts", "TIMESTAMP '2024-05-06 00:00:00' = ts"),
        ("src = '2001:DB8::0:1'", "src = '2001:db8::1'"),
        ("src = '::FFFF:10.0.0.1'", "src = '::ffff:10.0.0.1'"),
        ("src in ('10.0.0.1', dst)", "src = '10.0.0.1' OR src = dst"),
        ("src < dst", "src < dst"),
        ("up = true and up is not true", "up = TRUE AND NOT (up IS NOT NULL AND up)"),
        ("null", "NULL"),
        ("bytes = null", "bytes = NULL"),
        ("host = 'a' and 'a' < 'b'", "host = 'a' AND 'a' < 'b'"),
    ],
)
def test_conditions(text: str, canonical: str) -> None:
    assert render(condition(text)) == canonical


def test_literals_take_the_other_type() -> None:
    protocols = (Literal(6, TINYINT), Literal(17, TINYINT))
    assert condition("proto IN (6, 17.0)") == InList(Column("proto", TINYINT), protocols)
    assert condition("rate IN (1)") == InList(Column("rate", DOUBLE), (Literal(1.0, DOUBLE),))
    assert render(condition("proto IN (300, 1)")) == "proto = 300 OR proto = 1"
    assert condition("ts IN ('1970-01-01T00:00:01')") == InList(
        Column("ts", TIMESTAMP), (Literal(1_000_000, TIMESTAMP),)
    )


def test_long_conditions() -> None:
    resolved = condition(" OR ".join(f"bytes = {n}" for n in range(3000)))
    assert isinstance(resolved, Logic)
    assert len(resolved.operands) == 3000


@pytest.mark.parametrize(
    ("having", "canonical"),
    [
        ("count(*) > 1", "count(*) > 1"),
        ("n > 1", "count(*) > 1"),
        ("N > 1 AND src = '10.0.0.1'", "count(*) > 1 AND src = '10.0.0.1'"),
        ("s IS NOT NULL", "src IS NOT NULL"),
        ("max(rate) < 2.5 OR tb % 2 = 0", "max(rate) < 2.5 OR bucket % 2 = 0"),
        ("ts/5 > 3", "bucket > 3"),
    ],
)
def test_having(having: str, canonical: str) -> None:
    resolved = query(f"SELECT src AS s, count(*) AS n FROM packets GROUP BY src, ts/5 AS tb HAVING {having}")
    assert resolved.having is not None
    assert render(resolved.having) == canonical


def test_having_alias_hides_an_ungrouped_column() -> None:
    resolved = query(f"SELECT sum(bytes) AS bytes {FIVE} HAVING bytes > 3")
    assert render(resolved.having or Bucket()) == "sum(bytes) > 3"


# -- apps


def test_many_queries_and_unused_declarations() -> None:
    resolved = app(
        f"""{STREAM}
        CREATE STREAM unused (a INT) ON OVERLOAD KEEP MHIST;
        CREATE TABLE whois (min_addr INET, name VARCHAR) FROM 'csv:whois.csv';
        CREATE QUERY "b-2" INTO 'parquet:out/b' AS SELECT count(*) {FIVE};
        CREATE QUERY a-1 AS SELECT count(*) FROM PACKETS EVERY 1 HOUR"""
    )
    assert [stream.name for stream in resolved.streams] == ["packets"]
    assert [(q.name, q.sink) for q in resolved.queries] == [("b-2", "parquet:out/b"), ("a-1", None)]
    assert resolved.queries[1].stream == "packets"


def test_equal_apps_resolve_equal() -> None:
    one = query(f"SELECT src, count(*) AS n {FIVE} WHERE up AND (up AND proto = 6) GROUP BY src")
    two = query("select SRC, COUNT(*) n from packets where (up and up) and PROTO = 6 group by Src every 5 min")
    assert one == two
    assert hash(one) == hash(two)


def test_variables() -> None:
    text = STREAM.replace("trace.pcap", "${file}") + "CREATE QUERY q AS SELECT count(*) FROM packets [RANGE '${n} s'];"
    resolved = resolve_app(text, "a.sql", lambda uri, options: (), {"file": "it's.pcap", "n": "7"})
    assert resolved.streams[0].source == "pcap:it's.pcap"
    assert resolved.queries[0].window.range == 7_000_000


def test_resolve_query_from_python() -> None:
    streams = app(f"{STREAM} CREATE QUERY q AS SELECT count(*) {FIVE}").streams
    (resolved,) = resolve_query("talkers", f"SELECT src, count(*) AS n {FIVE} GROUP BY src;", streams, "memory:")
    assert resolved.name == "talkers"
    assert resolved.sink == "memory:"
    assert resolved.keys[0].attribute == Column("src", INET)


def test_quoted_names() -> None:
    resolved = app(
        """CREATE STREAM "my packets" (ts TIMESTAMP, "Group" INT, "a "" b" INT) FROM 'csv:a';
        CREATE QUERY q AS SELECT "Group", sum("a "" b") FROM "my packets" AS p [RANGE '1 s']
        WHERE p."Group" > 1 GROUP BY "Group";"""
    ).queries[0]
    assert names(resolved) == ["Group", 'sum("a "" b")']
    assert resolved.keys[0].attribute == Column("Group", INT)


# -- the papers' own queries

PAPERS = (Path(__file__).parents[2] / "golden" / "check" / "papers.sql").read_text(encoding="utf-8")
QUERIES = dict(re.findall(r"^CREATE QUERY (\w+) AS\s+(.*?);$", PAPERS, re.MULTILINE | re.DOTALL))
JOINS = {"join_auction": ["A", "B"], "triage_berkeley": [], "triage_elephants": ["P", "E"]}  # streams that are joined
LATER = "triage_delay"


def paper(name: str) -> str:
    streams = "".join(re.findall(r"^CREATE (?:STREAM|TABLE) .*?;$", PAPERS, re.MULTILINE | re.DOTALL))
    readable = streams.replace(";", " FROM 'csv:a';")
    return f"{readable} CREATE QUERY {name} AS {QUERIES[name]};"


@pytest.mark.parametrize("name", [name for name in QUERIES if name != LATER])
def test_papers(name: str) -> None:
    resolved = app(paper(name), Declared()).query(name)
    assert bool(resolved.aggregates) is not resolved.per_tuple
    joined = [] if resolved.join is None else [side.alias for side in resolved.join.sides]
    assert joined == JOINS.get(name, [])


def test_papers_tables_of_several_rows_are_joined() -> None:
    berkeley, auction = (
        app(paper(name), Declared(several=True)).query(name) for name in ("triage_berkeley", "join_auction")
    )
    assert berkeley.join is not None
    assert auction.join is not None
    assert [(table.alias, table.owner) for table in berkeley.join.tables] == [("W", "P")]
    assert [(table.alias, table.owner) for table in auction.join.tables] == [("P", "A")]
    assert [render(key) for side in auction.join.sides for key in side.key] == ["auctionID", "auctionID"]


def test_papers_delay_needs_another_summary() -> None:
    """Its stream keeps a histogram, which matters to the query that promises a delay."""
    text = paper(LATER)
    with pytest.raises(QueryError, match="KEEP MHIST is not executable yet") as caught:
        app(text, Declared())
    assert caught.value.place is not None
    line = text.splitlines()[caught.value.place.line - 1]
    assert line[caught.value.place.column - 1 :].startswith("MHIST")
    for several in (False, True):
        resolved = app(text.replace("KEEP MHIST", "KEEP RESERVOIR (100)"), Declared(several=several))
        assert names(resolved.query(LATER)) == [
            "count(*)", "exact_count(*)", "estimated_count(*)", "error_count(*)", "ts"
        ]  # fmt: skip
        assert resolved.query(LATER).promise == SECOND
        assert [stream.keep for stream in resolved.streams] == [100]


def test_all_papers_are_tried() -> None:
    assert len(QUERIES) == 18
