"""The account of windows on its way: counted by merge tasks, added up by the driver, kept by `state.windows`.

Every group carries the number of its tuples, so a window's exact tuples are the sum over its groups, before HAVING and
LIMIT. Rows are those that the query emits. A large window is merged in several items: their counts are added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.state import windows as rings

Array = np.ndarray
SPARSE = 4  # windows in a range for each count: beyond it they are sorted, not looked up


@dataclass(frozen=True)
class Tally:
    """Windows of an item, ascending: start and end in microseconds, number of result rows and of exact tuples."""

    windows: Array
    starts: Array
    ends: Array
    rows: Array
    exact: Array

    def report(self, least: int) -> list[list[int]]:
        """For the driver: windows from `least` on, in columns."""
        kept = self.windows >= least
        return [column[kept].tolist() for column in (self.windows, self.starts, self.ends, self.rows, self.exact)]


def tally(
    exact: Sequence[tuple[Array, Array]], emitted: Array, bounds: Callable[[Array], tuple[Array, Array]]
) -> Tally:
    """From `per_window` of the groups of each pass, the window of every result row, and where windows begin and end."""
    windows, counts = exact[0]
    if len(exact) > 1:
        windows, counts = per_window(*(np.concatenate(parts) for parts in zip(*exact, strict=True)))
    rows = np.zeros(len(windows), np.int64)
    some, number = per_window(emitted, np.ones(len(emitted), np.int64))
    rows[np.searchsorted(windows, some)] = number
    return Tally(windows, *bounds(windows), rows, counts)


def per_window(windows: Array, amounts: Array) -> tuple[Array, Array]:
    """The windows that occur, ascending, and the sum of the (positive) amounts of each."""
    if not len(windows):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    low, high = int(windows.min()), int(windows.max())
    if low == high:
        return np.array([low]), np.array([int(amounts.sum())])
    if (windows[1:] >= windows[:-1]).all():  # as groups come by cell
        begins = np.concatenate([[0], np.flatnonzero(windows[1:] != windows[:-1]) + 1])
        return windows[begins], np.add.reduceat(amounts, begins)
    if high - low < SPARSE * len(windows):
        numbers, places = np.arange(low, high + 1), windows - low
    else:
        numbers, places = np.unique(windows, return_inverse=True)
    sums = np.zeros(len(numbers), np.int64)
    np.add.at(sums, places, amounts)
    there = np.flatnonzero(sums)
    return numbers[there], sums[there]


def least_kept(windows: Array) -> int:
    """The first of the closing windows that a ring has room for."""
    return int(windows[-rings.CAPACITY :][0])


def gathered(windows: Array, reports: Iterable[list[list[int]]]) -> Array:
    """Records of the newest of these closing windows, from what tasks reported of them."""
    records = rings.fresh(windows[-rings.CAPACITY :])
    for report in reports:
        numbers, starts, ends, rows, exact = (np.array(column, np.int64) for column in report)
        at = np.searchsorted(records["window"], numbers)
        records["start"][at], records["end"][at] = starts, ends
        records["rows"][at] += rows
        records["exact"][at] += exact
    return records


def of_query(name: str, reports: Iterable[dict[str, Any]]) -> list[list[list[int]]]:
    """What the reports of merge tasks say of a query's windows."""
    return [columns for report in reports for query, columns in report["windows"] if query == name]
