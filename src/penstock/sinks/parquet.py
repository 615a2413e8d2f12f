"""`parquet:DIR`: results as Parquet files, exactly once (`folder` says how)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

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

    def load(self, reader: DataFrameReader, path: str) -> DataFrame:
        return reader.parquet(path)


def write_parquet(table: pa.Table, path: Path) -> None:
    """By kernels of our own (tasks alone load them) where all types are known to them, else by Arrow."""
    from penstock.sinks.parquet_file import writable, write_table

    if writable(table):
        write_table(table, path)
    else:
        # Without the Arrow schema readers see plain strings, not dictionaries.
        pq.write_table(table, path, store_schema=False)
