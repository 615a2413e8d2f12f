"""What the sides of a join hold key by key, for the choice of its plan (`sharing.joins`).

Of the first item of every second batch, at its last instant: how many records w_i(J), groups D_i(J) and stored rows
each side has of each key J, and from these how many combinations plans would go through, Σ_J Π_i x_i(J) with x_i = D_i
where a plan aggregates side i early, else w_i. Of an instant with many rows, those of some of the keys are counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import product
from math import expm1
from time import thread_time_ns

import numpy as np

from penstock.relations.joining import key_relation
from penstock.relations.relation import APPEND, Relation
from penstock.runtime.merge.inputs import BlockRows, GroupRows, Piece
from penstock.runtime.merge.items import Cut
from penstock.runtime.merge.join.living.joined import LivingJoin
from penstock.runtime.merge.join.living.rows import LivingRows
from penstock.runtime.merge.join.reading import JoinReading
from penstock.runtime.merge.join.sides import SideRows, distinct_codes, key_numbers
from penstock.runtime.merge.merge import Merge
from penstock.runtime.merge.shares import Share, of_pass
from penstock.state.protocol import HeldAt, JoinCounts, SideCounts
from penstock.state.segments.groups import Groups
from penstock.state.segments.vocabulary import Vocabulary

Array = np.ndarray
MOST = 1 << 13  # rows that are counted
MOST_SIDES = 4  # up to which all plans are


@dataclass(frozen=True)
class KeyedRows:
    """Rows of a side at an instant: numbers of their keys and groups, and records; `codes` are the different values
    that the groups of a key are told apart by. `more`: of each row there are so many, `groups_more` of each group."""

    keys: Array
    records: Array
    groups: Array
    codes: int
    more: float = 1.0
    groups_more: float = 1.0


@dataclass(frozen=True)
class Sampled:
    """Rows of all sides that have one of the keys that are counted, of which there are `times` as many."""

    sides: tuple[KeyedRows, ...]
    times: float


@dataclass(frozen=True)
class Work:
    """An item that is just begun, by this thread's time."""

    query: str
    reading: JoinReading
    cut: Cut
    began: int = field(default_factory=thread_time_ns)

    def of_living(self, join: LivingJoin, made: Sequence[Groups]) -> JoinCounts:
        """Done by rows that live at several instants; these groups were made."""
        done = self._done(made, True)
        return replace(done, held=_held(_living(self.reading, join))) if self._counts else done

    def of_merged(self, sides: Sequence[SideRows], made: Sequence[Groups]) -> JoinCounts:
        """Done by the merged groups of each instant."""
        done = self._done(made, False)
        return replace(done, held=_held(_merged(self.reading, sides, self.cut))) if self._counts else done

    @property
    def _counts(self) -> bool:
        return self.reading.counted and self.cut.part == 0

    def _done(self, made: Sequence[Groups], living: bool) -> JoinCounts:
        spent = thread_time_ns() - self.began
        first = not self.cut.turn and not self.cut.slice and not self.cut.low  # parts of an instant add up
        instants = self.cut.beyond - self.cut.first if first else 0
        return JoinCounts(self.query, instants, sum(map(len, made)), spent, living)


def _held(found: Sampled | None) -> HeldAt | None:
    """Figures of each side, and combinations of each plan."""
    if found is None:
        return None
    keys, numbers = np.unique(np.concatenate([one.keys for one in found.sides]), return_inverse=True)
    edges = np.cumsum([0, *(len(one.keys) for one in found.sides)])
    each = [_of_keys(one, numbers[a:b], len(keys)) for one, a, b in zip(found.sides, edges, edges[1:], strict=False)]
    records, groups = np.stack([of for of, _ in each]), np.stack([of for _, of in each])
    met = int((records > 0).all(0).sum())
    sides = [
        _side_counts(one, of, kinds, found.times) for one, of, kinds in zip(found.sides, records, groups, strict=True)
    ]
    return HeldAt(found.times * met, tuple(sides), {name: found.times * many for name, many in _pairs(records, groups)})


def _side_counts(one: KeyedRows, records: Array, groups: Array, times: float) -> SideCounts:
    rows = len(one.keys) * one.more
    return SideCounts(times * float(records.sum()), times * float(groups.sum()), times * rows, float(one.codes))


def _of_keys(one: KeyedRows, keys: Array, many: int) -> tuple[Array, Array]:
    """Records and different groups of each key."""
    first = np.unique(one.groups, return_index=True)[1]
    records = np.bincount(keys, one.records, many) * one.more
    return records, np.bincount(keys[first], minlength=many) * one.groups_more


def _pairs(records: Array, groups: Array) -> Iterator[tuple[str, float]]:
    """Combinations of each plan by its bits; of many sides, of the plans that differ from the late one in one side."""
    sides = len(records)
    every = product((0, 1), repeat=sides) if sides <= MOST_SIDES else _single(sides)
    for bits in every:
        each = np.ones(records.shape[1])
        for side, early in enumerate(bits):
            each *= groups[side] if early else records[side]
        yield "".join(map(str, bits)), float(each.sum())


def _single(sides: int) -> Iterator[tuple[int, ...]]:
    yield (0,) * sides
    for side in range(sides):
        yield tuple(int(number == side) for number in range(sides))


