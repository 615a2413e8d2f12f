"""Result tables as Parquet files, encoded by kernels of our own: several times faster than a general writer.

    magic │ column 0: dictionary page?, data pages │ column 1 … │ footer (`thrift`), its size, magic

One row group, every column optional, as Arrow would write it. Integers and times are packed differences
(DELTA_BINARY_PACKED), strings and columns of a single value codes of a dictionary, floats and booleans plain. Text and
floats are compressed; packed numbers hardly get smaller by it. What is not `writable` here, Arrow writes
(`sinks.parquet`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from penstock.kernels import parquet as kernels
from penstock.sinks import thrift
from penstock.sinks.parquet_values import (
    BOOLEAN,
    BYTE_ARRAY,
    DOUBLE,
    INT32,
    TIME,
    TYPES,
    Values,
    stored_type,
    values_of,
)
from penstock.sinks.thrift import Value, binary, boolean, byte, listing, long, number, struct, varint

Array = np.ndarray
MAGIC = b"PAR1"
CREATOR = "penstock version 0.2.0 (build 0)"
PLAIN, RLE, DIFFERENCES, CODES = 0, 3, 5, 8  # encodings, by their numbers in the format
NONE, SNAPPY = 0, 1  # codecs
DATA, DICTIONARY = 0, 2  # pages
UTF8, MICROSECONDS, SMALL = 0, 10, {pa.int8(): (15, 8), pa.int16(): (16, 16)}  # what old readers call types
PAGE_ROWS = 1 << 16
MOST_ROWS = 1 << 24  # of a row group: sizes of pages are 32-bit numbers
ROOM = kernels.room_for_differences(PAGE_ROWS) + PAGE_ROWS // 8 + 16  # bytes of a page at most, levels included


def writable(table: pa.Table) -> bool:
    """Whether all columns are of types that results have."""
    return 0 < table.num_rows <= MOST_ROWS and all(stored_type(field.type) in TYPES for field in table.schema)


def write_table(table: pa.Table, path: Path) -> None:
    """Write a table that is `writable`."""
    page = np.empty(ROOM, np.uint8)
    with open(path, "wb") as file:
        file.write(MAGIC)
        chunks = [
            Column(name, values_of(column), len(column), file, page).write()
            for name, column in zip(table.column_names, table.columns, strict=True)
        ]
        footer = _footer(table.schema, table.num_rows, chunks)
        file.write(footer + len(footer).to_bytes(4, "little") + MAGIC)


class Column:
    """A column on its way into the file; `page` is where one page after the other is made."""

    def __init__(self, name: str, values: Values, rows: int, file: BinaryIO, page: Array) -> None:
        self._name, self._values, self._rows, self._file, self._page = name, values, rows, file, page
        self._encoding = DIFFERENCES
        if values.kind in (BOOLEAN, DOUBLE):
            self._encoding = PLAIN
        elif values.kind == BYTE_ARRAY or values.one:
            self._encoding = CODES
        self._codec = SNAPPY if values.kind in (BYTE_ARRAY, DOUBLE) else NONE
        self._plain_size = 0  # of all pages before compression

    def write(self) -> Value:
        """Write all pages; returns what the footer says of them."""
        start, front = self._file.tell(), None
        if self._encoding == CODES:
            self._write_dictionary()
            front = self._file.tell()
        done, present = 0, self._values.present
        for first in range(0, self._rows, PAGE_ROWS):
            rows = min(PAGE_ROWS, self._rows - first)
            some = None if present is None else present[first : first + rows]
            there = rows if some is None else int(np.count_nonzero(some))
            levels = self._levels(rows, some)
            size = self._encode(self._values.numbers[done : done + there], levels)
            self._write_page(DATA, rows, self._page[:size])
            done += there
        return self._described(start, front)

    def _write_dictionary(self) -> None:
        words = self._values.words
        if words is None:
            assert self._values.bounds is not None
            self._write_page(DICTIONARY, 1, np.frombuffer(self._values.bounds[0], np.uint8))
            return
        _, offsets, data = words.buffers()
        places = np.frombuffer(offsets, np.int32)[words.offset : words.offset + len(words) + 1]
        text = np.frombuffer(data or b"", np.uint8)
        out = np.empty(4 * len(words) + int(places[-1] - places[0]), np.uint8)
        kernels.encode_strings(places, text, out)
        self._write_page(DICTIONARY, len(words), out)

    def _levels(self, rows: int, present: Array | None) -> int:
        """Which rows of a page have a value: one run of ones, or a bit for each. Returns the bytes they take."""
        if present is None:
            runs = varint(rows << 1) + b"\x01"
        else:
            bits = np.packbits(present, bitorder="little").tobytes()
            runs = varint(len(bits) << 1 | 1) + bits
        return self._put(len(runs).to_bytes(4, "little") + runs, 0)

    def _put(self, data: bytes, at: int) -> int:
        self._page[at : at + len(data)] = np.frombuffer(data, np.uint8)
        return at + len(data)

    def _encode(self, numbers: Array, at: int) -> int:
        """Values of a page, from byte `at` of it on; returns where they end."""
        values, block = self._values, np.empty(kernels.BLOCK, np.uint64)
        if self._encoding == DIFFERENCES:
            bits = 32 if values.kind == INT32 else 64
            return int(kernels.encode_differences(numbers, bits, block, self._page, at))
        if values.one:  # a run of its code, which is zero
            return self._put(b"\x01" + varint(len(numbers) << 1) + b"\x00", at)
        if values.words is not None:
            width = max(1, (len(values.words) - 1).bit_length())
            return int(kernels.encode_codes(numbers, width, block, self._page, at))
        plain = np.packbits(numbers, bitorder="little") if values.kind == BOOLEAN else numbers.view(np.uint8)
        self._page[at : at + len(plain)] = plain
        return at + len(plain)

    def _write_page(self, page: int, rows: int, data: Array) -> None:
        stored: Any = pa.compress(pa.py_buffer(data), "snappy") if self._codec == SNAPPY else data
        encoding = self._encoding if page == DATA else PLAIN
        said = [(1, number(rows)), (2, number(encoding))]
        if page == DATA:
            said += [(3, number(RLE)), (4, number(RLE))]
        fields = [(1, number(page)), (2, number(len(data))), (3, number(len(stored)))]
        header = struct([*fields, (5 if page == DATA else 7, struct(said))])[1]
        self._file.write(header)
        self._file.write(stored)
        self._plain_size += len(header) + len(data)

    def _described(self, start: int, front: int | None) -> Value:
        values, codes = self._values, front is not None
        low, high = (None, None) if values.bounds is None else map(binary, values.bounds)
        meta = struct([
            (1, number(values.kind)),
            (2, listing(thrift.INT, [number(n) for n in ((PLAIN, RLE, CODES) if codes else (self._encoding, RLE))])),
            (3, listing(thrift.BINARY, [binary(self._name)])),
            (4, number(self._codec)),
            (5, long(self._rows)), (6, long(self._plain_size)), (7, long(self._file.tell() - start)),
            (9, long(start if front is None else front)), (11, long(start) if codes else None),
            (12, struct([(3, long(values.nulls)), (5, high), (6, low)])),
        ])  # fmt: skip
        return struct([(2, long(start)), (3, meta)])


def _footer(schema: pa.Schema, rows: int, chunks: list[Value]) -> bytes:
    root = struct([(4, binary("schema")), (5, number(len(schema)))])
    group = struct([(1, listing(thrift.STRUCT, chunks)), (2, long(0)), (3, long(rows))])
    order = struct([(1, struct([]))])  # bounds are by the order of the type
    return struct([
        (1, number(2)),
        (2, listing(thrift.STRUCT, [root, *map(_element, schema)])),
        (3, long(rows)),
        (4, listing(thrift.STRUCT, [group])),
        (6, binary(CREATOR)),
        (7, listing(thrift.STRUCT, [order] * len(schema))),
    ])[1]  # fmt: skip


def _element(field: pa.Field) -> Value:
    """A column of the schema: its stored type, and what it means in words of old and of new readers."""
    kind = stored_type(field.type)
    old, new = None, None
    if kind == pa.string():
        old, new = UTF8, (1, struct([]))
    elif kind == TIME:
        old, new = MICROSECONDS, (8, struct([(1, boolean(True)), (2, struct([(2, struct([]))]))]))
    elif kind in SMALL:
        old, bits = SMALL[kind]
        new = 10, struct([(1, byte(bits)), (2, boolean(True))])
    return struct([
        (1, number(TYPES[kind])), (3, number(1)), (4, binary(field.name)),
        (6, None if old is None else number(old)), (10, None if new is None else struct([new])),
    ])  # fmt: skip
