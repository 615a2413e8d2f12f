"""Files of text: the same records as Parquet however packed and cut, growing folders, unpacking and its failures."""

from __future__ import annotations

import bz2
import errno
import gzip
import json
import lzma
import os
import pickle
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
import pytest

from penstock.errors import RunError, SourceError
from penstock.logical.query import Field
from penstock.logical.types import BIGINT, BOOLEAN, DOUBLE, INET, INT, STRING, TIMESTAMP, Kind
from penstock.sources import unpack
from penstock.sources.base import GrowingSource, Source, Split, fields, growing
from penstock.sources.registry import open_source
from penstock.sources.text import blocks as text_blocks
from penstock.sources.text.source import TextSource
from support.entries import relogged

COLUMNS = (
    Field("ts", TIMESTAMP),
    Field("src", INET),
    Field("name", STRING),
    Field("length", INT),
    Field("total", BIGINT),
    Field("share", DOUBLE),
    Field("flag", BOOLEAN),
)
NAMES = [field.name for field in COLUMNS]
PACKERS = {
    "": lambda data: data,
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".bz2": bz2.compress,
    ".zst": lambda data: pa.compress(data, codec="zstd", asbytes=True),
}


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("unpacked")
    monkeypatch.setattr(unpack.tempfile, "gettempdir", lambda: str(folder))
    return folder / f"penstock-unpacked-{os.getuid()}"


