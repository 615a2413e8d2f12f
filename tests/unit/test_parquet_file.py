"""Parquet files of our own making: what other people's readers find in them is what was written."""

from __future__ import annotations

import math
import random
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.kernels import parquet as kernels
from penstock.sinks.parquet import write_parquet
from penstock.sinks.parquet_file import PAGE_ROWS, writable, write_table

TIME = pa.timestamp("us", tz="UTC")
INTEGERS = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}
WORDS = ["", "a", "é", "水 🌊", "x" * 300, "tab\tand\nline", "NULL", *(f"word {n}" for n in range(60))]


def integers(dice: np.random.Generator, rows: int, bits: int) -> np.ndarray:
    """Of a random width, at times with the extremes, in order, or nearly all the same."""
    width = int(dice.integers(0, bits))
    values = dice.integers(-(1 << width), 1 << width, rows, endpoint=False) if width < bits - 1 else _whole(dice, rows)
    values = np.clip(values, -(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    kind = dice.integers(0, 5)
    if kind == 0:
        values = np.sort(values)
    elif kind == 1:
        values = np.where(dice.random(rows) < 0.02, values, 1)
    elif kind == 2 and rows:
        values[dice.integers(0, rows, 3)] = dice.choice([-(1 << (bits - 1)), (1 << (bits - 1)) - 1], 3)
    return values


def _whole(dice: np.random.Generator, rows: int) -> np.ndarray:
    return dice.integers(-(1 << 63), (1 << 63) - 1, rows, endpoint=True)


def column(dice: np.random.Generator, kind: str, rows: int) -> pa.Array:
    mask = dice.random(rows) < dice.choice([0.0, 0.0, 0.3, 1.0])
    nulls = mask if mask.any() else None
    if kind in ("8", "16", "32", "64"):
        return pa.array(integers(dice, rows, int(kind)), INTEGERS[int(kind)], mask=nulls)
    if kind == "time":
        return pa.array(integers(dice, rows, 50), pa.int64(), mask=nulls).cast(TIME)
    if kind == "one":
        return pa.array(np.full(rows, dice.integers(-5, 1 << 40)), pa.int64(), mask=nulls)
    if kind == "float":
        some = np.array([0.0, -0.0, math.nan, math.inf, -math.inf, 5e-324, -1 / 3, 1e300])
        return pa.array(dice.choice(some[: dice.integers(1, 9)], rows), pa.float64(), mask=nulls)
    if kind == "bool":
        return pa.array(dice.random(rows) < dice.choice([0.0, 0.5, 1.0]), mask=nulls)
    words = pa.array(WORDS[: dice.integers(1, len(WORDS) + 1)])
    codes = pa.array(dice.integers(0, dice.integers(1, len(words), endpoint=True), rows), pa.int32(), mask=nulls)
    coded = pa.DictionaryArray.from_arrays(codes, words)
    return coded if kind == "dictionary" else coded.dictionary_decode()


KINDS = ("8", "16", "32", "64", "time", "one", "float", "bool", "text", "dictionary")


def random_table(seed: int) -> pa.Table:
    dice = np.random.default_rng(seed)
    rows = int(dice.choice([1, 2, 7, 31, 32, 33, 127, 128, 129, 130, 1000, 5000]))
    return pa.table({f"c{i} {kind}": column(dice, kind, rows) for i, kind in enumerate(KINDS)})


def plain(table: pa.Table) -> pa.Table:
    """Strings as strings."""
    kinds = [f.type.value_type if pa.types.is_dictionary(f.type) else f.type for f in table.schema]
    return table.cast(pa.schema(list(zip(table.column_names, kinds, strict=True))))


def same(ours: pa.Table, theirs: pa.Table) -> None:
    assert theirs.schema.names == ours.schema.names
    for name in ours.column_names:
        assert repr(theirs[name].to_pylist()) == repr(ours[name].to_pylist()), name


@pytest.mark.parametrize("seed", range(40))
def test_arrow_and_duckdb_read_what_was_written(tmp_path: Path, seed: int) -> None:
    table, path = random_table(seed), tmp_path / "t.parquet"
    assert writable(table)
    write_table(table, path)
    expected = plain(table)
    found = pq.read_table(path)
    assert found.schema.equals(expected.schema)
    same(expected, found)
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        same(expected, connection.sql(f"SELECT * FROM '{path}'").to_arrow_table())


@pytest.mark.parametrize("seed", range(40, 60))
def test_schema_and_bounds_are_those_that_arrow_writes(tmp_path: Path, seed: int) -> None:
    table = random_table(seed)
    write_table(table, tmp_path / "ours")
    pq.write_table(table, tmp_path / "theirs", store_schema=False)
    ours, theirs = (pq.ParquetFile(tmp_path / name) for name in ("ours", "theirs"))
    assert ours.schema.equals(theirs.schema)
    assert ours.metadata.num_rows == table.num_rows
    for i, name in enumerate(table.column_names):
        mine, other = (f.metadata.row_group(0).column(i) for f in (ours, theirs))
        assert mine.statistics.null_count == other.statistics.null_count
        if "float" not in name:  # Arrow keeps the sign of a zero
            assert mine.statistics.has_min_max == other.statistics.has_min_max
            assert (mine.statistics.min, mine.statistics.max) == (other.statistics.min, other.statistics.max), name
        assert mine.total_compressed_size <= mine.total_uncompressed_size + 64


def test_bounds_of_floats_leave_nan_out_and_cover_both_zeros(tmp_path: Path) -> None:
    cases = [[math.nan], [0.0, math.nan], [-0.0], [1.5, -2.0, math.nan], [None, 3.0]]
    found = []
    for number, values in enumerate(cases):
        write_table(pa.table({"f": pa.array(values, pa.float64())}), tmp_path / str(number))
        statistics = pq.ParquetFile(tmp_path / str(number)).metadata.row_group(0).column(0).statistics
        found.append((statistics.min, statistics.max) if statistics.has_min_max else None)
    assert repr(found) == repr([None, (-0.0, 0.0), (-0.0, 0.0), (-2.0, 1.5), (3.0, 3.0)])


def test_filters_find_rows_by_the_bounds(tmp_path: Path) -> None:
    """A reader that skips row groups by their bounds skips none that has rows."""
    table = pa.table({"a": pa.array([5, -7, 9]), "s": pa.array(["b", "a", "ü"]), "f": [0.0, 2.5, -1.0]})
    write_table(table, tmp_path / "t.parquet")
    for where in ["a = -7", "a > 8", "s = 'ü'", "s < 'b'", "f = -0.0", "f < -0.5"]:
        with duckdb.connect() as connection:
            count = connection.execute(f"SELECT count(*) FROM '{tmp_path}/t.parquet' WHERE {where}").fetchall()
        assert count == [(1,)], where
    for where in [("a", "=", -7), ("a", ">", 8), ("s", "=", "ü"), ("s", "<", "b"), ("f", "=", -0.0)]:
        assert pq.read_table(tmp_path / "t.parquet", filters=[where]).num_rows == 1, where
    assert pq.read_table(tmp_path / "t.parquet", filters=[("a", ">", 9)]).num_rows == 0


def test_many_pages(tmp_path: Path) -> None:
    rows, dice = 2 * PAGE_ROWS + 17, np.random.default_rng(1)
    table = pa.table({
        "i": dice.integers(0, 1 << 40, rows), "n": np.where(dice.random(rows) < 0.001, 7, 1), "one": np.full(rows, 3),
        "some": pa.array(dice.integers(0, 9, rows), mask=dice.random(rows) < 0.5),
        "s": pa.array(dice.choice(WORDS, rows)), "f": dice.random(rows), "b": dice.random(rows) < 0.5,
    })  # fmt: skip
    write_table(table, tmp_path / "t.parquet")
    assert pq.read_table(tmp_path / "t.parquet").equals(table)
    with duckdb.connect() as connection:
        assert connection.sql(f"SELECT * FROM '{tmp_path}/t.parquet'").to_arrow_table().equals(table)


def test_unused_words_are_left_out(tmp_path: Path) -> None:
    words = pa.DictionaryArray.from_arrays(pa.array([3, 3, 1], pa.int32()), pa.array(["a", "b", "c", "d"]))
    write_table(pa.table({"s": words}), tmp_path / "t.parquet")
    column = pq.ParquetFile(tmp_path / "t.parquet").metadata.row_group(0).column(0)
    assert (column.statistics.min, column.statistics.max) == ("b", "d")
    assert pq.read_table(tmp_path / "t.parquet")["s"].to_pylist() == ["d", "d", "b"]


def test_pieces_of_larger_arrays(tmp_path: Path) -> None:
    """Slices and columns of several chunks, as passes and LIMIT leave them."""
    whole = random_table(7)
    whole = pa.concat_tables([whole, whole]).unify_dictionaries()
    some = whole.slice(3, whole.num_rows - 5)
    write_table(some, tmp_path / "t.parquet")
    same(plain(some), pq.read_table(tmp_path / "t.parquet"))


def test_other_types_and_no_rows_are_left_to_arrow(tmp_path: Path) -> None:
    lists, empty = pa.table({"l": [[1], [2, 3]]}), random_table(1).slice(0, 0)
    for number, table in enumerate((lists, empty)):
        assert not writable(table)
        write_parquet(table, tmp_path / str(number))
        assert pq.read_table(tmp_path / str(number)).equals(plain(table))


@pytest.mark.parametrize("bits", [32, 64])
def test_differences_never_outgrow_their_room(bits: int) -> None:
    """The widest differences there are, of any number of rows: nothing is written behind the room."""
    high = (1 << (bits - 1)) - 1
    for rows in [0, 1, 2, 31, 33, 128, 129, 130, 257, 1000]:
        values = np.where(np.arange(rows) % 2, high, -high - 1)
        values = np.where(np.random.default_rng(rows).random(rows) < 0.5, values, 0)
        room = kernels.room_for_differences(rows)
        out = np.full(room + 64, 0xAB, np.uint8)
        end = kernels.encode_differences(values, bits, np.empty(kernels.BLOCK, np.uint64), out, 0)
        assert end <= room
        assert (out[room:] == 0xAB).all()


def test_codes_never_outgrow_their_room() -> None:
    dice = random.Random(2)
    for rows in [1, 7, 8, 9, 31, 32, 33, 100]:
        width = dice.randint(1, 31)
        codes = np.full(rows, (1 << width) - 1, np.int32)
        room = kernels.room_for_codes(rows, width)
        out = np.full(room + 64, 0xAB, np.uint8)
        assert kernels.encode_codes(codes, width, np.empty(kernels.MINI, np.uint64), out, 0) <= room
        assert (out[room:] == 0xAB).all()
