"""HFTA: merge the panes of closed windows and finish them. Runs in Spark tasks, one item after the other.

An item is a range of windows and hash slots of one query, small enough for a task's memory (`merge_plan`).
Windows that overlap share most of their panes: what all windows of an item have in common, its *core*, is merged once
and then given to each; only the panes at the fringes are taken window by window.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from penstock.aggregates.extremes import GREATEST, LEAST
from penstock.logical.query import Query
from penstock.logical.window import ROWS, Window
from penstock.relations.relation import Relation, bounds_relation, relation
from penstock.runtime.merge.finish import finish
from penstock.runtime.merge.inputs import BlockRows, GroupRows, Piece, cells_of
from penstock.runtime.merge.items import FOREVER, MergeItem
from penstock.runtime.merge.merge import Share, merge
from penstock.runtime.merge.ordering import Ranked, first_rows
from penstock.runtime.merge.tally import Tally, per_window, tally
from penstock.state.protocol import SegmentRef
from penstock.state.segments import opened
from penstock.state.segments.groups import Groups
from penstock.state.segments.read import Block, Handles
from penstock.state.segments.vocabulary import Vocabulary

Array = np.ndarray
PIECE = 1 << 16  # rows that are taken at a time
SHORT = 256  # rows: runs shorter than that are not read one by one


class Segments(opened.Segments):
    """Segments of a merge task, whose files it holds open, and the vocabulary of all that it reads of them."""

    def __init__(self, folder: Path, references: Iterable[SegmentRef]) -> None:
        self.vocabulary, self._held = Vocabulary(), Handles()
        super().__init__(folder, references, self._held)

    def __enter__(self) -> Segments:
        return self

    def __exit__(self, *exception: object) -> None:
        self._held.close()


@dataclass(frozen=True)
class Setting:
    """What finishing needs to know beside the groups: the stream's time column, where landmark windows begin."""

    time: str
    landmark: int | None = None


@dataclass(frozen=True)
class Merged:
    """The finished result rows of an item, and the account of its windows."""

    table: pa.Table
    tally: Tally


def merge_item(query: Query, item: MergeItem, segments: Segments, setting: Setting) -> Merged:
    """Merge and finish one item, pass by pass."""
    bare = relation(query)
    bounds = window_bounds(query.window, item, segments, setting)

    def one_pass(turn: int) -> tuple[Ranked, tuple[Array, Array]]:  # its groups are gone before the next ones come
        groups = merge_windows(bare, item, segments, Share(turn, item.passes))
        return first_rows(query, finish(query, groups, bounds)), per_window(groups.panes, groups.count)

    turns = range(item.passes) if item.turn is None else [item.turn]
    ranked, exact = zip(*(one_pass(turn) for turn in turns), strict=True)
    rows = ranked[0] if len(ranked) == 1 else first_rows(query, ranked[0].joined(ranked[1:]))
    return Merged(rows.table, tally(exact, rows.windows, bounds.of))


def merge_windows(bare: Relation, item: MergeItem, segments: Segments, share: Share) -> Groups:
    """The groups of an item's windows; `panes` of the result are windows."""
    window, last = bare.window, item.beyond - 1
    if window.tumbling:
        return merge(bare, list(pane_pieces(bare, item, segments)), share, segments.vocabulary)
    low, high = _span(window, item.first)[0], _span(window, last)[1]
    core = _span(window, last)[0], _span(window, item.first)[1]
    if core[0] >= core[1]:
        return merge(bare, list(_fringe(bare, item, segments, low, high)), share, segments.vocabulary)
    if item.first == last:
        return merge(bare, list(_core(bare, item, segments, core)), share, segments.vocabulary)
    common = merge(bare, list(_core(bare, item, segments, core)), share, segments.vocabulary)
    pieces = [
        *_fringe(bare, item, segments, low, core[0]),
        *_fringe(bare, item, segments, core[1], high),
    ]
    rows = GroupRows(common)
    if len(common):
        pieces += [Piece(rows, np.full(len(common), number)) for number in range(item.first, item.beyond)]
    return merge(bare, pieces, share, segments.vocabulary)


def _span(window: Window, number: int) -> tuple[int, int]:
    """The panes of a window."""
    return -FOREVER if window.landmark else window.first_pane(number), window.beyond_pane(number)


def pane_pieces(bare: Relation, item: MergeItem, segments: Segments, gather: int | None = None) -> Iterator[Piece]:
    """Rows of the panes [first, beyond) of an item, by pane; those before `gather` go into that one."""
    first = item.first if gather is None or item.first > gather else -FOREVER
    for block in segments.blocks(bare.query):
        for start, stop, index in _chosen(block, *block.row_range(first, item.beyond), item):
            rows = BlockRows(block, start, stop)
            if gather is None:
                yield Piece(rows, cells_of(block, start, stop, index), index)
            else:
                numbers = np.maximum(block.pane_numbers(start, stop), gather)
                yield Piece(rows, numbers if index is None else numbers[index], index)


