"""Between which points of a sorted list a value lies: its *place* is how many points are at most the value.

Points are cut into buckets of equal width, a few points to each where they are spread well. Halving inside a bucket
does not branch: which half is wanted cannot be foreseen, and a wrong guess costs more than the step.
"""

from __future__ import annotations

import numpy as np
from numba import int64, types, uint64

from penstock.kernels.jit import I32, I64, U8, U64, inline, kernel, ro, rw

Array = np.ndarray
SIGN = 1 << 63
LEAST_BUCKETS, MOST_BUCKETS = 4, 20  # powers of two


@inline
def at_most(points, begin, count, value):
    """`begin` plus the number of points[begin:begin + count] that are at most the value."""
    base, left = begin, count
    while left > 1:
        half = left >> int64(1)
        base += half * int64(points[base + half - int64(1)] <= value)
        left -= half
    if left == 1:
        base += int64(points[base] <= value)
    return base


@inline
def pairs_at_most(highs, lows, begin, count, high, low):
    base, left = begin, count
    while left > 1:
        half = left >> int64(1)
        at = base + half - int64(1)
        base += half * int64((highs[at] < high) | ((highs[at] == high) & (lows[at] <= low)))
        left -= half
    if left == 1:
        base += int64((highs[base] < high) | ((highs[base] == high) & (lows[base] <= low)))
    return base


@inline
def bucket_of(index, least, shift, value):
    """The bucket of a value; the last one, in which no point is, if it is beyond all."""
    return int64(min((value - least) >> uint64(shift), uint64(index.shape[0] - 2)))


@kernel(types.void, ro(U64), ro(I32), U64, I64, ro(I64), rw(I64))
def place_words(points, index, least, shift, values, places):
    """Of signed values; `points` are in the order of unsigned ones."""
    for i in range(values.shape[0]):
        value = uint64(values[i]) ^ uint64(SIGN)
        places[i] = 0
        if value >= least:
            bucket = bucket_of(index, least, shift, value)
            begin = int64(index[bucket])
            places[i] = at_most(points, begin, int64(index[bucket + 1]) - begin, value)


@kernel(types.void, ro(U64), ro(I32), U64, I64, ro(U64), ro(U64), ro(I32), U64, I64, ro(U8), ro(U64), ro(U64), rw(I64))
def place_addresses(
    fours, four_index, four_least, four_shift, highs, lows, six_index, six_least, six_shift, version, high, low, places
):
    """Points of IPv4 come before those of IPv6, which are in buckets by their first word."""
    before = int64(fours.shape[0])
    for i in range(version.shape[0]):
        if version[i] == 4:
            places[i] = 0
            if low[i] >= four_least:
                bucket = bucket_of(four_index, four_least, four_shift, low[i])
                begin = int64(four_index[bucket])
                places[i] = at_most(fours, begin, int64(four_index[bucket + 1]) - begin, low[i])
        else:
            places[i] = before
            if high[i] >= six_least:
                bucket = bucket_of(six_index, six_least, six_shift, high[i])
                begin = int64(six_index[bucket])
                size = int64(six_index[bucket + 1]) - begin
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


def in_buckets(points: Array) -> tuple[Array, int, int]:
    """(index, least, shift) of sorted points: index[b] points are before bucket b, which begins at `least` plus b
    shifted. The last bucket has no points: it is for values beyond.
    """
    if not len(points):
        return np.zeros(2, np.int32), 0, 63
    least, span = int(points[0]), int(points[-1]) - int(points[0])
    buckets = min(max((2 * len(points)).bit_length(), LEAST_BUCKETS), MOST_BUCKETS)
    shift = max(span.bit_length() - buckets, 0)
    count = (span >> shift) + 1
    first = (points - points[0]) >> np.uint64(shift)
    index = np.searchsorted(first, np.arange(count + 1, dtype=np.uint64))
    return np.append(index, len(points)).astype(np.int32), least, shift
