"""Arrow IPC sources: every row once in order, in any format and however it is cut; messages for damaged files."""

from __future__ import annotations

import os
import pickle
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.ipc as ipc
import pytest

from penstock.errors import RunError, SourceError
from penstock.logical.query import Field
from penstock.logical.types import INET, INT, STRING, TIMESTAMP
from penstock.sources.arrow.source import ArrowSource, open_arrow
from penstock.sources.base import TYPE_KEY, Split, fields
from penstock.sources.registry import open_source
from support.entries import relogged

COLUMNS = ["ts", "src", "name", "kind", "length", "place"]
WORDS = ("udp", "tcp", "icmp", "", "größe", "a longer text than twelve letters")


def sample(rows: int, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)

    def drawn() -> pa.Array:
        return pa.array(np.array(WORDS)[rng.integers(0, len(WORDS), rows)], pa.string(), mask=rng.random(rows) < 0.1)

    schema = pa.schema(
        [
            pa.field("ts", pa.timestamp("us", tz="UTC")),
            pa.field("src", pa.uint32(), metadata={TYPE_KEY: b"INET"}),
            pa.field("name", pa.string()),
            pa.field("kind", pa.dictionary(pa.int32(), pa.string())),
            pa.field("length", pa.int32()),
            pa.field("place", pa.struct([("x", pa.int32())])),
        ]
    )
    columns = [
        pa.array(np.arange(rows) * 10, pa.int64()).cast(schema.field("ts").type),
        pa.array(rng.integers(0, 2**32, rows), pa.uint32()),
        drawn(),
        drawn().dictionary_encode(),
        pa.array(rng.integers(0, 1500, rows), pa.int32()),
        pa.array([{"x": 1}] * rows, schema.field("place").type),
    ]
    return pa.table(columns, schema=schema)


def write(table: pa.Table, path: Path, stream: bool, rows: int, packing: str | None = None, **options: Any) -> None:
    """Each batch of a stream has dictionaries of its own, which replace those before."""
    make = ipc.new_stream if stream else ipc.new_file
    written = ipc.IpcWriteOptions(compression=packing, **options)
    with make(str(path), table.schema, options=written) as writer:
        for batch in table.to_batches(max_chunksize=rows):
            own = batch.column("kind").dictionary_decode().dictionary_encode() if stream else batch.column("kind")
            writer.write_batch(batch.set_column(3, "kind", own))


def joined(source: ArrowSource, splits: list[Split], columns: list[str], batch_rows: int) -> pa.Table:
    wanted = pa.schema([source.schema().field(name) for name in columns])
    batches = []
    for split in splits:
        for batch in source.read(split, columns, batch_rows):
            assert 0 < batch.num_rows <= batch_rows
            assert batch.schema.names == columns
            batches.append(batch.cast(wanted))
    return pa.Table.from_batches(batches, wanted)


@pytest.mark.parametrize("seed", range(30))
def test_every_row_once_for_any_files_batches_and_splits(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    tables = []
    for number in range(rng.randint(1, 4)):
        table = sample(rng.choice([0, 1, 7, 100, 999]), seed * 10 + number)
        path = tmp_path / f"part-{number}{rng.choice(['.arrow', '.arrows', '.feather', '.ipc'])}"
        write(table, path, rng.random() < 0.5, rng.choice([1, 13, 100, 5000]), rng.choice([None, "lz4", "zstd"]))
        tables.append(table)
    expected = pa.concat_tables(tables)
    source = pickle.loads(pickle.dumps(open_arrow(str(tmp_path), {})))
    assert source.rows() == expected.num_rows
    columns = rng.sample(COLUMNS, rng.randint(1, len(COLUMNS)))
    position, splits = 0, []
    while position < source.rows():
        end = source.cut(position, rng.randint(1, 700))
        assert position < end <= source.rows()
        splits += source.splits(position, end, rng.randint(1, 5))
        position = end
    assert [s.start for s in splits] == [0, *(s.stop for s in splits)][: len(splits)]
    result = joined(source, splits, columns, rng.choice([1, 10, 64, 100_000]))
    assert result.to_pylist() == expected.select(columns).to_pylist()


@pytest.mark.parametrize("stream", [False, True])
def test_dictionaries_that_grow(tmp_path: Path, stream: bool) -> None:
    """Only what is new of a dictionary is written again; a task in the middle needs all that came before."""
    path = tmp_path / "a.arrow"
    growing = [pa.array([*WORDS[:count]]).dictionary_encode() for count in (2, 4, 6)]
    options = ipc.IpcWriteOptions(emit_dictionary_deltas=True)
    with (ipc.new_stream if stream else ipc.new_file)(
        str(path), pa.schema([("kind", growing[0].type)]), options=options
    ) as writer:
        for array in growing:
            writer.write_batch(pa.record_batch([array], ["kind"]))
    source = open_arrow(str(path), {})
    for split in (Split(0, 12), Split(2, 6), Split(6, 12), Split(11, 12)):
        whole = [*WORDS[:2], *WORDS[:4], *WORDS[:6]]
        assert joined(source, [split], ["kind"], 100)["kind"].to_pylist() == whole[split.start : split.stop]


def test_columns_as_the_engine_sees_them(tmp_path: Path) -> None:
    words = pa.array(["a", None, "a longer text than twelve letters"])
    holed = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0], pa.int8()), pa.array(["x", None]))
    table = pa.table(
        {
            "view": words.cast(pa.string_view()),
            "large": words.cast(pa.large_string()),
            "holed": holed,
            "number": pa.array([7, 8, 7]).dictionary_encode(),
            "times": pa.array([1, 2, None], pa.timestamp("ns", tz="Europe/Berlin")),
            "shape": pa.array([[1], [], None]),
        }
    )
    pa.feather.write_feather(table, tmp_path / "a.feather")
    source = open_source(f"arrow:{tmp_path / 'a.feather'}", {})
    kinds = {field.name: str(field.type) for field in fields(source.schema())}
    assert kinds == {"view": "STRING", "large": "STRING", "holed": "STRING", "number": "BIGINT", "times": "TIMESTAMP"}
    (batch,) = source.read(Split(0, 3), list(kinds), 1000)
    assert batch.column("view").type == pa.string()
    assert batch.column("holed").type == pa.string()
    assert batch.column("number").type == pa.int64()
    assert batch.to_pydict() == table.select(list(kinds)).to_pydict()


