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
from math import inf

import numpy as np

from penstock.aggregates.base import BOUND, State
from penstock.kernels.tables import living as kernels
from penstock.kernels.tables.joining import list_rows
from penstock.kernels.tables.living import ADD
from penstock.runtime.merge.join.living import Lives

Array = np.ndarray
MOST_PLACES = 1 << 21  # of all aggregates together
FEW_PLACES = 1 << 16
SPARSE = 4  # places to a pair, at most
MOST_CELLS = 1 << 22
FAR = 1 << 32  # more than an item has instants
# Nanoseconds, more or less: of an aggregate of a pair of rows and of cells, of a cell, of a row that is put into one.
PAIR, CELL_PAIR, CELL, ROW = 1.6, 0.5, 0.7, 1.5
FRESH = {kernels.LEAST_ONE: BOUND - 1, kernels.LEAST_OTHER: BOUND - 1}
FRESH |= {kernels.GREATEST_ONE: -BOUND, kernels.GREATEST_OTHER: -BOUND}
FOLDS = {kind: np.minimum if fresh > 0 else np.maximum for kind, fresh in FRESH.items()}  # of partial results
SIGNED = {0: np.add, 1: np.maximum, -1: np.minimum}


@dataclass(frozen=True)
class FoldedSide:
    """The rows of a side: lives, numbers of keys and of groups, and columns of numbers, the first of which counts
    records. `extremes` says of a column whether it is a least (-1) or greatest (1) value; 0: it adds up."""

    lives: Lives
    of: Array
    codes: Array
    many: int
    values: Array
    extremes: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.of)


@dataclass(frozen=True)
class Op:
    """An aggregate of pairs: a state of the join, how it folds, and which column of each side it is made of. Without a
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
    """The groups that there are: instant, group of each side, and the number of each aggregate."""

    instants: Array
    codes: tuple[Array, Array]
    values: Array


def fits(one: FoldedSide, other: FoldedSide, pairs: int, ops: Sequence[Op]) -> bool:
    """Whether no sum can overflow."""
    most = [[_most(column) for column in side.values] for side in (one, other)]
    added = (most[0][op.one] * most[1][op.other] for op in ops if op.kind == ADD)
    largest = max(max(most[0]) * len(one), max(most[1]) * len(other), 1)
    return largest < BOUND and all(pairs * each < BOUND for each in added)


def _most(numbers: Array) -> int:
    return 0 if not len(numbers) else max(abs(int(numbers.min())), abs(int(numbers.max())))


@dataclass(frozen=True)
class Matched:
    """Two sides by key: `keys` of the rows of each, and how many there are; `starts` of the lists of the other one."""

    keys: tuple[Array, Array]
    many: int
    starts: Array
    rows: Array
    pairs: int


def matched(keys: tuple[Array, Array], many: int) -> Matched:
    """Lists of the other side's rows, and how many pairs there are in all."""
    starts, rows = np.zeros(many + 2, np.int64), np.empty(len(keys[1]), np.int64)
    list_rows(keys[1], starts, rows)
    starts = starts[:-1]
    pairs = int(np.diff(starts)[keys[0]].sum()) if len(rows) else 0
    return Matched(keys, many, starts, rows, pairs)


def folded(one: FoldedSide, other: FoldedSide, by: Matched, ops: Sequence[Op], instants: int) -> Folded | None:
    """All groups at all instants; None: there are more places than an array has room for."""
    together = common_lives(one.lives, other.lives)
    by_pairs = _cost_of_pairs(one, other, by, len(ops), len(together.common))
    by_cells = _cost_of_cells(one, other, by, len(ops), instants)
    if min(by_pairs, by_cells) == inf:
        return None
    table = np.array([(op.kind, op.one, op.other) for op in ops], np.int64)
    if by_pairs <= by_cells:
        made = _of_pairs(one, other, by, ops, table, together)
        return _there((_added(made, together.common.at(at), ops) for at in range(instants)), other.many)
    cells = [_cells(side, keys, by.many) for side, keys in zip((one, other), by.keys, strict=True)]
    return _there((_of_cells((one, other), cells, ops, table, at) for at in range(instants)), other.many)


