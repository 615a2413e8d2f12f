"""A column of results as pages of a Parquet file.

| column | encoding | why |
| --- | --- | --- |
| integers, times | differences in as few bits as they need | keys, counts and sums hardly repeat |
| what comes as a dictionary: windows, addresses, strings | codes; by runs, where these are few | a window is a run |
| doubles, flags | as they are | |

Texts and doubles are compressed by Snappy; packed integers have nothing left that it would find.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.kernels import packing
from penstock.sinks.columnar.footer import (
    Bounds,
    Chunk,
    Codec,
    Described,
    Encoding,
    Physical,
    data_page,
    dictionary_page,
)
from penstock.sinks.columnar.thrift import varint

Array = np.ndarray
Page = tuple[bytes, bytes | memoryview, int]  # header, body, and the size of both before compression
PAGE = 1 << 16  # rows
LEVELS = 4  # bytes of the size of the levels
SNAPPY = pa.Codec("snappy")
KINDS = {Physical.BOOLEAN: "?", Physical.INT32: "<i4", Physical.INT64: "<i8", Physical.DOUBLE: "<f8"}
WIDTHS = {Physical.INT32: 32, Physical.INT64: 64}  # bits
NO_ENDS = (1 << 63) - 1, -(1 << 63)  # least and greatest integer, before the first


@dataclass
class Scratch:
    """Memory that pages are made in, one after the other."""

    memory: Array = field(default_factory=lambda: np.empty(0, np.uint8))

    def behind(self, levels: bytes, size: int) -> Array:
        """Room for so many bytes behind these."""
        if len(self.memory) < len(levels) + size:
            self.memory = np.empty(len(levels) + size, np.uint8)
        self.memory[: len(levels)] = np.frombuffer(levels, np.uint8)
        return self.memory[len(levels) :]


@dataclass(frozen=True)
class Pages:
    """A column of a row group: its numbers, flags or codes (of a NULL, any), what codes stand for, and which values are
    there (None: all). `ends` are the least and greatest of its integers that were packed so far."""

    column: Described
    encoding: Encoding
    values: Array
    words: pa.Array | None
    valid: Array | None
    ends: Array = field(default_factory=lambda: np.array(NO_ENDS))

    def chunk(self, start: int, dictionary: int, written: int, plain: int) -> Chunk:
        """What the footer tells of it, after all pages were made."""
        nulls = 0 if self.valid is None else int((~self.valid).sum())
        return Chunk(
            self.column, self.encoding, len(self.values), nulls, self._bounds(), start, dictionary, written, plain
        )

    def _bounds(self) -> Bounds | None:
        """Of numbers alone: a file has strings from all over, whose bounds exclude nothing."""
        kind = self.column.physical
        if kind is Physical.BYTES:
            return None
        if self.encoding is Encoding.DIFFERENCES:
            found = self.ends if self.ends[0] <= self.ends[1] else self.ends[:0]
        elif self.words is not None:
            found = buffer(self.words)
        else:
            found = self.values if self.valid is None else self.values[self.valid]
        if kind is Physical.DOUBLE:
            found = found[~np.isnan(found)]
        if not len(found):
            return None
        low, high = found.min(), found.max()
        if kind is Physical.DOUBLE:  # there are two zeros
            low, high = (low or np.float64(-0.0)), (high or np.float64(0.0))
        return Bounds(*(np.array(one, KINDS[kind]).tobytes() for one in (low, high)))

    def dictionary(self) -> Page:
        assert self.words is not None
        if self.column.physical is Physical.BYTES:
            plain: bytes | memoryview = _laid_out(self.words)
        else:
            plain = buffer(self.words).astype(KINDS[self.column.physical]).tobytes()
        written = self._compressed(plain)
        head = dictionary_page(len(self.words), len(plain), len(written))
        return head, written, len(head) + len(plain)

    def pages(self, scratch: Scratch) -> Iterator[Page]:
        """One at a time: the bytes are good until the next one is asked for."""
        for start in range(0, len(self.values), PAGE):
            rows = slice(start, start + PAGE)
            values, valid = self.values[rows], None if self.valid is None else self.valid[rows]
            levels = _levels(len(values), valid)
            size = self._pack(values if valid is None else values[valid], levels, scratch)
            plain = scratch.memory[: len(levels) + size].data
            written = self._compressed(plain)
            head = data_page(len(values), self.encoding, len(plain), len(written))
            yield head, written, len(head) + len(plain)

    def _pack(self, values: Array, levels: bytes, scratch: Scratch) -> int:
        """Put values behind the levels. Returns their size."""
        if self.encoding is Encoding.DIFFERENCES:
            out = scratch.behind(levels, packing.differences_size(len(values)))
            return packing.put_differences(values, WIDTHS[self.column.physical], self.ends, out)
        if self.words is not None:
            width = max(1, (len(self.words) - 1).bit_length())
            out = scratch.behind(levels, 1 + packing.codes_size(len(values), width))
            out[0] = width
            if len(self.words) > 1:
                return 1 + packing.put_codes(values, width, out[1:])
            found = np.frombuffer(varint(len(values) << 1) + b"\0", np.uint8)  # one run of zeros
            out[1 : 1 + len(found)] = found
            return 1 + len(found)
        found = np.packbits(values, bitorder="little") if values.dtype == bool else values.view(np.uint8)
        scratch.behind(levels, len(found))[: len(found)] = found
        return len(found)

    def _compressed(self, plain: bytes | memoryview) -> bytes | memoryview:
        if self.column.codec is Codec.NONE:
            return plain
        compressed: bytes = SNAPPY.compress(plain, asbytes=True)
        return compressed


def pages_of(column: Described, array: pa.Array) -> Pages:
    """Pages of values that may be wider integers than the column's, or a dictionary; texts always become one."""
    coded = pa.types.is_dictionary(array.type)
    if column.physical is Physical.BYTES and not coded:
        array, coded = array.dictionary_encode(), True
    if coded and len(array.dictionary) > len(array):  # of rows that a LIMIT has left
        array = array.dictionary_decode().dictionary_encode()
    valid: Array | None = truths(pc.is_valid(array)) if array.null_count else None
    if coded:
        codes = buffer(array.indices).astype(np.int32, copy=False)
        return Pages(column, Encoding.CODES, codes, array.dictionary, valid)
    if column.physical is Physical.BOOLEAN:
        flags = truths(array.fill_null(False) if array.null_count else array)
        return Pages(column, Encoding.PLAIN, flags, None, valid)
    if column.physical is Physical.DOUBLE:
        return Pages(column, Encoding.PLAIN, buffer(array).astype(np.float64, copy=False), None, valid)
    return Pages(column, Encoding.DIFFERENCES, buffer(array).astype(np.int64, copy=False), None, valid)


