"""Fold values into the states that stand in a table's rows, one aggregate column at a time.

Every kernel takes the rows' states, a state column, the row number `at[i]` of each record of [start, stop),
and reads value[rows[i]] where valid[rows[i]] (`valid` empty: all). Partial aggregates (evicted entries, blocks of
segments) are folded by the same kernels: a partial count or sum is a value to add, a partial minimum is a
value to compare. Only states of several words (wide and floating sums, moments) have a second kernel.

Timestamps, booleans and floats are integers here: `order_bits` maps floats to integers in the same order.
"""

from __future__ import annotations

import numpy as np
from numba import float64, int64, types, uint64

from penstock.kernels.jit import F64, I32, I64, U8, inline, kernel, ro, rw

FAR = 1e140  # means further apart than that are merged in plain doubles


@kernel(types.void, rw(I64, 2), I64, ro(I64), I64, I64, ro(I32), ro(U8))
def add_count(states, column, at, start, stop, rows, valid):
    """count(x): one for every value that is there."""
    for i in range(start, stop):
        states[at[i], column] += int64(valid[rows[i]])


@kernel(types.void, rw(I64, 2), I64, ro(I64), I64, I64, ro(I32), ro(I64), ro(U8))
def add_sum(states, column, at, start, stop, rows, value, valid):
    """Sum in one word: the caller knows that it cannot overflow."""
    if valid.shape[0] == 0:
        for i in range(start, stop):
            states[at[i], column] += value[rows[i]]
    else:
        for i in range(start, stop):
            if valid[rows[i]]:
                states[at[i], column] += value[rows[i]]


@inline
def add_words(states, r, column, low, high):
    before = uint64(states[r, column])
    after = before + uint64(low)
    states[r, column] = int64(after)
    states[r, column + 1] += high + int64(after < before)


@kernel(types.void, rw(I64, 2), I64, ro(I64), I64, I64, ro(I32), ro(I64), ro(U8))
def add_wide(states, column, at, start, stop, rows, value, valid):
    """Sum in two words (low, high): 128 bits, exact for any number of BIGINTs."""
    everything = valid.shape[0] == 0
    for i in range(start, stop):
        if everything or valid[rows[i]]:
            v = value[rows[i]]
            add_words(states, at[i], column, v, v >> int64(63))


@kernel(types.void, rw(I64, 2), I64, ro(I64), I64, I64, ro(I64), ro(I64))
def add_wide_partial(states, column, at, start, stop, low, high):
    for i in range(start, stop):
        add_words(states, at[i], column, low[i], high[i])


@inline
def add_double(states, r, column, value, rest):
    """Double-double addition (Knuth's two-sum): the order of records and tasks does not show in the result."""
    old = states[r, column]
    total = old + value
    states[r, column] = total
    if np.isfinite(total):
        back = total - old
        states[r, column + 1] += (old - (total - back)) + (value - back) + rest


@kernel(types.void, rw(F64, 2), I64, ro(I64), I64, I64, ro(I32), ro(F64), ro(U8))
def add_float(states, column, at, start, stop, rows, value, valid):
    """Floating sum in two words (sum, what rounding lost)."""
    everything = valid.shape[0] == 0
    for i in range(start, stop):
        if everything or valid[rows[i]]:
            add_double(states, at[i], column, value[rows[i]], float64(0.0))


@kernel(types.void, rw(F64, 2), I64, ro(I64), I64, I64, ro(F64), ro(F64))
def add_float_partial(states, column, at, start, stop, value, rest):
    for i in range(start, stop):
        add_double(states, at[i], column, value[i], rest[i])


@kernel(types.void, rw(I64, 2), I64, ro(I64), I64, I64, ro(I32), ro(I64), ro(U8))
def fold_min(states, column, at, start, stop, rows, value, valid):
    everything = valid.shape[0] == 0
    for i in range(start, stop):
        if (everything or valid[rows[i]]) and value[rows[i]] < states[at[i], column]:
            states[at[i], column] = value[rows[i]]


@kernel(types.void, rw(I64, 2), I64, ro(I64), I64, I64, ro(I32), ro(I64), ro(U8))
def fold_max(states, column, at, start, stop, rows, value, valid):
    everything = valid.shape[0] == 0
    for i in range(start, stop):
        if (everything or valid[rows[i]]) and value[rows[i]] > states[at[i], column]:
            states[at[i], column] = value[rows[i]]


@inline
def compare_bytes(offsets, data, a, b):
    """< 0, 0 or > 0 as string a is below, equal to or above string b, byte by byte."""
    x, x_end, y, y_end = offsets[a], offsets[a + 1], offsets[b], offsets[b + 1]
    while x < x_end and y < y_end:
        if data[x] != data[y]:
            return int64(data[x]) - int64(data[y])
        x += 1
        y += 1
    return (x_end - x) - (y_end - y)


@kernel(types.void, rw(I64, 2), I64, ro(I64), I64, I64, ro(I32), ro(I64), ro(U8), ro(I64), ro(U8), I64)
def fold_string(states, column, at, start, stop, rows, code, valid, offsets, data, sign):
    """min (sign −1) or max (sign 1) of strings by dictionary code; a state of −1 is none yet."""
    everything = valid.shape[0] == 0
    for i in range(start, stop):
        c = code[rows[i]]
        if (everything or valid[rows[i]]) and c >= 0:
            best = states[at[i], column]
            if best < 0 or (best != c and compare_bytes(offsets, data, c, best) * sign > 0):
                states[at[i], column] = c


