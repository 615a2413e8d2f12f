"""A generated packet trace, for machines without captures: `generate:` records as frames of a pcap file.

Used by `benchmarks.data.traces`. Every record becomes one Ethernet frame with an IPv4 packet of TCP, UDP or ICMP, of
which the first 64 bytes are captured, as a sniffer with a short snap length does. Records have one size, so a block of
them is one numpy array of `FRAME`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from benchmarks.data.captures import file_header
from penstock.sources.base import whole
from penstock.sources.generate.source import open_generate
from penstock.sources.generate.synthetic import BLOCK

ETHERNET, SNAP = 1, 64
IP_BYTES, ETHERNET_BYTES = 20, 14
LEAST, MOST = SNAP - ETHERNET_BYTES, 1500  # bytes of an IP packet: all that is captured is there
TCP, UDP, ICMP = 6, 17, 1
FRAME = np.dtype(
    [
        ("seconds", "<u4"), ("micros", "<u4"), ("captured", "<u4"), ("length", "<u4"),
        ("macs", "u1", 12), ("ethertype", ">u2"),
        ("version", "u1"), ("tos", "u1"), ("ip_length", ">u2"), ("id", ">u2"), ("fragment", ">u2"),
        ("ttl", "u1"), ("proto", "u1"), ("checksum", ">u2"), ("src", ">u4"), ("dst", ">u4"),
        ("sport", ">u2"), ("dport", ">u2"), ("transport", "u1", 26),
    ]
)  # fmt: skip
COLUMNS = ["ts", "src", "dst", "sport", "dport", "proto", "tos", "ttl", "flags", "bytes"]


def write_trace(rows: int, rate: float, file: Path, fields: Path, progress: Callable[[str], None]) -> None:
    """Write the frames to `file` and what they say to `fields`, Parquet: ts, addresses, ports, lengths, flags."""
    progress(f"generating {rows:,} packets")
    source = open_generate("clustered", {"rows": str(rows), "rate": f"{rate!r}"})
    asides = [path.with_name(f".{path.name}.tmp") for path in (file, fields)]
    writer: pq.ParquetWriter | None = None
    with asides[0].open("wb") as out:
        out.write(file_header(ETHERNET, SNAP))
        for batch in source.read(whole(source), COLUMNS, BLOCK):
            columns = {name: batch.column(name).to_numpy(zero_copy_only=False) for name in COLUMNS[1:]}
            micros = batch.column("ts").cast(pa.int64()).to_numpy()
            columns["ip_length"] = np.clip(columns["bytes"], LEAST, MOST)
            out.write(frames(micros, columns).tobytes())
            told = _fields(micros, columns)
            writer = writer or pq.ParquetWriter(asides[1], told.schema)
            writer.write_table(told)
    if writer is not None:
        writer.close()
    for aside, path in zip(asides, (file, fields), strict=True):
        aside.rename(path)


def frames(micros: NDArray[np.int64], columns: dict[str, NDArray[Any]]) -> NDArray[Any]:
    """One record of a pcap file per packet."""
    made = np.zeros(len(micros), FRAME)
    made["seconds"], made["micros"] = np.divmod(micros, 1_000_000)
    made["captured"], made["length"] = SNAP, columns["ip_length"] + ETHERNET_BYTES
    made["macs"], made["ethertype"], made["version"] = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2], 0x0800, 0x45
    made["id"] = np.arange(len(micros)) & 0xFFFF
    for name in ("tos", "ip_length", "ttl", "proto", "src", "dst"):
        made[name] = columns[name]
    made["checksum"] = _checksums(made)
    _transport(made, columns)
    return made


def _checksums(made: NDArray[Any]) -> NDArray[Any]:
    """Of the IP headers, in which the field itself is still 0."""
    start = 16 + ETHERNET_BYTES
    header = made.view(np.uint8).reshape(len(made), FRAME.itemsize)[:, start : start + IP_BYTES]
    total = np.ascontiguousarray(header).view(">u2").astype(np.int64).sum(axis=1)
    total = (total & 0xFFFF) + (total >> 16)
    return np.asarray(0xFFFF - ((total & 0xFFFF) + (total >> 16)))


def _transport(made: NDArray[Any], columns: dict[str, NDArray[Any]]) -> None:
    proto, rest = columns["proto"], made["transport"]
    ports = proto != ICMP  # an echo request is type 8, code 0
    made["sport"] = np.where(ports, columns["sport"], 0x0800)
    made["dport"] = np.where(ports, columns["dport"], 0)
    tcp, udp = proto == TCP, proto == UDP
    rest[tcp, 8], rest[tcp, 9] = 0x50, columns["flags"][tcp]  # five words of header
    size = (columns["ip_length"][udp] - IP_BYTES).astype(">u2")
    rest[udp, :2] = size.view(np.uint8).reshape(-1, 2)


def _fields(micros: NDArray[np.int64], columns: dict[str, NDArray[Any]]) -> pa.Table:
    """What a decoder should find, by the names of `pcap:`; ports and flags only where the protocol has them."""
    proto = columns["proto"].astype(np.int64)
    lengths = columns["ip_length"].astype(np.int64)
    made = {"ts": pa.array(micros), "version": pa.array(np.full(len(micros), 4))}
    made |= {name: pa.array(columns[name].astype(np.int64)) for name in ("src", "dst")}
    made |= {"proto": pa.array(proto), "length": pa.array(lengths + ETHERNET_BYTES), "ip_length": pa.array(lengths)}
    for name in ("sport", "dport"):
        made[name] = pa.array(columns[name].astype(np.int64), mask=proto == ICMP)
    made["tcp_flags"] = pa.array(columns["flags"].astype(np.int64), mask=proto != TCP)
    return pa.table(made)
