"""The times of a chunk: which are usable; the first, least and greatest so far.

A time is not usable if it is NULL or bad, if it has a window that does not lie in the years 1 to 9999, or if it is
further ahead than the stream's MAX AHEAD allows. Files could hold other years, but neither Spark, nor Python, nor the
readers of text could show the ends of such windows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from penstock.kernels.tables.pack import keep_near
from penstock.logical.query import Stream
from penstock.logical.window import Window
from penstock.runtime.epoch import Epoch
from penstock.runtime.task.arrow import Ingested

Array = np.ndarray
LEAST = -(1 << 63)
FIRST, LAST = -62_135_596_800_000_000, 253_402_300_799_999_999  # of the years 1 to 9999
Faults = list[tuple[str, Array]]  # reasons, and the records that are malformed for each


class Times:
    """Judges the time column of one task. `windows` are those of time that its queries have.

    Only `MAX AHEAD` looks at the records before: a task first reads the times of its batch that stand before its split.
    Where only picks are read, the stream's index has told what came before each.
    """

    def __init__(self, stream: Stream, epoch: Epoch, windows: Sequence[Window]) -> None:
        self._stream, self._epoch = stream, epoch
        self._low = max((first_time(window) for window in windows), default=FIRST)
        self._high = min((last_time(window) for window in windows), default=LAST)
        self.greatest: int | None = None
        self.least: int | None = None
        self.first = epoch.first
        self._judged = 0

    def judge(self, column: Ingested, faults: Faults) -> tuple[Array, Array | None]:
        """Times, with a usable one where there is none, and which records have one (None: all).

        Adds to `faults` the records that have none.
        """
        ts, name = column.numbers, self._stream.time
        timely = np.ones(len(ts), bool) if column.bad is None else ~column.bad
        if len(column.valid):
            timely = _only(timely, column.valid.astype(bool), f"{name} is NULL", faults)
        if ts.max() > self._high or ts.min() < self._low:
            inside = (ts <= self._high) & (ts >= self._low)
            timely = _only(timely, inside, f"{name} has a window outside the years 1 to 9999", faults)
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
        if self._epoch.before is not None:
            return _within(ts, self._next(self._epoch.before, len(ts)), ahead)
        before = self._epoch.greatest
        if not self._epoch.ordered:
            return np.asarray(ts <= before + ahead) if before is not None else np.ones(len(ts), bool)
        known = [time for time in (before, self.greatest) if time is not None]
        usable = timely.astype(np.uint8)
        keep_near(np.ascontiguousarray(ts), usable, max(known, default=LEAST), ahead)
        return np.asarray(usable.astype(bool) | ~timely)

    def _next(self, before: Array, rows: int) -> Array:
        self._judged += rows
        return before[self._judged - rows : self._judged]


def _within(ts: Array, before: Array, ahead: int) -> Array:
    """Times not too far ahead of what came before each; of the first nothing did."""
    most = np.iinfo(np.int64).max
    near: Array = ts <= np.where((before == LEAST) | (before > most - ahead), most, before + ahead)
    return near


def first_time(window: Window) -> int:
    """The first time all of whose windows begin in the year 1 or later.

    >>> first_time(Window(86_400_000_000, 86_400_000_000)) == FIRST
    True
    """
    return (-(-FIRST // window.slide) - 1) * window.slide + window.length


def last_time(window: Window) -> int:
    """The last time all of whose windows end in the year 9999 or before.

    >>> last_time(Window(86_400_000_000, 86_400_000_000)) == LAST - 86_400_000_000
    True
    """
    return ((LAST - window.length) // window.slide + 1) * window.slide - 1


def _only(timely: Array, good: Array, reason: str, faults: Faults) -> Array:
    """Keep the good ones; those that are not are malformed for this reason."""
    faults.append((reason, timely & ~good))
    kept: Array = timely & good
    return kept
