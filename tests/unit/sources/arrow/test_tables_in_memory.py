"""Tables in memory: what is taken of them, what a checkpoint keeps, and digests that go by content alone."""

from __future__ import annotations

import pickle
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from penstock.errors import RunError, SourceError
from penstock.sources.arrow.table import KeptTable, TableSource, content_digest, taken
from penstock.sources.base import TYPE_KEY, Split, fields, growing, kept_sources, whole
from penstock.sources.generate.source import open_generate

WORDS = ["udp", "tcp", None, "", "größe", "a longer text than twelve letters"]


class Exported:
    """A table of some other library, which knows no more of Arrow than its C interface."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested)


def sample(rows: int, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    words = pa.array(WORDS).take(pa.array(rng.integers(0, len(WORDS), rows)))
    return pa.table(
        {
            "ts": pa.array(np.arange(rows) * 10, pa.timestamp("ms")),
            "n": pa.array(rng.integers(0, 9, rows), pa.uint16(), mask=rng.random(rows) < 0.2),
            "x": pa.array(rng.random(rows), mask=rng.random(rows) < 0.2),
            "flag": pa.array(rng.random(rows) < 0.5, mask=rng.random(rows) < 0.2),
            "name": words,
            "kind": words.dictionary_encode(),
        }
    )


def table_of(data: Any) -> TableSource:
    found = taken("t", data)
    assert found is not None
    return found


def read(source: Any, split: Split, columns: list[str], batch_rows: int = 64) -> list[dict[str, Any]]:
    return [row for batch in source.read(split, columns, batch_rows) for row in batch.to_pylist()]


@pytest.mark.parametrize("rows", [0, 1, 100, 70_000])
def test_a_table_and_what_a_checkpoint_keeps_of_it_read_alike(tmp_path: Path, rows: int) -> None:
    table = sample(rows)
    source = table_of(table)
    kept = pickle.loads(pickle.dumps(source.kept(tmp_path)))
    rng = random.Random(rows)
    for one in (source, kept):
        assert one.rows() == rows
        assert fields(one.schema()) == fields(source.schema())
        assert not growing(one)
        assert one.fingerprint() == source.fingerprint()
        assert read(one, whole(one), table.column_names, 9_999) == table.to_pylist()
        start = rng.randint(0, rows)
        split = Split(start, rng.randint(start, rows))
        assert (
            read(one.narrowed(split), split, ["kind", "n"])
            == table.select(["kind", "n"])[split.start : split.stop].to_pylist()
        )
        assert sum(batch.num_rows for batch in one.read(split, [], 7)) == split.stop - split.start
        if rows:
            assert one.place(rows - 1) == f"table 't', row {rows}"


def test_the_same_content_is_kept_once_and_mended(tmp_path: Path) -> None:
    source = table_of(sample(100))
    source.kept(tmp_path)
    (path,) = (tmp_path / "tables").iterdir()
    before = path.stat()
    assert isinstance(source.kept(tmp_path), KeptTable)
    assert path.stat().st_mtime_ns == before.st_mtime_ns
    for damaged in (b"", path.read_bytes()[:500], path.read_bytes().replace("größe".encode(), b"groesse")):
        path.write_bytes(damaged)
        assert read(source.kept(tmp_path), Split(0, 100), ["name"]) == sample(100).select(["name"]).to_pylist()
    assert [found.name for found in (tmp_path / "tables").iterdir()] == [path.name]
    other = open_generate("uniform", {"rows": "10"})
    assert kept_sources(tmp_path, {"t": source, "g": other})["g"] is other


def test_a_checkpoint_that_cannot_keep_it(tmp_path: Path) -> None:
    (tmp_path / "tables").write_text("in the way")
    with pytest.raises(RunError, match="cannot keep a table in"):
        table_of(sample(3)).kept(tmp_path)


def test_digests_go_by_content() -> None:
    """However a table is cut, and whatever stands under its NULLs."""
    table, rng = sample(1000), random.Random(3)
    digest = content_digest(table)
    for _ in range(20):
        cuts = sorted({0, 1000, *(rng.randint(0, 1000) for _ in range(rng.randint(0, 5)))})
        pieces = [table.slice(a, b - a) for a, b in pairwise(cuts)]
        assert content_digest(pa.concat_tables(pieces)) == digest
    under = pa.array([1, 7, 3], mask=np.array([False, True, False]))
    other = pa.Array.from_buffers(under.type, 3, [under.buffers()[0], pa.array([1, 8, 3]).buffers()[1]])
    assert content_digest(pa.table({"n": under})) == content_digest(pa.table({"n": other}))
    for changed in (
        table.slice(0, 999),
        table.rename_columns(["ts", "n", "x", "flag", "kind", "name"]),
        table.set_column(1, "n", table["n"].cast(pa.int32())),
        table.set_column(1, "n", pc.fill_null(table["n"], 0)),
        table.set_column(3, "flag", pc.invert(table["flag"])),
        table.set_column(4, "name", pa.chunked_array([["x", *table["name"].to_pylist()[1:]]])),
    ):
        assert content_digest(changed) != digest
    shifted = [pa.table({"a": pa.array(texts)}) for texts in (["ab", "c"], ["a", "bc"], ["abc", ""])]
    assert len({content_digest(one) for one in shifted}) == 3


@pytest.mark.parametrize("wrap", [Exported, lambda table: table.to_reader(7), lambda table: table.to_batches()[0]])
def test_whatever_hands_out_arrow(wrap: Any) -> None:
    table = sample(50)
    assert table_of(wrap(table)).digest == table_of(table).digest
    assert read(table_of(wrap(table)), Split(0, 50), table.column_names) == table.to_pylist()


def test_types_of_other_libraries() -> None:
    words = pa.array(["a", None, "b", "a"])
    table = pa.table(
        {
            "view": words.cast(pa.string_view()),
            "large": words.cast(pa.large_string()),
            "category": pa.DictionaryArray.from_arrays(
                pa.array([0, None, 1, 0], pa.uint32()), pa.array(["a", "b"], pa.large_string())
            ),
            "holed": pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 0], pa.int8()), pa.array(["a", None, "b"])),
            "coded": pa.array([7, None, 8, 7]).dictionary_encode(),
            "list": [[1], [2], [], None],
        }
    )
    source = table_of(table)
    assert {f.name: str(f.type) for f in fields(source.schema())} == {
        "view": "STRING", "large": "STRING", "category": "STRING", "holed": "STRING", "coded": "BIGINT",
    }  # fmt: skip
    names = ["view", "large", "category", "holed", "coded"]
    assert read(source, Split(0, 4), names) == table.select(names).to_pylist()
    assert pa.types.is_dictionary(source.table["category"].type)


def test_marks_of_addresses_stay() -> None:
    schema = pa.schema([pa.field("src", pa.uint32(), metadata={TYPE_KEY: b"INET", b"other": b"x"})])
    source = table_of(pa.table([pa.array([1, 2])], schema=schema))
    assert [str(field.type) for field in fields(source.schema())] == ["INET"]


def test_pandas() -> None:
    frame = pd.DataFrame({"x": [1.5, np.nan], "name": ["a", None], "c": pd.Categorical(["u", "v"])})
    frame.index = pd.Index(pd.to_datetime(["2026-01-01", "2026-01-02"]), name="ts")
    source = table_of(frame)
    assert source.table.column_names == ["x", "name", "c", "ts"]
    assert source.table["x"].to_pylist() == [1.5, None]
    assert table_of(frame.reset_index(drop=True)).table.column_names == ["x", "name", "c"]


def test_what_is_no_table() -> None:
    assert taken("t", [1, 2]) is None
    assert taken("t", {"n": [1]}) is None
    with pytest.raises(SourceError, match=r"table 't' cannot be read: Conversion failed for column n with type object"):
        taken("t", pd.DataFrame({"n": [1, "x"]}))
    with pytest.raises(SourceError, match="table 't' cannot be read"):
        taken("t", pa.chunked_array([[1, 2]]))
    with pytest.raises(SourceError, match="column 'n' occurs twice in table 't'"):
        taken("t", pa.table([[1], [2]], names=["n", "n"]))


def test_polars() -> None:
    polars = pytest.importorskip("polars")
    table = sample(200)
    source = table_of(polars.from_arrow(table))
    assert read(source, Split(0, 200), table.column_names) == table.to_pylist()
