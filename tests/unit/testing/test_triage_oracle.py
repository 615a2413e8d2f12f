"""The oracle of promised delays against cases worked out by hand, and against other ways to say the same."""

from __future__ import annotations

import math
import os
import random
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from penstock.errors import RunError
from penstock.logical.query import QuerySet
from penstock.logical.resolve.app import resolve_app
from penstock.logical.window import TIME
from penstock.sources.base import fields
from penstock.sources.registry import open_source
from penstock.testing.apps.generators import RandomCase, random_case
from penstock.testing.asserts import assert_same_account, assert_same_rows
from penstock.testing.oracle.expected import Expected, expect
from penstock.testing.oracle.triage import expect_triaged, key_of, read_records, whole_run
from penstock.testing.oracle.triage.errors import Part, error_of_average, error_of_total
from penstock.testing.oracle.triage.expected import said_plainly
from penstock.triage import picks as engine
from support.amounts import quick_and
from support.ranges import DROP, Range, random_ranges

SECOND = 1_000_000
SEED = int(os.environ.get("PENSTOCK_SEED", "20261118"))
TIMES = pa.timestamp("us", tz="UTC")
UNTOLD = ("entropy", "frequent", "approx_frequent", "approx_count_distinct")


def resolve(text: str) -> QuerySet:
    return resolve_app(text, "random.sql", lambda uri, options: fields(open_source(uri, options).schema()))


def app(select: str, delay: str = "") -> QuerySet:
    stream = f"CREATE STREAM s (ts TIMESTAMP, host STRING, v BIGINT, x DOUBLE) FROM 'parquet:none' {delay};\n"
    return resolve(f"{stream}CREATE QUERY q AS {select};")


def records(times: list[float | None], hosts: list[str], values: list[int | None]) -> pa.Table:
    columns = {
        "ts": pa.array([None if t is None else int(t * SECOND) for t in times], pa.int64()).cast(TIMES),
        "host": pa.array(hosts, pa.string()),
        "v": pa.array(values, pa.int64()),
        "x": pa.array([None if v is None else v / 2 for v in values], pa.float64()),
    }
    return pa.table(columns)


def rows_of(expected: Expected) -> list[dict[str, Any]]:
    rows = expected.rows["q"].drop_columns(["window_start", "window_end"]).to_pylist()
    return sorted(rows, key=lambda row: repr(row.get("host")))


# -- what is read


@pytest.mark.parametrize("k", range(1, engine.MOST + 1))
def test_picks_are_those_of_the_engine(k: int) -> None:
    key = key_of("a seed", "packets")
    assert key == engine.key_of("a seed", "packets")
    start, stop = 3 << k, (3 + 40) << k
    found = np.flatnonzero(read_records(stop + 5, [(start, 0), (stop, k)], key).read)
    theirs = engine.Picks(k, key).rows(start, stop)
    assert found.tolist() == [*range(start), *theirs.tolist(), *range(stop, stop + 5)]


def test_weights_add_up_to_the_records_of_their_ranges() -> None:
    for seed in range(SEED, SEED + 20):
        dice = random.Random(seed)
        batches = [dice.randint(0, 300) for _ in range(6)]
        ranges = whole_run(batches, random_ranges(dice, batches))
        reading, start = read_records(sum(batches), ranges, seed), 0
        for stop, _ in ranges:
            assert reading.weights[start:stop].sum() == stop - start, f"seed {seed}"
            start = stop


def test_ranges_that_cut_a_block_are_no_ranges() -> None:
    with pytest.raises(ValueError, match="no range of steps"):
        read_records(10, [(6, 2)], 0)
    with pytest.raises(ValueError, match="a range ends at 4"):
        read_records(10, [(6, 0), (4, 0)], 0)
    with pytest.raises(ValueError, match="the ranges of a batch"):
        whole_run([5, 5], [[(5, 0)], [(9, 0)]])


# -- by hand

# Records 8 to 15 are read as 2 picks of 4; the seed is one that reads records 8 and 15 of them.
HOSTS = [*"aabbcccc", *"abbbcccd"]


