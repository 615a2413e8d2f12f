"""`parquet:DIR`: results as Parquet files, exactly once (`folder` says how)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.sinks.folder import FolderSink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader


@dataclass(frozen=True)
class ParquetSink(FolderSink):
    """Results of one query in a folder of Parquet files."""

    suffix = ".parquet"

    def write(self, table: pa.Table, path: Path) -> None:
        write_parquet(table, path)

    def parse(self, path: Path) -> pa.Table:
        with pq.ParquetFile(path) as file:
            return file.read(self.schema.names).cast(self.schema)

    def load(self, reader: DataFrameReader, path: str) -> DataFrame:
        return reader.parquet(path)


def write_parquet(table: pa.Table, path: Path) -> None:
    """Without the Arrow schema readers see plain strings, not dictionaries."""
    pq.write_table(table, path, store_schema=False, **_encodings(table.schema))


def _encodings(schema: pa.Schema) -> dict[str, Any]:
    """Integers (keys, counts, sums) packed as small differences: a third smaller and faster to write than a
    dictionary that hardly repeats. Windows, strings and flags repeat."""
    integers = [field.name for field in schema if pa.types.is_integer(field.type)]
    wide = [*integers, *(field.name for field in schema if pa.types.is_floating(field.type))]
    # A file has strings from all over: their bounds exclude nothing, and cost as much as all the rest of the column.
    texts = [field.name for field in schema if pa.types.is_string(_plain(field.type))]
    return {
        "write_statistics": [name for name in schema.names if name not in texts],
        "use_dictionary": [name for name in schema.names if name not in wide],
        "column_encoding": dict.fromkeys(integers, "DELTA_BINARY_PACKED") or None,
    }


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind
