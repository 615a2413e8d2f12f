"""The third hash table over packed keys: chained, of bounded capacity, evicting the least recently used when full.

Seed aggregate-tree, Sec. III-C. Rows are those of `kernels.tables.probe`, and so is the work over chunks: `probe_lru`
finds or makes the row of every record, adds its weight to count(*) and leaves the row numbers, `kernels.tables.fold`
folds the other aggregates, `settle_lru` copies the evicted rows out. A table never evicts before it is full, and then
what it has not met for longest: the same entries in the same order as when each record is taken by itself.

A resident has a *place* in [1, capacity], taken in order of arrival and inherited from the evicted; 0 is none. Chains
of places with the same bucket begin in `heads`; a node (within a line of the cache) has the place after it in its
chain, the row of its entry, the time of its last use, and the upper half of its hash, which tells its bucket and nearly
always its key.

There is no list in order of use, which would write to two other nodes for every record. `log[time]` is the place
that was used at a time, or nothing if it was used again later: a use writes a line at the end of the log, takes the
one before back, and leaves the time in the node, which is at hand. The least recently used is the first in the
log. Each line is passed once, and what is outdated goes when the log is full; so the order is exact, and a use costs a
constant on average.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import int64, types, uint32, uint64

from penstock.kernels.jit import I64, U32, U64, inline, kernel, ro, rw
from penstock.kernels.prefetch import prefetch
from penstock.kernels.tables.probe import copy_row, start_row

AFTER, ROW, USED, TAG = 0, 1, 2, 3  # of a node
SIZE, FIRST, LAST, DRAINED = 0, 1, 2, 3  # of a state: residents, part of the log in use, residents already drained
LOG, LEAST_LOG = 3, 1 << 8  # lines of a log for every place, and at least
AHEAD, NEAR = 24, 1 << 11  # records; places of a table that the nearest caches hold
BUCKETS = 2  # for every place, unless told otherwise: the paper has 1, where a third of the chains misleads the core


class Links(NamedTuple):
    """What a table has besides its rows."""

    heads: np.ndarray
    nodes: np.ndarray
    log: np.ndarray
    state: np.ndarray

    @property
    def nbytes(self) -> int:
        return int(sum(part.nbytes for part in self))


def links(capacity: int, buckets: int | None = None) -> Links:
    """Of an empty table."""
    return Links(
        np.zeros(BUCKETS * capacity if buckets is None else buckets, np.uint32),
        np.zeros((capacity + 1, 4), np.uint32),
        np.zeros(max(LOG * capacity, LEAST_LOG), np.uint32),
        np.array([0, 1, 1, 0]),  # line 0 of the log is never read: what has not been used yet writes there
    )


@inline
def bucket_of_tag(tag, buckets):
    return int64((uint64(tag) * uint64(buckets)) >> uint64(32))


@inline
def shorten(nodes, log, first, last):
    """Leave out what was used again later; returns the new end of the log, which begins at 1 now."""
    kept = 1
    for time in range(first, last):  # without a branch: which lines are outdated cannot be guessed
        place = log[time]
        log[kept] = place
        nodes[place, USED] = uint32(kept)
        kept += int64(place != 0)
    return kept


@inline
def unchain(heads, nodes, place):
    bucket = bucket_of_tag(nodes[place, TAG], heads.shape[0])
    at = int64(heads[bucket])
    if at == place:
        heads[bucket] = nodes[place, AFTER]
    else:
        while int64(nodes[at, AFTER]) != place:
            at = int64(nodes[at, AFTER])
        nodes[at, AFTER] = nodes[place, AFTER]


@inline
def ask_ahead(hashes, i, entries, heads, nodes, log):
    """Have fetched what records ahead will need: the head of a chain, the node it names, and the entry and the line of
    the log that the node names. By then they may be others: that costs time, no more."""
    n, buckets = hashes.shape[0], heads.shape[0]
    if i + AHEAD < n:
        prefetch(heads, bucket_of_tag(uint32(hashes[i + AHEAD] >> uint64(32)), buckets))
    if i + AHEAD * 2 // 3 < n:
        prefetch(nodes, int64(heads[bucket_of_tag(uint32(hashes[i + AHEAD * 2 // 3] >> uint64(32)), buckets)]))
    if i + AHEAD // 3 < n:
        place = int64(heads[bucket_of_tag(uint32(hashes[i + AHEAD // 3] >> uint64(32)), buckets)])
        prefetch(entries, int64(nodes[place, ROW]))
        prefetch(log, int64(nodes[place, USED]))


@kernel(
    I64, ro(U64, 2), ro(U64), ro(I64), ro(U64), rw(U64, 2), rw(U32), rw(U32, 2), rw(U32), rw(I64), rw(I64), rw(I64),
    rw(I64)
)  # fmt: skip
def probe_lru(keys, hashes, weights, fresh, entries, heads, nodes, log, state, at, evicted, places):
    """Probe all records; returns the number of entries evicted.

    Entries [0, capacity) are the residents from before, by place; new entries follow from `capacity` on, so `entries`
    has room for a row of every record as well. `evicted` lists the evicted entries in order, `places` where they
    stood. `weights` empty: every record counts one. The log must have two lines more than the capacity.
    """
    words = keys.shape[0]
    capacity = nodes.shape[0] - 1
    buckets = heads.shape[0]
    weighted = weights.shape[0] > 0
    size, first, last = state[SIZE], state[FIRST], state[LAST]
    out = 0
    far = capacity > NEAR
    for i in range(keys.shape[1]):
        if far:
            ask_ahead(hashes, i, entries, heads, nodes, log)
        if last == log.shape[0]:
            last = shorten(nodes, log, first, last)
            first = 1
        tag = uint32(hashes[i] >> uint64(32))
        bucket = bucket_of_tag(tag, buckets)
        place = int64(heads[bucket])
        r = int64(0)
        while place != 0:
            if nodes[place, TAG] == tag:
                r = int64(nodes[place, ROW])
                other = False
                for w in range(words):
                    other |= entries[r, w] != keys[w, i]
                if not other:
                    break
            place = int64(nodes[place, AFTER])
        if place == 0:
            if size < capacity:
                r = size
                size += 1
                place = size
            else:
                while log[first] == 0:
                    first += 1
                place = int64(log[first])
                first += 1
                unchain(heads, nodes, place)
                evicted[out] = int64(nodes[place, ROW])
                places[out] = place
                r = capacity + out
                out += 1
            start_row(entries, r, keys, i, fresh)
            nodes[place, AFTER] = heads[bucket]
            nodes[place, ROW] = uint32(r)
            nodes[place, TAG] = tag
            heads[bucket] = uint32(place)
        log[nodes[place, USED]] = uint32(0)
        log[last] = uint32(place)
        nodes[place, USED] = uint32(last)
        last += 1
        entries[r, words] += uint64(weights[i]) if weighted else uint64(1)
        at[i] = r
    state[SIZE], state[FIRST], state[LAST] = size, first, last
    return int64(out)


@kernel(types.void, rw(U64, 2), rw(U32, 2), ro(I64), ro(I64), I64, rw(U64, 2))
def settle_lru(entries, nodes, evicted, places, out, evictions):
    """After folding: copy the evicted rows out, and bring every resident home to its place's row."""
    for i in range(out):
        copy_row(entries, evicted[i], evictions, i)
    for i in range(out):
        place = places[i]
        r = int64(nodes[place, ROW])
        if r != place - 1:
            copy_row(entries, r, entries, place - 1)
            nodes[place, ROW] = uint32(place - 1)


