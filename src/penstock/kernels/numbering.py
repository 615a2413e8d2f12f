"""Numbers for what repeats in a column: runs of equal values, and one code for each distinct word.

The table of words starts small and grows with what is found: a column of a million rows may have a hundred addresses,
and a table of that size stays in the cache.
"""

from __future__ import annotations

import numpy as np
from numba import int64, types, uint64

from penstock.kernels.hashing import mix
from penstock.kernels.jit import I32, I64, U64, kernel, ro, rw
from penstock.kernels.prefetch import prefetch

Array = np.ndarray
SMALL = 1 << 10  # entries of a fresh table
SPARE = 2  # entries for each word
GROWTH = 8
AHEAD = 12  # words whose entries are asked for before they are needed


@kernel(I64, ro(I64), rw(I64))
def mark_runs(values, begins):
    """Where each run of equal values begins. Returns the number of runs."""
    runs = int64(0)
    for i in range(values.shape[0]):
        if i == 0 or values[uint64(i)] != values[uint64(i - 1)]:
            begins[runs] = i
            runs += 1
    return runs


def runs_of(values: Array) -> Array:
    """Where each run of equal values begins."""
    begins = np.empty(len(values), np.int64)
    return begins[: mark_runs(values, begins)]


@kernel(I64, ro(U64), I64, rw(U64), rw(U64), rw(I64), rw(I32))
def number_words(words, start, table, found, count, codes):
    """Codes of words below 2^32 from `start` on, until the table is full for its size; returns where that was. An entry
    is a word and, below it, its place in `found`, plus one."""
    last, known, n = uint64(table.shape[0] - 1), count[0], words.shape[0]
    most = int64(table.shape[0]) // SPARE
    for i in range(start, n):
        if i + AHEAD < n:
            prefetch(table, int64(mix(words[uint64(i + AHEAD)]) & last))
        word = words[uint64(i)]
        slot = mix(word) & last
        entry = table[slot]
        while entry and entry >> uint64(32) != word:
            slot = (slot + uint64(1)) & last
            entry = table[slot]
        if not entry:
            if known == most:
                count[0] = known
                return int64(i)
            found[uint64(known)] = word
            known += 1
            entry = word << uint64(32) | uint64(known)
            table[slot] = entry
        codes[uint64(i)] = int64(entry & uint64(0xFFFFFFFF)) - 1
    count[0] = known
    return int64(n)


@kernel(types.void, ro(U64), rw(U64))
def put_words(found, table):
    """All of these into an empty table."""
    last, n = uint64(table.shape[0] - 1), found.shape[0]
    for i in range(n):
        if i + AHEAD < n:
            prefetch(table, int64(mix(found[uint64(i + AHEAD)]) & last))
        slot = mix(found[uint64(i)]) & last
        while table[slot]:
            slot = (slot + uint64(1)) & last
        table[slot] = found[uint64(i)] << uint64(32) | uint64(i + 1)


def distinct_words(words: Array) -> tuple[Array, Array]:
    """The different words, all below 2^32, in the order in which they come, and which of them each one is (int32)."""
    found, codes = np.empty_like(words), np.empty(len(words), np.int32)
    count, at, size = np.zeros(1, np.int64), 0, SMALL
    while at < len(words):
        table = np.zeros(size, np.uint64)
        put_words(found[: count[0]], table)
        at = number_words(words, at, table, found, count, codes)
        size *= GROWTH
    return found[: count[0]], codes
