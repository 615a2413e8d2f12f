"""What joined rows have that no side has: columns computed of several sides, as keys and as states; and the products
of picks, each with all of its rows in a group.

operand (values, what is NULL) ──► components of a key, or states of as many records as a joined row stands for
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from penstock.aggregates.base import IPV6, Facts, State
from penstock.aggregates.registry import ACCUMULATORS
from penstock.aggregates.squares import SQUARED, Product
from penstock.aggregates.values import EVERYTHING, Into, Values, measured
from penstock.kernels import inet
from penstock.kernels.dictionary import Dictionary
from penstock.kernels.tables.fold import order_bits
from penstock.logical.expressions import Column, Computed, Prefix
from penstock.logical.query import Query
from penstock.logical.rewrite import own
from penstock.logical.types import Kind
from penstock.relations.component import (
    Component,
    dictionary_component,
    inet6_component,
    null_component,
    value_component,
)
from penstock.relations.joining import side_of
from penstock.relations.relation import Relation
from penstock.runtime.expressions.evaluate import Addresses, Operand, evaluate
from penstock.runtime.merge.inputs import GroupRows, Piece
from penstock.runtime.merge.join.sides import SideRows
from penstock.runtime.merge.merge import Merge
from penstock.runtime.merge.results.finisher import NO_DETAILS, Finisher
from penstock.state.segments.groups import Groups
from penstock.state.segments.vocabulary import Vocabulary

Array = np.ndarray


@dataclass(frozen=True)
class ColumnOfValues:
    """A column as keys have it: components with their dictionaries. `missing` is what stands for a NULL."""

    components: dict[Component, Array]
    dictionaries: dict[Component, Dictionary]
    missing: dict[Component, int]
    floats: Array | None = None


def column_of_values(column: Column | Computed, operand: Operand, rows: int) -> ColumnOfValues:
    """Values of any type in canonical form."""
    name, kind, values = column.name, column.type.kind, operand.values
    nulls = np.zeros(rows, np.int64) if operand.valid is None else (~operand.valid).astype(np.int64)
    value, flag, floats = value_component(name), null_component(name), None
    dictionaries: dict[Component, Dictionary] = {}
    made: dict[Component, Array] = {}
    missing = {value: 0, flag: 1}
    if kind is Kind.INET:
        six, numbers = inet6_component(name), np.where(values.version == 4, values.low, 0).astype(np.int64)
        dictionaries[six], made[six] = _long_addresses(values, nulls)
        missing[six] = 0
    elif kind is Kind.STRING:
        dictionaries[value], numbers = _codes(values)
        missing[value] = -1
    elif kind is Kind.DOUBLE:
        floats = np.ascontiguousarray(values, np.float64)
        numbers = np.empty(rows, np.int64)
        order_bits(floats, numbers)
    else:
        numbers = np.ascontiguousarray(values).astype(np.int64)
    made[value] = np.where(nulls != 0, missing[value], numbers)
    made[flag] = nulls
    return ColumnOfValues(made, dictionaries, missing, floats)


def _codes(strings: pa.Array) -> tuple[Dictionary, Array]:
    encoded = strings if isinstance(strings, pa.DictionaryArray) else strings.dictionary_encode()
    words = Dictionary()
    texts = encoded.dictionary.cast(pa.large_binary())
    offsets = np.frombuffer(texts.buffers()[1], np.int64)[texts.offset : texts.offset + len(texts) + 1]
    data = np.frombuffer(texts.buffers()[2], np.uint8) if texts.buffers()[2] is not None else np.empty(0, np.uint8)
    codes = words.intern(offsets, data) if len(texts) else np.zeros(1, np.int64)
    at = encoded.indices.fill_null(0).to_numpy(zero_copy_only=False)
    return words, codes[at]


def _long_addresses(addresses: Addresses, nulls: Array) -> tuple[Dictionary, Array]:
    """IPv6 addresses as codes + 1; 0 where they are IPv4, or NULL."""
    words, codes = Dictionary(), np.zeros(len(addresses.low), np.int64)
    six = np.flatnonzero((addresses.version == 6) & (nulls == 0))
    if len(six):
        codes[six] = words.intern(*inet.network_order(addresses.high[six], addresses.low[six])) + 1
    return words, codes


def with_computed(query: Query, groups: Groups, wanted: Relation, known: Relation) -> tuple[Groups, Array]:
    """Groups of joined rows as `wanted` has them, from finer ones that have the columns of what is computed; and which
    of them each of those is in. Products are left out."""
    finisher = Finisher(query, groups, NO_DETAILS)

    def column(of: Column | Computed) -> ColumnOfValues:
        computed = isinstance(of, Computed) and of not in known.attributes
        made = (
            evaluate(of.expression, finisher.scope) if isinstance(of, Computed) and computed else finisher.operand(of)
        )
        return column_of_values(of, made, len(groups))

    components, dictionaries = dict(groups.components), dict(groups.dictionaries)
    for attribute in wanted.attributes:
        if attribute not in known.attributes:
            assert not isinstance(attribute, Prefix)
            found = column(attribute)
            components |= found.components
            dictionaries |= found.dictionaries
    states = dict(groups.states)
    for argument in wanted.arguments:
        asked = [state for state in unpicked(wanted) if state.column == argument.name and state not in states]
        if asked and argument not in known.arguments:
            found = column(argument)
            states |= _states(asked, argument, found, groups.count)
            dictionaries |= {
                dictionary_component(argument.name, argument.type.kind): words for words in found.dictionaries.values()
            }
    kept = {part.component: components[part.component] for part in wanted.parts[1:]}
    named = {
        name: words for name, words in dictionaries.items() if name in kept or name in wanted.coded_states.values()
    }
    made = Groups(groups.panes, kept, named, groups.count, {s: w for s, w in states.items() if s in wanted.states})
    return Merge(wanted, [Piece(GroupRows(made), made.panes)], Vocabulary()).placed()


def unpicked(relation: Relation) -> tuple[State, ...]:
    """The states of a relation that are no products."""
    return tuple(state for state in relation.states if not ACCUMULATORS[state.kind].picked)


def _states(
    asked: list[State], argument: Column | Computed, column: ColumnOfValues, count: Array
) -> Mapping[State, tuple[Array, ...]]:
    """States of values that are each there as often as the row has records."""
    rows, values = len(count), _values(argument, column)
    made = {}
    for state in asked:
        accumulator = ACCUMULATORS[state.kind]
        facts = Facts(argument.type.kind, nullable=True, wide=False)
        table = np.empty((rows, accumulator.words(facts)), np.int64)
        table[:] = accumulator.fresh(facts)
        into = table.view(np.float64) if accumulator.floating(facts) else table
        coded = accumulator.code_base(facts.kind) is not None
        dictionary = next(iter(column.dictionaries.values())) if coded and column.dictionaries else None
        where = Into((into, 0, np.arange(rows), 0, rows), np.arange(rows, dtype=np.int32))
        accumulator.fold(where, facts, values, dictionary)
        words = tuple(np.ascontiguousarray(into[:, word]) for word in range(into.shape[1]))
        made[state] = accumulator.repeated(words, count)
    return made


def _values(argument: Column | Computed, column: ColumnOfValues) -> Values:
    nulls = column.components[null_component(argument.name)] != 0
    valid = (~nulls).astype(np.uint8) if nulls.any() else EVERYTHING
    numbers = column.components[value_component(argument.name)]
    six = column.components.get(inet6_component(argument.name))
    if six is not None:
        numbers = np.where(six > 0, IPV6 + six - 1, numbers)
    floats, rest = (column.floats, None) if column.floats is not None else measured(numbers)
    return Values(numbers, valid, floats, rest)


@dataclass(frozen=True)
class Meetings:
    """Which `rows` of a stream come into which groups: a combination is `at` a fine group, and that is a part of
    `into` one of so many `groups`."""

    query: Query
    stream: SideRows
    fine: Groups
    rows: Array
    at: Array
    into: Array
    groups: int

    def products(self, wanted: Relation) -> dict[State, tuple[Array, ...]]:
        """Those that the groups have. What all rows of a table that a pick meets give to a group is added up before."""
        found: dict[State, tuple[Array, ...]] = {}
        for argument in wanted.arguments:
            for state in wanted.states:
                if state.column == argument.name and ACCUMULATORS[state.kind].picked:
                    words = self._of_cells(state, argument)
                    if words is not None:
                        found[state] = self._folded(words)
        return found

    def _of_cells(self, state: State, argument: Column | Computed) -> tuple[Array, ...] | None:
        """The products of the records of a row in a group; None: all were read."""
        product, (cells, which, times) = ACCUMULATORS[state.kind], self._cells
        assert isinstance(product, Product)
        assert self.query.join is not None
        rows, groups = cells // self.groups, self.stream.groups
        if side_of(argument, self.query.join) == self.stream.alias:
            mine = groups.states.get(State(state.kind, own(argument, self.stream.alias).name))
            return None if mine is None else product.repeated(tuple(word[rows] for word in mine), times * times)
        values = self._values(argument)
        there = values.valid if len(values.valid) else np.ones(len(self.fine))
        count = np.bincount(which, there[self.at], len(cells))
        total = count
        if values.floats is not None:
            total = np.bincount(which, np.where(there != 0, values.floats, 0.0)[self.at], len(cells))
        with np.errstate(over="ignore", invalid="ignore"):
            products = product.of(total, count)
        return product.repeated((products, np.zeros(len(cells))), groups.count[rows])

    def _values(self, argument: Column | Computed) -> Values:
        finisher = Finisher(self.query, self.fine, NO_DETAILS)
        operand = (
            evaluate(argument.expression, finisher.scope)
            if isinstance(argument, Computed)
            else finisher.operand(argument)
        )
        return _values(argument, column_of_values(argument, operand, len(self.fine)))

    @cached_property
    def _cells(self) -> tuple[Array, Array, Array]:
        """The rows and groups that meet, as numbers; which each combination is in; and how often they meet."""
        numbers = self.rows * self.groups + self.into[self.at]
        return np.unique(numbers, return_inverse=True, return_counts=True)

    def _folded(self, words: tuple[Array, ...]) -> tuple[Array, ...]:
        at = self._cells[0] % self.groups
        table = np.zeros((self.groups, 2))
        into = Into((table, 0, at, 0, len(at)), np.arange(len(at), dtype=np.int32))
        SQUARED.fold_partials(into, Facts(Kind.DOUBLE), words, None)
        return tuple(np.ascontiguousarray(table[:, word]) for word in range(2))
