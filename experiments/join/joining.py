"""Window join, AS join and the AS update of the output, compiled (Definitions 5 to 8; Algorithm 1, lines 5, 6, 11, 12).

A record is joined with the other streams from left to right. Stream j is asked in W_j or AS_j, as *its own* EA operator
has it; the paper's lines 5 and 11 go by that of S_k, a slip. What is found stands for `OFTEN` records: one of a window,
COUNT(*) of an aggregation set. The tuples of the virtual window are never stored.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.join import layout as at
from penstock.kernels.jit import part

GREATEST = (1 << 63) - 1

# -- finding matches


@part
def first_place(streams: np.ndarray, j: int, heads: np.ndarray, key: int, hashed: bool) -> Any:
    """Where to begin to look in stream j."""
    early = streams[j, at.EARLY]
    if hashed:
        bucket = streams[j, at.TABLE] + key % streams[j, at.BUCKETS]
        return heads[bucket, at.SET_HEAD] if early else heads[bucket, at.HEAD]
    return streams[j, at.SETS] if early else streams[j, at.FIRST]


@part
def next_match(streams: np.ndarray, j: int, rows: np.ndarray, place: int, key: int, hashed: bool) -> Any:
    """The first row from this place on whose J is the key."""
    if hashed:
        while place != at.NONE and rows[place, at.KEY] != key:
            place = rows[place, at.NEXT]
        return place
    if streams[j, at.EARLY]:
        end = streams[j, at.SETS] + streams[j, at.SETS_REACHED]
    else:
        end = streams[j, at.FIRST] + streams[j, at.REACHED]
    while place < end and rows[place, at.KEY] != key:
        place += 1
    return place if place < end else at.NONE


@part
def join_record(
    streams: np.ndarray, k: int, windows: np.ndarray, sets: np.ndarray, heads: np.ndarray, outs: np.ndarray,
    tops: np.ndarray, registers: np.ndarray, levels: np.ndarray, aggregates: np.ndarray,
    group: int, key: int, value: int, sign: int, hashed: bool,
) -> None:  # fmt: skip
    """Join s_k or r_k with all other streams, and update AS_out with every tuple that comes out."""
    m = len(streams)
    first = 1 if k == 0 else 0
    last = m - 2 if k == m - 1 else m - 1
    levels[k, at.TOLD] = group
    levels[k, at.OFTEN] = 1
    levels[k, at.ROW] = at.NONE
    j = first
    levels[j, at.CURSOR] = first_place(streams, j, heads, key, hashed)
    while True:
        place = levels[j, at.CURSOR]
        early = streams[j, at.EARLY]
        if place != at.NONE:
            place = next_match(streams, j, sets if early else windows, place, key, hashed)
        if place == at.NONE:
            if j == first:
                return
            j = j - 2 if j - 1 == k else j - 1
            continue
        levels[j, at.ROW] = place
        if early:
            levels[j, at.TOLD] = sets[place, at.GROUP]
            levels[j, at.OFTEN] = sets[place, at.COUNT]
            levels[j, at.CURSOR] = sets[place, at.NEXT] if hashed else place + 1
        else:
            levels[j, at.TOLD] = windows[place, at.GROUP]
            levels[j, at.OFTEN] = 1
            levels[j, at.CURSOR] = windows[place, at.NEXT] if hashed else place + 1
        if j == last:
            update_out(streams, k, windows, sets, outs, tops, registers, levels, aggregates, value, sign)
        else:
            j = j + 2 if j + 1 == k else j + 1
            levels[j, at.CURSOR] = first_place(streams, j, heads, key, hashed)


# -- AS update of the output


@part
def update_out(
    streams: np.ndarray, k: int, windows: np.ndarray, sets: np.ndarray, outs: np.ndarray, tops: np.ndarray,
    registers: np.ndarray, levels: np.ndarray, aggregates: np.ndarray, value: int, sign: int,
) -> None:  # fmt: skip
    """One tuple of the virtual window comes or goes. The table is hashed on G_1 alone (Appendix A, B_g)."""
    m = len(streams)
    bucket = levels[0, at.TOLD] % len(tops)
    before, row = at.NONE, tops[bucket]
    while row != at.NONE and not same_groups(outs, row, levels, m):
        before, row = row, outs[row, at.OUT_NEXT]
    if row == at.NONE:
        row = new_out(outs, registers, levels, aggregates, m)
        outs[row, at.OUT_NEXT] = tops[bucket]
        tops[bucket] = row
    pairs = sign
    for i in range(m):
        pairs *= levels[i, at.OFTEN]
    outs[row, at.OUT_COUNT] += pairs
    for a in range(len(aggregates)):
        i = aggregates[a, at.OF_STREAM]
        if i == k:
            found = value
        elif streams[i, at.EARLY]:
            found = sets[levels[i, at.ROW], at.VALUES + a]
        else:
            found = windows[levels[i, at.ROW], at.VALUE]
        kind = aggregates[a, at.KIND]
        if kind == at.SUM:
            # f(c, a) = a·c (Definition 5), c of all other streams; a sum of stream i has its own c in it already.
            times = sign
            for j in range(m):
                if j != i:
                    times *= levels[j, at.OFTEN]
            outs[row, at.GROUPS + m + a] += found * times
        elif sign > 0:
            if kind == at.MIN:
                outs[row, at.GROUPS + m + a] = min(outs[row, at.GROUPS + m + a], found)
            else:
                outs[row, at.GROUPS + m + a] = max(outs[row, at.GROUPS + m + a], found)
        elif found == outs[row, at.GROUPS + m + a] and outs[row, at.STALE] == at.FRESH:
            outs[row, at.STALE] = registers[at.FIRST_STALE]
            registers[at.FIRST_STALE] = row
    if outs[row, at.OUT_COUNT] == 0:
        drop_out(outs, tops, registers, bucket, before, row)


@part
def drop_out(outs: np.ndarray, tops: np.ndarray, registers: np.ndarray, bucket: int, before: int, row: int) -> None:
    """A group that has no tuple left."""
    if before == at.NONE:
        tops[bucket] = outs[row, at.OUT_NEXT]
    else:
        outs[before, at.OUT_NEXT] = outs[row, at.OUT_NEXT]
    outs[row, at.OUT_NEXT] = registers[at.OUT_FREE]
    registers[at.OUT_FREE] = row
    registers[at.OUT_SIZE] -= 1


@part
def same_groups(outs: np.ndarray, row: int, levels: np.ndarray, m: int) -> bool:
    for i in range(m):  # noqa: SIM110 (numba compiles plain loops)
        if outs[row, at.GROUPS + i] != levels[i, at.TOLD]:
            return False
    return True


@part
def new_out(outs: np.ndarray, registers: np.ndarray, levels: np.ndarray, aggregates: np.ndarray, m: int) -> Any:
    row = registers[at.OUT_FREE]
    if row == at.NONE:
        row = registers[at.OUT_REACHED]
        registers[at.OUT_REACHED] += 1
    else:
        registers[at.OUT_FREE] = outs[row, at.OUT_NEXT]
    registers[at.OUT_SIZE] += 1
    outs[row, at.OUT_COUNT] = 0
    outs[row, at.STALE] = at.FRESH
    for i in range(m):
        outs[row, at.GROUPS + i] = levels[i, at.TOLD]
    for a in range(len(aggregates)):
        outs[row, at.GROUPS + m + a] = start_value(aggregates[a, at.KIND])
    return row


@part
def start_value(kind: int) -> Any:
    """What the first value replaces."""
    if kind == at.MIN:
        return GREATEST
    return -GREATEST if kind == at.MAX else 0


# -- extremes that have left


@part
def refresh(
    streams: np.ndarray, windows: np.ndarray, sets: np.ndarray, heads: np.ndarray, outs: np.ndarray,
    registers: np.ndarray, aggregates: np.ndarray, hashed: bool,
) -> None:  # fmt: skip
    """MIN and MAX of the groups that an extreme has left, from the windows and aggregation sets of now."""
    m = len(streams)
    row = registers[at.FIRST_STALE]
    while row != at.NONE:
        after = outs[row, at.STALE]
        outs[row, at.STALE] = at.FRESH
        if outs[row, at.OUT_COUNT]:
            for a in range(len(aggregates)):
                if aggregates[a, at.KIND] != at.SUM:
                    i = aggregates[a, at.OF_STREAM]
                    column = at.VALUES + a if streams[i, at.EARLY] else at.VALUE
                    rows = sets if streams[i, at.EARLY] else windows
                    outs[row, at.GROUPS + m + a] = extreme(
                        streams, i, rows, column, windows, sets, heads, outs, row, aggregates[a, at.KIND], hashed
                    )
        row = after
    registers[at.FIRST_STALE] = at.NONE


@part
def extreme(
    streams: np.ndarray, i: int, rows: np.ndarray, column: int, windows: np.ndarray, sets: np.ndarray,
    heads: np.ndarray, outs: np.ndarray, row: int, kind: int, hashed: bool,
) -> Any:  # fmt: skip
    """Over all rows of stream i with the group's G_i whose key all other streams have, in the group's G_j."""
    if streams[i, at.EARLY]:
        start, end = streams[i, at.SETS], streams[i, at.SETS] + streams[i, at.SETS_REACHED]
    else:
        start, end = streams[i, at.FIRST], streams[i, at.FIRST] + streams[i, at.REACHED]
    best = start_value(kind)
    for place in range(start, end):
        key = rows[place, at.KEY]
        if key != at.NONE and rows[place, at.GROUP] == outs[row, at.GROUPS + i]:
            value = rows[place, column]
            better = value < best if kind == at.MIN else value > best
            if better and joined_elsewhere(streams, i, windows, sets, heads, outs, row, key, hashed):
                best = value
    return best


@part
def joined_elsewhere(
    streams: np.ndarray, i: int, windows: np.ndarray, sets: np.ndarray, heads: np.ndarray, outs: np.ndarray,
    row: int, key: int, hashed: bool,
) -> bool:  # fmt: skip
    for j in range(len(streams)):
        if j == i:
            continue
        rows = sets if streams[j, at.EARLY] else windows
        place = first_place(streams, j, heads, key, hashed)
        if place != at.NONE:
            place = next_match(streams, j, rows, place, key, hashed)
        while place != at.NONE and rows[place, at.GROUP] != outs[row, at.GROUPS + j]:
            place = rows[place, at.NEXT] if hashed else place + 1
            if place != at.NONE:
                place = next_match(streams, j, rows, place, key, hashed)
        if place == at.NONE:
            return False
    return True
