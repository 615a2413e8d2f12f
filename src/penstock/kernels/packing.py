"""Integers in as few bits as they need, as Parquet has them: differences (DELTA_BINARY_PACKED), and codes of a fixed
width (the bit-packed runs of RLE_DICTIONARY).

A difference is against the value before. Blocks of 128 have a least difference, and miniblocks of 32 a width, in
bits, of what their differences are above it. Bits go into bytes from the lowest on.
"""

from __future__ import annotations

import numpy as np
from numba import int64, uint8, uint64

from penstock.kernels.jit import I32, I64, U8, U64, kernel, kernel_for, part, ro, rw

Array = np.ndarray
BLOCK, MINI = 128, 32
HEADER = 10 * 4  # bytes: at most four varints
BLOCK_HEADER = 10 + BLOCK // MINI  # bytes


@part
def put_varint(out, at, value):
    """Seven bits a byte, the lowest first."""
    while value >= uint64(128):
        out[at] = uint8(value & uint64(127)) | uint8(128)
        value >>= uint64(7)
        at += uint64(1)
    out[at] = uint8(value)
    return at + uint64(1)


@part
def zigzag(value):
    return uint64((value << int64(1)) ^ (value >> int64(63)))


@part
def width_of(value):
    """The bits that a number needs."""
    width = uint64(0)
    for step in (32, 16, 8, 4, 2, 1):
        if value >> uint64(step):
            value >>= uint64(step)
            width += uint64(step)
    return width + value


@part
def put_word(out, at, word):
    """Eight bytes; LLVM makes one store of them."""
    out[at] = uint8(word)
    out[at + uint64(1)] = uint8(word >> uint64(8))
    out[at + uint64(2)] = uint8(word >> uint64(16))
    out[at + uint64(3)] = uint8(word >> uint64(24))
    out[at + uint64(4)] = uint8(word >> uint64(32))
    out[at + uint64(5)] = uint8(word >> uint64(40))
    out[at + uint64(6)] = uint8(word >> uint64(48))
    out[at + uint64(7)] = uint8(word >> uint64(56))


