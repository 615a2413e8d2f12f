"""Finds the records of pcap and pcapng files: where each packet's bytes are, its time, lengths and interface.

    bytes of a file ──► pcap_records, pcapng_records ──► PacketRecords (one row a packet) ──► kernels.packets.layers

Kernels walk over what is in memory and stop before a record that is not wholly there; `state` is where they go on.
A record that cannot be read is a row with a reason. After `DAMAGED` and `CUT` nothing more of the file can be found.
Whether a row is readable never depends on how much of the file is in memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import int64, types, uint64

from penstock.kernels.jit import I32, I64, U8, kernel, part, ro, rw
from penstock.kernels.packets.capture_times import NO_TIME, microseconds

Array = np.ndarray[Any, Any]
LONGEST = 262_144  # bytes captured of one packet: more is damage, as in other readers
LONGEST_BLOCK = 1 << 24
DESCRIPTION = 1 << 16  # bytes of an interface's description that are looked at
ROOM = LONGEST + DESCRIPTION  # what must fit into memory at once
MOST_INTERFACES = 1024
# Places in `state`. DONE: the reason why nothing more can be found, or 0. MET: the block that was passed last described
# a section or an interface, at PLACE of this many BYTES.
AT, DONE, BIG, COUNT, MET, PLACE, BYTES = range(7)
STATE = 7
WAITING = 255  # as DONE: the file ends within a block, the rest of which may follow
# Places in `form`, how a pcap file is written.
ORDER, NANO, HEADER, SWAP, LINK = range(5)
# Reasons of unreadable rows; their texts are in `sources.capture.columns`.
FINE, DAMAGED, CUT, UNDESCRIBED, LENGTHS = range(5)
SECTION, INTERFACE, PACKET, SIMPLE, ENHANCED = 0x0A0D0D0A, 1, 2, 3, 6
MAGIC, SWAPPED_MAGIC = 0x1A2B3C4D, 0x4D3C2B1A
RESOLUTION, SHIFT = 9, 14  # options of an interface: unit of times, seconds to add


class PacketRecords:
    """Room for a number of records. Times are microseconds since 1970, `NO_TIME` where there is none."""

    def __init__(self, rows: int) -> None:
        self.at = np.empty(rows, np.int64)  # of the packet's first byte
        self.captured = np.empty(rows, np.int32)
        self.length = np.empty(rows, np.int64)
        self.time = np.empty(rows, np.int64)
        self.link = np.empty(rows, np.int32)
        self.interface = np.empty(rows, np.int32)
        self.reason = np.empty(rows, np.uint8)
        self.start = np.empty(rows, np.int64)  # of the record

    def part(self, first: int, stop: int) -> PacketRecords:
        """Some of the records."""
        part = PacketRecords(0)
        part.__dict__ = {name: column[first:stop] for name, column in self.__dict__.items()}
        return part

    def columns(self) -> tuple[Array, ...]:
        return (
            self.at, self.captured, self.length, self.time, self.link, self.interface, self.reason, self.start,
        )  # fmt: skip


OUT = types.Tuple((rw(I64), rw(I32), rw(I64), rw(I64), rw(I32), rw(I32), rw(U8), rw(I64)))


@part
def word(data, at, big):
    """Four bytes in the file's order."""
    a, b, c, d = int64(data[at]), int64(data[at + 1]), int64(data[at + 2]), int64(data[at + 3])
    if big:
        return a << 24 | b << 16 | c << 8 | d
    return d << 24 | c << 16 | b << 8 | a


@part
def half(data, at, big):
    a, b = int64(data[at]), int64(data[at + 1])
    return a << 8 | b if big else b << 8 | a


@part
def note(out, n, at, captured, length, time, link, interface, reason, start):
    out[0][n], out[1][n], out[2][n], out[3][n] = at, captured, length, time
    out[4][n], out[5][n], out[6][n], out[7][n] = link, interface, reason, start


@part
def lost(out, n, place, reason):
    """A row of which nothing can be read."""
    note(out, n, place, 0, 0, NO_TIME, -1, -1, reason, place)


@part
def short(state, out, n, place, end, final):
    """The record at `place` is not wholly there: rows, which are one more where nothing will follow."""
    state[AT] = place
    if final and place != end and n < out[0].shape[0]:
        lost(out, n, place, CUT)
        state[AT], state[DONE] = end, CUT
        return n + 1
    return n


@part
def damaged(state, out, n, place):
    lost(out, n, place, DAMAGED)
    state[AT], state[DONE] = place, DAMAGED
    return n + 1


