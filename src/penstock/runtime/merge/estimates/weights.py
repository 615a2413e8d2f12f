"""Groups in which each record counts as often as records that it stands for: the best estimates there are.

groups as read ──────────────────────────────┐
rows that were picked, repeated 2^k − 1 times ┴──► weighted groups ──► x = exact_x + estimated_x
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from penstock.aggregates.base import State
from penstock.aggregates.count import multiplied
from penstock.aggregates.registry import accumulator_of
from penstock.relations.relation import Relation
from penstock.runtime.merge.inputs import GroupRows, Piece
from penstock.runtime.merge.merge import folded
from penstock.state.segments.groups import Groups

Array = np.ndarray


@dataclass(frozen=True)
class PickedRows:
    """Rows of picks: the group of each, its weight, and what they hold (their keys do not matter any more)."""

    at: Array
    weights: Array
    rows: Groups

    def __len__(self) -> int:
        return len(self.at)


def picked_rows(rows: Groups, at: Array, weights: Array) -> PickedRows:
    """Those of some rows that stand for several records each."""
    some = np.flatnonzero(weights > 1)
    kept = rows.take(some)
    return PickedRows(at[some], weights[some], replace(kept, components={}, dictionaries={}))


def joined_picks(found: Iterable[PickedRows | None]) -> PickedRows | None:
    """What several passes have."""
    some = [one for one in found if one is not None]
    if len(some) < 2:
        return some[0] if some else None
    panes, count = np.concatenate([one.rows.panes for one in some]), np.concatenate([one.rows.count for one in some])
    known = {state for one in some for state in one.rows.states}
    states = {state: _joined_state(state, [one.rows for one in some]) for state in known}
    at, weights = np.concatenate([one.at for one in some]), np.concatenate([one.weights for one in some])
    return PickedRows(at, weights, Groups(panes, {}, {}, count, states))


def _joined_state(state: State, parts: list[Groups]) -> tuple[Array, ...]:
    """A state of the rows of all parts; where a part left it out it is count(*), where it has fewer words it grows."""
    each = [part.states.get(state, (part.count,)) for part in parts]
    most = max(map(len, each))
    wide = [words if len(words) == most else accumulator_of(state).widened(words) for words in each]
    return tuple(np.concatenate(words) for words in zip(*wide, strict=True))


def weighted_groups(wanted: Relation, groups: Groups, picked: PickedRows) -> Groups:
    """The groups with every pick as often as it has records. Extremes stay as they are."""
    plain = replace(wanted, states=tuple(state for state in wanted.states if state not in wanted.coded_states))
    more = picked.weights - 1
    states = {s: accumulator_of(s).repeated(picked.rows.states[s], more) for s in _both(plain, picked)}
    repeated = replace(picked.rows, count=multiplied(picked.rows.count, more), states=states)
    pieces = [Piece(GroupRows(one), one.panes) for one in (groups, repeated)]
    at = [np.arange(len(groups)), picked.at]
    count, found = folded(plain, pieces, groups.dictionaries, at, len(groups))
    kept = {state: words for state, words in groups.states.items() if state in wanted.coded_states}
    return replace(groups, count=count, states={**kept, **found})


def _both(plain: Relation, picked: PickedRows) -> Iterator[State]:
    return (state for state in plain.states if state in picked.rows.states)
