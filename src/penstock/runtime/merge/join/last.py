"""A side that is the last records of its stream at each instant: [ROWS n] in a join.

Records have an order, by time and then by position. At an instant the last n before it count; those that pass the
side's conditions are joined, each by itself.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from penstock.logical.expressions import Computed, Sound, walk
from penstock.relations.component import value_component
from penstock.relations.joining import POSITION, key_relation
from penstock.relations.relation import Relation
from penstock.runtime.merge.closer import joined_groups
from penstock.runtime.merge.inputs import GroupRows, Piece
from penstock.runtime.merge.items import FOREVER, Cut
from penstock.runtime.merge.join.reading import SideReading
from penstock.runtime.merge.merge import merge
from penstock.runtime.merge.shares import Share, of_pass
from penstock.runtime.merge.windows import TaskSegments, pane_pieces
from penstock.state.segments.groups import Groups

Array = np.ndarray


def last_records(one: SideReading, cut: Cut, shift: int, turn: int, segments: TaskSegments) -> Groups:
    """The records of a side at the instants of a cut, those of one pass over the keys."""
    window, relation = one.side.window, one.wanted
    numbers = np.arange(cut.first + shift, cut.beyond + shift)
    panes = replace(cut, first=-FOREVER, beyond=window.beyond_pane(int(numbers[-1])), turn=0, passes=1)
    found = [
        merge(source.relation, list(pane_pieces(source, panes, segments)), None, segments.vocabulary)
        for source in one.sources
    ]
    records = joined_groups(found, relation)
    taken = _last(records, one.side.time, numbers, numbers * window.slide + window.length, window.range or 0)
    passed = taken.components[value_component(_passed(one).name)] != 0
    taken = taken.take(np.flatnonzero(passed))
    return _of_turn(replace(taken, panes=taken.panes - shift), relation, one, Share(turn, cut.passes))


def _passed(one: SideReading) -> Computed:
    """The attribute that says whether a record passes: the one that asks whether it is sound."""
    made = (a for a in one.wanted.attributes if isinstance(a, Computed))
    return next(a for a in made if any(isinstance(part, Sound) for part in walk(a)))


def _last(records: Groups, time: str, numbers: Array, instants: Array, count: int) -> Groups:
    """The last records before each instant; `panes` of the result are the numbers of instants."""
    times, places = (records.components[value_component(name)] for name in (time, POSITION.name))
    order = np.lexsort((places, times))
    beyond = np.searchsorted(times[order], instants, "left")
    first = np.maximum(beyond - count, 0)
    sizes = beyond - first
    steps = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    taken = records.take(order[np.repeat(first, sizes) + steps])
    return replace(taken, panes=np.repeat(numbers, sizes))


def _of_turn(groups: Groups, relation: Relation, one: SideReading, share: Share) -> Groups:
    if share.passes == 1 or not one.placed:
        return groups
    by = key_relation(relation, one.placed)
    piece = of_pass(relation, Piece(GroupRows(groups), groups.panes), replace(share, by=by))
    assert piece.index is not None
    return groups.take(piece.index)
