"""Statements and selects: what the parser makes of the whole language, executable or not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import sqlglot
from sqlglot import exp

from penstock.errors import QueryError
from penstock.lang.ast import CreateQuery, CreateStream, Derived, FromClause, Select, SetOperation, span_of
from penstock.lang.dialect import Penstock
from penstock.lang.parse import parse_app, parse_select

PAPERS = Path(__file__).parents[2] / "golden" / "check" / "papers.sql"


def select(text: str) -> Select:
    parsed = parse_select(text, "q").select
    assert isinstance(parsed, Select)
    return parsed


def stream(text: str) -> CreateStream:
    statement = parse_app(text, "a.sql").statements[0]
    assert isinstance(statement, CreateStream)
    return statement


def test_papers_parse_completely() -> None:
    statements = parse_app(PAPERS.read_text(encoding="utf-8"), "papers.sql").statements
    assert len(statements) == 26
    assert sum(isinstance(statement, CreateQuery) for statement in statements) == 18


def test_dialect_is_registered() -> None:
    assert sqlglot.Dialect.get_or_raise("penstock").__class__ is Penstock


def test_stream_clauses_in_any_order() -> None:
    parsed = stream(
        """CREATE STREAM r (a INT, b VARCHAR(10), c DOUBLE PRECISION)
        ON OVERLOAD KEEP RESERVOIR (4096) WATERMARK a DELAY 5 SECONDS MAX AHEAD '1 hour'
        WITH (Speed = 'max', n = -1, on = true) TYPE UNARCHIVED FROM 'csv:a'"""
    )
    assert parsed.source is not None
    assert parsed.source.text == "csv:a"
    assert parsed.options == (("speed", "max"), ("n", "-1"), ("on", "true"))
    assert parsed.watermark is not None
    assert parsed.watermark.delay.microseconds == 5_000_000
    assert parsed.watermark.ahead is not None
    assert parsed.overload is not None
    assert parsed.overload.kind.text == "RESERVOIR"
    assert [size.name for size in parsed.overload.parameters] == ["4096"]
    assert [column.parameters for column in parsed.columns or ()] == [(), ("10",), ()]


def test_stream_without_columns() -> None:
    assert stream("CREATE STREAM r FROM 'pcap:a'").columns is None


def test_table() -> None:
    assert stream("CREATE TABLE r (a INT) FROM 'csv:a'").table


@pytest.mark.parametrize(
    ("window", "kind", "size", "slide"),
    [
        ("[RANGE '5 minutes' SLIDE '1 minute']", "range", 300, 60),
        ("[range by 5 minutes slide by 1 minute]", "range", 300, 60),
        ("[RANGE INTERVAL '5' MINUTE]", "range", 300, None),
        ("[RANGE INTERVAL '5 minutes' SLIDE INTERVAL 1 MINUTE]", "range", 300, 60),
        ("[WINDOW 1 HOUR]", "range", 3600, None),
        ("[WINDOW UNTIL NOW]", "landmark", None, None),
        ("[ROWS 100]", "rows", None, None),
        ("[ROWS 100 SLIDE 10]", "rows", None, None),
    ],
)
@pytest.mark.parametrize("pattern", ["{} AS p", "{} p", "AS p {}", "p {}", "{}"])
def test_windows(window: str, kind: str, size: int | None, slide: int | None, pattern: str) -> None:
    source = select(f"SELECT 1 FROM r {pattern.format(window)} WHERE a").sources[0]
    assert source.window is not None
    assert source.window.kind == kind
    assert (source.window.size and source.window.size.microseconds) == (size and size * 1_000_000)
    assert (source.window.slide and source.window.slide.microseconds) == (slide and slide * 1_000_000)
    assert (source.alias.text if source.alias else None) == ("p" if "p" in pattern.replace("{}", "") else None)


@pytest.mark.parametrize(
    ("window", "rows", "slide"),
    [
        ("ROWS 100", "100", None),
        ("rows 9 slide 3", "9", "3"),
        ("ROWS 9 SLIDE BY 3 ROWS", "9", "3"),
        ("ROWS -1", "-1", None),
    ],
)
def test_windows_of_rows(window: str, rows: str, slide: str | None) -> None:
    parsed = select(f"SELECT 1 FROM r [{window}]").sources[0].window
    assert parsed is not None
    assert parsed.rows is not None
    assert parsed.rows.text == rows
    assert (parsed.row_slide.text if parsed.row_slide else None) == slide


def test_clauses() -> None:
    parsed = select(
        """WITH e AS (SELECT a FROM r) SELECT DISTINCT a, b + 1 AS c FROM r JOIN s ON r.a = s.a, (SELECT 1 FROM t) AS u
        WHERE a = 1 GROUP BY a, time/5 AS tb HAVING count(*) > 1 EVERY 5 MINUTES
        ORDER BY a DESC NULLS LAST, b LIMIT 10 LIMIT DELAY TO '1 second';"""
    )
    assert [type(source) for source in parsed.sources] == [FromClause, FromClause, Derived]
    assert parsed.sources[1].on is not None
    assert [item.alias and item.alias.text for item in parsed.group] == [None, "tb"]
    assert parsed.every is not None
    assert parsed.every.microseconds == 300_000_000
    assert [(order.descending, order.nulls) for order in parsed.order] == [(True, "LAST"), (False, "")]
    assert parsed.limit is not None
    assert parsed.delay is not None
    assert parsed.delay.microseconds == 1_000_000
    assert parsed.distinct is not None
    assert len(parsed.common) == 1


def test_set_operations_lean_left() -> None:
    parsed = parse_select("SELECT 1 FROM r UNION ALL SELECT 2 FROM r EXCEPT (SELECT 3 FROM r)", "q").select
    assert isinstance(parsed, SetOperation)
    assert parsed.operator == "EXCEPT"
    assert isinstance(parsed.left, SetOperation)


@pytest.mark.parametrize("name", ["time", "range", "window", "stream", "length", "every", "timestamp", "end", "query"])
def test_soft_words_are_names(name: str) -> None:
    parsed = select(f"SELECT {name}, sum({name}) FROM r WHERE {name} > 3 GROUP BY {name}, r.{name}")
    assert isinstance(parsed.items[0].expression, exp.Column)
    assert parsed.items[0].expression.name == name


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("a + b * c", exp.Add),
        ("(a + b) * c", exp.Mul),
        ("NOT a AND b OR c", exp.Or),
        ("a NOT IN (1, 2)", exp.Not),
        ("a BETWEEN 1 AND 2 AND b", exp.And),
        ("a IS NOT NULL", exp.Not),
        ("a NOT LIKE 'x'", exp.Not),
        ("- -a", exp.Neg),
        ("CASE a WHEN 1 THEN 2 ELSE 3 END", exp.Case),
        ("CAST(a AS INT)", exp.Cast),
        ("TIMESTAMP '2024-01-01'", exp.Cast),
        ("INTERVAL '5' MINUTE", exp.Interval),
        ("count(DISTINCT a)", exp.Anonymous),
        ("EXISTS (SELECT 1 FROM r)", exp.Exists),
        ("(SELECT 1 FROM r)", exp.Subquery),
        ("sum(a) FILTER (WHERE b) OVER (PARTITION BY (c))", exp.Window),
        (".5", exp.Literal),
        ("a || b + 1", exp.DPipe),
        ("a + b::INT", exp.Add),
        ("a::DOUBLE PRECISION", exp.Cast),
        ("CAST(a AS DOUBLE PRECISION)", exp.Cast),
        ("extract(hour FROM a)", exp.Anonymous),
        ("a IS DISTINCT FROM b", exp.NullSafeNEQ),
        ("a IS NOT DISTINCT FROM b", exp.NullSafeEQ),
        ("a ILIKE 'x' ESCAPE '!'", exp.Escape),
        ('"null"', exp.Column),
        ('"case"(1)', exp.Anonymous),
        ("approx_frequent(a, 0.01, 0.001)", exp.Anonymous),
    ],
)
def test_expressions(text: str, kind: type[exp.Expr]) -> None:
    query = f"SELECT {text} FROM r"
    expression = select(query).items[0].expression
    assert type(expression) is kind
    span = span_of(expression)
    assert query[span.start : span.end] == text


def test_long_chains_of_and_are_fine() -> None:
    assert select("SELECT 1 FROM r WHERE " + " AND ".join(["a = 1"] * 5000)).where is not None


def test_query_names_with_dashes() -> None:
    statement = parse_app("CREATE QUERY top-10-talkers AS SELECT 1 FROM r", "a.sql").statements[0]
    assert statement.name.text == "top-10-talkers"


def test_two_selects_are_refused() -> None:
    with pytest.raises(QueryError, match="a second statement"):
        parse_select("SELECT 1 FROM r; SELECT 2 FROM r", "q")


def test_empty_select() -> None:
    with pytest.raises(QueryError, match="the query is empty"):
        parse_select(" ; ", "q")


def test_imports_no_engine() -> None:
    code = (
        "import sys, penstock.lang.parse, penstock.logical.resolve.app, penstock.logical.render;"
        "print(sorted({'pyspark', 'numba', 'pyarrow', 'pandas'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_lang_does_not_import_resolve() -> None:
    code = "import sys, penstock.lang.parse; print('penstock.logical.resolve.app' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
