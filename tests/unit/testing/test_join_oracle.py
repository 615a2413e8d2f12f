"""The oracle of joins against cases computed by hand, rule by rule (numbers as in the design of joins)."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from penstock.errors import RunError
from penstock.logical.resolve.app import resolve_app
from penstock.logical.types import BIGINT, DOUBLE, INET, INT, STRING, TIMESTAMP, Type
from penstock.testing.apps.random_joins import random_join_case
from penstock.testing.asserts import assert_same_rows
from penstock.testing.oracle.expected import expect
from penstock.testing.oracle.joins import ExpectedApp, ExpectedJoin, expect_joins
from penstock.testing.oracle.joins import answers as answers_module
from penstock.testing.oracle.joins import expected as expected_module
from penstock.testing.oracle.joins.bags import Grid
from penstock.testing.oracle.joins.script import app_text
from penstock.testing.oracle.joins.spec import (
    LANDMARK,
    RANGE,
    ROWS,
    AppSpec,
    FieldSpec,
    JoinSpec,
    KeySpec,
    OrderSpec,
    OutputSpec,
    RunLog,
    Side,
    StreamSpec,
    TableSide,
    TableSpec,
    Tie,
    WindowSpec,
    at_once,
)
from penstock.testing.oracle.joins.tables import matches
from penstock.testing.oracle.joins.terms import (
    Term,
    aggregate,
    arithmetic,
    column,
    compare,
    constant,
    count_side,
    grouped,
    number,
    window_end,
)
from penstock.testing.oracle.joins.watermarks import reached

SECOND = 1_000_000
Row = tuple[Any, ...]


def stream(name: str, key: Type = INT, delay: int | None = None) -> StreamSpec:
    """Columns ts, k and v; `delay` in seconds."""
    fields = (FieldSpec("ts", TIMESTAMP), FieldSpec("k", key), FieldSpec("v", BIGINT))
    return StreamSpec(name, fields, "ts", None if delay is None else delay * SECOND)


def records(rows: Sequence[Row], key: pa.DataType | None = None) -> pa.Table:
    """(seconds, k, v) each."""
    times = pa.array([None if t is None else t * SECOND for t, _, _ in rows], pa.timestamp("us"))
    keys = pa.array([k for _, k, _ in rows], key or pa.int32())
    return pa.table({"ts": times, "k": keys, "v": pa.array([v for _, _, v in rows], pa.int64())})


def seconds(size: int) -> WindowSpec:
    return WindowSpec(RANGE, size * SECOND)


def key(alias: str, kind: Type = INT) -> Term:
    return column(alias, "k", kind)


def value(alias: str) -> Term:
    return column(alias, "v", BIGINT)


COUNT = OutputSpec("n", aggregate("count"))
SUM = OutputSpec("total", aggregate("sum", value("B")))


def two(one: WindowSpec, other: WindowSpec, slide: int = 10, **more: Any) -> JoinSpec:
    """a AS A, b AS B, joined by k; without anything else, count(*) of all pairs."""
    sides = (Side("A", "a", one), Side("B", "b", other))
    given = {"outputs": (COUNT,), "equalities": ((key("A"), key("B")),)} | more
    return JoinSpec("q", sides, slide * SECOND, **given)


def judge(
    query: JoinSpec,
    a: Sequence[Row],
    b: Sequence[Row],
    log: RunLog | None = None,
    tables: tuple[TableSpec, ...] = (),
    delay: int | None = None,
) -> ExpectedJoin:
    app = AppSpec((stream("a", delay=delay), stream("b", delay=delay)), (query,), tables)
    data = {"a": records(a), "b": records(b)}
    return expect_joins(app, data, log or at_once({"a": len(a), "b": len(b)})).queries["q"]


def shown(found: ExpectedJoin) -> list[Row]:
    """(columns of the select list, window_end in seconds), in that order."""
    rows = found.rows.drop_columns(["window_start"])
    ends = [end // SECOND for end in rows.column("window_end").cast(pa.int64()).to_pylist()]
    columns = [rows.column(i).to_pylist() for i in range(rows.num_columns - 1)]
    return sorted(zip(*columns, ends, strict=True), key=lambda row: (row[-1], repr(row)))


def bounds(found: ExpectedJoin) -> list[tuple[int, int, int, int]]:
    return [(w["start"] // SECOND, w["end"] // SECOND, w["rows"], w["exact"]) for w in found.windows]


def parts(found: ExpectedJoin, alias: str) -> dict[str, int]:
    """What is not zero of an account, but the input."""
    return {name: count for name, count in found.accounts[alias].as_dict().items() if count and name != "input"}


# -- Rule 1: instants


def test_ranges_that_differ_by_slides_end_together() -> None:
    """Ranges 14 and 4 with slide 10: instants 4, 14, 24, … and the starts are multiples of ten."""
    found = judge(two(seconds(14), seconds(4)), [(1, 7, 0), (9, 7, 0)], [(3, 7, 0), (12, 7, 0), (22, 7, 0)])
    # At 4 A holds [-10, 4), B [0, 4); at 14 A holds [0, 14), B [10, 14); at 24 A has nothing any more.
    assert shown(found) == [(1, 4), (2, 14)]
    assert bounds(found) == [(-10, 4, 1, 2), (0, 14, 1, 3)]


def test_a_range_is_half_open_at_its_end() -> None:
    found = judge(two(seconds(10), seconds(10)), [(0, 7, 0), (10, 7, 0)], [(9, 7, 0), (10, 7, 0), (20, 7, 0)])
    assert shown(found) == [(1, 10), (1, 20)]


def test_ranges_that_differ_otherwise_are_refused() -> None:
    with pytest.raises(ValueError, match="modulo"):
        judge(two(seconds(10), seconds(5)), [(0, 7, 0)], [(0, 7, 0)])


def test_a_landmark_starts_at_the_slide_of_the_first_record() -> None:
    a = [(15, 7, 0), (12, 7, 0), (3, 7, 0), (33, 7, 0)]
    b = [(14, 7, 0), (25, 7, 0), (38, 7, 0)]
    found = judge(two(WindowSpec(LANDMARK), seconds(10)), a, b)
    # From 10 on: the record at 3 is in no window. Of B one record each time.
    assert shown(found) == [(2, 20), (2, 30), (3, 40)]
    assert bounds(found) == [(10, 20, 1, 3), (10, 30, 1, 3), (10, 40, 1, 4)]
    assert parts(found, "A") == {"exact": 3, "late": 1}


def test_a_landmark_and_a_longer_range_start_at_the_lesser() -> None:
    found = judge(two(WindowSpec(LANDMARK), seconds(30)), [(15, 7, 0)], [(14, 7, 0)])
    assert bounds(found) == [(-10, 20, 1, 2), (0, 30, 1, 2), (10, 40, 1, 2)]


def test_landmarks_alone_go_on_to_the_slide_of_the_greatest_time() -> None:
    found = judge(two(WindowSpec(LANDMARK), WindowSpec(LANDMARK)), [(1, 7, 0), (45, 8, 0)], [(12, 7, 0)])
    assert shown(found) == [(1, 20), (1, 30), (1, 40), (1, 50)]
    assert bounds(found)[0] == (0, 20, 1, 2)


def test_the_last_rows_go_by_time_then_position() -> None:
    a = [(1, 7, 0), (5, 7, 1), (3, 7, 2), (5, 7, 3), (14, 7, 4)]
    query = two(WindowSpec(ROWS, 2), seconds(10), outputs=(COUNT, OutputSpec("least", aggregate("min", value("A")))))
    found = judge(query, a, [(2, 7, 0), (11, 7, 0)])
    # At 10 the records with values 1 and 3 (both at 5), at 20 those with 3 and 4.
    assert shown(found) == [(2, 1, 10), (2, 3, 20)]
    assert bounds(found) == [(0, 10, 1, 3), (10, 20, 1, 3)]


def test_the_last_rows_are_of_the_stream_not_of_those_that_pass() -> None:
    query = two(WindowSpec(ROWS, 2), seconds(10), conditions=(compare("<", value("A"), number(5)),))
    found = judge(query, [(1, 7, 0), (2, 7, 9), (3, 7, 9)], [(2, 7, 0)])
    assert shown(found) == []
    assert found.windows == []
    found = judge(query, [(1, 7, 0), (2, 7, 9), (None, 7, 9), (3, None, 4)], [(2, 7, 0)])
    assert found.windows == []  # a NULL key takes a place, a record without a time does not
    assert parts(found, "A") == {"exact": 1, "filtered": 2, "malformed": 1}


def test_rows_alone_end_with_slides() -> None:
    found = judge(two(WindowSpec(ROWS, 1), WindowSpec(ROWS, 2)), [(1, 7, 0)], [(12, 7, 0), (13, 7, 0), (35, 8, 0)])
    assert bounds(found) == [(10, 20, 1, 3), (20, 30, 1, 3), (30, 40, 1, 3)]
    assert shown(found) == [(2, 20), (2, 30), (1, 40)]


def test_a_gap_between_windows_filters() -> None:
    found = judge(two(seconds(4), seconds(4)), [(1, 7, 0), (5, 7, 0)], [(3, 7, 0), (9, 7, 0), (12, 7, 0)])
    assert shown(found) == [(1, 4)]
    assert parts(found, "A") == {"exact": 1, "filtered": 1}
    assert parts(found, "B") == {"exact": 2, "filtered": 1}


# -- Rule 2: which windows exist


def test_a_window_without_pairs_gives_one_row_of_ungrouped_aggregates() -> None:
    query = two(seconds(10), seconds(10), outputs=(COUNT, SUM))
    found = judge(query, [(1, 7, 0), (11, 7, 0), (21, 7, 0)], [(2, 8, 5), (12, 7, 5)])
    assert shown(found) == [(0, None, 10), (1, 5, 20)]  # and nothing at 30, where B has nothing
    assert bounds(found) == [(0, 10, 1, 2), (10, 20, 1, 2)]


def test_a_window_without_pairs_gives_no_group() -> None:
    query = two(
        seconds(10), seconds(10), keys=(KeySpec(key("A")),), outputs=(OutputSpec("k", grouped(key("A"))), COUNT)
    )
    found = judge(query, [(1, 7, 0), (2, 6, 0)], [(2, 8, 5)])
    assert shown(found) == []
    assert bounds(found) == [(0, 10, 0, 3)]


def test_filtered_records_make_no_window() -> None:
    query = two(seconds(10), seconds(10), conditions=(compare(">", value("B"), number(5)),))
    found = judge(query, [(1, 7, 0)], [(2, 7, 5)])
    assert found.windows == []
    assert parts(found, "A") == {"exact": 1}
    assert parts(found, "B") == {"filtered": 1}


# -- Rule 3: watermarks


def late_case(ended: Mapping[str, int]) -> ExpectedJoin:
    """Two batches each; the second has an old record of A."""
    a, b = [(1, 7, 0), (31, 7, 0), (2, 7, 0), (32, 7, 0)], [(3, 7, 0), (25, 7, 0), (33, 7, 0)]
    return judge(two(seconds(10), seconds(10)), a, b, RunLog({"a": (2, 2), "b": (2, 1)}, ended), delay=5)


def test_the_slowest_stream_holds_the_watermark_back() -> None:
    # WM of A is 26, of B 20: instants up to 20 are evaluated in the first batch.
    found = late_case({"a": 1, "b": 1})
    assert parts(found, "A") == {"exact": 3, "late": 1}
    assert shown(found) == [(1, 10), (2, 40)]
    assert found.arrived.tolist() == [0, 1]


def test_a_stream_that_has_ended_holds_nobody_back() -> None:
    a, b = [(1, 7, 0), (31, 7, 0), (12, 7, 0), (27, 7, 0)], [(3, 7, 0), (11, 7, 0)]
    query = two(seconds(10), seconds(10))
    log = RunLog({"a": (2, 2), "b": (2, 0)}, {"a": 1, "b": 1})
    found = judge(query, a, b, log, delay=5)  # WM of B is 6
    assert parts(found, "A") == {"exact": 4}
    found = judge(query, a, b, RunLog(log.rows, {"a": 1, "b": 0}), delay=5)  # only A counts: 26
    assert parts(found, "A") == {"exact": 3, "late": 1}
    assert shown(found) == [(1, 10)]  # at 20 A has nothing


def test_a_stream_without_a_watermark_makes_nothing_late() -> None:
    a, b = [(1, 7, 0), (90, 7, 0), (2, 7, 0)], [(3, 7, 0)]
    app = AppSpec((stream("a", delay=0), stream("b")), (two(seconds(10), seconds(10)),))
    log = RunLog({"a": (2, 1), "b": (1, 0)}, {"a": 1, "b": 1})
    found = expect_joins(app, {"a": records(a), "b": records(b)}, log).queries["q"]
    assert parts(found, "A") == {"exact": 3}
    assert shown(found) == [(2, 10)]


def test_a_record_counts_in_the_windows_that_are_still_open() -> None:
    a, b = [(1, 7, 0), (11, 7, 0), (5, 7, 0)], [(3, 7, 0), (12, 7, 0)]
    log = RunLog({"a": (2, 1), "b": (2, 0)}, {"a": 1, "b": 1})
    found = judge(two(seconds(20), seconds(20)), a, b, log, delay=1)  # WM 10: the instant 10 is over
    assert parts(found, "A") == {"exact": 3}
    assert shown(found) == [(1, 10), (6, 20), (1, 30)]


def test_a_row_is_late_when_an_instant_after_it_was_evaluated() -> None:
    a, b = [(1, 7, 0), (13, 7, 0), (9, 7, 0), (11, 7, 0)], [(3, 7, 0), (14, 7, 0)]
    log = RunLog({"a": (2, 2), "b": (2, 0)}, {"a": 1, "b": 1})
    found = judge(two(WindowSpec(ROWS, 9), seconds(10)), a, b, log, delay=0)  # WM 13: evaluated up to 10
    assert parts(found, "A") == {"exact": 3, "late": 1}
    assert shown(found) == [(1, 10), (3, 20)]


# -- Rule 4: conditions


def test_null_keys_are_filtered_and_equal_nothing() -> None:
    found = judge(two(seconds(10), seconds(10)), [(1, None, 0), (1, 7, 0)], [(2, None, 0), (2, None, 0), (3, 7, 0)])
    assert shown(found) == [(1, 10)]
    assert parts(found, "A") == {"exact": 1, "filtered": 1}
    assert parts(found, "B") == {"exact": 1, "filtered": 2}


def test_whole_numbers_and_doubles_are_compared_as_doubles() -> None:
    query = two(seconds(10), seconds(10), equalities=((key("A"), key("B", DOUBLE)),))
    app = AppSpec((stream("a"), stream("b", DOUBLE)), (query,))
    a = records([(1, 0, 0), (1, 3, 0)])
    b = records([(1, -0.0, 0), (2, 3.0, 0), (3, 3.5, 0), (4, math.nan, 0)], pa.float64())
    assert shown(expect_joins(app, {"a": a, "b": b}, at_once({"a": 2, "b": 4})).queries["q"]) == [(2, 10)]


def test_nan_equals_nan() -> None:
    query = two(seconds(10), seconds(10), equalities=((key("A", DOUBLE), key("B", DOUBLE)),))
    app = AppSpec((stream("a", DOUBLE), stream("b", DOUBLE)), (query,))
    rows = records([(1, math.nan, 0), (1, 1.0, 0)], pa.float64())
    assert shown(expect_joins(app, {"a": rows, "b": rows}, at_once({"a": 2, "b": 2})).queries["q"]) == [(2, 10)]


def test_other_conditions_are_judged_on_pairs() -> None:
    query = two(seconds(10), seconds(10), conditions=(compare("<", value("A"), value("B")),))
    found = judge(query, [(1, 7, 1), (1, 7, 5), (2, 7, None)], [(2, 7, 3), (2, 7, 9)])
    assert shown(found) == [(3, 10)]
    assert parts(found, "A") == {"exact": 3}


def test_a_stream_with_itself() -> None:
    sides = (Side("A", "a", seconds(10)), Side("B", "a", seconds(20)))
    query = JoinSpec("q", sides, 10 * SECOND, (COUNT,), equalities=((key("A"), key("B")),))
    app = AppSpec((stream("a"),), (query,))
    found = expect_joins(app, {"a": records([(1, 7, 0), (11, 7, 0)])}, at_once({"a": 2}))
    assert shown(found.queries["q"]) == [(1, 10), (2, 20)]
    assert found.streams["a"].exact == 2


def test_three_streams() -> None:
    sides = tuple(Side(alias, "a", seconds(10)) for alias in "ABC")
    equalities = ((key("A"), key("B")), (key("C"), key("A")))
    query = JoinSpec("q", sides, 10 * SECOND, (COUNT, SUM), equalities=equalities)
    found = expect_joins(AppSpec((stream("a"),), (query,)), {"a": records([(1, 7, 2), (2, 7, 3)])}, at_once({"a": 2}))
    assert shown(found.queries["q"]) == [(8, 20, 10)]


# -- Rules 5 and 6: tables


OWNERS = (FieldSpec("low", INET), FieldSpec("high", INET), FieldSpec("name", STRING))
OWNED = [("10.0.0.0", "10.255.255.255", "ten"), ("10.1.0.0", "10.1.255.255", "campus"), ("::", "::ffff", "six")]


def labels(rows: Sequence[Row]) -> TableSpec:
    """(k, label) each."""
    data = pa.table({"k": pa.array([k for k, _ in rows], pa.int64()), "label": pa.array([name for _, name in rows])})
    return TableSpec("t", (FieldSpec("k", BIGINT), FieldSpec("label", STRING)), data)


def owners(longest: bool) -> TableSpec:
    columns = zip(*OWNED, strict=True)
    data = pa.table(dict(zip(("low", "high", "name"), map(list, columns), strict=True)))
    return TableSpec("t", OWNERS, data, longest=longest)


def labelled(outer: bool, *own: Term) -> JoinSpec:
    label = column("T", "label", STRING)
    table = TableSide("T", "t", (Tie("=", key("A"), column("T", "k", BIGINT)),), own, outer)
    outputs = (OutputSpec("label", grouped(label)), COUNT)
    return two(seconds(10), seconds(10), keys=(KeySpec(label),), outputs=outputs, tables=(table,))


def test_duplicates_in_a_table_multiply() -> None:
    table = labels([(7, "x"), (7, "x"), (7, "y"), (None, "z"), (9, "z")])
    found = judge(
        labelled(False), [(1, 7, 0), (1, 8, 0), (1, None, 0)], [(2, 7, 0), (2, 7, 0), (3, 8, 0)], None, (table,)
    )
    assert shown(found) == [("x", 4, 10), ("y", 2, 10)]
    assert parts(found, "A") == {"exact": 1, "filtered": 2}
    assert parts(found, "B") == {"exact": 3}


def test_a_left_join_of_a_table_gives_nulls() -> None:
    table = labels([(7, "x"), (7, "y")])
    given: tuple[Any, ...] = ([(1, 7, 0), (1, 8, 0)], [(2, 7, 0), (3, 8, 0)], None, (table,))
    found = judge(labelled(True), *given)
    assert shown(found) == [("x", 1, 10), ("y", 1, 10), (None, 1, 10)]
    assert parts(found, "A") == {"exact": 2}
    found = judge(labelled(True, compare("=", column("T", "label", STRING), constant("z", STRING))), *given)
    assert shown(found) == [(None, 2, 10)]


def test_own_conditions_of_an_inner_table_filter() -> None:
    own = compare("=", column("T", "label", STRING), constant("y", STRING))
    found = judge(labelled(False, own), [(1, 7, 0), (1, 8, 0)], [(2, 7, 0)], None, (labels([(7, "y"), (8, "x")]),))
    assert shown(found) == [("y", 1, 10)]
    assert parts(found, "A") == {"exact": 1, "filtered": 1}


def owned(longest: bool, *own: Term) -> ExpectedJoin:
    """One stream of addresses with a table of ranges."""
    fields = (FieldSpec("ts", TIMESTAMP), FieldSpec("address", INET))
    address, low, high = column("P", "address", INET), column("W", "low", INET), column("W", "high", INET)
    table = TableSide("W", "t", (Tie(">=", address, low), Tie("<=", address, high)), own)
    name = column("W", "name", STRING)
    query = JoinSpec(
        "q",
        (Side("P", "p", seconds(5)),),
        5 * SECOND,
        (OutputSpec("address", address), OutputSpec("name", name)),
        keys=None,
        tables=(table,),
    )
    addresses = ["10.1.2.3", "10.200.0.1", "11.0.0.0", "::5", None, "nonsense"]
    data = pa.table({"ts": pa.array([0] * 6, pa.timestamp("us")), "address": pa.array(addresses)})
    app = AppSpec((StreamSpec("p", fields, "ts"),), (query,), (owners(longest),))
    return expect_joins(app, {"p": data}, at_once({"p": 6})).queries["q"]


def test_overlapping_ranges_multiply_unless_the_longest_is_asked_for() -> None:
    every = [("10.1.2.3", "campus", 5), ("10.1.2.3", "ten", 5), ("10.200.0.1", "ten", 5), ("::5", "six", 5)]
    assert shown(owned(False)) == every
    assert shown(owned(True)) == [row for row in every if row[:2] != ("10.1.2.3", "ten")]
    assert parts(owned(True), "P") == {"exact": 3, "filtered": 2, "malformed": 1}
    assert bounds(owned(False)) == [(0, 5, 4, 3)]


def test_the_longest_is_found_before_the_table_is_filtered() -> None:
    ten = compare("=", column("W", "name", STRING), constant("ten", STRING))
    assert shown(owned(True, ten)) == [("10.200.0.1", "ten", 5)]
    assert shown(owned(False, ten)) == [("10.1.2.3", "ten", 5), ("10.200.0.1", "ten", 5)]


# -- Rule 7: clauses


def ordered(*order: OrderSpec, limit: int, **more: Any) -> JoinSpec:
    outputs = (OutputSpec("v", grouped(value("A"))), COUNT)
    return two(seconds(10), seconds(10), keys=(KeySpec(value("A")),), outputs=outputs, order=order, limit=limit, **more)


def test_order_and_limit_go_by_instant_and_ties_by_the_keys() -> None:
    a = [(1, 7, 3), (1, 7, 3), (2, 7, None), (2, 7, 1), (11, 7, 2), (12, 7, 5)]
    b = [(1, 7, 0), (13, 7, 0)]
    by_count = OrderSpec(aggregate("count"), descending=True)
    assert shown(judge(ordered(by_count, limit=2), a, b)) == [(3, 2, 10), (None, 1, 10), (2, 1, 20), (5, 1, 20)]
    by_key = OrderSpec(grouped(value("A")), descending=True)
    assert shown(judge(ordered(by_key, limit=1), a, b)) == [(3, 2, 10), (5, 1, 20)]


def test_having() -> None:
    having = compare(">", aggregate("count"), number(1))
    found = judge(ordered(limit=9, having=having), [(1, 7, 3), (1, 7, 3), (1, 7, 4)], [(1, 7, 0)])
    assert shown(found) == [(3, 2, 10)]
    assert bounds(found) == [(0, 10, 1, 4)]


def test_counts_of_a_side_and_the_time_of_the_window() -> None:
    outputs = (OutputSpec("n", count_side("B")), OutputSpec("ts", window_end("A.ts")))
    found = judge(two(seconds(10), seconds(10), outputs=outputs), [(1, 7, 0), (2, 7, 0)], [(1, 7, 0)])
    assert [(n, ts.second, end) for n, ts, end in shown(found)] == [(2, 10, 10)]


def test_an_expression_across_sides() -> None:
    both_sides = arithmetic("*", value("A"), value("B"))
    query = two(
        seconds(10),
        seconds(10),
        outputs=(OutputSpec("total", aggregate("sum", both_sides)), OutputSpec("n", grouped(value("A")))),
        keys=(KeySpec(value("A")),),
    )
    found = judge(query, [(1, 7, 2), (1, 7, 3)], [(1, 7, 10), (1, 7, 1), (2, 7, None)])
    assert shown(found) == [(22, 2, 10), (33, 3, 10)]


def test_sums_are_wide_inside_and_end_the_run_where_they_do_not_fit() -> None:
    query = two(seconds(10), seconds(10), outputs=(SUM,))
    huge = 1 << 62
    found = judge(query, [(1, 7, 0)] * 5, [(1, 7, huge), (1, 7, huge), (2, 7, -huge), (2, 7, -huge + 1)])
    assert shown(found) == [(5, 10)]
    with pytest.raises(RunError):
        judge(query, [(1, 7, 0)] * 2, [(1, 7, huge)])


def test_results_come_at_the_end_of_their_window() -> None:
    """As in the query of elephants: a window's results meet the records of the next."""
    inner = JoinSpec(
        "heavy",
        (Side("P", "a", seconds(10)),),
        10 * SECOND,
        (OutputSpec("k", grouped(column("P", "k", INT))), COUNT),
        keys=(KeySpec(column("P", "k", INT)),),
        having=compare(">", aggregate("count"), number(1)),
        hidden=True,
    )
    sides = (Side("P", "a", seconds(10)), Side("E", "heavy", seconds(10)))
    equal = (column("P", "k", INT), column("E", "k", INT))
    query = JoinSpec("q", sides, 10 * SECOND, (COUNT,), equalities=(equal,))
    a = [(1, 7, 0), (2, 7, 0), (3, 8, 0), (11, 7, 0), (12, 8, 0)]
    app = AppSpec((stream("a", delay=0),), (inner, query))
    found = expect_joins(app, {"a": records(a)}, RunLog({"a": (3, 2)}, {"a": 1}))
    assert shown(found.queries["heavy"]) == [(7, 2, 10)]
    assert shown(found.queries["q"]) == [(1, 20)]
    assert parts(found.queries["q"], "E") == {"exact": 1}
    assert found.queries["q"].accounts["P"].exact == 5


