"""One item of a join: from the stored relations of its sides to result rows and the account of its windows.

A large item is cut into parts, each with some of the keys or some of the rows; their groups are merged before they are
finished (`spread`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from penstock.logical.window import Window
from penstock.relations.relation import Relation
from penstock.runtime.merge.closer import joined_groups
from penstock.runtime.merge.counting import Work
from penstock.runtime.merge.details.reduced import PartRows, reduced
from penstock.runtime.merge.estimates.made import estimated
from penstock.runtime.merge.estimates.picks import NO_PICKS, WindowPicks
from penstock.runtime.merge.item import Merged
from penstock.runtime.merge.items import Cut, Part
from penstock.runtime.merge.join.combined import Joined, finer_relation
from penstock.runtime.merge.join.living.fit import takes
from penstock.runtime.merge.join.living.folding import TooManyPlaces
from penstock.runtime.merge.join.living.joined import LivingJoin
from penstock.runtime.merge.join.reading import JoinReading, JoinWanting
from penstock.runtime.merge.join.semi import Tests, read_inner
from penstock.runtime.merge.join.sides import read_sides
from penstock.runtime.merge.results.finish import finish
from penstock.runtime.merge.results.ordering import first_rows
from penstock.runtime.merge.results.tally import per_window, tally
from penstock.runtime.merge.whole import group_of_nothing
from penstock.runtime.merge.windows import TaskSegments, window_picks
from penstock.state.protocol import JoinCounts
from penstock.state.segments.groups import Groups

Array = np.ndarray
NOTHING_HELD = np.empty(0, np.int64), np.empty(0, np.int64)


@dataclass(frozen=True)
class JoinBounds:
    """An instant is the end of all windows; the result's begins where the first of FROM does. `landmark`: where windows
    until now begin, the first of several. Where there are only last records, it begins a slide before."""

    window: Window
    ranged: bool
    landmark: int | None
    timed: bool = True

    def of(self, windows: Array) -> tuple[Array, Array]:
        ends = windows * self.window.slide + self.window.length
        if self.landmark is None:
            return ends - (self.window.length if self.timed else self.window.slide), ends
        first = np.full(len(windows), self.landmark)
        return (np.minimum(first, ends - self.window.length) if self.ranged else first), ends


def join_bounds(reading: JoinReading) -> JoinBounds:
    landmarks = [side.landmark for side in reading.sides if side.landmark is not None]
    timed = [side.side.window for side in reading.sides if not side.side.window.counted]
    ranged = any(not window.landmark for window in timed)
    return JoinBounds(reading.window, ranged, min(landmarks, default=None), bool(timed))


def join_item(
    reading: JoinReading, wanting: Sequence[JoinWanting], cut: Cut, segments: TaskSegments
) -> Iterator[Merged]:
    """Join one item and finish its query."""
    (one,) = wanting
    part = joined_part(reading, one, cut, segments)
    windows, exact = existing([part.held], len(reading.sides))
    picks = join_picks(reading, cut, segments)
    yield replace(finished(one, part.groups, windows, exact, join_bounds(reading), picks), counts=part.work)


def join_picks(reading: JoinReading, cut: Cut, segments: TaskSegments) -> WindowPicks:
    """The picks of the one stream of a join whose delay is promised, by instant."""
    if reading.picks is None:
        return NO_PICKS
    window = reading.sides[0].side.window
    return window_picks(reading.picks, window, cut, segments, reading.shift(window))


@dataclass(frozen=True)
class JoinedPart:
    """What an item joins: groups of each relation that the query is finished from, and the records that each stream
    holds at each instant, as (instants, counts), those that EXISTS asks last; and its work."""

    groups: tuple[Groups, ...]
    held: tuple[tuple[Array, Array], ...]
    work: JoinCounts


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
    work = Work(one.query.name, reading, cut)
    try:
        living = LivingJoin.read(one.query, reading, cut, segments)
        found = [living.groups(part.wanted) for part in one.parts]
        groups = tuple(each for each in found if each is not None)
        return JoinedPart(groups, living.held, work.of_living(living, groups)) if len(groups) == len(found) else None
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
        early.work + late.work,
    )


def combined_part(reading: JoinReading, one: JoinWanting, cut: Cut, segments: TaskSegments) -> JoinedPart:
    """From combinations of the groups of all sides, instant by instant."""
    work = Work(one.query.name, reading, cut)
    sides = read_sides(reading, cut, cut.turn or 0, segments)
    inner = read_inner(reading, cut, cut.turn or 0, segments)
    counts = [per_window(side.groups.panes, side.groups.count) for side in (*sides, *inner)]
    if cut.passes > 1 and cut.turn:  # what has no key is there in every pass
        keyed = [bool(side.reading.side.key) for side in (*sides, *inner)]
        counts = [of if once else NOTHING_HELD for once, of in zip(keyed, counts, strict=True)]
    tests = Tests(one.query, inner)
    joined = Joined(one.query, tests.kept(sides), tests)
    groups = tuple(joined.groups(part.wanted) for part in one.parts)
    return JoinedPart(groups, tuple(counts), work.of_merged(sides, groups))


def finished(
    one: JoinWanting,
    found: Sequence[Groups],
    windows: Array,
    exact: Array,
    bounds: JoinBounds,
    picks: WindowPicks = NO_PICKS,
) -> Merged:
    """The result rows of joined groups, whole ones. Aggregates of everything have a row at every instant."""
    query, (groups, *details) = one.query, found
    if query.window.whole and not len(windows):  # that of all records is there, whatever it holds
        windows, exact = np.zeros(1, np.int64), np.zeros(1, np.int64)
    if not query.keys and not query.per_tuple:
        groups = _with_nothing(groups, one.groups.wanted, windows)
    rows_of = dict(zip(one.details, details, strict=True))

    def shares(part: Part) -> list[Callable[[], PartRows]]:
        return [lambda: PartRows(rows_of[part], lambda groups: None)]

    if query.weighed:
        known, values = estimated(one, groups, shares, picks)
        ranked = finish(query, known.whole, bounds, values, None, known)
    else:
        values, listing = reduced(one, groups, shares)
        ranked = finish(query, groups, bounds, values, listing)
    rows = first_rows(query, ranked)
    return Merged(query.name, rows.table, tally([(windows, exact)], rows.windows, bounds.of, picks))


def existing(parts: Iterable[Sequence[tuple[Array, Array]]], sides: int) -> tuple[Array, Array]:
    """The instants at which every side holds a record, ascending, and the records of all streams there; from what each
    part of the join holds of each. What comes after so many `sides` may hold nothing: EXISTS asks it."""
    streams = [per_window(*map(np.concatenate, zip(*of, strict=True))) for of in zip(*parts, strict=True)]
    windows = reduce(np.intersect1d, (numbers for numbers, _ in streams[:sides]))
    exact = np.zeros(len(windows), np.int64)
    for numbers, counts in streams:
        _, at, of = np.intersect1d(windows, numbers, assume_unique=True, return_indices=True)
        exact[at] += counts[of]
    return windows, exact


def _with_nothing(groups: Groups, wanted: Relation, windows: Array) -> Groups:
    """Aggregates of everything give a row also where nothing was joined."""
    without = np.setdiff1d(windows, groups.panes)
    if not len(without):
        return groups
    nothing = replace(group_of_nothing(wanted).take(np.zeros(len(without), np.int64)), panes=without)
    return joined_groups([groups, nothing], wanted) if len(groups) else nothing