def keyed() -> int:
    for key in range(1_000):
        if np.flatnonzero(read_records(16, [(8, 0), (16, 2)], key).read)[8:].tolist() == [8, 15]:
            return key
    raise AssertionError("no key reads 8 and 15")


def expect_hand(select: str, ranges: list[Range] | None = None, **more: Any) -> Expected:
    data = records([*range(16)], HOSTS, [*range(16)])
    return expect_triaged(app(select), data, [16], ranges or [(8, 0), (16, 2)], keyed(), **more)


def test_a_pick_is_too_far_ahead_of_all_records_before_it() -> None:
    """Records 8 and 15 are seven seconds apart, but one second from the unread ones before them."""
    select, delay = "SELECT count(*) AS n FROM s [RANGE '1 minute']", "WATERMARK ts DELAY '1 second' MAX AHEAD '{}'"
    for ahead, wild, read in (("1 second", 0, 10), ("1 second", 1, 9), ("2 seconds", 1, 10)):
        data = records([*range(15), 15 + wild], HOSTS, [*range(16)])
        query = app(select, delay.format(ahead))
        found = expect_triaged(query, data, [16], [(8, 0), (16, 2)], keyed())
        assert (found.stream.exact, found.stream.malformed) == (read, 10 - read)


def test_counts_and_sums_by_hand() -> None:
    """One pick of a and one of d, each for 4: of a group with one of n = 2 picks error² = 4·3·(y² − y²/2)·2."""
    found = expect_hand("SELECT host, count(*) AS n, sum(v) AS t FROM s [RANGE '1 minute'] GROUP BY host")
    one = math.sqrt(12)
    assert rows_of(found) == [
        {"host": "a", "n": 6, "exact_n": 3, "estimated_n": 3, "error_n": one}
        | {"t": 33, "exact_t": 9, "estimated_t": 24, "error_t": 8 * one},
        {"host": "b", "n": 2, "exact_n": 2, "estimated_n": 0, "error_n": 0.0}
        | {"t": 5, "exact_t": 5, "estimated_t": 0, "error_t": 0.0},
        {"host": "c", "n": 4, "exact_n": 4, "estimated_n": 0, "error_n": 0.0}
        | {"t": 22, "exact_t": 22, "estimated_t": 0, "error_t": 0.0},
        {"host": "d", "n": 4, "exact_n": 1, "estimated_n": 3, "error_n": one}
        | {"t": 60, "exact_t": 15, "estimated_t": 45, "error_t": pytest.approx(15 * one)},
    ]
    assert_same_account(found.accounts["q"].as_dict(), found.stream, "the only query")
    assert found.stream.as_dict() == {"input": 16, "exact": 10, "triaged": 6, "late": 0, "filtered": 0, "malformed": 0}
    window = {"window": 0, "start": 0, "end": 60 * SECOND, "rows": 4, "exact": 10, "triaged": 6}
    assert found.windows["q"] == [window]


def test_averages_and_others_by_hand() -> None:
    """a: 0, 1 and 8 four times: 33/6. Its residual is 5/2, so error² = 12·(25/4 − 25/8)·2/36."""
    functions = "avg(v) AS m, min(v) AS least, var_pop(v) AS spread, median(x) AS mid"
    found = expect_hand(f"SELECT host, {functions} FROM s [RANGE '1 minute'] WHERE host = 'a' GROUP BY host")
    nothing = {f"{what}_{name}": None for what in ("estimated", "error") for name in ("least", "spread", "mid")}
    assert rows_of(found) == [
        {"host": "a", "m": 5.5, "exact_m": 3.0, "estimated_m": None}
        | {"error_m": pytest.approx(math.sqrt(12 * (25 / 4 - 25 / 8) * 2 / 36))}
        | {"least": 0, "exact_least": 0, "spread": pytest.approx(151 / 12), "exact_spread": pytest.approx(38 / 3)}
        | {"mid": 4.0, "exact_mid": 0.5}
        | nothing
    ]


