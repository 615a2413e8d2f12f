"""Which expressions of aggregates add up, found out by asking: DuckDB computes them of chosen values.

    sum(v) * 8 + count(*)     0 at 0, 8 more for 1 more in sum(v), 1 more for 1 more in count(*), and so everywhere

An expression that is NULL, where one aggregate is, and else what its values at 0 and 1 say of any other, is a sum of
constants times these aggregates. How it is written does not matter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

import pyarrow as pa

from penstock.logical.types import Kind, Type
from penstock.testing.oracle.database import run
from penstock.testing.oracle.duck import SQL_TYPES, Value

TOTALS, MEAN = ("count", "sum"), "avg"
NEAR = 1e-9
# Whole numbers, so that aggregates of all types take them; far apart, of both signs.
ASKED = ((3, -7, 11, 2), (-1_000, 512, -33, 90), (100_003, -4_001, 77, -9), (-5, -1, -2, -6), (42, 1_234, 9_999, 501))


class Summand(NamedTuple):
    """An aggregate of an expression: of what, and its column in the groups."""

    function: str
    argument: str  # "" of count(*)
    column: str
    type: Type


Factors = tuple[tuple[Summand, Fraction], ...]


def factors_of(sql: str, kind: Type, parts: Sequence[Summand], parameters: Mapping[str, Value]) -> Factors:
    """The constant in front of each; none, where the expression is no such sum."""
    if not kind.numeric or not parts or any(one.function not in (*TOTALS, MEAN) for one in parts):
        return ()
    zeros = [0] * len(parts)
    ones = [[int(i == j) for j in range(len(parts))] for i in range(len(parts))]
    several = [[values[i % 4] + i // 4 for i in range(len(parts))] for values in ASKED]
    nulls: list[list[int | None]] = [[None if i == j else 5 for j in range(len(parts))] for i in range(len(parts))]
    base, *found = _asked(sql, kind, parts, parameters, [zeros, *ones, *several, *nulls])
    known, missing = found[: -len(parts)], found[-len(parts) :]
    if base is None or any(one is None for one in known) or any(one is not None for one in missing):
        return ()
    factors = [_exact(one) - _exact(base) for one in known[: len(parts)]]
    for values, told in zip(several, known[len(parts) :], strict=True):
        terms = [factor * value for factor, value in zip(factors, values, strict=True)]
        size = sum(map(abs, terms), abs(_exact(base)))
        if abs(sum(terms, _exact(base)) - _exact(told)) > NEAR * size:
            return ()
    return tuple(zip(parts, factors, strict=True))


def _exact(value: float | None) -> Fraction:
    return Fraction(value or 0)


def _asked(
    sql: str,
    kind: Type,
    parts: Sequence[Summand],
    parameters: Mapping[str, Value],
    rows: Sequence[Sequence[int | None]],
) -> list[float | None]:
    """The expression where its aggregates have these values."""
    types = [pa.float64() if one.type.kind is Kind.DOUBLE else pa.int64() for one in parts]
    columns = {
        one.column: pa.array(each, own) for one, each, own in zip(parts, zip(*rows, strict=True), types, strict=True)
    }
    columns["place"] = pa.array(range(len(rows)))
    used = {name: value for name, value in parameters.items() if re.search(rf"\${name}\b", sql)}
    text = f"SELECT CAST({sql} AS {SQL_TYPES[kind.kind]}) AS told FROM input ORDER BY place"
    told: list[float | None] = run(text, used, input=pa.table(columns)).column("told").to_pylist()
    return told


def known_together(factors: Factors) -> bool:
    """Whether the error of such a sum is told: of one aggregate; of counts of records and values and the sum of one
    column. Nobody keeps the products of two columns. (Where a record has several rows of a table, of one alone.)"""
    arguments = {one.argument for one, _ in factors if one.argument}
    return len(factors) == 1 or (all(one.function in TOTALS for one, _ in factors) and len(arguments) <= 1)
