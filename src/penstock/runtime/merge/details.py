"""Details of groups: rows of a finer relation rolled up to distinct counts, percentiles and their like.

    groups of the query ┐
                        ├─► which group each row is of ─► values that count ─► squeezed, pass by pass ─► results
    merged finer rows ──┘

The groups and their details come from different relations, or from the same; they meet by their keys.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from penstock.aggregates.base import FinishedValues
from penstock.aggregates.detail import DetailFunction, DetailRows
from penstock.aggregates.registry import detail_of, function_of
from penstock.logical.expressions import Aggregate, Column, Computed, Prefix
from penstock.relations.component import null_component, value_component
from penstock.relations.relation import detail_relation
from penstock.runtime.merge.closer import closed_groups
from penstock.runtime.merge.finish import Details
from penstock.runtime.merge.items import Part, Wanting
from penstock.runtime.merge.merge import placed
from penstock.runtime.merge.once import MergedOnce
from penstock.runtime.merge.rollup import with_keys_of
from penstock.state.segments.groups import Groups

Array = np.ndarray


def reduced(wanting: Wanting, groups: Groups, shares: Sequence[Callable[[], MergedOnce]]) -> Details:
    """What the detailed aggregates of a query are in its groups; each share has some of the rows."""
    made = [one for one in wanting.query.aggregates if detail_of(one) is not None]
    found: dict[Aggregate, list[DetailRows]] = {aggregate: [] for aggregate in made}
    for merged in shares if made else ():
        share = merged()
        for part in wanting.details:
            of_part = [one for one in made if _is_of(one, part, wanting)]
            rows = closed_groups(share, part.sources, part.wanted)
            at = placed(wanting.groups.wanted, groups, with_keys_of(rows, wanting.groups.wanted))
            for aggregate in of_part:
                taken = _rows(aggregate, rows, at)
                found[aggregate].append(taken if len(shares) == 1 else _function(aggregate).squeeze(taken))
    return {aggregate: partial(_result, aggregate, rows, len(groups)) for aggregate, rows in found.items()}


def _function(aggregate: Aggregate) -> DetailFunction:
    function = function_of(aggregate)
    assert isinstance(function, DetailFunction)
    return function


def _is_of(aggregate: Aggregate, part: Part, wanting: Wanting) -> bool:
    """Whether an aggregate is made of the rows of this part."""
    return detail_relation(wanting.groups.wanted, aggregate).attributes == part.wanted.attributes


def _rows(aggregate: Aggregate, rows: Groups, at: Array) -> DetailRows:
    """The rows whose value is there, and for which the test is true."""
    detail = detail_of(aggregate)
    assert detail is not None
    column = _column(detail.attribute)
    taken = rows.components[null_component(column)] == 0
    if aggregate.test is not None:
        test = aggregate.test.name
        taken &= (rows.components[value_component(test)] != 0) & (rows.components[null_component(test)] == 0)
    numbers, counts = rows.components[value_component(column)], rows.count
    states = {state: rows.states[state] for state in detail.states if state in rows.states}
    if not taken.all():
        only = np.flatnonzero(taken)
        at, numbers, counts = at[only], numbers[only], counts[only]
        states = {state: tuple(word[only] for word in words) for state, words in states.items()}
    return DetailRows(at, numbers, counts, np.ones(len(at), np.int64), states)


def _column(attribute: Column | Prefix | Computed) -> str:
    return attribute.column.name if isinstance(attribute, Prefix) else attribute.name


def _result(aggregate: Aggregate, found: list[DetailRows], groups: int) -> FinishedValues:
    assert aggregate.argument is not None
    parameters = [parameter.value for parameter in aggregate.parameters]
    return _function(aggregate).reduce(_joined(found), groups, aggregate.argument.type, parameters)


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
