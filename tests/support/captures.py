"""Capture files written by `struct`: pcap and pcapng in all their forms, and with any number wrong that a test wants.

pcap([Packet(data), …], order=">", nano=True)
section("<") + interface("<", link=1, options=[(9, b"\\x09")]) + enhanced("<", 0, ticks, data)
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple

MAGICS = {(False, False): 0xA1B2C3D4, (True, False): 0xA1B23C4D, (False, True): 0xA1B2CD34}


class Packet(NamedTuple):
    """A record: what was captured, how long the packet was (None: as captured), and its time."""

    data: bytes
    length: int | None = None
    seconds: int = 0
    parts: int = 0


def pcap_head(
    order: str = "<", nano: bool = False, modified: bool = False, link: int = 1, version: tuple[int, int] = (2, 4)
) -> bytes:
    return struct.pack(order + "IHHiIII", MAGICS[nano, modified], *version, 0, 0, 65535, link)


def pcap_record(packet: Packet, order: str = "<", modified: bool = False, swapped: bool = False) -> bytes:
    length = len(packet.data) if packet.length is None else packet.length
    sizes = (length, len(packet.data)) if swapped else (len(packet.data), length)
    more = b"\1\2\3\4\5\6\7\x08" if modified else b""
    return struct.pack(order + "IIII", packet.seconds, packet.parts, *sizes) + more + packet.data


def pcap(
    packets: Iterable[Packet],
    order: str = "<",
    nano: bool = False,
    modified: bool = False,
    link: int = 1,
    version: tuple[int, int] = (2, 4),
    swapped: bool = False,
) -> bytes:
    """A whole file; `swapped` writes both lengths the other way round, as old versions did."""
    records = (pcap_record(packet, order, modified, swapped) for packet in packets)
    return pcap_head(order, nano, modified, link, version) + b"".join(records)


def block(order: str, kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    total = struct.pack(order + "I", len(body) + 12)
    return struct.pack(order + "I", kind) + total + body + total


def options(order: str, given: Sequence[tuple[int, bytes]]) -> bytes:
    texts = (struct.pack(order + "HH", code, len(text)) + text + bytes(-len(text) % 4) for code, text in given)
    return b"".join(texts) + bytes(4) if given else b""


def section(order: str, given: Sequence[tuple[int, bytes]] = ()) -> bytes:
    return block(order, 0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1) + options(order, given))


def interface(order: str, link: int = 1, snap: int = 0, given: Sequence[tuple[int, bytes]] = ()) -> bytes:
    return block(order, 1, struct.pack(order + "HHI", link, 0, snap) + options(order, given))


def enhanced(
    order: str, number: int, ticks: int, data: bytes, length: int | None = None, given: Sequence[tuple[int, bytes]] = ()
) -> bytes:
    sizes = (len(data), len(data) if length is None else length)
    head = struct.pack(order + "IIIII", number, ticks >> 32, ticks & 0xFFFFFFFF, *sizes)
    return block(order, 6, head + data + bytes(-len(data) % 4) + options(order, given))


def obsolete(order: str, number: int, ticks: int, data: bytes, length: int | None = None) -> bytes:
    """The packet block of old files."""
    sizes = (len(data), len(data) if length is None else length)
    return block(order, 2, struct.pack(order + "HHIIII", number, 7, ticks >> 32, ticks & 0xFFFFFFFF, *sizes) + data)


def simple(order: str, data: bytes, length: int | None = None) -> bytes:
    return block(order, 3, struct.pack(order + "I", len(data) if length is None else length) + data)
