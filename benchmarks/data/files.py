"""What `multiquery` and `scaling` read: generated records, and a real connection log where it is.

All queries but those of `monitoring` are `count(*)` and a sum.

| data | records | grouped by | windows |
| --- | --- | --- | --- |
| `flows` | generated, one a flow, in order of time | pairs of the 13 attributes | 5 minutes |
| `zeek` | a Zeek connection log beside the project, up to days out of order | pairs of 13 of its columns | a day |
| `packets` | generated, 20 a flow, in trains | pairs of the 13 attributes | a minute |
| `prefixes` | the same | prefixes of src and dst, each alone and with each of the other | a minute |
| `monitoring` | the same | the dozen of `examples/packets.sql`, whatever they are | 10 seconds to 5 minutes |

Files are made once per work folder, with prefixes, part files and text for the peers that need them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import combinations, pairwise, product
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.parquet as pq

from benchmarks.comparisons.peers import CHECKOUT
from benchmarks.engines.monitoring.questions import NAMES
from benchmarks.measure.job import NULL_TEXT, SCHEMA
from penstock.sources.generate.source import FLOW_ATTRIBUTES, open_generate
from penstock.sources.parquet.write import write_parquet

Progress = Callable[[str], None]
Keys = tuple[str, ...]

PAIRS = tuple(combinations(FLOW_ATTRIBUTES, 2))  # 78, the order of the benchmark's queries
LENGTHS = (8, 16, 24, 32)
ENDS = tuple(tuple(f"{column}/{length}" for length in LENGTHS) for column in ("src", "dst"))
PREFIXES = (*((one,) for ends in ENDS for one in ends), *product(*ENDS))  # 24: hierarchical heavy hitters
SPAN = 2000  # seconds of stream time that the whole file lasts: more than six windows of 5 minutes
FLOW_LENGTH = 20  # packets of a flow
READ_ROWS = 131072
LOG = CHECKOUT.parent / "shared" / "data" / "flows" / "zeek_conn_2022-03.parquet"
LOG_ATTRIBUTES = (
    "orig_h", "orig_p", "resp_h", "resp_p", "proto", "service", "conn_state", "local_orig", "local_resp", "history",
    "orig_pkts", "resp_pkts", "missed_bytes",
)  # fmt: skip


@dataclass(frozen=True)
class Data:
    """A Parquet file and the queries on it; `delay_seconds` as in `benchmarks.measure.job.Job`."""

    name: str
    file: Path
    rows: int
    queries: tuple[Keys, ...]
    value: str
    window_seconds: int
    delay_seconds: int | None


def flows(work: Path, rows: int, progress: Progress) -> Data:
    """Generated flow records that last `SPAN` seconds, however many."""
    return Data("flows", flow_file(work, rows, rows / SPAN, progress), rows, PAIRS, "bytes", 300, 1)


def zeek(work: Path, rows: int, progress: Progress) -> Data | str:
    """The connection log, or its first `rows` records; a sentence where it is not here."""
    if not LOG.exists():
        return f"skipped: {LOG.name} is not in ../shared/data/flows beside the project"
    file, pairs = prefix(LOG, rows, work), tuple(combinations(LOG_ATTRIBUTES, 2))
    return Data("zeek", file, pq.read_metadata(file).num_rows, pairs, "orig_ip_bytes", 24 * 3600, None)


def packets(work: Path, rows: int, progress: Progress) -> Data:
    """Generated packets of flows; as long a stream as `flows`."""
    return Data("packets", packet_file(work, rows, rows / SPAN, progress), rows, PAIRS, "bytes", 60, 1)


def prefixes(work: Path, rows: int, progress: Progress) -> Data:
    """The same packets, by prefixes of their addresses."""
    return replace(packets(work, rows, progress), name="prefixes", queries=PREFIXES)


def monitoring(work: Path, rows: int, progress: Progress) -> Data:
    """The same packets, and a dozen queries that have windows of their own."""
    return replace(packets(work, rows, progress), name="monitoring", queries=NAMES)


DATA: dict[str, Callable[[Path, int, Progress], Data | str]] = {
    "flows": flows,
    "zeek": zeek,
    "packets": packets,
    "prefixes": prefixes,
    "monitoring": monitoring,
}


def flow_file(work: Path, rows: int, rate: float, progress: Progress) -> Path:
    """Flow records as a router exports them, one a flow; made when they are not there yet."""
    return _generated(work / f"flows-{rows}-{rate:g}.parquet", rows, rate, 1, progress)


def packet_file(work: Path, rows: int, rate: float, progress: Progress) -> Path:
    """Packets of flows, 20 of each on average; made when they are not there yet."""
    return _generated(work / f"packets-{rows}-{rate:g}.parquet", rows, rate, FLOW_LENGTH, progress)


def _generated(path: Path, rows: int, rate: float, flow_length: int, progress: Progress) -> Path:
    if not path.exists():
        progress(f"generating {rows:,} records")
        options = {"rows": str(rows), "rate": f"{rate!r}", "flow_length": str(flow_length)}
        write_parquet(open_generate("clustered", options), path)
    return path


def prefix(file: Path, rows: int, work: Path) -> Path:
    """The first `rows` records as a file of their own; the file itself, if it has no more."""
    if rows >= pq.read_metadata(file).num_rows:
        return file
    path = work / f"{file.stem}-first-{rows}.parquet"
    if not path.exists():
        _copy(file, path, 0, rows)
    return path


def parts(file: Path, rows: int, part_rows: int, work: Path, gap: timedelta) -> Path:
    """The first `rows` records as a folder of part files, and a last file of one record so much later."""
    folder = work / f"{file.stem}-first-{rows}-by-{part_rows}"
    if not folder.exists():
        aside = folder.with_name(f".{folder.name}.tmp")
        starts = range(0, rows, part_rows)
        names = [aside / f"part-{number:05d}.parquet" for number in range(len(starts) + 1)]
        aside.mkdir(parents=True, exist_ok=True)
        for name, start in zip(names, starts, strict=False):
            _copy(file, name, start, min(start + part_rows, rows))
        _write_closing_record(names[:-1], names[-1], gap)
        for number, name in enumerate(names):
            os.utime(name, (1_000_000_000 + number, 1_000_000_000 + number))  # Spark takes files by age
        aside.rename(folder)
    return folder


def texts(file: Path, rows: int, count: int, work: Path, dealt: bool = False) -> Path:
    """The first `rows` records as a folder of `count` text files, one part of the stream each, and their schema.

    Fields are parted by commas, times are microseconds; there is no header. Records are dealt out to the files in turn,
    or each file has a stretch of the stream.
    """
    folder = work / f"{file.stem}-first-{rows}-{'dealt' if dealt else 'texts'}-{count}"
    if not folder.exists():
        aside = folder.with_name(f".{folder.name}.tmp")
        aside.mkdir(parents=True, exist_ok=True)
        table = pq.read_table(prefix(file, rows, work))
        pq.write_table(table.schema.empty_table(), aside / SCHEMA)
        for number, field in enumerate(table.schema):
            column = table[field.name]
            if pa.types.is_timestamp(field.type):
                table = table.set_column(number, field.name, column.cast(pa.int64()))
            elif column.null_count:
                table = table.set_column(number, field.name, pc.fill_null(column.cast(pa.string()), NULL_TEXT))
        edges = [rows * number // count for number in range(count + 1)]
        for number, (start, stop) in enumerate(pairwise(edges)):
            part = table.take(pa.array(range(number, rows, count))) if dealt else table.slice(start, stop - start)
            csv.write_csv(part, aside / f"part-{number:05d}.csv", csv.WriteOptions(include_header=False))
        aside.rename(folder)
    return folder


def _copy(file: Path, target: Path, start: int, stop: int) -> None:
    source, at = pq.ParquetFile(file), 0
    aside = target.with_name(f".{target.name}.tmp")
    groups = source.metadata  # a copy has row groups as large, but for very large ones: micro-batches are cut there
    size = min(READ_ROWS, groups.row_group(0).num_rows) if groups.num_row_groups else READ_ROWS
    with pq.ParquetWriter(aside, source.schema_arrow) as writer:
        for batch in source.iter_batches(size):
            part = batch.slice(max(0, start - at), max(0, min(stop, at + len(batch)) - max(start, at)))
            at += len(batch)
            if len(part):
                writer.write_batch(part)
            if at >= stop:
                break
    aside.rename(target)


def _write_closing_record(parts: list[Path], target: Path, gap: timedelta) -> None:
    record = pq.read_table(parts[-1]).slice(0, 1)
    later = max(pc.max(pq.read_table(part, columns=["ts"])["ts"]).as_py() for part in parts) + gap
    pq.write_table(record.set_column(0, record.schema.field(0), pa.array([later], record.schema.field(0).type)), target)
