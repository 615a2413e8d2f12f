"""Rows that are joined: all combinations of rows with equal keys, and states that stand for several records each.

Rows of a side stand in lists by key. `expand` goes through the keys and writes down which row of each side makes up
every combination; it stops when its room is full and goes on from there. `repeat_*` make states of k copies of the same
records (seed aggregation-join, Definition 6): a count times k, a sum times k in 128 bits or two doubles.
"""

from __future__ import annotations

import numpy as np
from numba import float64, int64, types, uint64

from penstock.kernels.jit import F64, I64, U8, inline, kernel, ro, rw

Array = np.ndarray
HALF = 32
LOW = 0xFFFFFFFF
SPLIT = 134217729.0  # 2^27 + 1: halves of a double's mantissa (Dekker)
LARGE = 1e290  # splitting a larger double would overflow


@kernel(I64, ro(I64, 2), ro(I64, 2), rw(I64), rw(I64, 2))
def expand(starts, rows, place, out):
    """Combinations of rows[side, starts[side, key] : starts[side, key + 1]] of all sides, for key after key.

    `place` is (key, number of the combination) to begin with, and where to go on. Returns how many were written.
    """
    sides, room, keys = starts.shape[0], out.shape[1], starts.shape[1] - 1
    key, number, n = place[0], place[1], int64(0)
    while key < keys and n < room:
        total = int64(1)
        for side in range(sides):
            total *= starts[side, key + 1] - starts[side, key]
        if total == 0:
            key += 1
            continue
        last = sides - 1
        size, begin = starts[last, key + 1] - starts[last, key], starts[last, key]
        while number < total and n < room:
            # All combinations of one row each of the other sides with the last one's rows, as far as there is room.
            rest, first = number // size, number % size
            count = min(size - first, room - n)
            for side in range(last - 1, -1, -1):
                mine = starts[side, key + 1] - starts[side, key]
                row = rows[side, starts[side, key] + rest % mine]
                rest //= mine
                for i in range(count):
                    out[side, n + i] = row
            for i in range(count):
                out[last, n + i] = rows[last, begin + first + i]
            n += count
            number += count
        if number == total:
            key += 1
            number = int64(0)
    place[0], place[1] = key, number
    return n


@kernel(types.void, ro(I64), rw(I64), rw(I64))
def list_rows(keys, starts, rows):
    """Rows by key, in their order: those of key k stand in rows[starts[k] : starts[k + 1]]; `starts` comes with zeros
    and has two places more than there are keys."""
    for i in range(keys.shape[0]):
        starts[keys[i] + 2] += 1
    for key in range(2, starts.shape[0]):
        starts[key] += starts[key - 1]
    for i in range(keys.shape[0]):  # a key's place moves on to where the next one begins
        at = starts[keys[i] + 1]
        rows[at] = i
        starts[keys[i] + 1] = at + 1


@inline
def times_words(low, high, k):
    """(low, high) of 128 bits times k, which is not negative."""
    a, b = uint64(low), uint64(k)
    al, ah = a & uint64(LOW), a >> uint64(HALF)
    bl, bh = b & uint64(LOW), b >> uint64(HALF)
    ll, lh, hl, hh = al * bl, al * bh, ah * bl, ah * bh
    middle = (ll >> uint64(HALF)) + (lh & uint64(LOW)) + (hl & uint64(LOW))
    carried = hh + (lh >> uint64(HALF)) + (hl >> uint64(HALF)) + (middle >> uint64(HALF))
    return int64(a * b), int64(carried + uint64(high) * b)


@kernel(U8, rw(I64), ro(I64))
def multiply(numbers, by):
    """numbers *= by; 1 if a product left 64 bits. Neither is negative."""
    beyond = np.uint8(0)
    for i in range(numbers.shape[0]):
        # In 128 bits: the compiler takes it for granted that products of signed numbers never wrap around.
        low, high = times_words(numbers[i], int64(0), by[i])
        if high != 0 or low < 0:
            beyond = np.uint8(1)
        numbers[i] = low
    return beyond


@kernel(types.void, ro(I64), ro(I64), ro(I64), rw(I64), rw(I64))
def repeat_wide(low, high, times, out_low, out_high):
    """Sums in two words, times how often."""
    for i in range(low.shape[0]):
        a, b = times_words(low[i], high[i], times[i])
        out_low[i], out_high[i] = a, b


@inline
def two_product(a, b):
    """a·b, and what rounding lost of it."""
    product = a * b
    if abs(a) > LARGE or abs(b) > LARGE or not np.isfinite(product):
        return product, float64(0.0)
    t = SPLIT * a
    ah = t - (t - a)
    al = a - ah
    t = SPLIT * b
    bh = t - (t - b)
    bl = b - bh
    return product, ((ah * bh - product) + ah * bl + al * bh) + al * bl


@kernel(types.void, ro(F64), ro(F64), ro(I64), rw(F64), rw(F64))
def repeat_double(value, rest, times, out, out_rest):
    """Sums of two doubles, times how often."""
    for i in range(value.shape[0]):
        k = float64(times[i])
        product, lost = two_product(value[i], k)
        out[i] = product
        out_rest[i] = lost + rest[i] * k if np.isfinite(product) else float64(0.0)
