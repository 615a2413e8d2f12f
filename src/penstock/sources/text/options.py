"""WITH options that CSV and JSON sources share, and converters for those of CSV.

`timestamp_format` is one of

| | |
| --- | --- |
| `iso` | ISO 8601: `2026-01-31`, `2026-01-31T10:11`, `2026-01-31 10:11:12.345678+01:00`; UTC without a zone |
| `epoch`, `epoch_ms`, `epoch_us`, `epoch_ns` | seconds (milliseconds, …) since 1970, also with a fraction |
| a pattern with `%` | of strptime, such as `%d/%m/%Y %H:%M:%S`, in UTC |
"""

from __future__ import annotations

from collections.abc import Callable

from penstock.sources.options import Options, integer
from penstock.sources.text.columns import TimeFormat

SHIFTS = {"epoch": 6, "epoch_ms": 3, "epoch_us": 0, "epoch_ns": -3}
LETTERS = {"tab": "\t", "\\t": "\t", "space": " ", "none": ""}


def common_options(given: Options) -> tuple[TimeFormat, int, str]:
    """(how times are written, bytes of the longest record, where to unpack)."""
    times = given.take("timestamp_format", time_format, TimeFormat())
    longest = given.take("longest_record", integer(64, 1 << 28), 1 << 20)
    return times, longest, given.take("cache", str, "")


def time_format(text: str) -> TimeFormat:
    if text == "iso":
        return TimeFormat()
    if text in SHIFTS:
        return TimeFormat(shift=SHIFTS[text])
    # Arrow's strptime ignores zones and does not know fractions: wrong times would be worse than a refusal.
    if "%" in text and not any(mark in text for mark in ("%f", "%z", "%Z", "%s")):
        return TimeFormat(pattern=text)
    raise ValueError(f"one of iso, {', '.join(SHIFTS)}, or a pattern of strptime without %f, %z, %Z and %s")


def letter(text: str) -> int:
    """One ASCII letter as a byte, −1 for none."""
    given = LETTERS.get(text.lower(), text)
    if not given:
        return -1
    if len(given) != 1 or not given.isascii() or given in "\r\n\0":
        raise ValueError("one ASCII character, or tab, space or none")
    return ord(given)


def texts(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def one_of(*choices: str) -> Callable[[str], str]:
    def convert(text: str) -> str:
        if text.lower() not in choices:
            raise ValueError(f"one of {', '.join(choices)}")
        return text.lower()

    return convert
