"""Three-valued logic, the order of NaN, overflow and division by zero, against DuckDB."""

from __future__ import annotations

import itertools
import math

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from penstock.logical import expressions as ex
from penstock.logical.render import render
from penstock.logical.types import BIGINT, BOOLEAN, DOUBLE, STRING
from penstock.runtime.expressions.evaluate import Operand, Scope, evaluate, truth

A, B = ex.Column("a", BIGINT), ex.Column("b", BIGINT)
X, Y = ex.Column("x", DOUBLE), ex.Column("y", DOUBLE)
S, T = ex.Column("s", STRING), ex.Column("t", STRING)
P, Q = ex.Column("p", BOOLEAN), ex.Column("q", BOOLEAN)
ONE = ex.Literal(1, BIGINT)
INTS = [None, 0, 1, -1, 7, -7, (1 << 62), -(1 << 62)]
FLOATS = [None, 0.0, -0.0, 1.5, -2.5, math.inf, -math.inf, math.nan]
TEXTS = [None, "", "a", "ab", "b", "é", "a%", "a\\b", "a_b"]
FLAGS = [None, True, False]


def table() -> pa.Table:
    rows = list(itertools.product(range(8), range(8)))
    pick = lambda values, side: [values[row[side] % len(values)] for row in rows]  # noqa: E731
    return pa.table(
        {
            "a": pa.array(pick(INTS, 0), pa.int64()), "b": pa.array(pick(INTS, 1), pa.int64()),
            "x": pa.array(pick(FLOATS, 0), pa.float64()), "y": pa.array(pick(FLOATS, 1), pa.float64()),
            "s": pa.array(pick(TEXTS, 0), pa.string()), "t": pa.array(pick(TEXTS, 1), pa.string()),
            "p": pa.array(pick(FLAGS, 0), pa.bool_()), "q": pa.array(pick(FLAGS, 1), pa.bool_()),
        }
    )  # fmt: skip


def scope(data: pa.Table, encoded: bool) -> Scope:
    def lookup(expression: ex.Expression) -> Operand:
        assert isinstance(expression, ex.Column)
        column = data[expression.name].combine_chunks()
        valid = column.is_valid().to_numpy(zero_copy_only=False)
        if expression.type is STRING:
            return Operand(column.dictionary_encode() if encoded else column, valid)
        filler = {BIGINT: 0, DOUBLE: 0.0, BOOLEAN: False}[expression.type]
        return Operand(column.fill_null(filler).to_numpy(zero_copy_only=False), valid)

    return Scope(lookup, data.num_rows)


COMPARED = [
    (A, B),
    (X, Y),
    (A, Y),
    (S, T),
    (A, ex.Literal(1, BIGINT)),
    (X, ex.Literal(1.5, DOUBLE)),
    (S, ex.Literal("a", STRING)),
]
COMPARISONS = [ex.Comparison(op, left, right) for op in ("=", "<>", "<", "<=", ">", ">=") for left, right in COMPARED]
LOGIC = [
    ex.Logic("AND", (P, Q)), ex.Logic("OR", (P, Q)), ex.Not(P), ex.IsNull(P), ex.Not(ex.Logic("AND", (ex.Not(P), Q))),
    ex.InList(A, (ONE, ex.Literal(7, BIGINT))), ex.InList(A, (ONE, ex.Literal(None, BIGINT))),
    ex.Not(ex.InList(A, (ONE, ex.Literal(None, BIGINT)))), ex.InList(S, (ex.Literal("a", STRING),)),
    ex.Like(S, "a%"), ex.Like(S, "_b"), ex.Not(ex.Like(S, "%a%")), ex.Like(S, "a\\%"),
    ex.Comparison(">", ex.Arithmetic("/", A, B, DOUBLE), ex.Literal(0.5, DOUBLE)),
    ex.Comparison("=", ex.Arithmetic("%", A, B, BIGINT), ex.Literal(0, BIGINT)),
    ex.Comparison("=", ex.Arithmetic("*", X, Y, DOUBLE), ex.Literal(0.0, DOUBLE)),
]  # fmt: skip


@pytest.mark.parametrize("encoded", [False, True])
@pytest.mark.parametrize("predicate", COMPARISONS + LOGIC, ids=render)
def test_predicates_agree_with_duckdb(predicate: ex.Expression, encoded: bool) -> None:
    data = table()
    text = render(predicate).replace("a / b", "a / nullif(b, 0)")  # ours is NULL, DuckDB's infinite
    with duckdb.connect() as connection:
        connection.execute("SET error_on_division_by_zero = false")
        rows = connection.sql(f"SELECT coalesce({text}, false) FROM data").fetchall()
    expected = np.array([row[0] for row in rows])
    assert (truth(predicate, scope(data, encoded)) == expected).all()


def test_integers_that_leave_64_bits_are_null() -> None:
    data = table()
    for operator in ("+", "-", "*"):
        got = evaluate(ex.Arithmetic(operator, A, B, BIGINT), scope(data, False))
        for i, (a, b) in enumerate(zip(data["a"].to_pylist(), data["b"].to_pylist(), strict=True)):
            wanted = None if a is None or b is None else {"+": a + b, "-": a - b, "*": a * b}[operator]
            inside = wanted is not None and -(1 << 63) <= wanted < 1 << 63
            assert got.valid is not None
            assert bool(got.valid[i]) == inside
            assert not inside or int(got.values[i]) == wanted
