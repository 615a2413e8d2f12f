"""How often a query closes in a batch: in how many items its windows are cut, so how often it takes what it takes
however few rows there are (`runtime.merge.rolling.items`, `runtime.merge.items`).

Windows of queries that are all rolled up from one relation are shared out by queries, if there are enough of them and
not too many rows; else whole, as many together as there are to each task, and those left over by queries. Others are
together as long as their rows are not more than an item's share.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, floor

from penstock.logical.window import Panes, Window
from penstock.relations.relation import Relation

CODED_AGAIN = 50_000  # attributes of rows that are read and coded while a query is closed, however few its rows are
FEW_QUERIES = 8  # to a task: that are worth reading the rows again for
LEAST_ROWS = 50_000  # below this, one more item costs more than it shares
ITEMS_PER_TASK = 4
CODE, STATE, ROW = 2, 24, 64  # bytes of a row that is rolled up: of an attribute, of a state in two orders, and besides


def by_queries(windows: int, queries: int, rows: float, attributes: int, tasks: int) -> int:
    """How many of the last windows are shared out by queries: all, where it takes less to read and code all rows in
    each task than to close each query in each; else what is left over, so that all tasks have as much to do."""
    if tasks < 2 or queries < FEW_QUERIES * tasks:
        return 0
    if rows * attributes <= CODED_AGAIN * queries:
        return windows if windows > 1 or rows >= LEAST_ROWS else 0
    return windows % tasks if rows >= LEAST_ROWS else 0


def rolled_closings(windows: float, queries: int, rows: float, attributes: int, tasks: int) -> float:
    """How often each of so many queries closes in a batch that closes so many windows, of so many rows each, which all
    of them are rolled up from; the rows have so many attributes."""

    def of(whole: int) -> float:
        left = by_queries(whole, queries, whole * rows, attributes, tasks)
        return min(whole - left, tasks) + (left > 0)

    return _between(windows, of)


def merged_closings(windows: float, rows: float, share: float) -> float:
    """The same of queries that are merged, in items of at most so many rows."""

    def of(whole: int) -> float:
        return ceil(whole / max(1, floor(share / rows))) if rows > 0.0 else min(1, whole)

    return _between(windows, of)


def share_of(rows: int, tasks: int) -> int:
    """Rows of an item, of all those that are merged in a batch."""
    return max(LEAST_ROWS, rows // (ITEMS_PER_TASK * tasks))


def rolled_bytes(relation: Relation) -> int:
    """Memory that a row takes while queries of these attributes and states are rolled up from it."""
    words = sum(max(1, form.words) for form in relation.shape.forms(relation.states).values())
    return CODE * len(relation.attributes) + STATE * (1 + words) + ROW


def windows_of(window: Window, panes: Panes, moved: float) -> float:
    """How many windows close while so many panes go by."""
    return moved * panes.slide / (panes.per_slide * window.slide)


def _between(windows: float, of: Callable[[int], float]) -> float:
    """Of a batch that closes now one window less and now one more."""
    least = floor(windows)
    return of(least) + (windows - least) * (of(least + 1) - of(least)) if windows > least else of(least)
