"""Details of groups: rows of a finer relation rolled up to distinct counts, percentiles and their like.

    groups of the query ┐
                        ├─► which group each row is of ─► values that count ─► squeezed, pass by pass ─► results
    merged finer rows ──┘

The groups and their details come from different relations, or from the same; they meet by their keys.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np

from penstock.aggregates.base import FinishedValues
from penstock.aggregates.count import multiplied
from penstock.aggregates.details.function import DetailFunction, DetailRows
from penstock.aggregates.registry import detail_of, function_of, listed_of, parameters_of
from penstock.logical.expressions import Aggregate, Column
from penstock.logical.query import Query, column_of
from penstock.relations.component import value_component
from penstock.relations.relation import detail_relation
from penstock.runtime.merge.closer import joined_groups
from penstock.runtime.merge.details.listing import candidates, counted, listing_of, values_of
from penstock.runtime.merge.items import Part
from penstock.runtime.merge.merge import placed
from penstock.runtime.merge.results.finisher import Details, Listing
from penstock.runtime.merge.rolling.rollup import with_keys_of
from penstock.state.segments.groups import Groups

Array = np.ndarray


class Detailed(Protocol):
    """A query with the relations that it is finished from: its groups, and finer ones."""

    @property
    def query(self) -> Query: ...
    @property
    def groups(self) -> Part: ...
    @property
    def details(self) -> tuple[Part, ...]: ...


class PartRows(NamedTuple):
    """Some rows of a part, and how to find which of the query's groups each is of, where that is known already."""

    rows: Groups
    place: Callable[[Groups], Array | None]


Shares = Callable[[Part], Sequence[Callable[[], PartRows]]]  # of a part: each has some of its rows


def reduced(
    wanting: Detailed, groups: Groups, shares: Shares, weighted: bool = False
) -> tuple[Details, Listing | None]:
    """What the detailed aggregates of a query are in its groups, and the rows that one of them gives. `weighted`: each
    record counts as often as it stands for."""
    weight = wanting.query.weight if weighted else None
    made = [one for one in wanting.query.aggregates if detail_of(one) is not None]
    listed = listed_of(made)
    found: dict[Aggregate, list[DetailRows]] = {aggregate: [] for aggregate in made if aggregate is not listed}
    items, number = list[Groups](), np.zeros(len(groups), np.int64)
    for part in wanting.details:
        of_part = [one for one in made if _is_of(one, part, wanting)]
        passes = shares(part) if of_part else ()
        for make in passes:
            rows, place = make()
            at = place(groups)
            at = placed(wanting.groups.wanted, groups, with_keys_of(rows, wanting.groups.wanted)) if at is None else at
            for aggregate in of_part:
                if aggregate is listed:
                    here = values_of(aggregate, rows, at, len(groups))
                    items.append(candidates(aggregate, rows, at, here))
                    number += here
                    continue
                taken = _rows(aggregate, rows, at, weight)
                found[aggregate].append(taken if len(passes) == 1 else _function(aggregate).squeeze(taken))
    results = {aggregate: partial(_result, aggregate, rows, len(groups)) for aggregate, rows in found.items()}
    return results, None if listed is None else _listing(listed, items, wanting, groups, number)


def _listing(aggregate: Aggregate, found: list[Groups], wanting: Detailed, groups: Groups, number: Array) -> Listing:
    (part,) = (one for one in wanting.details if _is_of(aggregate, one, wanting))
    rows = joined_groups(found, part.wanted)
    at = placed(wanting.groups.wanted, groups, with_keys_of(rows, wanting.groups.wanted))
    return listing_of(aggregate, rows, at, number)


def _function(aggregate: Aggregate) -> DetailFunction:
    function = function_of(aggregate)
    assert isinstance(function, DetailFunction)
    return function


def _is_of(aggregate: Aggregate, part: Part, wanting: Detailed) -> bool:
    """Whether an aggregate is made of the rows of this part."""
    one, other = detail_relation(wanting.groups.wanted, aggregate, wanting.query.weight), part.wanted
    return (one.attributes, one.loss) == (other.attributes, other.loss)


def _rows(aggregate: Aggregate, rows: Groups, at: Array, weight: Column | None) -> DetailRows:
    """The rows whose value is there, and for which the test is true; counted by `weight`, if that is given."""
    detail = detail_of(aggregate)
    assert detail is not None
    column, taken = column_of(detail.attribute), counted(aggregate, rows)
    numbers, counts = rows.components[value_component(column)], rows.count
    if weight is not None:
        counts = multiplied(counts, rows.components[value_component(weight.name)])
    states = {state: rows.states[state] for state in detail.states if state in rows.states}
    if not taken.all():
        only = np.flatnonzero(taken)
        at, numbers, counts = at[only], numbers[only], counts[only]
        states = {state: tuple(word[only] for word in words) for state, words in states.items()}
    return DetailRows(at, numbers, counts, np.ones(len(at), np.int64), states)


def _result(aggregate: Aggregate, found: list[DetailRows], groups: int) -> FinishedValues:
    assert aggregate.argument is not None
    return _function(aggregate).reduce(_joined(found), groups, aggregate.argument.type, parameters_of(aggregate))


def _joined(found: list[DetailRows]) -> DetailRows:
    if len(found) == 1:
        return found[0]
    states = {
        state: tuple(np.concatenate(words) for words in zip(*(rows.states[state] for rows in found), strict=True))
        for state in found[0].states
    }
    columns = zip(*((rows.at, rows.numbers, rows.counts, rows.weights) for rows in found), strict=True)
    at, numbers, counts, weights = (np.concatenate(parts) for parts in columns)
    return DetailRows(at, numbers, counts, weights, states)
