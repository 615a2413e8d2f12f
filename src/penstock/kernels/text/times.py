"""Turns spans of text into microseconds since 1970: from ISO 8601, and from numbers of seconds or parts of them.

Spans, `accept` and `flag` are those of `kernels.text.parse`. Digits beyond microseconds are cut off.
"""

from __future__ import annotations

from numba import int64, types

from penstock.kernels.jit import I32, I64, U8, kernel, part, ro, rw
from penstock.kernels.text.index import SPACE
from penstock.kernels.text.parse import (
    COLON,
    COMMA,
    DOT,
    FINE,
    LIMIT,
    MINUS,
    NINE,
    PLUS,
    ZERO,
    after_sign,
    digits,
    entered,
    lower,
)

SECOND, DAY = 1_000_000, 86_400_000_000
NONE = -(1 << 63)  # no time: a number that no time of the years 1 to 9999 has


@part
def days_from_1970(year, month, day):
    """Days of the Gregorian calendar; years are counted from March, so that the leap day is the last."""
    y = year - 1 if month <= 2 else year
    shifted = month + 9 if month <= 2 else month - 3
    return 365 * y + y // 4 - y // 100 + y // 400 + (153 * shifted + 2) // 5 + day - 1 - 719468


@part
def days_of_month(year, month):
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month == 4 or month == 6 or month == 9 or month == 11 else 31


@part
def fraction(data, a, b):
    """Microseconds of the digits after the point, and the place after them; −1 if there is no digit."""
    value, at, count = int64(0), a, 0
    while at < b and ZERO <= data[at] <= NINE:
        if count < 6:
            value = value * 10 + (int64(data[at]) - ZERO)
        count += 1
        at += 1
    for _ in range(count, 6):
        value *= 10
    return (value if count else int64(-1)), at


@part
def zone(data, a, b):
    """Microseconds that a zone is ahead of UTC: nothing, Z, +hh, +hhmm or +hh:mm; NONE if it is none."""
    size = b - a
    if size == 0 or (size == 1 and lower(data, a) == 122):
        return int64(0)
    if data[a] != PLUS and data[a] != MINUS:
        return int64(NONE)
    hours, minutes = digits(data, a + 1, min(a + 3, b)), int64(0)
    if size == 5:
        minutes = digits(data, a + 3, b)
    elif size == 6 and data[a + 3] == COLON:
        minutes = digits(data, a + 4, b)
    elif size != 3:
        return int64(NONE)
    if not 0 <= hours <= 23 or not 0 <= minutes <= 59:
        return int64(NONE)
    ahead = (hours * 60 + minutes) * 60 * SECOND
    return -ahead if data[a] == MINUS else ahead


@part
def iso_time(data, a, b):
    """yyyy-mm-dd, then hh:mm, :ss and a fraction as far as they are there, then a zone; UTC without one."""
    if b - a < 10 or data[a + 4] != MINUS or data[a + 7] != MINUS:
        return int64(NONE)
    year, month, day = digits(data, a, a + 4), digits(data, a + 5, a + 7), digits(data, a + 8, a + 10)
    if year < 1 or not 1 <= month <= 12 or not 1 <= day <= days_of_month(year, month):
        return int64(NONE)
    time = days_from_1970(year, month, day) * DAY
    if b - a == 10:
        return time
    if b - a < 16 or not (data[a + 10] == SPACE or lower(data, a + 10) == 116) or data[a + 13] != COLON:
        return int64(NONE)
    hour, minute, at = digits(data, a + 11, a + 13), digits(data, a + 14, a + 16), a + 16
    second, part = int64(0), int64(0)
    if at < b and data[at] == COLON:
        if b < at + 3:
            return int64(NONE)
        second, at = digits(data, at + 1, at + 3), at + 3
        if at < b and (data[at] == DOT or data[at] == COMMA):
            part, at = fraction(data, at + 1, b)
    ahead = zone(data, at, b)
    if not 0 <= hour <= 23 or not 0 <= minute <= 59 or not 0 <= second <= 59 or part < 0 or ahead == NONE:
        return int64(NONE)
    return time + ((hour * 60 + minute) * 60 + second) * SECOND + part - ahead


@part
def count_time(data, a, b, shift):
    """A number, with fraction and exponent if need be, times 10^shift."""
    negative, a = after_sign(data, a, b)
    at, seen, point, power = a, 0, False, int64(0)
    while at < b and (ZERO <= data[at] <= NINE or (data[at] == DOT and not point)):
        point = point or data[at] == DOT
        seen += data[at] != DOT
        at += 1
    stop = at
    if at < b and lower(data, at) == 101:
        minus, at = after_sign(data, at + 1, b)
        power = digits(data, at, min(b, at + 5))
        if power < 0 or b > at + 5:
            return int64(NONE)
        power = -power if minus else power
        at = b
    if at < b or seen == 0:
        return int64(NONE)
    # The first `whole` digits count; those after them are cut off, missing ones are zeros.
    value, place, before = int64(0), 0, 0
    while a + before < stop and data[a + before] != DOT:
        before += 1
    whole = before + power + shift
    for i in range(a, stop):
        if data[i] != DOT:
            if place < whole:
                if value >= LIMIT:
                    return int64(NONE)
                value = value * 10 + (int64(data[i]) - ZERO)
            place += 1
    while place < whole:
        if value >= LIMIT:
            return int64(NONE)
        value *= 10
        place += 1
        if value == 0:
            break
    return -value if negative else value


@kernel(types.void, ro(U8), ro(I32), ro(I32), ro(U8), I64, I64, I64, rw(I64), rw(U8))
def parse_times(data, first, stop, kind, accept, iso, shift, out, flag):
    """ISO times, or numbers of units of 10^−shift seconds (6 − the unit's digits)."""
    for row in range(first.shape[0]):
        out[row] = 0
        flag[row], a, b = entered(data, first[row], stop[row], kind[row], accept)
        if a == b:
            continue
        time = iso_time(data, a, b) if iso else count_time(data, a, b, shift)
        if time != NONE:
            out[row], flag[row] = time, FINE
