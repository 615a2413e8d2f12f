"""Columns of packets: which there are, how each is read, and what a fault spoils.

    Walker (bytes, PacketRecords) ──► locate (layers) ──► PacketBatch: the asked columns, piece by piece ──► Arrow

Only asked columns are looked at. A value that a packet does not have, or that the snap length cut off, is NULL. A value
that a fault of the packet hides is bad, and the batch says why.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.kernels.packets import fields as take
from penstock.kernels.packets import layout
from penstock.kernels.packets.capture import PacketRecords
from penstock.kernels.packets.capture_times import NO_TIME
from penstock.sources.base import ADDRESS, FAULT, TYPE_KEY, UNREADABLE
from penstock.sources.flags import flagged, numbered_texts

Array = np.ndarray[Any, Any]
# By the numbers of `kernels.packets.capture` and `kernels.packets.layout`.
LOST = (
    None, "record header damaged, the rest of the file is lost", "cut short by the end of the file",
    "its interface is not described", "its lengths do not agree",
)  # fmt: skip
FAULTS = (
    None, "link header cut short", "link type not known", "IP header cut short", "IP header not valid",
    "IP length not valid", "IP extension header cut short", "TCP header cut short", "ports cut short",
    "ICMP header cut short", "TCP header not valid",
)  # fmt: skip
# What is found in a record, a link header, an IP header, and so on: groups that are spoiled together.
RECORD, LINK, NET, PROTOCOL, PORT, TCP, ICMP = (1 << bit for bit in range(7))
BELOW_LINK = NET | PROTOCOL | PORT | TCP | ICMP
SPOILED = np.array(
    [0, LINK | BELOW_LINK, LINK | BELOW_LINK, BELOW_LINK, BELOW_LINK, BELOW_LINK, PROTOCOL | PORT | TCP | ICMP,
     PORT | TCP, PORT, ICMP, TCP], np.uint8,
)  # fmt: skip
WITH_PORTS = 1 << layout.TCP | 1 << layout.PORTS


@dataclass(frozen=True)
class Packets:
    """Packets at hand: their bytes, records and layers."""

    data: Array
    records: PacketRecords
    layers: Array
    rows: int


Fill = Callable[[Packets, Array, Array], None]  # piece, values, marks of what is there


@dataclass(frozen=True)
class PacketColumn:
    """One column: its type in Arrow, the group of values it belongs to, and how a piece of it is filled."""

    type: pa.DataType
    group: int
    fill: Fill

    @property
    def dtype(self) -> Any:
        if self.type == ADDRESS:
            return np.dtype(np.uint32)
        return np.dtype(np.int64 if pa.types.is_timestamp(self.type) else str(self.type))


def _time(piece: Packets, out: Array, there: Array) -> None:
    out[:] = piece.records.time[: piece.rows]
    np.not_equal(out, NO_TIME, out=there.view(bool))


def _record(name: str) -> Fill:
    def fill(piece: Packets, out: Array, there: Array) -> None:
        out[:] = getattr(piece.records, name)[: piece.rows]
        there[:] = 1

    return fill


def _layer(field: int) -> Fill:
    return lambda piece, out, there: take.take_layer(piece.layers, piece.rows, field, out, there)


def _transport(offset: int, size: int, kinds: int) -> Fill:
    return lambda piece, out, there: take.take_transport(
        piece.data, piece.layers, piece.rows, offset, size, kinds, out, there
    )


def _net(four: int, six: int, size: int) -> Fill:
    return lambda piece, out, there: take.take_net(piece.data, piece.layers, piece.rows, four, six, size, out, there)


def _sequence(offset: int) -> Fill:
    return lambda piece, out, there: take.take_sequence(piece.data, piece.layers, piece.rows, offset, out, there)


def _service(piece: Packets, out: Array, there: Array) -> None:
    take.take_service(piece.data, piece.layers, piece.rows, out, there)


def _ip_length(piece: Packets, out: Array, there: Array) -> None:
    take.take_ip_length(piece.layers, piece.rows, out, there)


def _payload(piece: Packets, out: Array, there: Array) -> None:
    take.take_payload(piece.data, piece.layers, piece.rows, out, there)


def _fragmented(piece: Packets, out: Array, there: Array) -> None:
    rows = piece.layers[: piece.rows] >= 0
    out[:] = rows[:, layout.FRAGMENT]
    there[:] = rows[:, layout.NET] & (rows[:, layout.FRAGMENT] | rows[:, layout.TRANSPORT])  # else it was cut off


def _station(offset: int) -> Fill:
    return lambda piece, out, there: take.take_station(
        piece.data, piece.layers, piece.rows, layout.ETHERNET, offset, out, there
    )


def _unused(piece: Packets, out: Array, there: Array) -> None:
    raise AssertionError("addresses are filled by Addresses")


TIME, TEXT, SMALL, NUMBER = pa.timestamp("us", tz="UTC"), pa.string(), pa.uint16(), pa.int32()
ONLY_TCP, ONLY_ICMP = 1 << layout.TCP, 1 << layout.ICMP
STATIONS = {
    "src_mac": PacketColumn(pa.int64(), LINK, _station(6)),
    "dst_mac": PacketColumn(pa.int64(), LINK, _station(0)),
}
COLUMNS = {
    "ts": PacketColumn(TIME, RECORD, _time),
    "length": PacketColumn(pa.uint32(), RECORD, _record("length")),
    "captured": PacketColumn(NUMBER, RECORD, _record("captured")),
    "interface": PacketColumn(NUMBER, RECORD, _record("interface")),
    "link": PacketColumn(NUMBER, RECORD, _record("link")),
    **STATIONS,
    "ethertype": PacketColumn(NUMBER, LINK, _layer(layout.ETHERTYPE)),
    "vlan": PacketColumn(NUMBER, LINK, _layer(layout.VLAN)),
    "inner_vlan": PacketColumn(NUMBER, LINK, _layer(layout.INNER_VLAN)),
    "mpls": PacketColumn(NUMBER, LINK, _layer(layout.MPLS)),
    "version": PacketColumn(NUMBER, NET, _layer(layout.VERSION)),
    "src": PacketColumn(ADDRESS, NET, _unused),
    "dst": PacketColumn(ADDRESS, NET, _unused),
    "proto": PacketColumn(NUMBER, PROTOCOL, _layer(layout.PROTO)),
    "ip_length": PacketColumn(NUMBER, NET, _ip_length),
    "ttl": PacketColumn(SMALL, NET, _net(8, 7, 1)),
    "tos": PacketColumn(SMALL, NET, _service),
    "ip_id": PacketColumn(SMALL, NET, _net(4, -1, 2)),
    "fragment": PacketColumn(pa.bool_(), NET | PROTOCOL, _fragmented),
    "frag_offset": PacketColumn(NUMBER, NET | PROTOCOL, _layer(layout.FRAGMENT)),
    "sport": PacketColumn(SMALL, PORT, _transport(0, 2, WITH_PORTS)),
    "dport": PacketColumn(SMALL, PORT, _transport(2, 2, WITH_PORTS)),
    "tcp_flags": PacketColumn(SMALL, TCP, _transport(13, 1, ONLY_TCP)),
    "seq": PacketColumn(pa.int64(), TCP, _sequence(4)),
    "ack": PacketColumn(pa.int64(), TCP, _sequence(8)),
    "tcp_window": PacketColumn(SMALL, TCP, _transport(14, 2, ONLY_TCP)),
    "icmp_type": PacketColumn(SMALL, ICMP, _transport(0, 1, ONLY_ICMP)),
    "icmp_code": PacketColumn(SMALL, ICMP, _transport(1, 1, ONLY_ICMP)),
    "payload": PacketColumn(NUMBER, PORT | TCP | ICMP, _payload),
    "tunnel": PacketColumn(NUMBER, RECORD, _layer(layout.DEPTH)),
    "outer_src": PacketColumn(ADDRESS, NET, _unused),
    "outer_dst": PacketColumn(ADDRESS, NET, _unused),
}
PLACES = {
    "src": (layout.NET, 0),
    "dst": (layout.NET, 1),
    "outer_src": (layout.OUTER, 0),
    "outer_dst": (layout.OUTER, 1),
}


def needs_layers(names: Sequence[str]) -> bool:
    """Whether the packets themselves must be looked at."""
    return any(COLUMNS[name].group != RECORD or name == "tunnel" for name in names)


def schema() -> pa.Schema:
    return pa.schema([arrow(name) for name in COLUMNS])


def arrow(name: str) -> pa.Field:
    kind = TEXT if name in STATIONS else COLUMNS[name].type
    return pa.field(name, kind, metadata={TYPE_KEY: b"INET"} if kind == ADDRESS else None)


class PacketValues:
    """Room for a column of a batch."""

    def __init__(self, name: str, rows: int) -> None:
        self.name, self.column = name, COLUMNS[name]
        self.out = np.empty(rows, self.column.dtype)
        self.there = np.empty(rows, np.uint8)
        self.six: Array | None = None  # marks of IPv6 addresses, and their bytes
        self.long = np.empty(0, np.uint8)

    def take(self, piece: Packets, at: int) -> None:
        out, there = self.out[at : at + piece.rows], self.there[at : at + piece.rows]
        if self.column.type == ADDRESS:
            self._addresses(piece, at, out, there)
        else:
            self.column.fill(piece, out, there)

    def _addresses(self, piece: Packets, at: int, out: Array, there: Array) -> None:
        place, second = PLACES[self.name]
        six = np.empty(piece.rows, np.uint8)
        if take.take_address(piece.data, piece.layers, piece.rows, place, second, out, there, six):
            if self.six is None:
                self.six, self.long = np.zeros(len(self.out), np.uint8), np.zeros(16 * len(self.out), np.uint8)
            self.six[at : at + piece.rows] = six
            long = self.long[16 * at : 16 * (at + piece.rows)]
            take.take_long_address(piece.data, piece.layers, piece.rows, place, second, six, long)

    def array(self, rows: int) -> pa.Array:
        out, there = self.out[:rows], self.there[:rows]
        mask = None if there.all() else there == 0
        if self.column.type == ADDRESS:
            return addresses(out, mask, None if self.six is None else self.six[:rows], self.long)
        if self.name in STATIONS:
            return stations(out, mask)
        array = pa.array(out, mask=mask)
        return array.view(self.column.type) if pa.types.is_timestamp(self.column.type) else array


def addresses(four: Array, mask: Array | None, six: Array | None, long: Array) -> pa.Array:
    """Addresses as `sources.base.ADDRESS`."""
    if six is None:
        bytes16 = pa.nulls(len(four), pa.binary(16))
    else:
        there = pa.py_buffer(np.packbits(six, bitorder="little"))
        bytes16 = pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), len(four), [there, pa.py_buffer(long)])
    whole = None if mask is None else pa.array(mask)
    return pa.StructArray.from_arrays([pa.array(four), bytes16], fields=list(ADDRESS), mask=whole)


def stations(numbers: Array, mask: Array | None) -> pa.Array:
    """Ethernet addresses as text, 00:1b:44:11:3a:b7; each different one is written once."""
    found, index = np.unique(numbers, return_inverse=True)
    texts = [f"{number:012x}" for number in found.tolist()]
    words = [":".join(text[at : at + 2] for at in range(0, 12, 2)) for text in texts]
    return pa.DictionaryArray.from_arrays(pa.array(index.astype(np.int32), mask=mask), pa.array(words, pa.string()))


class PacketBatch:
    """Columns of at most `rows` packets, filled piece by piece."""

    def __init__(self, names: Sequence[str], rows: int) -> None:
        self.room, self.rows = rows, 0
        self._values = [PacketValues(name, rows) for name in dict.fromkeys(names)]  # each once, however often asked
        self._reason = np.zeros(rows, np.uint8)
        self._fault = np.zeros(rows, np.uint8)

    def take(self, piece: Packets, faults: bool) -> None:
        at, beyond = self.rows, self.rows + piece.rows
        for values in self._values:
            values.take(piece, at)
        self._reason[at:beyond] = piece.records.reason[: piece.rows]
        if faults:
            self._fault[at:beyond] = piece.layers[: piece.rows, layout.FAULT]
        self.rows = beyond

    def arrow(self) -> pa.RecordBatch:
        """The columns, and flags as `sources.base` has them."""
        reason, fault = self._reason[: self.rows], self._fault[: self.rows]
        lost = reason != 0 if reason.any() else None
        for values in self._values if lost is not None else ():
            values.there[: self.rows][lost] = 0
        spoiled = SPOILED[fault] if fault.any() else None
        columns, texts, blamed = [], {}, np.zeros(self.rows, bool)
        for values in self._values:
            array, bad = values.array(self.rows), self._bad(values, spoiled)
            columns.append((arrow(values.name).with_type(array.type), array, bad))
            blamed |= bad
        if blamed.any():
            texts[FAULT] = numbered_texts(FAULTS, np.where(blamed, fault, 0))
        if lost is not None:
            texts[UNREADABLE] = numbered_texts(LOST, reason)
        return flagged(columns, self.rows, lost, texts)

    def _bad(self, values: PacketValues, spoiled: Array | None) -> Array:
        if spoiled is None:
            return np.zeros(self.rows, bool)
        bad: Array = (spoiled & values.column.group != 0) & (values.there[: self.rows] == 0)
        return bad
