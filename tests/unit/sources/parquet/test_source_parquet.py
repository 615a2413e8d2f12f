"""Parquet sources: every row once in order however it is cut, and messages for files that cannot be read."""

from __future__ import annotations

import os
import pickle
import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.errors import RunError, SourceError
from penstock.logical.query import Field
from penstock.logical.types import INET, INT, STRING, TIMESTAMP
from penstock.sources.base import TYPE_KEY, Split, fields, growing, logical_type
from penstock.sources.parquet.source import ParquetSource, open_parquet
from penstock.sources.registry import open_source
from support.entries import relogged


def sample(rows: int, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    words = np.array(["udp", "tcp", "icmp", "", "größe"])
    schema = pa.schema(
        [
            pa.field("ts", pa.timestamp("us", tz="UTC")),
            pa.field("src", pa.uint32(), metadata={TYPE_KEY: b"INET"}),
            pa.field("name", pa.string()),
            pa.field("length", pa.int32()),
            pa.field("place", pa.struct([("x", pa.int32())])),
        ]
    )
    names = pa.array(words[rng.integers(0, 5, rows)], mask=rng.random(rows) < 0.1)
    columns = [
        pa.array(np.arange(rows) * 10, pa.int64()).cast(schema.field("ts").type),
        pa.array(rng.integers(0, 2**32, rows), pa.uint32()),
        names,
        pa.array(rng.integers(0, 1500, rows), pa.int32()),
        pa.array([{"x": 1}] * rows, schema.field("place").type),
    ]
    return pa.table(columns, schema=schema)


def joined(source: ParquetSource, splits: list[Split], columns: list[str], batch_rows: int) -> pa.Table:
    wanted = pa.schema([source.schema().field(name) for name in columns])
    batches = []
    for split in splits:
        for batch in source.read(split, columns, batch_rows):
            assert 0 < batch.num_rows <= batch_rows
            assert batch.schema.names == columns
            batches.append(batch.cast(wanted))
    return pa.Table.from_batches(batches, wanted)


@pytest.mark.parametrize("seed", range(25))
def test_every_row_once_for_any_files_groups_and_splits(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    tables = []
    for number in range(rng.randint(1, 4)):
        table = sample(rng.choice([0, 1, 7, 100, 999]), seed * 10 + number)
        pq.write_table(table, tmp_path / f"part-{number}.parquet", row_group_size=rng.choice([1, 13, 100, 5000]))
        tables.append(table)
    expected = pa.concat_tables(tables)
    source = pickle.loads(pickle.dumps(open_parquet(str(tmp_path), {})))
    assert source.rows() == expected.num_rows
    columns = rng.sample(["ts", "src", "name", "length", "place"], rng.randint(1, 5))
    position, splits = 0, []
    while position < source.rows():
        end = source.cut(position, rng.randint(1, 700))
        assert position < end <= source.rows()
        splits += source.splits(position, end, rng.randint(1, 5))
        position = end
    assert [s.start for s in splits] == [0, *(s.stop for s in splits)][: len(splits)]
    result = joined(source, splits, columns, rng.choice([1, 10, 64, 100_000]))
    assert result.to_pylist() == expected.select(columns).to_pylist()


def test_text_comes_as_dictionary_and_is_described_as_text(tmp_path: Path) -> None:
    table = sample(100)
    table = table.set_column(2, "name", table["name"].cast(pa.large_string()))
    pq.write_table(table, tmp_path / "a.parquet")
    source = open_source(f"parquet:{tmp_path / 'a.parquet'}", {})
    assert source.schema().field("name").type == pa.string()
    (batch,) = source.read(Split(0, 100), ["name"], 1000)
    assert batch.schema.field("name").type == pa.dictionary(pa.int32(), pa.string())
    kinds = {field.name: field.type for field in fields(source.schema())}
    assert kinds["src"] == INET
    assert kinds["name"] == STRING
    assert kinds["length"] == INT
    assert "place" not in kinds
    assert logical_type(batch.schema.field("name")) == STRING


def test_no_columns_still_counts_rows(tmp_path: Path) -> None:
    pq.write_table(sample(100), tmp_path / "a.parquet", row_group_size=30)
    source = open_parquet(str(tmp_path / "a.parquet"), {})
    assert sum(batch.num_rows for batch in source.read(Split(10, 75), [], 7)) == 65


def test_cut_prefers_row_groups(tmp_path: Path) -> None:
    pq.write_table(sample(1000), tmp_path / "a.parquet", row_group_size=300)
    source = open_parquet(str(tmp_path), {})
    assert source.cut(0, 400) == 300
    assert source.cut(300, 400) == 600
    assert source.cut(0, 700) == 600
    assert source.cut(10, 100) == 110  # no boundary in reach
    assert source.cut(250, 100) == 350  # the boundary would leave the batch half empty
    assert source.cut(0, 5000) == 1000
    assert source.cut(900, 50) == 950
    assert source.cut(1000, 50) == 1000


def test_splits_are_balanced_whatever_the_row_groups(tmp_path: Path) -> None:
    pq.write_table(sample(1000), tmp_path / "one.parquet", row_group_size=1000)
    source = open_parquet(str(tmp_path / "one.parquet"), {})
    assert [s.stop - s.start for s in source.splits(0, 1000, 4)] == [250] * 4
    pq.write_table(sample(1000), tmp_path / "seven.parquet", row_group_size=143)
    source = open_parquet(str(tmp_path / "seven.parquet"), {})
    assert [s.stop for s in source.splits(0, 1000, 2)] == [500, 1000]
    pq.write_table(sample(1000), tmp_path / "many.parquet", row_group_size=10)
    source = open_parquet(str(tmp_path / "many.parquet"), {})
    assert [s.stop for s in source.splits(0, 1000, 3)] == [330, 670, 1000]
    for parallelism in range(1, 20):
        splits = source.splits(37, 960, parallelism)
        assert len(splits) == parallelism
        assert max(s.stop - s.start for s in splits) <= 1.04 * 923 / parallelism + 1
    assert source.splits(5, 5, 4) == []


def test_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = tmp_path / "day" / "hour"
    deep.mkdir(parents=True)
    for rows, path in ((1, "b.parquet"), (2, "a.parquet"), (4, "day/c.parquet"), (8, "day/hour/d.parquet")):
        pq.write_table(sample(rows), tmp_path / path)
    pq.write_table(sample(16), tmp_path / ".hidden.parquet")
    (tmp_path / "notes.txt").write_text("no")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert open_parquet("a.parquet", {}).rows() == 2
    assert open_parquet(".", {}).rows() == 3
    assert [len(f.groups) for f in open_parquet("*.parquet", {}).files] == [1, 1]
    assert open_parquet("**/*.parquet", {}).rows() == 15
    assert open_parquet("~/day", {}).rows() == 4
    assert open_parquet(f"file://{tmp_path}/day/c.parquet", {}).rows() == 4
    assert open_parquet(f"file:{tmp_path}/a.parquet", {}).rows() == 2
    names = [Path(f.path).name for f in open_parquet("*.parquet", {}).files]
    assert names == ["a.parquet", "b.parquet"]
    pq.write_table(sample(3), tmp_path / "odd[1].parquet")
    assert open_parquet("odd[1].parquet", {}).rows() == 3


def test_fingerprint_follows_the_columns_not_the_files(tmp_path: Path) -> None:
    for number, folder in enumerate(("x", "y")):
        (tmp_path / folder).mkdir()
        pq.write_table(sample(50, seed=number), tmp_path / folder / "a.parquet")
    first = open_parquet(str(tmp_path / "x"), {}).fingerprint()
    assert first == open_parquet(str(tmp_path / "y"), {}).fingerprint()
    declared = fields(open_parquet(str(tmp_path / "x"), {}).schema())
    assert first == open_parquet(str(tmp_path / "x"), {}, declared).fingerprint()
    (tmp_path / "z").mkdir()
    assert first == open_parquet(str(tmp_path / "z"), {}, declared).fingerprint()
    pq.write_table(sample(50).drop_columns(["length"]), tmp_path / "y" / "a.parquet")
    assert first != open_parquet(str(tmp_path / "y"), {}).fingerprint()


def test_instances_are_small(tmp_path: Path) -> None:
    pq.write_table(sample(1000), tmp_path / "a.parquet", row_group_size=10)
    source = open_parquet(str(tmp_path), {})
    source.cut(0, 10)
    assert len(pickle.dumps(source)) < 8_000


def write(path: Path, data: bytes) -> str:
    path.write_bytes(data)
    return str(path)


def test_errors_name_the_file(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"no such file or folder: .*nowhere\.parquet"):
        open_parquet(str(tmp_path / "nowhere.parquet"), {})
    with pytest.raises(SourceError, match=r"no file matches .*\*\.parquet"):
        open_parquet(str(tmp_path / "*.parquet"), {})
    with pytest.raises(SourceError, match=r"no \*\.parquet file in folder"):
        open_parquet(str(tmp_path), {})
    with pytest.raises(SourceError, match="no parquet file given"):
        open_parquet("", {})
    with pytest.raises(SourceError, match="names another host"):
        open_parquet("file://elsewhere/a.parquet", {})
    with pytest.raises(SourceError, match="unknown option 'speed'"):
        open_parquet(str(tmp_path), {"speed": "1"})
    for data in (b"", b"PAR1", b"ts,src\n1,2\n" * 100, b"PAR1" + b"\xff" * 50 + b"PAR1"):
        with pytest.raises(SourceError, match=r"bad\.parquet' is not a Parquet file"):
            open_parquet(write(tmp_path / "bad.parquet", data), {})
    with pytest.raises(SourceError, match=r"cannot read the footer of .*bad\.parquet"):
        open_parquet(write(tmp_path / "bad.parquet", b"PAR1" + b"\xff" * 50 + b"\x20\0\0\0PAR1"), {})
    with pytest.raises(SourceError, match="encrypted"):
        open_parquet(write(tmp_path / "bad.parquet", b"PAR1" + b"\0" * 50 + b"\x20\0\0\0PARE"), {})


def test_no_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(sample(5), tmp_path / "a.parquet")

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)  # root may read anything, so a chmod would not do
    with pytest.raises(SourceError, match=r"cannot read .*a\.parquet': Permission denied"):
        open_parquet(str(tmp_path / "a.parquet"), {})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.drop_columns(["length"]), "column 'length' is missing"),
        (lambda t: t.append_column("more", t["length"]), "it has another column 'more'"),
        (lambda t: t.set_column(3, "length", t["length"].cast("int64")), "column 'length' is int64, not int32"),
        (lambda t: t.set_column(1, "src", t["src"]), "column 'src' is marked as an address in one of them only"),
    ],
)
def test_differing_schemas(tmp_path: Path, change, message: str) -> None:
    pq.write_table(sample(5), tmp_path / "a.parquet")
    pq.write_table(change(sample(5)), tmp_path / "b.parquet")
    with pytest.raises(SourceError, match=message) as caught:
        open_parquet(str(tmp_path), {})
    assert "b.parquet" in str(caught.value)


