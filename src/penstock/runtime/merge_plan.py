"""Cut the windows that a batch closes into merge items that fit a task's memory, and share them out.

Sizes come from the segments' indexes, so an item's rows are known, not guessed (slots are taken as equal).
A window too large for one item is cut by hash slots; a slot too large, into passes over finer hash bits.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from penstock.logical.query import Query
from penstock.runtime.settings import TaskSettings
from penstock.sharing.plan import relation
from penstock.state.segment import Segment

LEAST_ROWS = 50_000  # below this, one more item costs more than it shares
ITEMS_PER_TASK = 4
FOREVER = 1 << 64


@dataclass(frozen=True)
class MergeItem:
    """Windows [first, beyond) and slots [low, high) of a query; `passes` > 1: one of several shares of a slot."""

    query: str
    part: int
    first: int
    beyond: int
    low: int
    high: int
    turn: int = 0
    passes: int = 1
    rows: int = 0


def closing(before: int | None, after: int | None, ended: bool, size: int) -> tuple[int, int]:
    """Windows [first, beyond) of this size that close when the watermark moves."""
    first = -FOREVER if before is None else before // size
    if ended:
        return first, FOREVER
    return (first, after // size) if after is not None else (0, 0)


class Closing:
    """The closed windows of each query with their group counts, read from the segments' indexes."""

    def __init__(self, queries: tuple[Query, ...], spans: dict[str, tuple[int, int]]) -> None:
        self.queries, self._spans = queries, spans
        self._counts: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {query.name: [] for query in queries}

    def read(self, folder: Path, references: list[dict[str, Any]]) -> None:
        for reference in references:
            for block in Segment(folder / reference["path"], reference).blocks:
                name = block.meta["query"]
                windows, rows = block.windows(), np.diff(block.starts())
                first, beyond = self._spans[name]
                inside = (windows >= first) & (windows < beyond)
                if inside.any():
                    self._counts[name].append((windows[inside], rows[inside]))

    def windows(self, query: str) -> tuple[np.ndarray, np.ndarray]:
        """(windows, partial groups in each), ascending."""
        found = self._counts[query]
        if not found:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        windows, index = np.unique(np.concatenate([w for w, _ in found]), return_inverse=True)
        rows = np.bincount(index, np.concatenate([r for _, r in found])).astype(np.int64)
        return windows, rows


def items(closed: Closing, settings: TaskSettings, parallelism: int) -> list[MergeItem]:
    """All items of a batch."""
    total = sum(int(closed.windows(query.name)[1].sum()) for query in closed.queries)
    share = max(LEAST_ROWS, total // (ITEMS_PER_TASK * parallelism))
    cut: list[MergeItem] = []
    for query in closed.queries:
        windows, rows = closed.windows(query.name)
        limit = max(1, min(share, settings.task_memory // row_bytes(query)))
        cut += list(_cut(query.name, windows, rows, limit, settings.slots))
    return cut


def row_bytes(query: Query) -> int:
    """Memory that one partial group takes while it is merged and finished, roughly."""
    bare = relation(query)
    return 48 * (len(bare.parts) + len(bare.states) + 2)


def _cut(query: str, windows: np.ndarray, rows: np.ndarray, limit: int, slots: int) -> Iterator[MergeItem]:
    part = start = 0
    while start < len(windows):
        # As many whole windows as fit, at least one.
        stop = start + max(1, int(np.searchsorted(np.cumsum(rows[start:]), limit, "right")))
        first, beyond, size = int(windows[start]), int(windows[stop - 1]) + 1, int(rows[start:stop].sum())
        shares = -(-size // limit)
        ranges = min(shares, slots)
        passes = -(-shares // slots)
        edges = [slots * i // ranges for i in range(ranges + 1)]
        for low, high in itertools.pairwise(edges):
            for turn in range(passes):
                yield MergeItem(query, part, first, beyond, low, high, turn, passes, size // (ranges * passes))
                part += 1
        start = stop


def share_out(items: list[MergeItem], tasks: int) -> list[list[MergeItem]]:
    """Items to tasks, the largest first, each to the task with the least work."""
    bins: list[list[MergeItem]] = [[] for _ in range(min(tasks, len(items)))]
    load = [0] * len(bins)
    for item in sorted(items, key=lambda i: (-i.rows, i.query, i.part)):
        least = load.index(min(load))
        bins[least].append(item)
        load[least] += item.rows + LEAST_ROWS // 10
    return bins
