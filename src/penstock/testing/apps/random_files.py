"""Files of a random stream: Parquet and Arrow always; CSV and JSON lines where they hold every value.

Text cannot tell what does not fit a declared type, numbers that are none, or (CSV) texts with line ends and empty
addresses from anything else; such streams stay in Parquet.  Timestamps are ISO with microseconds, addresses text;
NULL is an empty field in CSV (an empty text is quoted) and null in JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq

from penstock.logical.types import TIMESTAMP, Kind
from penstock.testing.apps.random_stream import ADDRESS_KEY, RandomStream
from penstock.testing.apps.random_values import RandomColumn
from penstock.testing.oracle.addresses import code_of_number, print_code
from penstock.testing.oracle.columns import read_column

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
BROKEN = ("\0", "\n", "\r")  # what a CSV reader that goes by lines cannot hold


def text_formats(stream: RandomStream) -> tuple[str, ...]:
    """The text formats that hold every value of the stream."""
    if not stream.declared or any(column.odd for column in stream.columns):
        return ()
    texts = [column for column in stream.columns if column.kind in (Kind.STRING, Kind.INET)]
    if any(column.kind is Kind.INET and _blank(column) for column in texts):
        return ()
    return ("json",) if any(map(_broken, texts)) else ("csv", "json")


def write_file(table: pa.Table, path: Path, format: str, row_group: int) -> None:
    if format == "parquet":
        pq.write_table(table, path, row_group_size=row_group)
        return
    if format == "arrow":
        _arrow(table, path, row_group)
        return
    columns = [_printed(column, field) for column, field in zip(table.columns, table.schema, strict=True)]
    rows = list(zip(*columns, strict=True))
    write = _csv if format == "csv" else _json
    path.write_text(write(table.schema.names, rows), encoding="utf-8", newline="")


def _arrow(table: pa.Table, path: Path, rows: int) -> None:
    """The file format or the stream format, plain or compressed, by how many rows there are."""
    make = ipc.new_stream if len(table) % 2 else ipc.new_file
    options = ipc.IpcWriteOptions(compression=(None, "lz4", "zstd")[len(table) % 3], unify_dictionaries=True)
    with make(str(path), table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=rows)


def _broken(column: RandomColumn) -> bool:
    if pa.types.is_integer(column.array.type):
        return False
    texts = {text for text in column.array.to_pylist() if text is not None}
    # An empty field that is not STRING is NULL, quoted or not.
    empty = column.kind is Kind.INET and "" in texts
    return empty or any(mark in text for text in texts for mark in BROKEN)


def _blank(column: RandomColumn) -> bool:
    """Whether a text has blanks at its ends, which readers of text take off where they read anything but text."""
    if pa.types.is_integer(column.array.type):
        return False
    return any(text != text.strip() for text in column.array.to_pylist() if text is not None)


def _printed(column: pa.ChunkedArray, field: pa.Field) -> list[Any]:
    """Values as JSON has them: numbers, texts, truths and None."""
    if pa.types.is_timestamp(field.type):
        return [None if n is None else _iso(n) for n in read_column(column, TIMESTAMP).array.to_pylist()]
    values: list[Any] = column.to_pylist()
    if ADDRESS_KEY in (field.metadata or {}):
        return [None if n is None else print_code(code_of_number(n) or "") for n in values]
    return values


def _iso(microseconds: int) -> str:
    return (EPOCH + timedelta(microseconds=microseconds)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _csv(names: list[str], rows: list[tuple[Any, ...]]) -> str:
    lines = [",".join(names), *(",".join(map(_field, row)) for row in rows)]
    return "".join(f"{line}\n" for line in lines)


def _field(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return '"' + value.replace('"', '""') + '"'
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _json(names: list[str], rows: list[tuple[Any, ...]]) -> str:
    dump: Callable[..., str] = json.dumps
    return "".join(f"{dump(dict(zip(names, row, strict=True)), ensure_ascii=False)}\n" for row in rows)