@kernel(I64, rw(U64, 2), rw(U32), rw(U32, 2), rw(I64), rw(U64, 2))
def drain_lru(entries, heads, nodes, state, residents):
    """Copy residents out, by place, as many as there is room for; returns their number.

    The next call goes on from there. The table must not be probed before all are out: then it is empty.
    """
    start = state[DRAINED]
    count = min(state[SIZE] - start, residents.shape[0])
    for i in range(count):
        copy_row(entries, start + i, residents, i)
    state[DRAINED] = start + count
    if state[DRAINED] == state[SIZE]:
        heads[:] = uint32(0)
        nodes[: state[SIZE] + 1, USED] = uint32(0)
        state[SIZE], state[FIRST], state[LAST], state[DRAINED] = 0, 1, 1, 0
    return int64(count)


@kernel(I64, ro(U32), ro(I64), rw(I64))
def recency(log, state, order):
    """Places of the residents, the least recently used first; returns their number."""
    count = 0
    for time in range(state[FIRST], state[LAST]):
        if log[time] != 0:
            order[count] = int64(log[time])
            count += 1
    return int64(count)


@kernel(types.void, ro(U32), ro(U32, 2), rw(I64))
def chain_lengths(heads, nodes, lengths):
    """The length of each bucket's chain: seed aggregate-tree, Sec. III-C, finds 6 to 8 at most, 1.6 on average."""
    for bucket in range(heads.shape[0]):
        length = 0
        place = int64(heads[bucket])
        while place != 0:
            length += 1
            place = int64(nodes[place, AFTER])
        lengths[bucket] = length
