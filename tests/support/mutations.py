"""Captures that are damaged on purpose, by seed: what a decoder of packets must survive.

    capture ──► first_packets (a small one) ──► anatomy (where its records and their fields are) ──► mutated(seed)

Most changes aim at what a decoder trusts: lengths, offsets and types, in the headers of records and of packets. Nothing
here knows the engine's decoder; formats are read by `struct`, as far as undamaged captures need it.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from dataclasses import dataclass

SECTION, PACKETS = 0x0A0D0D0A, (2, 3, 6)
BLOCK_MAGICS = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}
FILE_MAGICS = {
    b"\xd4\xc3\xb2\xa1": ("<", 16), b"\x4d\x3c\xb2\xa1": ("<", 16), b"\x34\xcd\xb2\xa1": ("<", 24),
    b"\xa1\xb2\xc3\xd4": (">", 16), b"\xa1\xb2\x3c\x4d": (">", 16), b"\xa1\xb2\xcd\x34": (">", 24),
}  # fmt: skip
# Numbers at which something changes: widths, least and greatest lengths, limits of readers.
NUMBERS = (
    0, 1, 2, 3, 4, 7, 8, 11, 12, 15, 16, 19, 20, 27, 28, 31, 32, 39, 40, 59, 60, 63, 64, 127, 128, 255, 256, 1500, 4095,
    32767, 32768, 65535, 65536, 262143, 262144, 262145, (1 << 24) - 1, 1 << 24, (1 << 24) + 4, (1 << 31) - 1, 1 << 31,
    (1 << 32) - 4, (1 << 32) - 1,
)  # fmt: skip
ETHERTYPES = (0x0800, 0x86DD, 0x8100, 0x88A8, 0x9100, 0x8847, 0x8848, 0x8864, 0x0806, 0x6558, 0, 3, 0x5FF, 0x600)
PROTOCOLS = (0, 1, 4, 6, 17, 33, 41, 43, 44, 47, 50, 51, 58, 59, 60, 132, 135, 136, 139, 140, 255)
FIRST_BYTES = (0x45, 0x46, 0x4F, 0x44, 0x40, 0x60, 0x6F, 0x00, 0xFF, 0x55)
LINKS = (0, 1, 9, 12, 50, 51, 101, 104, 105, 108, 113, 127, 204, 219, 228, 229, 276)


@dataclass(frozen=True)
class Anatomy:
    """Where things are in a capture: records as (start, stop), fields of four bytes, packets with their header."""

    order: str
    records: tuple[tuple[int, int], ...]
    fields: tuple[int, ...]
    packets: tuple[tuple[int, int, int], ...]  # start, captured, where `captured` and after it `length` stand


def anatomy(data: bytes) -> Anatomy:
    """Of an undamaged capture, or the undamaged beginning of one."""
    return _pcapng(data) if data[:4] == b"\n\r\r\n" else _pcap(data)


def _pcap(data: bytes) -> Anatomy:
    order, header = FILE_MAGICS[data[:4]]
    records, packets, fields, at = [], [], [16, 20], 24
    while at + header <= len(data):
        captured = struct.unpack_from(order + "I", data, at + 8)[0]
        stop = at + header + captured
        if stop > len(data):
            break
        records.append((at, stop))
        packets.append((at + header, captured, at + 8))
        fields += [at, at + 4, at + 8, at + 12]
        at = stop
    return Anatomy(order, tuple(records), tuple(fields), tuple(packets))


def _pcapng(data: bytes) -> Anatomy:
    order, records, packets, at = "<", [], [], 0
    fields: list[int] = []
    while at + 12 <= len(data):
        order = BLOCK_MAGICS[data[at + 8 : at + 12]] if data[at : at + 4] == b"\n\r\r\n" else order
        kind, total = struct.unpack_from(order + "II", data, at)
        if total < 12 or at + total > len(data):
            break
        records.append((at, at + total))
        fields += range(at, min(at + 40, at + total - 3), 4)
        fields.append(at + total - 4)
        if kind in (2, 6):
            packets.append((at + 28, struct.unpack_from(order + "I", data, at + 20)[0], at + 20))
        at += total
    return Anatomy(order, tuple(records), tuple(fields), tuple(packets))


def first_packets(data: bytes, count: int) -> bytes:
    """The capture up to its `count`-th packet."""
    known = anatomy(data)
    if len(known.packets) <= count:
        return data
    last = known.packets[count - 1][0]
    return data[: next(stop for start, stop in known.records if start < last < stop or start < last == stop)]


def mutated(data: bytes, known: Anatomy, seed: int) -> bytes:
    """One to four changes. Those that move bytes come last: places are those of the undamaged capture."""
    rng, out = random.Random(seed), bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 3))):
        rng.choice(IN_PLACE)(out, known, rng)
    if rng.random() < 0.4:
        rng.choice(MOVING)(out, known, rng)
    return bytes(out)


Change = Callable[[bytearray, Anatomy, random.Random], None]


def _flip(out: bytearray, known: Anatomy, rng: random.Random) -> None:
    out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)


def _byte(out: bytearray, known: Anatomy, rng: random.Random) -> None:
    out[rng.randrange(len(out))] = rng.choice((0, 255, 127, 128, rng.randrange(256)))


def _noise(out: bytearray, known: Anatomy, rng: random.Random) -> None:
    at = rng.randrange(len(out))
    size = min(rng.choice((2, 4, 8, 16, 64, 300)), len(out) - at)
    out[at : at + size] = rng.randbytes(size)


def _field(out: bytearray, known: Anatomy, rng: random.Random) -> None:
    """A field of a record's header."""
    at = rng.choice(known.fields)
    old = struct.unpack_from(known.order + "I", out, at)[0]
    near = (old + rng.choice((-4, -3, -1, 1, 3, 4, 16))) % (1 << 32)
    struct.pack_into(rng.choice((known.order, "<", ">")) + "I", out, at, rng.choice((near, rng.choice(NUMBERS))))


