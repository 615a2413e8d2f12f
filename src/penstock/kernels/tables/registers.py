"""Registers of distinct counts (HyperLogLog): eight of a byte each in a word, merged by the greater of each.

The estimate is Ertl's improved one: of the number of registers at each value, without tables of corrections.
"""

from __future__ import annotations

import numpy as np
from numba import int64, types, uint64

from penstock.kernels.jit import F64, I32, I64, U8, U64, inline, kernel, part, ro, rw

LANES = 8  # registers of a word
LANE_BITS = 3
VALUES = 66  # that a register can have, and more
HALF_LOG = 0.5 / np.log(2.0)  # Ertl's α∞


@kernel(types.void, ro(U64), I64, rw(I64))
def leading_marks(hashes, precision, marks):
    """Lane and mark of each hash: its first `precision` bits choose a register, the last three of them its lane; the
    mark is the place of the first one in the rest."""
    rest = 64 - precision
    for i in range(hashes.shape[0]):
        h = hashes[i]
        lane = int64((h >> uint64(rest)) & uint64(LANES - 1))
        below = h << uint64(precision)
        mark = int64(1)
        while mark <= rest and not below >> uint64(63):
            below <<= uint64(1)
            mark += 1
        marks[i] = (mark << LANE_BITS) | lane


@inline
def greater_lanes(one, other):
    """The greater of each pair of bytes."""
    found = uint64(0)
    for lane in range(LANES):
        shift = uint64(8 * lane)
        a, b = (one >> shift) & uint64(255), (other >> shift) & uint64(255)
        found |= (a if a > b else b) << shift
    return found


@kernel(types.void, rw(I64, 2), I64, ro(I64), I64, I64, ro(I32), ro(I64), ro(U8))
def mark_registers(states, column, at, start, stop, rows, marks, valid):
    everything = valid.shape[0] == 0
    for i in range(start, stop):
        if everything or valid[rows[i]]:
            mark = marks[rows[i]]
            shift = uint64(8 * (mark & (LANES - 1)))
            word = uint64(states[at[i], column])
            if (word >> shift) & uint64(255) < uint64(mark >> LANE_BITS):
                states[at[i], column] = int64(word & ~(uint64(255) << shift) | uint64(mark >> LANE_BITS) << shift)


@kernel(types.void, rw(I64, 2), I64, ro(I64), I64, I64, ro(I64))
def merge_registers(states, column, at, start, stop, words):
    for i in range(start, stop):
        states[at[i], column] = int64(greater_lanes(uint64(states[at[i], column]), uint64(words[i])))


@part
def sigma(x):
    if x == 1.0:
        return np.inf
    y, z, before = 1.0, x, -1.0
    while z != before:
        x *= x
        before = z
        z += x * y
        y += y
    return z


@part
def tau(x):
    if x == 0.0 or x == 1.0:
        return 0.0
    y, z, before = 1.0, 1.0 - x, -1.0
    while z != before:
        x = np.sqrt(x)
        before = z
        y *= 0.5
        z -= (1.0 - x) ** 2 * y
    return z / 3.0


@part
def estimate(tally, top, precision):
    """Of the number of registers at each value; none is above `top`."""
    m, most = float(int64(1) << precision), 64 - precision
    z = m * tau(1.0 - tally[most + 1] / m) if top > most else 0.0
    for value in range(min(top, most), 0, -1):
        z = 0.5 * (z + tally[value])
    z += m * sigma(tally[0] / m)
    return HALF_LOG * m * m / z


@kernel(types.void, ro(I64), ro(I64), rw(I64), rw(I64))
def gather_words(at, words, ends, gathered):
    """The words of each group next to each other. `ends` comes with where each group begins and says where it ends
    then. In whatever order they come: what is made of them is a tally."""
    for i in range(at.shape[0]):
        group = at[i]
        gathered[ends[group]] = words[i]
        ends[group] += 1


@kernel(types.void, ro(I64), ro(I64), I64, rw(F64), rw(I64))
def estimates(words, ends, precision, tally, found):
    """found[g]: about how many distinct values a group has met, whose words end at ends[g] (`gather_words`). `tally` is
    scratch, a zero for each value of a register."""
    m, i = int64(1) << precision, int64(0)
    for group in range(ends.shape[0]):
        if i == ends[group]:
            continue
        used, top = int64(0), uint64(0)
        while i < ends[group]:
            word = uint64(words[i])
            while word:  # most registers of a small group are zero: they are not counted one by one
                value = word & uint64(255)
                if value:
                    tally[value] += 1.0
                    top = max(top, value)
                    used += 1
                word >>= uint64(8)
            i += 1
        tally[0] = float(m - used)
        found[group] = int64(np.rint(estimate(tally, int64(top), precision)))
        tally[: top + uint64(1)] = 0.0
