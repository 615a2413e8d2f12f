"""The rows that `frequent` gives: which values of a group are frequent enough, and how far their counts may be off."""

from __future__ import annotations

import numpy as np

from penstock.aggregates.details.frequent import DROPPED, SPARED
from penstock.aggregates.details.percentiles import ranks
from penstock.aggregates.registry import detail_of, parameters_of
from penstock.logical.expressions import Aggregate
from penstock.relations.component import null_component, value_component
from penstock.runtime.merge.details.pruning import column_of
from penstock.runtime.merge.finish import Listing
from penstock.state.segments.groups import Groups

Array = np.ndarray


def counted(aggregate: Aggregate, rows: Groups) -> Array:
    """The rows whose value is there, and for which the test is true."""
    detail = detail_of(aggregate)
    assert detail is not None
    taken: Array = rows.components[null_component(column_of(detail.attribute))] == 0
    if aggregate.test is not None:
        test = aggregate.test.name
        taken &= (rows.components[value_component(test)] != 0) & (rows.components[null_component(test)] == 0)
    return taken


def candidates(aggregate: Aggregate, rows: Groups, at: Array, groups: int) -> Groups:
    """Of some of the rows of all groups, those that are needed to say which are frequent in all."""
    support, error, _ = parameters_of(aggregate)
    if error:  # rare ones are gone already
        return rows
    taken = counted(aggregate, rows)
    number = np.bincount(at, np.where(taken, rows.count, 0), groups).astype(np.int64)
    return rows.take(np.flatnonzero(~taken | (rows.count >= ranks(number, support)[at])))


def listing_of(aggregate: Aggregate, rows: Groups, at: Array, groups: int) -> Listing:
    """Listed iff count + undercount ≥ sN, with N the group's values."""
    support, error, _ = parameters_of(aggregate)
    taken = counted(aggregate, rows)
    detail = detail_of(aggregate)
    assert detail is not None
    column = column_of(detail.attribute)
    number = np.bincount(at, np.where(taken, rows.count, 0), groups).astype(np.int64)
    short = np.zeros(len(rows), np.int64)
    if error and SPARED.state(column) in rows.states:
        ((spared,), (dropped,)) = (rows.states[one.state(column)] for one in (SPARED, DROPPED))
        number += np.bincount(at, dropped, groups).astype(np.int64)
        lost = np.bincount(at, np.where(taken, 0, spared), groups).astype(np.int64)
        short = lost[at] - spared
    listed = np.flatnonzero(taken & (rows.count + short >= ranks(number, support)[at]))
    return Listing(at[listed], rows.take(listed), rows.count[listed], short[listed])