def test_same_columns_in_another_order(tmp_path: Path) -> None:
    table = sample(5)
    pq.write_table(table, tmp_path / "a.parquet")
    pq.write_table(table.select(table.column_names[::-1]), tmp_path / "b.parquet")
    source = open_parquet(str(tmp_path), {})
    assert joined(source, [Split(0, 10)], ["length", "ts"], 3)["length"].to_pylist() == 2 * table["length"].to_pylist()


def test_column_twice(tmp_path: Path) -> None:
    pq.write_table(pa.table([pa.array([1]), pa.array([2])], names=["x", "x"]), tmp_path / "a.parquet")
    with pytest.raises(SourceError, match="column 'x' occurs twice"):
        open_parquet(str(tmp_path), {})


def test_damage_in_the_middle_names_file_and_row_group(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(sample(1000), path, row_group_size=100, compression="zstd")
    metadata = pq.read_metadata(path)
    data = bytearray(path.read_bytes())
    chunk = metadata.row_group(4).column(3)
    begin = chunk.dictionary_page_offset or chunk.data_page_offset
    data[begin : begin + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
    path.write_bytes(data)
    source = open_parquet(str(path), {})
    assert sum(b.num_rows for b in source.read(Split(0, 400), ["length"], 50)) == 400
    with pytest.raises(RunError, match=r"cannot read row group 4 of .*a\.parquet"):
        list(source.read(Split(350, 600), ["length"], 50))


def test_file_changed_or_gone_during_the_run(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(sample(100), path)
    source = open_parquet(str(path), {})
    pq.write_table(sample(90), path)
    with pytest.raises(RunError, match="has changed since the run began"):
        list(source.read(Split(0, 100), ["ts"], 50))
    path.unlink()
    with pytest.raises(RunError, match=r"cannot open .*a\.parquet"):
        list(source.read(Split(0, 100), ["ts"], 50))


def test_files_without_rows(tmp_path: Path) -> None:
    pq.write_table(sample(0), tmp_path / "a.parquet")
    source = open_parquet(str(tmp_path), {})
    assert source.rows() == 0
    assert source.cut(0, 10) == 0
    assert source.splits(0, 0, 4) == []
    assert list(source.read(Split(0, 0), ["ts"], 10)) == []


def test_a_folder_grows(tmp_path: Path) -> None:
    for name, rows in (("b", 5), ("d", 7)):
        pq.write_table(sample(rows, rows), tmp_path / f"{name}.parquet", row_group_size=3)
    source = open_parquet(str(tmp_path), {})
    assert growing(source)
    assert not growing(open_source("generate:zipf", {}))
    assert source.arrivals() == []
    for name, rows in (("c", 2), ("a", 4), (".hidden", 1), ("_aside", 1), ("e.tmp", 1)):
        pq.write_table(sample(rows, rows), tmp_path / f"{name}.parquet")
    (tmp_path / "e.tmp.parquet").rename(tmp_path / "e.parquet.tmp")
    came = source.arrivals()
    assert [(Path(e.path).name, e.rows) for e in came] == [("a.parquet", 4), ("c.parquet", 2)]
    longer = source.extended(relogged(came))
    assert longer.arrivals() == []
    assert longer.rows() == 18
    expected = pa.concat_tables([sample(n, n) for n in (5, 7, 4, 2)])
    assert joined(longer, [Split(0, 18)], ["ts", "name"], 4).to_pylist() == expected.select(["ts", "name"]).to_pylist()
    logged = relogged(longer.entries)
    again = open_parquet(str(tmp_path), {}).restarted(logged)
    assert again == longer
    assert [again.place(row) for row in (0, 4, 5, 12, 17)] == [
        "b.parquet, row 1",
        "b.parquet, row 5",
        "d.parquet, row 1",
        "a.parquet, row 1",
        "c.parquet, row 2",
    ]


def test_a_source_narrowed_to_a_split_reads_the_same(tmp_path: Path) -> None:
    for number, rows in enumerate((0, 5, 0, 7, 3, 0)):
        pq.write_table(sample(rows, number), tmp_path / f"{number}.parquet", row_group_size=2)
    source = open_parquet(str(tmp_path), {})
    for start in range(15):
        for stop in range(start, 16):
            split = Split(start, stop)
            narrow = pickle.loads(pickle.dumps(source.narrowed(split)))
            assert len(narrow.files) <= 5
            assert joined(narrow, [split], ["ts", "src"], 3) == joined(source, [split], ["ts", "src"], 3)
    assert [Path(f.path).name for f in source.narrowed(Split(6, 9)).files] == ["3.parquet"]


def test_changed_or_missing_files_are_told(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(sample(20), path)
    source = open_parquet(str(tmp_path), {})
    (entry,) = source.entries
    os.utime(path, (1, 1))
    assert source.changed(entry) is None
    pq.write_table(sample(20, seed=1), path)
    assert source.changed(entry) == "has changed"
    path.write_bytes(b"")
    assert source.changed(entry) == "has changed"
    path.unlink()
    assert source.changed(entry) == "is missing"


def test_a_folder_without_files_needs_declared_columns(tmp_path: Path) -> None:
    declared = (Field("ts", TIMESTAMP), Field("src", INET), Field("name", STRING))
    for address in (str(tmp_path), f"{tmp_path}/*.parquet"):
        source = open_source(f"parquet:{address}", {}, declared)
        assert source.rows() == 0
        assert fields(source.schema()) == declared
    with pytest.raises(SourceError, match="no such file"):
        open_parquet(str(tmp_path / "a.parquet"), {}, declared)
    source = open_parquet(str(tmp_path), {}, declared)
    pq.write_table(sample(9), tmp_path / "a.parquet")
    grown = source.extended(source.arrivals())
    assert grown.schema().field("src").type == pa.uint32()
    assert joined(grown, [Split(0, 9)], ["src"], 4)["src"].to_pylist() == sample(9)["src"].to_pylist()
    assert source.restarted(grown.entries) == grown


def test_arrivals_that_do_not_fit(tmp_path: Path) -> None:
    empty = open_parquet(str(tmp_path), {}, (Field("ts", TIMESTAMP), Field("name", INT)))
    pq.write_table(sample(3), tmp_path / "a.parquet")
    with pytest.raises(RunError, match=r"column 'name' of '.*a.parquet' is string"):
        empty.arrivals()
    source = open_parquet(str(tmp_path), {})
    pq.write_table(sample(3).drop_columns(["length"]), tmp_path / "b.parquet")
    with pytest.raises(RunError, match=r"b.parquet' differs from 'a.parquet': column 'length' is missing"):
        source.arrivals()
    (tmp_path / "b.parquet").write_bytes(b"half a file")
    with pytest.raises(RunError, match=r"b.parquet' is not a Parquet file"):
        source.arrivals()