def test_no_columns_still_counts_rows(tmp_path: Path) -> None:
    write(sample(100), tmp_path / "a.arrow", False, 30)
    source = open_arrow(str(tmp_path / "a.arrow"), {})
    assert sum(batch.num_rows for batch in source.read(Split(10, 75), [], 7)) == 65


def test_files_without_rows_or_batches(tmp_path: Path) -> None:
    for name, stream in (("a", False), ("b", True)):
        write(sample(0), tmp_path / f"{name}.arrow", stream, 1)
    source = open_arrow(str(tmp_path), {})
    assert (source.rows(), source.cut(0, 10), source.splits(0, 0, 4)) == (0, 0, [])
    assert list(source.read(Split(0, 0), ["ts"], 10)) == []


def test_a_stream_that_just_ends(tmp_path: Path) -> None:
    """Without the mark of its end, as a writer leaves it that was stopped between two batches."""
    write(sample(100), tmp_path / "a.arrows", True, 10)
    path = tmp_path / "a.arrows"
    path.write_bytes(path.read_bytes()[:-8])
    assert len(joined(open_arrow(str(path), {}), [Split(0, 100)], ["ts"], 64)) == 100


@pytest.mark.parametrize("stream", [False, True])
def test_files_that_are_damaged(tmp_path: Path, stream: bool) -> None:
    """Cut off and overwritten anywhere: a message or the right number of rows, never the end of the process."""
    path, rng = tmp_path / "a.arrow", random.Random(1)
    write(sample(500), path, stream, 100)
    whole = path.read_bytes()
    seen, told = set[str](), list[str]()
    for number in range(150):
        cut, at = rng.randrange(len(whole)), rng.randrange(len(whole))
        noise = whole[:at] + rng.randbytes(rng.choice([1, 4, 64])) + whole[at + 64 :]
        path.write_bytes(whole[:cut] if number % 2 else noise)
        try:
            source = open_arrow(str(path), {})
            for batch in source.read(Split(0, source.rows()), COLUMNS[:5], 64):
                for column in batch.columns:  # each value is looked at
                    plain = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
                    plain.dictionary_encode()
            seen.add("read")
        except (SourceError, RunError) as error:
            told.append(str(error))
            seen.add(type(error).__name__)
    assert all(str(path) in text for text in told)
    assert {"SourceError", "read"} <= seen


def test_what_is_no_arrow_file(tmp_path: Path) -> None:
    path = tmp_path / "a.arrow"
    for content, fact in (
        (b"", "is not an Arrow IPC file"),
        (b"PAR1 or text", "is not an Arrow IPC file"),
        (b"FEA1", "is a Feather file of version 1"),
        (b"ARROW1\0\0 and so on", "was cut off"),
        (b"\xff\xff\xff\xff", "cannot read"),
        (b"\xff\xff\xff\xff\x10\x00\x00\x00" + bytes(16), "cannot read"),
    ):
        path.write_bytes(content)
        with pytest.raises(SourceError, match=fact):
            open_arrow(str(path), {})
    with pytest.raises(SourceError, match="no such file"):
        open_arrow(str(tmp_path / "b.arrow"), {})
    with pytest.raises(SourceError, match="takes no options"):
        open_arrow(str(path), {"header": "true"})
    with pytest.raises(SourceError, match=r"did you mean arrow:x\.arrow"):
        open_source("x.arrow", {})


