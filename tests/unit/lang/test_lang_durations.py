"""Durations in every spelling the language knows."""

from __future__ import annotations

import doctest

import pytest

from penstock.lang import durations
from penstock.lang.durations import format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("5 minutes", 300_000_000),
        ("5 MINUTES", 300_000_000),
        ("1 minute", 60_000_000),
        ("5min", 300_000_000),
        ("30 sec", 30_000_000),
        ("30s", 30_000_000),
        ("500 milliseconds", 500_000),
        ("500 ms", 500_000),
        ("7us", 7),
        ("7 microseconds", 7),
        ("2h", 7_200_000_000),
        ("2 hrs", 7_200_000_000),
        ("1 day", 86_400_000_000),
        ("2 weeks", 1_209_600_000_000),
        ("1.5 seconds", 1_500_000),
        (".5 s", 500_000),
        ("1 hour 30 minutes", 5_400_000_000),
        ("  1  hour30min ", 5_400_000_000),
        ("0 s", 0),
        ("-5 seconds", -5_000_000),
        ("0.000001 s", 1),
    ],
)
def test_parse(text: str, microseconds: int) -> None:
    assert parse_duration(text) == microseconds


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "an empty duration"),
        ("   ", "an empty duration"),
        ("minutes", "'minutes' is not a duration"),
        ("5", "the duration '5' needs a unit"),
        ("5 minuts", "unknown unit of time 'minuts', did you mean 'minutes'?"),
        ("5 qqq", "unknown unit of time 'qqq'"),
        ("1 month", "'month' has no fixed length"),
        ("0.1 us", "'0.1 us' is not a whole number of microseconds"),
        ("5 minutes!", "'5 minutes!' is not a duration"),
        ("9" * 5000 + " s", "is not a duration"),
        ("٣ s", "is not a duration"),
    ],
)
def test_refuse(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=r"duration|unit|length|whole") as caught:
        parse_duration(text)
    assert problem in str(caught.value)


def test_format_reads_back() -> None:
    for microseconds in (1, 999, 1_000, 1_500_000, 60_000_000, 90_000_000, 86_400_000_000, 604_800_000_000, -5_000_000):
        assert parse_duration(format_duration(microseconds)) == microseconds
    assert format_duration(0) == "0 seconds"


def test_doctests() -> None:
    assert doctest.testmod(durations).failed == 0
