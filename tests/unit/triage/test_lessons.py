"""The first batches of a run are sized by time, whatever a record costs."""

from __future__ import annotations

from math import inf

import pytest

from penstock.triage.lessons import FEWEST, FIRST, Lesson, lesson_rows, lesson_seconds
from penstock.triage.scheduler import Due, Queue


@pytest.mark.parametrize("full", [1e-7, 1e-5, 3e-4, 1e-3, 3e-3])
@pytest.mark.parametrize("constant", [0.0, 0.1, 0.3])
def test_no_lesson_takes_longer_than_it_may(full: float, constant: float) -> None:
    last, sizes = None, []
    for _ in range(4):
        sizes.append(lesson_rows(last, 1.0))
        last = Lesson(sizes[-1], constant + full * sizes[-1])
        assert last.seconds - constant <= 1.0
    assert sizes[0] == FIRST
    assert sizes[1] == 8 * FIRST or full >= 3e-4 or constant > 0.1


def test_a_lesson_has_a_few_records_at_least() -> None:
    assert lesson_rows(Lesson(FIRST, 60.0), 1.0) == FEWEST
    assert lesson_rows(Lesson(FIRST, 0.0), 1.0) == 8 * FIRST


def test_the_tightest_promise_says_how_long_a_lesson_is() -> None:
    queues = [
        Queue("s", 0, 9, 1.0, (Due(9, 10.0, 12.0), Due(9, 20.0, inf))),
        Queue("t", 0, 9, 1.0, (Due(9, 5.0, 9.0),)),
    ]
    assert lesson_seconds(queues) == 1.0
    assert lesson_seconds(queues[1:]) == 2.0
    assert lesson_seconds([]) == lesson_seconds([Queue("s", 0, 9, 1.0, (Due(9, 10.0, inf),))]) == 1.0