def sample(rows: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    words = np.array(["udp", "tcp", 'say "hi"', "two\nlines", "größe", "a,b", " ", "\\", "x" * 40])

    def holed(values: Any, kind: pa.DataType | None = None) -> pa.Array:
        return pa.array(values, kind, mask=rng.random(rows) < 0.1)

    times = rng.integers(-(10**15), 4 * 10**15, rows)
    columns = [
        pa.array(times, pa.int64()).cast(pa.timestamp("us", tz="UTC")),
        holed(
            [f"10.{i % 256}.0.{i % 7}" if i % 5 else f"fe80::{i:x}" for i in rng.integers(1, 999, rows)], pa.string()
        ),
        holed(words[rng.integers(0, len(words), rows)]),
        holed(rng.integers(-(2**31), 2**31, rows), pa.int32()),
        holed(rng.integers(-(2**63), 2**63, rows), pa.int64()),
        holed(rng.standard_normal(rows) * 10.0 ** rng.integers(-20, 20, rows)),
        holed(rng.random(rows) < 0.5),
    ]
    return pa.table(columns, names=NAMES)


def as_csv(table: pa.Table) -> bytes:
    out = pa.BufferOutputStream()
    arrow_csv.write_csv(table, out)
    return out.getvalue().to_pybytes()


def as_json(table: pa.Table) -> bytes:
    stamps = [None if v is None else v.isoformat() for v in table["ts"].to_pylist()]
    rows = table.set_column(0, "ts", pa.array(stamps, pa.string())).to_pylist()
    return "".join(json.dumps({k: v for k, v in row.items() if v is not None}) + "\n" for row in rows).encode()


WRITERS = {"csv": as_csv, "json": as_json}


def joined(source: Source, splits: list[Split], columns: list[str], batch_rows: int) -> pa.Table:
    kinds = {"src": pa.string()}
    wanted = pa.schema([(name, kinds.get(name, source.schema().field(name).type)) for name in columns])
    batches = []
    for split in splits:
        for batch in pickle.loads(pickle.dumps(source.narrowed(split))).read(split, columns, batch_rows):
            assert 0 < batch.num_rows <= batch_rows
            assert batch.schema.names == columns
            batches.append(batch.cast(wanted))
    return pa.Table.from_batches(batches, wanted)


@pytest.mark.parametrize("seed", range(20))
def test_the_same_records_from_any_format(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    monkeypatch.setattr(text_blocks, "BLOCK", rng.choice([300, 5000, 1 << 20]))
    monkeypatch.setattr(text_blocks, "STRIDE", rng.choice([1, 7, 64]))
    monkeypatch.setattr(text_blocks, "POINTS", rng.choice([3, 1024]))
    tables = [sample(rng.choice([0, 1, 7, 100, 500]), seed * 10 + i) for i in range(rng.randint(1, 4))]
    sources = []
    for scheme in ("parquet", "csv", "json"):
        (tmp_path / scheme).mkdir()
        for number, table in enumerate(tables):
            if scheme == "parquet":
                pq.write_table(table, tmp_path / scheme / f"{number}.parquet", row_group_size=rng.choice([1, 50, 500]))
            else:
                suffix = rng.choice(list(PACKERS))
                data = PACKERS[suffix](WRITERS[scheme](table))
                (tmp_path / scheme / f"{number}.{scheme}{suffix}").write_bytes(data)
        sources.append(open_source(f"{scheme}:{tmp_path / scheme}", {}, COLUMNS))
    expected = pa.concat_tables(tables)
    columns = rng.sample(NAMES, rng.randint(1, len(NAMES)))
    for source in sources:
        assert source.rows() == expected.num_rows
        position, splits = 0, []
        while position < source.rows():
            end = source.cut(position, rng.randint(1, 300))
            assert position < end <= source.rows()
            splits += source.splits(position, end, rng.randint(1, 5))
            position = end
        assert [s.start for s in splits] == [0, *(s.stop for s in splits)][: len(splits)]
        result = joined(source, splits, columns, rng.choice([1, 10, 64, 100_000]))
        assert result.to_pylist() == expected.select(columns).to_pylist(), source


@pytest.mark.parametrize("scheme", ["csv", "json"])
@pytest.mark.parametrize("suffix", PACKERS)
def test_every_packing(tmp_path: Path, scheme: str, suffix: str, own_cache: Path) -> None:
    table = sample(300, 1)
    path = tmp_path / f"a.{scheme}{suffix}"
    path.write_bytes(PACKERS[suffix](WRITERS[scheme](table)))
    source = open_source(f"{scheme}:{path}", {}, COLUMNS)
    assert growing(source)
    assert joined(source, source.splits(0, 300, 3), NAMES, 50).to_pylist() == table.to_pylist()
    (entry,) = source.entries
    assert (entry.path, entry.size) == (str(path), path.stat().st_size)
    where = source.place(17)
    assert where.startswith(f"{path.name}, record 18, byte ")
    assert where.endswith(" of its text") == bool(suffix)
    unpacked = sorted(own_cache.glob("*")) if own_cache.exists() else []
    assert len(unpacked) == bool(suffix)
    for text in unpacked:  # a task unpacks it again
        text.unlink()
    assert joined(source, [Split(5, 9)], NAMES, 50).to_pylist() == table.slice(5, 4).to_pylist()


@pytest.mark.parametrize("scheme", ["csv", "json"])
def test_a_folder_grows(tmp_path: Path, scheme: str) -> None:
    write, tables = WRITERS[scheme], {name: sample(rows, rows) for rows, name in enumerate("abcdefg", 3)}

    def put(name: str, suffix: str = "") -> None:
        (tmp_path / f"{name}.{scheme}{suffix}").write_bytes(PACKERS[suffix](write(tables[name[-1]])))

    source = open_source(f"{scheme}:{tmp_path}", {}, COLUMNS)
    assert growing(source)
    assert (source.rows(), source.entries, source.arrivals()) == (0, (), [])
    put("d")
    put("b", ".gz")
    source = source.extended(source.arrivals())
    for name in ("c", ".e", "_e"):
        put(name)
    put("a", ".zst")
    for ending in ("tmp", "part", "crdownload"):
        (tmp_path / f"f.{scheme}.{ending}").write_bytes(b"half")
    came = relogged(source.arrivals())
    assert [Path(entry.path).name for entry in came] == [f"a.{scheme}.zst", f"c.{scheme}"]
    longer: GrowingSource = source.extended(came)
    assert longer.arrivals() == []
    expected = pa.concat_tables([tables[name] for name in "bdac"])
    assert longer.rows() == expected.num_rows
    assert joined(longer, [Split(0, longer.rows())], NAMES, 4).to_pylist() == expected.to_pylist()
    logged = relogged(longer.entries)
    again = open_source(f"{scheme}:{tmp_path}", {}, COLUMNS).restarted(logged)
    assert again.entries == longer.entries
    assert again.fingerprint() == source.fingerprint()
    assert joined(again, again.splits(3, 15, 3), NAMES, 4).to_pylist() == expected.slice(3, 12).to_pylist()
    assert again.place(4).startswith(f"d.{scheme}, record 1,") == (tables["b"].num_rows == 4)


def test_a_restart_counts_nothing_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.csv").write_bytes(as_csv(sample(50, 1)))
    entries = open_source(f"csv:{tmp_path}", {}, COLUMNS).entries  # type: ignore[attr-defined]

    def refuse(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr("penstock.sources.text.source._counted", refuse)
    source = open_source(f"csv:{tmp_path}", {}, COLUMNS).restarted(entries)  # type: ignore[attr-defined]
    assert source.rows() == 50
    assert source.arrivals() == []
    assert joined(source, [Split(10, 40)], NAMES, 9).num_rows == 30


def test_narrowed_sources_are_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_blocks, "STRIDE", 1)
    for number in range(40):
        (tmp_path / f"{number:02}.csv").write_bytes(as_csv(sample(50, number)))
    source = open_source(f"csv:{tmp_path}", {}, COLUMNS)
    narrow = source.narrowed(Split(120, 160))
    assert isinstance(narrow, TextSource)
    assert [Path(file.path).name for file in narrow.files] == ["02.csv", "03.csv"]
    assert len(pickle.dumps(narrow)) < len(pickle.dumps(source)) / 5
    assert source.narrowed(Split(2000, 2000)).rows() == 2000
    assert narrow.place(150) == source.place(150)


def test_changed_files(tmp_path: Path) -> None:
    for name in ("a.csv", "b.csv.gz"):
        path = tmp_path / name
        pack = PACKERS[path.suffix if path.suffix == ".gz" else ""]
        data = pack(as_csv(sample(20, 1)))
        path.write_bytes(data)
        source = open_source(f"csv:{path}", {}, COLUMNS)
        (entry,) = source.entries  # type: ignore[attr-defined]
        os.utime(path, (1, 1))  # another time, the same bytes
        assert source.changed(entry) is None  # type: ignore[attr-defined]
        assert joined(source, [Split(0, 20)], NAMES, 9).num_rows == 20
        changed = bytearray(data)
        changed[len(data) // 2] ^= 1
        path.write_bytes(changed)
        assert source.changed(entry) == "has changed"  # type: ignore[attr-defined]
        with pytest.raises(RunError, match=f"{name}' has changed since the run began"):
            list(source.read(Split(0, 20), NAMES, 9))
        path.unlink()
        assert source.changed(entry) == "is missing"  # type: ignore[attr-defined]
        with pytest.raises(RunError, match=f"{name}' is missing since the run began"):
            list(source.read(Split(0, 20), NAMES, 9))
        assert source.place(3) == f"{name}, record 4"


def test_fingerprints_follow_options_and_columns(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(as_csv(sample(5, 1)))
    first = open_source(f"csv:{tmp_path}", {}, COLUMNS).fingerprint()
    (tmp_path / "b.csv").write_bytes(as_csv(sample(5, 2)))
    assert open_source(f"csv:{tmp_path}", {"cache": "/nowhere"}, COLUMNS).fingerprint() == first
    assert open_source(f"csv:{tmp_path}", {"null": "-"}, COLUMNS).fingerprint() != first
    assert open_source(f"csv:{tmp_path}", {}, COLUMNS[:3]).fingerprint() != first


def test_files_that_do_not_fit(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(as_csv(sample(5, 1)))
    source = open_source(f"csv:{tmp_path}", {}, COLUMNS)
    (tmp_path / "b.csv").write_bytes(as_csv(sample(5, 1).drop_columns(["total"])))
    with pytest.raises(RunError, match=r"column 'total' is not in the header of '.*b.csv'"):
        source.arrivals()  # type: ignore[attr-defined]
    with pytest.raises(SourceError, match=r"column 'total' is not in the header of '.*b.csv'"):
        open_source(f"csv:{tmp_path}", {}, COLUMNS).rows()
    with pytest.raises(SourceError, match="declare the stream's columns"):
        open_source(f"csv:{tmp_path}/later/*.csv", {})


def test_a_file_that_grows_while_it_is_read_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = open_source(f"csv:{tmp_path}", {}, COLUMNS)
    path = tmp_path / "a.csv"
    path.write_bytes(as_csv(sample(5, 1)))
    count = text_blocks.index_text

    def slow(*given: Any) -> Any:
        with path.open("ab") as file:
            file.write(b"more")
        return count(*given)

    with monkeypatch.context() as patched:
        patched.setattr("penstock.sources.text.source.index_text", slow)
        assert source.arrivals() == []  # type: ignore[attr-defined]
        with pytest.raises(SourceError, match="is still being written"):
            open_source(f"csv:{tmp_path}", {}, COLUMNS).rows()
    assert len(source.arrivals()) == 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zst", ".bz2"])
def test_damaged_archives(tmp_path: Path, suffix: str, own_cache: Path) -> None:
    table = sample(3000, 1)
    whole = PACKERS[suffix](as_csv(table))
    middle = bytearray(whole)
    middle[len(whole) // 2 : len(whole) // 2 + 40] = b"\xaa" * 40
    path = tmp_path / f"a.csv{suffix}"
    source = open_source(f"csv:{tmp_path}", {}, COLUMNS)
    damaged = [whole[:-9], whole[: len(whole) // 2], b"no archive at all"]
    if suffix != ".zst":  # what Arrow writes has no checksum: other bytes decode to other text, unnoticed
        damaged.append(bytes(middle))
    for data in damaged:
        path.write_bytes(data)
        with pytest.raises(SourceError, match=rf"a.csv{suffix}' is damaged (near byte \d+|at its start)"):
            open_source(f"csv:{path}", {}, COLUMNS).rows()
        with pytest.raises(RunError, match=rf"a.csv{suffix}' is damaged (near byte \d+|at its start)"):
            source.arrivals()  # type: ignore[attr-defined]
        assert not own_cache.exists() or list(own_cache.iterdir()) == []
    path.write_bytes(b"")
    assert open_source(f"csv:{path}", {}, COLUMNS).rows() == 0


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, cache = tmp_path / "a.csv.gz", tmp_path / "cache"
    path.write_bytes(gzip.compress(as_csv(sample(100, 1))))
    real = open

    class Full:
        def __init__(self, file: Any) -> None:
            self.file = file

        def __enter__(self) -> Full:
            return self

        def __exit__(self, *_: object) -> None:
            self.file.close()

        def write(self, data: bytes) -> None:
            self.file.write(data[:10])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def limited(name: Any, mode: str = "r", **more: Any) -> Any:
        opened = real(name, mode, **more)
        return Full(opened) if str(name).startswith(str(cache)) and "w" in mode else opened

    monkeypatch.setattr("builtins.open", limited)
    source = open_source(f"csv:{path}", {"cache": str(cache)}, COLUMNS)
    with pytest.raises(RunError, match=r"cannot unpack '.*a.csv.gz' into '.*cache': No space left"):
        source.rows()
    assert list(cache.iterdir()) == []
    monkeypatch.undo()
    assert source.rows() == 100


def test_the_cache_of_another_user_is_not_trusted(
    tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(as_csv(sample(5, 1))))
    other = os.getuid() + 1
    own_cache.with_name(f"penstock-unpacked-{other}").mkdir(parents=True)
    monkeypatch.setattr(unpack.os, "getuid", lambda: other)
    with pytest.raises(SourceError, match="belongs to another user"):
        open_source(f"csv:{path}", {}, COLUMNS).rows()


DATA = Path(__file__).parents[5] / "shared" / "data"


@pytest.mark.skipif(not DATA.exists(), reason="real data are not here")
def test_real_files(tmp_path: Path) -> None:
    ticks = open_source(f"csv:{DATA}/ticks/us_equity_trades_2013-10-07_11.csv.gz", {"cache": str(tmp_path)})
    assert ticks.rows() == 2_793_812
    clicks = open_source(f"json:{DATA}/clicks/wikiticker-2015-09-12-sampled.json.gz", {"cache": str(tmp_path)})
    assert clicks.rows() == 39_244
    names = clicks.schema().names
    with gzip.open(f"{DATA}/clicks/wikiticker-2015-09-12-sampled.json.gz", "rt") as file:
        lines = [json.loads(line) for line in file]
    rows = [row for batch in clicks.read(Split(0, clicks.rows()), names, 5000) for row in batch.to_pylist()]
    for row, line in zip(rows, lines, strict=True):
        assert "unreadable:" not in row
        assert {name: row[name] for name in names if name != "time"} == {n: line.get(n) for n in names if n != "time"}


@pytest.mark.skipif(not DATA.exists(), reason="real data are not here")
def test_a_zeek_log_as_text(tmp_path: Path) -> None:
    time = pa.timestamp("us", tz="UTC")
    plain = {Kind.STRING: pa.string(), Kind.TIMESTAMP: time, Kind.DOUBLE: pa.float64(), Kind.BOOLEAN: pa.bool_()}
    table = pq.ParquetFile(DATA / "flows" / "zeek_conn_2022-03.parquet").read_row_group(0).slice(0, 50_000)
    parquet = tmp_path / "conn.parquet"
    pq.write_table(table, parquet)
    columns = fields(open_source(f"parquet:{parquet}", {}).schema())
    texts = []
    for name in table.column_names:
        column = table[name]
        if pa.types.is_timestamp(column.type):
            micros = column.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64()).to_pylist()
            texts.append([f"{t // 10**6}.{t % 10**6:06}" for t in micros])
        else:
            texts.append(
                [
                    "-" if v is None else {True: "T", False: "F"}.get(v, v) if isinstance(v, bool) else v
                    for v in column.to_pylist()
                ]
            )
    log = "#separator \\x09\n#path\tconn\n" + "".join(
        "\t".join(map(str, row)) + "\n" for row in zip(*texts, strict=True)
    )
    (tmp_path / "conn.log").write_text(log + "#close\n")
    options = {"delimiter": "tab", "comment": "#", "null": "-", "timestamp_format": "epoch", "quote": "none"}
    names = [field.name for field in columns]
    answers = [
        pa.Table.from_batches(
            batch.cast(schema) for batch in source.read(Split(0, len(table)), names, 7000)
        ).to_pylist()
        for source in (open_source(f"parquet:{parquet}", {}), open_source(f"csv:{tmp_path}/conn.log", options, columns))
        for schema in [pa.schema([(f.name, plain.get(f.type.kind, pa.int64())) for f in columns])]
    ]
    assert answers[0] == answers[1]
