"""What the groups of a task cost behind their leaves: written, merged or rolled up, finished (seed smap's c2, as far as
it is the HFTA's).

A task hands on each group of a stored relation once, whatever tables stand before the leaf: how many there are follows
from what is stored, not from the tables. So this is the same for all trees over the same relations, and no part of
their price; it decides what to store.

    an entry that arrives at a leaf    `Costs.insert_at`, and a fold for each state      (sharing.model.engine_problem)
    an entry that makes a group there  `Costs.fresh`
    a stored relation, in each task    `Costs.block`
    a group of a task                  `Costs.segment`, and `Costs.merge` by its columns, unless all that is made of it
                                       is rolled up from the rows as they are stored
    a row that is rolled up            `Costs.rolled`, for each query and for each attribute that was not coded before
    a group that comes out of that     `Costs.grouped`, for each of its columns
    a row of a result                  `Costs.finish` for each of its columns, `Costs.shown` for each address

What a merge, a roll-up, an attribute that is coded or a query takes of each item besides (`Costs.merging`, `read`,
`coding`, `close`, `spelled`) comes as often as windows that close are cut into items (`sharing.model.closings`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import inf, isinf

from penstock.aggregates.base import State
from penstock.aggregates.registry import planned_words
from penstock.logical.expressions import Expression, Prefix
from penstock.logical.query import Attribute
from penstock.logical.types import Kind
from penstock.logical.window import Panes, Window
from penstock.relations.closing import Reader, RollUp, rolls_up
from penstock.relations.relation import APPEND, Relation
from penstock.relations.storing import Stored, fineness
from penstock.sharing.model.closings import (
    merged_closings,
    rolled_bytes,
    rolled_closings,
    share_of,
    windows_of,
)
from penstock.sharing.model.unit_costs import Costs

MOST_HELD = 256e6  # bytes of an item, about: larger windows are cut
LEVELS = 16.0  # panes that are read in place of those of a long window


@dataclass(frozen=True)
class Behind:
    """For each record of the stream: partial groups that tasks hand on, and nanoseconds of writing, merging and rolling
    up, of finishing, which is the same whatever is stored, and of making the groups in their leaves."""

    partials: float
    segment: float
    merge: float
    roll: float = 0.0
    finish: float = 0.0
    fresh: float = 0.0

    @property
    def cost(self) -> float:
        """Up to the groups that queries are finished from."""
        return self.fresh + self.segment + self.merge + self.roll


@dataclass(frozen=True)
class Made:
    """What a query is finished from, as it would be stored by itself, its groups in a task, and whether they are rolled
    up; in which windows, how often a row is read for these, and in how many items they close for each task. `ordered`:
    results are put in order."""

    relation: Relation
    groups: float
    rolled: bool = False
    window: Window | None = None
    read: float = 1.0
    items: float = 1.0
    ordered: bool = False

    @property
    def shown(self) -> float:
        """In how many windows a group is, at most: those of panes that follow each other are mostly different."""
        window = self.window
        return 1.0 if window is None or window.range is None or window.counted else window.length / window.slide

    @property
    def times(self) -> float:
        """How often it is rolled up from a row: what is rolled up pane by pane is then merged into windows."""
        return self.read + (0.0 if self.window is None or self.window.tumbling else 1.0)


@dataclass(frozen=True)
class Handed:
    """A stored relation, its groups in a task (or its records, where they are appended), what is made of them, and how
    often they are merged first; in so many merges for each task. Closing takes so many bytes that were not `touched`
    before, for each task."""

    relation: Relation
    groups: float
    made: tuple[Made, ...] = ()
    merged: float = 1.0
    merges: float = 1.0
    touched: float = 0.0


def columns_of(relation: Relation) -> int:
    """Columns of a relation that differ from group to group: its attributes, count(*), and words of states that are
    neither NULL nor wide."""
    return len(relation.attributes) + 1 + sum(words_of([relation]).values())


def words_of(relations: Iterable[Relation]) -> dict[State, int]:
    """Words of all states of some relations."""
    return {
        s: planned_words(s, one.types[s.column].kind, s.column in one.lacking) for one in relations for s in one.states
    }


def addresses_of(relation: Relation) -> int:
    """Its attributes that are addresses, or prefixes of such."""
    columns = (one.column.name if isinstance(one, Prefix) else one.name for one in relation.attributes)
    return sum(relation.types[column].kind is Kind.INET for column in columns)


def behind(kept: Iterable[Handed], rows: float, costs: Costs) -> Behind:
    """Of stored relations, in a task of so many records."""
    partials = segment = merge = roll = finish = fresh = 0.0
    for one in kept:
        columns = columns_of(one.relation)
        partials += one.groups
        fresh += one.groups * costs.fresh if one.relation.table != APPEND else 0.0
        segment += one.groups * costs.segment.of(columns) + costs.block
        merge += _merged(one, costs)
        roll += _rolled(one, costs)
        finish += sum(finishing(made, costs) for made in one.made)
    return Behind(partials / rows, segment / rows, merge / rows, roll / rows, finish / rows, fresh / rows)


def finishing(made: Made, costs: Costs) -> float:
    """Of the rows of results, and of the query itself."""
    columns, texts = columns_of(made.relation), addresses_of(made.relation)
    each = costs.finish * columns + costs.shown * texts + costs.ordered * made.ordered
    rows = made.groups * made.shown * each
    return rows + made.items * (costs.close + costs.spelled * texts)


def _merged(one: Handed, costs: Costs) -> float:
    """Rows of windows that overlap are in no order of slots."""
    if not one.merged:
        return 0.0
    each = costs.merge if one.merged <= 1.0 else costs.overlapping
    rows = one.merged * one.groups * each.of(columns_of(one.relation))
    return rows + one.merges * costs.merging + one.touched * costs.touched


def _rolled(one: Handed, costs: Costs) -> float:
    """Each query from the fewest rows that have what it needs: those that are stored, or groups that were made of them
    for another one of the same windows."""
    spent, sources = 0.0 if one.merged else one.touched * costs.touched, dict[Window | None, list[_Source]]()
    for made in sorted((made for made in one.made if made.rolled), key=lambda made: -fineness(made.relation)):
        same = sources.setdefault(made.window, [_Source(one.relation, one.groups, set())])
        fine = [source for source in same[1:] if rolls_up(source.relation, made.relation)]
        # Of as many, those that were made last: groups of tasks are merged on the way, and become fewer.
        source = min([*reversed(fine), same[0]], key=lambda source: source.rows)
        attributes = source.code(made.relation)
        each = rolling(made.times, made.read, attributes, costs)
        spent += source.rows * each + made.items * attributes * costs.coding + grouping(made, costs)
        same.append(_Source(made.relation, min(made.groups, source.rows), set()))
    return spent


@dataclass(frozen=True)
class _Source:
    """Rows, and which of their attributes have codes by now; those that are chosen have codes of their own."""

    relation: Relation
    rows: float
    coded: set[tuple[Expression | None, Attribute]]

    def code(self, wanted: Relation) -> int:
        """How many this needs that have none yet: now they do."""
        before = len(self.coded)
        self.coded.update((wanted.choice.where, one) for one in wanted.attributes)
        return len(self.coded) - before


def rolling(rolled: float, read: float, attributes: int, costs: Costs) -> float:
    """Of a row that is read so often, and that queries are rolled up from so often."""
    return costs.rolled.row * rolled + costs.rolled.column * attributes * read


def grouping(made: Made, costs: Costs) -> float:
    """Of the groups that come out of a roll-up, and of the roll-up itself."""
    return made.read * made.groups * columns_of(made.relation) * costs.grouped + made.items * costs.read


def readings(window: Window, panes: Panes, moved: float) -> float:
    """How often a row is read: by each batch that closes a window which holds its pane. So many panes go by in a
    batch."""
    slides = max(1.0, windows_of(window, panes, moved))
    return 1.0 + (window.length / window.slide - 1.0) / slides if window.length > window.slide else 1.0


def read_for(windows: Collection[Window], panes: Panes, moved: float) -> tuple[float, float]:
    """How often queries of such windows are rolled up from a row, and how often it is read for that. Those whose
    windows are the same are together; what is rolled up pane by pane is then merged into windows that overlap."""
    times = {window: readings(window, panes, moved) for window in windows}
    rolled = sum(times[window] + (0.0 if window.tumbling else 1.0) for window in windows)
    return rolled, sum(times.values())


def merged_for(windows: Iterable[Window]) -> float:
    """How often a row is merged for windows that need groups: for each that holds it; of long ones coarser panes are
    read."""
    return max((min(LEVELS, one.length / one.slide) for one in windows if one.range is not None), default=1.0)


@dataclass(frozen=True)
class Pace:
    """How windows close: so many `tasks` in a batch, in which so many panes of a relation go by (infinitely many: each
    task closes every query once). `batches` there are until windows close: one, or where only the end of the stream
    closes them, all. A run has so many batches in `all`."""

    tasks: int = 1
    moved: Callable[[Relation], float] = lambda _: inf
    batches: float = 1.0
    all: float = inf


ALWAYS = Pace()


def handed(kept: Stored, groups: Callable[[Relation], float], rows: float, pace: Pace = ALWAYS) -> Iterator[Handed]:
    """What tasks of so many records hand on of these relations. `groups` also tells those of relations that queries are
    rolled up to."""
    booked = [(one, rows if one.table == APPEND else groups(one)) for one in kept.relations if one.booked]
    share = share_of(int(pace.tasks * sum(many for _, many in booked)), pace.tasks)
    for relation, many in booked:
        readers, stacked, moved = kept.reading(relation.name), united(kept, relation), pace.moved(relation)
        items = _items(relation, many, readers, pace, None if stacked else share)
        made = tuple(
            _made(reader, relation, groups, readings(reader.window, relation.panes, moved) if stacked else 1.0, items)
            for reader in readers
            if reader.closing.relation == relation.name and not reader.joined
        )
        windows = [reader.window for reader in readers if not reader.window.counted]
        merged = 0.0 if stacked else merged_for(windows)
        # Each worker touches the memory of an item once; as many items as there are tasks have all rows of a batch.
        held = min(MOST_HELD, many * pace.batches * rolled_bytes(relation)) if pace.batches < inf else 0.0
        yield Handed(relation, many, made, merged, sum(items.values()) if items else 1.0, held / pace.all)


def _made(
    reader: Reader, stored: Relation, groups: Callable[[Relation], float], read: float, items: Mapping[Window, float]
) -> Made:
    """What a query is finished from."""
    if isinstance(reader.closing, RollUp):
        to = reader.closing.to
        return Made(to, groups(to), True, reader.window, read, items[reader.window], reader.ordered)
    return Made(stored, groups(stored), False, reader.window, 1.0, items[reader.window], reader.ordered)


def _items(
    relation: Relation, many: float, readers: Collection[Reader], pace: Pace, share: float | None
) -> dict[Window, float]:
    """In how many items each window of a relation closes for each task: queries of the same windows do so together;
    without a `share`, all are rolled up from its rows."""
    found = {}
    for window, queries in Counter(reader.window for reader in readers).items():
        found[window] = _closings(window, queries, relation, many, pace, share) / pace.tasks / pace.batches
    return found


def _closings(window: Window, queries: int, relation: Relation, many: float, pace: Pace, share: float | None) -> float:
    """In how many items so many queries of the same windows close, whenever they do."""
    moved = pace.moved(relation) * pace.batches if pace.batches < inf else inf
    if isinf(moved) or window.landmark or window.counted or not window.slide:
        return float(pace.tasks)
    windows = windows_of(window, relation.panes, moved)
    rows = many * pace.tasks * pace.batches / windows if windows else 0.0
    if share is None:
        return rolled_closings(windows, queries, rows, len(relation.attributes), pace.tasks)
    return merged_closings(windows, rows, share * pace.batches)


def united(kept: Stored, relation: Relation) -> bool:
    """Whether all that is made of a relation is rolled up from its rows, as they are stored."""
    readers = kept.reading(relation.name)
    return bool(readers) and all(
        isinstance(one.closing, RollUp) and not one.details and not one.joined and not one.window.landmark
        for one in readers
    )
