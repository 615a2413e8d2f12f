"""What the driver does besides a batch waits in a burst: merging small segments, planning again, collecting garbage.

Each is done only where the batch has more time left than it took before (`Offset.slack`); where nothing is promised,
always. What must be done some time is forced by whoever asks.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

COMPACTION, PLANNING, GARBAGE = "compaction", "planning", "garbage"
AT_FIRST = 0.3  # seconds that something takes of which nothing is known yet
NEW = 0.5  # part of the newest in what something takes


@dataclass
class Patience:
    """Seconds that each kind of work took lately, in this process."""

    seconds: dict[str, float] = field(default_factory=dict)

    def has_time(self, what: str, slack: float | None) -> bool:
        return slack is None or slack > self.seconds.get(what, AT_FIRST)

    @contextmanager
    def timed(self, what: str) -> Iterator[None]:
        """Around the work itself."""
        began = time.perf_counter()
        yield
        took = time.perf_counter() - began
        self.seconds[what] = (1 - NEW) * self.seconds.get(what, took) + NEW * took
