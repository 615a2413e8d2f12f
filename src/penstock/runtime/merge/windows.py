"""Merge the panes of closed windows, and finish the queries that close from them. Runs in tasks, item after item.

An item is a range of windows and hash slots of queries that are read together, small enough for a task's memory
(`runtime.merge.items`). What is stored is read and merged once for all of them; each is then finished from the merged
groups, or from what is made of them (`runtime.merge.closer`). Windows that overlap share most of their panes: what all
windows of an item have in common, its *core*, is merged once and then given to each; only the panes at the fringes are
taken window by window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from penstock.aggregates.extremes import GREATEST, LEAST
from penstock.logical.window import ROWS, Window
from penstock.relations.closing import slots_hold
from penstock.relations.relation import Relation
from penstock.relations.storage import StoredSource
from penstock.relations.storing import fineness
from penstock.runtime.merge.closer import closed_groups, joined_groups, lead_of
from penstock.runtime.merge.details.reduced import PartRows, Shares, reduced
from penstock.runtime.merge.estimates.made import estimated
from penstock.runtime.merge.estimates.picks import NO_PICKS, WindowPicks, picks_of
from penstock.runtime.merge.finish import finish
from penstock.runtime.merge.inputs import BlockRows, GroupRows, Piece, cells_of
from penstock.runtime.merge.items import FOREVER, Cut, Part, Reading, Wanting, by_slots, of_whole_groups
from penstock.runtime.merge.merge import Merge, Share, merge, of_pass
from penstock.runtime.merge.once import MergedOnce, Stacked
from penstock.runtime.merge.ordering import Ranked, fewer_rows, first_rows
from penstock.runtime.merge.rolling.passes import Telling
from penstock.runtime.merge.tally import Tally, per_window, tally
from penstock.runtime.merge.whole import group_of_nothing
from penstock.runtime.meter import FINISH, ROLL, Meter
from penstock.sharing.model.partial_groups import addresses_of, columns_of
from penstock.state.protocol import JoinCounts, SegmentRef
from penstock.state.segments import opened
from penstock.state.segments.groups import Groups
from penstock.state.segments.read import Block, Handles
from penstock.state.segments.vocabulary import Vocabulary

Array = np.ndarray
Finished = tuple[Ranked, tuple[Array, Array]]  # rows, and the records of each window that were read
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


@dataclass(frozen=True)
class Merged:
    """The finished result rows of a query in an item, the account of its windows, and the stored relation that is
    charged with it; of a join, its work."""

    query: str
    table: pa.Table
    tally: Tally
    relation: str = ""
    counts: JoinCounts | None = None


def merge_item(reading: Reading, wanting: Sequence[Wanting], cut: Cut, segments: TaskSegments) -> Iterator[Merged]:
    """Merge one item and finish its queries, one after the other; in passes where it has some."""
    bounds = window_bounds(reading, cut, segments)
    picks = window_picks(reading.picks, reading.window, cut, segments)
    asked = [part.wanted for one in wanting for part in one.parts]
    telling = telling_of(reading, cut, asked, segments)

    def merged_once(turn: int, share: Cut = cut) -> MergedOnce:
        def window(source: StoredSource) -> Window:
            return reading.over(source.relation.name)

        placing = any(one.details for one in wanting)
        return MergedOnce(
            Share(turn, share.passes, partial=share.partial),
            lambda source, taken: merge_windows(window(source), source, share, segments, taken),
            lambda source, taken: stacked(window(source), source, share, segments, taken, placing),
            placing,
            asked,
            None if placing else telling,
            segments.meter,
        )

    def shares(whole: Cut, part: Part) -> list[Callable[[], PartRows]]:
        """Passes over the rows of a part, each with some of them: by slots where these have them whole."""
        read = [source.relation for source in part.sources]
        turns = (replace(whole, turn=turn) for turn in range(whole.passes))
        cuts = by_slots(whole, whole.passes) if slots_hold(part.wanted, read) else turns
        return [partial(part_rows, part, partial(merged_once, one.turn or 0, one)) for one in cuts]

    def detailed(one: Wanting, whole: Cut) -> Finished:
        """Of slots that have all that their groups are made of."""
        if whole.passes == 1:
            return one_pass(one, merged_once(0, whole))
        groups = joined_groups([make().rows for make in shares(whole, one.groups)], one.groups.wanted)
        return finished(one, groups, partial(shares, whole))

    def one_pass(one: Wanting, merged: MergedOnce) -> Finished:
        if reading.window.whole and not one.query.keys and not cut.rows:
            groups = group_of_nothing(one.groups.wanted)
        else:
            with segments.meter.part(one.charged, ROLL):  # but for what is merged
                groups = closed_groups(merged, one.groups.sources, one.groups.wanted)
        return finished(one, groups, lambda part: [partial(part_rows, part, lambda: merged)])

    def finished(one: Wanting, groups: Groups, shares: Shares) -> Finished:
        wanted = one.groups.wanted
        cells, shown = len(groups) * columns_of(wanted), len(groups) * addresses_of(wanted)
        segments.meter.count(one.charged, closed=1, finished=len(groups), cells=cells, shown=shown)
        with segments.meter.part(one.charged, FINISH):
            return made(one, groups, shares)

    def made(one: Wanting, groups: Groups, shares: Shares) -> Finished:
        if one.query.weighed:
            known, details = estimated(one, groups, shares, picks)
            ranked = finish(one.query, known.whole, bounds, details, None, known)
        else:
            details, listing = reduced(one, groups, shares)
            ranked = finish(one.query, groups, bounds, details, listing)
        return ranked, per_window(groups.panes, groups.count)

    def joined(one: Wanting, found: Iterable[Finished]) -> Merged:
        ranked, exacts = zip(*found, strict=True)
        with segments.meter.part(one.charged, FINISH):
            rows = first_rows(one.query, ranked[0].joined(ranked[1:]) if len(ranked) > 1 else ranked[0])
            return Merged(one.query.name, rows.table, tally(exacts, rows.windows, bounds.of, picks), one.charged)

    # The coarse ones from what the fine ones made.
    ordered = sorted(wanting, key=lambda one: -fineness(one.groups.wanted))
    if ordered[0].details and cut.passes > 1:  # a pass may have but some rows of a group
        for one in ordered:
            wholes = [cut] if one.scattered else of_whole_groups(cut, cut.passes)
            each = (detailed(one, whole) for whole in wholes)
            yield joined(one, [(fewer_rows(one.query, ranked), exact) for ranked, exact in each])
        return
    if cut.passes == 1 or cut.turn is not None:
        merged = merged_once(cut.turn or 0)
        for one in by_lead(merged, ordered):
            yield joined(one, [one_pass(one, merged)])
        return
    if cut.partial:
        parts: dict[str, list[Groups]] = {}
        for turn in range(cut.passes):
            merged = merged_once(turn)
            for one in by_lead(merged, ordered):
                groups = closed_groups(merged, one.groups.sources, one.groups.wanted)
                parts.setdefault(one.query.name, []).append(groups)
        for one in ordered:
            groups = joined_groups(parts.pop(one.query.name), one.groups.wanted)
            yield joined(one, [finished(one, groups, lambda part: [])])
        return
    found: dict[str, list[Finished]] = {}
    for turn in range(cut.passes):  # the groups of a pass are gone before those of the next one come
        merged = merged_once(turn)
        for one in by_lead(merged, ordered):
            ranked, exact = one_pass(one, merged)
            found.setdefault(one.query.name, []).append((fewer_rows(one.query, ranked), exact))
    for one in ordered:
        yield joined(one, found[one.query.name])


def by_lead(merged: MergedOnce, ordered: Sequence[Wanting]) -> Sequence[Wanting]:
    """Queries that need stored rows in the same order, or the same rows of a pass, follow each other."""
    leads: dict[str, list[Wanting]] = {}
    for one in ordered:
        leads.setdefault(lead_of(merged, one.groups), []).append(one)
    return [one for same in leads.values() for one in same]


def telling_of(reading: Reading, cut: Cut, asked: Sequence[Relation], segments: TaskSegments) -> Telling | None:
    """What tells the rows of passes over one relation; where several are read, the whole key of a query does."""
    if cut.passes == 1 or len(reading.sources) != 1:
        return None
    (source,) = reading.sources
    blocks = list(segments.blocks(source.relation.name, source.storages))
    return Telling(source.relation, blocks, cut.passes, asked)


def part_rows(part: Part, merged: Callable[[], MergedOnce]) -> PartRows:
    """What a share has of a part; what it has merged for that is gone before the next begins."""
    once = merged()
    rows = closed_groups(once, part.sources, part.wanted)
    return PartRows(rows, partial(once.place, rows))


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
