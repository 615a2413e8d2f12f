"""FINISH: merged groups into rows of the result: HAVING, select list, window_start and window_end.

Everything is a column at a time; only what the select list and HAVING name is computed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa

from penstock.aggregates.base import FinishedValues
from penstock.logical.expressions import (
    ITEM,
    Expression,
    Listed,
)
from penstock.logical.query import Order, Query
from penstock.runtime.expressions.evaluate import evaluate, truth
from penstock.runtime.expressions.operands import array_of
from penstock.runtime.merge.estimates.estimated import Estimated
from penstock.runtime.merge.results.finisher import NO_DETAILS, Details, Finisher, Listing, WindowBounds, dictionary_of
from penstock.runtime.merge.results.ordering import Ranked
from penstock.runtime.merge.results.tally import window_codes
from penstock.sinks.schema import TIME, result_schema
from penstock.state.segments.groups import Groups

Array = np.ndarray


def finish(
    query: Query,
    groups: Groups,
    bounds: WindowBounds,
    details: Details = NO_DETAILS,
    listing: Listing | None = None,
    estimated: Estimated | None = None,
) -> Ranked:
    """The result rows of these groups; every group must be complete. Where delays are promised the groups are whole by
    estimate, and `estimated` tells what was read of them."""
    having = query.having
    if having is not None and not details and listing is None and estimated is None and not _may_be_outside(groups):
        groups, having = _only(having, query, groups, bounds), None
    if listing is not None:
        details = {aggregate: partial(_repeated, made, listing.at) for aggregate, made in details.items()}
        groups = groups.take(listing.at)
    columns, schema = Finisher(query, groups, details, listing, bounds, estimated), result_schema(query)
    arrays = [columns.arrow(output.expression, schema.types[n]) for n, output in enumerate(query.select)]
    if not query.window.whole:
        arrays += _times(groups, bounds)
    table = pa.Table.from_arrays(arrays, schema.names)
    ties = [*(Order(key.attribute) for key in query.keys), *_items(query, listing)]
    order = [*query.order, *ties] if query.order or query.limit is not None else []
    scope = columns.scope
    by = tuple((evaluate(o.expression, scope), o.descending) for o in order)
    ranked = Ranked(table, groups.panes, by, groups.runs)
    if having is not None:
        ranked = ranked.take(np.flatnonzero(truth(having, scope)))
    if query.per_tuple:
        ranked = ranked.take(np.repeat(np.arange(scope.rows), groups.count))
    return ranked


def _only(having: Expression, query: Query, groups: Groups, bounds: WindowBounds) -> Groups:
    """The groups that HAVING keeps: no column is made of the others."""
    kept = truth(having, Finisher(query, groups, NO_DETAILS, bounds=bounds).scope)
    return groups if kept.all() else groups.take(np.flatnonzero(kept))


def _may_be_outside(groups: Groups) -> bool:
    """Whether a sum could be beyond its type: that ends the run, also where HAVING would not have kept the group."""
    return any(len(words) > 1 and words[0].dtype.kind == "i" for words in groups.states.values())


def _repeated(made: Callable[[], FinishedValues], at: Array) -> FinishedValues:
    """Of the group of each listed row."""
    found = made()
    return replace(found, values=found.values[at], valid=None if found.valid is None else found.valid[at])


def _items(query: Query, listing: Listing | None) -> list[Order]:
    """By the item that a row lists."""
    listed = (o.expression for o in query.select if isinstance(o.expression, Listed) and o.expression.what == ITEM)
    return [] if listing is None else [Order(expression) for expression in listed]


def _times(groups: Groups, bounds: WindowBounds) -> list[pa.Array]:
    """Start and end of each one's window, of which there are few."""
    windows, codes = window_codes(groups.panes, groups.runs)
    at = array_of(codes)
    # Arrow's casts look the kernel up by name, for each column again.
    return [dictionary_of(at, array_of(edge.astype(np.int64, copy=False)).view(TIME)) for edge in bounds.of(windows)]
