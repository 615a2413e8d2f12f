"""Thrift's compact protocol, as far as headers of Parquet files need it.

Values are bytes already (`number`, `text`, `struct`, `listed`): a small file is little more than its headers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

# How a value is written. A flag is part of its field's header: 1 true, 2 false.
TRUE, FALSE, BYTE, SHORT, INT, LONG, BYTES, LIST, STRUCT = 1, 2, 3, 4, 5, 6, 8, 9, 12
END = b"\0"  # of a struct
SHORT_LIST = 15

Field = tuple[int, int, bytes | None]  # number, how it is written, its bytes; without any there is no such field


def struct(*fields: Field) -> bytes:
    """Fields by number."""
    return parts(fields) + END


def parts(fields: Iterable[Field], last: int = 0) -> bytes:
    """Fields of a struct that goes on; `last` is the number of the one before."""
    out = bytearray()
    for number, wire, value in fields:
        if value is not None:
            out.append((number - last) << 4 | wire)
            out += value
            last = number
    return bytes(out)


def listed(wire: int, elements: Sequence[bytes]) -> bytes:
    size = len(elements)
    head = bytes([size << 4 | wire]) if size < SHORT_LIST else bytes([0xF0 | wire]) + varint(size)
    return head + b"".join(elements)


def text(value: bytes) -> bytes:
    return varint(len(value)) + value


@lru_cache(maxsize=4096)
def number(value: int) -> bytes:
    """An integer of any size, by zigzag."""
    return varint(value << 1 ^ value >> 63)


def varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first."""
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)
