"""The first batches of a run: what they cost is what they are read for.

Nothing is known yet of this machine and these queries: a record may take a microsecond or a millisecond. So batches are
sized by time. If all that the last one took was for its records, the next one takes `seconds` at most; of cheap records
it has eight times as many. That is so after a batch or two, and a window that ends meanwhile is still in time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from penstock.triage.plan import Queue

ENOUGH = 2  # lessons, after the batch for which workers load what they run
FIRST, FEWEST = 250, 100  # records
GROWTH = 8
SHARE = 0.5  # of the time between a window's readiness and its due time
UNHURRIED = 1.0  # seconds, where nothing is promised
LEAST = 1e-6


@dataclass(frozen=True)
class Lesson:
    """How many records a batch read, and how long its tasks took: an upper bound of what records cost."""

    read: int
    seconds: float


def lesson_rows(last: Lesson | None, seconds: float) -> int:
    """How many records the next one may have."""
    if last is None:
        return FIRST
    return max(FEWEST, int(last.read * min(GROWTH, seconds / max(last.seconds, LEAST))))


def lesson_seconds(queues: Sequence[Queue]) -> float:
    """How long it may take."""
    spare = min((due.due - due.ready for queue in queues for due in queue.dues), default=inf)
    return SHARE * spare if spare < inf else UNHURRIED