def test_what_adds_up_by_hand() -> None:
    """a: 0, 1 and 8 four times. Of one pick of n = 2, error² = 4·3·(y² − y²/2)·2 = 12·y², y being all that it adds."""
    one, names = math.sqrt(12), ("more", "bits", "share", "both", "less", "columns", "mean")
    more = "count(*) + 1 AS more, sum(v) * 8 AS bits, -sum(v) / 10 AS share, sum(v) - 3 * count(v) AS both"
    less = "2 * (sum(x) - count(*)) - count(x) AS less, sum(v) + sum(x) AS columns, 3 - 2 * avg(v) AS mean"
    (row,) = rows_of(expect_hand(f"SELECT {more}, {less} FROM s [RANGE '1 minute'] WHERE host = 'a'"))
    values = {name: [row[f"{what}{name}"] for what in ("", "exact_", "estimated_", "error_")] for name in names}
    assert values == {
        "more": [7, 4, 3, pytest.approx(one)],
        "bits": [264, 72, 192, pytest.approx(64 * one)],
        "share": [-3.3, -0.9, pytest.approx(-2.4), pytest.approx(0.8 * one)],
        "both": [15, 0, 15, pytest.approx(5 * one)],
        "less": [15.0, 0.0, 15.0, pytest.approx((2 * (4 - 1) - 1) * one)],
        "columns": [49.5, 13.5, 36.0, None],
        "mean": [-8.0, -3.0, None, pytest.approx(2 * 2.5 * one / 6)],
    }


def test_other_expressions_have_no_estimate_of_their_own() -> None:
    select = "sum(v) / count(*) AS ratio, greatest(count(*), 3) AS most, coalesce(sum(v), 0) AS there"
    (row,) = rows_of(expect_hand(f"SELECT {select} FROM s [RANGE '1 minute'] WHERE host = 'a'"))
    assert row["ratio"] == 5.5
    assert {row[f"{what}_{name}"] for what in ("estimated", "error") for name in ("ratio", "most", "there")} == {None}


def test_one_pick_of_a_window_has_no_error() -> None:
    """Windows of 8 seconds and 7: record 8 stands alone in [8, 15), and 15 after it."""
    ranges = [(8, 0), (16, 2)]
    select = "SELECT host, count(*) AS n, avg(v) AS m FROM s [RANGE '7 seconds' SLIDE '8 seconds'] GROUP BY host"
    found = [(row["host"], row["n"], row["error_n"], row["error_m"]) for row in rows_of(expect_hand(select, ranges))]
    assert found == [("a", 2, 0.0, 0.0), ("a", 4, None, None), ("b", 2, 0.0, 0.0), ("c", 3, 0.0, 0.0)]


def test_windows_with_dropped_records_have_no_error() -> None:
    found = expect_hand("SELECT host, count(*) AS n FROM s [RANGE '8 seconds'] GROUP BY host", [(9, 0), (16, DROP)])
    read = [(row["host"], row["n"], row["estimated_n"], row["error_n"]) for row in rows_of(found)]
    assert read == [("a", 2, 0, 0.0), ("a", 1, 0, None), ("b", 2, 0, 0.0), ("c", 4, 0, 0.0)]
    assert found.stream.triaged == 7


def test_having_and_limit_ask_the_best_estimate() -> None:
    select = "SELECT host, count(*) AS n FROM s [RANGE '1 minute'] GROUP BY host HAVING count(*) > 2"
    assert [row["host"] for row in rows_of(expect_hand(select))] == ["a", "c", "d"]
    select = "SELECT host, sum(v) AS t FROM s [RANGE '1 minute'] GROUP BY host ORDER BY sum(v) DESC LIMIT 2"
    assert [row["host"] for row in rows_of(expect_hand(select))] == ["a", "d"]


def test_queries_without_aggregates_have_a_weight() -> None:
    found = rows_of(expect_hand("SELECT host, v FROM s [RANGE '1 minute'] WHERE v > 6"))
    assert found == [
        {"host": "a", "v": 8, "weight": 4},
        {"host": "c", "v": 7, "weight": 1},
        {"host": "d", "v": 15, "weight": 4},
    ]


