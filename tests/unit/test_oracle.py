"""The oracle against expectations worked out by hand: it judges the engine, so it is judged first.

Below it the comparison of results and accounts, the reference table, and the generator.
"""

from __future__ import annotations

import math
import random
from typing import Any

import pyarrow as pa
import pytest

from penstock.errors import RunError
from penstock.logical.expressions import (
    Aggregate,
    Arithmetic,
    Bucket,
    Column,
    Comparison,
    Expression,
    InList,
    IsNull,
    Like,
    Literal,
    Logic,
    Not,
    Prefix,
)
from penstock.logical.query import Field, Key, Output, Query, QuerySet, Stream, Tumbling
from penstock.logical.types import BIGINT, BOOLEAN, DOUBLE, INET, STRING, TIMESTAMP, TINYINT, Type
from penstock.testing.asserts import assert_account_closes, assert_same_account, assert_same_rows
from penstock.testing.generators import MOST_BATCHES, MOST_QUERIES, random_case
from penstock.testing.oracle import Account, Expected, expect
from penstock.testing.reference import Entry, merge_entries, run_direct_table

SECOND = 1_000_000
COUNT = Aggregate("count", None, BIGINT)


def aggregate(function: str, column: Column) -> Aggregate:
    kept = column.type if function in ("min", "max") else DOUBLE
    whole = BIGINT if function == "count" or (function == "sum" and column.type.kind is BIGINT.kind) else kept
    return Aggregate(function, column, whole)


def query(
    *aggregates: Aggregate,
    keys: tuple[Column | Prefix, ...] = (),
    where: Expression | None = None,
    having: Expression | None = None,
    size: int = 10 * SECOND,
    select: tuple[Expression, ...] | None = None,
    name: str = "q",
) -> Query:
    shown = select if select is not None else (*keys, *aggregates)
    outputs = tuple(Output(f"o{i}", expression) for i, expression in enumerate(shown))
    named = tuple(Key(f"k{i}", key) for i, key in enumerate(keys))
    return Query(name, "s", Tumbling(size), where, named, outputs, having, aggregates, None)


def ask(
    queries: Query | tuple[Query, ...],
    columns: dict[str, tuple[Type, list[Any] | pa.Array]],
    times: list[float | None],
    batches: list[int] | None = None,
    delay: int | None = None,
    ahead: int | None = None,
) -> Expected:
    stamps = pa.array([None if t is None else round(t * SECOND) for t in times], pa.int64()).cast(pa.timestamp("us"))
    fields = (Field("ts", TIMESTAMP), *(Field(name, kind) for name, (kind, _) in columns.items()))
    stream = Stream("s", fields, "parquet:x", (), "ts", delay, ahead)
    data = pa.table({"ts": stamps} | {name: values for name, (_, values) in columns.items()})
    asked = queries if isinstance(queries, tuple) else (queries,)
    return expect(QuerySet((stream,), asked), data, batches or [len(times)])


