"""Two streams joined by the rows that live at the instants of an item (`living`): the quick way of a join.

    rows with lives ──► keys and groups numbered once for all instants ──► folded (`folding`) ──► groups by instant

It takes joins of two streams by time, without tables and conditions on pairs, whose aggregates are whole numbers.
Whatever else there is, `combined` joins; both give the same groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from penstock.aggregates.base import State
from penstock.aggregates.extremes import Extreme
from penstock.aggregates.registry import ACCUMULATORS
from penstock.kernels.dictionary import Dictionary
from penstock.kernels.tables import living as kernels
from penstock.logical.query import Attribute, Query
from penstock.logical.rewrite import inputs_read, own
from penstock.relations.component import Component
from penstock.relations.joining import key_relation, side_of
from penstock.relations.relation import Relation, attribute_parts
from penstock.runtime.merge.inputs import Piece, RenamedRows
from penstock.runtime.merge.items import Cut
from penstock.runtime.merge.join.combined import finer_relation
from penstock.runtime.merge.join.folding import Folded, FoldedSide, Matched, Op, fits, folded, matched
from penstock.runtime.merge.join.living import LivingRows, is_plain, living_rows
from penstock.runtime.merge.join.reading import JoinReading
from penstock.runtime.merge.join.sides import key_name
from penstock.runtime.merge.merge import Codes, Merge
from penstock.runtime.merge.windows import TaskSegments
from penstock.state.segments.groups import Groups, blank_nulls
from penstock.state.segments.vocabulary import Vocabulary, compacted

Array = np.ndarray
ADDED = ("count", "sum")  # kinds of states that are numbers, and add up


def takes(query: Query, reading: JoinReading, parts: Sequence[Relation]) -> bool:
    """Whether a join is one for this module, as far as the query tells."""
    join = query.join
    assert join is not None
    if len(join.sides) != 2 or join.tables or join.pairs is not None or reading.window.whole:
        return False
    return all(map(is_plain, reading.sides)) and all(_is_simple(query, wanted) for wanted in parts)


def _is_simple(query: Query, wanted: Relation) -> bool:
    """Whether a relation of joined rows has attributes and states of one side each, which are whole numbers."""
    join = query.join
    assert join is not None
    if any(side_of(one, join) is None for one in (*wanted.attributes, *wanted.arguments)):
        return False
    forms = wanted.shape.forms(wanted.states)
    return all(not form.floating and not form.coded and _kind(state) is not None for state, form in forms.items())


def _kind(state: State) -> int | None:
    """How a state folds: it adds up (0), is the least (-1) or the greatest (1) value; None: it is more than that."""
    accumulator = ACCUMULATORS[state.kind]
    if isinstance(accumulator, Extreme):
        return accumulator.sign
    return 0 if state.kind in ADDED else None


@dataclass(frozen=True)
class LivingJoin:
    """The rows of both sides at the instants of a cut."""

    query: Query
    cut: Cut
    sides: tuple[LivingRows, ...]
    vocabulary: Vocabulary

    @classmethod
    def read(cls, query: Query, reading: JoinReading, cut: Cut, segments: TaskSegments) -> LivingJoin:
        segments.vocabulary.trim()
        sides = tuple(living_rows(one, reading.shift(one.side.window), cut, segments) for one in reading.sides)
        return cls(query, cut, sides, segments.vocabulary)

    @property
    def instants(self) -> int:
        return self.cut.beyond - self.cut.first

    @cached_property
    def held(self) -> tuple[tuple[Array, Array], ...]:
        """The instants at which each side holds records, and how many."""
        return tuple(map(self._held, self.sides))

    def _held(self, side: LivingRows) -> tuple[Array, Array]:
        by_life, nothing = np.zeros(len(side.lives), np.int64), np.zeros(len(side), np.int64)
        kernels.add_cells(nothing, side.of, nothing, side.count, 1, 1, kernels.ADD, by_life)
        counts = np.array([by_life[side.lives.at(at)].sum() for at in range(self.instants)], np.int64)
        some = np.flatnonzero(counts)
        return some + self.cut.first, counts[some]

    @cached_property
    def _matched(self) -> Matched:
        """Rows by key. Where no row lives at two instants, the instant is part of the key: others do not meet."""
        names = [key_name(number, a) for number, a in enumerate(self.sides[0].reading.side.key)]
        pieces = [_renamed(piece, side, names) for side in self.sides for piece in side.pieces]
        apart = all(side.lives.single for side in self.sides)
        bare = key_relation(self.sides[0].reading.wanted, names)
        found = Merge(bare, pieces, self.vocabulary).codes(apart and self.instants > 1)
        middle = len(self.sides[0])
        return matched((found.numbers[:middle], found.numbers[middle:]), found.many)

    def groups(self, wanted: Relation) -> Groups | None:
        """The groups of joined rows as `wanted` has them; None: not this way."""
        fine = finer_relation(self.query, wanted)
        if not all(map(len, self.sides)):
            return _nothing(fine)
        attributes = [Grouped.of(self, side, fine) for side in self.sides]
        columns = [Columns(side) for side in self.sides]
        ops = self._ops(fine, columns)
        if ops is None:
            return None
        one, other = (
            FoldedSide(side.lives, side.of, by.codes.numbers, by.codes.many, of.values, tuple(of.extremes))
            for side, by, of in zip(self.sides, attributes, columns, strict=True)
        )
        if not fits(one, other, self._matched.pairs, ops):
            return None
        made = folded(one, other, self._matched, ops, self.instants)
        return None if made is None else _groups(made, attributes, ops, self.cut.first)

    def _ops(self, fine: Relation, columns: Sequence[Columns]) -> list[Op] | None:
        """What is folded of pairs; None: some state is more than a number."""
        ops = [Op(None, kernels.ADD)]
        for argument in fine.arguments:
            number = next(n for n, side in enumerate(self.sides) if inputs_read(argument) == {side.alias})
            name = own(argument, self.sides[number].alias).name
            for state in fine.states:
                if state.column == argument.name:
                    sign = _kind(state)
                    assert sign is not None
                    at = columns[number].place(State(state.kind, name), sign)
                    if at is None:
                        return None
                    ops.append(_op(state, sign, number, at))
        return ops


def _op(state: State, sign: int, number: int, at: int) -> Op:
    places = (at, 0) if number == 0 else (0, at)
    if not sign:
        return Op(state, kernels.ADD, *places)
    least = (kernels.LEAST_ONE, kernels.LEAST_OTHER)[number]
    greatest = (kernels.GREATEST_ONE, kernels.GREATEST_OTHER)[number]
    return Op(state, least if sign < 0 else greatest, *places)


class Columns:
    """The columns of a side that aggregates are made of; the first counts records."""

    def __init__(self, side: LivingRows) -> None:
        self._side, self._found = side, [side.count]
        self.extremes = [0]
        self._places: dict[State, int] = {}

    def place(self, state: State, sign: int) -> int | None:
        """The number of a state's column; None: it is more than a number."""
        if state not in self._places:
            values = self._side.state(state)
            if values is None:
                return None
            self._places[state] = len(self._found)
            self._found.append(values)
            self.extremes.append(sign)
        return self._places[state]

    @cached_property
    def values(self) -> Array:
        return np.stack(self._found)


