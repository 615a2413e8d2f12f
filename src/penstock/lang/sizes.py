"""Sizes in bytes as people write them: `256KiB`, `2GiB`, `1.5MB`; a letter alone is binary, as in settings of Spark."""

from __future__ import annotations

import re
from collections.abc import Mapping

BINARY = {letter: 1 << 10 * power for power, letter in enumerate("kmgt", 1)}
DECIMAL = {letter: 1000**power for power, letter in enumerate("kmgt", 1)}
BYTES = {"": 1, "b": 1} | {
    unit: scale
    for letter in "kmgt"
    for unit, scale in ((letter, BINARY[letter]), (f"{letter}ib", BINARY[letter]), (f"{letter}b", DECIMAL[letter]))
}
_WRITTEN = re.compile(r"\+?(\d[\d_]*(?:\.\d+)?)\s*([a-z]*)", re.IGNORECASE)


def bytes_of(text: str) -> int | None:
    """The bytes that a text says; None where it says none.

    >>> bytes_of("64KiB"), bytes_of("1.5MB"), bytes_of("2g"), bytes_of("much")
    (65536, 1500000, 2147483648, None)
    """
    return number_of(text, BYTES)


def number_of(text: str, units: Mapping[str, int]) -> int | None:
    """What number and unit make together, if that is whole."""
    match = _WRITTEN.fullmatch(text.strip())
    scale = units.get(match[2].lower()) if match else None
    if match is None or scale is None:
        return None
    number, _, fraction = match[1].partition(".")
    over = 10 ** len(fraction)
    value, rest = divmod(int(number + fraction) * scale, over)
    return None if rest else value
