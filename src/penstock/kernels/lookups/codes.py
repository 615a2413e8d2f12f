"""Numbers and addresses to the codes that the values of a table have; −1 for all others.

A table of slots holds key and code side by side, so that a key that is not in a cache costs one wait. The slot of a
record further on is asked for ahead.
"""

from __future__ import annotations

import numpy as np
from numba import int64, types, uint64

from penstock.kernels.hashing import combine, mix
from penstock.kernels.jit import I64, U8, U64, inline, kernel, ro, rw
from penstock.kernels.prefetch import prefetch

Array = np.ndarray
AHEAD = 16  # records
EMPTY = -1


@kernel(types.void, ro(I64), rw(I64, 2))
def fill_words(keys, slots):
    """Give each key, all different, a slot (key, code); its code is its place."""
    last = uint64(slots.shape[0] - 1)
    for code in range(keys.shape[0]):
        slot = mix(uint64(keys[code])) & last
        while slots[slot, 1] >= 0:
            slot = (slot + uint64(1)) & last
        slots[slot, 0], slots[slot, 1] = keys[code], code


@kernel(types.void, ro(I64), ro(I64, 2), rw(I64))
def find_words(words, slots, codes):
    last = uint64(slots.shape[0] - 1)
    rows = words.shape[0]
    for i in range(rows):
        if i + AHEAD < rows:
            prefetch(slots, int64(mix(uint64(words[i + AHEAD])) & last))
        word = words[i]
        slot = mix(uint64(word)) & last
        while slots[slot, 1] >= 0 and slots[slot, 0] != word:
            slot = (slot + uint64(1)) & last
        codes[i] = slots[slot, 1]


@kernel(types.void, ro(I64), I64, ro(I64), rw(I64))
def find_dense(words, least, by_word, codes):
    """The same where the keys leave few gaps: the code of each word from the least one on."""
    for i in range(words.shape[0]):
        at = uint64(words[i]) - uint64(least)
        codes[i] = by_word[int64(at)] if at < uint64(by_word.shape[0]) else int64(-1)


@inline
def hashed(version, high, low):
    return combine(mix(high ^ uint64(version)), low)


@kernel(types.void, ro(U8), ro(U64), ro(U64), rw(U64, 2))
def fill_addresses(version, high, low, slots):
    """Give each address, all different, a slot (code + 1, version, high, low)."""
    last = uint64(slots.shape[0] - 1)
    for code in range(version.shape[0]):
        slot = hashed(version[code], high[code], low[code]) & last
        while slots[slot, 0] > 0:
            slot = (slot + uint64(1)) & last
        slots[slot, 0], slots[slot, 1] = uint64(code + 1), uint64(version[code])
        slots[slot, 2], slots[slot, 3] = high[code], low[code]


@kernel(types.void, ro(U8), ro(U64), ro(U64), ro(U64, 2), rw(I64))
def find_addresses(version, high, low, slots, codes):
    last = uint64(slots.shape[0] - 1)
    rows = version.shape[0]
    for i in range(rows):
        if i + AHEAD < rows:
            prefetch(slots, int64(hashed(version[i + AHEAD], high[i + AHEAD], low[i + AHEAD]) & last))
        v, h, lo = uint64(version[i]), high[i], low[i]
        slot = hashed(version[i], h, lo) & last
        while slots[slot, 0] > 0 and (slots[slot, 3] != lo or slots[slot, 2] != h or slots[slot, 1] != v):
            slot = (slot + uint64(1)) & last
        codes[i] = int64(slots[slot, 0]) - int64(1)


def slot_count(keys: int) -> int:
    """A power of two that leaves half of the slots empty, at least."""
    return 1 << max(4, (2 * keys - 1).bit_length())
