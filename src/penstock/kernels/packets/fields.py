"""Takes values out of packets whose layers are known: a column at a time, only those that are asked.

Every kernel fills values and marks (1: there); a value that is not there is 0. `layers` is what
`kernels.packets.layers.locate` found. A value is there if all its bytes stand before the end of the captured packet.
"""

from __future__ import annotations

from numba import int64, types, uint32

from penstock.kernels.jit import I32, I64, U8, kernel, part, ro, rw
from penstock.kernels.packets.layout import (
    END,
    ICMP,
    KIND,
    NET,
    PROTO,
    TCP,
    TRANSPORT,
    VERSION,
    WHOLE,
    short,
)

U16, U32 = types.uint16, types.uint32


@kernel(types.void, ro(I32, 2), I64, I64, rw(I32), rw(U8))
def take_layer(layers, rows, field, out, there):
    """A number that stands in the layers themselves."""
    for i in range(rows):
        value = layers[i, field]
        there[i] = value >= 0
        out[i] = max(value, 0)


@kernel(types.void, ro(U8), ro(I32, 2), I64, I64, I64, I64, rw(U16), rw(U8))
def take_transport(data, layers, rows, offset, size, kinds, out, there):
    """One or two bytes of a transport header of one of these kinds (bits)."""
    for i in range(rows):
        at = int64(layers[i, TRANSPORT]) + offset
        fine = layers[i, TRANSPORT] >= 0 and kinds >> int64(layers[i, KIND]) & 1 != 0 and at + size <= layers[i, END]
        there[i], out[i] = fine, 0
        if fine:
            out[i] = data[at] if size == 1 else short(data, at)


@kernel(types.void, ro(U8), ro(I32, 2), I64, I64, rw(I64), rw(U8))
def take_sequence(data, layers, rows, offset, out, there):
    """Four bytes of a TCP header."""
    for i in range(rows):
        row = layers[i]
        at = int64(row[TRANSPORT]) + offset
        fine = row[TRANSPORT] >= 0 and row[KIND] == TCP and at + 4 <= row[END]
        there[i] = fine
        out[i] = int64(short(data, at)) << 16 | int64(short(data, at + 2)) if fine else 0


@kernel(types.void, ro(U8), ro(I32, 2), I64, I64, I64, I64, rw(U16), rw(U8))
def take_net(data, layers, rows, four, six, size, out, there):
    """One or two bytes of the IP header, at an offset for each version (−1: it has no such field)."""
    for i in range(rows):
        row = layers[i]
        offset = four if row[VERSION] == 4 else six
        at = int64(row[NET]) + offset
        fine = row[NET] >= 0 and offset >= 0 and at + size <= row[END]
        there[i], out[i] = fine, 0
        if fine:
            out[i] = data[at] if size == 1 else short(data, at)


@kernel(types.void, ro(U8), ro(I32, 2), I64, rw(U16), rw(U8))
def take_service(data, layers, rows, out, there):
    """Type of service, or traffic class."""
    for i in range(rows):
        at = int64(layers[i, NET])
        fine = at >= 0 and at + 2 <= layers[i, END]
        there[i], out[i] = fine, 0
        if fine:
            out[i] = data[at + 1] if layers[i, VERSION] == 4 else (short(data, at) >> 4) & 0xFF


@kernel(types.void, ro(I32, 2), I64, rw(I32), rw(U8))
def take_ip_length(layers, rows, out, there):
    """Bytes of the IP packet, by its header."""
    for i in range(rows):
        row = layers[i]
        there[i] = row[WHOLE] >= 0
        out[i] = row[WHOLE] - row[NET] if row[WHOLE] >= 0 else 0


@part
def header_size(data, row):
    """Bytes of the transport header; 0 where that cannot be known."""
    at = int64(row[TRANSPORT])
    if row[PROTO] == 6:
        known = row[KIND] == TCP and at + 13 <= row[END]
        return int64(data[at + 12] >> 4) * 4 if known else int64(0)
    if row[PROTO] == 33:
        return int64(data[at + 4]) * 4 if at + 5 <= row[END] else int64(0)
    if row[PROTO] == 132:
        return int64(12)
    return int64(4) if row[KIND] == ICMP else int64(8)


@kernel(types.void, ro(U8), ro(I32, 2), I64, rw(I32), rw(U8))
def take_payload(data, layers, rows, out, there):
    """Bytes after the transport header, by the lengths in the headers."""
    for i in range(rows):
        row = layers[i]
        size = header_size(data, row) if row[TRANSPORT] >= 0 and row[KIND] > 0 else int64(0)
        there[i] = size > 0
        out[i] = max(int64(row[WHOLE]) - row[TRANSPORT] - size, 0) if size > 0 else 0


@part
def address_offset(long, second):
    if long:
        return 24 if second else 8
    return 16 if second else 12


@kernel(I64, ro(U8), ro(I32, 2), I64, I64, I64, rw(U32), rw(U8), rw(U8))
def take_address(data, layers, rows, place, second, out, there, six):
    """IPv4 addresses of the header at layers[:, place], source or destination; marks and counts IPv6 ones."""
    count = 0
    for i in range(rows):
        at, there[i], six[i], out[i] = int64(layers[i, place]), 0, 0, 0
        if at < 0:
            continue
        long = data[at] >> 4 == 6
        at += address_offset(long, second)
        # The outer header of a tunnel is whole; END is that of the inner packet, and not before it.
        if at + (16 if long else 4) <= layers[i, END]:
            there[i], six[i] = 1, long
            count += long
            if not long:
                out[i] = uint32(short(data, at)) << uint32(16) | uint32(short(data, at + 2))
    return count


@kernel(types.void, ro(U8), ro(I32, 2), I64, I64, I64, ro(U8), rw(U8))
def take_long_address(data, layers, rows, place, second, six, out):
    """The 16 bytes of marked addresses; those of others are left as they are."""
    for i in range(rows):
        if six[i]:
            at = int64(layers[i, place]) + address_offset(True, second)
            for byte in range(16):
                out[16 * i + byte] = data[at + byte]


@kernel(types.void, ro(U8), ro(I32, 2), I64, I64, I64, rw(I64), rw(U8))
def take_station(data, layers, rows, place, offset, out, there):
    """The six bytes of an Ethernet address as a number."""
    for i in range(rows):
        at = int64(layers[i, place])
        there[i], value = at >= 0, int64(0)
        if at >= 0:
            for byte in range(6):
                value = value << 8 | int64(data[at + offset + byte])
        out[i] = value
