"""Merge one item, and finish its queries. Runs in tasks, item after item.

An item is a range of windows and hash slots of queries that are read together, small enough for a task's memory
(`runtime.merge.items`). What is stored is read and merged once for all of them (`runtime.merge.windows`); each is then
finished from the merged groups, or from what is made of them (`runtime.merge.closer`).

Nothing here may be in a circle with what it has read or made: that would stay until the garbage collector comes, and
the next query would begin in memory that no cache holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa

from penstock.logical.window import Window
from penstock.relations.closing import slots_hold
from penstock.relations.relation import Relation
from penstock.relations.storage import StoredSource
from penstock.relations.storing import fineness
from penstock.runtime.merge.closer import closed_groups, joined_groups, lead_of
from penstock.runtime.merge.details.reduced import PartRows, Shares, reduced
from penstock.runtime.merge.estimates.made import estimated
from penstock.runtime.merge.estimates.picks import WindowPicks
from penstock.runtime.merge.items import Cut, Part, Reading, Wanting, by_slots, of_whole_groups
from penstock.runtime.merge.once import MergedOnce
from penstock.runtime.merge.results.finish import finish
from penstock.runtime.merge.results.ordering import Ranked, fewer_rows, first_rows
from penstock.runtime.merge.results.tally import Tally, per_window, tally
from penstock.runtime.merge.rolling.passes import Telling
from penstock.runtime.merge.shares import Share
from penstock.runtime.merge.whole import group_of_nothing
from penstock.runtime.merge.windows import Bounds, TaskSegments, merge_windows, stacked, window_bounds, window_picks
from penstock.runtime.meter import FINISH, ROLL
from penstock.sharing.model.partial_groups import addresses_of, columns_of
from penstock.state.protocol import JoinCounts
from penstock.state.segments.groups import Groups

Array = np.ndarray
Finished = tuple[Ranked, tuple[Array, Array]]  # rows, and the records of each window that were read


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
    item = item_of(reading, wanting, cut, segments)
    # The coarse ones from what the fine ones made.
    ordered = sorted(wanting, key=lambda one: -fineness(one.groups.wanted))
    if ordered[0].details and cut.passes > 1:  # a pass may have but some rows of a group
        return detailed(item, ordered)
    if cut.passes == 1 or cut.turn is not None:
        return in_one_pass(item, ordered)
    return of_parts(item, ordered) if cut.partial else in_passes(item, ordered)


@dataclass(frozen=True)
class Item:
    """What all queries of an item have in common. `asked` are all relations that groups are made of; `telling` says
    what tells the rows of a pass. `placing`: some query asks where rows have gone."""

    reading: Reading
    cut: Cut
    segments: TaskSegments
    bounds: Bounds
    picks: WindowPicks
    asked: tuple[Relation, ...]
    telling: Telling | None
    placing: bool

    def merged_once(self, turn: int, share: Cut) -> MergedOnce:
        """The rows of a pass."""
        return MergedOnce(
            Share(turn, share.passes, partial=share.partial),
            lambda source, taken: merge_windows(self._window(source), source, share, self.segments, taken),
            lambda source, taken: stacked(self._window(source), source, share, self.segments, taken, self.placing),
            self.placing,
            self.asked,
            None if self.placing else self.telling,
            self.segments.meter,
        )

    def _window(self, source: StoredSource) -> Window:
        return self.reading.over(source.relation.name)


def item_of(reading: Reading, wanting: Sequence[Wanting], cut: Cut, segments: TaskSegments) -> Item:
    asked = tuple(part.wanted for one in wanting for part in one.parts)
    return Item(
        reading,
        cut,
        segments,
        window_bounds(reading, cut, segments),
        window_picks(reading.picks, reading.window, cut, segments),
        asked,
        telling_of(reading, cut, asked, segments),
        any(one.details for one in wanting),
    )


def telling_of(reading: Reading, cut: Cut, asked: Sequence[Relation], segments: TaskSegments) -> Telling | None:
    """What tells the rows of passes over one relation; where several are read, the whole key of a query does."""
    if cut.passes == 1 or len(reading.sources) != 1:
        return None
    (source,) = reading.sources
    blocks = list(segments.blocks(source.relation.name, source.storages))
    return Telling(source.relation, blocks, cut.passes, asked)


# -- the queries of an item, one after the other


def in_one_pass(item: Item, ordered: Sequence[Wanting]) -> Iterator[Merged]:
    merged = item.merged_once(item.cut.turn or 0, item.cut)
    for one in by_lead(merged, ordered):
        yield joined(item, one, [one_pass(item, one, merged)])


def in_passes(item: Item, ordered: Sequence[Wanting]) -> Iterator[Merged]:
    """Each pass has whole groups; they are gone before those of the next one come."""
    found: dict[str, list[Finished]] = {}
    for turn in range(item.cut.passes):
        merged = item.merged_once(turn, item.cut)
        for one in by_lead(merged, ordered):
            ranked, exact = one_pass(item, one, merged)
            found.setdefault(one.query.name, []).append((fewer_rows(one.query, ranked), exact))
    for one in ordered:
        yield joined(item, one, found[one.query.name])


def of_parts(item: Item, ordered: Sequence[Wanting]) -> Iterator[Merged]:
    """Each pass has parts of few groups, which are then merged."""
    parts: dict[str, list[Groups]] = {}
    for turn in range(item.cut.passes):
        merged = item.merged_once(turn, item.cut)
        for one in by_lead(merged, ordered):
            groups = closed_groups(merged, one.groups.sources, one.groups.wanted)
            parts.setdefault(one.query.name, []).append(groups)
    for one in ordered:
        groups = joined_groups(parts.pop(one.query.name), one.groups.wanted)
        yield joined(item, one, [finished(item, one, groups, lambda part: [])])


def detailed(item: Item, ordered: Sequence[Wanting]) -> Iterator[Merged]:
    """Of slots that have all that their groups are made of."""
    for one in ordered:
        wholes = [item.cut] if one.scattered else of_whole_groups(item.cut, item.cut.passes)
        each = (of_slots(item, one, whole) for whole in wholes)
        yield joined(item, one, [(fewer_rows(one.query, ranked), exact) for ranked, exact in each])


def by_lead(merged: MergedOnce, ordered: Sequence[Wanting]) -> Sequence[Wanting]:
    """Queries that need stored rows in the same order, or the same rows of a pass, follow each other."""
    leads: dict[str, list[Wanting]] = {}
    for one in ordered:
        leads.setdefault(lead_of(merged, one.groups), []).append(one)
    return [one for same in leads.values() for one in same]


# -- one query


def one_pass(item: Item, one: Wanting, merged: MergedOnce) -> Finished:
    if item.reading.window.whole and not one.query.keys and not item.cut.rows:
        groups = group_of_nothing(one.groups.wanted)
    else:
        with item.segments.meter.part(one.charged, ROLL):  # but for what is merged
            groups = closed_groups(merged, one.groups.sources, one.groups.wanted)
    return finished(item, one, groups, lambda part: [partial(part_rows, part, lambda: merged)])


def of_slots(item: Item, one: Wanting, whole: Cut) -> Finished:
    if whole.passes == 1:
        return one_pass(item, one, item.merged_once(0, whole))
    groups = joined_groups([make().rows for make in shares(item, whole, one.groups)], one.groups.wanted)
    return finished(item, one, groups, partial(shares, item, whole))


def shares(item: Item, whole: Cut, part: Part) -> list[Callable[[], PartRows]]:
    """Passes over the rows of a part, each with some of them: by slots where these have them whole."""
    read = [source.relation for source in part.sources]
    turns = (replace(whole, turn=turn) for turn in range(whole.passes))
    cuts = by_slots(whole, whole.passes) if slots_hold(part.wanted, read) else turns
    return [partial(part_rows, part, partial(item.merged_once, one.turn or 0, one)) for one in cuts]


def part_rows(part: Part, merged: Callable[[], MergedOnce]) -> PartRows:
    """What a share has of a part; what it has merged for that is gone before the next begins."""
    once = merged()
    rows = closed_groups(once, part.sources, part.wanted)
    return PartRows(rows, partial(once.place, rows))


def finished(item: Item, one: Wanting, groups: Groups, parts: Shares) -> Finished:
    """The result rows of groups that are complete; `parts` has the rows of what else the query is made of."""
    wanted, meter = one.groups.wanted, item.segments.meter
    rows, spelled = len(groups), addresses_of(wanted)
    meter.count(one.charged, closed=1, finished=rows, cells=rows * columns_of(wanted))
    ordered = rows if one.query.order or one.query.limit is not None else 0
    meter.count(one.charged, spelled=spelled, shown=rows * spelled, ordered=ordered)
    with meter.part(one.charged, FINISH):
        return ranked_rows(item, one, groups, parts), per_window(groups.panes, groups.count, groups.runs)


def ranked_rows(item: Item, one: Wanting, groups: Groups, parts: Shares) -> Ranked:
    if one.query.weighed:
        known, details = estimated(one, groups, parts, item.picks)
        return finish(one.query, known.whole, item.bounds, details, None, known)
    details, listing = reduced(one, groups, parts)
    return finish(one.query, groups, item.bounds, details, listing)


def joined(item: Item, one: Wanting, found: Iterable[Finished]) -> Merged:
    """What all passes have of a query."""
    ranked, exacts = zip(*found, strict=True)
    with item.segments.meter.part(one.charged, FINISH):
        rows = first_rows(one.query, ranked[0].joined(ranked[1:]) if len(ranked) > 1 else ranked[0])
        counted = tally(exacts, rows.windows, item.bounds.of, item.picks, rows.runs)
        return Merged(one.query.name, rows.table, counted, one.charged)
