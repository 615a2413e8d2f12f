"""Addresses: text to numbers and back, a column at a time.

An address is (version, high, low): version 4 with low < 2^32, version 6 with all 128 bits, version 0 where
the text is no address. IPv4-mapped addresses (::ffff:1.2.3.4) stay IPv6. Printing follows RFC 5952.
"""

from __future__ import annotations

import numpy as np
from numba import int64, types, uint8, uint64

from penstock.kernels.jit import I64, U8, U64, inline, kernel, ro, rw

Array = np.ndarray
DOT, COLON, ZERO, NINE, SLASH = 46, 58, 48, 57, 47
LONGEST = 50  # of a printed address with its prefix length


@inline
def parse_quad(data, a, b):
    """Dotted quad in data[a:b] as a number, or −1. No leading zeros, exactly four parts."""
    value, part, digits, dots = int64(0), int64(0), 0, 0
    for at in range(a, b):
        c = data[at]
        if ZERO <= c <= NINE:
            if digits > 0 and part == 0:
                return int64(-1)
            part = part * 10 + (int64(c) - ZERO)
            digits += 1
            if part > 255:
                return int64(-1)
        elif c == DOT and digits > 0 and dots < 3:
            value = (value << int64(8)) | part
            part, digits, dots = int64(0), 0, dots + 1
        else:
            return int64(-1)
    if dots != 3 or digits == 0:
        return int64(-1)
    return (value << int64(8)) | part


@inline
def hex_digit(c):
    if ZERO <= c <= NINE:
        return int64(c) - ZERO
    lower = c | 32
    return int64(lower) - 87 if 97 <= lower <= 102 else int64(-1)


@inline
def parse_groups(data, a, b, groups):
    """The eight 16-bit groups of an IPv6 address; False if data[a:b] is none."""
    n, gap, at = 0, -1, a
    if b - a >= 2 and data[a] == COLON:
        if data[a + 1] != COLON:
            return False
        gap, at = 0, a + 2
    while at < b:
        if n == 8:
            return False
        end = at
        dotted = False
        while end < b and data[end] != COLON:
            dotted = dotted or data[end] == DOT
            end += 1
        if dotted:
            quad = parse_quad(data, at, b)
            if end != b or quad < 0 or n > 6:
                return False
            groups[n], groups[n + 1] = quad >> int64(16), quad & int64(0xFFFF)
            n += 2
            at = b
            break
        if end == at or end - at > 4:
            return False
        value = int64(0)
        for d in range(at, end):
            digit = hex_digit(data[d])
            if digit < 0:
                return False
            value = (value << int64(4)) | digit
        groups[n] = value
        n += 1
        at = end
        if at < b:  # a colon: one more group, or the gap
            at += 1
            if at == b:
                return False
            if data[at] == COLON:
                if gap >= 0:
                    return False
                gap = n
                at += 1
    if gap < 0:
        return n == 8
    if n == 8:
        return False
    for i in range(n - gap):
        groups[7 - i] = groups[n - 1 - i]
    for i in range(gap, 8 - (n - gap)):
        groups[i] = 0
    return True


@kernel(types.void, ro(I64), ro(U8), rw(U8), rw(U64), rw(U64), allocates=True)
def parse_addresses(start, data, version, high, low):
    groups = np.zeros(8, np.int64)
    for i in range(start.shape[0] - 1):
        a, b = start[i], start[i + 1]
        version[i], high[i], low[i] = 0, 0, 0
        quad = parse_quad(data, a, b)
        if quad >= 0:
            version[i], low[i] = 4, quad
        elif parse_groups(data, a, b, groups):
            h, lo = uint64(0), uint64(0)
            for g in range(4):
                h = (h << uint64(16)) | uint64(groups[g])
                lo = (lo << uint64(16)) | uint64(groups[g + 4])
            version[i], high[i], low[i] = 6, h, lo


