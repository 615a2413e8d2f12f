"""Types of Parquet that the language has no words for: dates and decimals are read, others are named when asked for."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.app.api import App
from penstock.errors import QueryError, SourceError
from penstock.logical.types import BIGINT, DOUBLE, TIMESTAMP
from penstock.runtime.task.arrow import numeric
from penstock.sources.base import fields

ROWS = 300
DAYS = [None if row % 50 == 7 else date(2024, 2, 28) + timedelta(days=row % 3) for row in range(ROWS)]
CENTS = [None if row % 40 == 3 else Decimal(row * 7919 - 900_000) / 100 for row in range(ROWS)]
COLUMNS = {
    "at": pa.array([row * 60_000_000 for row in range(ROWS)], pa.timestamp("us")),
    "day": pa.array(DAYS, pa.date32()),
    "day_ms": pa.array(DAYS, pa.date64()),
    "cents": pa.array(CENTS, pa.decimal128(12, 2)),
    "number": pa.array([Decimal(row) for row in range(ROWS)], pa.decimal128(18, 0)),
    "wide": pa.array([Decimal(row) for row in range(ROWS)], pa.decimal128(38, 0)),
    "tags": pa.array([[row] for row in range(ROWS)], pa.list_(pa.int32())),
    "place": pa.array([{"x": row} for row in range(ROWS)]),
    "clock": pa.array(list(range(ROWS)), pa.time64("us")),
    "pairs": pa.array([[("a", row)] for row in range(ROWS)], pa.map_(pa.string(), pa.int64())),
    "raw": pa.array([b"x"] * ROWS),
}
UNREAD = {
    "tags": "list<int32>", "place": "struct<x: int64>", "clock": "time64[us]", "pairs": "map<string, int64>",
    "raw": "binary",
}  # fmt: skip
SELECT = "SELECT {} FROM s [RANGE '1 day']"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    pq.write_table(pa.table(COLUMNS), tmp_path / "a.parquet", row_group_size=70)
    return tmp_path / "a.parquet"


def app(file: Path, select: str, columns: str = "") -> App:
    text = f"CREATE STREAM s {columns} FROM 'parquet:{file}'; CREATE QUERY q AS {select};"
    return App(master="process").sql(text)


def answer(file: Path, tmp_path: Path, select: str, columns: str = "") -> list[dict[str, object]]:
    run = app(file, select, columns).start(str(tmp_path / "ckpt"), output=str(tmp_path / "out"), parallelism=1)
    run.await_end()
    rows = pq.read_table(tmp_path / "out" / "q").drop_columns(["window_start", "window_end"]).to_pylist()
    return sorted(rows, key=str)


def test_dates_are_midnights_and_decimals_numbers(file: Path, tmp_path: Path) -> None:
    rows = answer(file, tmp_path, SELECT.format("day, day_ms, count(cents) AS n, sum(cents) AS c") + " GROUP BY 1, 2")
    assert len(rows) == 4
    for row in rows:
        day = row["day"]
        assert row["day_ms"] == day
        group = [cents for cents, at in zip(CENTS, DAYS, strict=True) if at == (day and _date(day))]
        known = [cents for cents in group if cents is not None]
        assert row["n"] == len(known)
        assert row["c"] == pytest.approx(float(sum(known)), rel=1e-12)


def _date(day: object) -> date:
    assert isinstance(day, datetime)
    assert (day.hour, day.minute) == (0, 0)
    return day.date()


def test_whole_decimals_are_integers(file: Path, tmp_path: Path) -> None:
    found = {field.name: field.type for field in fields(pq.read_schema(file))}
    assert (found["number"], found["wide"], found["cents"]) == (BIGINT, DOUBLE, DOUBLE)
    declared = "(at TIMESTAMP, wide BIGINT, number INT)"
    (row,) = answer(file, tmp_path, SELECT.format("sum(wide) AS w, sum(number) AS n"), declared)
    assert row == {"w": ROWS * (ROWS - 1) // 2, "n": ROWS * (ROWS - 1) // 2}


def test_a_date_is_the_time_only_where_there_is_no_other(file: Path, tmp_path: Path) -> None:
    assert app(file, SELECT.format("count(*) AS n")).query_set().streams[0].time == "at"
    pq.write_table(pa.table({"day": COLUMNS["day"]}), tmp_path / "b.parquet")
    assert app(tmp_path / "b.parquet", SELECT.format("count(*) AS n")).query_set().streams[0].time == "day"


@pytest.mark.parametrize("name", UNREAD)
def test_other_columns_are_named_with_their_type(file: Path, name: str) -> None:
    with pytest.raises(QueryError, match="which penstock does not read") as caught:
        app(file, SELECT.format(f"max({name}) AS m"))
    assert caught.value.fact == f"column '{name}' is {UNREAD[name]}, which penstock does not read"
    with pytest.raises(SourceError, match="cannot be read as BIGINT") as declared:
        app(file, SELECT.format(f"max({name}) AS m"), f"(at TIMESTAMP, {name} BIGINT)").query_set()
    assert f"is {UNREAD[name]}, " in declared.value.fact
    assert declared.value.hint == caught.value.hint


def test_in_a_query_of_python_as_well(file: Path) -> None:
    with pytest.raises(QueryError, match=r"'tags' is list<int32>, which penstock does not read"):
        App().stream("s", f"parquet:{file}").query("q", SELECT.format("max(tags)"))


def test_all_values_come_with_the_nearest_float_and_beyond_64_bits_are_bad() -> None:
    rng = np.random.default_rng(3)
    for kind in (pa.decimal128(15, 2), pa.decimal128(38, 15), pa.decimal32(9, 3), pa.decimal64(15, 0)):
        digits = min(15, kind.precision)
        values = [Decimal(int(number)).scaleb(-kind.scale) for number in rng.integers(-(10**digits), 10**digits, 5000)]
        read = numeric(DOUBLE, pa.array([None, *values], kind)[1:])
        assert read.floats is not None
        assert read.floats.tolist() == [float(value) for value in values]
    wide = [Decimal(2**63 - 1), Decimal(-(2**63)), Decimal(2**63), Decimal(-(2**63) - 1), None, Decimal(10) ** 37]
    whole = numeric(BIGINT, pa.array(wide, pa.decimal128(38, 0)))
    assert whole.bad is not None
    assert whole.bad.tolist() == [False, False, True, True, False, True]
    assert whole.numbers[:2].tolist() == [2**63 - 1, -(2**63)]
    floats = numeric(DOUBLE, pa.array(wide, pa.decimal128(38, 0))).floats
    assert floats is not None
    assert floats[[0, 1, 2, 3, 5]].tolist() == [2.0**63, -(2.0**63), 2.0**63, -(2.0**63), 1e37]
    huge = numeric(DOUBLE, pa.array([Decimal(10) ** 60, None], pa.decimal256(70, 0)))
    assert huge.floats is not None
    assert huge.floats[0] == pytest.approx(1e60)
    days = pa.array([0, -1, 2**31 - 1, None], pa.int32()).cast(pa.date32())
    midnights = numeric(TIMESTAMP, days)
    assert midnights.bad is not None
    assert midnights.bad.tolist() == [False, False, True, False]
    assert midnights.numbers[:2].tolist() == [0, -86_400_000_000]
