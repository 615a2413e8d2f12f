"""A join of two streams from the rows that live at the instants of an item.

rows with lives ──► keys and groups numbered once for all instants ──► folded (`folding`) ──► groups by instant
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from penstock.aggregates.base import State
from penstock.kernels.dictionary import Dictionary
from penstock.kernels.tables import living as kernels
from penstock.logical.query import Attribute, Query
from penstock.logical.rewrite import inputs_read, own
from penstock.relations.component import Component
from penstock.relations.joining import key_relation
from penstock.relations.relation import Relation, attribute_parts
from penstock.runtime.merge.inputs import Piece, RenamedRows
from penstock.runtime.merge.items import Cut
from penstock.runtime.merge.join.combined import finer_relation
from penstock.runtime.merge.join.living.fit import sign_of
from penstock.runtime.merge.join.living.folding import Folded, FoldedSide, Folding, ValueColumn, fits, folded, pairs_of
from penstock.runtime.merge.join.living.rows import LivingRows, living_rows
from penstock.runtime.merge.join.reading import JoinReading
from penstock.runtime.merge.join.sides import key_name
from penstock.runtime.merge.merge import Codes, Merge
from penstock.runtime.merge.windows import TaskSegments
from penstock.state.segments.groups import Groups, blank_nulls
from penstock.state.segments.vocabulary import Vocabulary, compacted

Array = np.ndarray


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
        sides = tuple(
            living_rows(one, reading.shift(one.side.window), cut, segments, cut.slices > 1 and n == reading.largest)
            for n, one in enumerate(reading.sides)
        )
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
    def keys(self) -> tuple[list[Array], int, int]:
        """The number of every row's key, by side; how many there are, and how many pairs of rows have equal ones.
        Where no row lives at two instants, the instant is part of the key: others do not meet."""
        names = [key_name(number, a) for number, a in enumerate(self.sides[0].reading.side.key)]
        pieces = [_renamed(piece, side, names) for side in self.sides for piece in side.pieces]
        apart = all(side.lives.single for side in self.sides)
        bare = key_relation(self.sides[0].reading.wanted, names)
        found = Merge(bare, pieces, self.vocabulary).codes(apart and self.instants > 1)
        keys = np.split(found.numbers, [len(self.sides[0])])
        return keys, found.many, pairs_of(keys, found.many)

    def groups(self, wanted: Relation) -> Groups | None:
        """The groups of joined rows as `wanted` has them; None: some state is more than a number. Raises
        `TooManyPlaces`."""
        fine = finer_relation(self.query, wanted)
        if not all(map(len, self.sides)):
            return _nothing(fine)
        grouped = [Grouped.of(self, side, fine) for side in self.sides]
        columns = [_columns(side, fine) for side in self.sides]
        keys, many, pairs = self.keys
        values = [side.values([mine for mine, _ in of]) for side, of in zip(self.sides, columns, strict=True)]
        known = [each for each in values if each is not None]
        if len(known) < len(values):
            return None
        one, other = (
            FoldedSide(side.lives, side.of, key, by.codes.numbers, by.codes.many, tuple(c for _, c in of), each)
            for side, key, by, of, each in zip(self.sides, keys, grouped, columns, known, strict=True)
        )
        folding = Folding(one, other, many, self.instants, pairs)
        return _groups(folded(folding), grouped, self.cut.first) if fits(folding) else None


def _columns(side: LivingRows, fine: Relation) -> list[tuple[State, ValueColumn]]:
    """The states of a side that those of the join are made of: those that add up first, then the least, then the
    greatest values."""
    made = []
    for argument in fine.arguments:
        if inputs_read(argument) == {side.alias}:
            name = own(argument, side.alias).name
            mine = [state for state in fine.states if state.column == argument.name]
            made += [(State(state.kind, name), ValueColumn(state, sign_of(state) or 0)) for state in mine]
    return sorted(made, key=lambda one: (0, -1, 1).index(one[1].sign))


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


def _groups(made: Folded, grouped: Sequence[Grouped], first: int) -> Groups:
    components: dict[Component, Array] = {}
    dictionaries: dict[Component, Dictionary] = {}
    for by, numbers in zip(grouped, made.codes, strict=True):
        keys, words = by.keyed(numbers)
        components |= keys
        dictionaries |= words
    states: dict[State, tuple[Array, ...]] = {
        op.state: (values,) for op, values in zip(made.ops, made.values, strict=True) if op.state is not None
    }
    return Groups(made.instants + first, components, dictionaries, made.values[0], states)


def _nothing(fine: Relation) -> Groups:
    none = np.empty(0, np.int64)
    words = {part: Dictionary() for part in fine.coded_parts}
    return Groups(none, {part.component: none for part in fine.parts[1:]}, words, none, {})


def _renamed(piece: Piece, side: LivingRows, names: Sequence[Attribute]) -> Piece:
    """With the key of the join under names that all sides have, and the instant at which each row is born: lives have
    numbers of their own on each side."""
    called = {
        after.component: before.component
        for mine, name in zip(side.reading.side.key, names, strict=True)
        for before, after in zip(attribute_parts(mine), attribute_parts(name), strict=True)
    }
    return Piece(RenamedRows(piece.rows, called), side.lives.born[piece.windows], piece.index)
