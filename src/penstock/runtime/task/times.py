"""The times of a chunk: which are usable, the greatest and the first so far."""

from __future__ import annotations

import numpy as np

from penstock.kernels.tables.pack import keep_near
from penstock.logical.query import Stream
from penstock.runtime.epoch import Epoch
from penstock.runtime.task.columns import Ingested
from penstock.runtime.task.selection import Ledger

Array = np.ndarray
LEAST, GREATEST = -(1 << 63), (1 << 63) - 1


class Times:
    """Judges the time column of one task. `longest` is the longest window and slide: its end must fit 64 bits.

    Only `MAX AHEAD` looks at the tuples before: a task reads the times of its batch that stand before its split first.
    """

    def __init__(self, stream: Stream, epoch: Epoch, longest: int, ledger: Ledger) -> None:
        self._stream, self._epoch, self._ledger = stream, epoch, ledger
        self.longest, self._limit = longest, GREATEST - longest
        self.greatest: int | None = None
        self.least: int | None = None
        self.first = epoch.first

    def judge(self, column: Ingested, row: int) -> tuple[Array, Array | None]:
        """Times, with a usable one where there is none, and which tuples have one (None: all).

        `row` is the position of the chunk's first record, for the places of malformed ones.
        """
        ts, name = column.numbers, self._stream.time
        timely = np.ones(len(ts), bool) if column.bad is None else ~column.bad
        if len(column.valid):
            timely = self._only(timely, column.valid.astype(bool), f"{name} is NULL", row)
        if ts.max() > self._limit or ts.min() < -self._limit:
            inside = (ts <= self._limit) & (ts >= -self._limit)
            timely = self._only(timely, inside, f"{name} has a window beyond the calendar", row)
        if self._stream.ahead is not None:
            near = self._near(ts, timely, self._stream.ahead)
            timely = self._only(timely, near, f"{name} is further ahead than MAX AHEAD", row)
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
        """Times not too far ahead of the greatest one before them in the stream; where tuples have no order, of the
        greatest one of the batches before."""
        before = self._epoch.greatest
        if not self._epoch.ordered:
            return np.asarray(ts <= before + ahead) if before is not None else np.ones(len(ts), bool)
        known = [time for time in (before, self.greatest) if time is not None]
        usable = timely.astype(np.uint8)
        keep_near(np.ascontiguousarray(ts), usable, max(known, default=LEAST), ahead)
        return np.asarray(usable.astype(bool) | ~timely)

    def _only(self, timely: Array, good: Array, reason: str, row: int) -> Array:
        """Keep the good ones; those that are not are malformed for this reason."""
        self._ledger.blame(reason, timely & ~good, row)
        kept: Array = timely & good
        return kept
