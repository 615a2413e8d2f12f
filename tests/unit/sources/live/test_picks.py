"""Picks of every kind of source are the records that `read` gives at the rows of the picks, in any columns, with their
flags; damaged files end in a message."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest

from penstock.errors import PenstockError, RunError
from penstock.kernels.packets.capture import LONGEST
from penstock.logical.query import Field
from penstock.logical.types import BIGINT, STRING, TIMESTAMP
from penstock.sources.arrow.source import open_arrow
from penstock.sources.arrow.table import taken
from penstock.sources.base import START, TYPE_KEY, Position, Source, Split, whole
from penstock.sources.capture import picked
from penstock.sources.capture.source import open_pcap
from penstock.sources.generate.source import KINDS
from penstock.sources.generate.synthetic import BLOCK
from penstock.sources.live.picking import gathered, read_picks, skipping
from penstock.sources.registry import open_source
from penstock.triage.picks import MOST, Picks
from support.captures import Packet, enhanced, interface, pcap, section
from support.mutations import anatomy, mutated
from support.packet_samples import SAMPLES

WORDS = [None, "udp", "tcp", "", "größe", "a longer text than twelve letters"]
DATA = [sample.data for sample in SAMPLES.values()]


def table(rows: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    words = pa.array(WORDS).take(pa.array(rng.integers(0, len(WORDS), rows)))
    numbers = rng.integers(0, 2**32, rows)
    schema = pa.schema(
        [
            pa.field("ts", pa.timestamp("us", tz="UTC")),
            pa.field("src", pa.uint32(), metadata={TYPE_KEY: b"INET"}),
            pa.field("n", pa.int64()),
            pa.field("x", pa.float64()),
            pa.field("flag", pa.bool_()),
            pa.field("cost", pa.decimal128(12, 2)),
            pa.field("name", pa.string()),
            pa.field("long", pa.large_string()),
            pa.field("view", pa.string_view()),
            pa.field("kind", pa.dictionary(pa.int16(), pa.string())),
            pa.field("code", pa.dictionary(pa.int8(), pa.int64())),
            pa.field("place", pa.struct([("x", pa.int32())])),
        ]
    )
    columns = [
        pa.array(np.arange(rows) * 10 + seed),
        pa.array(numbers, pa.uint32()),
        pa.array(numbers, pa.int64(), mask=rng.random(rows) < 0.2),
        pa.array(rng.random(rows)),
        pa.array(rng.random(rows) < 0.5, mask=rng.random(rows) < 0.2),
        pa.array(numbers // 1000, pa.int64()).cast(pa.decimal128(19, 0)),
        words,
        words,
        words,
        words.dictionary_encode(),
        pa.array(numbers % 7).dictionary_encode(),
        pa.array([{"x": 1}] * rows, pa.struct([("x", pa.int32())])),
    ]
    return pa.table([column.cast(field.type) for column, field in zip(columns, schema, strict=True)], schema=schema)


def parts(rng: random.Random) -> list[pa.Table]:
    return [table(rng.choice([0, 1, 700, 3_000, 9_000]), number) for number in range(rng.randint(1, 4))]


def arrow(folder: Path, rng: random.Random) -> Source:
    for number, part in enumerate(parts(rng)):
        make, packing = rng.choice([ipc.new_file, ipc.new_stream]), rng.choice([None, "lz4", "zstd"])
        options = ipc.IpcWriteOptions(compression=packing)
        with make(str(folder / f"{number}.arrow"), part.schema, options=options) as writer:
            writer.write_table(part, max_chunksize=rng.choice([1_000, 4_096, 100_000]))
    return open_arrow(str(folder), {})


def streams(folder: Path, rng: random.Random) -> Source:
    """Each batch has dictionaries of its own, which replace those before."""
    for number, part in enumerate(parts(rng)):
        with ipc.new_stream(str(folder / f"{number}.arrows"), part.schema) as writer:
            for batch in part.to_batches(max_chunksize=500):
                own = batch.column("kind").dictionary_decode().dictionary_encode().cast(part.schema.field("kind").type)
                writer.write_batch(batch.set_column(9, part.schema.field("kind"), own))
    return open_arrow(str(folder), {})


def kept(folder: Path, rng: random.Random) -> Source:
    found = taken("t", table(rng.choice([5_000, 70_000]), 3))
    assert found is not None
    return found.kept(folder)


def held(folder: Path, rng: random.Random) -> Source:
    found = taken("t", table(rng.choice([100, 5_000]), 3))
    assert found is not None
    return found


def parquet(folder: Path, rng: random.Random) -> Source:
    for number, part in enumerate(parts(rng)):
        path = folder / f"{number}.parquet"
        pq.write_table(part.drop_columns(["view"]), path, row_group_size=rng.choice([50, 700, 5_000]))
    return open_source(f"parquet:{folder}", {})


def packets(rng: random.Random, count: int) -> Iterator[Packet]:
    for number in range(count):
        data = rng.choice(DATA)
        # Now and then one that the snap length or the network cut short.
        cut = data[: rng.randint(0, len(data))] if rng.random() < 0.1 else data
        yield Packet(cut, rng.choice([None, len(data), len(data) + 1_000]), number // 50, number % 50)


def captures(folder: Path, rng: random.Random) -> Source:
    for number in range(rng.randint(1, 3)):
        made = list(packets(rng, rng.choice([0, 1, 900, 6_000])))
        data = pcap(made, rng.choice("<>"), rng.random() < 0.5)
        if rng.random() < 0.5:
            blocks = (enhanced("<", rng.choice([0, 0, 1, 9]), one.seconds, one.data, one.length) for one in made)
            data = section("<") + interface("<") + interface("<", link=101) + b"".join(blocks)
        if len(made) > 1 and rng.random() < 0.5:
            data = data[: -rng.randint(1, 20)]
        path = folder / f"{number}.pcap"
        path.write_bytes(gzip.compress(data) if rng.random() < 0.3 else data)
    return open_pcap(str(folder), {"unwrap": rng.choice(["none", "all"]), "cache": str(folder / "cache")})


def damaged_captures(folder: Path, rng: random.Random) -> Source:
    data = pcap(packets(rng, 2_000))
    (folder / "x.pcap").write_bytes(mutated(data, anatomy(data), rng.randrange(1 << 30)))
    return open_pcap(str(folder / "x.pcap"), {})


def generated(folder: Path, rng: random.Random) -> Source:
    kind = rng.choice([*KINDS, "bids", "auctions", "persons"])
    return open_source(f"generate:{kind}", {"rows": str(rng.choice([1_000, 2 * BLOCK + 5_000]))})


def text(folder: Path, rng: random.Random) -> Source:
    """With records that cannot be read, and values that do not fit."""
    for number in range(rng.randint(1, 3)):
        lines = [f"2026-01-01T00:{n // 60 % 60:02}:{n % 60:02}Z,{n},w{n % 9}" for n in range(rng.choice([1, 3_000]))]
        spoiled = [rng.choice(["x,1", f"{line},9", "never,7,a", "", line]) for line in lines]
        chosen = [bad if rng.random() < 0.05 else line for line, bad in zip(lines, spoiled, strict=True)]
        (folder / f"{number}.csv").write_text("\n".join([*chosen, ""]))
    return open_source(f"csv:{folder}", {}, (Field("ts", TIMESTAMP), Field("n", BIGINT), Field("w", STRING)))


def objects(folder: Path, rng: random.Random) -> Source:
    rows = (json.dumps({"n": n, "w": f"w{n % 9}"}) if rng.random() > 0.05 else "[1]" for n in range(3_000))
    (folder / "x.json").write_text("\n".join(rows))
    return open_source(f"json:{folder}", {}, (Field("n", BIGINT), Field("w", STRING)))


SKIPPING = [arrow, streams, kept, parquet, captures, damaged_captures, generated]
MAKERS = [*SKIPPING, held, text, objects]


def told(batches: Iterator[pa.RecordBatch], columns: Sequence[str]) -> list[dict[str, Any]]:
    """Records, without flags that say nothing: batches cut differently have others."""
    rows = []
    for batch in batches:
        plain = [column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column for column in batch.columns]
        names = batch.schema.names
        if not names:
            rows += [{}] * batch.num_rows
        for row in pa.record_batch(plain, names).to_pylist() if names else ():
            rows.append({name: value for name, value in row.items() if name in columns or value})
    return rows


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("make", MAKERS)
def test_picks_are_the_records_at_their_rows(
    tmp_path: Path, make: Callable[[Path, random.Random], Source], seed: int
) -> None:
    rng = random.Random(f"{make.__name__} {seed}")
    source: Source = pickle.loads(pickle.dumps(make(tmp_path, rng)))
    columns = rng.sample(source.schema().names, rng.randint(0, len(source.schema().names)))
    records = told(source.read(whole(source), columns, 1_000), columns)
    assert len(records) == source.rows()
    for _ in range(8):
        picks, batch_rows = Picks(rng.randint(1, MOST), rng.getrandbits(64)), rng.choice([1, 10, 64, 100_000])
        edges = sorted(rng.randrange(source.rows() + 1) >> picks.k for _ in range(2))
        split = Split(*(Position(edge << picks.k) for edge in edges))
        narrow: Source = pickle.loads(pickle.dumps(source.narrowed(split)))
        found = list(read_picks(narrow, split, columns, batch_rows, picks))
        print(seed, make.__name__, split, picks, columns, batch_rows)
        assert all(
            0 < batch.num_rows <= batch_rows and batch.schema.names[: len(columns)] == columns for batch in found
        )
        assert told(iter(found), columns) == [records[row] for row in picks.rows(split.start, split.stop).tolist()]


@pytest.mark.parametrize("make", MAKERS)
def test_which_sources_skip(tmp_path: Path, make: Callable[[Path, random.Random], Source]) -> None:
    assert skipping(make(tmp_path, random.Random(1))) == (make in SKIPPING)


def test_few_records_a_batch_become_many() -> None:
    columns = [[1, 2], [3], [4, 5, 6], [7]]
    given = [pa.record_batch([pa.array(column)], ["n"]) for column in columns]
    found = [batch.column(0).to_pylist() for batch in gathered(iter(given), 3)]
    assert found == [[1, 2, 3], [4, 5, 6], [7]]
    flagged = pa.record_batch([pa.array([8]), pa.array([True])], ["n", "bad:n"])
    assert [batch.num_rows for batch in gathered(iter([given[0], flagged, given[1]]), 100)] == [2, 1, 1]
    assert list(gathered(iter(()), 3)) == []


def test_packets_as_long_as_they_can_be_are_picked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However little room there is, one packet always fits."""
    monkeypatch.setattr(picked, "BYTES", 100)
    long = [Packet(bytes(LONGEST), None, number) for number in range(24)]
    (tmp_path / "x.pcap").write_bytes(pcap(long))
    source, picks = open_pcap(str(tmp_path / "x.pcap"), {}), Picks(2, 5)
    found = told(read_picks(source, whole(source), ["captured", "ts"], 100, picks), ["captured", "ts"])
    assert found == [{"captured": LONGEST, "ts": row * 1_000_000} for row in picks.rows(0, 24).tolist()]