@pytest.mark.parametrize(("column", "near", "far"), [("error_n", 1e-7, 1e-5), ("m", 1e-10, 1e-8)])
def test_errors_compare_with_fewer_digits(column: str, near: float, far: float) -> None:
    rows = expect_hand("SELECT host, count(*) AS n, avg(v) AS m FROM s [RANGE '1 minute'] GROUP BY host").rows["q"]

    def off(by: float) -> pa.Table:
        at = rows.schema.get_field_index(column)
        return rows.set_column(at, rows.schema.field(at), pc.multiply(rows.column(at), 1 + by))

    assert_same_rows(off(near), rows, "near")
    with pytest.raises(AssertionError, match="unexpected"):
        assert_same_rows(off(far), rows, "far")


def test_late_and_malformed_records_are_judged_among_those_read() -> None:
    """Batch 1 begins at record 8: windows up to 13 are closed then, since 20 was there, read or not."""
    times: list[float | None] = [*range(8), 3, 20, 30, 31, 32, None, 34, 35]
    data = records([*range(6), 20, 7, *times[8:]], HOSTS, [1] * 16)
    key = next(k for k in range(1_000) if not read_records(16, [(8, 2), (16, 0)], k).read[6])
    asked = app("SELECT count(*) AS n FROM s [RANGE '5 seconds']", "WATERMARK ts DELAY '7 seconds'")
    found = expect_triaged(asked, data, [8, 8], [(8, 2), (16, 0)], key)
    assert found.watermarks == (13 * SECOND, 28 * SECOND)
    assert found.stream.as_dict() == {"input": 16, "exact": 8, "triaged": 6, "late": 1, "filtered": 0, "malformed": 1}
    given = expect_triaged(asked, data, [8, 8], [(8, 2), (16, 0)], key, watermarks=(4 * SECOND, 28 * SECOND))
    assert given.stream.late == 0


def test_a_sum_may_overflow_by_its_weight_alone() -> None:
    data = records([*range(4)], ["a"] * 4, [1 << 62] * 4)
    with pytest.raises(RunError, match="BIGINT"):
        expect_triaged(app("SELECT sum(v) AS t FROM s [RANGE '1 minute']"), data, [4], [(4, 2)], 0)


# -- errors


def test_errors_by_a_formula_in_doubles() -> None:
    for seed in range(SEED, SEED + 50):
        rng = np.random.default_rng(seed)
        steps, values = rng.integers(0, 4, 60), rng.integers(-50, 50, 60)
        sizes = {k: int((steps == k).sum()) + int(rng.integers(1, 30)) for k in range(1, 4)}
        parts = [Part(i, int(k), int(v)) for i, (k, v) in enumerate(zip(steps, values, strict=True))]
        mean = (values * 2.0**steps).sum() / (2.0**steps).sum()
        for found, y, below in (
            (error_of_total(parts, sizes), values, 1.0),
            (error_of_average(parts, sizes), values - mean, (2.0**steps).sum()),
        ):
            square = 0.0
            for k, n in sizes.items():
                own = y[steps == k]
                square += 2**k * (2**k - 1) * ((own**2).sum() - own.sum() ** 2 / n) * n / (n - 1)
            assert found.value == pytest.approx(math.sqrt(square) / below), f"seed {seed}"


def test_rows_of_one_pick_count_as_one() -> None:
    """A record with two rows of a table adds both at once: half as many picks of twice as much."""
    twice = error_of_total([Part(1, 3, 5), Part(1, 3, 5), Part(2, 3, 4), Part(2, 3, 6)], {3: 9})
    assert twice == error_of_total([Part(1, 3, 10), Part(2, 3, 10)], {3: 9})


