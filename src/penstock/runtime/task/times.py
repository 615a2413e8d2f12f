"""The times of a chunk: which are usable; the first, least and greatest so far.

A time is not usable if it is NULL or bad, if its window would end beyond 64 bits, or if it is further ahead than the
stream's MAX AHEAD allows.
"""

from __future__ import annotations

import numpy as np

from penstock.kernels.tables.pack import keep_near
from penstock.logical.query import Stream
from penstock.runtime.epoch import Epoch
from penstock.runtime.task.arrow import Ingested

Array = np.ndarray
LEAST, GREATEST = -(1 << 63), (1 << 63) - 1
Faults = list[tuple[str, Array]]  # reasons, and the records that are malformed for each


class Times:
    """Judges the time column of one task. `longest` is the longest window and slide: its end must fit 64 bits.

    Only `MAX AHEAD` looks at the records before: a task first reads the times of its batch that stand before its split.
    """

    def __init__(self, stream: Stream, epoch: Epoch, longest: int) -> None:
        self._stream, self._epoch, self._limit = stream, epoch, GREATEST - longest
        self.greatest: int | None = None
        self.least: int | None = None
        self.first = epoch.first

    def judge(self, column: Ingested, faults: Faults) -> tuple[Array, Array | None]:
        """Times, with a usable one where there is none, and which records have one (None: all).

        Adds to `faults` the records that have none.
        """
        ts, name = column.numbers, self._stream.time
        timely = np.ones(len(ts), bool) if column.bad is None else ~column.bad
        if len(column.valid):
            timely = _only(timely, column.valid.astype(bool), f"{name} is NULL", faults)
        if ts.max() > self._limit or ts.min() < -self._limit:
            inside = (ts <= self._limit) & (ts >= -self._limit)
            timely = _only(timely, inside, f"{name} has a window beyond the calendar", faults)
        if self._stream.ahead is not None:
            near = self._near(ts, timely, self._stream.ahead)
            timely = _only(timely, near, f"{name} is further ahead than MAX AHEAD", faults)
        usable = ts[timely]
        if not len(usable):
            return np.zeros(len(ts), np.int64), timely
        low, high = int(usable.min()), int(usable.max())
        self.greatest = high if self.greatest is None else max(high, self.greatest)
        self.least = low if self.least is None else min(low, self.least)
        if self.first is None:
            self.first = int(usable[0])
        if len(usable) == len(ts):
            return ts, None
        return np.where(timely, ts, usable[0]), timely

    def _near(self, ts: Array, timely: Array, ahead: int) -> Array:
        """Times not too far ahead of the greatest one before them in the stream; where records have no order, of
        the greatest one of the batches before."""
        before = self._epoch.greatest
        if not self._epoch.ordered:
            return np.asarray(ts <= before + ahead) if before is not None else np.ones(len(ts), bool)
        known = [time for time in (before, self.greatest) if time is not None]
        usable = timely.astype(np.uint8)
        keep_near(np.ascontiguousarray(ts), usable, max(known, default=LEAST), ahead)
        return np.asarray(usable.astype(bool) | ~timely)


def _only(timely: Array, good: Array, reason: str, faults: Faults) -> Array:
    """Keep the good ones; those that are not are malformed for this reason."""
    faults.append((reason, timely & ~good))
    kept: Array = timely & good
    return kept
