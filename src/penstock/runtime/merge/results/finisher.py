"""Keys and aggregates of groups, as operands and as Arrow columns.

Columns are as cheap to make as can be: integers stay wide, windows and strings dictionary-encoded. Sinks know what the
schema wants.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.aggregates.base import IPV6, FinishedValues, OutOfRange
from penstock.aggregates.count import kept_of
from penstock.aggregates.registry import function_of
from penstock.errors import RunError
from penstock.kernels import inet
from penstock.kernels.numbering import distinct_words
from penstock.kernels.tables.fold import from_order_bits
from penstock.kernels.tables.merge import distinct
from penstock.logical.expressions import (
    COUNT,
    ESTIMATED,
    EXACT,
    ITEM,
    Aggregate,
    Bucket,
    Column,
    Computed,
    Expression,
    Listed,
    Match,
    Prefix,
    Triaged,
    WindowEnd,
)
from penstock.logical.query import Query, column_of
from penstock.logical.render import render
from penstock.logical.types import Kind, Type
from penstock.logical.window import ROWS
from penstock.relations.component import WHOLE, Component, inet6_component, null_component, value_component
from penstock.relations.relation import IPV4_BITS
from penstock.runtime.expressions.evaluate import Addresses, Operand, Scope, evaluate
from penstock.runtime.expressions.operands import array_of, decoded
from penstock.runtime.merge.estimates.errors import added, adds
from penstock.runtime.merge.estimates.estimated import Estimated
from penstock.sinks.schema import TIME
from penstock.state.segments.groups import Groups

Array = np.ndarray
Details = Mapping[Aggregate, Callable[[], FinishedValues]]  # results that are made of details, when they are asked for
NO_DETAILS: Details = {}


@dataclass(frozen=True)
class Listing:
    """Rows that an aggregate gives: the group of each, its value (the detail of `rows`), and its counts."""

    at: Array
    rows: Groups
    counts: Array
    undercounts: Array


class WindowBounds(Protocol):
    """Start and end of windows by number, in microseconds."""

    def of(self, windows: Array) -> tuple[Array, Array]: ...


class Finisher:
    """Keys and aggregates of groups as operands and as Arrow columns."""

    def __init__(
        self,
        query: Query,
        groups: Groups,
        details: Details,
        listing: Listing | None = None,
        bounds: WindowBounds | None = None,
        estimated: Estimated | None = None,
    ) -> None:
        self._query, self._groups, self._details, self._listing = query, groups, details, listing
        self._bounds, self._estimated = bounds, estimated
        self._found: dict[Match, Operand] = {}

    @property
    def scope(self) -> Scope:
        """Not kept here: it knows this object, and what is in a circle waits for the garbage collector. Columns of
        dozens of queries did, and each made the next ones touch fresh memory."""
        return Scope(self.operand, len(self._groups), grouped=True, found=self._found)

    def operand(self, expression: Expression) -> Operand:
        match expression:
            case Bucket():
                return Operand(self._groups.panes)
            case WindowEnd() if self._bounds is not None:
                return Operand(self._bounds.of(self._groups.panes)[1])
            case Aggregate():
                return self._aggregate(expression)
            case Listed():
                return self._listed(expression)
            case Triaged(of, what):
                return self._triaged(of, what)
            case Prefix(column, length):
                return Operand(self._addresses(column.name, length), self._present(column.name))
            case Column() | Computed():
                return self._key(expression)
        raise AssertionError(f"no operand for {expression}")

    def arrow(self, expression: Expression, kind: pa.DataType) -> pa.Array:
        """A column of the select list, which has this type in results."""
        shown = self._printed(expression)
        if shown is not None:
            return shown
        operand = evaluate(expression, self.scope)
        values = operand.values
        if isinstance(values, Addresses):
            values = self._text(values, _length(expression))
        nulls = None if operand.valid is None else ~operand.valid
        if isinstance(values, pa.DictionaryArray):
            if nulls is None:
                return values
            codes = np.from_dlpack(values.indices)  # `to_numpy` loads pandas
            return dictionary_of(array_of(codes, nulls), values.dictionary)
        if isinstance(values, pa.Array):
            return values if nulls is None else pc.if_else(array_of(nulls), None, values)
        if pa.types.is_integer(kind):
            kind = pa.int64()
        if kind == TIME:
            return array_of(values.astype(np.int64, copy=False), nulls).view(TIME)
        made = array_of(values.astype(str(kind), copy=False), nulls)
        return made if made.type == kind else made.cast(kind)

    def _present(self, column: str) -> Array | None:
        nulls = self._groups.components[null_component(column)]
        return nulls == 0 if nulls.any() else None

    def _key(self, column: Column | Computed) -> Operand:
        name, valid = column.name, self._present(column.name)
        if column.type.kind is Kind.INET:
            return Operand(self._addresses(name), valid)
        return Operand(
            self._typed(column.type, value_component(name), self._groups.components[value_component(name)]), valid
        )

    def _typed(self, kind: Type, component: Component, numbers: Array) -> Any:
        """Canonical numbers of a key or an aggregate as values of their type."""
        if kind.kind is Kind.STRING:
            words = self._groups.dictionaries[component]
            strings = _strings(words.offsets, words.data) if words.count else pa.array([""])
            # Codes of NULLs and of aggregates without a value are not looked at.
            inside = not len(numbers) or (numbers.min() >= 0 and numbers.max() < len(strings))
            codes = (numbers if inside else np.clip(numbers, 0, len(strings) - 1)).astype(np.int32)
            return dictionary_of(array_of(codes), strings)
        if kind.kind is Kind.DOUBLE:
            floats = np.empty(len(numbers), np.float64)
            from_order_bits(numbers, floats)
            return floats
        return numbers != 0 if kind.kind is Kind.BOOLEAN else numbers

    def _addresses(self, name: str, length: int = WHOLE) -> Addresses:
        """The addresses of a key column, cut to `length` bits."""
        return self._cut(name, self._groups.components, length)

    def _cut(self, name: str, components: Mapping[Component, Array], length: int) -> Addresses:
        component, numbers = inet6_component(name, length), components[value_component(name)]
        if length != WHOLE:
            drop = max(0, IPV4_BITS - length)
            numbers = numbers >> drop << drop
        codes = components[component]
        six = codes - component.code_base if codes.any() else None
        return decoded(numbers, six, self._groups.dictionaries.get(component))

    def _printed(self, expression: Expression) -> pa.DictionaryArray | None:
        """A key of addresses whose values are known by code, where printing all of these is worth it: other queries
        show them as well."""
        name, length = _key_column(expression)
        if name not in self._groups.coded:
            return None
        codes, column = self._groups.coded[name]
        values = column.values[value_component(name)]
        if length not in column.printed:
            if 2 * len(codes) < len(values):
                return None
            column.printed[length] = self._text(self._cut(name, column.values, length), length)
        printed = column.printed[length]
        distinct = len(printed.dictionary) == len(printed)  # then they are in order
        shown, nulls = codes if distinct else printed.indices.to_numpy()[codes], column.values[null_component(name)]
        gone = nulls[codes] != 0 if nulls.any() else None
        return dictionary_of(array_of(shown.astype(np.int32, copy=False), gone), printed.dictionary)

    def _text(self, addresses: Addresses, length: int = -1) -> pa.DictionaryArray:
        """Addresses as text, each printed once."""
        version = addresses.version
        if version.strides != (0,) and (version == 6).any():
            found, codes = distinct(np.stack([version.astype(np.uint64), addresses.high, addresses.low]))
            text = inet.to_text(found[0].astype(np.uint8), found[1], found[2], length)
            codes = codes.astype(np.int32)
        else:
            low, codes = distinct_words(addresses.low)
            text = inet.to_text(np.full(len(low), 4, np.uint8), np.zeros_like(low), low, length)
        return dictionary_of(array_of(codes), _strings(*text))

    def _aggregate(self, aggregate: Aggregate) -> Operand:
        argument, groups = aggregate.argument, self._groups
        column = None if argument is None else column_of(argument)
        try:
            if aggregate in self._details:
                answer = self._details[aggregate]()
            else:
                answer = function_of(aggregate).finish(kept_of(column, groups.count, groups.states))
        except OutOfRange as error:
            where = f"of query '{self._query.name}' {error.what} in {self._window_text(error.group)}"
            raise RunError(f"{render(aggregate)} {where}", error.hint) from None
        if column is None or not answer.canonical:
            return Operand(answer.values, answer.valid)
        if aggregate.type.kind is Kind.INET:
            return Operand(self._given_addresses(column, answer.values), answer.valid)
        return Operand(self._typed(aggregate.type, value_component(column), answer.values), answer.valid)

    def _triaged(self, of: Expression, what: str) -> Operand:
        """What was read, what is estimated besides, or how far that may be off."""
        assert self._estimated is not None
        if what == EXACT:
            return evaluate(of, self._read.scope)
        if what == ESTIMATED and adds(of):
            return added(evaluate(of, self.scope), evaluate(of, self._read.scope))
        if what == ESTIMATED:
            return replace(evaluate(of, self.scope), valid=np.zeros(self.scope.rows, bool))
        return self._estimated.errors.of(of, self.scope, self._groups)

    @cached_property
    def _read(self) -> Finisher:
        """The same of the records that were read."""
        assert self._estimated is not None
        return Finisher(self._query, self._estimated.read, self._estimated.details, None, self._bounds)

    def _listed(self, listed: Listed) -> Operand:
        """A column of the rows that an aggregate gives."""
        listing, argument = self._listing, listed.aggregate.argument
        assert listing is not None
        assert argument is not None
        if listed.what == ITEM:
            return Finisher(self._query, listing.rows, NO_DETAILS).operand(argument)
        return Operand(listing.counts if listed.what == COUNT else listing.undercounts)

    def _given_addresses(self, name: str, numbers: Array) -> Addresses:
        """Addresses that an aggregate gives: numbers of IPv4 ones, from 2**32 on codes of IPv6 ones."""
        short = np.where((numbers >= 0) & (numbers < IPV6), numbers, 0)
        return decoded(short, numbers - IPV6, self._groups.dictionaries.get(inet6_component(name)))

    def _window_text(self, group: int) -> str:
        window, number = self._query.window, int(self._groups.panes[group])
        if window.whole:
            return "the whole of its input"
        if window.axis == ROWS:
            return f"the window of rows {number * window.slide} to {window.end(number)}"
        return f"the window that ends at {np.datetime64(window.end(number), 'us')}"


def _key_column(expression: Expression) -> tuple[str, int]:
    """The column that an expression shows, and the length of its prefix; no name, if it shows something else."""
    match expression:
        case Prefix(column, length):
            return column.name, length
        case Column(name):
            return name, WHOLE
    return "", WHOLE


def _length(expression: Expression) -> int:
    """Of a prefix; −1 for whole addresses."""
    shown = expression.aggregate.argument if isinstance(expression, Listed) else expression
    return shown.length if isinstance(shown, Prefix) else -1


def _strings(offsets: Array, data: Array) -> pa.Array:
    """An Arrow string array over these bytes."""
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_string(), len(offsets) - 1, buffers).cast(pa.string())


def dictionary_of(codes: pa.Array, words: pa.Array) -> pa.DictionaryArray:
    """What codes stand for. Arrow does not look whether each is one: that would take longer than all else."""
    return pa.DictionaryArray.from_arrays(codes, words, safe=False)
