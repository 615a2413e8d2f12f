"""Rows of many runs into groups: number the groups cell by cell, so that a cell's table stays in the cache.

Rows of a segment stand by (pane, slot). Equal keys of different runs meet in the same (pane, slot), a *cell*; so cells
are grouped one after the other, each with a table of its own that is as small as the cell, and groups come out by cell.
A cell with rows of one run only needs no table: its keys all differ.

`runtime.merge.merge` packs the keys before, and folds the states by the groups' numbers afterwards.
"""

from __future__ import annotations

import numpy as np
from numba import int64, types, uint64

from penstock.kernels.hashing import combine, mix
from penstock.kernels.jit import I32, I64, U8, U16, U32, U64, inline, kernel, kernel_for, part, ro, rw

Array = np.ndarray


@inline
def room_for(rows):
    """Entries of an index that is at most half full: a power of two."""
    size = int64(2)
    while size < 2 * rows:
        size *= 2
    return size


@inline
def cell_rows(starts, cell):
    """How many rows a cell has in all pieces."""
    rows = int64(0)
    for p in range(starts.shape[0]):
        rows += starts[p, cell + 1] - starts[p, cell]
    return rows


@inline
def of_one_run(starts, runs, cell):
    """Whether all rows of a cell are of one run (a negative one has rows with equal keys itself)."""
    run = int64(-1)
    for p in range(starts.shape[0]):
        if starts[p, cell] < starts[p, cell + 1]:
            if runs[p] < 0 or (run >= 0 and run != runs[p]):
                return False
            run = runs[p]
    return True


# Keys are one word each (`keys[row]`, the common case) or several (`keys[word, row]`). `ndim` is known when a kernel is
# compiled, so each of its two forms has one branch of these.


@part
def hashed(keys, i):
    if keys.ndim == 1:
        return mix(keys[i])
    h = mix(keys[0, i])
    for w in range(1, keys.shape[0]):
        h = combine(h, keys[w, i])
    return h


@part
def same(groups, r, keys, i):
    if keys.ndim == 1:
        return groups[r] == keys[i]
    for w in range(keys.shape[0]):
        if groups[w, r] != keys[w, i]:
            return False
    return True


@part
def keep(groups, r, keys, i):
    if keys.ndim == 1:
        groups[r] = keys[i]
    else:
        for w in range(keys.shape[0]):
            groups[w, r] = keys[w, i]


@part
def append(keys, start, stop, count, groups, at):
    """Rows whose keys all differ, each a group; returns the number of groups then."""
    for i in range(start, stop):
        keep(groups, count, keys, i)
        at[i] = count
        count += 1
    return count


@part
def probe(keys, start, stop, base, count, index, last, groups, at):
    """Find or make the group of each row; an entry of the index is a group's number less the base, plus one."""
    for i in range(start, stop):
        slot = hashed(keys, i) & last
        r = base + int64(index[slot]) - 1
        while r >= base and not same(groups, r, keys, i):
            slot = (slot + uint64(1)) & last
            r = base + int64(index[slot]) - 1
        if r < base:
            r = count
            count += 1
            index[slot] = count - base
            keep(groups, r, keys, i)
        at[i] = r
    return count


@kernel_for(
    (I64, ro(U64, 2), ro(I64, 2), ro(I64), rw(I32), rw(U64, 2), rw(I64), rw(I64)),
    (I64, ro(U64, 1), ro(I64, 2), ro(I64), rw(I32), rw(U64, 1), rw(I64), rw(I64)),
)
def group_cells(keys, starts, runs, index, groups, at, ends):
    """Number the groups of all rows: `at` of each row, `groups` their keys, `ends` one behind the last of each cell.

    Rows starts[p, c] to starts[p, c + 1] of piece p are in cell c; `index` has room for the largest cell
    (`room_for`). Returns the number of groups.
    """
    count = int64(0)
    for cell in range(starts.shape[1] - 1):
        base, alone = count, of_one_run(starts, runs, cell)
        size = int64(0) if alone else room_for(cell_rows(starts, cell))
        index[:size] = 0
        for p in range(starts.shape[0]):
            start, stop = starts[p, cell], starts[p, cell + 1]
            if alone:
                count = append(keys, start, stop, count, groups, at)
            else:
                count = probe(keys, start, stop, base, count, index, uint64(size - 1), groups, at)
        ends[cell] = count
    return count


def numbered(keys: Array, starts: Array, runs: Array) -> tuple[Array, Array, Array]:
    """Keys of the groups, the group of each row, one behind the last group of each cell (`group_cells`)."""
    largest = int(np.diff(starts, axis=1).sum(0).max(initial=1))
    index = np.empty(1 << (2 * largest).bit_length(), np.int32)
    groups, at = np.empty_like(keys), np.empty(keys.shape[1], np.int64)
    ends = np.empty(starts.shape[1] - 1, np.int64)
    one = len(keys) == 1
    count = group_cells(keys[0] if one else keys, starts, runs, index, groups[0] if one else groups, at, ends)
    return groups[:, :count], at, ends


def distinct(keys: Array) -> tuple[Array, Array]:
    """The different keys (words by row), in the order in which they come, and which of them each one is."""
    found, at, _ = numbered(keys, np.array([[0, keys.shape[1]]]), np.array([-1]))
    return found, at


@kernel_for(*((types.void, ro(kind), U64, I64, rw(U64)) for kind in (U8, U16, U32, U64)))
def pack_stored(values, above, shift, word):
    """word |= (value + above) << shift: values of a segment as they are stored, `above` the base of their field."""
    by = uint64(shift)
    for i in range(values.shape[0]):
        word[i] |= (uint64(values[i]) + above) << by


@kernel_for(*((types.void, ro(I64), ro(kind), I64, rw(I64)) for kind in (U8, U16, U32, U64)))
def add_stored(at, values, base, sums):
    """Add values of a segment, as they are stored, to the groups' sums: the caller knows that none can overflow.
    `values` empty: all are the base."""
    constant = values.shape[0] == 0
    for i in range(at.shape[0]):
        sums[at[i]] += base if constant else int64(values[i]) + base


@kernel(types.void, ro(U64), I64, I64, I64, rw(I64))
def field_of(words, shift, bits, base, values):
    """One component out of key words."""
    by, mask = uint64(shift), uint64(0xFFFFFFFFFFFFFFFF) >> uint64(64 - bits)
    for i in range(words.shape[0]):
        values[i] = int64((words[i] >> by) & mask) + base


@kernel(I64, ro(I64), I64, rw(I64), rw(I64))
def unmet(codes, base, known, found):
    """Codes (those from `base` on, less it) that are not known yet, each once; `known` marks them by -2."""
    count = int64(0)
    for i in range(codes.shape[0]):
        code = codes[i] - base
        if code >= 0 and known[code] == -1:
            known[code] = -2
            found[count] = code
            count += 1
    return count


@kernel(types.void, ro(I64), I64, rw(U8))
def mark(codes, base, used):
    """Mark the codes (those from `base` on, less it) that occur."""
    for i in range(codes.shape[0]):
        code = codes[i] - base
        if code >= 0:
            used[code] = 1


@kernel(types.void, ro(I64), I64, ro(I64), rw(I64))
def recode(codes, base, known, recoded):
    """The same strings by other codes; what is below the base is none and stays."""
    for i in range(codes.shape[0]):
        code = codes[i] - base
        recoded[i] = known[code] + base if code >= 0 else codes[i]
