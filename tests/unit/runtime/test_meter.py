"""Processor time by part: each nanosecond counts once, for the innermost part. Times are those of a made clock."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from penstock.runtime import meter
from penstock.runtime.meter import FINISH, MERGE, ROLL, Meter


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Goes on by one at each reading, and by what is added."""
    now = [0]

    def readings() -> Iterator[int]:
        while True:
            now[0] += 1
            yield now[0]

    found = readings()
    monkeypatch.setattr(meter, "thread_time_ns", lambda: next(found))
    return now


def test_a_part_within_another_counts_for_itself(clock: list[int]) -> None:
    one = Meter()
    with one.part("r", ROLL):
        clock[0] += 10
        with one.part("r", MERGE):
            clock[0] += 100
        clock[0] += 1000
    clock[0] += 10_000  # in no part
    with one.part("s", FINISH):
        clock[0] += 5
    assert one.work() == {"r": {ROLL: 1012, MERGE: 101}, "s": {FINISH: 6}}


def test_a_part_that_fails_has_ended(clock: list[int]) -> None:
    one = Meter()
    with pytest.raises(ValueError, match="no"), one.part("r", ROLL), one.part("r", MERGE):
        raise ValueError("no")
    clock[0] += 1000
    with one.part("r", FINISH):
        pass
    assert one.work() == {"r": {MERGE: 1, ROLL: 2, FINISH: 1}}


def test_numbers_are_added_up() -> None:
    one = Meter()
    one.count("r", merged=3, merges=1)
    one.count("r", merged=4)
    assert one.work() == {"r": {"merged": 7, "merges": 1}}
