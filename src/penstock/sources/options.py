"""Checks the WITH options of a source; messages list what is possible.

options = Options("generate:zipf", {"rows": "1000"})
rows = options.take("rows", integer(0, 10**12), 1_000_000)
options.require_all_taken()
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from penstock.errors import SourceError

Value = TypeVar("Value")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Options:
    """The options given for `source`; what has been taken is what the source knows."""

    def __init__(self, source: str, given: Mapping[str, str]) -> None:
        self.source = source
        self.given = {name.lower(): str(text) for name, text in given.items()}
        self.known: list[str] = []

    def take(self, name: str, convert: Callable[[str], Value], default: Value) -> Value:
        self.known.append(name)
        text = self.given.get(name)
        if text is None:
            return default
        try:
            return convert(text)
        except ValueError as error:
            raise SourceError(f"option '{name}' of {self.source} is '{text}'", f"it must be {error}") from None

    def take_named(self, prefix: str) -> dict[str, str]:
        """All options `prefix` + NAME, by NAME."""
        found = {name.removeprefix(prefix): text for name, text in self.given.items() if name.startswith(prefix)}
        self.known += [prefix + name for name in found] or [f"{prefix}NAME"]
        return found

    def require_all_taken(self) -> None:
        unknown = sorted(set(self.given) - set(self.known))
        if unknown:
            raise SourceError(
                f"unknown option '{unknown[0]}' of {self.source}", f"its options are {', '.join(sorted(self.known))}"
            )


def integer(low: int, high: int) -> Callable[[str], int]:
    """Converter of `1000000`, `1_000_000` or `1e6`."""

    def convert(text: str) -> int:
        try:
            value = float(text) if "e" in text.lower() else int(text)
            whole = int(value)
        except (ValueError, OverflowError):
            whole, value = low - 1, 0
        if whole != value or not low <= whole <= high:
            raise ValueError(f"a whole number from {low} to {high}")
        return whole

    return convert


def integers(low: int, high: int) -> Callable[[str], tuple[int, ...]]:
    """Converter of one number, or several with commas between."""
    one = integer(low, high)

    def convert(text: str) -> tuple[int, ...]:
        return tuple(one(part.strip()) for part in text.split(","))

    return convert


def number(low: float, high: float) -> Callable[[str], float]:
    def convert(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if not low <= value <= high:
            raise ValueError(f"a number from {low:g} to {high:g}")
        return value

    return convert


def moment(text: str) -> int:
    """Microseconds since 1970 of an ISO time; without a zone it is UTC."""
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError("an ISO time such as 2026-01-01T00:00:00Z") from None
    aware = parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
    return (aware - EPOCH) // timedelta(microseconds=1)
