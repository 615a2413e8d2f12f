"""Stream time for the oracle: which batch a record came in, which times are malformed, what was closed by then.

WM(N)      greatest good ts of batches 0..N, minus the delay
ahead      ts > greatest good ts before it in the stream, plus MAX AHEAD (never the first good one)
closed     a window is closed for a record of batch N when its end <= WM(N-1)

The results of a query are a stream, too: each row comes in the batch that closed its window, at the window's end,
and what is closed by then follows from the watermarks of the declared stream below.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.logical.query import Stream
from penstock.testing.oracle.columns import Flags, Numbers, OracleValues

NOTHING_CLOSED = int(np.iinfo(np.int64).min)
FARTHEST = 1 << 61  # beyond it, windows would leave 64 bits; the oracle does not go there


@dataclass(frozen=True)
class Timeline:
    """Per record: its time (0 where that is not good), batch and WM(N-1); per batch: WM(N), None while unknown.

    `landmark` is the time at which a landmark window's first slide is looked for; None without any good time.
    """

    times: Numbers
    good: Flags
    arrived: Numbers
    closed_until: Numbers
    watermarks: tuple[int | None, ...]
    rows_after: tuple[int, ...]
    landmark: int | None

    @property
    def greatest(self) -> int | None:
        """The greatest good time of the whole stream."""
        return int(self.times[self.good].max()) if self.good.any() else None

    def closing(self, ends: Numbers) -> Numbers:
        """The batch that closes windows with these ends: the first with end <= WM(N), or the last one."""
        return self._first_batch([NOTHING_CLOSED if w is None else w for w in self.watermarks], ends)

    def closing_rows(self, ends: Numbers) -> Numbers:
        """The same for windows that end at a position of the stream."""
        return self._first_batch(self.rows_after, ends)

    def _first_batch(self, reached: Sequence[int], ends: Numbers) -> Numbers:
        batches = np.searchsorted(np.array(reached, np.int64), ends, side="left")
        return np.minimum(batches, len(self.watermarks) - 1).astype(np.int64)


def follow_time(stream: Stream, time: OracleValues, batches: Sequence[int]) -> Timeline:
    """Walk the logged batches in order, as the engine's driver does."""
    if sum(batches) != len(time.array):
        raise ValueError(f"the batches have {sum(batches)} rows, the stream {len(time.array)}")
    times = np.asarray(time.array.fill_null(0)).astype(np.int64)
    good = np.array(time.array.is_valid())
    watermarks: list[int | None] = []
    greatest: int | None = None
    for rows in _ranges(batches):
        if stream.ahead is not None:
            _drop_ahead(times, good, rows, greatest, stream.ahead)
        seen = times[rows][good[rows]]
        if len(seen):
            greatest = int(seen.max()) if greatest is None else max(greatest, int(seen.max()))
        watermarks.append(None if greatest is None or stream.delay is None else greatest - stream.delay)
    arrived = np.repeat(np.arange(len(batches)), np.array(batches, np.int64))
    first = int(times[good][0]) if good.any() else None
    return _timeline(times, good, arrived, tuple(watermarks), tuple(np.cumsum(batches, dtype=np.int64).tolist()), first)


def _drop_ahead(times: Numbers, good: Flags, rows: slice, greatest: int | None, ahead: int) -> None:
    """One record after the other, by the definition."""
    for row in range(rows.start, rows.stop):
        if good[row] and greatest is not None and times[row] > greatest + ahead:
            good[row] = False
        elif good[row]:
            greatest = int(times[row]) if greatest is None else max(greatest, int(times[row]))


def follow_results(times: Numbers, arrived: Numbers, below: Timeline) -> Timeline:
    """A query's results as a stream: `below` is the time of what the query reads."""
    good = np.ones(len(times), np.bool_)
    first = int(times[arrived == arrived.min()].min()) if len(times) else None
    counts = np.bincount(arrived, minlength=len(below.watermarks))
    return _timeline(times, good, arrived, below.watermarks, tuple(np.cumsum(counts).tolist()), first)


def _timeline(
    times: Numbers,
    good: Flags,
    arrived: Numbers,
    watermarks: tuple[int | None, ...],
    rows_after: tuple[int, ...],
    landmark: int | None,
) -> Timeline:
    times = np.where(good, times, 0)
    if len(times) and not -FARTHEST < int(times.min()) <= int(times.max()) < FARTHEST:
        raise ValueError("a time near the ends of 64 bits is beyond the oracle")
    before = np.array([NOTHING_CLOSED, *(NOTHING_CLOSED if w is None else w for w in watermarks)], np.int64)
    return Timeline(times, good, arrived, before[arrived], watermarks, rows_after, landmark)


def _ranges(batches: Sequence[int]) -> Iterator[slice]:
    start = 0
    for count in batches:
        yield slice(start, start + count)
        start += count
