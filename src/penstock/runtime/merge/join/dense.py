"""Two sides with few groups: an array with a place for every possible group, and no combination written down.

A group's place is the sum of two numbers, one of each side's row: instant and group of one, group of the other. Each
aggregate is then one loop over the combinations of rows, and what is folded stays in the cache. Where there are more
places than combinations, or states that are more than a number, `combined` does it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from penstock.aggregates.base import BOUND, State
from penstock.aggregates.extremes import Extreme
from penstock.aggregates.registry import ACCUMULATORS
from penstock.kernels.tables.joining import add_products, keep_best
from penstock.runtime.merge.join.sides import Lists, SideRows

Array = np.ndarray
MOST_PLACES = 1 << 20
ADDED = ("count", "sum")  # kinds of states that are numbers, and add up
KEPT = ("min", "max")


@dataclass(frozen=True)
class SideState:
    """A state of the join: of which side, and how that calls it."""

    state: State
    side: int
    mine: State


@dataclass(frozen=True)
class Places:
    """Where groups stand: instants × the groups of one side × those of the other."""

    instants: int
    one: int
    other: int

    @property
    def count(self) -> int:
        return self.instants * self.one * self.other


def fits(sides: Sequence[SideRows], lists: Lists, places: Places, states: Sequence[SideState]) -> bool:
    """Whether an array has room for all, and every state is a number that cannot overflow."""
    if len(sides) != 2 or places.count > MOST_PLACES:
        return False
    pairs = int((np.diff(lists.starts[0]) * np.diff(lists.starts[1])).sum())
    counts = [_most(one.groups.count) for one in sides]
    if places.count > 4 * pairs or pairs * counts[0] * counts[1] >= BOUND:
        return False
    return all(_is_number(sides[one.side], one, pairs * counts[1 - one.side]) for one in states)


def _is_number(side: SideRows, one: SideState, times: int) -> bool:
    words = side.groups.states.get(one.mine)
    if words is None:  # it is count(*)
        return one.state.kind == "count"
    if len(words) != 1 or words[0].dtype.kind == "f":
        return False
    if one.state.kind in ADDED:
        return _most(words[0]) * times < BOUND
    kind = ACCUMULATORS[one.state.kind]
    return isinstance(kind, Extreme) and not _coded(side, one)


def _coded(side: SideRows, one: SideState) -> bool:
    return one.mine in side.reading.wanted.coded_states


def _most(numbers: Array) -> int:
    return 0 if not len(numbers) else max(abs(int(numbers.min())), abs(int(numbers.max())))


@dataclass(frozen=True)
class DenseGroups:
    """The groups that there are: instant, and group of each side; counts and states."""

    instants: Array
    codes: tuple[Array, Array]
    count: Array
    states: dict[State, tuple[Array, ...]]


def dense_groups(
    sides: Sequence[SideRows],
    lists: Lists,
    places: Places,
    instants: Array,
    codes: Sequence[Array],
    states: Sequence[SideState],
) -> DenseGroups:
    """Fold all combinations of two sides; `instants` of the first one's rows, `codes` of the groups of each."""
    at = (instants * places.one + codes[0]) * places.other, codes[1]
    counts = tuple(np.ascontiguousarray(one.groups.count) for one in sides)

    def added(one: Array, other: Array) -> Array:
        out = np.zeros(places.count, np.int64)
        add_products(lists.starts, lists.rows, *at, one, other, out)
        return out

    total = added(*counts)
    there = np.flatnonzero(total)
    made: dict[State, tuple[Array, ...]] = {}
    for one in states:
        words = sides[one.side].groups.states.get(one.mine)
        if words is None:
            continue
        if one.state.kind in ADDED:
            numbers = (words[0], counts[1]) if one.side == 0 else (counts[0], words[0])
            folded = added(*numbers)
        else:
            kind = ACCUMULATORS[one.state.kind]
            assert isinstance(kind, Extreme)
            folded = np.full(places.count, -BOUND if kind.sign > 0 else BOUND - 1, np.int64)
            keep_best(lists.starts, lists.rows, *at, words[0], one.side, kind.sign, folded)
        made[one.state] = (folded[there],)
    rest, other = np.divmod(there, places.other)
    when, first = np.divmod(rest, places.one)
    return DenseGroups(when, (first, other), total[there], made)