# -- the oracle against itself and against its older sister


def test_all_instants_at_once_are_each_instant_by_itself() -> None:
    """One plain SELECT per instant, written out for DuckDB, over what the sides hold then."""
    query = two(
        seconds(20),
        WindowSpec(LANDMARK),
        keys=(KeySpec(value("A")),),
        outputs=(OutputSpec("v", grouped(value("A"))), COUNT, SUM),
        conditions=(compare("<=", value("A"), value("B")),),
        having=compare(">", aggregate("count"), number(1)),
    )
    rng = random.Random(7)
    a, b = (
        [(rng.randrange(60), rng.choice([1, 2, None]), rng.choice([1, 2, 3, None])) for _ in range(60)]
        for _ in range(2)
    )
    b[0] = (0, 1, 1)
    found = judge(query, a, b)
    rows = {"a": records(a), "b": records(b)}
    every: list[Row] = []
    for instant in range(10, 80, 10):
        text = f"""SELECT A.v, count(*), sum(B.v), {instant} FROM a A, b B
            WHERE A.k = B.k AND A.v <= B.v AND epoch(A.ts) >= {instant - 20} AND epoch(A.ts) < {instant}
            AND epoch(B.ts) < {instant} GROUP BY A.v HAVING count(*) > 1"""
        with duckdb.connect() as database:
            for name, table in rows.items():
                database.register(name, table)
            every += database.sql(text).fetchall()
    assert shown(found) == sorted(every, key=lambda row: (row[-1], repr(row)))
    assert len(every) > 10