# -- of rows that live at several instants


def _living(reading: JoinReading, join: LivingJoin) -> Sampled | None:
    common = reduce(np.intersect1d, (windows for windows, _ in join.held))
    if not len(common):
        return None
    instant = int(common[-1]) - join.cut.first
    alive = [_alive(side, instant) for side in join.sides]
    times, numbers = -(-sum(map(len, alive)) // MOST), join.keys[0]
    if times > 1:
        alive = [rows[keys[rows] % times == 0] for rows, keys in zip(alive, numbers, strict=True)]
    each = zip(join.sides, alive, numbers, strict=True)
    found = [_of_rows(side, rows, keys[rows], join.vocabulary) for side, rows, keys in each]
    if join.cut.slices > 1:
        found[reading.largest] = _unsliced(found[reading.largest], join.cut.slices)
    return Sampled(tuple(found), times * _of_slots(join))


def _of_slots(join: LivingJoin) -> float:
    """How many times as many slots there are as the item has."""
    blocks = (piece.rows.block for side in join.sides for piece in side.pieces if isinstance(piece.rows, BlockRows))
    return next((block.segment.slots / (join.cut.high - join.cut.low) for block in blocks), 1.0)


def _alive(side: LivingRows, instant: int) -> Array:
    """The rows that live at an instant."""
    living = np.zeros(len(side.lives), bool)
    living[side.lives.at(instant)] = True
    return np.flatnonzero(living[side.of])


def _of_rows(side: LivingRows, rows: Array, keys: Array, vocabulary: Vocabulary) -> KeyedRows:
    wanted, edges = side.reading.wanted, side.edges
    cuts = np.searchsorted(rows, edges)
    pieces = [piece.only(rows[a:b] - low) for piece, low, a, b in zip(side.pieces, edges, cuts, cuts[1:], strict=False)]
    rest = [attribute for attribute in wanted.attributes if attribute not in side.reading.side.key]
    groups = _numbers(pieces, key_relation(wanted, wanted.attributes), vocabulary)
    codes = int(_numbers(pieces, key_relation(wanted, rest), vocabulary).max(initial=-1)) + 1 if rest else 1
    return KeyedRows(keys, side.count[rows], groups, codes)


def _numbers(pieces: Sequence[Piece], relation: Relation, vocabulary: Vocabulary) -> Array:
    """A number for the values of every row, whatever the instant."""
    same = [replace(piece, where=np.zeros(len(piece), np.int64)) for piece in pieces]
    return Merge(relation, same, vocabulary).numbers() if any(map(len, same)) else np.empty(0, np.int64)


# -- of merged groups


def _merged(reading: JoinReading, sides: Sequence[SideRows], cut: Cut) -> Sampled | None:
    common = reduce(np.intersect1d, (np.unique(one.groups.panes) for one in sides))
    if not len(common) or len({len(one.reading.side.key) for one in sides}) > 1:  # no key is that of all
        return None
    rows = [_at(one, int(common[-1])) for one in sides]
    keyed = bool(sides[0].reading.side.key)
    passes = -(-sum(len(one.groups) for one in rows) // MOST) if keyed else 1
    taken = [_of_some_keys(one, passes) for one in rows]
    numbers = key_numbers(taken) if keyed else [np.zeros(len(taken[0].groups), np.int64)]
    found = [_of_groups(one, keys) for one, keys in zip(taken, numbers, strict=True)]
    if cut.slices > 1:
        found[reading.largest] = _unsliced(found[reading.largest], cut.slices)
    return Sampled(tuple(found), float(passes * cut.passes))


def _at(one: SideRows, instant: int) -> SideRows:
    return replace(one, groups=one.groups.take(np.flatnonzero(one.groups.panes == instant)))


def _of_some_keys(one: SideRows, passes: int) -> SideRows:
    """One of so many parts of the keys, the same on all sides."""
    if passes == 1:
        return one
    wanted = one.reading.wanted
    share = Share(0, passes, key_relation(wanted, one.reading.placed))
    piece = of_pass(wanted, Piece(GroupRows(one.groups), one.groups.panes), share)
    assert piece.index is not None
    return replace(one, groups=one.groups.take(piece.index))


def _of_groups(one: SideRows, keys: Array) -> KeyedRows:
    """Groups are each there once, unless what is late is not merged."""
    reading, count = one.reading, len(one.groups)
    rest = [attribute for attribute in reading.wanted.attributes if attribute not in reading.side.key]
    groups = np.arange(count)
    if reading.wanted.table == APPEND:
        groups = distinct_codes(one.groups, reading, reading.wanted.attributes)[0]
    return KeyedRows(keys, one.groups.count, groups, distinct_codes(one.groups, reading, rest)[1])


def _unsliced(one: KeyedRows, slices: int) -> KeyedRows:
    """The rows of all slices, if each group is as likely in any record."""
    records, groups = float(one.records.sum()), float(len(np.unique(one.groups)))
    more = float(slices)
    if groups < len(one.groups):
        many = groups  # m records meet D·(1 − e^(−m/D)) of D groups: solved for D
        for _ in range(30):
            many *= groups / (-many * expm1(-records / many))
        more = min(more, -many * expm1(-slices * records / many) / groups)
    return replace(one, more=float(slices), groups_more=more)
