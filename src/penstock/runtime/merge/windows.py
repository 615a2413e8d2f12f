"""The rows of an item's windows, merged from panes; and where windows begin and end.

Windows that overlap share most of their panes: what all windows of an item have in common, its *core*, is merged once
and then given to each; only the panes at the fringes are taken window by window. `stacked` has the rows as they are
stored, where all queries are rolled up from them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from penstock.aggregates.extremes import GREATEST, LEAST
from penstock.logical.window import ROWS, Window
from penstock.relations.relation import Relation
from penstock.relations.storage import StoredSource
from penstock.runtime.merge.estimates.picks import NO_PICKS, WindowPicks, picks_of
from penstock.runtime.merge.inputs import BlockRows, GroupRows, Piece, cells_of
from penstock.runtime.merge.items import FOREVER, Cut, Reading
from penstock.runtime.merge.merge import Merge, merge
from penstock.runtime.merge.once import Stacked
from penstock.runtime.merge.shares import Share, of_pass
from penstock.runtime.meter import Meter
from penstock.state.protocol import SegmentRef
from penstock.state.segments import opened
from penstock.state.segments.groups import Groups
from penstock.state.segments.read import Block, Handles
from penstock.state.segments.vocabulary import Vocabulary

Array = np.ndarray
PIECE = 1 << 16  # rows that are taken at a time
SHORT = 256  # rows: runs shorter than that are not read one by one


class TaskSegments(opened.Segments):
    """Segments of a merge task, whose files it holds open, the vocabulary of all that it reads of them, and what that
    and all that is made of it takes."""

    def __init__(self, folder: Path, references: Iterable[SegmentRef]) -> None:
        self.vocabulary, self.meter, self._held = Vocabulary(), Meter(), Handles()
        super().__init__(folder, references, self._held)

    def __enter__(self) -> TaskSegments:
        return self

    def __exit__(self, *exception: object) -> None:
        self._held.close()


def merge_windows(window: Window, source: StoredSource, cut: Cut, segments: TaskSegments, share: Share) -> Groups:
    """The groups of a relation in the windows of a cut; `panes` of the result are windows."""
    last, relation = cut.beyond - 1, source.relation

    def merged(pieces: Iterable[Piece]) -> Groups:
        every = list(pieces)
        segments.meter.count(relation.name, merges=1, merged=sum(map(len, every)))
        return merge(relation, every, share, segments.vocabulary)

    if window.single:
        return merged(pane_pieces(source, cut, segments))
    low, high = pane_span(window, cut.first)[0], pane_span(window, last)[1]
    core = pane_span(window, last)[0], pane_span(window, cut.first)[1]
    if core[0] >= core[1]:
        return merged(_fringe(window, source, cut, segments, low, high))
    common = merged(_core(source, cut, segments, core))
    if cut.first == last:
        return common
    pieces = [
        *_fringe(window, source, cut, segments, low, core[0]),
        *_fringe(window, source, cut, segments, core[1], high),
    ]
    rows, n = GroupRows(common), len(common)
    pieces += [Piece(rows, np.full(n, number)) for number in range(cut.first, cut.beyond)] if n else []
    return merged(pieces)


def stacked(
    window: Window, source: StoredSource, cut: Cut, segments: TaskSegments, share: Share, placing: bool = False
) -> Stacked | None:
    """The rows of a relation in the windows of a cut, or those of a pass, unmerged, each once: by window, or by pane
    where windows overlap (`Stacked.windows`). None where merging them first reads fewer."""
    relation = source.relation
    if window.single:
        pieces = pane_pieces(source, cut, segments)
    elif window.landmark or window.counted or placing:
        return None
    else:
        low, high = pane_span(window, cut.first)[0], pane_span(window, cut.beyond - 1)[1]
        if cut.first == cut.beyond - 1:
            pieces = _core(source, cut, segments, (low, high))
        elif window.tumbling:
            pieces = _by_pane(source, cut, segments, (low, high), window.last_window)
        elif any(len(block.levels) > 1 for block in segments.blocks(source.relation.name, source.storages)):
            return None
        else:
            by_pane = taken_by(share, relation, _by_pane(source, cut, segments, (low, high)))
            return Stacked(Merge(relation, by_pane, Vocabulary()), partial(_in_windows, window, cut))
    return Stacked(Merge(relation, taken_by(share, relation, pieces), Vocabulary()))


def taken_by(share: Share, relation: Relation, pieces: Iterable[Piece]) -> list[Piece]:
    """The rows of a pass."""
    return [of_pass(relation, piece, share) for piece in pieces] if share.passes > 1 else list(pieces)


def _by_pane(
    source: StoredSource,
    cut: Cut,
    segments: TaskSegments,
    panes: tuple[int, int],
    numbered: Callable[[Array], Array] | None = None,
) -> Iterator[Piece]:
    """Rows of the panes [low, high), each by its pane, or what is `numbered` by that."""
    for block in segments.blocks(source.relation.name, source.storages):
        for start, stop, index in chosen_rows(block, *block.row_range(*panes), cut):
            numbers = block.pane_numbers(start, stop)
            numbers = numbers if index is None else numbers[index]
            yield Piece(BlockRows(block, start, stop), numbers if numbered is None else numbered(numbers), index)


def _in_windows(window: Window, cut: Cut, relation: Relation, groups: Groups) -> Groups:
    """Groups by pane as groups by window: each pane's in all windows of the cut that hold it."""
    first, counts = _holding(window, cut, groups.panes)
    return merge(relation, list(_repeated(GroupRows(groups), None, first, counts)), None, Vocabulary())