def rows(expected: Expected, name: str = "q") -> list[tuple[Any, ...]]:
    """Select list, then window start in seconds; sorted for comparison."""
    table = expected.rows[name]
    starts = table.column("window_start").cast(pa.int64()).to_pylist()
    columns = [table.column(i).to_pylist() for i in range(table.num_columns - 2)]
    return sorted(zip(*columns, (s // SECOND for s in starts), strict=True), key=repr)


A = Column("a", BIGINT)
X = Column("x", DOUBLE)
TEXT = Column("t", STRING)
SRC = Column("src", INET)


def test_windows_are_half_open_and_reach_before_1970() -> None:
    found = ask(query(COUNT), {}, [-10.000001, -10, -0.000001, 0, 9.999999, 10])
    assert rows(found) == [(1, -20), (1, 10), (2, -10), (2, 0)]
    ends = found.rows["q"].column("window_end")
    assert ends.type == pa.timestamp("us", tz="UTC")


def test_every_schema_part_of_the_result() -> None:
    tiny = Column("a", TINYINT)
    found = ask(query(COUNT, keys=(tiny,)), {"a": (TINYINT, [1])}, [0])
    assert found.rows["q"].schema.names == ["o0", "o1", "window_start", "window_end"]
    assert found.rows["q"].schema.types[:2] == [pa.int8(), pa.int64()]


def test_empty_stream_gives_empty_results_and_accounts() -> None:
    found = ask(query(COUNT, keys=(A,)), {"a": (BIGINT, pa.array([], pa.int64()))}, [], [])
    assert rows(found) == []
    assert found.accounts["q"] == found.stream == Account(0, 0, 0, 0, 0, 0)


def test_late_is_judged_by_the_watermark_of_the_batch_before() -> None:
    # WM(0) = 20 - 5 = 15: window [0, 10) is closed for batch 1, [10, 20) is open until WM(1) = 30 - 5 = 25.
    found = ask(query(COUNT), {}, [1, 20, 9, 12, 30, 19, 21], [2, 3, 2], delay=5 * SECOND)
    assert found.watermarks == (15 * SECOND, 25 * SECOND, 25 * SECOND)
    assert rows(found) == [(1, 0), (1, 10), (1, 30), (2, 20)]
    assert found.accounts["q"] == Account(7, 5, 0, 2, 0, 0)


def test_a_window_that_ends_at_the_watermark_is_closed() -> None:
    found = ask(query(COUNT), {}, [10, 9], [1, 1], delay=0)
    assert found.accounts["q"].late == 1


def test_without_watermark_nothing_is_late() -> None:
    found = ask(query(COUNT), {}, [1000, 0], [1, 1])
    assert found.accounts["q"] == Account(2, 2, 0, 0, 0, 0)
    assert found.watermarks == (None, None)


def test_filtered_tuples_advance_the_watermark() -> None:
    where = Comparison("=", A, Literal(1, BIGINT))
    found = ask(query(COUNT, where=where), {"a": (BIGINT, [1, 0, 1])}, [1, 100, 2], [2, 1], delay=0)
    assert found.accounts["q"] == Account(3, 1, 0, 1, 1, 0)


def test_null_time_is_malformed_for_every_query() -> None:
    found = ask((query(COUNT), query(COUNT, name="other")), {}, [None, 1])
    assert found.accounts["q"] == found.accounts["other"] == found.stream == Account(2, 1, 0, 0, 0, 1)


def test_time_ahead_is_malformed_and_does_not_move_the_watermark() -> None:
    # Batch 0 has no reference; 1000 is ahead of 10 + 60; 69 is not, and raises the reference for batch 2.
    found = ask(query(COUNT), {}, [10, 1000, 69, 128, 11], [1, 2, 2], delay=0, ahead=60 * SECOND)
    assert found.watermarks == (10 * SECOND, 69 * SECOND, 128 * SECOND)
    assert found.accounts["q"] == Account(5, 3, 0, 1, 0, 1)


def test_malformed_only_for_queries_that_use_the_column_and_stream_takes_the_best() -> None:
    by_source = query(COUNT, keys=(SRC,), name="by_source")
    none = query(COUNT, where=IsNull(SRC), name="none")
    found = ask(
        (by_source, query(COUNT, name="all"), none), {"src": (INET, ["10.0.0.1", "garbage", "", None])}, [0, 1, 2, 3]
    )
    assert found.accounts["by_source"] == Account(4, 2, 0, 0, 0, 2)
    assert found.accounts["none"] == Account(4, 1, 0, 0, 1, 2)
    assert found.accounts["all"] == found.stream == Account(4, 4, 0, 0, 0, 0)
    assert rows(found, "by_source") == [("10.0.0.1", 1, 0), (None, 1, 0)]


def test_order_of_judgement_in_a_query_and_over_queries() -> None:
    where = Comparison(">", Column("a", TINYINT), Literal(0, BIGINT))
    strict, open_ = query(COUNT, where=where, name="strict"), query(COUNT, name="open")
    # Batch 1 is late everywhere; of it a = 0 is filtered first, and 300 does not fit.
    columns: dict[str, tuple[Type, Any]] = {"a": (TINYINT, pa.array([1, 0, 300, 1], pa.int32()))}
    found = ask((strict, open_), columns, [100, 1, 1, 1], [1, 3], delay=0)
    assert found.accounts["strict"] == Account(4, 1, 0, 1, 1, 1)
    assert found.accounts["open"] == Account(4, 1, 0, 3, 0, 0)
    assert found.stream == Account(4, 1, 0, 3, 0, 0)


def test_unsigned_values_beyond_bigint_are_malformed() -> None:
    values = pa.array([1, 2**63 - 1, 2**63], pa.uint64())
    found = ask(query(aggregate("max", A)), {"a": (BIGINT, values)}, [0, 0, 0])
    assert rows(found) == [(2**63 - 1, 0)]
    assert found.accounts["q"].malformed == 1


def test_nulls_group_together_and_are_skipped() -> None:
    b = Column("b", BIGINT)
    asked = query(COUNT, aggregate("count", b), aggregate("sum", b), aggregate("avg", b), keys=(A,))
    found = ask(asked, {"a": (BIGINT, [None, None, 1]), "b": (BIGINT, [4, None, None])}, [0, 0, 0])
    assert rows(found) == [(1, 1, 0, None, None, 0), (None, 2, 1, 4, 4.0, 0)]


def test_nan_and_zero_keys_and_extremes() -> None:
    asked = query(COUNT, keys=(X,))
    values = [math.nan, -math.nan, 0.0, -0.0, math.inf]
    found = ask(asked, {"x": (DOUBLE, values)}, [0] * 5)
    assert [row[1:] for row in rows(found)] == [(2, 0), (1, 0), (2, 0)]
    extremes = ask(query(aggregate("min", X), aggregate("max", X)), {"x": (DOUBLE, values)}, [0] * 5)
    least, greatest, _ = rows(extremes)[0]
    assert least == 0.0
    assert math.isnan(greatest)


def test_nan_is_greater_than_every_number_and_equals_itself() -> None:
    above = Comparison(">", X, Literal(math.inf, DOUBLE))
    found = ask(query(COUNT, where=above), {"x": (DOUBLE, [math.nan, math.inf, 1.0, None])}, [0] * 4)
    assert found.accounts["q"] == Account(4, 1, 0, 0, 3, 0)
    same = ask(query(COUNT, where=Comparison("=", X, X)), {"x": (DOUBLE, [math.nan, None])}, [0, 0])
    assert same.accounts["q"].exact == 1


def test_integer_sums_are_wide_inside_and_refused_beyond_bigint() -> None:
    big = 2**62
    asked = query(aggregate("sum", A), aggregate("avg", A))
    found = ask(asked, {"a": (BIGINT, [big, big, big, -big, -big])}, [0] * 5)
    assert rows(found) == [(big, big / 5, 0)]
    with pytest.raises(RunError, match="does not fit BIGINT"):
        ask(asked, {"a": (BIGINT, [big, big])}, [0, 0])


def test_float_sums_are_correctly_rounded() -> None:
    asked = query(aggregate("sum", X), aggregate("avg", X), keys=(A,))
    columns: dict[str, tuple[Type, Any]] = {
        "x": (DOUBLE, [0.1] * 10 + [math.inf, -math.inf, math.inf]),
        "a": (BIGINT, [0] * 10 + [1, 1, 2]),
    }
    found = {row[0]: row[1:3] for row in rows(ask(asked, columns, [0] * 13))}
    assert found[0] == (1.0, 0.1)
    assert all(math.isnan(value) for value in found[1])
    assert found[2] == (math.inf, math.inf)


def test_address_keys_print_canonically() -> None:
    texts = ["10.0.0.1", "2001:DB8:0:0:0:0:0:1", "2001:db8::1", "::ffff:1.2.3.4", "::ffff:0102:0304", "1:0:0:2:0:0:0:3"]
    found = ask(query(COUNT, keys=(SRC,)), {"src": (INET, texts)}, [0] * 6)
    assert [row[:2] for row in rows(found)] == [
        ("10.0.0.1", 1),
        ("1:0:0:2::3", 1),
        ("2001:db8::1", 2),
        ("::ffff:1.2.3.4", 2),
    ]


def test_prefixes_of_both_families() -> None:
    texts = ["10.0.0.1", "10.0.0.200", "10.0.1.1", "2001:db8::1", "2001:dff::", "::ffff:10.0.0.1", None]
    found = ask(query(COUNT, keys=(Prefix(SRC, 24),)), {"src": (INET, texts)}, [0] * 7)
    counts = {row[0]: row[1] for row in rows(found)}
    assert counts == {"10.0.0.0/24": 2, "10.0.1.0/24": 1, "2001:d00::/24": 2, "::/24": 1, None: 1}
    long = ask(query(COUNT, keys=(Prefix(SRC, 112),)), {"src": (INET, ["10.0.0.1", "::ffff:1.2.3.4"])}, [0, 0])
    assert [row[0] for row in rows(long)] == ["10.0.0.1/32", "::ffff:1.2.0.0/112"]


def test_addresses_compare_numerically_ipv4_first() -> None:
    texts = ["9.0.0.0", "10.0.0.0", "::", "ffff::"]
    found = ask(query(aggregate("min", SRC), aggregate("max", SRC)), {"src": (INET, texts)}, [0] * 4)
    assert rows(found) == [("9.0.0.0", "ffff::", 0)]
    below = Comparison("<", SRC, Literal("10.0.0.0", INET))
    assert ask(query(COUNT, where=below), {"src": (INET, texts)}, [0] * 4).accounts["q"].exact == 1


def test_addresses_stored_as_numbers() -> None:
    values = pa.array([0x0A000001, 0, None], pa.uint32())
    found = ask(query(COUNT, keys=(SRC,)), {"src": (INET, values)}, [0, 0, 0])
    assert {row[0] for row in rows(found)} == {"10.0.0.1", "0.0.0.0", None}


@pytest.mark.parametrize(
    ("unit", "value", "microseconds"),
    [("s", -1, -SECOND), ("ms", 1, 1_000), ("us", 7, 7), ("ns", 1_999, 1), ("ns", -1, -1)],
)
def test_time_units(unit: str, value: int, microseconds: int) -> None:
    when = Column("w", TIMESTAMP)
    values = pa.array([value], pa.int64()).cast(pa.timestamp(unit, tz="Europe/Berlin"))
    found = ask(query(COUNT, keys=(when,)), {"w": (TIMESTAMP, values)}, [0])
    assert found.rows["q"].column(0).cast(pa.int64()).to_pylist() == [microseconds]


def test_strings_compare_as_bytes() -> None:
    texts = ["Z", "a", "é", "\U0001f600", "a\0"]
    found = ask(query(aggregate("min", TEXT), aggregate("max", TEXT)), {"t": (STRING, texts)}, [0] * 5)
    assert rows(found) == [("Z", "\U0001f600", 0)]


@pytest.mark.parametrize(
    ("predicate", "exact"),
    [
        (Like(TEXT, "a%"), 2),
        (Like(TEXT, "A%"), 0),
        (Not(Like(TEXT, "a_")), 2),
        (InList(TEXT, (Literal("ab", STRING), Literal("é", STRING))), 2),
        (Not(InList(TEXT, (Literal("ab", STRING), Literal(None, STRING)))), 0),
        (IsNull(TEXT), 1),
        (Logic("OR", (IsNull(TEXT), Comparison("=", TEXT, Literal("a", STRING)))), 2),
        (Logic("AND", (Not(IsNull(TEXT)), Comparison("<>", TEXT, Literal("a", STRING)))), 2),
    ],
)
def test_predicates_on_text(predicate: Expression, exact: int) -> None:
    texts = ["ab", "a", "é", None]
    assert ask(query(COUNT, where=predicate), {"t": (STRING, texts)}, [0] * 4).accounts["q"].exact == exact


@pytest.mark.parametrize(
    ("operator", "left", "right", "value"),
    [
        ("/", 7, 2, 3.5),
        ("/", 7, 0, None),
        ("%", -7, 3, -1),
        ("%", 7, 0, None),
        ("*", 3, -2, -6),
        ("-", 0, 2**63 - 1, -(2**63) + 1),
        ("*", 2**62, 2, None),
        ("+", None, 1, None),
    ],
)
def test_arithmetic(operator: str, left: int | None, right: int, value: float | None) -> None:
    kind = DOUBLE if operator == "/" else BIGINT
    expression = Arithmetic(operator, Literal(left, BIGINT), Literal(right, BIGINT), kind)
    assert rows(ask(query(COUNT, select=(expression,)), {}, [0])) == [(value, 0)]


def test_select_list_of_buckets_keys_and_aggregates_with_having() -> None:
    more = Comparison(">", COUNT, Literal(1, BIGINT))
    share = Arithmetic("/", aggregate("sum", A), COUNT, DOUBLE)
    asked = query(COUNT, aggregate("sum", A), keys=(TEXT,), having=more, select=(Bucket(), TEXT, share))
    found = ask(asked, {"a": (BIGINT, [1, 2, 3]), "t": (STRING, ["x", "x", "y"])}, [-5, -5, -5])
    assert rows(found) == [(-1, "x", 1.5, -10)]
    assert found.accounts["q"].exact == 3


def test_boolean_columns() -> None:
    flag = Column("f", BOOLEAN)
    found = ask(query(COUNT, aggregate("max", flag), where=flag), {"f": (BOOLEAN, [True, False, None])}, [0] * 3)
    assert rows(found) == [(1, True, 0)]


def test_batches_must_cover_the_stream() -> None:
    with pytest.raises(ValueError, match="2 rows, the stream 1"):
        ask(query(COUNT), {}, [0], [2])


# -- comparing results and accounts

CLOSED = {"input": 3, "exact": 1, "triaged": 0, "late": 1, "filtered": 1, "malformed": 0}


def table(keys: list[Any], values: list[float | None]) -> pa.Table:
    return pa.table({"k": pa.array(keys, pa.string()), "v": pa.array(values, pa.float64())})


def test_order_rounding_nan_and_zero_do_not_matter() -> None:
    actual = table(["a", "b", "c", None, "e"], [1.0, math.nan, -0.0, None, math.inf])
    expected = table(["e", None, "c", "b", "a"], [math.inf, None, 0.0, math.nan, 1.0 + 1e-12])
    assert_same_rows(actual, expected, "case")


@pytest.mark.parametrize(
    ("actual", "said"),
    [
        (table(["a"], [1.0]), "1 rows, expected 2; 0 unexpected, 1 missing"),
        (table(["a", "b", "b"], [1.0, 2.0, 2.0]), "1 unexpected, 0 missing"),
        (table(["a", "b"], [1.0, 2.00001]), r"unexpected: \('b', 2.00001\)"),
        (table(["a", "b"], [1.0, None]), r"missing: \('b', 2.0\)"),
        (table(["a", "b"], [1.0, 2.0]).rename_columns(["k", "w"]), "columns are"),
        (
            table(["a", "b"], [1.0, 2.0]).cast(pa.schema({"k": pa.string(), "v": pa.float32()})),
            "'v' is float, expected",
        ),
    ],
)
def test_differences_are_named(actual: pa.Table, said: str) -> None:
    with pytest.raises(AssertionError, match=said):
        assert_same_rows(actual, table(["a", "b"], [1.0, 2.0]), "case")


def test_rows_with_several_floats_are_paired_whole() -> None:
    left = pa.table({"x": [1.0, 1.0 + 1e-12], "y": [5.0, 6.0]})
    right = pa.table({"x": [1.0 + 1e-12, 1.0], "y": [5.0, 6.0]})
    assert_same_rows(left, right, "case")


def test_accounts() -> None:
    assert_account_closes({"accounting": CLOSED, "queries": {"q": {"accounting": CLOSED}}})
    assert_account_closes({"accounting": {"s": CLOSED}, "queries": {}})
    with pytest.raises(AssertionError, match="query 'q': input 3 but the parts give 4"):
        assert_account_closes({"accounting": CLOSED, "queries": {"q": {"accounting": CLOSED | {"late": 2}}}})
    with pytest.raises(AssertionError, match="stream's account: 'late' is None"):
        assert_account_closes({"accounting": CLOSED | {"late": None}, "queries": {}})
    assert_same_account(CLOSED, Account(3, 1, 0, 1, 1, 0), "case")
    with pytest.raises(AssertionError, match="case: account is"):
        assert_same_account(CLOSED, Account(3, 2, 0, 0, 1, 0), "case")


def test_direct_table_evicts_on_collision_in_order() -> None:
    keys, buckets = "aabbac", [0, 0, 0, 0, 0, 1]
    trace = run_direct_table([Entry(k, (1, i)) for i, k in enumerate(keys)], buckets, ("add", "min"))
    assert trace.evictions == (Entry("a", (2, 0)), Entry("b", (2, 2)))
    assert trace.residents == {0: Entry("a", (1, 4)), 1: Entry("c", (1, 5))}
    assert trace.probes == 6


def test_nothing_is_lost_in_a_direct_table() -> None:
    dice = random.Random(1)
    entries = [Entry(dice.randrange(50), (1, dice.randrange(100), dice.randrange(100))) for _ in range(2_000)]
    folds = ("add", "min", "max")
    trace = run_direct_table(entries, [hash(e.key) % 7 for e in entries], folds)
    assert merge_entries(trace.flushed, folds) == merge_entries(entries, folds)


# -- the generator


def test_equal_seeds_give_equal_apps() -> None:
    one, other = random_case(11), random_case(11)
    assert (one.app, one.settings, one.row_groups) == (other.app, other.settings, other.row_groups)
    # Written out, because NaN differs from itself in Table.equals.
    assert [repr(t.to_pylist()) for t in one.tables] == [repr(t.to_pylist()) for t in other.tables]
    assert one.app != random_case(12).app


def test_apps_stay_within_bounds() -> None:
    for seed in range(60):
        case = random_case(seed)
        rows = case.data.num_rows
        assert 1 <= len(case.queries) <= MOST_QUERIES, seed
        assert rows <= MOST_BATCHES * case.settings.batch_rows, seed
        assert rows <= 20_000, seed