SINGLE = (*range(1, 400, 40), 3, 17, 33)


@pytest.mark.parametrize("seed", SINGLE)
def test_queries_on_one_stream_are_as_the_other_oracle_has_them(seed: int) -> None:
    """Of random apps the queries on one stream without tables, in batches that make records late."""
    case = random_join_case(seed)
    plain = tuple(q for q in case.app.queries if len(q.sides) == 1 and not q.tables and not q.asks)
    rng = random.Random(seed)
    for query in plain:
        stream_spec = case.app.stream(query.sides[0].source)
        assert stream_spec is not None
        data = case.data[stream_spec.name]
        app = AppSpec((stream_spec,), (replace(query, hidden=False),))
        cuts = sorted(rng.randrange(data.num_rows + 1) for _ in range(5))
        batches = tuple(b - a for a, b in pairwise((0, *cuts, data.num_rows)))
        found = expect_joins(app, {stream_spec.name: data}, RunLog({stream_spec.name: batches}, {stream_spec.name: 5}))
        text = app_text(app, {stream_spec.name: "parquet:x"}, case.manners)
        other = expect(resolve_app(text, "app", lambda uri, options: ()), data, batches)
        context = f"seed {seed}, {query.name}"
        mine = found.queries[query.name]
        assert_same_rows(mine.rows, other.rows[query.name], context)
        assert mine.accounts[query.sides[0].alias] == other.accounts[query.name], context
        assert mine.windows == [
            {part: window[part] for part in ("start", "end", "rows", "exact")} for window in other.windows[query.name]
        ], context


