"""Rare values are left out when a run is written, where a function may lose them (`aggregates.details.frequent`)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from penstock.aggregates.base import State
from penstock.aggregates.details.frequent import DROPPED, SPARED
from penstock.aggregates.details.function import Loss
from penstock.aggregates.details.percentiles import share_of
from penstock.logical.query import Attribute, column_of
from penstock.relations.component import Component, null_component, value_component
from penstock.relations.relation import EXACT, Relation, attribute_parts
from penstock.runtime.merge.merge import regroup, regrouped_numbers
from penstock.runtime.merge.rolling.rollup import with_keys_of
from penstock.state.segments.groups import Groups

Array = np.ndarray


def pruned(relation: Relation, loss: Loss, groups: Groups) -> Groups:
    """The rows of a run, without values that are too rare in their group and pane."""
    if relation.table != EXACT:  # it may have rows of equal keys, each rarer than their value
        groups = regroup(relation, groups, groups.panes)
    outer = replace(relation, attributes=relation.outer, arguments=(), states=(), slots=None, loss=None)
    at = regrouped_numbers(outer, with_keys_of(groups, outer))
    column = next(state.column for state in relation.states if state.kind == SPARED.kind)
    finer = [one for one in relation.attributes if one not in relation.outer]
    detail = next(one for one in finer if column_of(one) == column)
    for test in (one for one in finer if one != detail):  # of FILTER: what does not pass it is nobody's
        passed = groups.components[value_component(column_of(test))] != 0
        known = groups.components[null_component(column_of(test))] == 0
        kept = np.flatnonzero(passed & known)
        groups, at = groups.take(kept), at[kept]
    there = groups.components[null_component(column)] == 0
    number = int(at.max()) + 1 if len(at) else 0
    spare = share_of(np.bincount(at, np.where(there, groups.count, 0), number).astype(np.int64), loss.share)
    gone = there & (groups.count <= spare[at])
    if not gone.any() and not spare.any():
        return groups
    dropped = np.bincount(at, np.where(gone, groups.count, 0), number).astype(np.int64)
    like = np.zeros(number, np.int64)
    like[at] = np.arange(len(at))  # some row of each group
    told = np.zeros(number, bool)
    told[at[~there]] = True
    missing = np.flatnonzero(~told & (spare > 0))
    added = _null_rows(groups.take(like[missing]), detail, relation, spare[missing], dropped[missing])
    stay = np.flatnonzero(~gone)
    return _joined(_noted(groups.take(stay), column, at[stay], ~there[stay], spare, dropped), added)


def _noted(kept: Groups, column: str, at: Array, null: Array, spare: Array, dropped: Array) -> Groups:
    """The rows that stay, with what they carry."""
    states = dict(kept.states)
    states[SPARED.state(column)] = (spare[at],)
    states[DROPPED.state(column)] = (np.where(null, dropped[at], 0),)
    return replace(kept, states=states)


def _null_rows(like: Groups, detail: Attribute, relation: Relation, spare: Array, dropped: Array) -> Groups:
    """Rows of NULL for groups that had none: with the keys of another row of theirs, and no records."""
    column, components = column_of(detail), dict(like.components)
    outer = {part.component for one in relation.outer for part in attribute_parts(one)}
    for part in attribute_parts(detail):
        name: Component = part.component
        if name not in outer:
            missing = -1 if name == value_component(column) and column in relation.shape.strings else 0
            components[name] = np.full(len(like), 1 if name == null_component(column) else missing, np.int64)
    states: dict[State, tuple[Array, ...]] = {
        state: tuple(np.zeros_like(word) for word in words) for state, words in like.states.items()
    }
    states[SPARED.state(column)], states[DROPPED.state(column)] = (spare,), (dropped,)
    return replace(like, components=components, count=np.zeros(len(like), np.int64), states=states)


def _joined(one: Groups, other: Groups) -> Groups:
    """Rows of the same dictionaries."""
    return Groups(
        np.concatenate([one.panes, other.panes]),
        {name: np.concatenate([values, other.components[name]]) for name, values in one.components.items()},
        one.dictionaries,
        np.concatenate([one.count, other.count]),
        {
            state: tuple(np.concatenate(pair) for pair in zip(words, other.states[state], strict=True))
            for state, words in one.states.items()
        },
    )
