"""Between which points of a sorted list a value lies: its *place* is how many points are at most the value.

Halving does not branch: which half is wanted cannot be foreseen, and a wrong guess costs more than the step. Words are
halved among every 32nd point first, which stay in the cache. IPv4 addresses begin at their first 16 bits.
"""

from __future__ import annotations

import numpy as np
from numba import int64, types, uint64

from penstock.kernels.jit import I32, I64, U8, U64, inline, kernel, ro, rw

Array = np.ndarray
STEP = 32
IPV4_TOP = 16


@inline
def at_most(points, begin, count, value):
    """`begin` plus the number of points[begin:begin + count] that are at most the value."""
    base, left = begin, count
    while left > 1:
        half = left >> int64(1)
        base += half if points[base + half - int64(1)] <= value else int64(0)
        left -= half
    if left == 1 and points[base] <= value:
        base += int64(1)
    return base


@kernel(types.void, ro(I64), ro(I64), ro(I64), rw(I64))
def place_words(points, top, values, places):
    """`top` is every 32nd point, from the first on."""
    count = int64(points.shape[0])
    for i in range(values.shape[0]):
        value = values[i]
        block = at_most(top, int64(0), int64(top.shape[0]), value)
        begin = max(block - int64(1), int64(0)) * STEP
        places[i] = at_most(points, begin, min(int64(STEP), count - begin), value)


@inline
def pairs_at_most(highs, lows, begin, count, high, low):
    base, left = begin, count
    while left > 1:
        half = left >> int64(1)
        at = base + half - int64(1)
        base += half if (highs[at] < high) | ((highs[at] == high) & (lows[at] <= low)) else int64(0)
        left -= half
    if left == 1 and (highs[base] < high or (highs[base] == high and lows[base] <= low)):
        base += int64(1)
    return base


@kernel(types.void, ro(U64), ro(I32), ro(U64), ro(U64), ro(U64), ro(U64), ro(U8), ro(U64), ro(U64), rw(I64))
def place_addresses(fours, index, highs, lows, top_highs, top_lows, version, high, low, places):
    """Points of IPv4 come before those of IPv6. `index` has, for the first 16 bits of an IPv4 address and all that
    are one beyond them, how many points are below; the tops are every 32nd point of IPv6."""
    before, count = int64(fours.shape[0]), int64(highs.shape[0])
    for i in range(version.shape[0]):
        if version[i] == 4:
            block = int64(low[i] >> uint64(IPV4_TOP))
            begin, end = int64(index[block]), int64(index[block + 1])
            places[i] = at_most(fours, begin, end - begin, low[i])
        else:
            block = pairs_at_most(top_highs, top_lows, int64(0), int64(top_highs.shape[0]), high[i], low[i])
            begin = max(block - int64(1), int64(0)) * STEP
            size = min(int64(STEP), count - begin)
            places[i] = before + pairs_at_most(highs, lows, begin, size, high[i], low[i])


@kernel(types.void, ro(I64), ro(U8), ro(I64), ro(U8), rw(I64))
def place_texts(offsets, data, start, source, places):
    """Of strings source[start[i]:start[i+1]] among sorted strings, compared as bytes."""
    for i in range(start.shape[0] - 1):
        begin, end = int64(0), int64(offsets.shape[0] - 1)
        while begin < end:
            middle = (begin + end) >> int64(1)
            a, b = offsets[middle], start[i]
            common = min(offsets[middle + 1] - a, start[i + 1] - b)
            at = int64(0)
            while at < common and data[a + at] == source[b + at]:
                at += int64(1)
            if at < common:
                above = data[a + at] > source[b + at]
            else:
                above = offsets[middle + 1] - a > start[i + 1] - b
            if above:
                end = middle
            else:
                begin = middle + int64(1)
        places[i] = begin


@kernel(types.void, ro(I64), ro(I64), ro(I64), ro(I64), ro(I64), rw(I64))
def find_in_groups(firsts, cuts, classes, groups, places, found):
    """The class of the interval in which a place lies, among the cuts of its group; −1 without group or class."""
    for i in range(groups.shape[0]):
        group = groups[i]
        found[i] = -1
        if group >= 0:
            first = firsts[group]
            at = at_most(cuts, first, firsts[group + 1] - first, places[i])
            if at > first:
                found[i] = classes[at - int64(1)]


def ipv4_index(points: Array) -> Array:
    """For each first 16 bits, and one beyond them, how many points are below."""
    edges = np.arange((1 << 16) + 1, dtype=np.uint64) << np.uint64(32 - IPV4_TOP)
    return np.searchsorted(points, edges).astype(np.int32)
