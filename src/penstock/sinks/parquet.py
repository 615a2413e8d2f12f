"""`parquet:DIR`: results as Parquet files, exactly once (`folder` says how)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.sinks.columnar.write import write_parquet
from penstock.sinks.folder import FolderSink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader


@dataclass(frozen=True)
class ParquetSink(FolderSink):
    """Results of one query in a folder of Parquet files."""

    suffix = ".parquet"

    def write(self, table: pa.Table, path: Path) -> None:
        write_parquet(table, self.schema, path)

    def parse(self, path: Path) -> pa.Table:
        with pq.ParquetFile(path) as file:
            return file.read(self.schema.names).cast(self.schema)

    def load(self, reader: DataFrameReader, path: str) -> DataFrame:
        return reader.parquet(path)