@kernel(types.void, rw(I64, 2), I64, ro(I64), I64, I64, ro(I32), ro(I64), ro(U8), ro(I64), ro(U8), I64)
def fold_address(states, column, at, start, stop, rows, value, valid, offsets, data, sign):
    """min (sign −1) or max (sign 1) of addresses: below 2**32 an IPv4 number, from there on 2**32 plus the code of
    an IPv6 address, whose bytes in network order compare as the address does; a state of −1 is none yet."""
    everything = valid.shape[0] == 0
    four = int64(1) << 32
    for i in range(start, stop):
        v = value[rows[i]]
        if (everything or valid[rows[i]]) and v >= 0:
            best = states[at[i], column]
            if best >= four and v >= four:
                above = compare_bytes(offsets, data, v - four, best - four)
            else:  # at least one is IPv4, and IPv4 sorts before IPv6
                above = v - best
            if best < 0 or above * sign > 0:
                states[at[i], column] = v


@inline
def two_sum(a, b):
    """a + b and what rounding lost (Knuth)."""
    total = a + b
    back = total - a
    return total, (a - (total - back)) + (b - back)


@inline
def two_product(a, b):
    """a · b and what rounding lost (Dekker's product of halves)."""
    product = a * b
    t = float64(134217729.0) * a
    a_high = t - (t - a)
    a_low = a - a_high
    t = float64(134217729.0) * b
    b_high = t - (t - b)
    b_low = b - b_high
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


@inline
def double_add(a, a_rest, b, b_rest):
    total, rest = two_sum(a, b)
    return two_sum(total, rest + a_rest + b_rest)


@inline
def double_product(a, a_rest, b, b_rest):
    product, rest = two_product(a, b)
    return two_sum(product, rest + (a * b_rest + a_rest * b))


@inline
def double_divide(a, a_rest, n):
    """A double-double by a double."""
    first = a / n
    product, rest = two_product(first, n)
    return two_sum(first, ((a - product) - rest + a_rest) / n)


@inline
def merge_far_moments(states, r, column, n, mean, square):
    """The same in plain doubles, where squares may leave DOUBLE: then the variance is infinite, as it should be;
    of infinite values there is none."""
    mine, other, total = states[r, column], states[r, column + 1], states[r, column] + n
    delta = mean - other
    if np.isinf(mean) or np.isinf(other):
        delta = np.nan
    states[r, column] = total
    states[r, column + 1] = other * (mine / total) + mean * (n / total)
    states[r, column + 2] = 0.0
    states[r, column + 3] += square + delta * delta * (mine * (n / total))
    states[r, column + 4] = 0.0


@inline
def merge_moments(states, r, column, n, mean, mean_rest, square, square_rest):
    """Chan's merge of (n, mean, sum of squared deviations) in double-double: stable, and its order does not show."""
    mine = states[r, column]
    if mine == 0.0:
        states[r, column], states[r, column + 1], states[r, column + 2] = n, mean, mean_rest
        states[r, column + 3], states[r, column + 4] = square, square_rest
        return
    total = mine + n
    if abs(mean - states[r, column + 1]) > FAR or np.isinf(square) or np.isinf(states[r, column + 3]):
        merge_far_moments(states, r, column, n, mean, square)
        return
    delta, delta_rest = double_add(mean, mean_rest, -states[r, column + 1], -states[r, column + 2])
    step, step_rest = double_product(delta, delta_rest, n, 0.0)
    step, step_rest = double_divide(step, step_rest, total)
    grown, grown_rest = double_product(delta, delta_rest, step, step_rest)
    grown, grown_rest = double_product(grown, grown_rest, mine, 0.0)
    square, square_rest = double_add(square, square_rest, grown, grown_rest)
    states[r, column] = total
    states[r, column + 1], states[r, column + 2] = double_add(
        states[r, column + 1], states[r, column + 2], step, step_rest
    )
    states[r, column + 3], states[r, column + 4] = double_add(
        states[r, column + 3], states[r, column + 4], square, square_rest
    )


@kernel(types.void, rw(F64, 2), I64, ro(I64), I64, I64, ro(I32), ro(F64), ro(F64), ro(U8))
def add_moments(states, column, at, start, stop, rows, value, rest, valid):
    """Count, mean and sum of squared deviations, five words: n, mean (two), squares (two). A value is a
    double and what it lacks of an integer beyond 53 bits (`rest` empty: nothing)."""
    everything, whole = valid.shape[0] == 0, rest.shape[0] == 0
    for i in range(start, stop):
        row = rows[i]
        if everything or valid[row]:
            merge_moments(states, at[i], column, 1.0, value[row], 0.0 if whole else rest[row], 0.0, 0.0)


@kernel(types.void, rw(F64, 2), I64, ro(I64), I64, I64, ro(F64), ro(F64), ro(F64), ro(F64), ro(F64))
def add_moments_partial(states, column, at, start, stop, n, mean, mean_rest, square, square_rest):
    for i in range(start, stop):
        if n[i] != 0.0:
            merge_moments(states, at[i], column, n[i], mean[i], mean_rest[i], square[i], square_rest[i])


@kernel(types.void, ro(F64), rw(I64))
def order_bits(values, bits):
    """Floats as integers in the engine's order: −0.0 becomes 0.0, all NaNs one value above +inf."""
    raw = values.view(np.int64)
    for i in range(values.shape[0]):
        if values[i] != values[i]:
            bits[i] = int64(0x7FF8000000000000)
        elif values[i] == 0.0:
            bits[i] = int64(0)
        else:
            b = raw[i]
            bits[i] = b if b >= 0 else b ^ int64(0x7FFFFFFFFFFFFFFF)


@kernel(types.void, ro(I64), rw(F64))
def from_order_bits(bits, values):
    """The inverse of `order_bits`."""
    raw = values.view(np.int64)
    for i in range(bits.shape[0]):
        b = bits[i]
        raw[i] = b if b >= 0 else b ^ int64(0x7FFFFFFFFFFFFFFF)
