"""Writes a source's records to one Parquet file: for `penstock generate KIND -o FILE`, and for benchmarks."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.errors import RunError, SourceError, why
from penstock.sources.base import START, Position, Source, Split


def write_parquet(
    source: Source,
    path: str | Path,
    row_group_rows: int = 131072,
    progress: Callable[[int], None] | None = None,
) -> None:
    """Write all rows in order; `progress` gets the rows written so far. The file appears when it is whole."""
    target = Path(path).absolute()
    if target.is_dir():
        raise SourceError(f"cannot write '{target}': it is a folder", "name a file, such as flows.parquet")
    aside = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _write(source, aside, row_group_rows, progress or (lambda done: None))
        os.replace(aside, target)
    except OSError as error:
        raise RunError(f"cannot write '{target}': {why(error)}", "check the folder and its free space") from error
    finally:
        with suppress(OSError):
            aside.unlink()


def _write(source: Source, path: Path, row_group_rows: int, progress: Callable[[int], None]) -> None:
    end, schema = source.rows(), source.schema()
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(START, end, row_group_rows):
            stop = min(start + row_group_rows, end)
            batches = source.read(Split(Position(start), Position(stop)), schema.names, row_group_rows)
            plain = (batch.cast(schema) for batch in batches)  # text may come as dictionaries, another in each batch
            writer.write_table(pa.Table.from_batches(plain, schema), row_group_size=row_group_rows)
            progress(stop)
