"""Two hash tables over packed keys: exact and growable, and direct-mapped.

Both keep a row of 64-bit words per group: the key words, count(*) (always kept), then the states of the other
aggregates.  `probe_*` finds or makes the row of every record of a chunk,
adds its weight to count(*), and leaves the row numbers; `kernels.tables.fold` then folds each aggregate column by
column.  Probing and folding apart keeps the loops free of interpretation: a plan is data, not code.

* **exact** grows; a leaf of the plan, it holds every group of a task once. Rows stand one after the other in
  the order of arrival, beside an index of their numbers: a new group costs one write into the small index and one at
  the end of the rows, growing moves no row out of order, and the finished groups need no gathering.
* **direct** has a fixed number of buckets, a row each (count(*) of 0 is empty), and evicts the resident on a
  collision (seed smap, Sec. 2.2).
  A group's stay in its bucket is an *entry*; evicted entries leave in the order of eviction, exactly as in
  record-at-a-time processing, but complete only after the chunk is folded.
"""

from __future__ import annotations

import numpy as np
from numba import int64, types, uint32, uint64

from penstock.kernels.hashing import combine, mix
from penstock.kernels.jit import I32, I64, U32, U64, inline, kernel, ro, rw
from penstock.kernels.prefetch import prefetch

Array = np.ndarray
AHEAD = 16  # records
NEAR = 1 << 13  # entries of an index that the nearest caches hold with its rows


@inline
def key_hash(keys, i):
    h = mix(keys[0, i])
    for w in range(1, keys.shape[0]):
        h = combine(h, keys[w, i])
    return h


@inline
def row_hash(rows, r, words):
    """The same hash of a key that already stands in a row."""
    h = mix(rows[r, 0])
    for w in range(1, words):
        h = combine(h, rows[r, w])
    return h


@inline
def same_key(rows, r, keys, i):
    for w in range(keys.shape[0]):
        if rows[r, w] != keys[w, i]:
            return False
    return True


@inline
def start_row(rows, r, keys, i, fresh):
    words = keys.shape[0]
    for w in range(words):
        rows[r, w] = keys[w, i]
    for s in range(fresh.shape[0]):
        rows[r, words + s] = fresh[s]


