"""Writes a table of results to a Parquet file.

Arrow's writer takes about 60 ns of processor time for a result of two keys, two numbers and its window: a hash for each
window's time, and values level by level. Here a window is a run, and an integer takes 1.5 ns.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa

from penstock.sinks.columnar.footer import MAGIC, Chunk, Described, RowGroup, described, footer

if TYPE_CHECKING:
    from penstock.sinks.columnar.pages import Scratch

ROWS = 1 << 20  # of a row group
BUFFER = 1 << 20  # bytes that are written at once


def write_parquet(table: pa.Table, schema: pa.Schema, path: Path) -> None:
    """Rows with columns of these types. In the table integers may be wider, and anything may be a dictionary."""
    with open(path, "wb", buffering=BUFFER) as file:
        target = _Target(file)
        target.put(MAGIC)
        groups = _groups(table, schema, target) if table.num_rows else []
        target.put(footer(schema, groups))


class _Target:
    """A file, and how much of it is written."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self.at = file, 0

    def put(self, piece: bytes | memoryview) -> None:
        self._file.write(piece)
        self.at += len(piece)


def _groups(table: pa.Table, schema: pa.Schema, target: _Target) -> list[RowGroup]:
    from penstock.sinks.columnar.pages import Scratch  # with kernels: a query that ends without rows needs none

    scratch, groups = Scratch(), []
    columns = [(column, _whole(values)) for column, values in zip(described(schema), table.columns, strict=True)]
    for start in range(0, table.num_rows, ROWS):
        rows = min(ROWS, table.num_rows - start)
        chunks = [_chunk(column, values.slice(start, rows), target, scratch) for column, values in columns]
        groups.append(RowGroup(rows, tuple(chunks)))
    return groups


def _whole(column: pa.ChunkedArray) -> pa.Array:
    """A column in one piece, with one dictionary."""
    if column.num_chunks == 1:
        return column.chunk(0)
    return column.unify_dictionaries().combine_chunks()


def _chunk(column: Described, values: pa.Array, target: _Target, scratch: Scratch) -> Chunk:
    from penstock.sinks.columnar.pages import pages_of

    made, start, plain = pages_of(column, values), target.at, 0
    if made.words is not None:
        head, written, plain = made.dictionary()
        target.put(head)
        target.put(written)
    dictionary = target.at - start
    for head, written, size in made.pages(scratch):
        target.put(head)
        target.put(written)
        plain += size
    return made.chunk(start, dictionary, target.at - start, plain)
