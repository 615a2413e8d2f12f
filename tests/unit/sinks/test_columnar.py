"""The writer of Parquet files: what other people's readers see is what was written, whatever its types and sizes."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.sinks.columnar import pages, write
from penstock.sinks.columnar.write import write_parquet

TIME = pa.timestamp("us", tz="UTC")
LEAST, GREATEST = -(1 << 63), (1 << 63) - 1
SIZES = [1, 7, 8, 9, 32, 33, 127, 128, 129, 130, 1000]
SCHEMA = pa.schema(
    [
        ("tiny", pa.int8()),
        ("short", pa.int16()),
        ("int", pa.int32()),
        ("long", pa.int64()),
        ("wide", pa.int64()),
        ("real", pa.float64()),
        ("flag", pa.bool_()),
        ("text", pa.string()),
        ("name", pa.string()),
        ("at", TIME),
        ("window", TIME),
    ]
)


def drawn(dice: random.Random, rows: int, missing: float) -> pa.Table:
    """Columns as the engine gives them: integers wide, windows and some texts as dictionaries."""
    words = [f"word {number} — {'ü' * (number % 9)}" for number in range(dice.choice([1, 2, 3, 300]))]

    def column(make: Any, kind: pa.DataType = None) -> pa.Array:
        return pa.array([None if dice.random() < missing else make() for _ in range(rows)], kind)

    def coded(values: pa.Array) -> pa.Array:
        codes = column(lambda: dice.randrange(len(values)), pa.int32())
        return pa.DictionaryArray.from_arrays(codes, values)

    steps = dice.choice([1, 1000, 1 << 40])
    arrays = [
        column(lambda: dice.randint(-128, 127), pa.int64()),
        column(lambda: dice.randint(-(1 << 15), (1 << 15) - 1), pa.int64()),
        column(lambda: dice.choice([-(1 << 31), (1 << 31) - 1, 0, dice.randint(-9, 9)]), pa.int64()),
        column(lambda: dice.randrange(steps), pa.int64()),
        column(lambda: dice.choice([LEAST, GREATEST, 0, 1]), pa.int64()),
        column(lambda: dice.choice([math.inf, -math.inf, 0.0, -0.0, dice.gauss(0, 1e9)]), pa.float64()),
        column(lambda: dice.random() < 0.5, pa.bool_()),
        column(lambda: dice.choice(words), pa.string()),
        coded(pa.array(words)),
        column(lambda: dice.randrange(1 << 50), pa.int64()).cast(TIME),
        coded(pa.array([60_000_000 * number for number in range(dice.choice([1, 2, 50]))]).cast(TIME)),
    ]
    return pa.table(arrays, SCHEMA.names)


def plain(table: pa.Table) -> pa.Table:
    decoded = [
        column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        for column in table.columns
    ]
    return pa.table(decoded, table.schema.names).cast(SCHEMA)


def by_duckdb(path: Path) -> list[tuple[Any, ...]]:
    times = ", ".join(f'epoch_us("{name}") AS "{name}"' for name in ("at", "window"))
    found: list[tuple[Any, ...]] = duckdb.sql(f"SELECT * REPLACE ({times}) FROM '{path}'").fetchall()
    return found


def as_rows(table: pa.Table) -> list[tuple[Any, ...]]:
    numbers = [column.cast(pa.int64()) if column.type == TIME else column for column in table.columns]
    return list(zip(*(column.to_pylist() for column in numbers), strict=True))


def check(path: Path, table: pa.Table) -> None:
    found, wanted = pq.read_table(path), plain(table)
    assert found.schema.equals(SCHEMA)
    assert found.equals(wanted)
    assert by_duckdb(path) == as_rows(wanted)


@pytest.mark.parametrize("missing", [0.0, 0.3, 1.0])
def test_every_type_at_every_size(missing: float, tmp_path: Path) -> None:
    for rows in SIZES:
        table = drawn(random.Random(rows), rows, missing)
        write_parquet(table, SCHEMA, tmp_path / "x.parquet")
        check(tmp_path / "x.parquet", table)


@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_pages_and_row_groups(missing: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "PAGE", 100)
    monkeypatch.setattr(write, "ROWS", 350)
    table = drawn(random.Random(5), 1111, missing)
    write_parquet(table, SCHEMA, tmp_path / "x.parquet")
    assert pq.read_metadata(tmp_path / "x.parquet").num_row_groups == 4
    check(tmp_path / "x.parquet", table)


def test_parts_with_dictionaries_of_their_own(tmp_path: Path) -> None:
    parts = [drawn(random.Random(seed), 200, 0.1) for seed in range(3)]
    table = pa.concat_tables(parts)
    write_parquet(table, SCHEMA, tmp_path / "x.parquet")
    check(tmp_path / "x.parquet", table)


def test_what_a_limit_leaves_needs_no_whole_dictionary(tmp_path: Path) -> None:
    words = pa.DictionaryArray.from_arrays(pa.array(range(10_000), pa.int32()), pa.array(map(str, range(10_000))))
    table, schema = pa.table({"w": words}), pa.schema([("w", pa.string())])
    write_parquet(table.slice(5_000, 3), schema, tmp_path / "x.parquet")
    assert pq.read_table(tmp_path / "x.parquet")["w"].to_pylist() == ["5000", "5001", "5002"]
    assert (tmp_path / "x.parquet").stat().st_size < 500


def test_no_rows(tmp_path: Path) -> None:
    write_parquet(SCHEMA.empty_table(), SCHEMA, tmp_path / "x.parquet")
    check(tmp_path / "x.parquet", SCHEMA.empty_table())


def test_bounds_are_those_of_the_values(tmp_path: Path) -> None:
    """As Arrow's own writer has them; of doubles without NaN, and zero is both zeros."""
    table = drawn(random.Random(3), 700, 0.2)
    real = pa.array([math.nan, 0.0, 5.5, None, *[1.0] * 696])
    table = table.set_column(5, "real", real)
    write_parquet(table, SCHEMA, tmp_path / "ours.parquet")
    pq.write_table(plain(table), tmp_path / "arrows.parquet")
    ours, arrows = (pq.read_metadata(tmp_path / f"{name}.parquet").row_group(0) for name in ("ours", "arrows"))
    for i, name in enumerate(SCHEMA.names):
        one, other = ours.column(i).statistics, arrows.column(i).statistics
        if name in ("text", "name"):
            assert one is None or not one.has_min_max
        elif name != "window":  # a dictionary may have windows that a filter has left without rows
            assert (one.min, one.max, one.null_count) == (other.min, other.max, other.null_count), name
    assert repr(ours.column(5).statistics.min) == "-0.0"


def test_numbers_of_one_value_take_next_to_nothing(tmp_path: Path) -> None:
    window = pa.DictionaryArray.from_arrays(
        pa.array(np.zeros(100_000, np.int32)), pa.array([60], pa.int64()).cast(TIME)
    )
    table, schema = pa.table({"window": window}), pa.schema([("window", TIME)])
    write_parquet(table, schema, tmp_path / "x.parquet")
    assert pq.read_table(tmp_path / "x.parquet")["window"].cast(pa.int64()).unique().to_pylist() == [60]
    assert (tmp_path / "x.parquet").stat().st_size < 600