def _swap(out: bytearray, known: Anatomy, rng: random.Random) -> None:
    at, size = rng.randrange(len(out)), rng.choice((2, 4, 8))
    out[at : at + size] = out[at : at + size][::-1]


def _copy(out: bytearray, known: Anatomy, rng: random.Random) -> None:
    """Bytes from elsewhere: a header where none should be."""
    size = min(rng.choice((4, 14, 20, 40, 60)), len(out))
    source, target = rng.randrange(len(out) - size + 1), rng.randrange(len(out) - size + 1)
    out[target : target + size] = out[source : source + size]


def _link(out: bytearray, known: Anatomy, rng: random.Random) -> None:
    """Another link type: of the file, or of the first interface."""
    if out[:4] != b"\n\r\r\n":
        struct.pack_into(known.order + "I", out, 20, rng.choice(LINKS))
    elif len(known.records) > 1:
        struct.pack_into(known.order + "H", out, known.records[1][0] + 8, rng.choice(LINKS))


def _header(out: bytearray, known: Anatomy, rng: random.Random) -> None:
    """The bytes of a packet that say what follows and how long it is, as they lie after an Ethernet header."""
    if not known.packets:
        return
    start, captured, _ = rng.choice(known.packets)
    at, value, size = rng.choice((
        (12, rng.choice(ETHERTYPES), 2), (16, rng.choice(ETHERTYPES), 2), (14, rng.choice(FIRST_BYTES), 1),
        (18, rng.choice(FIRST_BYTES), 1), (16, rng.choice(NUMBERS) & 0xFFFF, 2), (18, rng.choice(NUMBERS) & 0xFFFF, 2),
        (20, rng.choice((0, 0x2000, 1, 0x1FFF, 0x4000)), 2), (20, rng.choice(PROTOCOLS), 1),
        (23, rng.choice(PROTOCOLS), 1), (46, rng.randrange(256), 1), (36, 4789, 2), (42, 8, 1),
        (34, rng.randrange(65536), 2), (36, rng.choice(ETHERTYPES), 2), (54, rng.choice(PROTOCOLS), 1),
        (55, rng.choice((0, 1, 2, 31, 255)), 1), (rng.randrange(80), rng.choice(PROTOCOLS), 1),
    ))  # fmt: skip
    if at + size <= captured:
        out[start + at : start + at + size] = value.to_bytes(size, "big")


def _truncate(out: bytearray, known: Anatomy, rng: random.Random) -> None:
    del out[rng.randrange(len(out)) :]


def _repeat(out: bytearray, known: Anatomy, rng: random.Random) -> None:
    if known.records:
        start, stop = rng.choice(known.records)
        out[stop:stop] = out[start:stop] * rng.choice((1, 1, 2, 20))


def _remove(out: bytearray, known: Anatomy, rng: random.Random) -> None:
    if known.records:
        start, stop = rng.choice(known.records)
        del out[start:stop]


def _move(out: bytearray, known: Anatomy, rng: random.Random) -> None:
    if known.records:
        start, stop = rng.choice(known.records)
        record = out[start:stop]
        del out[start:stop]
        at = rng.choice(known.records)[0]
        out[at:at] = record


def _insert(out: bytearray, known: Anatomy, rng: random.Random) -> None:
    at = rng.randrange(len(out) + 1)
    out[at:at] = rng.randbytes(rng.choice((1, 2, 4, 16)))


def _shorten(out: bytearray, known: Anatomy, rng: random.Random) -> None:
    """A packet that ends early: by the snap length, or as it was sent. The record itself stays right."""
    if not known.packets:
        return
    start, captured, field = rng.choice(known.packets)
    left = rng.randrange(min(captured, 160) + 1)
    struct.pack_into(known.order + "I", out, field, left)
    if rng.random() < 0.5:
        struct.pack_into(known.order + "I", out, field + 4, left)
    if out[:4] != b"\n\r\r\n":  # a block may be longer than its packet
        del out[start + left : start + captured]


IN_PLACE: tuple[Change, ...] = (_flip, _byte, _noise, _field, _field, _swap, _copy, _link, _header, _header, _header)
MOVING: tuple[Change, ...] = (_truncate, _repeat, _remove, _move, _insert, _shorten, _shorten, _shorten)
