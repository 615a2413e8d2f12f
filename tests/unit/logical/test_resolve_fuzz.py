"""No text makes the language fail in any other way than a `QueryError` that can be shown."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from penstock.errors import QueryError
from penstock.logical.query import Field
from penstock.logical.render import render
from penstock.logical.resolve.app import resolve_app, resolve_query
from penstock.logical.types import BIGINT, INET, STRING, TIMESTAMP

SEED = 20240607
ROUNDS = 2000
CHECK = Path(__file__).parents[2] / "golden" / "check"
FIELDS = (Field("ts", TIMESTAMP), Field("src", INET), Field("bytes", BIGINT), Field("host", STRING))
VALID = """
CREATE STREAM packets (ts TIMESTAMP, src INET, dst INET, sport INT, proto INT, up BOOLEAN, bytes BIGINT, host STRING)
  FROM 'pcap:${file}' WITH (speed = 'max') WATERMARK ts DELAY '500 milliseconds' MAX AHEAD 1 HOUR;
CREATE TABLE whois (min_addr INET, name VARCHAR(20)) FROM 'csv:whois.csv'; -- unused
CREATE QUERY talkers INTO 'parquet:out/talkers' AS
  SELECT src/24 AS net, "proto", count(*) AS packets, sum(bytes) / count(*) + 1.5 FROM packets AS p [RANGE '5 minutes']
  WHERE (p.proto IN (6, 17) OR NOT up) AND host LIKE '%.edu' AND src <> '::1' AND ts > TIMESTAMP '2024-01-01'
  GROUP BY net, proto HAVING packets BETWEEN 1 AND 10 OR max(host) IS NOT NULL;
CREATE QUERY q2 AS select tb, dst, avg(bytes) as len from packets group by ts/5 as tb, dst every 5 minutes;
CREATE QUERY q3 AS
  WITH e AS (SELECT src/64 AS net, lower(host) AS h, count(*) FILTER (WHERE up) AS n
    FROM packets [RANGE '30 s' SLIDE '7 s']
    WHERE src/8 = '10.0.0.0/8' AND round(bytes * 1.5, 2) > CASE proto WHEN 6 THEN 1 ELSE 2 END
    GROUP BY net, h ORDER BY n DESC NULLS LAST, 1 LIMIT 10)
  SELECT net, h || '-' || substr(h, 2, 3) AS k, stddev(n), max(ts - INTERVAL '5 minutes') FROM e [WINDOW UNTIL NOW]
  WHERE CAST(h AS INT) IS DISTINCT FROM 3 OR h ILIKE 'a!%' ESCAPE '!' GROUP BY net, h EVERY 1 MINUTE;
CREATE QUERY q4 AS SELECT DISTINCT * FROM (SELECT net, coalesce(k, 'x') AS k FROM q3 EVERY 1 HOUR) AS x EVERY 1 DAY;
CREATE QUERY q5 AS SELECT *, hour(ts) AS hour FROM packets [ROWS 100 SLIDE 10] ORDER BY bytes;
"""
WORD = re.compile(r"\s+|\w+|'[^']*'|.", re.DOTALL)
_NOISE = r"""
' " ( ) [ ] , ; -- /* */ ${ } . * / - 0 99999999999999999999 NULL SELECT FROM AS NOT IN é $ {{ %} N'x' 1e999 \ ` {# ::
|| ? :x @x # ~ { ٣ ² x'41' 1_000 ...
"""
NOISE = [*_NOISE.split(), "\x00", "\u2028", "\t", "\x0c", "\r", "\u00a0"]


def schema_of(uri: str, options: Mapping[str, str]) -> tuple[Field, ...]:
    return FIELDS


def run(text: str) -> bool:
    """True where the text resolves; anything but a QueryError escapes and fails the test."""
    problem: QueryError | None = None
    try:
        resolved = resolve_app(text, "fuzz.sql", schema_of, {"file": "a.pcap"})
    except QueryError as caught:
        problem = caught
    if problem is not None:
        assert problem.place is not None, text
        assert "fuzz.sql" in str(problem), text
        assert "sqlglot" not in str(problem).lower(), text
        return False
    for query in resolved.queries:
        assert {query.stream} & {*(s.name for s in resolved.streams), *(q.name for q in resolved.queries)}
        for output in (*query.select, *query.order):
            render(output.expression)
        for condition in (query.where, query.having):
            assert condition is None or render(condition)
    return True


def mutate(text: str, chance: random.Random) -> str:
    """A few deletions, doublings, swaps and insertions, of words or of characters."""
    parts = WORD.findall(text) if chance.random() < 0.7 else list(text)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        if not parts:
            break
        at, other = chance.randrange(len(parts)), chance.randrange(len(parts))
        match chance.randrange(5):
            case 0:
                del parts[at]
            case 1:
                parts.insert(at, parts[at])
            case 2:
                parts[at], parts[other] = parts[other], parts[at]
            case 3:
                parts.insert(at, chance.choice(NOISE))
            case 4:
                del parts[min(at, other) : min(at, other) + chance.randrange(20)]
    return "".join(parts)


def test_valid_apps_resolve() -> None:
    assert run(VALID)


def test_mutations_of_a_valid_app() -> None:
    chance = random.Random(SEED)
    resolved = sum(run(mutate(VALID, chance)) for _ in range(ROUNDS))
    # Some survive, most do not: otherwise the mutations would be too tame or too wild to say anything.
    assert ROUNDS // 50 < resolved < ROUNDS // 2


def test_mutations_of_the_golden_errors() -> None:
    chance = random.Random(SEED + 1)
    texts = [path.read_text(encoding="utf-8") for path in sorted(CHECK.glob("*.sql"))]
    for _ in range(ROUNDS // 2):
        run(mutate(chance.choice(texts), chance))


def test_noise() -> None:
    chance = random.Random(SEED + 2)
    words = [*NOISE, *(word for word in WORD.findall(VALID) if word.strip())]
    for _ in range(ROUNDS // 2):
        run(" ".join(chance.choices(words, k=chance.randrange(30))))


def test_cut_off_anywhere() -> None:
    for end in range(len(VALID)):
        run(VALID[:end])


@pytest.mark.parametrize("opener", ["(", "-", "NOT ", "(SELECT ", "CASE WHEN ", "count(", "a + ", "a AND ", "["])
def test_deep_nesting(opener: str) -> None:
    with pytest.raises(QueryError):
        resolve_query("q", f"SELECT {opener * 20000}1 FROM r", [])
    with pytest.raises(QueryError):
        resolve_query("q", f"SELECT 1 FROM r WHERE {opener * 20000}1", [])


@pytest.mark.parametrize("operator", ["+", "*", "AND", "OR", "=", ","])
def test_long_chains(operator: str) -> None:
    text = VALID.replace("host LIKE '%.edu'", f" {operator} ".join(["1"] * 3000))
    assert not run(text)
