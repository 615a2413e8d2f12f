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

What a merge, a roll-up or a query takes of each item besides (`Costs.read`, `Costs.close`) is shared by the records of
a task: windows that close are cut into about as many items as there were tasks, but where all of them close at the end
of the stream.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from math import inf

from penstock.aggregates.base import State
from penstock.aggregates.registry import planned_words
from penstock.logical.expressions import Prefix
from penstock.logical.query import Attribute
from penstock.logical.types import Kind
from penstock.logical.window import Panes, Window
from penstock.relations.closing import Reader, RollUp, rolls_up
from penstock.relations.relation import APPEND, Relation
from penstock.relations.storing import Stored, fineness
from penstock.sharing.model.unit_costs import Costs

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
    up; in which windows, and how often a row is read for these."""

    relation: Relation
    groups: float
    rolled: bool = False
    window: Window | None = None
    read: float = 1.0

    @property
    def times(self) -> float:
        """How often it is rolled up from a row: what is rolled up pane by pane is then merged into windows."""
        return self.read + (0.0 if self.window is None or self.window.tumbling else 1.0)


@dataclass(frozen=True)
class Handed:
    """A stored relation, its groups in a task (or its records, where they are appended), what is made of them, and how
    often they are merged first; for so many different windows."""

    relation: Relation
    groups: float
    made: tuple[Made, ...] = ()
    merged: float = 1.0
    windows: int = 1


def columns_of(relation: Relation) -> int:
    """Columns of a relation that differ from group to group: its attributes, count(*), and words of states that are
    neither NULL nor wide."""
    return len(relation.attributes) + 1 + sum(words_of([relation]).values())


def words_of(relations: Iterable[Relation]) -> dict[State, int]:
    """Words of all states of some relations."""
    return {s: planned_words(s, one.types[s.column].kind) for one in relations for s in one.states}


def addresses_of(relation: Relation) -> int:
    """Its attributes that are addresses, or prefixes of such."""
    columns = (one.column.name if isinstance(one, Prefix) else one.name for one in relation.attributes)
    return sum(relation.types[column].kind is Kind.INET for column in columns)


def behind(kept: Iterable[Handed], rows: float, costs: Costs, items: float = 1.0) -> Behind:
    """Of stored relations, in a task of so many records, for which windows close in so many items."""
    costs = replace(costs, read=items * costs.read, close=items * costs.close)
    partials = segment = merge = roll = finish = fresh = 0.0
    for one in kept:
        columns = columns_of(one.relation)
        partials += one.groups
        fresh += one.groups * costs.fresh if one.relation.table != APPEND else 0.0
        segment += one.groups * costs.segment.of(columns) + costs.block
        merge += one.merged * one.groups * costs.merge.of(columns) + (one.windows * costs.read if one.merged else 0.0)
        roll += _rolled(one, costs)
        finish += sum(made.groups * finishing(made.relation, costs) + costs.close for made in one.made)
    return Behind(partials / rows, segment / rows, merge / rows, roll / rows, finish / rows, fresh / rows)


def finishing(relation: Relation, costs: Costs) -> float:
    """Of a row of a result."""
    return costs.finish * columns_of(relation) + costs.shown * addresses_of(relation)


def _rolled(one: Handed, costs: Costs) -> float:
    """Each query from the fewest rows that have what it needs: those that are stored, or groups that were made of them
    for another one of the same windows."""
    spent, sources = 0.0, dict[Window | None, list[_Source]]()
    for made in sorted((made for made in one.made if made.rolled), key=lambda made: -fineness(made.relation)):
        same = sources.setdefault(made.window, [_Source(one.relation, one.groups, set())])
        fine = [source for source in same[1:] if rolls_up(source.relation, made.relation)]
        source = min([same[0], *fine], key=lambda source: source.rows)
        each = rolling(made.times, made.read, len(source.code(made.relation)), costs)
        spent += source.rows * each + grouping(made, costs)
        same.append(_Source(made.relation, made.groups, set()))
    return spent


@dataclass(frozen=True)
class _Source:
    """Rows, and which of their attributes have codes by now."""

    relation: Relation
    rows: float
    coded: set[Attribute]

    def code(self, wanted: Relation) -> set[Attribute]:
        """Those that this needs and that have none yet: now they do."""
        more = {one for one in wanted.attributes if one not in self.coded}
        self.coded.update(more)
        return more


def rolling(rolled: float, read: float, attributes: int, costs: Costs) -> float:
    """Of a row that is read so often, and that queries are rolled up from so often."""
    return costs.rolled.row * rolled + costs.rolled.column * attributes * read


def grouping(made: Made, costs: Costs) -> float:
    """Of the groups that come out of a roll-up, and of the roll-up itself."""
    return made.read * made.groups * columns_of(made.relation) * costs.grouped + costs.read


def readings(window: Window, panes: Panes, turns: float) -> float:
    """How often a row is read: by each batch that closes a window which holds its pane. A task goes through so many
    `turns` of the panes."""
    slides = max(1.0, turns * panes.slide / window.slide)
    return 1.0 + (window.length / window.slide - 1.0) / slides if window.length > window.slide else 1.0


def read_for(windows: Collection[Window], panes: Panes, turns: float) -> tuple[float, float]:
    """How often queries of such windows are rolled up from a row, and how often it is read for that. Those whose
    windows are the same are together; what is rolled up pane by pane is then merged into windows that overlap."""
    times = {window: readings(window, panes, turns) for window in windows}
    rolled = sum(times[window] + (0.0 if window.tumbling else 1.0) for window in windows)
    return rolled, sum(times.values())


def merged_for(windows: Iterable[Window], panes: Panes, turns: float) -> float:
    """How often a row is merged for windows that need groups: of long ones coarser panes are read."""
    return max((min(LEVELS, readings(one, panes, turns)) for one in windows if one.range is not None), default=1.0)


def handed(
    kept: Stored, groups: Callable[[Relation], float], rows: float, turns: Callable[[Relation], float] = lambda _: inf
) -> Iterator[Handed]:
    """What tasks of so many records hand on of these relations; they go through so many `turns` of the panes. `groups`
    also tells those of relations that queries are rolled up to."""
    for relation in filter(lambda one: one.booked, kept.relations):
        readers, stacked, turned = kept.reading(relation.name), united(kept, relation), turns(relation)
        windows = [reader.window for reader in readers if not reader.window.counted]
        made = tuple(
            _made(reader, groups, readings(reader.window, relation.panes, turned) if stacked else 1.0)
            if isinstance(reader.closing, RollUp)
            else Made(relation, groups(relation))
            for reader in readers
            if reader.closing.relation == relation.name and not reader.joined
        )
        many = rows if relation.table == APPEND else groups(relation)
        merged = 0.0 if stacked else merged_for(windows, relation.panes, turned)
        yield Handed(relation, many, made, merged, len({reader.window for reader in readers}) or 1)


def _made(reader: Reader, groups: Callable[[Relation], float], read: float) -> Made:
    """What a query is rolled up to."""
    assert isinstance(reader.closing, RollUp)
    to = reader.closing.to
    return Made(to, groups(to), True, reader.window, read)


def united(kept: Stored, relation: Relation) -> bool:
    """Whether all that is made of a relation is rolled up from its rows, as they are stored."""
    readers = kept.reading(relation.name)
    return bool(readers) and all(
        isinstance(one.closing, RollUp) and not one.details and not one.joined and not one.window.landmark
        for one in readers
    )