def test_columns_with_one_name(tmp_path: Path) -> None:
    batch = pa.record_batch([pa.array([1]), pa.array([2])], ["n", "n"])
    with ipc.new_file(str(tmp_path / "a.arrow"), batch.schema) as writer:
        writer.write_batch(batch)
    with pytest.raises(SourceError, match="column 'n' occurs twice"):
        open_arrow(str(tmp_path), {})


def test_files_must_be_alike(tmp_path: Path) -> None:
    write(sample(3), tmp_path / "a.arrow", False, 10)
    write(sample(3).rename_columns([*COLUMNS[:5], "elsewhere"]), tmp_path / "b.arrow", True, 10)
    with pytest.raises(SourceError, match=r"b\.arrow' differs from 'a\.arrow': column 'place' is missing"):
        open_arrow(str(tmp_path), {})


def test_file_changed_or_gone_during_the_run(tmp_path: Path) -> None:
    path = tmp_path / "a.arrow"
    write(sample(100), path, False, 50)
    source = open_arrow(str(path), {})
    assert source.rows() == 100
    write(sample(90), path, False, 50)
    with pytest.raises(RunError, match="has changed since the run began"):
        list(source.read(Split(0, 100), ["ts"], 50))
    path.unlink()
    with pytest.raises(RunError, match="is missing"):
        list(source.read(Split(0, 100), ["ts"], 50))


def test_a_folder_grows(tmp_path: Path) -> None:
    write(sample(5, 5), tmp_path / "b.arrow", False, 3)
    write(sample(7, 7), tmp_path / "d.arrows", True, 3)
    source = open_arrow(str(tmp_path), {})
    assert source.arrivals() == []
    for name, rows in (("c", 2), ("a", 4), (".hidden", 1)):
        write(sample(rows, rows), tmp_path / f"{name}.arrow", False, 10)
    came = source.arrivals()
    assert [(Path(e.path).name, e.rows) for e in came] == [("a.arrow", 4), ("c.arrow", 2)]
    longer = source.extended(relogged(came))
    assert longer.rows() == 18
    expected = pa.concat_tables([sample(n, n) for n in (5, 7, 4, 2)])
    assert joined(longer, [Split(0, 18)], ["ts", "kind"], 4).to_pylist() == expected.select(["ts", "kind"]).to_pylist()
    again = open_arrow(str(tmp_path), {}).restarted(relogged(longer.entries))
    assert again.files == longer.files
    assert [again.place(row) for row in (0, 5, 17)] == ["b.arrow, row 1", "d.arrows, row 1", "c.arrow, row 2"]
    short = again.restarted(relogged(again.done(again.entries)))
    assert (short.rows(), short.arrivals()) == (18, [])
    (tmp_path / "e.arrow").write_bytes(b"half a file")
    with pytest.raises(RunError, match=r"e\.arrow' is not an Arrow IPC file"):
        longer.arrivals()


def test_a_source_narrowed_to_a_split_reads_the_same(tmp_path: Path) -> None:
    for number, rows in enumerate((0, 5, 0, 7, 3, 0)):
        write(sample(rows, number), tmp_path / f"{number}.arrow", number % 2 == 0, 2)
    source = open_arrow(str(tmp_path), {})
    for start in range(15):
        for stop in range(start, 16):
            split = Split(start, stop)
            narrow = pickle.loads(pickle.dumps(source.narrowed(split)))
            assert joined(narrow, [split], ["ts", "src"], 3) == joined(source, [split], ["ts", "src"], 3)
    assert [Path(f.path).name for f in source.narrowed(Split(6, 9)).files] == ["3.arrow"]


def test_changed_or_missing_files_are_told(tmp_path: Path) -> None:
    path = tmp_path / "a.arrow"
    write(sample(20), path, False, 10)
    source = open_arrow(str(tmp_path), {})
    (entry,) = source.entries
    os.utime(path, (1, 1))
    assert source.changed(entry) is None
    write(sample(20, seed=1), path, False, 10)
    assert source.changed(entry) == "has changed"
    path.unlink()
    assert source.changed(entry) == "is missing"


def test_a_folder_without_files_needs_declared_columns(tmp_path: Path) -> None:
    declared = (Field("ts", TIMESTAMP), Field("src", INET), Field("name", STRING))
    with pytest.raises(SourceError, match=r"no \*\.arrow file in folder"):
        open_arrow(str(tmp_path), {})
    source = open_arrow(str(tmp_path), {}, declared)
    assert (source.rows(), fields(source.schema())) == (0, declared)
    write(sample(9), tmp_path / "a.arrow", False, 10)
    grown = source.extended(source.arrivals())
    assert grown.schema().field("src").type == pa.uint32()
    assert joined(grown, [Split(0, 9)], ["src"], 4)["src"].to_pylist() == sample(9)["src"].to_pylist()
    wrong = open_arrow(str(tmp_path / "*.ipc"), {}, (Field("ts", TIMESTAMP), Field("name", INT)))
    write(sample(3), tmp_path / "a.ipc", False, 10)
    with pytest.raises(RunError, match=r"column 'name' of '.*a.ipc' is string"):
        wrong.arrivals()
