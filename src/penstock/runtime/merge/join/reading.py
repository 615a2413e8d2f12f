"""What a join reads: its sides with their windows; which instants a batch closes; items that fit a task's memory.

An instant exists where every side holds a record. The indexes of the segments tell in which panes there are some; a
record that other queries brought into the same relation may have a NULL for a key, which tasks see (`item`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count, product

import numpy as np

from penstock.errors import RunError
from penstock.logical.query import Attribute, Query, Side
from penstock.logical.window import Window
from penstock.relations.relation import Relation
from penstock.relations.storage import StoredSource
from penstock.runtime.merge.items import (
    FOREVER,
    LEAP,
    MOST_WINDOWS,
    TOGETHER,
    Cut,
    MergeItem,
    Part,
    row_bytes,
    whole_windows,
    window_ranges,
    window_sizes,
)
from penstock.runtime.settings import TaskSettings
from penstock.state.segments.read import Block

Array = np.ndarray
Ranges = list[tuple[int, int]]


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
    """`window` numbers the instants: number k is where its k-th window ends. `inner` are streams that EXISTS asks."""

    window: Window
    sides: tuple[SideReading, ...]
    largest: int = 0  # the side with the most rows
    inner: tuple[SideReading, ...] = ()

    @property
    def streams(self) -> tuple[SideReading, ...]:
        return (*self.sides, *self.inner)

    @property
    def relations(self) -> tuple[str, ...]:
        """All that is read."""
        return tuple(source.relation.name for side in self.streams for source in side.sources)

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
    """The instants of a join that a batch closes, ascending, with (about) the partial groups of each."""

    reading: JoinReading
    wanting: tuple[JoinWanting, ...]
    windows: Array
    rows: Array

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
        return JoinDue(reading, (wanting,), whole, np.full(len(whole), sum(_rows(of) for of in found)))
    ranges: Ranges = [(first, beyond if last is None else min(beyond, last + 1))]
    for side, of in zip(reading.sides, found, strict=False):
        ranges = _both(ranges, _existing(side.side.window, of, reading.shift(side.side.window)))
    windows = _numbers(ranges, wanting.query.name)
    rows = np.zeros(len(windows), np.int64)
    each = [
        _sizes(side.side.window, windows + reading.shift(side.side.window), of)
        for side, of in zip(reading.streams, found, strict=True)
    ]
    largest = max(range(len(reading.sides)), key=lambda number: int(each[number].sum()))
    return JoinDue(replace(reading, largest=largest), (wanting,), windows, sum(each, rows))


def _sizes(window: Window, windows: Array, blocks: list[Block]) -> Array:
    """Rows that are read for each window."""
    if window.counted:
        return np.full(len(windows), min(window.range or 0, _rows(blocks)))
    return window_sizes(window, windows, blocks)


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


def join_items(number: int, one: JoinDue, share: int, settings: TaskSettings) -> Iterator[MergeItem]:
    """Some instants together, as long as they fit a task and its share; these are finished where they are joined
    (`turn` None). A larger one is cut, for want of memory by its keys, and to be shared out by rows of its largest
    side, so that a hot key is no task's alone; the groups of its parts are merged after that (`spread`)."""
    memory = max(1, settings.task_memory // (2 * one.bytes_a_row))
    (name,) = (wanting.query.name for wanting in one.wanting)
    limit, part = min(share, memory), count()
    for first, beyond, size in whole_windows(one.windows, one.rows, limit, TOGETHER):
        whole = Cut(0, first, beyond, 0, settings.slots, None, 1, size)
        if size <= limit:
            yield MergeItem(number, (name,), replace(whole, part=next(part)))
            continue
        keyed = bool(one.reading.sides[0].side.key)
        passes = max(1, -(-size // memory)) if keyed else 1
        slices = max(1, -(-size // (limit * passes)))
        for turn, piece in product(range(passes), range(slices)):
            cut = replace(whole, part=next(part), turn=turn, passes=passes, rows=size // (passes * slices))
            yield MergeItem(number, (name,), replace(cut, slice=piece, slices=slices))