@inline
def put_decimal(out, at, value):
    if value >= 100:
        out[at] = uint8(ZERO + value // 100)
        at += 1
    if value >= 10:
        out[at] = uint8(ZERO + value // 10 % 10)
        at += 1
    out[at] = uint8(ZERO + value % 10)
    return at + 1


def _numerals() -> Array:
    """The digits of each byte and a dot, then how many bytes that is: as one number, the first digit lowest."""
    texts = [f"{number}." for number in range(256)]
    return np.array([int.from_bytes(text.encode(), "little") | len(text) << 32 for text in texts], np.uint64)


NUMERALS = _numerals()


@inline
def put_quad(out, at, value):
    """Writes up to two bytes beyond what it returns."""
    for part in range(4):
        numeral = NUMERALS[(value >> uint64(24 - 8 * part)) & uint64(255)]
        for byte in range(4):
            out[at + byte] = uint8(numeral >> uint64(8 * byte))
        at += int64(numeral >> uint64(32))
    return at - 1


@inline
def longest_gap(groups):
    """(start, length) of the first longest run of two or more zero groups."""
    best, length, run = -1, 1, 0
    for g in range(8):
        run = run + 1 if groups[g] == 0 else 0
        if run > length:
            best, length = g - run + 1, run
    return best, length


@inline
def put_groups(out, at, groups):
    mapped = groups[5] == 0xFFFF
    for g in range(5):
        mapped = mapped and groups[g] == 0
    gap, length = longest_gap(groups)
    g = 0
    while g < 8:
        if g == gap:
            out[at], out[at + 1] = COLON, COLON
            at += 2
            g += length
            continue
        if mapped and g == 6:
            return put_quad(out, at, uint64((groups[6] << int64(16)) | groups[7]))
        started = False
        for shift in range(12, -1, -4):
            digit = (groups[g] >> int64(shift)) & int64(15)
            if digit or started or shift == 0:
                out[at] = uint8(digit + ZERO if digit < 10 else digit + 87)
                at += 1
                started = True
        g += 1
        if g < 8 and g != gap:
            out[at] = COLON
            at += 1
    return at


@kernel(I64, ro(U8), ro(U64), ro(U64), I64, rw(I64), rw(U8), allocates=True)
def print_addresses(version, high, low, length, start, out):
    """Text of each address, with `/length` unless that is negative (an IPv4 address has 32 bits at most);
    nothing for version 0. Returns the size."""
    groups = np.zeros(8, np.int64)
    at = int64(0)
    for i in range(version.shape[0]):
        start[i] = at
        if version[i] == 4:
            at = put_quad(out, at, low[i])
        elif version[i] == 6:
            for g in range(4):
                groups[g] = int64((high[i] >> uint64(48 - 16 * g)) & uint64(0xFFFF))
                groups[g + 4] = int64((low[i] >> uint64(48 - 16 * g)) & uint64(0xFFFF))
            at = put_groups(out, at, groups)
        if version[i] and length >= 0:
            out[at] = SLASH
            at = put_decimal(out, at + 1, min(length, int64(32)) if version[i] == 4 else length)
    start[version.shape[0]] = at
    return at


def parse(start: Array, data: Array) -> tuple[Array, Array, Array]:
    """(version, high, low) of the texts data[start[i]:start[i+1]]."""
    n = len(start) - 1
    version, high, low = np.empty(n, np.uint8), np.empty(n, np.uint64), np.empty(n, np.uint64)
    parse_addresses(start, data, version, high, low)
    return version, high, low


def to_text(version: Array, high: Array, low: Array, length: int = -1) -> tuple[Array, Array]:
    """Offsets and bytes of the printed addresses (as prefixes of `length` bits, if not negative)."""
    start, out = np.empty(len(version) + 1, np.int64), np.empty(len(version) * LONGEST, np.uint8)
    size = print_addresses(version, high, low, length, start, out)
    return start, out[:size]


def network_order(high: Array, low: Array) -> tuple[Array, Array]:
    """IPv6 addresses as 16-byte strings (offsets, bytes), for a `Dictionary`."""
    words = np.empty((len(high), 2), ">u8")
    words[:, 0], words[:, 1] = high, low
    return np.arange(len(high) + 1, dtype=np.int64) * 16, words.view(np.uint8).reshape(-1)


def from_network_order(data: Array) -> tuple[Array, Array]:
    """(high, low) of 16-byte strings one after the other."""
    words = data.reshape(-1, 16).view(">u8")
    return words[:, 0].astype(np.uint64), words[:, 1].astype(np.uint64)


def cut(high: Array, low: Array, length: int) -> tuple[Array, Array]:
    """Keep the first `length` bits of 128."""
    everything = (1 << 64) - 1
    above = everything ^ (everything >> min(length, 64))
    below = everything ^ (everything >> max(length - 64, 0))
    return high & np.uint64(above), low & np.uint64(below)
