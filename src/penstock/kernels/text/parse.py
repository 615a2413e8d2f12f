"""Turns spans of text into values: one kernel per type, the same for CSV and JSON, so that both have the same rules.

A span is (first, stop, kind) in `data`, see `kernels.text.index`. `accept` has bit k set where a value may be of kind
k. Any other kind but NOTHING is bad, as is text that is not a value of the type. White space around a value does not
belong to it, but for text. Each kernel writes values and `flag`: MISSING, FINE or BAD.
"""

from __future__ import annotations

import numpy as np
from numba import float64, int64, types, uint64

from penstock.kernels.jit import F64, I32, I64, U8, kernel, part, ro, rw
from penstock.kernels.text.index import NOTHING, SPACE, TAB

MISSING, FINE, BAD, HARD = 0, 1, 2, 3
PLUS, MINUS, DOT, COMMA, COLON, ZERO, NINE = 43, 45, 46, 44, 58, 48, 57
POWERS = np.array([10.0**i for i in range(23)])  # exact in a double
LIMIT = 922337203685477580  # of the digits before the last one of a 64-bit number
EXACT = 1 << 53


@part
def trimmed(data, a, b):
    while a < b and (data[a] == SPACE or data[a] == TAB):
        a += 1
    while b > a and (data[b - 1] == SPACE or data[b - 1] == TAB):
        b -= 1
    return int64(a), int64(b)


@part
def judged(kind, accept):
    """Flag of a span by its kind alone."""
    if kind == NOTHING:
        return MISSING
    return FINE if (accept >> int64(kind)) & 1 else BAD


@part
def entered(data, first, stop, kind, accept):
    """(flag of a span unless it turns out to be fine, the bytes to look at); no bytes where it cannot be."""
    flag = judged(kind, accept)
    if flag != FINE:
        return flag, int64(0), int64(0)
    a, b = trimmed(data, first, stop)
    return BAD, a, b


@part
def after_sign(data, a, b):
    """(whether a minus stands at `a`, the place after a sign, if there is one)."""
    negative = a < b and data[a] == MINUS
    return negative, int64(a + 1 if negative or (a < b and data[a] == PLUS) else a)


@part
def lower(data, at):
    return data[at] | 32


@part
def digits(data, a, b):
    """data[a:b] as a number of digits only, or −1."""
    if a >= b:
        return int64(-1)
    value = int64(0)
    for at in range(a, b):
        c = int64(data[at]) - ZERO
        if c < 0 or c > 9:
            return int64(-1)
        value = value * 10 + c
    return value


@kernel(types.void, ro(U8), ro(I32), ro(I32), ro(U8), I64, I64, I64, rw(I64), rw(U8))
def parse_integers(data, first, stop, kind, accept, least, most, out, flag):
    """A sign and digits, from `least` to `most`."""
    for row in range(first.shape[0]):
        out[row] = 0
        flag[row], a, b = entered(data, first[row], stop[row], kind[row], accept)
        if a == b:
            continue
        negative, a = after_sign(data, a, b)
        if a == b:
            continue
        value, fine = int64(0), True  # counts down: the least number has no positive counterpart
        for at in range(a, b):
            c = int64(data[at]) - ZERO
            if c < 0 or c > 9 or value < -LIMIT or (value == -LIMIT and c > 8):
                fine = False
                break
            value = value * 10 - c
        if not fine or (not negative and value == -LIMIT * 10 - 8):
            continue
        value = value if negative else -value
        if least <= value <= most:
            out[row], flag[row] = value, FINE


@part
def named_number(data, a, b):
    """inf, infinity and nan in any case; 0.0 for anything else."""
    size = b - a
    if size != 3 and size != 8:
        return 0.0
    x, y, z = lower(data, a), lower(data, a + 1), lower(data, a + 2)
    if size == 3 and x == 110 and y == 97 and z == 110:
        return np.nan
    if x == 105 and y == 110 and z == 102:
        if size == 3:
            return np.inf
        if (lower(data, a + 3) == 105 and lower(data, a + 4) == 110 and lower(data, a + 5) == 105
                and lower(data, a + 6) == 116 and lower(data, a + 7) == 121):  # fmt: skip
            return np.inf
    return 0.0