def test_row_groups_without_picks_are_not_read(tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": np.arange(4_096)}), tmp_path / "x.parquet", row_group_size=64)
    source, picks = open_source(f"parquet:{tmp_path}", {}), Picks(12, 7)
    (row,) = picks.rows(0, 4_096).tolist()
    whole_file = bytearray((tmp_path / "x.parquet").read_bytes())
    for number in range(64):
        column = pq.ParquetFile(tmp_path / "x.parquet").metadata.row_group(number).column(0)
        if number != row // 64:
            begin = column.dictionary_page_offset or column.data_page_offset
            whole_file[begin : begin + column.total_compressed_size] = b"\xff" * column.total_compressed_size
    (tmp_path / "x.parquet").write_bytes(whole_file)
    (found,) = read_picks(source, whole(source), ["n"], 100, picks)
    assert found.column(0).to_pylist() == [row]


def test_a_block_is_generated_once_for_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    source: Any = open_source("generate:uniform", {"rows": str(BLOCK), "seed": "99"})
    made, block = [], type(source).block
    monkeypatch.setattr(type(source), "block", lambda self, number: made.append(number) or block(self, number))
    for split in source.splits(START, source.rows(), 4):
        list(read_picks(source, split, ["a"], 100, Picks(4, 1)))
    assert made == [0]


# -- damaged Arrow files


def damaged(folder: Path, change: Callable[[bytearray], None], column: pa.Array, stream: bool = False) -> Source:
    path = folder / "x.arrow"
    batch = pa.record_batch([column], ["c"])
    with (ipc.new_stream if stream else ipc.new_file)(str(path), batch.schema) as writer:
        writer.write_batch(batch)
    data = bytearray(path.read_bytes())
    change(data)
    path.write_bytes(data)
    return open_arrow(str(path), {})


def swapped(old: bytes, new: bytes) -> Callable[[bytearray], None]:
    def change(data: bytearray) -> None:
        at = data.index(old)
        data[at : at + len(old)] = new

    return change


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("column", "old", "new"),
    [
        pytest.param(
            pa.array(["abc"] * 64), np.arange(30, 39, 3, np.int32), np.array([30, 1 << 30, 36], np.int32), id="beyond"
        ),
        pytest.param(
            pa.array(["abc"] * 64),
            np.arange(30, 39, 3, np.int32),
            np.array([30, -(1 << 30), 36], np.int32),
            id="before",
        ),
        pytest.param(
            pa.array(["abc"] * 64, pa.large_string()),
            np.arange(30, 39, 3, np.int64),
            np.array([30, 1 << 60, 36], np.int64),
            id="large",
        ),
        pytest.param(
            pa.DictionaryArray.from_arrays(
                pa.array(np.arange(64, dtype=np.int32)), pa.array([f"w{n}" for n in range(64)])
            ),
            np.arange(10, 13, dtype=np.int32),
            np.array([10, 1 << 20, 12], np.int32),
            id="index",
        ),
        pytest.param(pa.array(["größe"] * 64), "größe".encode(), b"gr\xff\xff\xff\xffe", id="not UTF-8"),
    ],
)
def test_what_is_taken_of_a_damaged_file_is_looked_at(
    tmp_path: Path, column: pa.Array, old: Any, new: Any, stream: bool
) -> None:
    as_bytes = [part if isinstance(part, bytes) else part.tobytes() for part in (old, new)]
    source = damaged(tmp_path, swapped(*as_bytes), column, stream)
    messages = []
    for key in range(40):
        try:
            list(read_picks(source, whole(source), ["c"], 100, Picks(1, key)))
        except RunError as error:
            messages.append(error.fact)
    assert messages
    assert all("cannot read" in message and "x.arrow" in message for message in messages)
    with pytest.raises(RunError, match="cannot read"):
        list(source.read(whole(source), ["c"], 100))


