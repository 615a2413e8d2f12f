"""What Parquet, CSV and JSON files hold is what was staged, as other people's readers see it, and Spark too."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.json as arrow_json
import pyarrow.parquet as pq
import pytest

from penstock.errors import ConfigError, RunError
from penstock.sinks.base import Owner
from penstock.sinks.csv import CsvSink, as_text
from penstock.sinks.folder import FolderSink
from penstock.sinks.json import CONTROLS, SLICE_ROWS, JsonSink
from penstock.sinks.parquet import ParquetSink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KINDS = (ParquetSink, CsvSink, JsonSink)
TIME = pa.timestamp("us", tz="UTC")
SECOND = 1_000_000
STRINGS = ["plain", None, "", "ü — 水 🌊", 'a "quoted" b', "two\nlines", "cr\r\nlf, comma", " \\n \\ ", "NULL", "nan"]
SCHEMA = pa.schema(
    [
        ("s", pa.string()),
        ("i", pa.int64()),
        ("small", pa.int8()),
        ("f", pa.float64()),
        ("b", pa.bool_()),
        ("window_start", TIME),
        ("window_end", TIME),
    ]
)


def rows() -> pa.Table:
    """Every type with what is hard about it; strings as the engine gives them, as a dictionary."""
    times = [-1, 0, -62_135_596_800 * SECOND, 253_402_300_799 * SECOND + 999_999, 1_700_000_000_123_456]
    plain = pa.table(
        {
            "s": STRINGS,
            "i": [1, None, -(2**63), 2**63 - 1, 2**53 + 1, 0, 5, 6, 7, 8],
            "small": [None, -128, 127, 0, 1, 2, 3, 4, 5, 6],
            "f": [1.0, None, math.nan, math.inf, -math.inf, 0.1, 5e-324, 1e300, -1 / 3, 1e20],
            "b": [True, False, None, True, False, True, True, False, True, False],
            "window_start": [*times, *times],
            "window_end": [*reversed(times), *times],
        },
        schema=pa.schema([(f.name, pa.int64() if f.type == TIME else f.type) for f in SCHEMA]),
    ).cast(SCHEMA)
    return plain.set_column(0, "s", plain["s"].dictionary_encode())


def made(kind: type[FolderSink], folder: Path, *tables: pa.Table) -> FolderSink:
    sink = kind("q", str(folder), tables[0].schema if tables and tables[0].schema != rows().schema else SCHEMA)
    sink.prepare(Owner("a", str(folder / "no-checkpoint")), overwrite=False)
    sink.publish(0, [tuple(sink.stage(table, 0, part, "x")) for part, table in enumerate(tables)])
    return sink


def only_file(folder: Path) -> Path:
    (path,) = (path for path in folder.iterdir() if path.name.startswith("q-"))
    return path


def same(ours: list[Any], theirs: list[Any]) -> None:
    """Equal, with NaN equal to itself."""
    assert [repr(value) for value in theirs] == [repr(value) for value in ours]


def iso(value: Any) -> str | None:
    return value and f"{value.replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


def test_parquet_reads_back(tmp_path: Path) -> None:
    made(ParquetSink, tmp_path, rows())
    path = only_file(tmp_path)
    assert path.name == "q-00000000-0000.parquet"
    found = pq.read_table(path)
    assert found.schema.equals(SCHEMA)
    for name in SCHEMA.names:
        same(rows()[name].to_pylist(), found[name].to_pylist())


def test_csv_is_what_the_standard_reader_expects(tmp_path: Path) -> None:
    made(CsvSink, tmp_path, rows())
    with open(only_file(tmp_path), newline="") as file:
        header, *lines = csv.reader(file)
    assert header == SCHEMA.names
    columns = dict(zip(header, zip(*lines, strict=True), strict=True))
    assert list(columns["s"]) == [text or "" for text in STRINGS]
    assert list(columns["i"]) == ["" if v is None else str(v) for v in rows()["i"].to_pylist()]
    assert [v and float(v) for v in columns["f"]][3:] == rows()["f"].to_pylist()[3:]
    assert columns["f"][:3] == ("1", "", "nan")
    assert columns["b"][:3] == ("true", "false", "")
    assert list(columns["window_start"]) == [iso(v) for v in rows()["window_start"].to_pylist()]
    assert columns["window_start"][:3] == (
        "1969-12-31T23:59:59.999999Z", "1970-01-01T00:00:00.000000Z", "0001-01-01T00:00:00.000000Z",
    )  # fmt: skip


def test_csv_tells_null_from_the_empty_string(tmp_path: Path) -> None:
    made(CsvSink, tmp_path, rows())
    lines = only_file(tmp_path).read_text(encoding="utf-8").splitlines()
    assert lines[2].startswith(",,-128,,false,")
    assert lines[3].startswith('"",')
    options = arrow_csv.ConvertOptions(
        column_types=SCHEMA, null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
    )
    parsing = arrow_csv.ParseOptions(newlines_in_values=True)
    found = arrow_csv.read_csv(only_file(tmp_path), parse_options=parsing, convert_options=options)
    for name in SCHEMA.names:
        same(rows()[name].to_pylist(), found[name].to_pylist())


def test_csv_in_duckdb_and_pandas(tmp_path: Path) -> None:
    made(CsvSink, tmp_path, rows())
    path = str(only_file(tmp_path))
    types = "{'s': 'VARCHAR', 'i': 'BIGINT', 'small': 'TINYINT', 'f': 'DOUBLE', 'b': 'BOOLEAN'}"
    read = f"read_csv('{path}', header = true, new_line = '\\n', types = {types})"
    found = duckdb.sql(f"SELECT s, i, f, b, epoch_us(window_start::TIMESTAMPTZ) FROM {read}").fetchall()
    strings, integers, floats, flags, times = map(list, zip(*found, strict=True))
    assert [s or None for s in strings] == [s or None for s in STRINGS]
    assert integers == rows()["i"].to_pylist()
    same(rows()["f"].to_pylist(), floats)
    assert flags == rows()["b"].to_pylist()
    assert times == rows()["window_start"].cast(pa.int64()).to_pylist()
    frame = pd.read_csv(path, dtype={"i": "Int64"}, keep_default_na=False, na_values={"i": [""]})
    assert frame["s"].tolist() == [s or "" for s in STRINGS]
    assert frame["i"].dropna().tolist() == [v for v in rows()["i"].to_pylist() if v is not None]


def test_json_is_what_the_standard_reader_expects(tmp_path: Path) -> None:
    made(JsonSink, tmp_path, rows())
    text = only_file(tmp_path).read_text(encoding="utf-8")
    assert text.endswith("}\n")
    found = [json.loads(line, parse_constant=lambda name: pytest.fail(name)) for line in text.split("\n")[:-1]]
    names = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
    for ours, theirs in zip(rows().to_pylist(), found, strict=True):
        expected = {k: iso(v) if k.startswith("window") else v for k, v in ours.items()}
        expected["f"] = names.get(str(ours["f"]), ours["f"])
        assert theirs == expected
        assert list(theirs) == SCHEMA.names
    assert '"f":1.0,' in text.split("\n")[0]


def test_json_in_duckdb_pandas_and_arrow(tmp_path: Path) -> None:
    finite = rows().filter(pa.array([i not in (2, 3, 4) for i in range(10)]))
    made(JsonSink, tmp_path, finite)
    path = str(only_file(tmp_path))
    found = duckdb.sql(f"SELECT s, i, f, b FROM read_json('{path}', format = 'newline_delimited')").fetchall()
    assert [list(column) for column in zip(*found, strict=True)] == [
        finite[n].to_pylist() for n in ("s", "i", "f", "b")
    ]
    frame = pd.read_json(path, lines=True, dtype=False, convert_dates=False)
    assert frame["s"].where(frame["s"].notna(), None).tolist() == finite["s"].to_pylist()
    schema = pa.schema([("s", pa.string()), ("i", pa.int64()), ("f", pa.float64()), ("b", pa.bool_())])
    options = arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    assert arrow_json.read_json(path, parse_options=options).to_pylist() == finite.select(schema.names).to_pylist()


def test_every_control_character_and_odd_names_in_json(tmp_path: Path) -> None:
    strings = [f"<{chr(code)}>" for code in range(300)] + ["\u2028\u2029\ufeff"]
    made(JsonSink, tmp_path, pa.table({'a "b"\n\\': strings, "é": pa.array(range(301))}))
    lines = only_file(tmp_path).read_bytes().split(b"\n")[:-1]
    assert [json.loads(line) for line in lines] == [{'a "b"\n\\': s, "é": i} for i, s in enumerate(strings)]
    assert len(CONTROLS) == 32


def test_csv_of_chunks_without_rows_has_one_header(tmp_path: Path) -> None:
    """As older versions of pyarrow do not see to themselves; `make wheel` tries them."""
    chunks = pa.chunked_array([pa.array([], pa.int64()), pa.array([1]), pa.array([], pa.int64())])
    table = as_text(pa.table({"i": chunks}))
    assert [len(chunk) for chunk in table.column("i").chunks] == [1]
    arrow_csv.write_csv(table, tmp_path / "x.csv")
    assert (tmp_path / "x.csv").read_text() == '"i"\n1\n'


def test_odd_names_in_csv(tmp_path: Path) -> None:
    made(CsvSink, tmp_path, pa.table({'a "b", c': ["x"], "é": ["y"]}))
    with open(only_file(tmp_path), newline="", encoding="utf-8") as file:
        assert list(csv.reader(file)) == [['a "b", c', "é"], ["x", "y"]]


def test_json_of_several_slices_and_chunks(tmp_path: Path) -> None:
    many = SLICE_ROWS + 17
    codes = pa.chunked_array(
        [pa.array(["a", "b"]).dictionary_encode(), pa.array(["c"] * (many - 2)).dictionary_encode()]
    )
    made(JsonSink, tmp_path, pa.table({"s": codes, "n": range(many)}).slice(1))
    found = arrow_json.read_json(only_file(tmp_path))
    assert found["n"].to_pylist() == list(range(1, many))
    assert found["s"].to_pylist() == ["b", *["c"] * (many - 2)]


@pytest.mark.parametrize("kind", KINDS)
def test_an_empty_table_is_a_file_without_rows(kind: type[FolderSink], tmp_path: Path) -> None:
    made(kind, tmp_path, rows().slice(0, 0))
    text = only_file(tmp_path).read_bytes()
    if kind is ParquetSink:
        assert pq.read_table(only_file(tmp_path)).num_rows == 0
    else:
        assert text == (b"" if kind is JsonSink else b'"' + b'","'.join(n.encode() for n in SCHEMA.names) + b'"\n')


@pytest.mark.parametrize("kind", [CsvSink, JsonSink])
def test_types_without_a_text_are_refused(kind: type[FolderSink], tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"query 'q' cannot write column 'l' of type list<item: int64> to (csv|json):"
    ):
        kind("q", str(tmp_path), pa.schema([("l", pa.list_(pa.int64()))]))


def test_spark_reads_back_what_was_published(tmp_path: Path, spark: SparkSession) -> None:
    for kind in KINDS:
        folder = tmp_path / f"out [{kind.suffix}] {{a,b}} *?%41 ü"  # what Spark would take for a pattern
        sink = made(kind, folder)
        assert sink.results(spark).collect() == []
        sink.publish(1, [tuple(sink.stage(rows(), 1, part, "x")) for part in range(2)])
        sink.stage(rows(), 2, 0, "x")  # not published
        (folder / "README.md").write_text("left by a person")
        frame = sink.results(spark)
        assert frame.schema.simpleString() == (
            "struct<s:string,i:bigint,small:tinyint,f:double,b:boolean,window_start:timestamp,window_end:timestamp>"
        )
        found = frame.toArrow().cast(SCHEMA)
        assert found.num_rows == 20
        for part in (found.slice(0, 10), found.slice(10)):
            for name in SCHEMA.names:
                same(rows()[name].to_pylist(), part[name].to_pylist())


def test_parquet_has_bounds_of_all_but_text(tmp_path: Path) -> None:
    """Readers skip files by their windows; text is from all over, and its bounds cost much."""
    made(ParquetSink, tmp_path, rows())
    group = pq.ParquetFile(only_file(tmp_path)).metadata.row_group(0)
    bounded = [group.column(i).path_in_schema for i in range(group.num_columns) if group.column(i).is_stats_set]
    assert bounded == [name for name in SCHEMA.names if name != "s"]


@pytest.mark.parametrize("kind", [ParquetSink, CsvSink, JsonSink])
def test_results_as_a_table(tmp_path: Path, kind: type[FolderSink]) -> None:
    """All files, in their order, with the declared schema, also where there is none."""
    none = made(kind, tmp_path / "none")
    assert none.table().schema == SCHEMA
    assert none.table().num_rows == 0
    sink = made(kind, tmp_path / "some", rows(), rows().slice(4))
    (tmp_path / "some" / f"notes{kind.suffix}").write_text("no result")
    found = sink.table()
    assert found.schema == SCHEMA
    for name in SCHEMA.names:
        same([*rows()[name].to_pylist(), *rows()[name].to_pylist()[4:]], found[name].to_pylist())
    path = next(path for path in (tmp_path / "some").iterdir() if path.name.startswith("q-00000000-0001"))
    path.write_bytes(b"damaged")
    with pytest.raises(RunError, match=r"results in .*some cannot be read"):
        sink.table()
