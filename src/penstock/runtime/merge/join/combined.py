"""Combinations of rows into groups: keys from all sides, counts multiplied, sums times the records of the other sides.

COUNT is the product of the sides' counts. SUM of a column of side i is that of the side times the product of
the others' counts (seed aggregation-join, Definition 6). Extremes stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from penstock.aggregates.base import BOUND, State, TooMany
from penstock.aggregates.count import multiplied
from penstock.aggregates.registry import ACCUMULATORS
from penstock.aggregates.shape import Shape
from penstock.aggregates.values import Into
from penstock.errors import RunError
from penstock.kernels.dictionary import Dictionary
from penstock.kernels.tables.merge import distinct
from penstock.logical.expressions import Column, Computed, Expression
from penstock.logical.query import Attribute, Join, Query
from penstock.logical.rewrite import inputs_read, own
from penstock.relations.component import Component, dictionary_component
from penstock.relations.joining import atoms, class_attribute, side_of
from penstock.relations.relation import Relation, named
from penstock.runtime.expressions.evaluate import truth
from penstock.runtime.merge.closer import joined_groups
from penstock.runtime.merge.inputs import GroupRows, Piece
from penstock.runtime.merge.join.computed import Meetings, unpicked, with_computed
from penstock.runtime.merge.join.fixed import TableRows, table_rows
from penstock.runtime.merge.join.linked import linked_pairs
from penstock.runtime.merge.join.named import with_names
from penstock.runtime.merge.join.pairs import Chosen, Pairs, all_pairs, stream_pairs
from penstock.runtime.merge.join.semi import Tests
from penstock.runtime.merge.join.sides import SideRows, distinct_codes, key_numbers, lists_of
from penstock.runtime.merge.merge import merge
from penstock.runtime.merge.results.finisher import NO_DETAILS, Finisher
from penstock.state.segments.groups import Groups
from penstock.state.segments.vocabulary import Vocabulary

Array = np.ndarray
WORD = 1 << 62


def finer_relation(query: Query, wanted: Relation) -> Relation:
    """The groups of joined rows that `wanted` is computed from: by its own attributes, or by the columns that they, or
    arguments of aggregates, are computed of. They have no products: a record may come into several of them."""
    join = query.join
    assert join is not None
    attributes: dict[Attribute, None] = {}
    arguments = []
    for attribute in wanted.attributes:
        attributes |= dict.fromkeys([attribute] if side_of(attribute, join) else atoms(attribute))
    for argument in wanted.arguments:
        if side_of(argument, join):
            arguments.append(argument)
        else:
            attributes |= dict.fromkeys(atoms(argument))
    columns = {argument.name for argument in arguments}
    states = tuple(state for state in unpicked(wanted) if state.column in columns)
    return named(
        replace(wanted, attributes=tuple(attributes), arguments=tuple(arguments), states=states, slots=None, loss=None)
    )


@dataclass(frozen=True)
class Joined:
    """The sides of a join in one pass over its keys, and what EXISTS asks of their combinations."""

    query: Query
    sides: Sequence[SideRows]
    tests: Tests

    def groups(self, wanted: Relation) -> Groups:
        """The groups of joined rows, as `wanted` has them."""
        fine = finer_relation(self.query, wanted)
        if unpicked(wanted) != wanted.states:
            return joined_groups(self._all(fine, wanted), wanted)
        found = self._fine_groups(fine)
        if set(fine.attributes) == set(wanted.attributes) and fine.states == wanted.states:
            return found
        return with_computed(self.query, found, wanted, fine)[0]

    def _fine_groups(self, fine: Relation) -> Groups:
        found, aliases = self._all(fine), {one.alias for one in self.sides}
        groups = joined_groups(found, fine)
        # Rows of a table were told apart by their number: some may be equal.
        several = len(found) == 1 and not all(inputs_read(a) <= aliases for a in fine.attributes)
        return merge(fine, [Piece(GroupRows(groups), groups.panes)], None, Vocabulary()) if several else groups

    def _all(self, fine: Relation, weighed: Relation | None = None) -> list[Groups]:
        """Groups of all combinations, some at a time; those of a `weighed` query as it has them."""
        join = self.query.join
        assert join is not None
        asked = [*fine.attributes, *([] if join.pairs is None else atoms(join.pairs)), *self.tests.columns]
        tables = [
            table_rows(one, dict.fromkeys(a for a in asked if isinstance(a, Column) and inputs_read(a) == {one.alias}))
            for one in join.tables
        ]
        aliases = [one.alias for one in self.sides]
        owners = [aliases.index(one.owner) for one in join.tables]
        classes = [self._classes(one, owner) for one, owner in zip(tables, owners, strict=True)]
        folder = Folder(self.query, self.sides, tables, fine)
        streams = self._streams(join)
        chosen = self.tests.also(_condition(self.query, join.pairs, folder), folder.keyed)
        try:
            pairs = all_pairs(streams, tables, classes, owners, chosen, weighed is not None)
            if weighed is not None:
                return [self._weighed(folder, some, fine, weighed) for some in pairs]
            return [folder.folded(some)[0] for some in pairs]
        except TooMany:
            raise RunError(
                f"a window of query '{self.query.name}' joins more records than BIGINT can count",
                "join by a finer key, or filter the streams before",
            ) from None

    def _weighed(self, folder: Folder, pairs: Pairs, fine: Relation, wanted: Relation) -> Groups:
        """The groups of all combinations of some records of the one stream that delays are promised for."""
        found, at = folder.folded(pairs)
        groups, into = with_computed(self.query, found, wanted, fine)
        met = Meetings(self.query, self.sides[0], found, pairs.streams[0], at, into, len(groups))
        return replace(groups, states=groups.states | met.products(wanted))

    def _streams(self, join: Join) -> Iterator[Pairs]:
        """Rows of streams that belong together."""
        if join.links:
            return linked_pairs(join, self.sides)
        return stream_pairs(
            lists_of(key_numbers(self.sides) if len(self.sides) > 1 else [np.arange(len(self.sides[0].groups))])
        )

    def _classes(self, table: TableRows, owner: int) -> Array:
        """The class of every row of a side; the last is of those that have none."""
        one = self.sides[owner]
        attribute = class_attribute(table.side.match)
        finder = Finisher(self.query, one.groups, NO_DETAILS).operand(attribute)
        nowhere = len(table.starts) - 2
        numbers: Array = finder.values if finder.valid is None else np.where(finder.valid, finder.values, nowhere)
        return numbers


def _condition(query: Query, condition: Expression | None, folder: Folder) -> Chosen:
    if condition is None:
        return lambda pairs: None
    columns = tuple(dict.fromkeys(atoms(condition)))

    def chosen(pairs: Pairs) -> Array:
        rows = folder.keyed(pairs, columns)
        return truth(condition, Finisher(query, rows, NO_DETAILS).scope)

    return chosen


class Folder:
    """Makes groups of combinations."""

    def __init__(self, query: Query, sides: Sequence[SideRows], tables: Sequence[TableRows], fine: Relation) -> None:
        self._query, self._sides, self._tables, self._fine = query, sides, tables, fine
        self._shown: dict[tuple[int, tuple[Attribute, ...]], Groups] = {}
        self._codes = [distinct_codes(one.groups, one.reading, self._own(one, fine.attributes)) for one in sides]
        self._first = min((int(one.groups.panes.min()) for one in sides if len(one.groups)), default=0)
        last = max((int(one.groups.panes.max()) for one in sides if len(one.groups)), default=0)
        self._instants = last - self._first + 1
        self.used = [any(inputs_read(a) == {one.side.alias} for a in fine.attributes) for one in tables]

    def _own(self, one: SideRows, attributes: Sequence[Attribute]) -> list[Attribute]:
        return [own(a, one.alias) for a in attributes if inputs_read(a) == {one.alias}]

    def folded(self, pairs: Pairs) -> tuple[Groups, Array]:
        """The groups of some combinations, and which each is in."""
        _, at = distinct(self._words(pairs)[np.newaxis])
        count = int(at.max()) + 1
        rows = self.keyed(pairs.take(_first_rows(at, count)), self._fine.attributes)
        counts = [one.groups.count[of] for one, of in zip(self._sides, pairs.streams, strict=True)]
        total = _product(counts, len(at))
        into = np.zeros(count, np.int64)
        _add_counts(into, at, total)
        states = self._states(pairs, counts, at, count)
        words = {**rows.dictionaries, **self._state_words()}
        return replace(rows, count=into, states=states, dictionaries=words), at

    def _words(self, pairs: Pairs) -> Array:
        """A number for the group of each combination: instant, and values of all sides."""
        words = self._sides[0].groups.panes[pairs.streams[0]] - self._first
        size = self._instants
        parts = [(codes[of], many) for (codes, many), of in zip(self._codes, pairs.streams, strict=True)]
        for table, used, of in zip(self._tables, self.used, pairs.tables, strict=True):
            parts += [(of, int(table.rows.max(initial=0)) + 1)] if used else []
        for codes, many in parts:
            if size * many >= WORD:  # as small as there are different ones
                found, words = distinct(words.astype(np.uint64)[np.newaxis])
                size = found.shape[1]
            words, size = words * many + codes, size * many
        made: Array = words.astype(np.uint64)
        return made

    def keyed(self, pairs: Pairs, attributes: Sequence[Attribute]) -> Groups:
        """Rows with these attributes of the join, one for each combination."""
        panes = self._sides[0].groups.panes[pairs.streams[0]]
        made = Groups(panes, {}, {}, np.ones(len(pairs), np.int64), {})
        components: dict[Component, Array] = {}
        dictionaries: dict[Component, Dictionary] = {}
        for number, (one, of) in enumerate(zip(self._sides, pairs.streams, strict=True)):
            mine = tuple(a for a in attributes if inputs_read(a) == {one.alias})
            if mine:
                shown = self._named(number, one, mine)
                components |= {name: values[of] for name, values in shown.components.items()}
                dictionaries |= dict(shown.dictionaries)
        for table, of in zip(self._tables, pairs.tables, strict=True):
            components |= {name: values[of] for name, values in table.components.items()}
            dictionaries |= table.dictionaries
        return replace(made, components=components, dictionaries=dictionaries)

    def _named(self, number: int, one: SideRows, attributes: tuple[Attribute, ...]) -> Groups:
        key = number, attributes
        if key not in self._shown:
            names = [(own(a, one.alias), a) for a in attributes]
            self._shown[key] = with_names(one.groups, names)
        return self._shown[key]

    # -- states

    def _state_words(self) -> dict[Component, Dictionary]:
        """Dictionaries that states refer to, by the names of the join."""
        found = {}
        for state, component in self._fine.coded_states.items():
            argument = next(one for one in self._fine.arguments if one.name == state.column)
            one = next(one for one in self._sides if inputs_read(argument) == {one.alias})
            found[component] = one.groups.dictionaries[
                dictionary_component(own(argument, one.alias).name, argument.type.kind)
            ]
        return found

    def _states(self, pairs: Pairs, counts: Sequence[Array], at: Array, groups: int) -> dict[State, tuple[Array, ...]]:
        found: dict[State, tuple[Array, ...]] = {}
        join = self._query.join
        assert join is not None
        for argument in self._fine.arguments:
            alias = side_of(argument, join)
            number = next(n for n, one in enumerate(self._sides) if one.alias == alias)
            one, of = self._sides[number], pairs.streams[number]
            times = _product([count for n, count in enumerate(counts) if n != number], len(of))
            for state in self._fine.states:
                if state.column == argument.name:
                    mine = State(state.kind, own(argument, one.alias).name)
                    words = one.groups.states.get(mine)
                    if words is not None:
                        taken = tuple(word[of] for word in words)
                        found[state] = self._folded(state, argument, one, mine, taken, times, at, groups)
        return found

    def _folded(
        self,
        state: State,
        argument: Column | Computed,
        one: SideRows,
        mine: State,
        taken: tuple[Array, ...],
        times: Array,
        at: Array,
        groups: int,
    ) -> tuple[Array, ...]:
        accumulator = ACCUMULATORS[state.kind]
        words = accumulator.repeated(taken, times)
        kind = argument.type.kind
        wide = len(words) > 1 or (accumulator.grows(kind) and _bound(words[0]) >= BOUND)
        shape = Shape.of({state.column: argument.type}).widened(
            frozenset({state.column}), frozenset({state}) if wide and accumulator.grows(kind) else frozenset()
        )
        form = shape.form(state)
        table = np.empty((groups, form.words), np.int64)
        table[:] = form.fresh
        into = table.view(np.float64) if form.floating else table
        coded = one.groups.dictionaries.get(dictionary_component(mine.column, kind)) if form.coded else None
        where = Into((into, 0, at, 0, len(at)), np.arange(len(at), dtype=np.int32))
        accumulator.fold_partials(where, form.facts, words, coded)
        return tuple(np.ascontiguousarray(into[:, word]) for word in range(into.shape[1]))


def _first_rows(codes: Array, many: int) -> Array:
    """A row of each group."""
    first = np.zeros(many, np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    return first


def _add_counts(into: Array, at: Array, amounts: Array) -> None:
    """Counts by group; more than BIGINT has ends the run."""
    most = int(amounts.max(initial=0)) * len(amounts)
    np.add.at(into, at, amounts)
    if most >= BOUND:
        about = np.zeros(len(into))
        np.add.at(about, at, amounts.astype(np.float64))
        if (about >= float(BOUND) * 0.999).any():
            raise TooMany


def _product(factors: Sequence[Array], rows: int) -> Array:
    if not factors:
        return np.ones(rows, np.int64)
    product, *rest = factors
    for factor in rest:
        product = multiplied(product, factor)
    return product


def _bound(words: Array) -> int:
    """How far these sums may carry a group at most."""
    return 0 if not len(words) else len(words) * max(abs(int(words.min())), abs(int(words.max())))