def pane_span(window: Window, number: int) -> tuple[int, int]:
    """The panes of a window."""
    return -FOREVER if window.landmark else window.first_pane(number), window.beyond_pane(number)


def pane_pieces(source: StoredSource, cut: Cut, segments: TaskSegments, gather: int | None = None) -> Iterator[Piece]:
    """Rows of the panes [first, beyond) of a cut, by pane; those before `gather` go into that one."""
    first = cut.first if gather is None or cut.first > gather else -FOREVER
    for block in segments.blocks(source.relation.name, source.storages):
        for start, stop, index in chosen_rows(block, *block.row_range(first, cut.beyond), cut):
            rows = BlockRows(block, start, stop)
            if gather is None:
                yield Piece(rows, cells_of(block, start, stop, index), index)
            else:
                numbers = np.maximum(block.pane_numbers(start, stop), gather)
                yield Piece(rows, numbers if index is None else numbers[index], index)


def _core(source: StoredSource, cut: Cut, segments: TaskSegments, panes: tuple[int, int]) -> Iterator[Piece]:
    """Rows of panes that all windows of the cut hold, as rows of the first window; coarse where there is such."""
    for block in segments.blocks(source.relation.name, source.storages):
        for level, begin, end in block.cover(*panes):
            for start, stop, index in chosen_rows(level, begin, end, cut):
                count = stop - start if index is None else len(index)
                yield Piece(BlockRows(level, start, stop), np.full(count, cut.first), index)


def _fringe(
    window: Window, source: StoredSource, cut: Cut, segments: TaskSegments, low: int, high: int
) -> Iterator[Piece]:
    """Rows of the panes [low, high), each as often as windows of the cut hold its pane."""
    if low >= high:
        return
    for block in segments.blocks(source.relation.name, source.storages):
        for start, stop, index in chosen_rows(block, *block.row_range(low, high), cut):
            panes = block.pane_numbers(start, stop)
            panes = panes if index is None else panes[index]
            yield from _repeated(BlockRows(block, start, stop), index, *_holding(window, cut, panes))


def _holding(window: Window, cut: Cut, panes: Array) -> tuple[Array, Array]:
    """The first window of a cut that holds each pane, and how many do."""
    first = np.maximum(window.first_window(panes), cut.first)
    last = np.full(len(panes), cut.beyond - 1)
    if not window.landmark:
        last = np.minimum(window.last_window(panes), last)
    return first, np.maximum(0, last - first + 1)


def _repeated(rows: BlockRows | GroupRows, index: Array | None, first: Array, counts: Array) -> Iterator[Piece]:
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


def chosen_rows(
    block: Block, begin: int, end: int, cut: Cut, most: int = PIECE
) -> Iterator[tuple[int, int, Array | None]]:
    """The rows of a cut among [begin, end), which are whole panes: ranges of at most so many, and which of their rows
    (None: all).

    Rows stand by pane and slot, so a range of slots is one run of rows in every pane: where the runs are long, only
    they are read.
    """
    runs, inside = [(begin, end)], None
    if begin < end and (cut.low > 0 or cut.high < block.segment.slots):
        starts, stops = block.runs(begin, end, cut.low, cut.high)
        lengths = stops - starts
        if len(lengths) * SHORT < max(1, int(lengths.sum())):
            runs = list(zip(starts.tolist(), stops.tolist(), strict=True))
        else:
            inside = np.repeat(starts - np.cumsum(lengths) + lengths, lengths) + np.arange(int(lengths.sum()))
    for first, last in runs:
        for start in range(first, last, most):
            stop = min(start + most, last)
            if inside is None:
                yield start, stop, None
            else:
                low, high = np.searchsorted(inside, [start, stop])
                if low < high:
                    yield start, stop, inside[low:high] - start


# -- where windows begin and end, and what was picked of them


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


def window_bounds(reading: Reading, cut: Cut, segments: TaskSegments) -> Bounds:
    """Bounds of a cut's windows. Windows of rows are labelled with the first and last time among all their rows."""
    none, window = np.empty(0, np.int64), reading.window
    if reading.bounds is None:
        return Bounds(window, reading.landmark, none, none, none)
    groups = merge_windows(window, StoredSource(reading.bounds), replace(cut, low=0, high=FOREVER), segments, Share())
    order = np.argsort(groups.panes)
    (low,), (high,) = (groups.states[one.state(reading.time)] for one in (LEAST, GREATEST))
    return Bounds(window, None, groups.panes[order], low[order], high[order])


def window_picks(
    picks: Relation | None, window: Window, cut: Cut, segments: TaskSegments, shift: int = 0
) -> WindowPicks:
    """The picks of a cut's windows, whose numbers are less by `shift`; all of the stream's, whatever the cut has."""
    if picks is None:
        return NO_PICKS
    whole = replace(cut, low=0, high=FOREVER, passes=1, first=cut.first + shift, beyond=cut.beyond + shift)
    return picks_of(merge_windows(window, StoredSource(picks), whole, segments, Share()), shift)
