"""The account of windows on its way: counted by merge tasks, added up by the driver, kept by `state.windows`.

Every group carries the number of its records. So the exact records of a window are the sum over its groups, before
HAVING and LIMIT. Rows are those that the query emits. A large window is merged in several items: their counts are
added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.kernels.numbering import runs_of
from penstock.runtime.merge.estimates.picks import NO_PICKS, WindowPicks
from penstock.state import rings
from penstock.state.protocol import WindowCounts
from penstock.state.windows import fresh

Array = np.ndarray
SPARSE = 4  # windows in a range for each count: beyond it they are sorted, not looked up


@dataclass(frozen=True)
class Tally:
    """Windows of an item, ascending: start and end in microseconds, number of result rows, of records that were read
    and, about, of those that a burst left unread."""

    windows: Array
    starts: Array
    ends: Array
    rows: Array
    exact: Array
    triaged: Array

    def report(self, query: str, least: int) -> WindowCounts:
        """For the driver: windows from `least` on."""
        kept = self.windows >= least
        columns = (self.windows, self.starts, self.ends, self.rows, self.exact)
        numbers, starts, ends, rows, exact = (tuple(column[kept].tolist()) for column in columns)
        triaged = tuple(self.triaged[kept].tolist()) if self.triaged.any() else ()
        return WindowCounts(query, numbers, starts, ends, rows, exact, len(kept), triaged)


def tally(
    exact: Sequence[tuple[Array, Array]],
    emitted: Array,
    bounds: Callable[[Array], tuple[Array, Array]],
    picks: WindowPicks = NO_PICKS,
    runs: Array | None = None,
) -> Tally:
    """From `per_window` of the groups of each pass, the window of every result row (and its runs, if known), where
    windows begin and end, and their picks."""
    windows, counts = exact[0]
    if len(exact) > 1:
        windows, counts = per_window(*(np.concatenate(parts) for parts in zip(*exact, strict=True)))
    if len(windows) == 1:
        rows = np.array([len(emitted)])
    else:
        rows = np.zeros(len(windows), np.int64)
        begins = runs_of(emitted) if runs is None else runs
        np.add.at(rows, np.searchsorted(windows, emitted[begins]), np.diff(begins, append=len(emitted)))
    return Tally(windows, *bounds(windows), rows, counts, picks.triaged(windows))


def per_window(windows: Array, amounts: Array, runs: Array | None = None) -> tuple[Array, Array]:
    """The windows that occur, ascending, and the sum of the (positive) amounts of each; with `runs_of` the windows, if
    that is known."""
    begins = runs_of(windows) if runs is None else runs
    numbers = windows[begins]
    if ascending(numbers):  # as groups come by cell
        return numbers, np.add.reduceat(amounts, begins) if len(begins) else np.empty(0, np.int64)
    numbers, at = window_codes(windows)
    sums = np.zeros(len(numbers), np.int64)
    np.add.at(sums, at, amounts)
    return numbers, sums


def window_codes(windows: Array, runs: Array | None = None) -> tuple[Array, Array]:
    """The windows that occur, ascending, and the place of each one's window among them (int32)."""
    begins = runs_of(windows) if runs is None else runs
    numbers = windows[begins]
    if len(numbers) == 1:
        return numbers, np.zeros(len(windows), np.int32)
    if not ascending(numbers):
        low, high = int(numbers.min()), int(numbers.max())
        if high - low >= SPARSE * len(numbers):
            numbers, places = np.unique(numbers, return_inverse=True)
        else:
            there = np.zeros(high - low + 1, bool)
            there[numbers - low] = True
            places = (np.cumsum(there) - 1)[numbers - low]
            numbers = np.flatnonzero(there) + low
    else:
        places = np.arange(len(numbers))
    return numbers, np.repeat(places.astype(np.int32), np.diff(begins, append=len(windows)))


def ascending(numbers: Array) -> bool:
    return bool((numbers[1:] > numbers[:-1]).all())


def least_kept(windows: Array) -> int:
    """The first of the closing windows that a ring has room for."""
    return int(windows[-rings.CAPACITY :][0])


def gathered(windows: Array, reports: Iterable[WindowCounts]) -> Array:
    """Records of the newest of these closing windows, from what tasks reported of them."""
    records = fresh(windows[-rings.CAPACITY :])
    for report in reports:
        at = np.searchsorted(records["window"], report.windows)
        records["start"][at], records["end"][at] = report.starts, report.ends
        records["rows"][at] += np.array(report.rows, np.int64)
        records["exact"][at] += np.array(report.exact, np.int64)
        if report.triaged:  # of whole windows, whatever part of one a task has
            records["triaged"][at] = report.triaged
    return records
