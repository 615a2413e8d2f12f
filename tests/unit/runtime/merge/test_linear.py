"""Which expressions of aggregates are sums of constants times these."""

from __future__ import annotations

import pytest

from penstock.logical.expressions import Expression
from penstock.logical.render import render
from penstock.logical.resolve.app import resolve_app
from penstock.runtime.merge.estimates.linear import linear

STREAM = "CREATE STREAM s (ts TIMESTAMP, host STRING, v BIGINT, x DOUBLE) FROM 'parquet:none';\n"


def expression(text: str) -> Expression:
    query = f"CREATE QUERY q AS SELECT {text} AS o FROM s [RANGE '1 second'] GROUP BY v;"
    return resolve_app(STREAM + query, "app.sql", lambda uri, options: None).queries[0].select[0].expression


@pytest.mark.parametrize(
    ("text", "factors", "constant", "adds"),
    [
        ("count(*)", {"count(*)": 1.0}, 0.0, True),
        ("sum(v) * 8", {"sum(v)": 8.0}, 0.0, True),
        ("8 * 2 * sum(v) / 10", {"sum(v)": 1.6}, 0.0, True),
        ("-sum(x) - 1", {"sum(x)": -1.0}, -1.0, True),
        ("(count(*) + sum(v)) * 2 + sum(v) + 1", {"count(*)": 2.0, "sum(v)": 3.0}, 1.0, True),
        ("sum(v) - sum(v)", {"sum(v)": 0.0}, 0.0, True),
        ("CAST(sum(v) AS DOUBLE) / 4", {"sum(v)": 0.25}, 0.0, True),
        ("avg(v) * 8 + 1", {"avg(v)": 8.0}, 1.0, False),
        ("avg(v) + count(v)", {"avg(v)": 1.0, "count(v)": 1.0}, 0.0, False),
    ],
)
def test_sums_of_constants_times_aggregates(text: str, factors: dict[str, float], constant: float, adds: bool) -> None:
    found = linear(expression(text))
    assert found is not None
    assert {render(one): factor for one, factor in found.factors.items()} == pytest.approx(factors)
    assert (found.constant, found.adds) == (constant, adds)


@pytest.mark.parametrize(
    "text",
    [
        "sum(v) * count(*)",
        "sum(v) / count(*)",
        "1 / count(*)",
        "sum(v) / 0",
        "count(*) % 4",
        "sum(v) * v",
        "max(v) + 1",
        "count(DISTINCT v) * 2",
        "coalesce(sum(v), 0)",
        "CAST(sum(x) AS BIGINT)",
        "CASE WHEN count(*) > 3 THEN count(*) END",
        "sum(x) * 1e308 * 10",
        "count(*) + NULL",
    ],
)
def test_others_are_none(text: str) -> None:
    assert linear(expression(text)) is None
