"""Counting on a sample: groups of a relation, how often each comes, and what a direct-mapped table would evict. See
`runtime.survey`."""

from __future__ import annotations

from numba import int64, types, uint32, uint64

from penstock.kernels.hashing import combine, mix
from penstock.kernels.jit import I64, U8, U32, U64, kernel, ro, rw
from penstock.kernels.tables import bucket_of


@kernel(I64, ro(U64, 2), ro(U64), ro(U8), rw(U64))
def hash_chosen(words, masks, chosen, hashes):
    """A hash of `words & masks` of every chosen tuple (`chosen` empty: all); never 0. Returns their number."""
    n = 0
    everything = chosen.shape[0] == 0
    for i in range(words.shape[1]):
        if everything or chosen[i]:
            h = uint64(0)
            for w in range(words.shape[0]):
                if masks[w] != 0:
                    h = combine(h, words[w, i] & masks[w])
            hashes[n] = h if h != 0 else uint64(1)
            n += 1
    return int64(n)


@kernel(types.void, ro(U64), I64, rw(U64), rw(U32), rw(U32), rw(I64))
def count_blocks(hashes, n, known, last, times, spread):
    """Groups by the number of blocks that they are in: of n hashes in a row, cut into as many blocks as `spread` has
    numbers beside 0. `known`, `last` and `times` are zero, a power of two, and more than n.
    """
    end = uint64(known.shape[0] - 1)
    blocks = spread.shape[0] - 1
    for i in range(n):
        block = uint32(i * blocks // n + 1)
        h = hashes[i]
        slot = mix(h) & end
        while known[slot] != 0 and known[slot] != h:
            slot = (slot + uint64(1)) & end
        if last[slot] != block:
            known[slot] = h
            last[slot] = block
            if times[slot] > 0:
                spread[times[slot]] -= 1
            times[slot] += uint32(1)
            spread[times[slot]] += 1


@kernel(I64, ro(U64), I64, rw(U64))
def count_evictions(hashes, n, resident):
    """What a direct-mapped table evicts on collision; `resident` is zero, one word a bucket."""
    out = 0
    for i in range(n):
        h = hashes[i]
        bucket = bucket_of(mix(h), resident.shape[0])
        if resident[bucket] != h:
            if resident[bucket] != 0:
                out += 1
            resident[bucket] = h
    return int64(out)


@kernel(I64, ro(U64), ro(U64), I64, rw(U64), rw(U64), rw(I64), rw(I64))
def count_below(hashes, feeder, n, passed, known, number, counts):
    """How often each group comes among tuples that a feeder passes on, the first of each of its groups; returns the
    number of groups. `feeder` empty: all tuples come. `passed`, `known` and `number` are zero, powers of two, and more
    than n; `counts` has room for n groups.
    """
    last = uint64(known.shape[0] - 1)
    raw = feeder.shape[0] == 0
    groups = 0
    for i in range(n):
        if not raw:
            h = feeder[i]
            slot = mix(h) & last
            while passed[slot] != 0 and passed[slot] != h:
                slot = (slot + uint64(1)) & last
            if passed[slot] == h:
                continue
            passed[slot] = h
        h = hashes[i]
        slot = mix(h) & last
        while known[slot] != 0 and known[slot] != h:
            slot = (slot + uint64(1)) & last
        if known[slot] == 0:
            known[slot] = h
            number[slot] = groups
            counts[groups] = 0
            groups += 1
        counts[number[slot]] += 1
    return int64(groups)