def test_odd_values() -> None:
    assert math.isnan(error_of_total([Part(1, 1, math.inf)], {1: 2}).value or 0)
    assert error_of_total([Part(1, 1, None)], {1: 2}).value is None
    assert error_of_total([Part(1, 0, 7)], {}).value == 0
    assert error_of_average([Part(1, 1, None)], {1: 2}).value is None
    assert error_of_total([Part(1, 1, 7)], {1: 1}).value is None


# -- random apps


def triaged_app(case: RandomCase, folder: Path) -> QuerySet:
    """The queries that may have a promise."""
    asked = resolve(case.write(folder))
    kept = [
        query
        for query in asked.queries
        if query.inputs == (asked.streams[0].name,)
        and query.window.axis == TIME
        and not any(one.distinct or one.function in UNTOLD for one in query.aggregates)
    ]
    return replace(asked, queries=tuple(replace(query, hidden=False) for query in kept))


@pytest.mark.parametrize("seed", quick_and(range(SEED, SEED + 8), range(SEED + 8, SEED + 200)))
def test_random_apps_with_nothing_unread_are_exact(seed: int, tmp_path: Path) -> None:
    case = random_case(seed)
    asked = triaged_app(case, tmp_path)
    batches = cut(seed, case.data.num_rows)
    try:
        exact = expect(asked, case.data, batches)
    except RunError:
        return
    found = expect_triaged(asked, case.data, batches, [], 0)
    assert found.stream == exact.stream, f"seed {seed}"
    assert found.watermarks == exact.watermarks, f"seed {seed}"
    for query in asked.queries:
        name, rows = query.name, found.rows[query.name]
        assert_same_rows(rows.select(exact.rows[name].schema.names), exact.rows[name], f"seed {seed}, {name}")
        assert found.windows[name] == exact.windows[name], f"seed {seed}, {name}"
        for output in () if query.per_tuple else query.select:
            if f"exact_{output.name}" in rows.schema.names:
                values = [rows.column(one).to_pylist() for one in (output.name, f"exact_{output.name}")]
                assert repr(values[0]) == repr(values[1]), f"seed {seed}, {name}"


@pytest.mark.parametrize("seed", quick_and(range(SEED, SEED + 8), range(SEED + 8, SEED + 200)))
def test_random_apps_with_random_ranges(seed: int, tmp_path: Path) -> None:
    """The account closes, estimates add up, and what was read is as if the stream had nothing else."""
    case, dice = random_case(seed), random.Random(seed)
    asked, batches = triaged_app(case, tmp_path), cut(seed, case.data.num_rows)
    ranges = whole_run(batches, random_ranges(dice, batches, drop=dice.choice((0, 0.2))))
    reading = read_records(case.data.num_rows, ranges, seed)
    try:
        found = expect_triaged(asked, case.data, batches, ranges, seed)
    except RunError:
        return
    assert not asked.queries or found.stream.triaged == int((~reading.read).sum()), f"seed {seed}"
    for name, rows in found.rows.items():
        parts = found.accounts[name].as_dict()
        assert parts.pop("input") == sum(parts.values()) == case.data.num_rows, f"seed {seed}, {name}"
        for column in rows.schema.names:
            if column.startswith("estimated_") and pa.types.is_integer(rows.schema.field(column).type):
                check_sums(rows, column.removeprefix("estimated_"), f"seed {seed}, {name}")


def check_sums(rows: pa.Table, name: str, context: str) -> None:
    found: dict[str, list[Any]] = defaultdict(list)
    for what in ("", "exact_", "estimated_"):
        found[what] = rows.column(f"{what}{name}").to_pylist()
    for whole, exact, estimated in zip(*found.values(), strict=True):
        assert estimated is None or whole == exact + estimated, context


def cut(seed: int, rows: int) -> list[int]:
    dice = random.Random(seed)
    places = sorted(dice.randint(0, rows) for _ in range(4))
    return [b - a for a, b in zip([0, *places], [*places, rows], strict=True)]


def test_a_resolved_promise_is_said_plainly() -> None:
    asked = app("SELECT host, count(*) AS n FROM s [RANGE '1 minute'] GROUP BY host").queries[0]
    assert said_plainly(replace(asked, promise=SECOND)) == asked
