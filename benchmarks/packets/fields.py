"""What tshark says of every packet, as columns by the names of `pcap:`: the reference decoder, independent of ours.

Used for a capture's reference answers (`benchmarks.data.traces`) and by the contender
`benchmarks.engines.packets_tshark`. Reassembly is off, so that each packet is taken for itself, and what is above TCP
and UDP is not looked into.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from ipaddress import ip_address
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pc_csv

OPTIONS = (
    "-n", "-o", "ip.defragment:FALSE", "-o", "ipv6.defragment:FALSE", "-o", "tcp.desegment_tcp_streams:FALSE",
    "-d", "tcp.port==1-65535,data", "-d", "udp.port==1-65535,data",
)  # fmt: skip
EXTENSIONS = ("ipv6.hopopts.nxt", "ipv6.routing.nxt", "ipv6.fraghdr.nxt", "ipv6.dstopts.nxt")
FIELDS = (
    "frame.time_epoch", "frame.len", "ip.version", "ipv6.version", "ip.src", "ipv6.src", "ip.dst", "ipv6.dst",
    "ip.proto", "ipv6.nxt", *EXTENSIONS, "ip.len", "ipv6.plen", "ip.frag_offset", "ipv6.fraghdr.offset",
    "tcp.srcport", "udp.srcport", "sctp.srcport", "tcp.dstport", "udp.dstport", "sctp.dstport", "tcp.flags",
)  # fmt: skip
IPV6_HEADER = 40
WITH_PORTS = ((6, "tcp"), (17, "udp"), (132, "sctp"))


def command(file: Path) -> list[str]:
    """tshark printing a line per packet; of a field that a packet has several times (in ICMP errors), the first."""
    fields = [part for name in FIELDS for part in ("-e", name)]
    return ["tshark", "-r", str(file), *OPTIONS, "-T", "fields", "-E", "separator=,", "-E", "occurrence=f", *fields]


def export(file: Path) -> pa.Table:
    """Fields of all packets of a capture, in order."""
    with subprocess.Popen(command(file), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        table = parse(process.stdout)
    if process.returncode:
        raise OSError(f"tshark ended with code {process.returncode}")
    return table


def parse(lines: IO[bytes]) -> pa.Table:
    types = {name: pa.string() for name in FIELDS}
    read = pc_csv.ReadOptions(column_names=list(FIELDS))
    convert = pc_csv.ConvertOptions(column_types=types, strings_can_be_null=True, null_values=[""])
    return columns(pc_csv.read_csv(lines, read_options=read, convert_options=convert).combine_chunks())


def columns(raw: pa.Table) -> pa.Table:
    """ts in microseconds, addresses as text, all else integers; NULL where a packet does not have it."""
    version = _first(raw, "ip.version", "ipv6.version")
    four = pc.fill_null(pc.equal(version, 4), False)
    proto = pc.if_else(four, _number(raw, "ip.proto"), _first(raw, *reversed(EXTENSIONS), "ipv6.nxt"))
    below = pc.if_else(four, _number(raw, "ip.len"), pc.add(_number(raw, "ipv6.plen"), IPV6_HEADER))
    return pa.table(
        {
            "ts": _micros(raw["frame.time_epoch"]),
            "version": version,
            "src": _addresses(raw, four, "src"),
            "dst": _addresses(raw, four, "dst"),
            "proto": proto,
            "length": _number(raw, "frame.len"),
            "ip_length": below,
            "sport": _ports(raw, proto, "srcport"),
            "dport": _ports(raw, proto, "dstport"),
            "tcp_flags": _of_protocol(_hexadecimal(raw["tcp.flags"]), proto, 6),
        }
    )


def _number(raw: pa.Table, name: str) -> pa.ChunkedArray:
    return raw[name].cast(pa.int64())


def _first(raw: pa.Table, *names: str) -> pa.ChunkedArray:
    return pc.coalesce(*(_number(raw, name) for name in names))


def _micros(text: pa.ChunkedArray) -> pa.ChunkedArray:
    """Seconds with nine decimals; as two integers, a double has too few digits."""
    return pc.divide(pc.replace_substring(text, ".", "").cast(pa.int64()), 1000)


def _hexadecimal(text: pa.ChunkedArray) -> pa.ChunkedArray:
    distinct = text.unique()
    numbers = pa.array([None if value is None else int(value, 16) for value in distinct.to_pylist()], pa.int64())
    return numbers.take(pc.index_in(text, distinct))


def _addresses(raw: pa.Table, four: pa.ChunkedArray, side: str) -> pa.ChunkedArray:
    return pc.if_else(four, raw[f"ip.{side}"], raw[f"ipv6.{side}"])


def _ports(raw: pa.Table, proto: pa.ChunkedArray, which: str) -> pa.ChunkedArray:
    return pc.coalesce(*(_of_protocol(_number(raw, f"{name}.{which}"), proto, number) for number, name in WITH_PORTS))


def _of_protocol(values: pa.ChunkedArray, proto: pa.ChunkedArray, number: int) -> pa.ChunkedArray:
    """An ICMP error quotes the header of another packet: its ports and flags are not the packet's own."""
    return pc.if_else(pc.equal(proto, number), values, pa.scalar(None, pa.int64()))


def canonical(texts: Sequence[str | None]) -> list[str | None]:
    """Addresses as RFC 5952 prints them, whatever a tool's habits."""
    return [None if text is None else str(ip_address(text.strip())) for text in texts]