@inline
def ask_ahead(hashes, i, stop, index, rows):
    """Have the index entry of a record some way ahead fetched, and the row that stands in a nearer one's."""
    last = uint64(index.shape[0] - 1)
    if i + AHEAD < stop:
        prefetch(index, int64(hashes[i + AHEAD] & last))
    if i + AHEAD // 2 < stop:
        entry = index[hashes[i + AHEAD // 2] & last]
        if entry != 0:
            prefetch(rows, int64(entry & uint32(last)) - 1)


@kernel(types.UniTuple(I64, 2), ro(U64, 2), ro(U64), I64, I64, ro(I64), I64, ro(U64), rw(U32), rw(U64, 2), rw(I64))
def probe_exact(keys, hashes, start, stop, weights, count, fresh, index, rows, at):
    """Probe records [start, stop); ends early, before the record whose new group has no room.

    Returns (end, groups). `weights` empty: every record counts one. An index entry is the row's number + 1, which
    takes no more bits than the number of a slot, and above it bits of the hash: a mismatch is mostly seen without
    touching the row.
    """
    words = keys.shape[0]
    last = uint64(index.shape[0] - 1)
    low, high = uint32(last), uint32(~last)
    limit = min(rows.shape[0], index.shape[0] // 2)
    weighted = weights.shape[0] > 0
    far = index.shape[0] > NEAR
    for i in range(start, stop):
        if far:
            ask_ahead(hashes, i, stop, index, rows)
        slot, tag = hashes[i] & last, uint32(hashes[i] >> uint64(32)) & high
        while True:
            entry = index[slot]
            if entry == 0:
                if count >= limit:
                    return int64(i), count
                r = count
                start_row(rows, r, keys, i, fresh)
                count += 1
                index[slot] = tag | uint32(count)
                break
            if entry & high == tag:
                r = int64(entry & low) - 1
                if same_key(rows, r, keys, i):
                    break
            slot = (slot + uint64(1)) & last
        rows[r, words] += uint64(weights[i]) if weighted else uint64(1)
        at[i] = r
    return stop, count


@kernel(types.void, ro(U64, 2), I64, I64, rw(U32))
def fill_index(rows, count, words, index):
    """Index the first `count` rows, all of different keys, in an empty index."""
    last = uint64(index.shape[0] - 1)
    for r in range(count):
        h = row_hash(rows, r, words)
        slot = h & last
        while index[slot] != 0:
            slot = (slot + uint64(1)) & last
        index[slot] = (uint32(h >> uint64(32)) & uint32(~last)) | uint32(r + 1)


@inline
def bucket_of(h, buckets):
    """A bucket by the upper half of the hash: a product in place of a division."""
    return int64(((h >> uint64(32)) * uint64(buckets)) >> uint64(32))


@kernel(types.void, ro(U64, 2), rw(U64))
def hash_keys(keys, hashes):
    """The hash of every key, by itself: in the loop that probes it would wait for every collision."""
    for i in range(keys.shape[1]):
        hashes[i] = key_hash(keys, i)


def hashed(keys: Array) -> Array:
    """The hashes of these keys."""
    hashes = np.empty(keys.shape[1], np.uint64)
    hash_keys(keys, hashes)
    return hashes


def empty_index(rows: int) -> Array:
    """The index of an exact table of `rows` rows: at most half full when all are there."""
    return np.zeros(1 << (2 * rows - 1).bit_length(), np.uint32)


@kernel(I64, ro(U64, 2), ro(U64), ro(I64), ro(U64), I64, rw(U64, 2), rw(I32), rw(I32), rw(I64), rw(I64), rw(I32))
def probe_direct(keys, hashes, weights, fresh, keep, entries, resident, credit, at, evicted, moved):
    """Probe all records in a direct-mapped table; returns the number of entries evicted.

    Entries [0, buckets) are the residents from before, by bucket; new entries follow from `buckets` on, so
    `entries` has room for a row of every record as well. `resident[bucket]` is the entry that stands there now;
    `evicted` lists the evicted entries in order, `moved` the buckets they were in. `weights` empty: every record counts
    one.

    A collision evicts the resident. Where `keep` is set it only takes one of the resident's credits, of which every
    hit gave it one, and passes the newcomer on in an entry of its own, until there is none left.
    """
    words = keys.shape[0]
    buckets = resident.shape[0]
    weighted = weights.shape[0] > 0
    made, out = buckets, 0
    for i in range(keys.shape[1]):
        bucket = bucket_of(hashes[i], buckets)
        e = int64(resident[bucket])
        empty = entries[e, words] == 0
        other = empty
        for w in range(words):  # all words, whatever the first says: one branch less to guess
            other |= entries[e, w] != keys[w, i]
        if other:
            if not empty:
                old = e
                e = made
                made += 1
                if keep:
                    credit[bucket] -= 1
                if keep and credit[bucket] > 0:
                    evicted[out] = e
                else:
                    evicted[out] = old
                    resident[bucket] = e
                    credit[bucket] = 1
                moved[out] = bucket
                out += 1
            elif keep:
                credit[bucket] = 1
            start_row(entries, e, keys, i, fresh)
        elif keep:
            credit[bucket] += 1
        entries[e, words] += uint64(weights[i]) if weighted else uint64(1)
        at[i] = e
    return int64(out)


@inline
def copy_row(source, one, target, other):
    for word in range(source.shape[1]):
        target[other, word] = source[one, word]


@kernel(types.void, rw(U64, 2), ro(I64), ro(I32), I64, rw(U64, 2), rw(I32))
def settle_direct(entries, evicted, moved, out, evictions, resident):
    """After folding: copy the evicted rows out, and bring every resident that moved home to its bucket's row."""
    for i in range(out):
        copy_row(entries, evicted[i], evictions, i)
    for i in range(out):
        bucket = moved[i]
        e = resident[bucket]
        if e != bucket:
            copy_row(entries, e, entries, bucket)
            resident[bucket] = bucket


@kernel(I64, rw(U64, 2), I64, rw(U64, 2))
def drain_direct(entries, words, residents):
    """Copy the residents out, by bucket, and leave an empty table; returns their number."""
    out = 0
    for bucket in range(residents.shape[0]):
        if entries[bucket, words] != 0:
            copy_row(entries, bucket, residents, out)
            entries[bucket, words] = 0
            out += 1
    return int64(out)
