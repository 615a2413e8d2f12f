"""Times as dates and hours: parts of a time, and the beginning of its hour, day, week or year. All in UTC.

Times are microseconds since 1970; numpy's calendar is the proleptic Gregorian one.
"""

from __future__ import annotations

import numpy as np

Array = np.ndarray
SECOND = 1_000_000
_FIXED = {"second": SECOND, "minute": 60 * SECOND, "hour": 3_600 * SECOND, "day": 86_400 * SECOND}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_THURSDAY = 3  # 1970 began with one: days since its week's Monday
PARTS = frozenset({"year", "month", "day", "hour", "minute", "second", "epoch"})


def part_of(part: str, times: Array) -> Array:
    """Year, month, day, hour, minute or second as a number; `epoch` is all of the time in seconds."""
    match part:
        case "epoch":
            return np.asarray(np.true_divide(times, SECOND))
        case "second" | "minute":
            return np.asarray(times // _FIXED[part] % 60)
        case "hour":
            return np.asarray(times // _FIXED[part] % 24)
    months = _months(times)
    if part == "year":
        return months // 12 + 1970
    if part == "month":
        return months % 12 + 1
    return np.asarray(times // _FIXED["day"] - _first_day(months) + 1)


def truncate(unit: str, times: Array) -> Array:
    """The beginning of the unit that a time lies in; weeks begin on Monday."""
    if unit in _FIXED:
        return np.asarray(times // _FIXED[unit] * _FIXED[unit])
    if unit == "week":
        days = times // _FIXED["day"]
        return np.asarray((days - (days + _THURSDAY) % 7) * _FIXED["day"])
    months = _months(times)
    return _first_day(months - months % _MONTHS[unit]) * _FIXED["day"]


def moment(year: Array, month: Array, day: Array) -> tuple[Array, Array]:
    """Days since 1970 of a date, and which dates there are."""
    months = (year - 1970) * 12 + month - 1
    first, last = _first_day(months), _first_day(months + 1)
    exists = (month >= 1) & (month <= 12) & (day >= 1) & (day <= last - first)
    return first + day - 1, exists


def _months(times: Array) -> Array:
    """Months since January 1970."""
    days = (times // _FIXED["day"]).astype("datetime64[D]")
    return days.astype("datetime64[M]").astype(np.int64)


def _first_day(months: Array) -> Array:
    """Days from 1970 to the first of a month."""
    return months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