@kernel(types.void, ro(U8), ro(I32), ro(I32), ro(U8), I64, rw(F64), rw(U8))
def parse_doubles(data, first, stop, kind, accept, out, flag):
    """Decimal numbers with or without exponent, inf and nan. HARD ones are fine but left to a slower conversion."""
    for row in range(first.shape[0]):
        out[row] = 0.0
        flag[row], a, b = entered(data, first[row], stop[row], kind[row], accept)
        if a == b:
            continue
        negative, a = after_sign(data, a, b)
        mantissa, exponent, seen, point, at = uint64(0), int64(0), 0, False, a
        exact = True
        while at < b:
            c = data[at]
            if ZERO <= c <= NINE:
                seen += 1
                if mantissa < uint64(EXACT):
                    mantissa = mantissa * uint64(10) + uint64(c - ZERO)
                    exponent -= point
                else:
                    exact = False
            elif c == DOT and not point:
                point = True
            else:
                break
            at += 1
        if seen == 0:
            special = named_number(data, a, b)
            if special != 0.0:
                out[row], flag[row] = -special if negative else special, FINE
            continue
        if at < b:
            if lower(data, at) != 101:
                continue
            minus, at = after_sign(data, at + 1, b)
            if at >= b:
                continue
            power = digits(data, at, min(b, at + 9))
            if power < 0 or (b > at + 9 and digits(data, at + 9, b) < 0):
                continue
            if b > at + 9:
                exact = False
            exponent += -power if minus else power
        if mantissa == 0 and exact:
            value = 0.0
        elif exact and mantissa <= uint64(EXACT) and -22 <= exponent <= 22:
            # Clinger: both factors are exact in a double, so the one rounding is the right one.
            value = float64(mantissa)
            value = value / POWERS[-exponent] if exponent < 0 else value * POWERS[exponent]
        else:
            flag[row] = HARD
            continue
        out[row], flag[row] = -value if negative else value, FINE


@kernel(types.void, ro(U8), ro(I32), ro(I32), ro(U8), I64, rw(U8), rw(U8))
def parse_booleans(data, first, stop, kind, accept, out, flag):
    """true, false, t, f in any case, 1 and 0."""
    for row in range(first.shape[0]):
        out[row] = 0
        flag[row], a, b = entered(data, first[row], stop[row], kind[row], accept)
        if a == b:
            continue
        size, c, answer = b - a, lower(data, a), 2
        if size == 1 and (data[a] == 49 or c == 116):
            answer = 1
        elif size == 1 and (data[a] == 48 or c == 102):
            answer = 0
        elif size == 4 and c == 116 and lower(data, a + 1) == 114 and lower(data, a + 2) == 117:
            answer = 1 if lower(data, a + 3) == 101 else 2
        elif size == 5 and c == 102 and lower(data, a + 1) == 97 and lower(data, a + 2) == 108:
            answer = 0 if lower(data, a + 3) == 115 and lower(data, a + 4) == 101 else 2
        if answer < 2:
            out[row], flag[row] = answer, FINE


@kernel(types.void, ro(U8), ro(I32), ro(I32), ro(U8), I64, I64, rw(I32), rw(U8))
def measure_text(data, first, stop, kind, accept, trim, offsets, flag):
    """Offsets of the text when it is copied together by `copy_text`."""
    total = 0
    offsets[0] = 0
    for row in range(first.shape[0]):
        flag[row] = judged(kind[row], accept)
        if flag[row] == FINE:
            a, b = int64(first[row]), int64(stop[row])
            if trim:
                a, b = trimmed(data, a, b)
            total += b - a
        offsets[row + 1] = total


@kernel(types.void, ro(U8), ro(I32), I64, ro(I32), rw(U8))
def copy_text(data, first, trim, offsets, out):
    for row in range(first.shape[0]):
        a, to = int64(first[row]), int64(offsets[row])
        size = int64(offsets[row + 1]) - to
        if trim and size:
            while data[a] == SPACE or data[a] == TAB:
                a += 1
        for i in range(size):
            out[to + i] = data[a + i]
