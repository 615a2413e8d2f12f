"""From the rows of a query, told apart by weight, to what it is finished from.

groups as read, rows by weight, picks of the windows ──► Estimated, details of all records
"""

from __future__ import annotations

from collections.abc import Callable

from penstock.relations.component import value_component
from penstock.runtime.merge.details.reduced import Detailed, PartRows, Shares, reduced
from penstock.runtime.merge.estimates.errors import Errors
from penstock.runtime.merge.estimates.estimated import Estimated
from penstock.runtime.merge.estimates.picks import WindowPicks
from penstock.runtime.merge.estimates.weights import PickedRows, joined_picks, picked_rows, weighted_groups
from penstock.runtime.merge.merge import placed
from penstock.runtime.merge.results.finisher import Details
from penstock.runtime.merge.rolling.rollup import with_keys_of
from penstock.state.segments.groups import Groups


def estimated(one: Detailed, groups: Groups, shares: Shares, picks: WindowPicks) -> tuple[Estimated, Details]:
    """Of a query whose groups are told apart by weight; and what its details are, by estimate."""
    picked = joined_picks(_picked(one, groups, make) for make in shares(one.details[0]))
    read, _ = reduced(one, groups, shares)
    errors = Errors(groups, picked, picks, one.query.join is not None)
    if picked is None:
        return Estimated(groups, read, groups, errors), read
    whole = weighted_groups(one.groups.wanted, groups, picked)
    weighted, _ = reduced(one, groups, shares, weighted=True)
    return Estimated(groups, read, whole, errors), weighted


def _picked(one: Detailed, groups: Groups, make: Callable[[], PartRows]) -> PickedRows | None:
    """Rows of picks in some rows of the query, and which groups they are of."""
    rows, place = make()
    weight, wanted = one.query.weight, one.groups.wanted
    assert weight is not None
    weights = rows.components[value_component(weight.name)]
    if not len(weights) or weights.max() == 1:
        return None
    at = place(groups)
    at = placed(wanted, groups, with_keys_of(rows, wanted)) if at is None else at
    return picked_rows(rows, at, weights)
