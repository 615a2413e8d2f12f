"""Joins that are too large for one task: parts are joined side by side, and their groups merged after that.

    part ──► groups of joined rows, as a segment; records that each side holds ─┐
    part ──► …                                                                  ├──► driver ──► merged, finished
                                                                                ┘
A group may come from every part. In these segments a pane is an instant.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.logical.window import Window
from penstock.relations.storage import StoredSource
from penstock.runtime.merge.closer import closed_groups
from penstock.runtime.merge.due import window_sizes
from penstock.runtime.merge.estimates.picks import listed_picks
from penstock.runtime.merge.item import Merged
from penstock.runtime.merge.items import TOGETHER, Cut, MergeItem, row_bytes, whole_windows
from penstock.runtime.merge.join.item import JoinBounds, existing, finished, join_bounds, join_picks, joined_part
from penstock.runtime.merge.join.reading import JoinReading, JoinWanting
from penstock.runtime.merge.once import MergedOnce
from penstock.runtime.merge.shares import Share
from penstock.runtime.merge.windows import TaskSegments, merge_windows
from penstock.runtime.settings import TaskSettings
from penstock.state.protocol import HeldCounts
from penstock.state.segments.read import Block
from penstock.state.segments.write import SegmentWriter

Array = np.ndarray


@dataclass(frozen=True)
class SpreadReading:
    """Joined parts: their instants with the records of all sides there, where windows begin, and the picks as (instant,
    weight, records)."""

    window: Window
    bounds: JoinBounds
    windows: tuple[int, ...]
    exact: tuple[int, ...]
    picks: tuple[tuple[int, int, int], ...] = ()

    @property
    def panes(self) -> Window:
        """Windows of one pane each, which is an instant."""
        return Window(self.window.slide, self.window.slide, self.window.axis)


def write_part(
    reading: JoinReading, one: JoinWanting, cut: Cut, segments: TaskSegments, writer: SegmentWriter
) -> HeldCounts:
    """Join a part, and write its groups; what its sides hold."""
    part = joined_part(reading, one, cut, segments)
    for relation, groups in zip((each.wanted for each in one.parts), part.groups, strict=True):
        if len(groups):
            writer.add(relation.name, groups, [], relation.slot_key)
            writer.end_run(groups.dictionaries)
    held = tuple((tuple(windows.tolist()), tuple(counts.tolist())) for windows, counts in part.held)
    picks = join_picks(reading, cut, segments)
    return HeldCounts(one.query.name, held, part.work, picks.listed)


def gathered_parts(reading: JoinReading, held: Iterable[HeldCounts]) -> SpreadReading:
    """All parts of a join together."""
    held = list(held)
    parts = [[(np.array(w, np.int64), np.array(c, np.int64)) for w, c in one.sides] for one in held]
    windows, exact = existing(parts, len(reading.sides))
    picks = tuple(sorted({pick for one in held for pick in one.picks}))
    return SpreadReading(reading.window, join_bounds(reading), tuple(windows.tolist()), tuple(exact.tolist()), picks)


def spread_items(
    number: int,
    reading: SpreadReading,
    one: JoinWanting,
    blocks: Sequence[Block],
    settings: TaskSettings,
    first_part: int,
) -> Iterator[MergeItem]:
    """Whole instants, as many as fit."""
    windows = np.array(reading.windows, np.int64)
    rows = window_sizes(reading.panes, windows, list(blocks))
    limit = max(1, settings.task_memory // max(row_bytes(part.wanted) for part in one.parts))
    for part, (first, beyond, size) in enumerate(whole_windows(windows, rows, limit, TOGETHER), first_part):
        yield MergeItem(number, (one.query.name,), Cut(part, first, beyond, 0, settings.slots, 0, 1, size))


def spread_item(
    reading: SpreadReading, wanting: Sequence[JoinWanting], cut: Cut, segments: TaskSegments
) -> Iterator[Merged]:
    """Merge the groups of all parts at some instants, and finish the query."""
    (one,) = wanting
    merged = MergedOnce(Share(), lambda source, share: merge_windows(reading.panes, source, cut, segments, share))
    groups = [closed_groups(merged, (StoredSource(part.wanted),), part.wanted) for part in one.parts]
    numbers, counts = np.array(reading.windows, np.int64), np.array(reading.exact, np.int64)
    mine = (numbers >= cut.first) & (numbers < cut.beyond)
    yield finished(one, groups, numbers[mine], counts[mine], reading.bounds, listed_picks(reading.picks))
