"""The rows that `frequent` gives: which values of a group are frequent enough, and how far their counts may be off."""

from __future__ import annotations

import numpy as np

from penstock.aggregates.details.frequent import DROPPED, SPARED
from penstock.aggregates.details.percentiles import ranks
from penstock.aggregates.registry import detail_of, parameters_of
from penstock.logical.expressions import Aggregate
from penstock.logical.query import column_of
from penstock.relations.component import null_component, value_component
from penstock.runtime.merge.results.finisher import Listing
from penstock.state.segments.groups import Groups

Array = np.ndarray


def _column(aggregate: Aggregate) -> str:
    detail = detail_of(aggregate)
    assert detail is not None
    return column_of(detail.attribute)


def counted(aggregate: Aggregate, rows: Groups) -> Array:
    """The rows whose value is there, and for which the test is true."""
    taken: Array = rows.components[null_component(_column(aggregate))] == 0
    if aggregate.test is not None:
        test = aggregate.test.name
        taken &= (rows.components[value_component(test)] != 0) & (rows.components[null_component(test)] == 0)
    return taken


def values_of(aggregate: Aggregate, rows: Groups, at: Array, groups: int) -> Array:
    """How many values each group has in these rows, those that were left out as well."""
    number = np.bincount(at, np.where(counted(aggregate, rows), rows.count, 0), groups).astype(np.int64)
    state = DROPPED.state(_column(aggregate))
    if state in rows.states:
        number += np.bincount(at, rows.states[state][0], groups).astype(np.int64)
    return number


def candidates(aggregate: Aggregate, rows: Groups, at: Array, number: Array) -> Groups:
    """Of some of the rows of all groups, those that may be frequent in all; `number`: the groups' values in them."""
    support, error, _ = parameters_of(aggregate)
    if error:  # rare ones are gone already, and the others carry what that took
        return rows
    return rows.take(np.flatnonzero(counted(aggregate, rows) & (rows.count >= ranks(number, support)[at])))


def listing_of(aggregate: Aggregate, rows: Groups, at: Array, number: Array) -> Listing:
    """Listed iff count + undercount ≥ sN, with N the `number` of the group's values."""
    support, error, _ = parameters_of(aggregate)
    taken, column, groups = counted(aggregate, rows), _column(aggregate), len(number)
    short = np.zeros(len(rows), np.int64)
    if error and SPARED.state(column) in rows.states:
        (spared,) = rows.states[SPARED.state(column)]
        lost = np.bincount(at, np.where(taken, 0, spared), groups).astype(np.int64)
        short = lost[at] - spared
    listed = np.flatnonzero(taken & (rows.count + short >= ranks(number, support)[at]))
    return Listing(at[listed], rows.take(listed), rows.count[listed], short[listed])
