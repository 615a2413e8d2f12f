"""`json:DIR`: results as JSON, one object per line, exactly once (`folder` says how).

NULL is `null`, timestamps are strings in ISO 8601, UTC, with microseconds. JSON has no numbers that are not
finite: they are the strings "NaN", "Infinity" and "-Infinity", which Spark reads back as floats.

Lines are built from columns by Arrow, a row of six columns in about a microsecond: pandas would round floats to
15 digits and turn integers beside a NULL into floats.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from penstock.sinks.folder import JSON_OWNER, FolderSink
from penstock.sinks.plain import check_text_types, is_time, iso_times, of_words

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader

SLICE_ROWS = 65_536  # rows whose text is in memory at a time
CONTROLS = {chr(code): f"\\u{code:04x}" for code in range(32)} | {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


@dataclass(frozen=True)
class JsonSink(FolderSink):
    """Results of one query in a folder of JSON lines."""

    suffix = ".json"
    mark = JSON_OWNER

    def __post_init__(self) -> None:
        check_text_types(self.query, self.schema, "json:")

    def write(self, table: pa.Table, path: Path) -> None:
        with open(path, "wb") as file:
            write_json(table, file)

    def parse(self, path: Path) -> pa.Table:
        rows = [json.loads(line) for line in path.read_bytes().splitlines()]
        return pa.table([_parsed([row[field.name] for row in rows], field.type) for field in self.schema], self.schema)

    def load(self, reader: DataFrameReader, path: str) -> DataFrame:
        return reader.option("mode", "FAILFAST").json(path)


def write_json(table: pa.Table, file: BinaryIO) -> None:
    """One line per row."""
    # Strings and windows are made text before slices are cut: their dictionary is then gone through once.
    columns = [_quoted(c) if _is_text(c.type) else c for c in map(_printed, table.columns)]
    for start in range(0, table.num_rows, SLICE_ROWS):
        lines = json_lines(table.column_names, [column.slice(start, SLICE_ROWS) for column in columns])
        for chunk in lines.chunks:
            file.write(text_bytes(chunk))


def _parsed(values: list[Any], kind: pa.DataType) -> pa.Array:
    """A column of JSON values; times and numbers that are not finite come as text."""
    if is_time(kind):
        return pa.array(values, pa.string()).cast(kind)
    if pa.types.is_floating(kind):
        return pa.array([None if value is None else float(value) for value in values], kind)
    return pa.array(values, kind)


def json_lines(names: list[str], columns: list[pa.ChunkedArray]) -> pa.ChunkedArray:
    """One object per row; strings in `columns` are already JSON."""
    pieces: list[pa.ChunkedArray | pa.Scalar] = []
    for name, column in zip(names, columns, strict=True):
        lead = "," if pieces else "{"
        pieces += [_scalar(lead + json.dumps(name, ensure_ascii=False) + ":"), json_values(column)]
    return pc.binary_join_element_wise(*pieces, _scalar("}\n"), _scalar(""))


def json_values(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Each value of a column as JSON text."""
    if is_time(column.type):
        text = _wrapped(iso_times(column))
    elif pa.types.is_floating(column.type):
        text = _numbers(column)
    else:
        text = column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column
    return text.cast(pa.large_string()).fill_null("null")


def text_bytes(text: pa.LargeStringArray) -> memoryview:
    """The characters of all strings, one after the other, as they lie in memory."""
    offsets = memoryview(text.buffers()[1]).cast("q")
    first, beyond = offsets[text.offset], offsets[text.offset + len(text)]
    return memoryview(text.buffers()[2])[first:beyond]


def _numbers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Floats keep a point, so that readers who guess types see floats."""
    text = column.cast(pa.string())
    whole = pc.invert(pc.match_substring_regex(text, "[.en]"))
    text = pc.if_else(whole, pc.binary_join_element_wise(text, ".0", ""), text)
    named = pc.if_else(pc.is_nan(column), '"NaN"', pc.if_else(pc.greater(column, 0.0), '"Infinity"', '"-Infinity"'))
    return pc.if_else(pc.is_finite(column), text, named)


def _printed(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Times of a dictionary as text."""
    return iso_times(column) if is_time(column.type) and pa.types.is_dictionary(column.type) else column


def _quoted(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Strings as JSON strings; of a dictionary only the values are touched."""
    return of_words(column, lambda words: _wrapped(_escaped(words)))


def _escaped(text: pa.Array) -> pa.Array:
    text = pc.replace_substring(pc.replace_substring(text, "\\", "\\\\"), '"', '\\"')
    if not pc.any(pc.match_substring_regex(text, r"[\x00-\x1f]")).as_py():
        return text
    for control, escape in CONTROLS.items():
        text = pc.replace_substring(text, control, escape)
    return text


def _wrapped(text: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise('"', text, '"', "")


def _scalar(text: str) -> pa.Scalar:
    return pa.scalar(text, pa.large_string())


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_dictionary(kind))
