"""What it costs to read a source, all of it or only picks: nanoseconds for each record that arrives, read or not.

    python -m benchmarks.latency.skipping [--rows N] [--repeat N] [--json]

| column | is |
| --- | --- |
| all | all records are read, chunk by chunk, and some of their columns |
| 1/16, 1/64, 1/256 | one record of so many is, with the same columns |

No query runs. A mapped Arrow file is not touched before somebody looks at its values, so values are added up here. The
files are in the system's cache; the best of some repetitions counts, because others may use the machine.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
from rich.console import Console

from benchmarks.measure.figures import new_table
from penstock.app.record_files import writer_of
from penstock.sources.base import START, Position, Source, Split
from penstock.sources.live.picking import read_picks
from penstock.sources.registry import open_source
from penstock.triage.picks import MOST, Picks

FLOWS = ["ts", "src", "dst", "sport", "dport", "proto", "bytes"]
PACKETS = ["ts", "src", "dst", "sport", "dport", "proto", "length"]
STEPS = (4, 6, 8)
CHUNK = 65_536
KEY = 0x5EED
Line = dict[str, float | str]


def sources(folder: Path, rows: int) -> Iterator[tuple[str, Source, list[str]]]:
    """The same flows in files of every kind."""
    generated = open_source("generate:flows", {"rows": str(rows)})
    for name in ("x.parquet", "x.csv", "x.pcap"):
        writer_of(folder / name)(generated, folder / name, lambda done: None)
    table = pq.read_table(folder / "x.parquet")
    for name, packing in (("mapped.arrow", None), ("packed.arrow", "lz4")):
        with ipc.new_file(str(folder / name), table.schema, options=ipc.IpcWriteOptions(compression=packing)) as file:
            file.write_table(table, max_chunksize=CHUNK)
    for address in ("arrow:mapped.arrow", "arrow:packed.arrow", "pcap:x.pcap", "parquet:x.parquet", "csv:x.csv"):
        scheme, _, name = address.partition(":")
        source = open_source(f"{scheme}:{folder / name}", {})
        yield address, source, PACKETS if scheme == "pcap" else FLOWS
    yield "generate:flows", generated, FLOWS


def measured(name: str, source: Source, columns: list[str], repeat: int) -> Line:
    """Nanoseconds a record, by what is read."""
    rows = source.rows() >> MOST << MOST
    split = Split(START, Position(rows))
    line: Line = {"source": name, "all": _best(partial(source.read, split, columns, CHUNK), rows, repeat)}
    for k in STEPS:
        reading = partial(read_picks, source, split, columns, CHUNK, Picks(k, KEY))
        line[f"1/{1 << k}"] = _best(reading, rows, repeat)
    return line


def _best(reading: Callable[[], Iterator[pa.RecordBatch]], rows: int, repeat: int) -> float:
    seconds = []
    for _ in range(repeat):
        begin = time.perf_counter()
        for batch in reading():
            for column in batch.columns:
                _look_at(column)
        seconds.append(time.perf_counter() - begin)
    return round(min(seconds) / rows * 1e9, 2)


def _look_at(column: pa.Array) -> None:
    """All values, or what stands for them."""
    if pa.types.is_struct(column.type):
        column = column.field(0)
    if pa.types.is_dictionary(column.type):
        column = column.indices
    if pa.types.is_timestamp(column.type):
        column = column.view(pa.int64())
    pc.sum(column) if pa.types.is_integer(column.type) else pc.count(column)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.latency.skipping", description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=2_000_000, help="records of each source")
    parser.add_argument("--repeat", type=int, default=3, help="repetitions, of which the best counts")
    parser.add_argument("--json", action="store_true", help="figures as JSON")
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as place:
        lines = [measured(*one, asked.repeat) for one in sources(Path(place), max(asked.rows, 1 << MOST))]
    if asked.json:
        print(json.dumps(lines, indent=2))
        return
    console, names = Console(), [name for name in lines[0] if name != "source"]
    table = new_table("reading alone, ns for each record that arrives", "source", names)
    for line in lines:
        table.add_row(str(line["source"]), *(f"{line[name]:.1f}" for name in names))
    console.print(table)


if __name__ == "__main__":
    main()
