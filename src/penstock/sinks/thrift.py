"""Thrift's compact protocol, as far as the headers and the footer of a Parquet file need it: written, never read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Value = tuple[int, bytes]  # type, bytes

TRUE, FALSE, BYTE, SHORT, INT, LONG, BINARY, LIST, STRUCT = 1, 2, 3, 4, 5, 6, 8, 9, 12
SHORT_LIST = 15  # longer ones have their length in a number of its own


def varint(number: int) -> bytes:
    """
    >>> varint(300).hex()
    'ac02'
    """
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def number(value: int, kind: int = INT) -> Value:
    return kind, varint(value << 1 if value >= 0 else (-value << 1) - 1)


def long(value: int) -> Value:
    return number(value, LONG)


def byte(value: int) -> Value:
    return BYTE, bytes([value])


def boolean(value: bool) -> Value:
    return (TRUE if value else FALSE), b""


def binary(value: bytes | str) -> Value:
    data = value.encode() if isinstance(value, str) else value
    return BINARY, varint(len(data)) + data


def listing(kind: int, items: Sequence[Value]) -> Value:
    """Items of one kind."""
    count = len(items)
    head = bytes([count << 4 | kind]) if count < SHORT_LIST else bytes([0xF0 | kind]) + varint(count)
    return LIST, head + b"".join(data for _, data in items)


def struct(fields: Iterable[tuple[int, Value | None]]) -> Value:
    """Fields by ascending number; those that are None are left out.

    >>> struct([(1, number(7)), (3, None), (20, binary("x"))])[1].hex()
    '150e0828017800'
    """
    out, last = bytearray(), 0
    for field, value in fields:
        if value is None:
            continue
        kind, data = value
        step = field - last
        out += bytes([step << 4 | kind]) if step < 16 else bytes([kind]) + varint(field << 1)
        out += data
        last = field
    out.append(0)
    return STRUCT, bytes(out)
