"""Writes a source's records to one file: Parquet here, for benchmarks and for `app.record_files`, which adds text."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.errors import RunError, SourceError, why
from penstock.sources.base import START, Position, Source, Split

ROWS = 131_072  # of a row group, or of text in memory at a time
Progress = Callable[[int], None]


def write_parquet(
    source: Source, path: str | Path, row_group_rows: int = ROWS, progress: Progress | None = None
) -> None:
    """Write all rows in order; `progress` gets the rows written so far. The file appears when it is whole."""
    with whole_file(path) as aside, pq.ParquetWriter(aside, source.schema()) as writer:
        for table in tables(source, row_group_rows, progress):
            writer.write_table(table, row_group_size=row_group_rows)


def refuse_folder(path: Path) -> None:
    if path.is_dir():
        raise SourceError(f"cannot write '{path.absolute()}': it is a folder", "name a file, such as flows.parquet")


@contextmanager
def whole_file(path: str | Path) -> Iterator[Path]:
    """Where to write a file, which is renamed to its name when all of it is there."""
    target = Path(path).absolute()
    refuse_folder(target)
    aside = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        yield aside
        os.replace(aside, target)
    except OSError as error:
        raise RunError(f"cannot write '{target}': {why(error)}", "check the folder and its free space") from error
    finally:
        with suppress(OSError):
            aside.unlink()


def tables(source: Source, rows: int = ROWS, progress: Progress | None = None) -> Iterator[pa.Table]:
    """All records in order, so many at a time; `progress` gets how many were taken."""
    end, schema = source.rows(), source.schema()
    for start in range(START, end, rows):
        stop = min(start + rows, end)
        batches = source.read(Split(Position(start), Position(stop)), schema.names, rows)
        # Text may come as dictionaries, another in each batch.
        yield pa.Table.from_batches((batch.cast(schema) for batch in batches), schema)
        if progress is not None:
            progress(stop)
