"""Durations: '5 minutes', 1.5 h, '1 hour 30 min' to whole microseconds.

Quoted and bare spellings meet here: the cursor hands over the text either way.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from fractions import Fraction

_SECOND = 1_000_000
_SPELLINGS: dict[str, tuple[int, str]] = {
    "microsecond": (1, "us usec usecs"),
    "millisecond": (1_000, "ms msec msecs"),
    "second": (_SECOND, "s sec secs"),
    "minute": (60 * _SECOND, "m min mins"),
    "hour": (3_600 * _SECOND, "h hr hrs"),
    "day": (86_400 * _SECOND, "d"),
    "week": (7 * 86_400 * _SECOND, "w wk wks"),
}
UNITS: dict[str, int] = {
    word: size for name, (size, short) in _SPELLINGS.items() for word in (name, name + "s", *short.split())
}
_CALENDAR = frozenset({"month", "months", "mon", "quarter", "quarters", "year", "years", "y"})
_PART = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))\s*([a-zA-Z]*)\s*", re.ASCII)
_DIGITS = 40  # more cannot be meant, and Fraction would take its time

# The longest span of time that microseconds in 64 bits can hold.
LONGEST = 2**63 - 1


def parse_duration(text: str) -> int:
    """Microseconds of a duration; a ValueError with a user's sentence where it is none.

    >>> parse_duration("5 minutes"), parse_duration("1 h 30 min"), parse_duration("0.5ms")
    (300000000, 5400000000, 500)
    """
    rest = text.strip()
    total = Fraction(0)
    if not rest:
        raise ValueError("an empty duration")
    while rest:
        part = _PART.match(rest)
        if part is None or len(part.group(1)) > _DIGITS:
            raise ValueError(f"'{text}' is not a duration")
        total += Fraction(part.group(1)) * _unit(part.group(2), text)
        rest = rest[part.end() :]
    if total.denominator != 1:
        raise ValueError(f"'{text}' is not a whole number of microseconds")
    return int(total)


def _unit(word: str, text: str) -> int:
    if not word:
        raise ValueError(f"the duration '{text}' needs a unit")
    if word.lower() in _CALENDAR:
        raise ValueError(f"'{word}' has no fixed length")
    size = UNITS.get(word.lower())
    if size is None:
        near = get_close_matches(word.lower(), UNITS, n=1, cutoff=0.7)
        raise ValueError(f"unknown unit of time '{word}'" + (f", did you mean '{near[0]}'?" if near else ""))
    return size


def format_duration(microseconds: int) -> str:
    """The shortest exact spelling, for messages.

    >>> format_duration(300_000_000), format_duration(1_500_000), format_duration(-1)
    ('5 minutes', '1500 milliseconds', '-1 microsecond')
    """
    for name, (size, _) in reversed(_SPELLINGS.items()):
        if microseconds % size == 0 and microseconds:
            count = microseconds // size
            return f"{count} {name}" if abs(count) == 1 else f"{count} {name}s"
    return "0 seconds"
