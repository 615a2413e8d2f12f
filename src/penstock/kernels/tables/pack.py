"""Components of attributes into packed key words, and from there to the key of a relation.

A *component* is an int64 array: an integer, the bits of a float, a dictionary code, an IPv4 address, a NULL
flag, a pane number.  `relations.layout` gives every component a bit field in one of a few 64-bit words; a
relation's key is then a set of masked, rotated words (*terms*): from the stream, or from a parent to a child.
"""

from __future__ import annotations

import numpy as np
from numba import int64, types, uint64

from penstock.kernels.jit import I32, I64, U8, U64, kernel, ro, rw

ALL_VALID = np.empty(0, np.uint8)  # the `valid` argument for values that are all there


@kernel(types.UniTuple(I64, 2), ro(I64), ro(U8))
def component_range(values, valid):
    """Least and greatest valid value (`valid` empty: all are); least > greatest if there is none."""
    low, high = int64(0x7FFFFFFFFFFFFFFF), int64(-0x8000000000000000)
    if valid.shape[0] == 0:
        for i in range(values.shape[0]):
            low = min(low, values[i])
            high = max(high, values[i])
    else:
        for i in range(values.shape[0]):
            if valid[i]:
                low = min(low, values[i])
                high = max(high, values[i])
    return low, high


@kernel(types.void, ro(I64), ro(U8), I64, I64, rw(U64))
def pack_component(values, valid, base, shift, word):
    """word |= (value − base) << shift; an invalid value packs as zero."""
    by = uint64(shift)
    if valid.shape[0] == 0:
        for i in range(values.shape[0]):
            word[i] |= uint64(values[i] - base) << by
    else:
        for i in range(values.shape[0]):
            if valid[i]:
                word[i] |= uint64(values[i] - base) << by


@kernel(types.void, ro(U64, 2), ro(I32), ro(I64), ro(U64), ro(I64), ro(I64), rw(U64, 2))
def project(words, rows, source, mask, turn, target, keys):
    """keys[target] |= rotate_left(words[source] & mask, turn) of the chosen rows, term by term."""
    n = rows.shape[0]
    keys[:, :n] = uint64(0)
    for term in range(source.shape[0]):
        word, out = words[source[term]], keys[target[term]]
        cut, left = mask[term], uint64(turn[term])
        right = (uint64(64) - left) & uint64(63)
        for i in range(n):
            bits = word[rows[i]] & cut
            out[i] |= (bits << left) | (bits >> right)


@kernel(types.void, ro(U64, 2), I64, I64, I64, I64, rw(I64))
def extract(groups, column, shift, bits, base, values):
    """The inverse of packing: one component out of the key words of finished groups."""
    by, mask = uint64(shift), uint64(0xFFFFFFFFFFFFFFFF) >> uint64(64 - bits)
    for i in range(groups.shape[0]):
        values[i] = int64((groups[i, column] >> by) & mask) + base


@kernel(types.void, ro(I64), I64, I64, rw(I64))
def pane_number(places, slide, cut, numbers):
    """The pane of every place on an axis (`logical.window.Panes`); neighbours mostly share one: few divisions."""
    low, high, number = int64(1), int64(0), int64(0)
    for i in range(places.shape[0]):
        place = places[i]
        if not low <= place < high:
            number = place // slide
            low = number * slide
            high = low + slide
            if high < low:  # the last pane before the end of time wraps: do not reuse it
                high = low
            if cut:
                number *= 2
                if place - low >= cut:
                    low += cut
                    number += 1
                else:
                    high = low + cut
        numbers[i] = number


@kernel(I64, ro(I64), rw(U8), I64, I64)
def keep_near(times, usable, greatest, ahead):
    """Take `usable` from times that are further than `ahead` beyond the greatest usable one before them.

    `greatest` is that before the first (the least integer: none yet); returns that after the last.
    """
    none, end = int64(-0x8000000000000000), int64(0x7FFFFFFFFFFFFFFF)
    for i in range(times.shape[0]):
        if usable[i]:
            if greatest != none and greatest <= end - ahead and times[i] > greatest + ahead:
                usable[i] = 0
            else:
                greatest = max(greatest, times[i])
    return greatest
