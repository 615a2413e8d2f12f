"""What a join reads: its sides with their windows; which instants a batch closes.

An instant exists where every side holds a record. The indexes of the segments tell in which panes there are some; a
record that other queries brought into the same relation may have a NULL for a key, which tasks see (`item`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from penstock.errors import RunError
from penstock.logical.query import Attribute, Query, Side
from penstock.logical.window import Window
from penstock.relations.relation import Relation
from penstock.relations.storage import StoredSource
from penstock.runtime.merge.due import LEAP, MOST_WINDOWS, rows_of_panes, window_ranges, window_sizes
from penstock.runtime.merge.items import FOREVER, Part, row_bytes
from penstock.state.segments.read import Block

Array = np.ndarray
Ranges = list[tuple[int, int]]
HOT = 4  # a slot with this part of all pairs is hot,
LARGE = 1 << 17  # of an instant with so many rows: others are seldom cut


@dataclass(frozen=True)
class SideReading:
    """A side, what it is joined from, and where that is stored; `landmark` is where its window until now begins.
    `placed` is the part of its key by whose hash rows are found in the same pass on all sides."""

    side: Side
    wanted: Relation
    sources: tuple[StoredSource, ...]
    landmark: int | None = None
    placed: tuple[Attribute, ...] = ()


@dataclass(frozen=True)
class JoinReading:
    """`window` numbers the instants: number k is where its k-th window ends. `inner` are streams that EXISTS asks.
    `counted`: tasks say what its sides hold, for the choice of its plan. `picks` has the records of its stream by
    weight, where delays are promised."""

    window: Window
    sides: tuple[SideReading, ...]
    largest: int = 0  # the side with the most rows
    inner: tuple[SideReading, ...] = ()
    counted: bool = True
    picks: Relation | None = None

    @property
    def streams(self) -> tuple[SideReading, ...]:
        return (*self.sides, *self.inner)

    @property
    def relations(self) -> tuple[str, ...]:
        """All that is read."""
        names = (source.relation.name for side in self.streams for source in side.sources)
        return (*names, *([] if self.picks is None else [self.picks.name]))

    def shift(self, window: Window) -> int:
        """What the number of an instant is less than that of a side's window that ends there."""
        return (self.window.length - window.length) // self.window.slide


@dataclass(frozen=True)
class JoinWanting:
    """A join, and the relations of joined rows that its results are finished from."""

    query: Query
    groups: Part
    details: tuple[Part, ...] = ()

    @property
    def parts(self) -> tuple[Part, ...]:
        return (self.groups, *self.details)


@dataclass(frozen=True)
class JoinDue:
    """The instants of a join that a batch closes, ascending, with (about) the partial groups of each: all of them, and
    those that the instant before has not. `hot`: some slot has far more of them than others."""

    reading: JoinReading
    wanting: tuple[JoinWanting, ...]
    windows: Array
    rows: Array
    added: Array
    hot: bool = False

    @cached_property
    def bytes_a_row(self) -> int:
        return max((row_bytes(side.wanted) for side in self.reading.streams), default=1)


def join_due(
    reading: JoinReading,
    wanting: JoinWanting,
    blocks: Callable[[SideReading], Iterable[Block]],
    first: int,
    beyond: int,
    last: int | None,
) -> JoinDue:
    """The instants in [first, beyond) at which every side holds something; `last`: none comes after it. What EXISTS
    asks may hold nothing."""
    found = [list(blocks(side)) if first < beyond else [] for side in reading.streams]
    if reading.window.whole:
        whole = np.zeros(1 if first < beyond else 0, np.int64)
        rows = np.full(len(whole), sum(_rows(of) for of in found))
        return JoinDue(reading, (wanting,), whole, rows, rows)
    ranges: Ranges = [(first, beyond if last is None else min(beyond, last + 1))]
    for side, of in zip(reading.sides, found, strict=False):
        ranges = _both(ranges, _existing(side.side.window, of, reading.shift(side.side.window)))
    windows = _numbers(ranges, wanting.query.name)
    sides = [(side.side.window, windows + reading.shift(side.side.window)) for side in reading.streams]
    each = [_sizes(*numbered, of) for numbered, of in zip(sides, found, strict=True)]
    added = [_added(*numbered, of) for numbered, of in zip(sides, found, strict=True)]
    largest = max(range(len(reading.sides)), key=lambda number: int(each[number].sum()))
    nothing = np.zeros(len(windows), np.int64)
    rows = sum(each, nothing)
    hot = int(rows.max(initial=0)) > LARGE and _is_hot(found[: len(reading.sides)])
    return JoinDue(replace(reading, largest=largest), (wanting,), windows, rows, sum(added, nothing), hot)


def _sizes(window: Window, windows: Array, blocks: list[Block]) -> Array:
    """Rows that are read for each window."""
    if window.counted:
        return np.full(len(windows), min(window.range or 0, _rows(blocks)))
    return window_sizes(window, windows, blocks)


def _added(window: Window, windows: Array, blocks: list[Block]) -> Array:
    """Rows of each window that the one before has not."""
    whole = _sizes(window, windows, blocks)
    if window.counted or window.tumbling or not len(windows):
        return whole
    beyond = windows + 1 if window.landmark else windows * window.panes.per_slide + window.reach
    new = sum((rows_of_panes(block, beyond - window.panes.per_slide, beyond) for block in blocks), 0 * whole)
    added: Array = np.where(np.diff(windows, prepend=windows[0] - 2) == 1, np.minimum(new, whole), whole)
    return added


def _is_hot(found: Iterable[list[Block]]) -> bool:
    """Whether some slot has so many pairs of rows, more or less, that a task would have them alone."""
    pairs: Array | int = 1
    for blocks in found:
        slots = [np.diff(block.cuts).reshape(-1, block.segment.slots).sum(0) for block in blocks]
        pairs = pairs * sum(slots, np.zeros(1)).astype(np.float64)
    return bool(np.max(pairs) * HOT > np.sum(pairs))


def _rows(blocks: Iterable[Block]) -> int:
    return sum(int(block.starts[-1]) for block in blocks)


def _existing(window: Window, blocks: Sequence[Block], shift: int) -> Ranges:
    """The instants at which a side holds some of these panes, as ascending ranges."""
    panes = np.unique(np.concatenate([block.panes for block in blocks])) if blocks else np.empty(0, np.int64)
    if not len(panes):
        return []
    if window.landmark or window.counted:
        return [(window.first_window(int(panes[0])) - shift, FOREVER)]
    return [(a - shift, b - shift) for a, b in window_ranges(window, panes)]


def _both(one: Ranges, other: Ranges) -> Ranges:
    """What lies in ranges of both."""
    found: Ranges = []
    at = 0
    for a, b in one:
        while at < len(other) and other[at][1] <= a:
            at += 1
        ahead = at
        while ahead < len(other) and other[ahead][0] < b:
            found.append((max(a, other[ahead][0]), min(b, other[ahead][1])))
            ahead += 1
    return [(a, b) for a, b in found if a < b]


def _numbers(ranges: Ranges, name: str) -> Array:
    count = sum(b - a for a, b in ranges)
    if count > MOST_WINDOWS:
        raise RunError(f"query '{name}' would close {count:,} windows at once: {LEAP[0]}", LEAP[1])
    return np.concatenate([np.arange(a, b) for a, b in ranges] or [np.empty(0, np.int64)])