@dataclass(frozen=True)
class Grouped:
    """What a join groups the rows of a side by: codes of their values, and how the join calls these."""

    attributes: tuple[tuple[Attribute, Attribute], ...]  # as the stream and as the join calls them
    codes: Codes
    dictionaries: Mapping[Component, Dictionary]
    strings: frozenset[str]

    @classmethod
    def of(cls, join: LivingJoin, side: LivingRows, fine: Relation) -> Grouped:
        names = tuple((own(a, side.alias), a) for a in fine.attributes if inputs_read(a) == {side.alias})
        bare = key_relation(side.reading.wanted, dict.fromkeys(mine for mine, _ in names))
        merge = Merge(bare, side.pieces, join.vocabulary)
        return cls(names, merge.codes(False), merge.dictionaries, bare.shape.strings)

    def keyed(self, numbers: Array) -> tuple[dict[Component, Array], dict[Component, Dictionary]]:
        """Components of the join's keys, of groups with these codes, and dictionaries of the strings among them."""
        found = self.codes.components(numbers)
        blank_nulls(found, self.strings)
        components, dictionaries = {}, {}
        for mine, name in self.attributes:
            for before, after in zip(attribute_parts(mine), attribute_parts(name), strict=True):
                values = found[before.component]
                if before.component in self.dictionaries:
                    words = self.dictionaries[before.component]
                    base = before.component.code_base
                    dictionaries[after.component], (values,) = compacted(words, [(values, base)])
                components[after.component] = values
        return components, dictionaries


def _groups(made: Folded, attributes: Sequence[Grouped], ops: Sequence[Op], first: int) -> Groups:
    components: dict[Component, Array] = {}
    dictionaries: dict[Component, Dictionary] = {}
    for by, numbers in zip(attributes, made.codes, strict=True):
        keys, words = by.keyed(numbers)
        components |= keys
        dictionaries |= words
    states: dict[State, tuple[Array, ...]] = {
        op.state: (values,) for op, values in zip(ops, made.values, strict=True) if op.state is not None
    }
    return Groups(made.instants + first, components, dictionaries, made.values[0], states)


def _nothing(fine: Relation) -> Groups:
    none = np.empty(0, np.int64)
    words = {part: Dictionary() for part in fine.coded_parts}
    return Groups(none, {part.component: none for part in fine.parts[1:]}, words, none, {})


def _renamed(piece: Piece, side: LivingRows, names: Sequence[Attribute]) -> Piece:
    """With the key of the join under names that all sides have."""
    called = {
        after.component: before.component
        for mine, name in zip(side.reading.side.key, names, strict=True)
        for before, after in zip(attribute_parts(mine), attribute_parts(name), strict=True)
    }
    return Piece(RenamedRows(piece.rows, called), piece.where, piece.index)
