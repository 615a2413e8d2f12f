"""One item of a join: from the stored relations of its sides to result rows and the account of its windows.

A large item is taken in passes, each with some of the keys; groups that come from several passes are merged before they
are finished.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from penstock.logical.query import Query
from penstock.logical.window import Window
from penstock.relations.relation import Relation
from penstock.runtime.merge.closer import joined_groups
from penstock.runtime.merge.details.reduced import PartRows, reduced
from penstock.runtime.merge.finish import finish
from penstock.runtime.merge.items import Cut
from penstock.runtime.merge.join.combined import Joined
from penstock.runtime.merge.join.reading import JoinReading, JoinWanting
from penstock.runtime.merge.join.sides import read_sides
from penstock.runtime.merge.ordering import first_rows
from penstock.runtime.merge.tally import per_window, tally
from penstock.runtime.merge.whole import group_of_nothing
from penstock.runtime.merge.windows import Merged, TaskSegments
from penstock.state.segments.groups import Groups

Array = np.ndarray


@dataclass(frozen=True)
class JoinBounds:
    """An instant is the end of all windows; the result's begins where the first of them does. `landmark`: where windows
    until now begin, the first of several."""

    window: Window
    ranged: bool
    landmark: int | None

    def of(self, windows: Array) -> tuple[Array, Array]:
        ends = windows * self.window.slide + self.window.length
        if self.landmark is None:
            return ends - self.window.length, ends
        first = np.full(len(windows), self.landmark)
        return (np.minimum(first, ends - self.window.length) if self.ranged else first), ends


def join_bounds(reading: JoinReading) -> JoinBounds:
    landmarks = [side.landmark for side in reading.sides if side.landmark is not None]
    ranged = any(not window.landmark and not window.counted for window in (side.side.window for side in reading.sides))
    return JoinBounds(reading.window, ranged, min(landmarks, default=None))


def join_item(
    reading: JoinReading, wanting: Sequence[JoinWanting], cut: Cut, segments: TaskSegments
) -> Iterator[Merged]:
    """Join one item and finish its query."""
    (one,) = wanting
    query, bounds = one.query, join_bounds(reading)
    made: list[list[Groups]] = [[] for _ in one.parts]
    held: list[list[tuple[Array, Array]]] = [[] for _ in reading.sides]
    for turn in range(cut.passes):
        sides = read_sides(reading, cut, turn, segments)
        joined = Joined(query, sides)
        for part, found in zip(one.parts, made, strict=True):
            found.append(joined.groups(part.wanted))
        for side, counts in zip(sides, held, strict=True):
            counts.append(per_window(side.groups.panes, side.groups.count))
    windows, exact = _existing(held)
    groups, *details = (joined_groups(found, part.wanted) for found, part in zip(made, one.parts, strict=True))
    if not query.keys and not query.per_tuple:
        groups = _with_nothing(groups, one.groups.wanted, windows, query)
    rows_of = dict(zip(one.details, details, strict=True))
    values, listing = reduced(one, groups, lambda part: [lambda: PartRows(rows_of[part], lambda groups: None)])
    rows = first_rows(query, finish(query, groups, bounds, values, listing))
    yield Merged(query.name, rows.table, tally([(windows, exact)], rows.windows, bounds.of))


def _existing(held: Sequence[Sequence[tuple[Array, Array]]]) -> tuple[Array, Array]:
    """The instants at which every side holds a record, ascending, and the records of all sides there."""
    sides = [per_window(*(np.concatenate(parts) for parts in zip(*counts, strict=True))) for counts in held]
    windows = reduce(np.intersect1d, (numbers for numbers, _ in sides))
    exact = sum(
        (counts[np.searchsorted(numbers, windows)] for numbers, counts in sides), np.zeros(len(windows), np.int64)
    )
    return windows, exact


def _with_nothing(groups: Groups, wanted: Relation, windows: Array, query: Query) -> Groups:
    """Aggregates of everything give a row also where nothing was joined."""
    without = np.setdiff1d(np.zeros(1, np.int64) if query.window.whole else windows, groups.panes)
    if not len(without):
        return groups
    nothing = group_of_nothing(wanted).take(np.zeros(len(without), np.int64))
    nothing.panes = without
    return joined_groups([groups, nothing], wanted) if len(groups) else nothing
