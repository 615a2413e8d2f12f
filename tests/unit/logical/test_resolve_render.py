"""Rendered expressions read back as themselves."""

from __future__ import annotations

import doctest
import random

import pytest

from penstock.logical import render
from penstock.logical.expressions import Expression, Not
from penstock.logical.query import Field, Stream
from penstock.logical.resolve.app import resolve_query
from penstock.logical.types import BIGINT, BOOLEAN, DOUBLE, INET, STRING, TIMESTAMP
from penstock.logical.values import attributes, constants

STREAM = Stream(
    "r",
    (
        Field("ts", TIMESTAMP),
        Field("a", BIGINT),
        Field("b", DOUBLE),
        Field("up", BOOLEAN),
        Field("host", STRING),
        Field("src", INET),
        Field("odd name", BIGINT),
    ),
    "x:a",
    (),
    "ts",
)


def condition(text: str) -> Expression:
    where = resolve_query("q", f"SELECT count(*) FROM r [RANGE '1 s'] WHERE {text}", [STREAM])[-1].where
    assert where is not None
    return where


def number(chance: random.Random, depth: int) -> str:
    if depth == 0 or chance.random() < 0.3:
        return chance.choice(["a", "b", '"odd name"', "1", "2.5", "-7", "9000000000"])
    operator = chance.choice(["+", "-", "*", "/", "%"])
    return f"({number(chance, depth - 1)}) {operator} ({number(chance, depth - 1)})"


def predicate(chance: random.Random, depth: int) -> str:
    if depth > 0 and chance.random() < 0.6:
        operator = chance.choice(["AND", "OR"])
        text = f"({predicate(chance, depth - 1)}) {operator} ({predicate(chance, depth - 1)})"
        return text if chance.random() < 0.7 else f"NOT ({text})"
    leaves = [
        f"({number(chance, 2)}) {chance.choice(['=', '<>', '<', '<=', '>', '>='])} ({number(chance, 2)})",
        f"({number(chance, 2)}) IS {chance.choice(['', 'NOT '])}NULL",
        f"a {chance.choice(['', 'NOT '])}IN (1, 2, NULL)",
        f"host {chance.choice(['', 'NOT '])}LIKE '%it''s_'",
        "src = '10.0.0.1'",
        "ts > '2024-01-01T00:00:00.5'",
        "up",
        "up = (a > 1)",
        "src/24 = '10.0.0.0/24'",
        "src/64 NOT IN ('2001:db8::/64', '10.0.0.1/32', NULL)",
        f"host LIKE '5!%%' ESCAPE '!' AND lower(host) ILIKE {chance.choice(['A', 'b'])!r}",
        f"CASE WHEN {number(chance, 1)} > 1 THEN up ELSE b > 1 END",
        f"CASE a WHEN 1 THEN 'x' WHEN 2 THEN host END || substr(host, {chance.choice(['2', '-2, 1'])}) <> 'y'",
        f"CAST({number(chance, 2)} AS {chance.choice(['INT', 'BOOLEAN', 'DOUBLE'])}) IS NULL",
        f"round(coalesce({number(chance, 1)}, 0), 2) > least({number(chance, 1)}, 7)",
        "ts + INTERVAL '90 minutes' > date_trunc('day', ts - INTERVAL '-1 s')",
        "(ts - TIMESTAMP '2024-01-01') / 60 < epoch(ts) - 5",
        f"a IS {chance.choice(['', 'NOT '])}DISTINCT FROM nullif(a, 3)",
        "coalesce(src, '::1') = '10.0.0.1'",
    ]
    return chance.choice(leaves)


@pytest.mark.parametrize("seed", range(200))
def test_reads_back(seed: int) -> None:
    expression = condition(predicate(random.Random(seed), 3))
    assert condition(render.render(expression)) == expression


def test_negated_comparison() -> None:
    assert render.render(Not(condition("a = 1"))) == "NOT a = 1"


def test_doctests() -> None:
    assert doctest.testmod(attributes).failed == 0
    assert doctest.testmod(render).failed == 0
    assert doctest.testmod(constants).failed == 0
