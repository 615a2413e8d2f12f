"""Counting on a sample: groups of a relation, how often each comes, and what a direct-mapped table would evict. See
`runtime.profile.survey`."""

from __future__ import annotations

from numba import int64, types, uint8, uint32, uint64

from penstock.kernels.hashing import combine, mix
from penstock.kernels.jit import I64, U8, U32, U64, kernel, ro, rw
from penstock.kernels.tables.probe import bucket_of


@kernel(types.void, ro(U64, 2), ro(U64), rw(U64))
def hash_words(words, masks, hashes):
    """A hash of `words & masks` of every record; never 0."""
    for i in range(words.shape[1]):
        h = uint64(0)
        for w in range(words.shape[0]):
            if masks[w] != 0:
                h = combine(h, words[w, i] & masks[w])
        hashes[i] = h if h != 0 else uint64(1)


@kernel(types.void, ro(U64), rw(U64), rw(U8), rw(U8), rw(I64))
def count_blocks(hashes, known, last, times, spread):
    """Groups by the number of blocks that they are in: of hashes in a row, cut into as many blocks as `spread` has
    numbers beside 0. `known`, `last` and `times` are zero, a power of two, and more than there are hashes.
    """
    n = hashes.shape[0]
    end = uint64(known.shape[0] - 1)
    blocks = spread.shape[0] - 1
    for i in range(n):
        block = uint8(i * blocks // n + 1)
        h = hashes[i]
        slot = mix(h) & end
        while known[slot] != 0 and known[slot] != h:
            slot = (slot + uint64(1)) & end
        if last[slot] != block:
            known[slot] = h
            last[slot] = block
            if times[slot] > 0:
                spread[times[slot]] -= 1
            times[slot] += uint8(1)
            spread[times[slot]] += 1


@kernel(I64, ro(U64), rw(U64))
def count_evictions(hashes, resident):
    """What a direct-mapped table evicts on collision; `resident` is zero, one word a bucket."""
    out = 0
    for i in range(hashes.shape[0]):
        h = hashes[i]
        bucket = bucket_of(mix(h), resident.shape[0])
        if resident[bucket] != h:
            if resident[bucket] != 0:
                out += 1
            resident[bucket] = h
    return int64(out)


@kernel(I64, ro(U64), rw(U64), rw(U32))
def count_groups(hashes, known, counts):
    """How often each group comes; returns their number; the first of `counts` are theirs, one each. `known` and
    `counts` are zero, a power of two, and more than there are hashes."""
    last = uint64(known.shape[0] - 1)
    for i in range(hashes.shape[0]):
        h = hashes[i]
        slot = mix(h) & last
        while known[slot] != 0 and known[slot] != h:
            slot = (slot + uint64(1)) & last
        known[slot] = h
        counts[slot] += uint32(1)
    groups = 0
    for slot in range(counts.shape[0]):
        if counts[slot] != 0:
            counts[groups] = counts[slot]
            groups += 1
    return int64(groups)


@kernel(I64, ro(U64), rw(U64), rw(I64))
def first_of_each(hashes, known, first):
    """Where each group comes first; returns their number. `known` is zero, a power of two, and more than there are
    hashes; `first` has room for as many."""
    last = uint64(known.shape[0] - 1)
    groups = 0
    for i in range(hashes.shape[0]):
        h = hashes[i]
        slot = mix(h) & last
        while known[slot] != 0 and known[slot] != h:
            slot = (slot + uint64(1)) & last
        if known[slot] == 0:
            known[slot] = h
            first[groups] = i
            groups += 1
    return int64(groups)
