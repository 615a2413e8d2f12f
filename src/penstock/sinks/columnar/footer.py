"""What a Parquet file tells of itself: its schema, and of every column where it is, how it is encoded and its bounds.

The numbers are those of parquet.thrift, of the Parquet format.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache

import pyarrow as pa

from penstock.sinks.columnar.thrift import (
    BYTE,
    BYTES,
    END,
    INT,
    LIST,
    LONG,
    SHORT,
    STRUCT,
    TRUE,
    listed,
    number,
    parts,
    struct,
    text,
)

FORMAT = 2
MAGIC = b"PAR1"
OPTIONAL = 1
NO_FIELDS = END


class Physical(IntEnum):
    """How values lie in a file."""

    BOOLEAN = 0
    INT32 = 1
    INT64 = 2
    DOUBLE = 5
    BYTES = 6


class Encoding(IntEnum):
    PLAIN = 0
    RLE = 3
    DIFFERENCES = 5  # DELTA_BINARY_PACKED
    CODES = 8  # RLE_DICTIONARY


class Codec(IntEnum):
    NONE = 0
    SNAPPY = 1


@dataclass(frozen=True)
class Described:
    """A column of results: its name, and what its values are in a file."""

    name: str
    physical: Physical

    @property
    def codec(self) -> Codec:
        return Codec.SNAPPY if self.physical in (Physical.BYTES, Physical.DOUBLE) else Codec.NONE


@dataclass(frozen=True)
class Bounds:
    """Least and greatest value of a column, as `PLAIN` has them."""

    low: bytes
    high: bytes


@dataclass(frozen=True)
class Chunk:
    """A column of a row group that was written: `start` is where its dictionary or, without one, its first page is."""

    column: Described
    encoding: Encoding
    values: int
    nulls: int
    bounds: Bounds | None
    start: int
    dictionary: int  # bytes; 0 without one
    written: int
    plain: int  # bytes before compression


@dataclass(frozen=True)
class RowGroup:
    rows: int
    chunks: tuple[Chunk, ...]


@lru_cache(maxsize=1024)
def described(schema: pa.Schema) -> tuple[Described, ...]:
    return tuple(Described(field.name, physical(field.type)) for field in schema)


def physical(kind: pa.DataType) -> Physical:
    if pa.types.is_boolean(kind):
        return Physical.BOOLEAN
    if pa.types.is_integer(kind):
        return Physical.INT64 if kind.bit_width == 64 else Physical.INT32
    if pa.types.is_timestamp(kind):
        return Physical.INT64
    return Physical.DOUBLE if pa.types.is_floating(kind) else Physical.BYTES


def footer(schema: pa.Schema, groups: Sequence[RowGroup]) -> bytes:
    """The end of a file."""
    elements, orders = _told(schema)
    told = struct(
        (1, INT, number(FORMAT)),
        (2, LIST, elements),
        (3, LONG, number(sum(group.rows for group in groups))),
        (4, LIST, listed(STRUCT, [_group(group, place) for place, group in enumerate(groups)])),
        (6, BYTES, text(b"penstock")),
        (7, LIST, orders),
    )
    return told + len(told).to_bytes(4, "little") + MAGIC


@lru_cache(maxsize=1024)
def _told(schema: pa.Schema) -> tuple[bytes, bytes]:
    """The schema, and that bounds are in the order of the type."""
    root = struct((4, BYTES, text(b"schema")), (5, INT, number(len(schema))))
    return listed(STRUCT, [root, *map(_element, schema)]), listed(
        STRUCT, [struct((1, STRUCT, NO_FIELDS))] * len(schema)
    )


def _element(field: pa.Field) -> bytes:
    """A column of the schema: its physical type, and what that means, in the old words and the new."""
    kind, old, new = field.type, None, None
    if pa.types.is_integer(kind) and kind.bit_width < 32:
        old = {8: 15, 16: 16}[kind.bit_width]
        new = struct((10, STRUCT, struct((1, BYTE, bytes([kind.bit_width])), (2, TRUE, b""))))
    elif pa.types.is_timestamp(kind):
        microseconds = struct((2, STRUCT, NO_FIELDS))
        old, new = 10, struct((8, STRUCT, struct((1, TRUE, b""), (2, STRUCT, microseconds))))
    elif pa.types.is_string(kind):
        old, new = 0, struct((1, STRUCT, NO_FIELDS))
    return struct(
        (1, INT, number(physical(kind))),
        (3, INT, number(OPTIONAL)),
        (4, BYTES, text(field.name.encode())),
        (6, INT, None if old is None else number(old)),
        (10, STRUCT, new),
    )


def _group(group: RowGroup, place: int) -> bytes:
    chunks = group.chunks
    return struct(
        (1, LIST, listed(STRUCT, [struct((2, LONG, number(0)), (3, STRUCT, _chunk(chunk))) for chunk in chunks])),
        (2, LONG, number(sum(chunk.plain for chunk in chunks))),
        (3, LONG, number(group.rows)),
        (5, LONG, number(chunks[0].start)),
        (6, LONG, number(sum(chunk.written for chunk in chunks))),
        (7, SHORT, number(place)),
    )


def _chunk(chunk: Chunk) -> bytes:
    bounds, known = chunk.bounds, None
    if chunk.column.physical is not Physical.BYTES:
        known = struct(
            (3, LONG, number(chunk.nulls)),
            (5, BYTES, None if bounds is None else text(bounds.high)),
            (6, BYTES, None if bounds is None else text(bounds.low)),
        )
    places = (
        (5, LONG, number(chunk.values)),
        (6, LONG, number(chunk.plain)),
        (7, LONG, number(chunk.written)),
        (9, LONG, number(chunk.start + chunk.dictionary)),
        (11, LONG, number(chunk.start) if chunk.dictionary else None),
        (12, STRUCT, known),
    )
    return _kind(chunk.column, chunk.encoding) + parts(places, 4) + END


@lru_cache(maxsize=1024)
def _kind(column: Described, encoding: Encoding) -> bytes:
    """The first four fields of a column's place."""
    used = sorted({Encoding.RLE, encoding, Encoding.PLAIN if encoding is Encoding.CODES else encoding})
    return parts(
        (
            (1, INT, number(column.physical)),
            (2, LIST, listed(INT, [number(one) for one in used])),
            (3, LIST, listed(BYTES, [text(column.name.encode())])),
            (4, INT, number(column.codec)),
        )
    )


def data_page(values: int, encoding: Encoding, plain: int, written: int) -> bytes:
    """The header of a page of values."""
    levels = number(Encoding.RLE)
    head = struct((1, INT, number(values)), (2, INT, number(encoding)), (3, INT, levels), (4, INT, levels))
    return struct((1, INT, number(0)), (2, INT, number(plain)), (3, INT, number(written)), (5, STRUCT, head))


def dictionary_page(values: int, plain: int, written: int) -> bytes:
    """The header of a dictionary."""
    head = struct((1, INT, number(values)), (2, INT, number(Encoding.PLAIN)))
    return struct((1, INT, number(2)), (2, INT, number(plain)), (3, INT, number(written)), (7, STRUCT, head))