def _core(bare: Relation, item: MergeItem, segments: Segments, panes: tuple[int, int]) -> Iterator[Piece]:
    """Rows of panes that all windows of the item hold, as rows of the first window; coarse where there is such."""
    for block in segments.blocks(bare.query):
        for level, begin, end in block.cover(*panes):
            for start, stop, index in _chosen(level, begin, end, item):
                count = stop - start if index is None else len(index)
                yield Piece(BlockRows(level, start, stop), np.full(count, item.first), index)


def _fringe(bare: Relation, item: MergeItem, segments: Segments, low: int, high: int) -> Iterator[Piece]:
    """Rows of the panes [low, high), each as often as windows of the item hold its pane."""
    window = bare.window
    if low >= high:
        return
    for block in segments.blocks(bare.query):
        for start, stop, index in _chosen(block, *block.row_range(low, high), item):
            panes = block.pane_numbers(start, stop)
            panes = panes if index is None else panes[index]
            first = np.maximum(first_windows(window, panes), item.first)
            last = np.full(len(panes), item.beyond - 1)
            if not window.landmark:
                last = np.minimum(panes // window.panes.per_slide, last)
            yield from _repeated(BlockRows(block, start, stop), index, first, np.maximum(0, last - first + 1))


def first_windows(window: Window, panes: Array) -> Array:
    """`Window.first_window` of many panes."""
    if window.landmark:
        return panes
    whole, rest = divmod(window.length, window.slide)
    slide, second = np.divmod(panes, window.panes.per_slide)
    return slide - whole + ((second > 0) | (rest == 0))


def _repeated(rows: BlockRows, index: Array | None, first: Array, counts: Array) -> Iterator[Piece]:
    """Row i goes to the windows [first[i], first[i] + counts[i]); in pieces of bounded size."""
    chosen = np.arange(len(first)) if index is None else index
    begin = 0
    ends = np.cumsum(counts)
    while begin < len(first):
        done = int(ends[begin - 1]) if begin else 0
        stop = max(begin + 1, int(np.searchsorted(ends, done + PIECE, "right")))
        n = counts[begin:stop]
        total = int(n.sum())
        if total:
            steps = np.arange(total) - np.repeat(np.cumsum(n) - n, n)
            yield Piece(rows, np.repeat(first[begin:stop], n) + steps, np.repeat(chosen[begin:stop], n))
        begin = stop


def _chosen(block: Block, begin: int, end: int, item: MergeItem) -> Iterator[tuple[int, int, Array | None]]:
    """The item's rows among [begin, end), which are whole panes: ranges of bounded size, and which of their rows (None:
    all).

    Rows stand by pane and slot, so a range of slots is one run of rows in every pane: where the runs are long, only
    they are read.
    """
    runs, inside = [(begin, end)], None
    if begin < end and (item.low > 0 or item.high < block.segment.slots):
        starts, stops = block.runs(begin, end, item.low, item.high)
        lengths = stops - starts
        if len(lengths) * SHORT < max(1, int(lengths.sum())):
            runs = list(zip(starts.tolist(), stops.tolist(), strict=True))
        else:
            inside = np.repeat(starts - np.cumsum(lengths) + lengths, lengths) + np.arange(int(lengths.sum()))
    for first, last in runs:
        for start in range(first, last, PIECE):
            stop = min(start + PIECE, last)
            if inside is None:
                yield start, stop, None
            else:
                low, high = np.searchsorted(inside, [start, stop])
                if low < high:
                    yield start, stop, inside[low:high] - start


# -- where windows begin and end


@dataclass(frozen=True)
class Bounds:
    """Start and end of windows, in microseconds."""

    window: Window
    landmark: int | None
    numbers: Array
    starts: Array
    ends: Array

    def of(self, windows: Array) -> tuple[Array, Array]:
        if self.window.axis == ROWS:
            at = np.searchsorted(self.numbers, windows)
            return self.starts[at], self.ends[at]
        ends = windows * self.window.slide + self.window.length
        if self.landmark is not None:
            return np.full(len(windows), self.landmark), ends
        return windows * self.window.slide, ends


def window_bounds(window: Window, item: MergeItem, segments: Segments, setting: Setting) -> Bounds:
    """Bounds of an item's windows. Windows of rows are labelled with the first and last time among all their rows."""
    none = np.empty(0, np.int64)
    if window.axis != ROWS:
        return Bounds(window, setting.landmark, none, none, none)
    bare = bounds_relation(window, setting.time)
    groups = merge_windows(bare, replace(item, low=0, high=FOREVER), segments, Share())
    order = np.argsort(groups.panes)
    (low,), (high,) = (groups.states[one.state(setting.time)] for one in (LEAST, GREATEST))
    return Bounds(window, None, groups.panes[order], low[order], high[order])
