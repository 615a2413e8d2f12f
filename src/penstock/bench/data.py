"""The benchmark's data: generated once per work folder, with prefixes and part files for slow peers."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta
from itertools import combinations
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.sources.base import Split
from penstock.sources.generate import FLOW_ATTRIBUTES, open_generate
from penstock.sources.parquet import open_parquet
from penstock.sources.parquet_write import write_parquet

PAIRS = tuple(combinations(FLOW_ATTRIBUTES, 2))  # 78, the order of the benchmark's queries
SPAN = 2000  # seconds of stream time that the whole file lasts: more than six windows of 5 minutes
READ_ROWS = 131072


def flow_file(work: Path, rows: int, rate: float, progress: Callable[[str], None]) -> Path:
    """Flow records as a router exports them, one a flow; made when they are not there yet."""
    path = work / f"flows-{rows}-{rate:g}.parquet"
    if not path.exists():
        progress(f"generating {rows:,} records")
        write_parquet(open_generate("clustered", {"rows": str(rows), "rate": f"{rate!r}", "flow_length": "1"}), path)
    return path


def prefix(file: Path, rows: int) -> Path:
    """The first `rows` records as a file of their own."""
    path = file.with_name(f"{file.stem}-first-{rows}.parquet")
    if not path.exists():
        _copy(file, path, 0, rows)
    return path


def parts(file: Path, rows: int, part_rows: int) -> Path:
    """The first `rows` records as a folder of part files, and a last file of one record a day later."""
    folder = file.with_name(f"{file.stem}-first-{rows}-by-{part_rows}")
    if not folder.exists():
        aside = folder.with_name(f".{folder.name}.tmp")
        starts = range(0, rows, part_rows)
        names = [aside / f"part-{number:05d}.parquet" for number in range(len(starts) + 1)]
        aside.mkdir(parents=True, exist_ok=True)
        for name, start in zip(names, starts, strict=False):
            _copy(file, name, start, min(start + part_rows, rows))
        _write_closing_record(names[-2], names[-1])
        for number, name in enumerate(names):
            os.utime(name, (1_000_000_000 + number, 1_000_000_000 + number))  # Spark takes files by age
        aside.rename(folder)
    return folder


def _copy(file: Path, target: Path, start: int, stop: int) -> None:
    source = open_parquet(str(file), {})
    aside = target.with_name(f".{target.name}.tmp")
    with pq.ParquetWriter(aside, source.schema()) as writer:
        for batch in source.read(Split(start, stop), source.schema().names, READ_ROWS):
            writer.write_batch(batch)
    aside.rename(target)


def _write_closing_record(last: Path, target: Path) -> None:
    record = pq.read_table(last).slice(0, 1)
    later = record["ts"][0].as_py() + timedelta(days=1)
    pq.write_table(record.set_column(0, record.schema.field(0), pa.array([later], record.schema.field(0).type)), target)
