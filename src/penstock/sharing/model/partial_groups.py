"""What the groups of a task cost behind their leaves: written, merged (seed smap's c2, as far as it is the HFTA's).

A task hands on each group of a stored relation once, whatever tables stand before the leaf: how many there are follows
from what is stored, not from the tables. So this is the same for all trees over the same relations, and no part of
their price; it decides what to store.

    an entry that arrives at a leaf    `Costs.insert_at`, and a fold for each state      (sharing.model.engine_problem)
    a group of a task                  `Costs.segment` and `Costs.merge`, by its columns
    a row of a union                   `Costs.segment`, and `Costs.rolled` for each query and each of its attributes,
                                       as often as batches close a window that holds the row (`readings`)
    a stored relation, in each task    `Costs.block`
    a row of a result                  `Costs.finish`
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from math import inf

from penstock.aggregates.registry import planned_words
from penstock.logical.window import Panes, Window
from penstock.relations.closing import RollUp
from penstock.relations.relation import APPEND, Relation
from penstock.relations.storing import Stored
from penstock.sharing.model.unit_costs import Costs

LEVELS = 16.0  # panes that are read in place of those of a long window


@dataclass(frozen=True)
class Behind:
    """For each record of the stream: partial groups that tasks hand on, and nanoseconds of writing and of merging."""

    partials: float
    segment: float
    merge: float

    @property
    def cost(self) -> float:
        return self.segment + self.merge


def columns_of(relation: Relation) -> int:
    """Columns of a relation that differ from group to group: its attributes, count(*), and words of states that are
    neither NULL nor wide."""
    words = sum(planned_words(state, relation.types[state.column].kind) for state in relation.states)
    return len(relation.attributes) + 1 + words


@dataclass(frozen=True)
class Handed:
    """A stored relation, its groups in a task (or its records, where they are appended), how often queries are rolled
    up from a row, and how often a row is read for that; how often it is merged for others."""

    relation: Relation
    groups: float
    rolled: float = 0.0
    read: float = 0.0
    merged: float = 1.0


def behind(kept: Iterable[Handed], rows: float, costs: Costs) -> Behind:
    """Of stored relations, in a task of so many records."""
    partials = segment = merge = 0.0
    for one in kept:
        each, columns = one.groups / rows, columns_of(one.relation)
        partials += each
        segment += each * costs.segment.of(columns) + costs.block / rows
        merge += each * costs.merge.of(columns) * one.merged
        merge += each * rolling(one.rolled, one.read, len(one.relation.attributes), costs)
    return Behind(partials, segment, merge)


def rolling(rolled: float, read: float, attributes: int, costs: Costs) -> float:
    """Of a row that is read so often, and that queries are rolled up from so often."""
    return costs.rolled.row * rolled + costs.rolled.column * attributes * read


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
    """What tasks of so many records hand on of these relations; they go through so many `turns` of the panes."""
    for relation in filter(lambda one: one.booked, kept.relations):
        readers, panes, turned = kept.reading(relation.name), relation.panes, turns(relation)
        windows = [reader.window for reader in readers if not reader.window.counted]
        many = rows if relation.table == APPEND else groups(relation)
        if united(kept, relation):
            yield Handed(relation, many, *read_for(windows, panes, turned), 0.0)
        else:
            yield Handed(relation, many, merged=merged_for(windows, panes, turned))


def united(kept: Stored, relation: Relation) -> bool:
    """Whether all that is made of a relation is rolled up from its rows, as they are stored."""
    readers = kept.reading(relation.name)
    return bool(readers) and all(
        isinstance(one.closing, RollUp) and not one.details and not one.joined and not one.window.landmark
        for one in readers
    )
