"""Stream time for the oracle: which batch a tuple came in, which times are malformed, what was closed by then.

WM(N)      greatest good ts of batches 0..N, minus the delay
ahead      in batch N: ts > greatest good ts of batches 0..N-1, plus MAX AHEAD (never in the first such batch)
closed     a window is closed for a tuple of batch N when its end <= WM(N-1)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.logical.query import Stream
from penstock.testing.columns import Flags, Numbers, Values

NOTHING_CLOSED = int(np.iinfo(np.int64).min)


@dataclass(frozen=True)
class Timeline:
    """Per tuple: its time, whether the time is good, and WM(N-1); per batch: WM(N), None while unknown."""

    times: Numbers
    good: Flags
    closed_until: Numbers
    watermarks: tuple[int | None, ...]

    def window_numbers(self, size: int) -> Numbers:
        return np.floor_divide(self.times, size)

    def late(self, size: int) -> Flags:
        ends = (self.window_numbers(size) + 1) * size
        return self.good & (ends <= self.closed_until)


def follow_time(stream: Stream, time: Values, batches: Sequence[int]) -> Timeline:
    """Walk the logged batches in order, as the engine's driver does."""
    if sum(batches) != len(time.array):
        raise ValueError(f"the batches have {sum(batches)} rows, the stream {len(time.array)}")
    times = np.asarray(time.array.fill_null(0)).astype(np.int64)
    good = np.array(time.array.is_valid())
    closed_until = np.full(len(times), NOTHING_CLOSED, np.int64)
    watermarks: list[int | None] = []
    greatest: int | None = None
    for rows in _ranges(batches):
        if watermarks and (watermark := watermarks[-1]) is not None:
            closed_until[rows] = watermark
        if greatest is not None and stream.ahead is not None:
            good[rows] &= times[rows] <= greatest + stream.ahead
        seen = times[rows][good[rows]]
        if len(seen):
            greatest = int(seen.max()) if greatest is None else max(greatest, int(seen.max()))
        watermarks.append(None if greatest is None or stream.delay is None else greatest - stream.delay)
    return Timeline(times, good, closed_until, tuple(watermarks))


def _ranges(batches: Sequence[int]) -> Iterator[slice]:
    start = 0
    for count in batches:
        yield slice(start, start + count)
        start += count
