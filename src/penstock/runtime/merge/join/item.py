"""One item of a join: from the stored relations of its sides to result rows and the account of its windows.

A large item is cut into parts, each with some of the keys or some of the rows; their groups are merged before they are
finished (`spread`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from penstock.logical.window import Window
from penstock.relations.relation import Relation
from penstock.runtime.merge.closer import joined_groups
from penstock.runtime.merge.details.reduced import PartRows, reduced
from penstock.runtime.merge.finish import finish
from penstock.runtime.merge.items import Cut
from penstock.runtime.merge.join.combined import Joined, finer_relation
from penstock.runtime.merge.join.living.fit import takes
from penstock.runtime.merge.join.living.folding import TooManyPlaces
from penstock.runtime.merge.join.living.joined import LivingJoin
from penstock.runtime.merge.join.reading import JoinReading, JoinWanting
from penstock.runtime.merge.join.sides import read_sides
from penstock.runtime.merge.ordering import first_rows
from penstock.runtime.merge.tally import per_window, tally
from penstock.runtime.merge.whole import group_of_nothing
from penstock.runtime.merge.windows import Merged, TaskSegments
from penstock.state.segments.groups import Groups

Array = np.ndarray
NOTHING_HELD = np.empty(0, np.int64), np.empty(0, np.int64)


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
    part = joined_part(reading, one, cut, segments)
    windows, exact = existing([part.held])
    yield finished(one, part.groups, windows, exact, join_bounds(reading))


@dataclass(frozen=True)
class JoinedPart:
    """What an item joins: groups of each relation that the query is finished from, and the records that each side holds
    at each instant, as (instants, counts)."""

    groups: tuple[Groups, ...]
    held: tuple[tuple[Array, Array], ...]


def joined_part(reading: JoinReading, one: JoinWanting, cut: Cut, segments: TaskSegments) -> JoinedPart:
    """The groups of some instants; of a part with some of the keys, or some rows of the largest side."""
    part = living_part(reading, one, cut, segments) or combined_part(reading, one, cut, segments)
    if cut.slice:  # the other sides hold the same in every slice
        held = [of if number == reading.largest else NOTHING_HELD for number, of in enumerate(part.held)]
        return replace(part, held=tuple(held))
    return part


def living_part(reading: JoinReading, one: JoinWanting, cut: Cut, segments: TaskSegments) -> JoinedPart | None:
    """From rows that live at several instants, fewer of these at a time where they have too many groups; None: not
    this join."""
    if cut.passes > 1 or not takes(one.query, reading, [part.wanted for part in one.parts]):
        return None
    try:
        living = LivingJoin.read(one.query, reading, cut, segments)
        found = [living.groups(part.wanted) for part in one.parts]
        groups = tuple(each for each in found if each is not None)
        return JoinedPart(groups, living.held) if len(groups) == len(found) else None
    except TooManyPlaces:
        middle = (cut.first + cut.beyond) // 2
        if middle == cut.first:
            return None
    early, late = (
        living_part(reading, one, half, segments) for half in (replace(cut, beyond=middle), replace(cut, first=middle))
    )
    return None if early is None or late is None else _both(one, early, late)


def _both(one: JoinWanting, early: JoinedPart, late: JoinedPart) -> JoinedPart:
    """The same instants as one part."""
    parts = zip(one.parts, early.groups, late.groups, strict=True)
    held = zip(early.held, late.held, strict=True)
    return JoinedPart(
        tuple(joined_groups([a, b], finer_relation(one.query, part.wanted)) for part, a, b in parts),
        tuple((np.append(a[0], b[0]), np.append(a[1], b[1])) for a, b in held),
    )


def combined_part(reading: JoinReading, one: JoinWanting, cut: Cut, segments: TaskSegments) -> JoinedPart:
    """From combinations of the groups of all sides, instant by instant."""
    sides = read_sides(reading, cut, cut.turn or 0, segments)
    joined = Joined(one.query, sides)
    counts = tuple(per_window(side.groups.panes, side.groups.count) for side in sides)
    return JoinedPart(tuple(joined.groups(part.wanted) for part in one.parts), counts)


def finished(one: JoinWanting, found: Sequence[Groups], windows: Array, exact: Array, bounds: JoinBounds) -> Merged:
    """The result rows of joined groups, whole ones. Aggregates of everything have a row at every instant."""
    query, (groups, *details) = one.query, found
    if query.window.whole and not len(windows):  # that of all records is there, whatever it holds
        windows, exact = np.zeros(1, np.int64), np.zeros(1, np.int64)
    if not query.keys and not query.per_tuple:
        groups = _with_nothing(groups, one.groups.wanted, windows)
    rows_of = dict(zip(one.details, details, strict=True))
    values, listing = reduced(one, groups, lambda part: [lambda: PartRows(rows_of[part], lambda groups: None)])
    rows = first_rows(query, finish(query, groups, bounds, values, listing))
    return Merged(query.name, rows.table, tally([(windows, exact)], rows.windows, bounds.of))


def existing(parts: Iterable[Sequence[tuple[Array, Array]]]) -> tuple[Array, Array]:
    """The instants at which every side holds a record, ascending, and the records of all sides there; from what each
    part of the join holds of each side."""
    sides = [per_window(*map(np.concatenate, zip(*of, strict=True))) for of in zip(*parts, strict=True)]
    windows = reduce(np.intersect1d, (numbers for numbers, _ in sides))
    each = (counts[np.searchsorted(numbers, windows)] for numbers, counts in sides)
    return windows, sum(each, np.zeros(len(windows), np.int64))


def _with_nothing(groups: Groups, wanted: Relation, windows: Array) -> Groups:
    """Aggregates of everything give a row also where nothing was joined."""
    without = np.setdiff1d(windows, groups.panes)
    if not len(without):
        return groups
    nothing = group_of_nothing(wanted).take(np.zeros(len(without), np.int64))
    nothing.panes = without
    return joined_groups([groups, nothing], wanted) if len(groups) else nothing
