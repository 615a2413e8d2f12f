"""EXISTS, NOT EXISTS, IN: rows stay, or go, by whether an inner stream has a row for them. Nothing is multiplied.

    rows of a side ──► numbered by (instant, key) with those of the inner stream ──► is there one? ──► rows that stay
                                             └──► a condition of both: pairs, in chunks ──┘

What is asked of one side alone is judged on its rows before they are joined, so that fewer are; what is asked of
several, on combinations. An inner stream is read as a side is: by its window at every instant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from penstock.logical.expressions import Expression
from penstock.logical.query import Attribute, Existence, Join, Query, column_of
from penstock.logical.rewrite import inputs_read, own
from penstock.relations.component import null_component
from penstock.relations.joining import atoms, key_relation
from penstock.runtime.expressions.evaluate import truth
from penstock.runtime.merge.inputs import GroupRows, Piece
from penstock.runtime.merge.items import Cut
from penstock.runtime.merge.join.named import with_names
from penstock.runtime.merge.join.pairs import Chosen, Pairs, stream_pairs
from penstock.runtime.merge.join.reading import JoinReading
from penstock.runtime.merge.join.sides import SideRows, key_name, lists_of, read_sides
from penstock.runtime.merge.merge import Merge
from penstock.runtime.merge.results.finisher import NO_DETAILS, Finisher
from penstock.runtime.merge.windows import TaskSegments
from penstock.state.segments.groups import Groups
from penstock.state.segments.vocabulary import Vocabulary

Array = np.ndarray
Keyed = Callable[[Pairs, Sequence[Attribute]], Groups]  # attributes of combinations


def read_inner(reading: JoinReading, cut: Cut, turn: int, segments: TaskSegments) -> list[SideRows]:
    """The inner streams of one pass: all of their rows, whatever slice of the others is joined."""
    return read_sides(replace(reading, sides=reading.inner), replace(cut, slice=0, slices=1), turn, segments)


@dataclass(frozen=True)
class Tests:
    """What a query asks of its inner streams, with their rows."""

    query: Query
    inner: Sequence[SideRows]

    def kept(self, sides: Sequence[SideRows]) -> list[SideRows]:
        """The sides without the rows that a test of one side drops."""
        found = list(sides)
        for number, one in enumerate(sides):
            for test in self._join.tests:
                if _side_asked(test, self._join) == one.alias:
                    groups = found[number].groups
                    names = [(own(a, one.alias), a) for a in _attributes(test)]
                    rows = with_names(groups, names)
                    stays = np.flatnonzero(self._passed(test, rows))
                    found[number] = replace(one, groups=groups.take(stays))
        return found

    @cached_property
    def across(self) -> tuple[Existence, ...]:
        """Those that ask of several sides, or of rows of a table."""
        return tuple(test for test in self._join.tests if _side_asked(test, self._join) is None)

    @property
    def columns(self) -> Iterator[Attribute]:
        """What combinations are asked."""
        return (attribute for test in self.across for attribute in _attributes(test))

    def also(self, chosen: Chosen, keyed: Keyed) -> Chosen:
        """The combinations that a condition leaves, and these tests."""
        if not self.across:
            return chosen

        def judged(pairs: Pairs) -> Array:
            left = chosen(pairs)
            stays = np.ones(len(pairs), bool) if left is None else left.copy()
            for test in self.across:
                rows = np.flatnonzero(stays)
                stays[rows] = self._passed(test, keyed(pairs.take(rows), _attributes(test)))
            return stays

        return judged

    @property
    def _join(self) -> Join:
        assert self.query.join is not None
        return self.query.join

    def _passed(self, test: Existence, rows: Groups) -> Array:
        found: Array = self._found(test, rows) != test.negated
        return found

    def _found(self, test: Existence, rows: Groups) -> Array:
        """For which rows the inner stream has one. NULL equals nothing."""
        found = np.zeros(len(rows), bool)
        inner = self._inner_rows(test)
        asked = self._true(test.when, rows)
        asked &= _present(rows, (of for of, _ in test.equals))
        at = np.flatnonzero(asked)
        if not len(at) or not len(inner):
            return found
        asking = rows.take(at)
        mine, theirs = self._numbers(test, asking, inner)
        if test.pairs is None:
            there = np.zeros(1 + max(int(mine.max()), int(theirs.max())), bool)
            there[theirs] = True
            found[at] = there[mine]
            return found
        for pairs in stream_pairs(lists_of([mine, theirs])):
            one, other = pairs.streams
            holds = self._true(test.pairs, _beside(asking.take(one), inner.take(other)))
            found[at[one[holds]]] = True
        return found

    def _inner_rows(self, test: Existence) -> Groups:
        """The rows of the inner stream that can be found, under the names of the join."""
        one = next(one for one in self.inner if one.alias == test.inner)
        asked = [*(of for _, of in test.equals), *_atoms((test.where, test.pairs))]
        mine = [a for a in dict.fromkeys(asked) if inputs_read(a) == {test.inner}]
        rows = with_names(one.groups, [(own(a, test.inner), a) for a in mine])
        stays = self._true(test.where, rows) & _present(rows, (of for _, of in test.equals))
        return rows.take(np.flatnonzero(stays))

    def _numbers(self, test: Existence, asking: Groups, inner: Groups) -> tuple[Array, Array]:
        """The number of every row's (instant, key), the same on both sides. Where only what is computed of several rows
        is equal, all rows of an instant meet."""
        if not test.equals:
            first = min(int(asking.panes.min()), int(inner.panes.min()))
            return asking.panes - first, inner.panes - first
        relation = next(one for one in self.inner if one.alias == test.inner).reading.wanted
        names = [key_name(number, of) for number, (of, _) in enumerate(test.equals)]
        pieces = []
        for groups, attributes in zip((asking, inner), zip(*test.equals, strict=True), strict=True):
            keyed = with_names(groups, zip(attributes, names, strict=True))
            pieces.append(Piece(GroupRows(keyed), keyed.panes))
        numbers = Merge(key_relation(relation, names), pieces, Vocabulary()).numbers()
        return numbers[: len(asking)], numbers[len(asking) :]

    def _true(self, condition: Expression | None, rows: Groups) -> Array:
        if condition is None:
            return np.ones(len(rows), bool)
        found: Array = truth(condition, Finisher(self.query, rows, NO_DETAILS).scope)
        return found.copy()


def _side_asked(test: Existence, join: Join) -> str | None:
    """The only side that a test asks; None: several, or a table. What asks nobody is asked of the first."""
    asked = frozenset().union(*map(inputs_read, test.asked)) - {test.inner}
    known = {side.alias for side in join.sides}
    if not asked:
        return join.sides[0].alias
    return next(iter(asked)) if len(asked) == 1 and asked <= known else None


def _attributes(test: Existence) -> list[Attribute]:
    """What is asked of the other sides."""
    found = [*(of for of, _ in test.equals), *_atoms((test.when, test.pairs))]
    return [attribute for attribute in dict.fromkeys(found) if test.inner not in inputs_read(attribute)]


def _atoms(conditions: Iterable[Expression | None]) -> Iterator[Attribute]:
    return (atom for condition in conditions if condition is not None for atom in atoms(condition))


def _present(rows: Groups, attributes: Iterable[Attribute]) -> Array:
    """Which rows have a value of all these."""
    stays = np.ones(len(rows), bool)
    for attribute in attributes:
        stays &= rows.components[null_component(column_of(attribute))] == 0
    return stays


def _beside(one: Groups, other: Groups) -> Groups:
    """Rows of two kinds as one, with the attributes of both."""
    components, dictionaries = {**one.components, **other.components}, {**one.dictionaries, **other.dictionaries}
    return replace(one, components=components, dictionaries=dictionaries)