@kernel(I64, ro(I64), I64, rw(U64), rw(I64), rw(U8))
def pack_differences(values, spare, above, ends, out):
    """DELTA_BINARY_PACKED of integers that have `spare` bits less than 64; `above` has room for a block, `ends` are the
    least and greatest value so far. Returns the size."""
    n = values.shape[0]
    if n:
        ends[0], ends[1] = min(ends[0], values[0]), max(ends[1], values[0])
    at = put_varint(out, uint64(0), uint64(BLOCK))
    at = put_varint(out, at, uint64(BLOCK // MINI))
    at = put_varint(out, at, uint64(n))
    at = put_varint(out, at, zigzag(values[0]) if n else uint64(0))
    start = 1
    while start < n:
        size = min(BLOCK, n - start)
        least = int64(0x7FFFFFFFFFFFFFFF)
        if spare:
            for i in range(size):  # differences wrap round, as the sums of those who read them do
                difference = ((values[uint64(start + i)] - values[uint64(start + i - 1)]) << spare) >> spare
                above[uint64(i)] = uint64(difference)
                least = min(least, difference)
        else:
            for i in range(size):
                difference = values[uint64(start + i)] - values[uint64(start + i - 1)]
                above[uint64(i)] = uint64(difference)
                least = min(least, difference)
        for i in range(size, BLOCK):
            above[i] = uint64(least)
        low, high = ends[0], ends[1]
        for i in range(size):
            low = min(low, values[uint64(start + i)])
            high = max(high, values[uint64(start + i)])
        ends[0], ends[1] = low, high
        at = put_varint(out, at, zigzag(least))
        widths = at
        at += uint64(BLOCK // MINI)
        for mini in range(BLOCK // MINI):
            first, every = mini * MINI, uint64(0)
            for i in range(first, first + MINI):
                above[uint64(i)] -= uint64(least)
                every |= above[uint64(i)]
            width = width_of(every)
            out[widths + uint64(mini)] = uint8(width)
            if width:
                at = put_bits(above, first, width, out, at)
        start += size
    return int64(at)


@part
def put_bits(values, first, width, out, at):
    """A miniblock: its bits are whole bytes."""
    word, filled = uint64(0), uint64(0)
    for i in range(first, first + MINI):
        value = values[uint64(i)]
        word |= value << filled
        filled += width
        if filled >= uint64(64):
            put_word(out, at, word)
            at += uint64(8)
            filled -= uint64(64)
            word = (value >> (width - filled - uint64(1))) >> uint64(1) if filled else uint64(0)
    if filled:
        put_word(out, at, word)
        at += filled >> uint64(3)
    return at


@kernel(I64, ro(I32))
def count_runs(codes):
    """How often a code is not the one before it."""
    runs = int64(codes.shape[0] > 0)
    for i in range(1, codes.shape[0]):
        runs += int64(codes[uint64(i)] != codes[uint64(i - 1)])
    return runs


@kernel(I64, ro(I32), I64, rw(U8))
def pack_runs(codes, size, out):
    """Each run of equal codes as its length and the code, in `size` bytes. Returns the size."""
    at, start, n = uint64(0), 0, codes.shape[0]
    while start < n:
        code, stop = codes[uint64(start)], start + 1
        while stop < n and codes[uint64(stop)] == code:
            stop += 1
        at = put_varint(out, at, uint64(stop - start) << uint64(1))
        for byte in range(size):
            out[at] = uint8(uint64(code) >> uint64(8 * byte))
            at += uint64(1)
        start = stop
    return int64(at)


@kernel(I64, ro(I32), U64, rw(U8))
def pack_codes(codes, width, out):
    """All codes as one run of numbers of `width` bits, the last of eight numbers filled up with zeros. Returns the
    size."""
    n = codes.shape[0]
    groups = uint64((n + 7) // 8)
    at = put_varint(out, uint64(0), groups << uint64(1) | uint64(1))
    end = at + groups * width
    word, filled = uint64(0), uint64(0)
    for i in range(n):
        code = uint64(codes[uint64(i)])
        word |= code << filled
        filled += width
        if filled >= uint64(64):
            put_word(out, at, word)
            at += uint64(8)
            filled -= uint64(64)
            word = code >> (width - filled)
    while at < end:
        out[at] = uint8(word)
        word >>= uint64(8)
        at += uint64(1)
    return int64(end)


@kernel_for((I64, ro(I32), ro(U8), rw(U8)), (I64, ro(I64), ro(U8), rw(U8)))
def lay_out_texts(offsets, data, out):
    """Each text behind its length, which has four bytes. Words of eight bytes are copied, as long as they are inside:
    `out` has eight bytes to spare. Returns the size."""
    at, n = uint64(0), uint64(data.shape[0])
    for i in range(offsets.shape[0] - 1):
        first, beyond = uint64(offsets[i]), uint64(offsets[i + 1])
        for byte in range(4):
            out[at + uint64(byte)] = uint8((beyond - first) >> uint64(8 * byte))
        at += uint64(4)
        j = first
        while j < beyond and j + uint64(8) <= n:
            for byte in range(8):
                out[at + (j - first) + uint64(byte)] = data[j + uint64(byte)]
            j += uint64(8)
        while j < beyond:
            out[at + (j - first)] = data[j]
            j += uint64(1)
        at += beyond - first
    return int64(at)


def differences_size(rows: int) -> int:
    """Bytes that differences of so many integers take at most."""
    return HEADER + (rows // BLOCK + 1) * (BLOCK_HEADER + 8 * BLOCK)


def put_differences(values: Array, bits: int, ends: Array, out: Array) -> int:
    """DELTA_BINARY_PACKED of int64 values of so many bits into `out`, which has room for `differences_size`. Moves
    `ends`, the least and greatest value so far."""
    size: int = pack_differences(values, 64 - bits, np.empty(BLOCK, np.uint64), ends, out)
    return size


def put_codes(codes: Array, width: int, out: Array) -> int:
    """Codes below 2^width as the data of RLE_DICTIONARY: by runs where these are few, else each code by itself."""
    runs, size = count_runs(codes), (width + 7) // 8
    if runs * (size + 5) < len(codes) * width // 8:
        return int(pack_runs(codes, size, out))
    return int(pack_codes(codes, width, out))


def codes_size(rows: int, width: int) -> int:
    """Bytes that `put_codes` takes at most."""
    return HEADER + (rows + 16) * width // 8 + 8


def texts_size(offsets: Array) -> int:
    """Bytes that `lay_out_texts` wants."""
    return 4 * (len(offsets) - 1) + int(offsets[-1] - offsets[0]) + 8
