"""What the sides of a join hold key by key, for the choice of its plan (`sharing.joins`).

Of the first item of a batch, at its last instant: how many records w_i(J) and how many groups D_i(J) each side has of
each key J, and from these how many combinations every plan would go through, N_e = Σ_J Π_i x_i(J) with x_i = D_i where
plan e aggregates side i early, else w_i. Of an instant with many rows, those of some of the keys are counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import reduce
from itertools import product
from math import expm1
from time import thread_time_ns

import numpy as np

from penstock.relations.joining import key_relation
from penstock.relations.relation import APPEND
from penstock.runtime.merge.inputs import GroupRows, Piece
from penstock.runtime.merge.items import Cut
from penstock.runtime.merge.join.reading import JoinReading
from penstock.runtime.merge.join.sides import SideRows, distinct_codes, key_numbers
from penstock.runtime.merge.merge import Share, of_pass
from penstock.state.protocol import JoinCounts

Array = np.ndarray
MOST = 1 << 15  # rows that are counted
MOST_SIDES = 4  # up to which all plans are
Counted = tuple[tuple[float, ...], tuple[float, ...], dict[str, float]]
NOT_COUNTED: Counted = (), (), {}


def work_of(query: str, reading: JoinReading, sides: Sequence[SideRows], cut: Cut, made: int, began: int) -> JoinCounts:
    """The work of an item that was begun at `began` (of this thread's time) and, of the first one, what it held."""
    spent = thread_time_ns() - began
    first = not cut.turn and not cut.slice  # parts of an instant add up
    records, groups, pairs = _counted(reading, sides, cut) if cut.part == 0 else NOT_COUNTED
    return JoinCounts(query, cut.beyond - cut.first if first else 0, made, spent, records, groups, pairs)


def _counted(reading: JoinReading, sides: Sequence[SideRows], cut: Cut) -> Counted:
    """Records and groups of each side, and combinations of each plan."""
    instant = _last_instant(sides)
    if instant is None:
        return NOT_COUNTED
    rows = [_at(one, instant) for one in sides]
    passes = -(-sum(len(one.groups) for one in rows) // MOST) if sides[0].reading.side.key else 1
    taken = [_of_some_keys(one, passes) for one in rows]
    numbers = key_numbers(taken) if sides[0].reading.side.key else [np.zeros(len(taken[0].groups), np.int64)]
    keys = max((int(of.max()) + 1 for of in numbers if len(of)), default=0)
    held = np.stack([np.bincount(of, one.groups.count, keys) for one, of in zip(taken, numbers, strict=True)])
    found = np.stack([_groups(one, of, keys) for one, of in zip(taken, numbers, strict=True)])
    if cut.slices > 1:
        found[reading.largest] *= _unsliced(held[reading.largest], found[reading.largest], cut.slices, taken)
        held[reading.largest] *= cut.slices
    times = passes * cut.passes
    whole = tuple(tuple((times * one.sum(1)).tolist()) for one in (held, found))
    return whole[0], whole[1], {name: times * many for name, many in _pairs(held, found)}


def _last_instant(sides: Sequence[SideRows]) -> int | None:
    """The last at which every side holds something."""
    common = reduce(np.intersect1d, (np.unique(one.groups.panes) for one in sides))
    return int(common[-1]) if len(common) else None


def _at(one: SideRows, instant: int) -> SideRows:
    return replace(one, groups=one.groups.take(np.flatnonzero(one.groups.panes == instant)))


def _of_some_keys(one: SideRows, passes: int) -> SideRows:
    """One of so many parts of the keys, the same on all sides."""
    if passes == 1:
        return one
    wanted = one.reading.wanted
    share = Share(0, passes, key_relation(wanted, one.reading.side.key))
    piece = of_pass(wanted, Piece(GroupRows(one.groups), one.groups.panes), share)
    assert piece.index is not None
    return replace(one, groups=one.groups.take(piece.index))


def _groups(one: SideRows, numbers: Array, keys: int) -> Array:
    """Different groups of each key."""
    if one.reading.wanted.table == APPEND:
        codes, _ = distinct_codes(one.groups, one.reading, one.reading.wanted.attributes)
        numbers = numbers[np.unique(codes, return_index=True)[1]]
    return np.bincount(numbers, minlength=keys).astype(float)


def _unsliced(held: Array, found: Array, slices: int, taken: Sequence[SideRows]) -> float:
    """How many times more groups all slices have than one, if each group is as likely in any record."""
    records, groups = float(held.sum()), float(found.sum())
    if groups >= records or not groups:
        return float(slices)
    many = groups  # m records meet D·(1 − e^(−m/D)) of D groups: solved for D
    for _ in range(30):
        many *= groups / (-many * expm1(-records / many))
    return min(float(slices), -many * expm1(-slices * records / many) / groups)


def _pairs(held: Array, found: Array) -> Iterator[tuple[str, float]]:
    """Combinations of each plan by its bits; of many sides, of the plans that differ from the late one in one side."""
    sides = len(held)
    every = product((0, 1), repeat=sides) if sides <= MOST_SIDES else _single(sides)
    for bits in every:
        each = np.ones(held.shape[1])
        for side, early in enumerate(bits):
            each *= found[side] if early else held[side]
        yield "".join(map(str, bits)), float(each.sum())


def _single(sides: int) -> Iterator[tuple[int, ...]]:
    yield (0,) * sides
    for side in range(sides):
        yield tuple(int(number == side) for number in range(sides))