def test_views_of_text_that_are_null_may_point_anywhere(tmp_path: Path) -> None:
    """Arrow follows them."""
    words, null = ["a text of more than twelve letters"] * 64, np.array([7, 77, 777, 0], np.int32)
    column = pa.array([*words, None, *words], pa.string_view())
    views = np.frombuffer(column.buffers()[1], np.int32).reshape(-1, 4)
    row = len(words)
    assert not views[row].any()
    around = [views[row - 1 : row + 2].tobytes(), np.stack([views[row - 1], null << 22, views[row + 1]]).tobytes()]
    source, picks = damaged(tmp_path, swapped(*around), column), Picks(1, 3)
    expected = [*words, None, *words]
    assert [row["c"] for row in told(source.read(whole(source), ["c"], 100), ["c"])] == expected
    found = told(read_picks(source, Split(START, Position(128)), ["c"], 100, picks), ["c"])
    assert [row["c"] for row in found] == [expected[row] for row in picks.rows(0, 128).tolist()]


@pytest.mark.parametrize("seed", range(60))
def test_any_damage_ends_in_a_message_or_in_records(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    path, part = tmp_path / "x.arrow", table(640, 1)
    with rng.choice([ipc.new_file, ipc.new_stream])(str(path), part.schema) as writer:
        writer.write_table(part, max_chunksize=rng.choice([100, 640]))
    source: Any = open_arrow(str(path), {})
    assert source.rows() == 640
    data, stat = bytearray(path.read_bytes()), path.stat()
    for _ in range(rng.choice([1, 20, 400])):
        data[rng.randrange(len(data))] = rng.randrange(256)
    path.write_bytes(data)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    messages = []
    for columns in (source.schema().names, ["name"], ["kind"], ["n", "long"]):
        try:
            found = list(read_picks(source, whole(source), columns, 64, Picks(rng.randint(1, 5), seed)))
        except PenstockError as error:
            messages.append(error.fact)
        else:
            for batch in found:
                batch.validate(full=True)
    assert all("x.arrow" in message for message in messages)
