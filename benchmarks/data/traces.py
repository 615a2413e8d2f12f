"""What the benchmark `packets` reads: captures repeated to as many packets as wanted, and a generated trace.

A trace is a pcap file, made once per work folder, with its reference: what every packet says by somebody who is not
penstock. For captures that is tshark on the original, which is repeated like the packets are; for the generated
trace the records that it was made from. Without tshark only the grouping is checked: the fields are then penstock's
own.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.comparisons.peers import CHECKOUT
from benchmarks.data import captures, frames
from benchmarks.packets import fields as packet_fields
from benchmarks.packets.reference import Reference

Progress = Callable[[str], None]
# Beside the project, where there are any; others are given by --capture.
PLACE = CHECKOUT.parent / "shared" / "data" / "packets"
KNOWN = (
    "modbus_scada_2015.pcap.xz", "campus_dns_1min_2017.pcap", "iot_sentinel_2016.pcap.xz",
    "ddos_dns_rrsig_fragmented.pcap",  # the most clustered: few hosts, packets one after the other
)  # fmt: skip
SPAN = 2000  # seconds that the generated trace lasts
REFERENCE_FIELDS = ["version", "src", "dst", "proto", "length", "ip_length", "sport", "dport", "tcp_flags"]


@dataclass(frozen=True)
class Trace:
    """A pcap file of `rows` packets; `reference` makes what its answers are compared with, `note` says by whom."""

    name: str
    file: Path
    rows: int
    reference: Callable[[], Reference]
    note: str

    def prefix(self, rows: int) -> Path:
        if rows >= self.rows:
            return self.file
        return captures.prefix(self.file, rows, self.file.with_name(f"{self.file.stem}-first-{rows}.pcap"))


def traces(work: Path, rows: int, given: Sequence[Path] | None, quick: bool, progress: Progress) -> list[Trace]:
    """The captures that are given; without any, those that are known and here, and a generated trace."""
    found = list(given or ())
    if not given:
        found = [] if quick else [path for name in KNOWN if (path := PLACE / name).exists()]
    made = [repeated(work, path, rows, progress) for path in found]
    return made if given else [*made, generated(work, rows, progress)]


def repeated(work: Path, path: Path, rows: int, progress: Progress) -> Trace:
    """A capture, again and again."""
    name = path.name.partition(".")[0]
    file = work / f"{name}-{rows}.pcap"
    progress(f"reading {path.name}")
    capture = captures.read_capture(path)
    if not file.exists():
        progress(f"repeating {capture.packets:,} packets of {path.name} to {rows:,}")
        captures.replicate(capture, rows, file)
    once = min(rows, capture.packets)

    def reference() -> Reference:
        plain = captures.prefix(file, once, work / f"{name}-once-{once}.pcap")
        return Reference(_fields(plain, progress), captures.replicated_times(capture, rows))

    by = "tshark" if shutil.which("tshark") else "penstock itself (no tshark here)"
    return Trace(
        name, file, rows, reference, f"{capture.packets:,} packets repeated; fields compared are those of {by}"
    )


def _fields(file: Path, progress: Progress) -> pa.Table:
    if shutil.which("tshark"):
        progress(f"tshark: fields of {file.name}")
        return packet_fields.export(file)
    return _own_fields(file)


def _own_fields(file: Path) -> pa.Table:
    from penstock.sources.base import whole
    from penstock.sources.registry import open_source

    source = open_source(f"pcap:{file}", {})
    read = (batch.select(REFERENCE_FIELDS) for batch in source.read(whole(source), REFERENCE_FIELDS, 1 << 16))
    table = pa.Table.from_batches(read).combine_chunks()
    for number, name in enumerate(REFERENCE_FIELDS):
        if name in ("src", "dst"):
            table = table.set_column(number, name, _texts(table[name].chunk(0)))
    return table


def _texts(addresses: pa.StructArray) -> pa.Array:
    """Addresses of `sources.base.ADDRESS` as text."""
    four, six = (part.dictionary_encode() for part in addresses.flatten())
    texts = [
        pa.array([None if v is None else str(ip_address(v)) for v in part.dictionary.to_pylist()], pa.string()).take(
            part.indices
        )
        for part in (six, four)
    ]
    return pc.coalesce(*texts)


def generated(work: Path, rows: int, progress: Progress) -> Trace:
    """Packets of generated flows."""
    file, fields = work / f"generated-{rows}.pcap", work / f"generated-{rows}.parquet"
    if not (file.exists() and fields.exists()):
        frames.write_trace(rows, rows / SPAN, file, fields, progress)

    def reference() -> Reference:
        table = pq.read_table(fields)
        return Reference(table, table["ts"].to_numpy())

    return Trace("generated", file, rows, reference, "fields compared are those it was made from")
