"""Which windows a record counts in, straight from the definition of windows; the oracle's own, without panes.

| window | number k is | closed for a record of batch N |
| --- | --- | --- |
| of time | [k·slide, k·slide + range) | end <= WM(N-1) |
| of rows | the same over positions in the stream, from 0; every record has one | never |
| landmark | [first, (k + 1)·slide), up to the window of the stream's greatest time | end <= WM(N-1) |

A record in no window at all (slide > range) is *outside*; one whose windows are all closed counts in none.  For a
query that was added later (`Since`), windows that began before it do not exist.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from penstock.logical.window import ROWS, Window
from penstock.testing.oracle.columns import Flags, Numbers
from penstock.testing.oracle.timeline import NOTHING_CLOSED, Timeline


class Since(NamedTuple):
    """When a query was added: only windows that start after `after` (of rows: at `first_row` or later) exist for it,
    and only records of batches from `first_batch` on."""

    after: int | None
    first_row: int
    first_batch: int


@dataclass(frozen=True)
class Membership:
    """Per record the first and the last window it counts in, whether it lies in any window, and in one that is open.

    (Of landmark windows the last open one may be none that is ever emitted: over results of rows windows.)
    """

    window: Window
    timeline: Timeline
    first: Numbers
    last: Numbers
    inside: Flags
    counted: Flags
    origin: int = 0  # where landmark windows start

    def pairs(self, chosen: Flags) -> tuple[Numbers, Numbers]:
        """(record, window) of every chosen record and every window it counts in."""
        rows = np.flatnonzero(chosen & self.counted)
        counts = np.maximum(self.last[rows] - self.first[rows] + 1, 0)
        before = np.repeat(np.cumsum(counts) - counts, counts)
        steps = np.arange(int(counts.sum()), dtype=np.int64) - before
        return np.repeat(rows, counts).astype(np.int64), np.repeat(self.first[rows], counts) + steps

    def bounds(self, windows: Numbers) -> tuple[Numbers, Numbers]:
        """window_start and window_end: of rows windows the least and greatest good time of all their records."""
        if self.window.axis == ROWS:
            return self._times_of_rows(windows)
        if self.window.range is None:
            return np.full(len(windows), self.origin, np.int64), (windows + 1) * self.window.slide
        return windows * self.window.slide, windows * self.window.slide + self.window.range

    def closing(self, windows: Numbers) -> Numbers:
        """The batch in which each window closes."""
        if self.window.axis == ROWS:
            return self.timeline.closing_rows(windows * self.window.slide + (self.window.range or 0))
        return self.timeline.closing(self.bounds(windows)[1])

    def _times_of_rows(self, windows: Numbers) -> tuple[Numbers, Numbers]:
        size, slide = self.window.range or 0, self.window.slide
        numbers, places = np.unique(windows, return_inverse=True)
        found = np.zeros((len(numbers), 2), np.int64)
        for i, number in enumerate(numbers.tolist()):
            rows = slice(max(0, number * slide), number * slide + size)
            times = self.timeline.times[rows][self.timeline.good[rows]]
            found[i] = times.min(), times.max()
        return found[places, 0], found[places, 1]


def assign(window: Window, timeline: Timeline, since: Since | None = None) -> Membership:
    """The windows of every record, whatever its values."""
    if window.range is None:
        return _landmark(window, timeline, since)
    if window.axis == ROWS:
        return _of_rows(window, window.range, timeline, since)
    return _of_time(window, window.range, timeline, since)


def _of_time(window: Window, size: int, timeline: Timeline, since: Since | None) -> Membership:
    first, last = _holding(timeline.times, size, window.slide)
    closed = timeline.closed_until
    # The least k with k·slide + range > closed.
    still_open = np.where(closed == NOTHING_CLOSED, first, (np.maximum(closed, -(1 << 62)) - size) // window.slide + 1)
    begun = np.maximum(first, still_open)
    if since is not None and since.after is not None:
        begun = np.maximum(begun, since.after // window.slide + 1)
    return Membership(window, timeline, begun, last, np.asarray(first <= last), np.asarray(begun <= last))


def _of_rows(window: Window, size: int, timeline: Timeline, since: Since | None) -> Membership:
    first, last = _holding(np.arange(len(timeline.times), dtype=np.int64), size, window.slide)
    begun = first if since is None else np.maximum(first, -(-since.first_row // window.slide))
    return Membership(window, timeline, begun, last, np.asarray(first <= last), np.asarray(begun <= last))


def _holding(places: Numbers, size: int, slide: int) -> tuple[Numbers, Numbers]:
    """The least k with k·slide + size > place, the greatest with k·slide <= place."""
    return (places - size) // slide + 1, places // slide


def _landmark(window: Window, timeline: Timeline, since: Since | None) -> Membership:
    slide, times = window.slide, timeline.times
    inside = np.ones(len(times), np.bool_)
    if timeline.landmark is None or timeline.greatest is None:
        return Membership(window, timeline, times + 1, times, inside, ~inside)
    origin = timeline.landmark // slide * slide
    if since is not None and since.after is not None:
        origin = (since.after // slide + 1) * slide
    last = timeline.greatest // slide
    final = timeline.watermarks[-1]
    if final is not None:  # over results of a query the watermark may have gone further than they did
        last = max(last, final // slide - 1)
    # The least k with (k + 1)·slide > time, and with (k + 1)·slide > closed.
    begun = np.maximum(times, np.maximum(timeline.closed_until, -(1 << 62))) // slide
    lasts = np.full(len(times), last, np.int64)
    return Membership(window, timeline, begun, lasts, inside, np.asarray(times >= origin), origin)
