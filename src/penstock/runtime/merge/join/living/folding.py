"""What pairs of living rows add up to: an array with a place for every possible group, and no pair written down.

There are two ways (`kernels.tables.living`), and the cheaper one is taken:

* *pairs*: every pair of rows is met once, for all instants at which both live. That is best where panes have few groups
  in common: a window that slides by a tenth meets a fifth of its pairs anew.
* *cells*: rows of the same key and group are first added up, at each instant those that live then. That is best where
  the same groups come in every pane.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf

import numpy as np

from penstock.aggregates.base import BOUND, State
from penstock.kernels.tables import living as kernels
from penstock.kernels.tables.living import ADD, GREATEST_ONE, GREATEST_OTHER, LEAST_ONE, LEAST_OTHER
from penstock.runtime.merge.join.living.rows import Lives

Array = np.ndarray
MOST_PLACES = 1 << 21  # of all aggregates together
FEW_PLACES = 1 << 16
SPARSE = 4  # places to a pair, at most
MOST_CELLS = 1 << 22
FAR = 1 << 32  # more than an item has instants
PART = 10  # bits: keys of a part, whose lists stay in the cache
# Nanoseconds, more or less: of an aggregate of a pair of rows and of cells, of a cell, of a column of a row.
PAIR, CELL_PAIR, CELL, ROW = 2.0, 0.5, 0.7, 4.0
FRESH = {LEAST_ONE: BOUND - 1, LEAST_OTHER: BOUND - 1, GREATEST_ONE: -BOUND, GREATEST_OTHER: -BOUND}
FOLDS = {kind: np.minimum if fresh > 0 else np.maximum for kind, fresh in FRESH.items()}  # of partial results


class TooManyPlaces(Exception):
    """There are more groups and instants than an array has room for."""


@dataclass(frozen=True)
class ValueColumn:
    """A column of values: the state of the join that is made of it, and how it folds: it adds up (0), is the least (-1)
    or the greatest (1) value."""

    state: State
    sign: int

    @property
    def kind(self) -> int:
        return (ADD, GREATEST_ONE, LEAST_ONE)[self.sign]


@dataclass(frozen=True)
class FoldedSide:
    """The rows of a side: the life of each, the number of its key, the code of its group, of how many, and values
    [column, row]: count(*), then `columns`, first those that add up, then the least, then the greatest values."""

    lives: Lives
    of: Array
    keys: Array
    codes: Array
    many: int
    columns: tuple[ValueColumn, ...]
    values: Array

    def __len__(self) -> int:
        return len(self.of)

    def of_sign(self, sign: int) -> list[tuple[int, ValueColumn]]:
        """Columns of a kind, with their places among the values."""
        return [(place, one) for place, one in enumerate(self.columns, 1) if one.sign == sign]


@dataclass(frozen=True)
class Op:
    """An aggregate of pairs: a state of the join, how it folds, and which values of each side it is made of. Without a
    state it counts pairs of records."""

    state: State | None
    kind: int
    one: int = 0
    other: int = 0

    @property
    def fresh(self) -> int:
        return FRESH.get(self.kind, 0)


@dataclass(frozen=True)
class Folded:
    """The groups that there are: instant, code of each side, and the value of each aggregate."""

    instants: Array
    codes: tuple[Array, Array]
    values: Array
    ops: tuple[Op, ...]


@dataclass(frozen=True)
class Folding:
    """Two sides whose keys are numbered alike, at some instants; `pairs` are those of rows with equal keys."""

    one: FoldedSide
    other: FoldedSide
    keys: int
    instants: int
    pairs: int

    @property
    def sides(self) -> tuple[FoldedSide, FoldedSide]:
        return self.one, self.other

    @property
    def groups(self) -> int:
        return self.one.many * self.other.many

    @cached_property
    def ops(self) -> tuple[Op, ...]:
        """All aggregates, in the order of `kernels.tables.living`."""
        one, other = self.sides
        made = [Op(None, ADD), *(Op(c.state, ADD, place, 0) for place, c in one.of_sign(0))]
        made += [Op(c.state, ADD, 0, place) for place, c in other.of_sign(0)]
        for sign, kind in ((-1, LEAST_ONE), (1, GREATEST_ONE)):
            made += [Op(c.state, kind, place, 0) for place, c in one.of_sign(sign)]
        for sign, kind in ((-1, LEAST_OTHER), (1, GREATEST_OTHER)):
            made += [Op(c.state, kind, 0, place) for place, c in other.of_sign(sign)]
        return tuple(made)

    @property
    def arity(self) -> Array:
        one, other = ({sign: len(side.of_sign(sign)) for sign in (0, -1, 1)} for side in self.sides)
        return np.array([one[0], other[0], one[-1], one[1], other[-1], other[1]], np.int64)


def pairs_of(keys: Sequence[Array], many: int) -> int:
    """How many pairs of rows of two sides have equal keys."""
    one, other = (np.bincount(of, minlength=many) for of in keys)
    return int(one @ other)


def fits(folding: Folding) -> bool:
    """Whether no sum can overflow."""
    most = [[_most(column) for column in side.values] for side in folding.sides]
    added = (most[0][op.one] * most[1][op.other] for op in folding.ops if op.kind == ADD)
    largest = max(max(of) * len(side) for of, side in zip(most, folding.sides, strict=True))
    return largest < BOUND and all(folding.pairs * each < BOUND for each in added)


def _most(numbers: Array) -> int:
    return 0 if not len(numbers) else max(abs(int(numbers.min())), abs(int(numbers.max())))


def folded(folding: Folding) -> Folded:
    """All groups at all instants. Raises `TooManyPlaces`."""
    together = common_lives(folding.one.lives, folding.other.lives)
    by_pairs, by_cells = _cost_of_pairs(folding, len(together.common)), _cost_of_cells(folding)
    if min(by_pairs, by_cells) == inf:
        raise TooManyPlaces
    if by_pairs <= by_cells:
        made = _of_pairs(folding, together)
        return _there(folding, (_added(made, together.common.at(at), folding.ops) for at in range(folding.instants)))
    cells = [_cells(side, folding.keys) for side in folding.sides]
    return _there(folding, (_of_cells(folding, cells, at) for at in range(folding.instants)))


def _there(folding: Folding, at: Iterable[Array]) -> Folded:
    """The groups that have records, of all instants; `at` each of them the aggregates of every possible group."""
    instants, found, values = [], [], []
    for number, each in enumerate(at):
        there = np.flatnonzero(each[0])
        instants.append(np.full(len(there), number))
        found.append(there)
        values.append(each[:, there])
    where, width = np.concatenate(found), folding.other.many
    codes = where // width, where % width
    # Rows of columns that were picked out stand apart in memory, unless several are put together.
    return Folded(np.concatenate(instants), codes, np.ascontiguousarray(np.concatenate(values, axis=1)), folding.ops)


# -- pairs of rows


@dataclass(frozen=True)
class Together:
    """What two lives have in common: its number for each two of them, the last one where they have nothing."""

    common: Lives
    numbers: Array


def common_lives(one: Lives, other: Lives) -> Together:
    born = np.maximum(one.born[:, None], other.born)
    last = np.minimum(one.last[:, None], other.last)
    both = np.where(born <= last, born * FAR + last, -1)
    found = np.unique(both[both >= 0])
    numbers = np.where(both >= 0, np.searchsorted(found, both), len(found))
    return Together(Lives(found // FAR, found % FAR), numbers)


def _cost_of_pairs(folding: Folding, common: int) -> float:
    aggregates = len(folding.ops)
    places = folding.groups * (common + 1) * aggregates
    if places > MOST_PLACES or places > SPARSE * max(folding.pairs * aggregates, FEW_PLACES):
        return inf
    rows = sum(len(side) * (2 + len(side.columns)) for side in folding.sides)
    return PAIR * folding.pairs * aggregates + ROW * rows + CELL * places


def _of_pairs(folding: Folding, together: Together) -> Array:
    """[what lives have in common, group, aggregate]."""
    common, aggregates = len(together.common), len(folding.ops)
    made = np.zeros(((common + 1) * folding.groups, aggregates), np.int64)
    for number, op in enumerate(folding.ops):
        if op.fresh:
            made[:, number] = op.fresh
    (one, one_parts), (other, other_parts) = (_parted(side, folding.keys) for side in folding.sides)
    listed = np.empty((int(np.diff(other_parts).max()), other.shape[1] - 1), np.int64)
    kernels.fold_parts(
        one, one_parts, other, other_parts, PART, listed, np.empty((1 << PART) + 2, np.int64),
        np.ascontiguousarray(together.numbers * folding.groups), folding.arity, folding.other.many, made,
    )  # fmt: skip
    return made.reshape(common + 1, folding.groups, aggregates)


def _parted(side: FoldedSide, keys: int) -> tuple[Array, Array]:
    """Rows by part, and where parts begin."""
    starts = np.zeros((keys >> PART) + 2, np.int64)
    kernels.count_parts(side.keys, PART, starts[1:])
    starts = np.cumsum(starts)
    rows = np.empty((len(side), kernels.COUNT + len(side.values)), np.int64)
    kernels.part_rows(side.keys, PART, side.of, side.codes, side.values, starts.copy(), rows)
    return rows, starts


def _added(made: Array, which: Array, ops: Sequence[Op]) -> Array:
    """[aggregate, group] of all these parts together; zeros if there are none."""
    if not len(which):
        return np.zeros(made.shape[:0:-1], np.int64)
    if len(which) == 1:
        alone: Array = made[which[0]].T
        return alone
    return np.stack([FOLDS.get(op.kind, np.add).reduce(made[which, :, q], axis=0) for q, op in enumerate(ops)])


# -- cells


def _cost_of_cells(folding: Folding) -> float:
    one, other = folding.sides
    cells = sum((1 + len(side.columns)) * len(side.lives) * folding.keys * side.many for side in folding.sides)
    if cells > MOST_CELLS or folding.groups * len(folding.ops) > MOST_PLACES:
        return inf
    filled = min(folding.keys * one.many, len(one)) * other.many
    rows = sum(len(side) * (1 + len(side.columns)) for side in folding.sides)
    return ROW * rows + folding.instants * (CELL * cells + CELL_PAIR * filled * len(folding.ops))


def _cells(side: FoldedSide, many: int) -> Array:
    """[column, life, key and group]."""
    width = many * side.many
    made = np.zeros((1 + len(side.columns), len(side.lives) * width), np.int64)
    kinds = [ADD, *(column.kind for column in side.columns)]
    for values, kind, cells in zip(side.values, kinds, made, strict=True):
        cells[:] = FRESH.get(kind, 0)
        kernels.add_cells(side.keys, side.of, side.codes, values, many, side.many, kind, cells)
    return made.reshape(len(made), len(side.lives), width)


def _of_cells(folding: Folding, cells: Sequence[Array], instant: int) -> Array:
    """[aggregate, group] at one instant."""
    made = np.zeros((len(folding.ops), folding.groups), np.int64)
    for number, op in enumerate(folding.ops):
        if op.fresh:
            made[number] = op.fresh
    table = np.array([(op.kind, op.one, op.other) for op in folding.ops], np.int64)
    living = [_living_cells(side, of, instant) for side, of in zip(folding.sides, cells, strict=True)]
    kernels.fold_cells(*living, table, folding.one.many, folding.other.many, made)
    return made


def _living_cells(side: FoldedSide, cells: Array, instant: int) -> Array:
    """[column, key and group]: what lives at an instant, added up."""
    which = side.lives.at(instant)
    if not len(which):
        return np.zeros((len(cells), cells.shape[2]), np.int64)
    if len(which) == 1:
        return np.ascontiguousarray(cells[:, which[0]])
    kinds = [ADD, *(column.kind for column in side.columns)]
    return np.stack([FOLDS.get(kind, np.add).reduce(of[which], axis=0) for kind, of in zip(kinds, cells, strict=True)])
