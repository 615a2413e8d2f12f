"""Tables in memory as streams: pandas and polars DataFrames, Arrow tables, whatever hands out Arrow's C stream.

    app.stream("t", table) ──► taken (columns that can be read, digest) ──► TableSource: plans are made with it
    a run starts           ──► kept: CHECKPOINT/tables/DIGEST.arrow    ──► KeptTable: tasks read it

After a restart nothing in memory is there any more, and a task may run on another machine: the checkpoint keeps the
table, by its content. The next run gives the table again. If it has other rows, its digest differs, and the run is
refused as with any source that has changed.

Delivery: as of any source, exactly once. Rows are in the order of the table.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from penstock.errors import SourceError
from penstock.sources.arrow.kept import BATCH_ROWS, content_digest, keep
from penstock.sources.arrow.messages import read_head
from penstock.sources.arrow.source import SUFFIXES, ArrowFile, ArrowSource
from penstock.sources.base import START, Abilities, Position, Split, even_splits, fields, logical_type
from penstock.sources.files import Address
from penstock.sources.flags import without_columns
from penstock.sources.parquet.footers import plain_schema

OF_TABLES = Abilities(random_access=True, rows_in_order=True, grows=False)


@dataclass(frozen=True)
class TableSource:
    """A table in memory, as long as no run needs it; `kept` gives what tasks read."""

    abilities: ClassVar[Abilities] = OF_TABLES
    name: str
    table: pa.Table = field(repr=False)
    digest: str

    def schema(self) -> pa.Schema:
        return plain_schema(self.table.schema)

    def rows(self) -> Position:
        return Position(self.table.num_rows)

    def cut(self, start: Position, limit: int) -> Position:
        return min(Position(start + limit), self.rows())

    def splits(self, start: Position, stop: Position, parallelism: int) -> list[Split]:
        return even_splits(start, stop, parallelism)

    def read(self, split: Split, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        if not columns:
            starts = range(split.start, split.stop, batch_rows)
            return (without_columns(min(batch_rows, split.stop - at)) for at in starts)
        part = self.table.select(list(columns)).slice(split.start, split.stop - split.start)
        return iter(part.to_batches(max_chunksize=batch_rows))

    def place(self, at: Position) -> str:
        return _place(self.name, at)

    def narrowed(self, split: Split) -> TableSource:
        return self

    def fingerprint(self) -> str:
        return f"table {self.digest}"

    def kept(self, checkpoint: Path) -> KeptTable:
        """The table as a file of the checkpoint, which is written unless it is there."""
        path = keep(checkpoint, self.table, self.digest)
        head = read_head(str(path))
        address = Address.of("arrow", str(path), SUFFIXES)
        meant = fields(head.schema)
        return KeptTable(address, meant, "", (head.path,), head=head, name=self.name, content=self.digest)


@dataclass(frozen=True)
class KeptTable(ArrowSource):
    """A table that was in memory when the run began."""

    abilities: ClassVar[Abilities] = OF_TABLES
    name: str = field(kw_only=True)
    content: str = field(kw_only=True)

    def fingerprint(self) -> str:
        return f"table {self.content}"

    def _place(self, file: ArrowFile, row: int) -> str:
        return _place(self.name, row)


def taken(name: str, data: Any) -> TableSource | None:
    """The stream `name` of a table of any library; None of what is no table."""
    pandas = sys.modules.get("pandas")
    framed = pandas is not None and isinstance(data, pandas.DataFrame)
    if not framed and not hasattr(data, "__arrow_c_stream__") and not hasattr(data, "__arrow_c_array__"):
        return None
    try:
        table = _of_pandas(data) if framed else pa.table(data)
        twice = sorted({str(column) for column in table.column_names if table.column_names.count(column) > 1})
        if twice:
            raise SourceError(f"column '{twice[0]}' occurs twice in table '{name}'", "columns need distinct names")
        usable = _usable(table)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        reason = ": ".join(str(part) for part in reversed(error.args)).partition("\n")[0]
        raise SourceError(
            f"table '{name}' cannot be read: {reason}", "give each column one type that Arrow knows"
        ) from error
    return TableSource(name, usable, content_digest(usable))


def _of_pandas(frame: Any) -> pa.Table:
    """An index that has a name is a column like others; NaN, NaT and None are NULL."""
    named = all(level is not None for level in frame.index.names)
    return pa.Table.from_pandas(frame, preserve_index=named).replace_schema_metadata()


def _usable(table: pa.Table) -> pa.Table:
    """Columns that the engine can read: text as strings or one dictionary of them, everything else plain."""
    names = [field.name for field in plain_schema(table.schema) if logical_type(field) is not None]
    table = table.select(names).unify_dictionaries()
    marks = {field.name: field.metadata for field in plain_schema(table.schema)}
    kinds = [pa.field(field.name, _kept_type(field.type), metadata=marks[field.name]) for field in table.schema]
    schema = pa.schema(kinds)
    # In pieces, because a whole column of text may be longer than offsets of 32 bits can say.
    pieces = (pa.record_batch(list(map(_kept, batch.columns)), schema=schema) for batch in table.to_batches(BATCH_ROWS))
    return pa.Table.from_batches(pieces, schema)


def _kept(array: pa.Array) -> pa.Array:
    kind = _kept_type(array.type)
    if not pa.types.is_dictionary(array.type):
        return array.cast(kind)
    if not pa.types.is_dictionary(kind) or array.dictionary.null_count:
        plain = array.dictionary_decode()
        return plain.cast(pa.string()).dictionary_encode() if pa.types.is_dictionary(kind) else plain
    return pa.DictionaryArray.from_arrays(array.indices.cast(pa.int32()), array.dictionary.cast(pa.string()))


def _kept_type(kind: pa.DataType) -> pa.DataType:
    if not pa.types.is_dictionary(kind):
        return pa.string() if _is_text(kind) else kind
    return pa.dictionary(pa.int32(), pa.string()) if _is_text(kind.value_type) else kind.value_type


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _place(name: str, row: int) -> str:
    return f"table '{name}', row {row - START + 1}"
