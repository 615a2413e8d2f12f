"""`csv:DIR`: results as CSV files with a header line, exactly once (`folder` says how).

Quotes as in RFC 4180, lines end in a line feed. NULL is an empty field, the empty string is `""`. Timestamps are
ISO 8601 in UTC with microseconds, booleans `true` and `false`, floats the shortest text that reads back as the
same number, or `nan`, `inf`, `-inf`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.csv

from penstock.sinks.folder import FolderSink
from penstock.sinks.plain import check_text_types, decode, is_time, iso_times

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader

BATCH_ROWS = 16_384
# Spark takes whatever equals `nullValue` for NULL, and an unquoted empty field for that value: it must be no
# text of ours, or the empty string would be lost.
NULL = "\x00NULL\x00"
READING = {
    "header": "true",
    "multiLine": "true",
    "lineSep": "\n",
    "escape": '"',
    "nullValue": NULL,
    "emptyValue": "",
    "nanValue": "nan",
    "positiveInf": "inf",
    "negativeInf": "-inf",
    "mode": "FAILFAST",
}


@dataclass(frozen=True)
class CsvSink(FolderSink):
    """Results of one query in a folder of CSV files."""

    suffix = ".csv"

    def __post_init__(self) -> None:
        check_text_types(self.query, self.schema, "csv:")

    def write(self, table: pa.Table, path: Path) -> None:
        options = pa.csv.WriteOptions(batch_size=BATCH_ROWS)
        pa.csv.write_csv(as_text(table), path, options)

    def parse(self, path: Path) -> pa.Table:
        converting = pa.csv.ConvertOptions(
            column_types=self.schema, null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False
        )
        parsing = pa.csv.ParseOptions(newlines_in_values=True)
        return pa.csv.read_csv(path, parse_options=parsing, convert_options=converting).cast(self.schema)

    def load(self, reader: DataFrameReader, path: str) -> DataFrame:
        return reader.options(**READING).csv(path)


def as_text(table: pa.Table) -> pa.Table:
    """The table with all that Arrow's writer would write in another way, or not at all, made strings."""
    columns = [decode(iso_times(column) if is_time(column.type) else column) for column in table.columns]
    text = pa.table(columns, names=table.column_names)
    # Older versions of pyarrow repeat the header for a batch without rows.
    return pa.Table.from_batches([batch for batch in text.to_batches() if batch.num_rows], text.schema)
