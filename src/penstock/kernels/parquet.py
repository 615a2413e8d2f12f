"""Values into the bytes of Parquet pages: integers as packed differences, codes as packed bits, strings in a row.

The encodings are those of the Parquet format, which any reader knows; `sinks.parquet_file` makes pages of them.
"""

from __future__ import annotations

from numba import int32, int64, uint8, uint32, uint64

from penstock.kernels.jit import I32, I64, U8, U64, inline, kernel, part, ro, rw
from penstock.kernels.unaligned import store_word

BLOCK, MINI = 128, 32  # differences of a block, and of its parts, which have a width each
MINIS = BLOCK // MINI


@part
def put_varint(out, at, number):
    """Seven bits a byte, the lowest first; returns the place behind."""
    while number >= uint64(0x80):
        out[at] = uint8(number | uint64(0x80))
        number >>= uint64(7)
        at += 1
    out[at] = uint8(number)
    return at + 1


@inline
def zigzag(number):
    return uint64(number << int64(1)) ^ uint64(number >> int64(63))


@inline
def bit_length(number):
    bits = int64(0)
    for step in (32, 16, 8, 4, 2, 1):
        if number >> uint64(step):
            number >>= uint64(step)
            bits += step
    return bits + int64(number)


@part
def pack_mini(values, first, width, out, at):
    """32 numbers of `width` bits, the lowest first, from values[first] on. Returns the place behind; the seven bytes
    there may be touched."""
    # Two that fit a word together are put there together: half the steps.
    step = 2 if width <= 32 else 1
    one, by, end = uint64(width), uint64(step * width), at + MINI * width // 8
    word, filled = uint64(0), uint64(0)
    for i in range(first, first + MINI, step):
        some = values[i] | values[i + 1] << one if step == 2 else values[i]
        word |= some << filled
        filled += by
        if filled >= uint64(64):
            store_word(out, at, word)
            at += 8
            filled -= uint64(64)
            word = some >> (by - filled) if filled else uint64(0)
    if filled:
        store_word(out, at, word)
    return end


@inline
def differences_of(values, start, count, bits, block):
    """Differences of `count` neighbours from values[start] on into a block, the rest of which becomes the least."""
    least = int64(0x7FFFFFFFFFFFFFFF)
    for i in range(count):
        difference = values[start + i] - values[start + i - 1]
        if bits == 32:
            difference = int64(int32(difference))
        block[i] = uint64(difference)
        least = min(least, difference)
    for i in range(count, BLOCK):
        block[i] = uint64(least)
    return least


@inline
def above_least(block, first, least, bits):
    """Take the least from 32 differences; returns the bits that any of them has."""
    every = uint64(0)
    for i in range(first, first + MINI):
        above = block[i] - uint64(least)
        if bits == 32:
            above = uint64(uint32(above))
        block[i] = above
        every |= above
    return every


@kernel(I64, ro(I64), I64, rw(U64), rw(U8), I64)
def encode_differences(values, bits, block, out, at):
    """DELTA_BINARY_PACKED: differences of neighbours, in blocks of 128, as what each exceeds the block's least by.

    `bits` is 32 or 64, the width of the stored type, in which differences wrap around; `block` has room for one.
    `out` must have `room_for_differences`. Returns the place behind.
    """
    rows = values.shape[0]
    at = put_varint(out, at, uint64(BLOCK))
    at = put_varint(out, at, uint64(MINIS))
    at = put_varint(out, at, uint64(rows))
    at = put_varint(out, at, zigzag(values[0] if rows else int64(0)))
    for start in range(1, rows, BLOCK):
        count = min(BLOCK, rows - start)
        least = differences_of(values, start, count, bits, block)
        at = put_varint(out, at, zigzag(least))
        widths = at
        at += MINIS
        for mini in range(MINIS):
            width = bit_length(above_least(block, mini * MINI, least, bits)) if mini * MINI < count else int64(0)
            out[widths + mini] = uint8(width)
            if width:
                at = pack_mini(block, mini * MINI, width, out, at)
    return at


def room_for_differences(rows: int) -> int:
    """The most bytes that `encode_differences` writes."""
    return 64 + (rows // BLOCK + 1) * (10 + MINIS + 8 * BLOCK)


@kernel(I64, ro(I32), I64, rw(U64), rw(U8), I64)
def encode_codes(codes, width, block, out, at):
    """RLE_DICTIONARY: codes as one run of packed bits, in eights. `block` has room for 32, `out` must have
    `room_for_codes`. Returns the place behind."""
    rows = codes.shape[0]
    eights = (rows + 7) // 8
    out[at] = uint8(width)
    at = put_varint(out, at + 1, uint64(eights << 1 | 1))
    end = at + eights * width
    for start in range(0, rows, MINI):
        count = min(MINI, rows - start)
        for i in range(count):
            block[i] = uint64(codes[start + i])
        for i in range(count, MINI):
            block[i] = uint64(0)
        at = pack_mini(block, 0, width, out, at)
    return end


def room_for_codes(rows: int, width: int) -> int:
    """The most bytes that `encode_codes` writes."""
    return 32 + (rows // MINI + 1) * 4 * width


@kernel(I64, ro(I32), ro(U8), rw(U8))
def encode_strings(offsets, data, out):
    """PLAIN: the length of each string in four bytes, then its bytes. Returns the size."""
    at = int64(0)
    for i in range(offsets.shape[0] - 1):
        begin, end = offsets[i], offsets[i + 1]
        length = uint32(end - begin)
        for byte in range(4):
            out[at + byte] = uint8(length >> uint32(8 * byte))
        at += 4
        for byte in range(begin, end):
            out[at + byte - begin] = data[byte]
        at += end - begin
    return at