def _there(at: Iterable[Array], width: int) -> Folded:
    """The groups that have records, of all instants; `at` each of them the aggregates of every possible group."""
    instants, found, values = [], [], []
    for number, each in enumerate(at):
        there = np.flatnonzero(each[0])
        instants.append(np.full(len(there), number))
        found.append(there)
        values.append(each[:, there])
    where = np.concatenate(found)
    return Folded(np.concatenate(instants), (where // width, where % width), np.concatenate(values, axis=1))


def _fresh(ops: Sequence[Op], places: int) -> Array:
    made = np.zeros((len(ops), places), np.int64)
    for number, op in enumerate(ops):
        if op.fresh:
            made[number] = op.fresh
    return made


def _added(made: Array, which: Array, ops: Sequence[Op]) -> Array:
    """Aggregates of all these parts together, which are in the second dimension."""
    if len(which) == 1:
        return made[:, which[0]]
    return np.stack([FOLDS.get(op.kind, np.add).reduce(of[which], axis=0) for op, of in zip(ops, made, strict=True)])


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


def _cost_of_pairs(one: FoldedSide, other: FoldedSide, by: Matched, ops: int, common: int) -> float:
    places = one.many * other.many * (common + 1) * ops
    if places > MOST_PLACES or places > SPARSE * max(by.pairs * ops, FEW_PLACES):
        return inf
    return PAIR * by.pairs * ops + ROW * (len(one) + 2 * len(other)) + CELL * places


def _of_pairs(
    one: FoldedSide, other: FoldedSide, by: Matched, ops: Sequence[Op], table: Array, together: Together
) -> Array:
    """[aggregate, what lives have in common, group]."""
    listed = np.empty((len(other), kernels.FIRST + len(other.values)), np.int64)
    kernels.list_living(by.rows, other.codes, other.of, by.starts, other.values, listed)
    groups, common = one.many * other.many, len(together.common)
    made = _fresh(ops, (common + 1) * groups)
    places = np.ascontiguousarray(together.numbers * groups)
    kernels.fold_pairs(by.keys[0], one.of, one.codes, one.values, by.starts, listed, places, table, other.many, made)
    return made.reshape(len(ops), common + 1, groups)


# -- cells


def _cost_of_cells(one: FoldedSide, other: FoldedSide, by: Matched, ops: int, instants: int) -> float:
    cells = [len(side.values) * len(side.lives) * by.many * side.many for side in (one, other)]
    if sum(cells) > MOST_CELLS or one.many * other.many * ops > MOST_PLACES:
        return inf
    filled = min(by.many * one.many, len(one)) * other.many
    rows = sum(len(side) * len(side.values) for side in (one, other))
    return ROW * rows + instants * (CELL * sum(cells) + CELL_PAIR * filled * ops)


def _cells(side: FoldedSide, keys: Array, many: int) -> Array:
    """[column, life, key and group]."""
    width = many * side.many
    made = np.zeros((len(side.values), len(side.lives) * width), np.int64)
    for number, (column, sign) in enumerate(zip(side.values, side.extremes, strict=True)):
        kind = (ADD, kernels.GREATEST_ONE, kernels.LEAST_ONE)[sign]
        made[number] = FRESH.get(kind, 0)
        kernels.add_cells(keys, side.of, side.codes, column, many, side.many, kind, made[number])
    return made.reshape(len(side.values), len(side.lives), width)


def _of_cells(
    sides: tuple[FoldedSide, FoldedSide], cells: Sequence[Array], ops: Sequence[Op], table: Array, instant: int
) -> Array:
    """[aggregate, group] at one instant."""
    one, other = sides
    made = _fresh(ops, one.many * other.many)
    living = [np.ascontiguousarray(_summed(side, of, instant)) for side, of in zip(sides, cells, strict=True)]
    kernels.fold_cells(*living, table, one.many, other.many, made)
    return made


def _summed(side: FoldedSide, cells: Array, instant: int) -> Array:
    which = side.lives.at(instant)
    if len(which) == 1:
        return cells[:, which[0]]
    return np.stack([SIGNED[sign].reduce(of[which], axis=0) for sign, of in zip(side.extremes, cells, strict=True)])
