"""What the groups of a task cost behind their leaves: written, merged (seed smap's c2, as far as it is the HFTA's).

A task hands on each group of a stored relation once, whatever tables stand before the leaf: how many there are follows
from what is stored, not from the tables. So this is the same for all trees over the same relations, and no part of
their price; it decides what to store.

    an entry that arrives at a leaf    `Costs.insert_at`, and a fold for each state      (sharing.model.engine_problem)
    a group of a task                  `Costs.segment` and `Costs.merge`, by its columns
    a stored relation, in each task    `Costs.block`
    a row of a result                  `Costs.finish`
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from penstock.aggregates.registry import planned_words
from penstock.relations.relation import Relation
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


def behind(kept: Iterable[tuple[Relation, float]], rows: float, costs: Costs) -> Behind:
    """Of stored relations, each with its groups in a task of so many records. A pane of windows that overlap is merged
    once for most of them; each is counted once."""
    partials = segment = merge = 0.0
    for relation, groups in kept:
        each, columns = groups / rows, columns_of(relation)
        partials += each
        segment += each * costs.segment.of(columns) + costs.block / rows
        merge += each * costs.merge.of(columns)
    return Behind(partials, segment, merge)
