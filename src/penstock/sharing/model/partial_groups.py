"""What the groups of a task cost behind their leaves: written, merged (seed smap's c2, as far as it is the HFTA's).

A task hands on each group of a stored relation once, whatever tables stand before the leaf: how many there are follows
from what is stored, not from the tables. So this is the same for all trees over the same relations, and no part of
their price; it decides what to store.

    an entry that arrives at a leaf    `Costs.insert_at`, and a fold for each state      (sharing.model.engine_problem)
    a group of a task                  `Costs.segment` and `Costs.merge`, by its columns
    a row of a union                   `Costs.segment`, and `Costs.rolled` for each query and each of its attributes
    a stored relation, in each task    `Costs.block`
    a row of a result                  `Costs.finish`
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from penstock.aggregates.registry import planned_words
from penstock.relations.closing import RollUp
from penstock.relations.relation import APPEND, Relation
from penstock.relations.storing import Stored
from penstock.sharing.model.unit_costs import Costs


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
    """A stored relation, its groups in a task (or its records, where they are appended), how many queries are rolled up
    from its rows, and whether its rows are merged for others."""

    relation: Relation
    groups: float
    rolled: int = 0
    merged: bool = True


def behind(kept: Iterable[Handed], rows: float, costs: Costs) -> Behind:
    """Of stored relations, in a task of so many records. A pane of windows that overlap is merged once for most of
    them; each is counted once."""
    partials = segment = merge = 0.0
    for one in kept:
        each, columns = one.groups / rows, columns_of(one.relation)
        partials += each
        segment += each * costs.segment.of(columns) + costs.block / rows
        merge += each * costs.merge.of(columns) if one.merged else 0.0
        merge += each * rolling(one.rolled, len(one.relation.attributes), costs)
    return Behind(partials, segment, merge)


def rolling(queries: int, attributes: int, costs: Costs) -> float:
    """Of a row that so many queries are rolled up from."""
    return costs.rolled.row * queries + costs.rolled.column * attributes if queries else 0.0


def handed(kept: Stored, groups: Callable[[Relation], float], rows: float) -> Iterator[Handed]:
    """What tasks of so many records hand on of these relations."""
    for relation in kept.relations:
        if relation.booked:
            readers = kept.reading(relation.name)
            rolled = sum(isinstance(reader.closing, RollUp) for reader in readers) if united(kept, relation) else 0
            yield Handed(relation, rows if relation.table == APPEND else groups(relation), rolled, not rolled)


def united(kept: Stored, relation: Relation) -> bool:
    """Whether all that is made of a relation is rolled up from its rows, as they are stored."""
    readers = kept.reading(relation.name)
    return bool(readers) and all(isinstance(one.closing, RollUp) and one.window.tumbling for one in readers)