@kernel(I64, ro(U8), I64, U8, rw(I64), ro(I64), OUT)
def pcap_records(data, end, final, state, form, out):
    """Rows found from state[AT] on in data[:end]; `final` says that the file ends there."""
    place, n, big, header = state[AT], 0, form[ORDER] != 0, form[HEADER]
    if state[DONE]:
        return 0
    while n < out[0].shape[0]:
        if place + header > end:
            return short(state, out, n, place, end, final)
        captured, length = word(data, place + 8, big), word(data, place + 12, big)
        if form[SWAP] == 2 or (form[SWAP] == 1 and captured > length):
            captured, length = length, captured
        if captured > LONGEST:
            return damaged(state, out, n, place)
        if place + header + captured > end:
            return short(state, out, n, place, end, final)
        parts = word(data, place + 4, big)
        time = word(data, place, big) * 1_000_000 + (parts // 1000 if form[NANO] else parts)
        note(out, n, place + header, captured, length, time, form[LINK], 0, FINE, place)
        place += header + captured
        n += 1
    state[AT] = place
    return n


@part
def describe(data, place, total, big, state, links, units, seconds, snaps):
    """Remember the interface that is described at `place`."""
    number = state[COUNT]
    state[COUNT] += 1
    links[number], snaps[number] = half(data, place + 8, big), word(data, place + 12, big)
    units[number], seconds[number] = 6, 0
    at, stop = place + 16, place + min(total - 4, DESCRIPTION)
    while at + 4 <= stop:
        code, size = half(data, at, big), half(data, at + 2, big)
        if code == 0 or at + 4 + size > stop:
            return
        if code == RESOLUTION and size == 1:
            units[number] = data[at + 4]
        if code == SHIFT and size == 8:
            first, second = word(data, at + 4, big), word(data, at + 8, big)
            seconds[number] = (first << 32 | second) if big else (second << 32 | first)
        at += 4 + (size + 3) // 4 * 4


@part
def enhanced(data, place, kind, total, big, state, links, units, seconds, out, n):
    """A block with a packet, its interface and time; which of two layouts is told by `kind`."""
    number = word(data, place + 8, big) if kind == ENHANCED else half(data, place + 8, big)
    captured, length = word(data, place + 20, big), word(data, place + 24, big)
    if captured > min(LONGEST, total - 32):
        lost(out, n, place, LENGTHS)
    elif number >= state[COUNT]:
        lost(out, n, place, UNDESCRIBED)
    else:
        ticks = uint64(word(data, place + 12, big)) << uint64(32) | uint64(word(data, place + 16, big))
        time = microseconds(ticks, units[number], seconds[number])
        note(out, n, place + 28, captured, length, time, links[number], number, FINE, place)


@part
def simple(data, place, total, big, state, links, snaps, out, n):
    """A packet of the first interface, without a time."""
    length = word(data, place + 8, big)
    captured = min(length, total - 16)
    if state[COUNT] == 0:
        lost(out, n, place, UNDESCRIBED)
        return
    if snaps[0]:
        captured = min(captured, snaps[0])
    if captured > LONGEST:
        lost(out, n, place, LENGTHS)
    else:
        note(out, n, place + 12, captured, length, NO_TIME, links[0], 0, FINE, place)


@part
def needed(kind, total):
    """Bytes of a block that are looked at."""
    if kind == SECTION:
        return int64(28)
    if kind == INTERFACE:
        return min(total, int64(DESCRIPTION))
    if kind == PACKET or kind == SIMPLE or kind == ENHANCED:
        return min(total, int64(LONGEST + 32))
    return int64(12)


@part
def least(kind):
    """Bytes that a block of this kind has at least."""
    if kind == SECTION:
        return int64(28)
    if kind == INTERFACE:
        return int64(20)
    if kind == SIMPLE:
        return int64(16)
    return int64(32) if kind == PACKET or kind == ENHANCED else int64(12)


@part
def beyond(state, out, n, place, end, tail):
    """The block at `place` goes on beyond the end of the file: rows, one more where nothing will follow."""
    if tail:
        lost(out, n, place, CUT)
        state[AT], state[DONE] = end, CUT
        return n + 1
    state[AT], state[DONE] = place, WAITING
    return n


@kernel(I64, ro(U8), I64, I64, U8, rw(I64), rw(I32), rw(I32), rw(I64), rw(I64), OUT)
def pcapng_records(data, end, limit, tail, state, links, units, seconds, snaps, out):
    """The same for pcapng; returns early, with state[MET], after a block that describes a section or an interface.

    The file ends at `limit`, and with `tail` nothing will follow it. Blocks of which little is looked at need not be in
    memory: state[AT] may lie beyond `end`.
    """
    n, state[MET] = 0, 0
    if state[DONE]:
        return 0
    while n < out[0].shape[0]:
        place = state[AT]
        if place + 12 > end:
            return short(state, out, n, place, end, tail and end >= limit)
        kind = word(data, place, state[BIG] != 0)
        if kind == SECTION:
            magic = word(data, place + 8, False)
            if magic != MAGIC and magic != SWAPPED_MAGIC:
                return damaged(state, out, n, place)
            state[BIG], state[COUNT] = magic == SWAPPED_MAGIC, 0
        big = state[BIG] != 0
        total = word(data, place + 4, big)
        if total < least(kind) or total > LONGEST_BLOCK:
            return damaged(state, out, n, place)
        following = place + (total + 3) // 4 * 4
        if following > limit:
            return beyond(state, out, n, place, end, tail)
        if place + needed(kind, total) > end:
            return short(state, out, n, place, end, False)
        state[AT] = following
        if kind == ENHANCED or kind == PACKET:
            enhanced(data, place, kind, total, big, state, links, units, seconds, out, n)
            n += 1
        elif kind == SIMPLE:
            simple(data, place, total, big, state, links, snaps, out, n)
            n += 1
        elif kind == SECTION or (kind == INTERFACE and state[COUNT] < MOST_INTERFACES):
            if kind == INTERFACE:
                describe(data, place, total, big, state, links, units, seconds, snaps)
            state[MET], state[PLACE], state[BYTES] = kind, place, min(total, int64(DESCRIPTION))
            return n
    return n