def truths(flags: pa.BooleanArray) -> Array:
    """Flags without NULLs. `to_numpy` loads pandas."""
    return buffer(flags.cast(pa.uint8())).view(bool)


def buffer(array: pa.Array) -> Array:
    """Numbers without a copy; of a NULL, anything."""
    kind = array.type
    if pa.types.is_integer(kind):
        numbers = np.dtype(str(kind))
    else:
        numbers = np.dtype(np.float32 if kind == pa.float32() else np.float64 if kind == pa.float64() else np.int64)
    if not len(array):
        return np.empty(0, numbers)
    return np.frombuffer(array.buffers()[1], numbers)[array.offset : array.offset + len(array)]


def _levels(rows: int, valid: Array | None) -> bytes:
    """Which values are there, behind the size of that."""
    if valid is None:
        levels = varint(rows << 1) + b"\x01"
    else:
        bits = np.packbits(valid, bitorder="little").tobytes()
        levels = varint(len(bits) << 1 | 1) + bits
    return len(levels).to_bytes(LEVELS, "little") + levels


def _laid_out(words: pa.Array) -> memoryview:
    """Texts as `PLAIN` has them."""
    if not len(words):
        return memoryview(b"")
    kind = np.int64 if pa.types.is_large_string(words.type) else np.int32
    _, offsets, data = words.buffers()
    places = np.frombuffer(offsets, kind)[words.offset : words.offset + len(words) + 1]
    letters = np.frombuffer(data or b"", np.uint8)
    out = np.empty(packing.texts_size(places), np.uint8)
    return out[: packing.lay_out_texts(places, letters, out)].data
