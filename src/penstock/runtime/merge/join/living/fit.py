"""Which joins go the quick way: said by the query and by what is stored, so the driver knows it as well.

Taken are two streams by time, without tables, subqueries and conditions on pairs, whose aggregates are whole numbers.
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.aggregates.base import State
from penstock.aggregates.extremes import Extreme
from penstock.aggregates.registry import ACCUMULATORS
from penstock.logical.query import Query
from penstock.relations.joining import side_of
from penstock.relations.relation import Relation, attribute_parts
from penstock.runtime.merge.join.reading import JoinReading, SideReading

ADDED = ("count", "sum")  # kinds of states that are numbers, and add up
WORDS = 16  # of a row while it is joined: numbers of key, group and life, lists, and what they are made of


def takes(query: Query, reading: JoinReading, parts: Iterable[Relation]) -> bool:
    """Whether a join that is finished from these relations goes the quick way; what values are like may forbid it."""
    join = query.join
    assert join is not None
    if len(join.sides) != 2 or join.tables or join.tests or join.pairs is not None or reading.window.whole:
        return False
    return all(map(_is_plain, reading.sides)) and all(_is_simple(query, wanted) for wanted in parts)


def _is_plain(one: SideReading) -> bool:
    """Whether what is stored has the attributes as the side wants them: no prefix is to be cut, also not where a finer
    one of the same column stands beside it."""
    wanted = {part for attribute in one.wanted.attributes for part in attribute_parts(attribute)}
    return not one.side.window.counted and all(wanted <= set(source.relation.parts) for source in one.sources)


def _is_simple(query: Query, wanted: Relation) -> bool:
    """Whether a relation of joined rows has attributes and states of one side each, which are whole numbers."""
    join = query.join
    assert join is not None
    if any(side_of(one, join) is None for one in (*wanted.attributes, *wanted.arguments)):
        return False
    forms = wanted.shape.forms(wanted.states)
    return all(not form.floating and not form.coded and sign_of(state) is not None for state, form in forms.items())


def sign_of(state: State) -> int | None:
    """How a state folds: it adds up (0), is the least (-1) or the greatest (1) value; None: it is more than that."""
    accumulator = ACCUMULATORS[state.kind]
    if isinstance(accumulator, Extreme):
        return accumulator.sign
    return 0 if state.kind in ADDED else None


def living_bytes(reading: JoinReading) -> int:
    """Memory that a row takes while it is joined, roughly."""
    return 8 * (WORDS + 3 * max(len(one.wanted.states) for one in reading.sides))
