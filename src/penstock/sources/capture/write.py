"""Records as a packet capture: a frame each, with headers of Ethernet, IPv4 and TCP or UDP, and no payload.

For generated streams, so that what reads captures can be tried without one. Frames are cut after their headers, as
`tcpdump -s 54` would; `ip_length` and `length` are those of the whole packet, and fit 16 bits.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

Array = np.ndarray

MAGIC = 0xA1B2C3D4  # microseconds
TCP, UDP = 6, 17
ETHERNET, LONGEST = 14, 65_535
FILE = np.dtype([
    ("magic", "<u4"), ("major", "<u2"), ("minor", "<u2"), ("zone", "<i4"), ("accuracy", "<u4"), ("snap", "<u4"),
    ("link", "<u4"),
])  # fmt: skip
FRAME = np.dtype([
    ("seconds", "<u4"), ("micros", "<u4"), ("captured", "<u4"), ("length", "<u4"),
    ("to", "u1", 6), ("from", "u1", 6), ("ether", ">u2"),
    ("version", "u1"), ("tos", "u1"), ("ip_length", ">u2"), ("id", ">u2"), ("fragment", ">u2"), ("ttl", "u1"),
    ("proto", "u1"), ("checksum", ">u2"), ("src", ">u4"), ("dst", ">u4"), ("sport", ">u2"), ("dport", ">u2"),
    ("sequence", ">u4"), ("acknowledged", ">u4"), ("offset", "u1"), ("flags", "u1"), ("window", ">u2"),
    ("sum", ">u2"), ("urgent", ">u2"),
])  # fmt: skip
HEADERS = FRAME.itemsize - 16  # bytes of a frame that are captured
LEAST = HEADERS - ETHERNET


def file_header() -> bytes:
    return np.array((MAGIC, 2, 4, 0, 0, HEADERS, 1), FILE).tobytes()


def frames(table: pa.Table) -> bytes:
    """The packets of these records; columns that are missing are zero."""
    made = np.zeros(table.num_rows, FRAME)
    times = _column(table, "ts")
    made["seconds"], made["micros"] = times // 1_000_000, times % 1_000_000
    size = np.clip(_column(table, "bytes"), LEAST, LONGEST - ETHERNET)
    made["captured"], made["length"], made["ip_length"] = HEADERS, size + ETHERNET, size
    made["ether"], made["version"], made["fragment"] = 0x0800, 0x45, 0x4000
    for name in ("tos", "ttl", "proto", "src", "dst", "sport", "dport"):
        made[name] = _column(table, name)
    made["proto"] = np.where(made["proto"] == UDP, UDP, TCP)
    udp = made["proto"] == UDP
    made["offset"], made["flags"], made["window"] = 0x50, _column(table, "flags"), LONGEST
    # A header of UDP ends after length and checksum; what stands behind it is payload.
    made["sequence"][udp] = (size[udp] - 20) << 16
    made["offset"][udp] = made["flags"][udp] = made["window"][udp] = 0
    made["checksum"] = _checksum(made)
    return made.tobytes()


def _column(table: pa.Table, name: str) -> Array:
    if name not in table.column_names:
        return np.zeros(table.num_rows, np.int64)
    column = table.column(name)
    numbers = column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column
    values: Array = numbers.to_numpy(zero_copy_only=False).astype(np.int64)
    return values


def _checksum(made: Array) -> Array:
    """Of the header of IPv4: the complement of the sum of its 16-bit words, with carries added again."""
    start = 16 + ETHERNET
    words = made.view(np.uint8).reshape(len(made), FRAME.itemsize)[:, start : start + 20].reshape(len(made), 10, 2)
    total = (words[:, :, 0].astype(np.uint32) << 8 | words[:, :, 1]).sum(1)
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    complement: Array = ~total & 0xFFFF
    return complement