# -- faults are noticed


def off_by_one(self: Grid, times: Any) -> Any:
    return (times - self.offset) // self.slide + 2


def holds_its_end(self: Grid, times: Any) -> Any:
    return -((self.offset - times) // self.slide)


def fastest(streams: Any, roots: Any, log: RunLog) -> Any:
    """The greatest watermark instead of the least."""
    marks = [reached(streams, [root], log) for root in roots]
    return np.maximum.reduce(marks)


def no_own(query: JoinSpec, alias: str) -> tuple[Term, ...]:
    return ()


BROKEN: dict[str, tuple[Any, str, Any]] = {
    "an instant too late": (Grid, "after", off_by_one),
    "windows hold their end": (Grid, "after", holds_its_end),
    "the fastest stream decides": (expected_module, "reached", fastest),
    "conditions of a side do not filter": (JoinSpec, "own_conditions", no_own),
    "NULL keys do not filter": (JoinSpec, "join_keys", no_own),
    "the longest prefix is not asked for": (
        expected_module, "matches", lambda table, longest, side, rows: matches(table, False, side, rows)
    ),
    "windows without pairs give no row": (answers_module, "groups_of", None),
    "ties go any way": (answers_module, "_order", lambda query: ""),
}  # fmt: skip


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_variant_is_noticed(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some random app shows each of these, in rows or accounts."""
    owner, name, broken = BROKEN[fault]
    if fault == "windows without pairs give no row":
        groups = answers_module.groups_of
        broken = lambda query, pairs, instants: groups(query, pairs, pairs.column("instant").unique().to_numpy())  # noqa: E731
    for seed in (1, 2, 5, 36, *range(6, 80)):  # the first few show all of them
        case = random_join_case(seed)
        log = cut(case.rows, seed)
        try:
            right = case.expected(log)
            with monkeypatch.context() as patch:
                patch.setattr(owner, name, broken)
                wrong = case.expected(log)
        except RunError:
            continue
        if differs(right, wrong):
            return
    pytest.fail(f"nothing shows that {fault}")


def cut(rows: Mapping[str, int], seed: int) -> RunLog:
    """Six batches; one stream may end early."""
    rng = random.Random(seed)
    found, ended = {}, {}
    for name, count in rows.items():
        last = rng.choice([3, 6])
        cuts = sorted(rng.randrange(count + 1) for _ in range(last - 1))
        sizes = [b - a for a, b in pairwise((0, *cuts, count))]
        found[name], ended[name] = (*sizes, *[0] * (6 - last)), last - 1
    return RunLog(found, ended)


def differs(one: ExpectedApp, other: ExpectedApp) -> bool:
    for name, found in one.queries.items():
        theirs = other.queries[name]
        if found.accounts != theirs.accounts or found.windows != theirs.windows:
            return True
        try:
            assert_same_rows(theirs.rows, found.rows, name)
        except AssertionError:
            return True
    return False
