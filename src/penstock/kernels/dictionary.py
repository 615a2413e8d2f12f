"""Byte strings to dense codes and back: strings and IPv6 addresses enter packed keys as codes.

Codes are private to one task (or one merge) and never leave it without their strings: `state.segments.read`
stores the dictionary beside the codes.
"""

from __future__ import annotations

import numpy as np
from numba import int64, types, uint64

from penstock.kernels.hashing import hash_bytes
from penstock.kernels.jit import I32, I64, U8, U64, kernel, ro, rw

Array = np.ndarray


@kernel(I64, ro(I64), ro(U8), I64, rw(I64), rw(U8), rw(U64), rw(I32), rw(I64))
def intern_strings(start, source, count, offsets, data, hashes, table, codes):
    """Code of each string source[start[i]:start[i+1]]; unknown ones are appended. Returns the new count."""
    last = uint64(table.shape[0] - 1)
    for i in range(start.shape[0] - 1):
        a, b = start[i], start[i + 1]
        h = hash_bytes(source, a, b)
        slot = h & last
        while True:
            code = int64(table[slot])
            if code < 0:
                code = count
                end = offsets[count]
                for at in range(a, b):
                    data[end + at - a] = source[at]
                offsets[count + 1] = end + b - a
                hashes[count] = h
                table[slot] = count
                count += 1
                break
            if hashes[code] == h and offsets[code + 1] - offsets[code] == b - a:
                same, mine = True, offsets[code]
                for at in range(b - a):
                    if data[mine + at] != source[a + at]:
                        same = False
                        break
                if same:
                    break
            slot = (slot + uint64(1)) & last
        codes[i] = code
    return int64(count)


@kernel(types.void, ro(I64), ro(U8), ro(I64), ro(U8), ro(U64), ro(I32), rw(I64))
def find_strings(start, source, offsets, data, hashes, table, codes):
    """Code of each string source[start[i]:start[i+1]]; −1 of unknown ones."""
    last = uint64(table.shape[0] - 1)
    for i in range(start.shape[0] - 1):
        a, b = start[i], start[i + 1]
        h = hash_bytes(source, a, b)
        slot = h & last
        while True:
            code = int64(table[slot])
            if code < 0:
                break
            if hashes[code] == h and offsets[code + 1] - offsets[code] == b - a:
                same, mine = True, offsets[code]
                for at in range(b - a):
                    if data[mine + at] != source[a + at]:
                        same = False
                        break
                if same:
                    break
            slot = (slot + uint64(1)) & last
        codes[i] = code


@kernel(types.void, ro(U64), I64, rw(I32))
def refill(hashes, count, table):
    """Put codes [0, count) into an empty, larger table; all strings differ, so no comparison is needed."""
    last = uint64(table.shape[0] - 1)
    for code in range(count):
        slot = hashes[code] & last
        while table[slot] >= 0:
            slot = (slot + uint64(1)) & last
        table[slot] = code


@kernel(types.void, ro(I64), ro(U8), rw(U64))
def hash_each(offsets, data, hashes):
    for i in range(hashes.shape[0]):
        hashes[i] = hash_bytes(data, offsets[i], offsets[i + 1])


def hash_strings(offsets: Array, data: Array) -> Array:
    """The canonical hash of each string."""
    hashes = np.empty(len(offsets) - 1, np.uint64)
    hash_each(offsets, data, hashes)
    return hashes


@kernel(types.void, ro(I64), ro(U8), ro(I64), ro(I64), rw(U8))
def gather_bytes(offsets, data, codes, start, out):
    """Copy the strings of `codes` one after the other; the i-th begins at start[i]."""
    for i in range(codes.shape[0]):
        begin, end, to = offsets[codes[i]], offsets[codes[i] + 1], start[i]
        for at in range(begin, end):
            out[to + at - begin] = data[at]


def gather(offsets: Array, data: Array, codes: Array) -> tuple[Array, Array]:
    """Offsets and bytes of the strings with these codes, in this order."""
    start = np.zeros(len(codes) + 1, np.int64)
    np.cumsum(offsets[1:][codes] - offsets[:-1][codes], out=start[1:])
    out = np.empty(int(start[-1]), np.uint8)
    gather_bytes(offsets, data, codes, start, out)
    return start, out


class Dictionary:
    """A growing set of byte strings; `count` strings have the codes [0, count)."""

    def __init__(self) -> None:
        self.count = 0
        self._offsets = np.zeros(65, np.int64)
        self._data = np.empty(1024, np.uint8)
        self._hashes = np.empty(64, np.uint64)
        self._table = np.full(256, -1, np.int32)

    def intern(self, start: Array, source: Array) -> Array:
        """Codes of the strings source[start[i]:start[i+1]]."""
        codes = np.empty(len(start) - 1, np.int64)
        self._reserve(len(codes), int(start[-1] - start[0]))
        self.count = intern_strings(
            start, source, self.count, self._offsets, self._data, self._hashes, self._table, codes
        )
        return codes

    def find(self, start: Array, source: Array) -> Array:
        """Codes of the strings source[start[i]:start[i+1]]; −1 of those that are not in here."""
        codes = np.full(len(start) - 1, -1, np.int64)
        if not self.count:
            return codes
        self._reserve(0, 0)  # hashes of one that was made by `only`
        find_strings(start, source, self._offsets, self._data, self._hashes, self._table, codes)
        return codes

    def only(self, codes: Array) -> Dictionary:
        """A dictionary of some of these words, in this order; nothing is hashed again, unless words are added."""
        some = Dictionary()
        some.count = len(codes)
        some._offsets, some._data = gather(self._offsets, self._data, codes)
        some._hashes, some._table = self._hashes[codes], np.empty(0, np.int32)
        return some

    @property
    def offsets(self) -> Array:
        return self._offsets[: self.count + 1]

    @property
    def data(self) -> Array:
        return self._data[: self._offsets[self.count]]

    @property
    def hashes(self) -> Array:
        """The canonical hash of each string, by code."""
        return self._hashes[: self.count]

    @property
    def nbytes(self) -> int:
        return int(self._offsets.nbytes + self._data.nbytes + self._hashes.nbytes + self._table.nbytes)

    def _reserve(self, strings: int, size: int) -> None:
        entries, used = self.count + strings, int(self._offsets[self.count])
        if entries > len(self._hashes):
            self._offsets = _grown(self._offsets, 2 * entries + 1)
            self._hashes = _grown(self._hashes, 2 * entries)
        if used + size > len(self._data):
            self._data = _grown(self._data, 2 * (used + size))
        if 2 * entries > len(self._table):
            self._table = np.full(1 << (4 * entries).bit_length(), -1, np.int32)
            refill(self._hashes, self.count, self._table)


def _grown(array: Array, size: int) -> Array:
    grown = np.empty(size, array.dtype)
    grown[: len(array)] = array
    return grown
