"""Which windows of some queries a batch closes, and how many rows are read for each, by the index of what is stored."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from penstock.errors import RunError
from penstock.logical.window import Window
from penstock.runtime.merge.items import FOREVER, Due, Reading, Wanting
from penstock.state.segments.read import FAN, Block

MOST_WINDOWS = 4_000_000  # of one query in one batch
LEAP = (
    "the stream's time has leapt",
    "a wild timestamp? say how far ahead a time may be: WATERMARK ... MAX AHEAD '1 hour'",
)

Array = np.ndarray


def span(window: Window, before: int | None, after: int | None, ended: bool, least: int | None) -> tuple[int, int]:
    """Windows [first, beyond) that close when the watermark moves; `least`: the first window there is."""
    opened = window.first_open(before)
    first = -FOREVER if opened is None else opened
    first = first if least is None else max(first, least)
    if ended:
        return first, FOREVER
    closed = window.first_open(after)
    return (first, closed) if closed is not None and closed > first else (0, 0)


def due(
    reading: Reading, wanting: tuple[Wanting, ...], blocks: Iterable[Block], first: int, beyond: int, last: int | None
) -> Due:
    """The windows in [first, beyond) that are not empty, from the indexes of the blocks of what is stored.

    `last` is the last window of a landmark query whose stream has ended: nothing comes after its last record.
    """
    found: dict[Window, list[Block]] = {reading.window: []}  # by the panes that they have
    for block in blocks if first < beyond else ():
        found.setdefault(reading.over(block.relation), []).append(block)
    name = wanting[0].query.name
    each = [_windows(window, name, panes_of(of), first, beyond, last) for window, of in found.items()]
    windows = each[0] if len(each) == 1 else np.unique(np.concatenate(each))
    rows = sum((window_sizes(window, windows, of) for window, of in found.items()), np.zeros(len(windows), np.int64))
    return Due(reading, wanting, windows, rows, tuple(itertools.chain.from_iterable(found.values())))


def panes_of(blocks: Sequence[Block]) -> Array:
    """All panes that there are rows of."""
    return np.unique(np.concatenate([block.panes for block in blocks])) if blocks else np.empty(0, np.int64)


def _windows(window: Window, name: str, panes: Array, first: int, beyond: int, last: int | None) -> Array:
    """All windows in [first, beyond) that hold one of these panes; that of all records holds none if there are none."""
    if window.whole:
        return np.zeros(1, np.int64) if first < beyond else np.empty(0, np.int64)
    if not len(panes):
        return np.empty(0, np.int64)
    if window.single:
        return panes[(panes >= max(first, int(panes[0]))) & (panes < min(beyond, int(panes[-1]) + 1))]
    if window.landmark:
        ranges = [(int(panes[0]), beyond if last is None else min(beyond, last + 1))]
    else:
        ranges = list(window_ranges(window, panes))
    clipped = [(max(a, first), min(b, beyond)) for a, b in ranges]
    count = sum(max(0, b - a) for a, b in clipped)
    if count > MOST_WINDOWS:
        raise RunError(f"query '{name}' would close {count:,} windows at once: {LEAP[0]}", LEAP[1])
    return np.concatenate([np.arange(a, b) for a, b in clipped if a < b] or [np.empty(0, np.int64)])


def window_ranges(window: Window, panes: Array) -> Iterator[tuple[int, int]]:
    """Disjoint ascending ranges of windows that hold some of these panes."""
    # Panes are numbers in a row, so neighbours whose windows meet are found by looking at the gaps alone.
    breaks = np.flatnonzero(np.diff(panes) > window.reach)
    begin = 0
    previous = -FOREVER
    for end in [*breaks.tolist(), len(panes) - 1]:
        a = max(previous, window.first_window(int(panes[begin])))
        b = window.last_window(int(panes[end])) + 1
        if a < b:
            yield a, b
            previous = b
        begin = end + 1


def window_sizes(window: Window, windows: Array, blocks: list[Block]) -> Array:
    """Rows that are read for each window."""
    rows = np.zeros(len(windows), np.int64)
    if not len(windows):
        return rows
    low, high = window_bounds(window, windows)
    for block in blocks:
        rows += _covered(block, low, high)
    return rows


def window_bounds(window: Window, windows: Array) -> tuple[Array, Array]:
    """The panes [low, high) of each of these windows."""
    if window.landmark:
        return np.full(len(windows), np.iinfo(np.int64).min), windows + 1
    low = windows * window.per_slide
    return low, low + window.reach


def _covered(block: Block, low: Array, high: Array) -> Array:
    """Rows of `block.cover` for many ranges of panes at once."""
    low, high = np.clip(low, *block.extent), np.clip(high, *block.extent)
    total = np.zeros(len(low), np.int64)
    inner: tuple[Array, Array] | None = None
    for level in reversed(range(len(block.levels))):
        size, one = FAN**level, block.levels[level]
        a, b = -(-low // size), high // size
        b = np.maximum(a, b)
        taken = rows_of_panes(one, a, b)
        if inner is not None:
            # What the coarser level has taken is not read here.
            taken -= np.where(inner[0] < inner[1], rows_of_panes(one, inner[0] * FAN, inner[1] * FAN), 0)
        total += np.maximum(taken, 0)
        inner = a, b
    return total


def rows_of_panes(block: Block, low: Array, high: Array) -> Array:
    """Rows of many ranges of panes, each [low, high)."""
    at = np.searchsorted(block.panes, low), np.searchsorted(block.panes, high)
    between: Array = np.maximum(block.starts[at[1]] - block.starts[at[0]], 0)
    return between
