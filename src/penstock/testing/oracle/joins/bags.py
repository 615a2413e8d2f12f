"""What a side holds at every instant, from the definition: no panes, no sharing.

Instants of a query are t = offset + k·slide.  A record of batch N counts in those of its instants that are later than
WM_q(N - 1).

| window | holds at t | late |
| --- | --- | --- |
| range r | [t - r, t) | the last instant is at most WM_q(N - 1) |
| landmark | [slide of the stream's first time, t) | it is older than that slide |
| last n rows | the last n by (time, position) of usable times before t | older than an instant evaluated before |

The last n rows are of all records of the stream that are not late and have a usable time, also of those that do not
pass the side's conditions or have another value that does not fit: these take a place and give nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.testing.oracle.columns import Flags, Numbers
from penstock.testing.oracle.joins.spec import LANDMARK, RANGE, JoinSpec, WindowSpec
from penstock.testing.oracle.joins.watermarks import Course, StreamCourse
from penstock.testing.oracle.timeline import NOTHING_CLOSED

FOREVER = 1 << 61


@dataclass(frozen=True)
class Grid:
    """The instants of a query: offset + k·slide."""

    offset: int
    slide: int

    def after(self, times: Numbers) -> Numbers:
        """The least k with an instant later than a time."""
        return np.asarray((times - self.offset) // self.slide + 1, np.int64)

    def until(self, times: Numbers) -> Numbers:
        """The greatest k with an instant not later than a time."""
        return np.asarray((times - self.offset) // self.slide, np.int64)

    def instant(self, numbers: Numbers) -> Numbers:
        return np.asarray(self.offset + numbers * self.slide, np.int64)


@dataclass(frozen=True)
class Stay:
    """Of every record of a side: the first and the last k in which it counts by its time, whether it lies in any
    window, and whether one of these was open when it came.  `start` is where a landmark side starts."""

    window: WindowSpec
    grid: Grid
    course: Course
    first: Numbers
    last: Numbers
    inside: Flags
    open: Flags
    start: int | None = None


def stay(query: JoinSpec, window: WindowSpec, course: Course, closed: Numbers) -> Stay:
    """`closed` is WM_q(N - 1) per record."""
    grid = Grid(query.offset, query.slide)
    times = course.times
    known = np.where(closed == NOTHING_CLOSED, times, closed)
    first = np.maximum(grid.after(times), np.where(closed == NOTHING_CLOSED, grid.after(times), grid.after(known)))
    everywhere = np.ones(len(times), np.bool_)
    if window.kind == RANGE:
        last = grid.until(times + window.size)
        return Stay(window, grid, course, first, last, np.asarray(grid.after(times) <= last), np.asarray(first <= last))
    last = np.full(len(times), FOREVER, np.int64)
    if window.kind == LANDMARK:
        start = 0 if course.first is None else course.first // query.slide * query.slide
        return Stay(window, grid, course, first, last, everywhere, np.asarray(times >= start), start)
    evaluated = grid.instant(grid.until(known))  # the last instant before this batch
    late = (closed != NOTHING_CLOSED) & (times < evaluated)
    return Stay(window, grid, course, grid.after(times), last, everywhere, np.asarray(~late))


def candidates(stays: list[Stay], passed: list[Flags], asked: list[Stay]) -> Numbers:
    """Every k at which all sides may hold something; what subqueries ask need not."""
    ranged = [np.unique(_pairs(s, p)[1]) for s, p in zip(stays, passed, strict=True) if s.window.kind == RANGE]
    if ranged:
        common = ranged[0]
        for other in ranged[1:]:
            common = np.intersect1d(common, other)
        return common
    greatest = [s.course.greatest for s in stays]
    firsts = [s.first[p] for s, p in zip(stays, passed, strict=True)]
    if any(one is None for one in greatest) or not all(len(first) for first in firsts):
        return np.empty(0, np.int64)
    slide = stays[0].grid.slide
    greatest += [s.course.greatest for s in asked]
    last = max(one for one in greatest if one is not None) // slide  # its slide ends at (last + 1)·slide
    marks = [mark for s in stays if isinstance(s.course, StreamCourse) for mark in s.course.watermarks[-1:]]
    # By the clock of a live stream more may be closed than its records came to.
    last = max(last, *(mark // slide - 1 for mark in marks if mark is not None), last)
    return np.arange(max(int(first.min()) for first in firsts), last + 2, dtype=np.int64)


def bag(stay: Stay, passed: Flags, numbers: Numbers) -> tuple[Numbers, Numbers]:
    """(record, k) of every record that passed, for these k (ascending)."""
    if stay.window.kind == RANGE:
        rows, found = _pairs(stay, passed)
        kept = np.isin(found, numbers)
        return rows[kept], found[kept]
    if stay.window.kind == LANDMARK:
        held = [(k, np.flatnonzero(passed & (stay.first <= k))) for k in numbers.tolist()]
    else:
        held = [(k, _last_rows(stay, passed, k)) for k in numbers.tolist()]
    rows = np.concatenate([np.empty(0, np.int64), *(rows for _, rows in held)]).astype(np.int64)
    return rows, np.repeat(numbers, [len(rows) for _, rows in held])


def _pairs(stay: Stay, passed: Flags) -> tuple[Numbers, Numbers]:
    rows = np.flatnonzero(passed)
    counts = np.maximum(stay.last[rows] - stay.first[rows] + 1, 0)
    before = np.repeat(np.cumsum(counts) - counts, counts)
    steps = np.arange(int(counts.sum()), dtype=np.int64) - before
    return np.repeat(rows, counts).astype(np.int64), np.repeat(stay.first[rows], counts) + steps


def _last_rows(stay: Stay, passed: Flags, k: int) -> Numbers:
    """Of the last n records before instant k, those that passed."""
    times = stay.course.times
    before = np.flatnonzero(stay.course.good & stay.open & (times < stay.grid.offset + k * stay.grid.slide))
    order = np.lexsort((before, times[before]))
    newest = before[order][-stay.window.size :]
    return np.asarray(newest[passed[newest]], np.int64)
