"""Which windows a batch closes, cut into merge items that fit a task's memory, and shared out to tasks.

Sizes come from the segments' indexes, so an item's rows are known, not guessed (slots are taken as equal).
A window too large for one item is cut by hash slots; a slot too large, into passes over finer hash bits.
Windows that overlap are merged several at a time, since they share most of their panes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from penstock.aggregates.registry import planned_words
from penstock.errors import RunError
from penstock.logical.query import Query
from penstock.logical.window import Window
from penstock.relations.relation import Relation, relation
from penstock.runtime.settings import TaskSettings
from penstock.state.segments.read import FAN, Block

LEAST_ROWS = 50_000  # below this, one more item costs more than it shares
ITEMS_PER_TASK = 4
FOREVER = 1 << 64
TOGETHER = 64  # overlapping windows in one item at most
MOST_WINDOWS = 4_000_000  # of one query in one batch

Array = np.ndarray


@dataclass(frozen=True)
class MergeItem:
    """Windows [first, beyond) and slots [low, high) of a query; `passes` > 1: shares of a slot, one after the
    other (`turn` None: all of them in this item) or one of them."""

    query: str
    part: int
    first: int
    beyond: int
    low: int
    high: int
    turn: int | None = 0
    passes: int = 1
    rows: int = 0


@dataclass(frozen=True)
class Closing:
    """The windows of one query that a batch closes, ascending, with (about) the partial groups of each."""

    query: Query
    windows: Array
    rows: Array


def span(window: Window, before: int | None, after: int | None, ended: bool, least: int | None) -> tuple[int, int]:
    """Windows [first, beyond) that close when the watermark moves; `least`: the first window there is."""
    opened = window.first_open(before)
    first = -FOREVER if opened is None else opened
    first = first if least is None else max(first, least)
    if ended:
        return first, FOREVER
    closed = window.first_open(after)
    return (first, closed) if closed is not None and closed > first else (0, 0)


def closing(query: Query, blocks: Iterable[Block], first: int, beyond: int, last: int | None) -> Closing:
    """The windows in [first, beyond) that are not empty, from the indexes of these blocks of the query.

    `last` is the last window of a landmark query whose stream has ended: nothing comes after its last tuple.
    """
    found = list(blocks) if first < beyond else []
    panes = np.unique(np.concatenate([block.panes for block in found])) if found else np.empty(0, np.int64)
    windows = _windows(query, panes, first, beyond, last)
    return Closing(query, windows, _sizes(query.window, windows, found))


def _windows(query: Query, panes: Array, first: int, beyond: int, last: int | None) -> Array:
    """All windows in [first, beyond) that hold one of these panes."""
    window = query.window
    if not len(panes):
        return np.empty(0, np.int64)
    if window.tumbling:
        return panes[(panes >= max(first, int(panes[0]))) & (panes < min(beyond, int(panes[-1]) + 1))]
    if window.landmark:
        ranges = [(int(panes[0]), beyond if last is None else min(beyond, last + 1))]
    else:
        ranges = list(_ranges(window, panes))
    clipped = [(max(a, first), min(b, beyond)) for a, b in ranges]
    count = sum(max(0, b - a) for a, b in clipped)
    if count > MOST_WINDOWS:
        raise RunError(
            f"query '{query.name}' would close {count:,} windows at once: the stream's time has leapt",
            "a wild timestamp? say how far ahead a time may be: WATERMARK ... MAX AHEAD '1 hour'",
        )
    return np.concatenate([np.arange(a, b) for a, b in clipped if a < b] or [np.empty(0, np.int64)])


def _ranges(window: Window, panes: Array) -> Iterator[tuple[int, int]]:
    """Disjoint ascending ranges of windows that hold some of these panes."""
    # Panes are numbers in a row, so neighbours whose windows meet are found by looking at the gaps alone.
    reach = window.beyond_pane(0) - window.first_pane(0)
    breaks = np.flatnonzero(np.diff(panes) > reach)
    begin = 0
    previous = -FOREVER
    for end in [*breaks.tolist(), len(panes) - 1]:
        a = max(previous, window.first_window(int(panes[begin])))
        b = window.last_window(int(panes[end])) + 1
        if a < b:
            yield a, b
            previous = b
        begin = end + 1


def _sizes(window: Window, windows: Array, blocks: list[Block]) -> Array:
    """Rows that are read for each window."""
    rows = np.zeros(len(windows), np.int64)
    if not len(windows):
        return rows
    per, wide = window.panes.per_slide, window.beyond_pane(0) - window.first_pane(0)
    low = windows * per if not window.landmark else np.full(len(windows), np.iinfo(np.int64).min)
    high = windows + 1 if window.landmark else low + wide
    for block in blocks:
        rows += _covered(block, low, high)
    return rows


def _covered(block: Block, low: Array, high: Array) -> Array:
    """Rows of `block.cover` for many ranges of panes at once."""
    low, high = np.clip(low, *block.extent), np.clip(high, *block.extent)
    total = np.zeros(len(low), np.int64)
    inner: tuple[Array, Array] | None = None
    for level in reversed(range(len(block.levels))):
        size, one = FAN**level, block.levels[level]
        a, b = -(-low // size), high // size
        b = np.maximum(a, b)
        taken = _rows_between(one, a, b)
        if inner is not None:
            # What the coarser level has taken is not read here.
            taken -= np.where(inner[0] < inner[1], _rows_between(one, inner[0] * FAN, inner[1] * FAN), 0)
        total += np.maximum(taken, 0)
        inner = a, b
    return total


def _rows_between(block: Block, low: Array, high: Array) -> Array:
    at = np.searchsorted(block.panes, low), np.searchsorted(block.panes, high)
    between: Array = np.maximum(block.starts[at[1]] - block.starts[at[0]], 0)
    return between


def items(closings: Iterable[Closing], settings: TaskSettings, parallelism: int) -> list[MergeItem]:
    """All items of a batch."""
    closed = list(closings)
    total = sum(int(one.rows.sum()) for one in closed)
    share = max(LEAST_ROWS, total // (ITEMS_PER_TASK * parallelism))
    cut: list[MergeItem] = []
    for one in closed:
        limit = max(1, min(share, settings.task_memory // row_bytes(relation(one.query))))
        together = 1 << 62 if one.query.window.tumbling else TOGETHER
        whole = one.query.limit is not None
        cut += list(cut_windows(one.query.name, one.windows, one.rows, limit, settings.slots, together, whole))
    return cut


def row_bytes(bare: Relation) -> int:
    """Memory that one partial group takes while it is merged and finished, roughly."""
    words = sum(max(1, planned_words(state, bare.types[state.column].kind)) for state in bare.states)
    return 48 * (len(bare.parts) + words + 2)


def cut_windows(
    query: str, windows: Array, rows: Array, limit: int, slots: int, together: int = 1 << 62, whole: bool = False
) -> Iterator[MergeItem]:
    """Items of about `limit` rows. `whole`: a window stays in one item, which takes it in passes."""
    part = start = 0
    while start < len(windows):
        # As many whole windows as fit, at least one.
        stop = start + max(1, int(np.searchsorted(np.cumsum(rows[start:]), limit, "right")))
        stop = min(stop, start + together)
        first, beyond, size = int(windows[start]), int(windows[stop - 1]) + 1, int(rows[start:stop].sum())
        shares = -(-size // limit)
        if whole:
            yield MergeItem(query, part, first, beyond, 0, slots, None, max(1, shares), size)
            part += 1
            start = stop
            continue
        ranges = min(max(1, shares), slots)
        passes = max(1, -(-shares // slots))
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
