"""The oracle against expectations worked out by hand: it judges the engine, so it is judged first.

Below it the comparison of results and accounts, the reference table, and the generator.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
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
    Computed,
    Expression,
    InList,
    IsNull,
    Like,
    Literal,
    Logic,
    Not,
    Prefix,
)
from penstock.logical.query import Attribute, Field, Key, Order, OutputColumn, Query, QuerySet, Stream
from penstock.logical.resolve.app import resolve_app
from penstock.logical.types import BIGINT, BOOLEAN, DOUBLE, INET, STRING, TIMESTAMP, TINYINT, Type
from penstock.logical.window import ROWS, Window
from penstock.sources.base import fields
from penstock.testing.apps.generators import MOST_BATCHES, MOST_QUERIES, RandomCase, random_case
from penstock.testing.apps.random_files import write_file
from penstock.testing.apps.random_stream import ADDRESS_KEY
from penstock.testing.apps.random_windows import MOST_WINDOWS
from penstock.testing.asserts import PARTS, assert_account_closes, assert_same_account, assert_same_rows
from penstock.testing.oracle.expected import Expected, ExpectedAccount, Since, expect
from support.reference import Entry, merge_entries, run_direct_table
from support.simulation import Record, SimulatedQuery, simulate

SECOND = 1_000_000
COUNT = Aggregate("count", None, BIGINT)


def aggregate(function: str, column: Column) -> Aggregate:
    kept = column.type if function in ("min", "max") else DOUBLE
    whole = BIGINT if function == "count" or (function == "sum" and column.type.kind is BIGINT.kind) else kept
    return Aggregate(function, column, whole)


def query(
    *aggregates: Aggregate,
    keys: tuple[Attribute, ...] = (),
    size: int = 10 * SECOND,
    select: tuple[Expression, ...] | None = None,
    name: str = "q",
    stream: str = "s",
    window: Window | None = None,
    **more: Any,
) -> Query:
    """A query on the stream s, by default with its keys and aggregates as select list o0, o1, …"""
    shown = select if select is not None else (*keys, *aggregates)
    outputs = tuple(OutputColumn(f"o{i}", expression) for i, expression in enumerate(shown))
    named = tuple(Key(f"k{i}", key) for i, key in enumerate(keys))
    clauses = {"where": None, "having": None, "sink": None} | more
    return Query(
        name, stream, window or Window(size, size), keys=named, select=outputs, aggregates=aggregates, **clauses
    )


def ask(
    queries: Query | tuple[Query, ...],
    columns: dict[str, tuple[Type, list[Any] | pa.Array]],
    times: list[float | None],
    batches: list[int] | None = None,
    delay: int | None = None,
    ahead: int | None = None,
    since: dict[str, tuple[int | None, int, int]] | None = None,
) -> Expected:
    stamps = pa.array([None if t is None else round(t * SECOND) for t in times], pa.int64()).cast(pa.timestamp("us"))
    fields = (Field("ts", TIMESTAMP), *(Field(name, kind) for name, (kind, _) in columns.items()))
    stream = Stream("s", fields, "parquet:x", (), "ts", delay, ahead)
    data = pa.table({"ts": stamps} | {name: values for name, (_, values) in columns.items()})
    asked = queries if isinstance(queries, tuple) else (queries,)
    return expect(QuerySet((stream,), asked), data, batches or [len(times)], since=since)


def rows(expected: Expected, name: str = "q") -> list[tuple[Any, ...]]:
    """Select list, then window start in seconds; sorted for comparison."""
    table = expected.rows[name]
    starts = table.column("window_start").cast(pa.int64()).to_pylist()
    columns = [table.column(i).to_pylist() for i in range(table.num_columns - 2)]
    return sorted(zip(*columns, (s // SECOND for s in starts), strict=True), key=repr)


def spans(expected: Expected, name: str = "q") -> list[tuple[Any, ...]]:
    """Start and end of the window in seconds, then the select list."""
    table = expected.rows[name]
    times = [table.column(c).cast(pa.int64()).to_pylist() for c in ("window_start", "window_end")]
    columns = [table.column(i).to_pylist() for i in range(table.num_columns - 2)]
    seconds = [[t // SECOND for t in column] for column in times]
    return sorted(zip(*seconds, *columns, strict=True), key=lambda row: (row[:2], repr(row)))


def sliding(size: float, slide: float) -> Window:
    return Window(round(size * SECOND), round(slide * SECOND))


def landmark(slide: int) -> Window:
    return Window(None, slide * SECOND)


def of_rows(size: int, slide: int) -> Window:
    return Window(size, slide, ROWS)


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
    assert found.accounts["q"] == found.stream == ExpectedAccount(0, 0, 0, 0, 0, 0)


def test_late_is_judged_by_the_watermark_of_the_batch_before() -> None:
    # WM(0) = 20 - 5 = 15: window [0, 10) is closed for batch 1, [10, 20) is open until WM(1) = 30 - 5 = 25.
    found = ask(query(COUNT), {}, [1, 20, 9, 12, 30, 19, 21], [2, 3, 2], delay=5 * SECOND)
    assert found.watermarks == (15 * SECOND, 25 * SECOND, 25 * SECOND)
    assert rows(found) == [(1, 0), (1, 10), (1, 30), (2, 20)]
    assert found.accounts["q"] == ExpectedAccount(7, 5, 0, 2, 0, 0)


def test_a_window_that_ends_at_the_watermark_is_closed() -> None:
    found = ask(query(COUNT), {}, [10, 9], [1, 1], delay=0)
    assert found.accounts["q"].late == 1


def test_without_watermark_nothing_is_late() -> None:
    found = ask(query(COUNT), {}, [1000, 0], [1, 1])
    assert found.accounts["q"] == ExpectedAccount(2, 2, 0, 0, 0, 0)
    assert found.watermarks == (None, None)


def test_filtered_tuples_advance_the_watermark() -> None:
    where = Comparison("=", A, Literal(1, BIGINT))
    found = ask(query(COUNT, where=where), {"a": (BIGINT, [1, 0, 1])}, [1, 100, 2], [2, 1], delay=0)
    assert found.accounts["q"] == ExpectedAccount(3, 1, 0, 1, 1, 0)


def test_null_time_is_malformed_for_every_query() -> None:
    found = ask((query(COUNT), query(COUNT, name="other")), {}, [None, 1])
    assert found.accounts["q"] == found.accounts["other"] == found.stream == ExpectedAccount(2, 1, 0, 0, 0, 1)


def test_time_ahead_is_malformed_and_does_not_move_the_watermark() -> None:
    # The first has no reference; 1000 is ahead of 10 + 60; 69 is not, and raises the reference for 128.
    found = ask(query(COUNT), {}, [10, 1000, 69, 128, 11], [1, 2, 2], delay=0, ahead=60 * SECOND)
    assert found.watermarks == (10 * SECOND, 69 * SECOND, 128 * SECOND)
    assert found.accounts["q"] == ExpectedAccount(5, 3, 0, 1, 0, 1)


def test_malformed_only_for_queries_that_use_the_column_and_stream_takes_the_best() -> None:
    by_source = query(COUNT, keys=(SRC,), name="by_source")
    none = query(COUNT, where=IsNull(SRC), name="none")
    found = ask(
        (by_source, query(COUNT, name="all"), none), {"src": (INET, ["10.0.0.1", "garbage", "", None])}, [0, 1, 2, 3]
    )
    assert found.accounts["by_source"] == ExpectedAccount(4, 2, 0, 0, 0, 2)
    assert found.accounts["none"] == ExpectedAccount(4, 1, 0, 0, 1, 2)
    assert found.accounts["all"] == found.stream == ExpectedAccount(4, 4, 0, 0, 0, 0)
    assert rows(found, "by_source") == [("10.0.0.1", 1, 0), (None, 1, 0)]


def test_order_of_judgement_in_a_query_and_over_queries() -> None:
    where = Comparison(">", Column("a", TINYINT), Literal(0, BIGINT))
    strict, open_ = query(COUNT, where=where, name="strict"), query(COUNT, name="open")
    # Batch 1 is late everywhere; of it a = 0 is filtered first, and 300 does not fit.
    columns: dict[str, tuple[Type, Any]] = {"a": (TINYINT, pa.array([1, 0, 300, 1], pa.int32()))}
    found = ask((strict, open_), columns, [100, 1, 1, 1], [1, 3], delay=0)
    assert found.accounts["strict"] == ExpectedAccount(4, 1, 0, 1, 1, 1)
    assert found.accounts["open"] == ExpectedAccount(4, 1, 0, 3, 0, 0)
    assert found.stream == ExpectedAccount(4, 1, 0, 3, 0, 0)


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
    assert found.accounts["q"] == ExpectedAccount(4, 1, 0, 0, 3, 0)
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


# -- windows


def test_sliding_windows_overlap() -> None:
    found = ask(query(COUNT, window=sliding(10, 5)), {}, [0, 7, 12])
    assert spans(found) == [(-5, 5, 1), (0, 10, 2), (5, 15, 2), (10, 20, 1)]
    assert found.accounts["q"] == ExpectedAccount(3, 3, 0, 0, 0, 0)


def test_a_slide_that_does_not_divide_the_range() -> None:
    found = ask(query(COUNT, window=sliding(5, 3)), {}, [3, 4, 5])
    assert spans(found) == [(0, 5, 2), (3, 8, 3)]


def test_tuples_between_windows_are_filtered_also_where_they_would_be_late() -> None:
    gaps = query(COUNT, window=sliding(2, 5))
    found = ask(gaps, {}, [0, 1.5, 3, 6])
    assert spans(found) == [(0, 2, 2), (5, 7, 1)]
    assert found.accounts["q"] == ExpectedAccount(4, 3, 0, 0, 1, 0)
    assert ask(gaps, {}, [20, 3, 1], [1, 2], delay=0).accounts["q"] == ExpectedAccount(3, 1, 0, 1, 1, 0)


def test_a_tuple_counts_in_those_of_its_windows_that_are_open() -> None:
    # WM(0) = 12 closes [-5, 5) and [0, 10): 8 still counts in [5, 15), 4 and 3 are late.
    found = ask(query(COUNT, window=sliding(10, 5)), {}, [12, 8, 4, 3, 12], [1, 4], delay=0)
    assert spans(found) == [(5, 15, 3), (10, 20, 2)]
    assert found.accounts["q"] == ExpectedAccount(5, 3, 0, 2, 0, 0)


def test_rows_windows_count_every_record_and_take_their_times_from_all_that_have_one() -> None:
    asked = query(COUNT, where=Comparison("=", A, Literal(1, BIGINT)), window=of_rows(2, 2))
    found = ask(asked, {"a": (BIGINT, [1, 1, 0, 1, 1])}, [10, None, 5, 30, 7], [2, 2, 1], delay=0)
    assert spans(found) == [(5, 30, 1), (7, 7, 1), (10, 10, 1)]
    assert found.accounts["q"] == ExpectedAccount(5, 3, 0, 0, 1, 1)


def test_rows_windows_slide_from_before_the_first_record() -> None:
    found = ask(query(COUNT, window=of_rows(3, 1)), {}, [1, 2, 3, 4])
    assert spans(found) == [(1, 1, 1), (1, 2, 2), (1, 3, 3), (2, 4, 3), (3, 4, 2), (4, 4, 1)]
    gaps = ask(query(COUNT, window=of_rows(1, 2)), {}, [1, 2, 3])
    assert (spans(gaps), gaps.accounts["q"].filtered) == ([(1, 1, 1), (3, 3, 1)], 1)


def test_landmark_windows_accumulate_also_over_empty_slides() -> None:
    found = ask(query(COUNT, window=landmark(10)), {}, [13, 17, 25, 41])
    assert spans(found) == [(10, 20, 2), (10, 30, 3), (10, 40, 3), (10, 50, 4)]


def test_landmark_windows_under_a_watermark() -> None:
    # 8 and 9 are before the first slide; 12 comes when [10, 20) is closed, and counts from [10, 30) on.
    found = ask(query(COUNT, window=landmark(10)), {}, [13, 8, 25, 12, 31, 9], [3, 2, 1], delay=0)
    assert spans(found) == [(10, 20, 1), (10, 30, 3), (10, 40, 4)]
    assert found.accounts["q"] == ExpectedAccount(6, 4, 0, 2, 0, 0)


def test_landmark_windows_begin_and_end_with_the_stream_not_with_what_is_chosen_of_it() -> None:
    asked = query(COUNT, where=Comparison("=", A, Literal(1, BIGINT)), window=landmark(10))
    found = ask(asked, {"a": (BIGINT, [1, 0, 1, 0])}, [None, 3, 15, 38])
    assert spans(found) == [(0, 20, 1), (0, 30, 1), (0, 40, 1)]
    assert found.accounts["q"] == ExpectedAccount(4, 1, 0, 0, 2, 1)


def test_several_windows_on_one_stream_share_its_account() -> None:
    asked = (query(COUNT, window=sliding(2, 5), name="gaps"), query(COUNT, window=landmark(10), name="all"))
    found = ask(asked, {}, [13, 4, 3], [1, 2], delay=0)
    # 4 and 3 lie in a gap for one query, before the first slide for the other.
    assert found.accounts["gaps"] == ExpectedAccount(3, 0, 0, 0, 3, 0)
    assert found.accounts["all"] == ExpectedAccount(3, 1, 0, 2, 0, 0)
    assert found.stream == ExpectedAccount(3, 1, 0, 2, 0, 0)


# -- queries on queries

COUNTED = Column("o1", BIGINT)


def test_results_are_a_stream_at_the_ends_of_their_windows() -> None:
    inner = query(COUNT, keys=(A,), hidden=True)
    outer = query(aggregate("sum", COUNTED), COUNT, window=sliding(20, 20), name="outer", stream="q")
    found = ask((inner, outer), {"a": (BIGINT, [1, 1, 2, 1])}, [1, 11, 12, 25])
    assert list(found.rows) == ["outer"]
    assert spans(found, "outer") == [(0, 20, 1, 1), (20, 40, 3, 3)]
    assert found.accounts["outer"] == ExpectedAccount(4, 4, 0, 0, 0, 0)
    assert found.stream == found.accounts["q"] == ExpectedAccount(4, 4, 0, 0, 0, 0)


def test_results_are_not_late_where_their_tuples_came_late_enough() -> None:
    inner = query(COUNT, keys=(A,))
    outer = query(aggregate("sum", COUNTED), name="outer", stream="q", size=20 * SECOND)
    # WM(0) = 25: the window [0, 10) is closed in batch 0, [20, 30) and [30, 40) at the end; 2 is late.
    columns: dict[str, tuple[Type, Any]] = {"a": (BIGINT, [1, 1, 1, 1, 1])}
    found = ask((inner, outer), columns, [1, 25, 2, 26, 31], [2, 3], delay=0)
    assert spans(found, "q") == [(0, 10, 1, 1), (20, 30, 1, 2), (30, 40, 1, 1)]
    assert spans(found, "outer") == [(0, 20, 1), (20, 40, 2), (40, 60, 1)]
    assert found.accounts["outer"] == ExpectedAccount(3, 3, 0, 0, 0, 0)


def test_times_addresses_and_prefixes_of_results() -> None:
    inner = query(COUNT, keys=(SRC, Prefix(SRC, 24)))
    address, prefix, ts = Column("o0", INET), Column("o1", STRING), Column("ts", TIMESTAMP)
    chosen = Comparison("<", address, Literal("10.0.0.0", INET))
    outer = query(
        aggregate("max", address), aggregate("min", ts), keys=(prefix,), where=chosen, name="outer", stream="q"
    )
    found = ask((inner, outer), {"src": (INET, ["9.0.0.9", "9.0.0.10", "10.0.0.1", "::1"])}, [0, 0, 0, 0])
    (row,) = spans(found, "outer")
    assert row[:4] == (10, 20, "9.0.0.0/24", "9.0.0.10")
    assert row[4].timestamp() == 10
    assert found.accounts["outer"] == ExpectedAccount(4, 2, 0, 0, 2, 0)


def test_landmark_over_results() -> None:
    inner, outer = query(COUNT), query(COUNT, window=landmark(20), name="outer", stream="q")
    found = ask((inner, outer), {}, [1, 11, 22, 35], [3, 1], delay=0)
    assert spans(found, "outer") == [(0, 20, 1), (0, 40, 3), (0, 60, 4)]


def test_landmark_over_results_goes_as_far_as_the_watermark_closes() -> None:
    inner = query(COUNT, where=Comparison("=", A, Literal(1, BIGINT)))
    outer = query(COUNT, window=landmark(20), name="outer", stream="q")
    found = ask((inner, outer), {"a": (BIGINT, [1, 0])}, [1, 45], [1, 1], delay=0)
    assert spans(found, "outer") == [(0, 20, 1), (0, 40, 1)]


def test_queries_on_queries_on_queries() -> None:
    first = query(COUNT)
    second = query(aggregate("max", Column("o0", BIGINT)), size=20 * SECOND, name="second", stream="q")
    third = query(aggregate("sum", Column("o0", BIGINT)), window=landmark(40), name="third", stream="second")
    found = ask((first, second, third), {}, [1, 2, 11, 21, 22, 23], [3, 3], delay=0)
    assert spans(found, "second") == [(0, 20, 2), (20, 40, 3)]
    assert spans(found, "third") == [(0, 40, 2), (0, 80, 5)]


# -- order and limit


def limited(expression: Expression, descending: bool, limit: int, key: Column, values: list[Any]) -> list[Any]:
    asked = query(COUNT, keys=(key,), order=(Order(expression, descending),), limit=limit)
    found = ask(asked, {key.name: (key.type, values)}, [0] * len(values))
    assert found.accounts["q"].exact == len(values)
    return [row[2] for row in spans(found)]


def test_limit_takes_the_first_rows_of_each_window_with_ties_by_the_keys() -> None:
    values = [3, 1, 1, 2, None, None]
    assert limited(COUNT, True, 1, A, values) == [None]
    assert limited(COUNT, True, 3, A, values) == [1, 2, None]
    assert limited(COUNT, False, 1, A, values) == [2]
    by_window = query(COUNT, keys=(A,), order=(Order(A, True),), limit=1)
    assert rows(ask(by_window, {"a": (BIGINT, [1, 2, 1])}, [0, 0, 10])) == [(1, 1, 10), (2, 1, 0)]


def test_limit_alone_goes_by_the_keys_and_having_comes_first() -> None:
    more = Comparison(">", A, Literal(1, BIGINT))
    asked = query(COUNT, keys=(A,), having=more, limit=2)
    assert [row[2] for row in spans(ask(asked, {"a": (BIGINT, [4, 3, 2, 1])}, [0] * 4))] == [2, 3]


@pytest.mark.parametrize(
    ("key", "values"),
    [
        (X, [None, -math.inf, -0.5, 0.0, 1.5, math.inf, math.nan]),
        (TEXT, [None, "", "Z", "a", "a\0", "ab", "é", "\U0001f600"]),
        (SRC, [None, "9.0.0.0", "10.0.0.0", "::", "::1", "ffff::"]),
        (Column("f", BOOLEAN), [None, False, True]),
    ],
)
def test_order_of_every_type(key: Column, values: list[Any]) -> None:
    for count in range(1, len(values)):
        assert repr(sorted(limited(key, False, count, key, values), key=repr)) == repr(sorted(values[:count], key=repr))
        assert repr(sorted(limited(key, True, count, key, values), key=repr)) == repr(sorted(values[-count:], key=repr))


def test_one_row_per_tuple_and_window() -> None:
    asked = query(keys=(A,), per_tuple=True, window=sliding(10, 5))
    found = ask(asked, {"a": (BIGINT, [1, 1, None])}, [0, 1, 7])
    assert spans(found) == [(-5, 5, 1), (-5, 5, 1), (0, 10, 1), (0, 10, 1), (0, 10, None), (5, 15, None)]
    first = query(keys=(A,), per_tuple=True, limit=1, order=(Order(A, True),))
    assert rows(ask(first, {"a": (BIGINT, [1, 1, None])}, [0, 1, 7])) == [(1, 0)]


# -- variances and computed attributes


def test_variances() -> None:
    asked = query(*(aggregate(f, X) for f in ("var_samp", "var_pop", "stddev_samp", "stddev_pop")), keys=(A,))
    values = [1.0, 2.0, 4.0, None, 7.0, None, 1.0, math.nan, math.inf, math.inf, 1e15, 1e15 + 1]
    groups = [0, 0, 0, 0, 1, 2, 3, 3, 4, 4, 5, 5]
    found = ask(asked, {"a": (BIGINT, groups), "x": (DOUBLE, values)}, [0] * 12)
    shown = {row[0]: row[1:5] for row in rows(found)}
    assert shown[0] == (7 / 3, 14 / 9, math.sqrt(7 / 3), math.sqrt(14 / 9))
    assert shown[1] == (None, 0.0, None, 0.0)
    assert shown[2] == (None,) * 4
    assert all(math.isnan(value) for value in shown[3] + shown[4])
    assert shown[5] == (0.5, 0.25, math.sqrt(0.5), 0.5)


def test_variances_of_integers_beyond_what_doubles_hold() -> None:
    found = ask(query(aggregate("var_pop", A)), {"a": (BIGINT, [2**63 - 1, 2**63 - 3])}, [0, 0])
    assert rows(found) == [(1.0, 0)]


def test_a_true_zero_may_be_off_by_rounding_and_nothing_else() -> None:
    expected = ask(
        query(aggregate("stddev_pop", X), keys=(A,)), {"a": (BIGINT, [0, 0]), "x": (DOUBLE, [3.0, 3.0])}, [0, 0]
    )
    table = expected.rows["q"]
    nearly = table.set_column(1, "o1", pa.array([2e-9]))
    assert_same_rows(nearly, table, "case")
    with pytest.raises(AssertionError, match="1 unexpected"):
        assert_same_rows(table.set_column(1, "o1", pa.array([4e-9])), table, "case")
    with pytest.raises(AssertionError, match="1 unexpected"):
        assert_same_rows(table, nearly, "case")


def test_computed_attributes_are_keys_and_arguments() -> None:
    half = Computed("=a % 2", Arithmetic("%", A, Literal(2, BIGINT), BIGINT), BIGINT)
    double = Computed("=x * 2", Arithmetic("*", X, Literal(2.0, DOUBLE), DOUBLE), DOUBLE)
    total = Aggregate("sum", double, DOUBLE)
    plus = Arithmetic("+", half, COUNT, BIGINT)
    asked = query(COUNT, total, keys=(half,), select=(half, total, plus), order=(Order(half, True),), limit=2)
    columns = {"a": (BIGINT, [1, 2, 3, None]), "x": (DOUBLE, [0.5, 1.0, None, -0.0])}
    assert rows(ask(asked, columns, [0] * 4)) == [(0, 2.0, 1, 0), (1, 1.0, 3, 0)]


def test_computed_zeros_are_one_group() -> None:
    negative = Computed("=x * -1", Arithmetic("*", X, Literal(-1.0, DOUBLE), DOUBLE), DOUBLE)
    found = ask(query(COUNT, keys=(negative,)), {"x": (DOUBLE, [0.0, -0.0])}, [0, 0])
    assert rows(found) == [(0.0, 2, 0)]


def test_a_value_that_does_not_fit_makes_the_record_malformed_inside_an_expression_too() -> None:
    tiny = Column("a", TINYINT)
    next_ = Computed("=a + 1", Arithmetic("+", tiny, Literal(1, BIGINT), BIGINT), BIGINT)
    found = ask(query(COUNT, keys=(next_,)), {"a": (TINYINT, pa.array([1, 300], pa.int32()))}, [0, 0])
    assert (rows(found), found.accounts["q"].malformed) == ([(2, 1, 0)], 1)


# -- queries added later


def test_an_added_query_reads_from_its_batch_on_and_has_only_windows_that_start_later() -> None:
    asked = (query(COUNT, window=sliding(10, 5)), query(COUNT, window=sliding(10, 5), name="all"))
    found = ask(asked, {}, [12, 13, 16, 21], [1, 3], since={"q": (12 * SECOND, 1, 1)})
    assert spans(found) == [(15, 25, 2), (20, 30, 1)]
    assert found.accounts["q"] == ExpectedAccount(3, 2, 0, 1, 0, 0)
    assert found.accounts["all"] == found.stream == ExpectedAccount(4, 4, 0, 0, 0, 0)


def test_an_added_query_does_not_have_the_window_that_starts_at_the_greatest_time() -> None:
    found = ask(query(COUNT), {}, [20, 25, 30], [1, 2], since={"q": (20 * SECOND, 1, 1)})
    assert spans(found) == [(30, 40, 1)]


def test_an_added_query_over_rows() -> None:
    found = ask(query(COUNT, window=of_rows(4, 2)), {}, list(range(8)), [3, 5], since={"q": (2 * SECOND, 3, 1)})
    assert spans(found) == [(4, 7, 4), (6, 7, 2)]
    assert found.accounts["q"] == ExpectedAccount(5, 4, 0, 1, 0, 0)


def test_an_added_landmark_starts_at_the_next_slide() -> None:
    found = ask(query(COUNT, window=landmark(10)), {}, [5, 12, 13, 25, 31], [2, 3], since={"q": (12 * SECOND, 2, 1)})
    assert spans(found) == [(20, 30, 1), (20, 40, 2)]
    assert found.accounts["q"] == ExpectedAccount(3, 2, 0, 1, 0, 0)


def test_a_query_added_before_anything_had_a_time() -> None:
    found = ask(query(COUNT, window=landmark(10)), {}, [None, 5], [1, 1], since={"q": (None, 1, 1)})
    assert (spans(found), found.accounts["q"]) == ([(0, 10, 1)], ExpectedAccount(1, 1, 0, 0, 0, 0))


def test_an_added_query_on_results() -> None:
    asked = (query(COUNT), query(COUNT, size=20 * SECOND, name="outer", stream="q"))
    found = ask(asked, {}, [1, 11, 21, 31, 41], [3, 2], delay=0, since={"outer": (21 * SECOND, 3, 1)})
    # Of the results 10, 20 | 30, 40, 50 the outer query reads the last three; its first window starts at 40.
    assert spans(found, "outer") == [(40, 60, 2)]
    assert found.accounts["outer"] == ExpectedAccount(3, 2, 0, 1, 0, 0)


# -- the oracle against a simulation, one tuple and one batch at a time


def random_window(dice: random.Random, rows: bool) -> Window:
    if dice.random() < 0.25:
        return Window(None, dice.randint(3, 9))
    size, slide = dice.randint(1, 12), dice.randint(2, 9)
    return Window(size, slide, ROWS if rows and dice.random() < 0.4 else "time")


@dataclass(frozen=True)
class Small:
    """A random stream of a few dozen records, in batches; microseconds are its unit of time."""

    records: list[Record]
    batches: list[int]
    delay: int | None
    ahead: int | None

    @classmethod
    def of(cls, dice: random.Random) -> Small:
        disorder, left = dice.choice((0, 2, 10, 40)), dice.randint(0, 40)
        records = []
        for i in range(left):
            time = None if dice.random() < 0.1 else dice.randint(-disorder, disorder) + i - 10
            records.append((time, dice.choice((1, 2, 1, 2, 1, 2, None, 300)), dice.randint(0, 3)))
        batches: list[int] = []
        while left > 0 or not batches:
            batches.append(dice.randint(0, left))
            left -= batches[-1]
        return cls(records, batches, dice.choice((None, 0, 3, 50)), dice.choice((None, None, 5)))

    def ask(self, inner: Window, outer: Window, since: Since | None) -> Expected:
        positive = Comparison(">", A, Literal(0, BIGINT))
        counted = query(COUNT, aggregate("sum", A), keys=(Column("k", TINYINT),), where=positive, window=inner)
        key = Column("o0", TINYINT)
        again = query(COUNT, aggregate("sum", COUNTED), keys=(key,), window=outer, name="outer", stream="q")
        data = {
            "k": (TINYINT, pa.array([record[1] for record in self.records], pa.int32())),
            "a": (BIGINT, pa.array([record[2] for record in self.records], pa.int64())),
        }
        times = [None if time is None else time / SECOND for time, _, _ in self.records]
        added = {"q": tuple(since)} if since else None
        return ask((counted, again), data, times, self.batches, self.delay, self.ahead, added)


@pytest.mark.parametrize("start", range(0, 160, 40))
def test_oracle_agrees_with_a_simulation(start: int) -> None:
    for seed in range(start, start + 40):
        dice = random.Random(seed)
        stream = Small.of(dice)
        since = None
        if dice.random() < 0.3:
            batch = dice.randrange(len(stream.batches))
            since = Since(dice.randint(-5, 20) if batch else None, sum(stream.batches[:batch]), batch)
        inner = SimulatedQuery(random_window(dice, True), lambda value: value > 0, lambda key: key == 300, *since or ())
        outer = SimulatedQuery(random_window(dice, False))
        simulate(stream.records, stream.batches, stream.delay, stream.ahead, inner, outer)
        found = stream.ask(inner.window, outer.window, since)
        for name, simulated in (("q", inner), ("outer", outer)):
            assert microseconds(found, name) == Counter(simulated.results), (seed, name)
            parts = [simulated.fates[part] for part in PARTS]
            assert found.accounts[name] == ExpectedAccount(sum(parts), *parts), (seed, name)


def microseconds(expected: Expected, name: str) -> Counter[tuple[Any, ...]]:
    table = expected.rows[name]
    times = [table.column(c).cast(pa.int64()).to_pylist() for c in ("window_start", "window_end")]
    return Counter(zip(*times, *(table.column(i).to_pylist() for i in range(3)), strict=True))


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
    assert_same_account(CLOSED, ExpectedAccount(3, 1, 0, 1, 1, 0), "case")
    with pytest.raises(AssertionError, match="case: account is"):
        assert_same_account(CLOSED, ExpectedAccount(3, 2, 0, 0, 1, 0), "case")


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


def test_text_files_of_a_stream(tmp_path: Path) -> None:
    texts = ["", None, 'say "hi", all', "é"]
    address = pa.field("n", pa.uint32(), metadata={ADDRESS_KEY: b""})
    columns = [
        pa.array([-1, 0, 1_500_000_999, None], pa.int64()).cast(pa.timestamp("ns")),
        pa.array(texts),
        pa.array([1.5, None, -0.0, 5e-324]),
        pa.array([True, False, None, None]),
        pa.array([1, None, 0x0A000001, 2], pa.uint32()),
    ]
    fields = [pa.field("ts", columns[0].type), pa.field("t", pa.string()), pa.field("x", pa.float64())]
    stream = pa.Table.from_arrays(columns, schema=pa.schema([*fields, pa.field("f", pa.bool_()), address]))
    write_file(stream, tmp_path / "s.csv", "csv", 1)
    assert (tmp_path / "s.csv").read_text() == (
        "ts,t,x,f,n\n"
        '"1969-12-31T23:59:59.999999Z","",1.5,true,"0.0.0.1"\n'
        '"1970-01-01T00:00:00.000000Z",,,false,\n'
        '"1970-01-01T00:00:01.500000Z","say ""hi"", all",-0.0,,"10.0.0.1"\n'
        ',"é",5e-324,,"0.0.0.2"\n'
    )
    write_file(stream, tmp_path / "s.json", "json", 1)
    last = (tmp_path / "s.json").read_text().splitlines()[-1]
    assert last == '{"ts": null, "t": "é", "x": 5e-324, "f": null, "n": "0.0.0.2"}'


def test_formats_are_only_those_that_hold_the_data(tmp_path: Path) -> None:
    cases = [random_case(seed) for seed in range(60)]
    always = ("parquet", "arrow")
    assert {case.formats for case in cases} == {always, (*always, "json"), (*always, "csv", "json")}
    plain = next(case for case in cases if case.formats == always)
    with pytest.raises(ValueError, match="cannot be written as csv"):
        plain.write(tmp_path, "csv")
    text = next(case for case in cases if "csv" in case.formats)
    assert f"FROM 'csv:{tmp_path}'" in text.write(tmp_path, "csv")
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".csv"] * len(text.tables)


def resolved(case: RandomCase) -> QuerySet:
    return resolve_app(case.text("parquet:x"), f"seed {case.seed}", lambda uri, options: fields(case.data.schema))


def test_every_app_resolves() -> None:
    for seed in range(100):
        resolved(random_case(seed))


def test_every_app_has_an_answer_of_bounded_size() -> None:
    late = 0
    for seed in range(25):
        case = random_case(seed)
        rows, size = case.data.num_rows, case.settings.batch_rows
        found = expect(resolved(case), case.data, [min(size, rows - i) for i in range(0, rows, size)])
        assert set(found.rows) == set(case.queries)
        late += sum(account.late for account in found.accounts.values())
        for name, table in found.rows.items():
            windows = table.group_by(["window_start", "window_end"]).aggregate([]).num_rows
            assert windows <= MOST_WINDOWS, (seed, name)
    assert late > 0


def test_apps_stay_within_bounds() -> None:
    for seed in range(60):
        case = random_case(seed)
        rows = case.data.num_rows
        assert 1 <= len(case.queries) <= MOST_QUERIES, seed
        assert rows <= MOST_BATCHES * case.settings.batch_rows, seed
        assert rows <= 20_000, seed
