"""Tables of states by hand: values folded, parts merged in any order and width, results in Python's own values."""

from __future__ import annotations

import ipaddress
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from penstock.aggregates.base import IPV6, AggregateFunction, FinishedValues, State
from penstock.aggregates.count import COUNTED, kept_of
from penstock.aggregates.registry import accumulator_of
from penstock.aggregates.shape import Shape
from penstock.aggregates.values import Into
from penstock.kernels.dictionary import Dictionary
from penstock.kernels.tables.fold import from_order_bits, order_bits
from penstock.logical.types import Kind, Type
from penstock.runtime.tables.chunk import chunk_values

Array = np.ndarray
NAME = "x"
Records = Sequence[tuple[int, Any]]  # group and value; None is NULL


@dataclass
class Read:
    """A column of a chunk, as the engine reads it."""

    numbers: Array
    valid: Array
    floats: Array | None = None
    inet6: Array | None = None


class Column:
    """Values of one type, to the engine's numbers and back."""

    def __init__(self, kind: Type) -> None:
        self.type, self.dictionary = kind, Dictionary()

    def read(self, values: Sequence[Any]) -> Read:
        valid = np.array([value is not None for value in values], np.uint8)
        read = self._numbers([self._filler if value is None else value for value in values])
        return replace(read, valid=np.empty(0, np.uint8) if valid.all() else valid)

    @property
    def _filler(self) -> Any:
        """Stands in the place of a NULL, where nobody may look at it."""
        return {Kind.STRING: "~", Kind.INET: ipaddress.ip_address("255.255.255.255"), Kind.DOUBLE: 7e300}.get(
            self.type.kind, 77
        )

    def _numbers(self, values: Sequence[Any]) -> Read:
        none = np.empty(0, np.uint8)
        match self.type.kind:
            case Kind.STRING:
                return Read(self._codes([value.encode() for value in values]), none)
            case Kind.DOUBLE:
                floats, bits = np.array(values, np.float64), np.empty(len(values), np.int64)
                order_bits(floats, bits)
                return Read(bits, none, floats)
            case Kind.INET:
                four = [int(value) if value.version == 4 else 0 for value in values]
                six = [n for n, value in enumerate(values) if value.version == 6]
                codes = np.zeros(len(values), np.int64)
                codes[six] = 1 + self._codes([values[n].packed for n in six])
                return Read(np.array(four, np.int64), none, inet6=codes)
        return Read(np.array(values, np.int64), none)

    def _codes(self, texts: list[bytes]) -> Array:
        starts = np.cumsum([0, *map(len, texts)]).astype(np.int64)
        return self.dictionary.intern(starts, np.frombuffer(b"".join(texts), np.uint8))

    def _text(self, code: int) -> bytes:
        offsets = self.dictionary.offsets
        return self.dictionary.data[offsets[code] : offsets[code + 1]].tobytes()

    def values(self, answer: FinishedValues, exist: Array) -> list[Any]:
        """Results of the groups that exist as Python has them."""
        pairs = zip(answer.values, exist if answer.valid is None else exist & answer.valid, strict=True)
        return [self._value(value.item(), answer.canonical) if there else None for value, there in pairs]

    def _value(self, number: Any, canonical: bool) -> Any:
        if not canonical:
            return number
        match self.type.kind:
            case Kind.STRING:
                return self._text(number).decode()
            case Kind.DOUBLE:
                from_order_bits(np.array([number], np.int64), found := np.empty(1))
                return float(found[0])
            case Kind.INET:
                text = self._text(number - IPV6) if number >= IPV6 else number.to_bytes(4, "big")
                return ipaddress.ip_address(text)
            case Kind.BOOLEAN:
                return bool(number)
        return number


class Part:
    """Partial aggregates of some groups: count(*), and the words of each state that has any."""

    def __init__(self, column: Column, states: Iterable[State], shape: Shape, groups: int) -> None:
        self.column, self.shape, self.records = column, shape, np.zeros(groups, np.int64)
        self.tables = {state: self._fresh(state) for state in states if shape.form(state).words}

    def _fresh(self, state: State) -> Array:
        form = self.shape.form(state)
        table = np.empty((len(self.records), form.words), np.int64)
        table[:] = form.fresh
        return table.view(np.float64) if form.floating else table

    def _dictionary(self, state: State) -> Dictionary | None:
        coded = accumulator_of(state).code_base(self.column.type.kind) is not None
        return self.column.dictionary if coded else None

    def take(self, records: Records, rng: random.Random) -> None:
        """Fold records in, some of a larger chunk, in two calls."""
        every = [value for _, value in records]
        rows = np.array(rng.sample(range(len(records)), len(records)), np.int32)
        at = np.array([records[row][0] for row in rows], np.int64)
        read, cut = self.column.read(every), rng.randint(0, len(records))
        np.add.at(self.records, at, 1)
        for state, table in self.tables.items():
            values = chunk_values(NAME, read, accumulator_of(state).measures)
            for start, stop in ((0, cut), (cut, len(records))):
                into = Into((table, 0, at, start, stop), rows)
                accumulator_of(state).fold(into, self.shape.form(state).facts, values, self._dictionary(state))

    def words(self, state: State) -> tuple[Array, ...]:
        """Of a state that takes none: count(*)."""
        if state not in self.tables:
            return (self.records,)
        return tuple(np.ascontiguousarray(word) for word in self.tables[state].T)

    def absorb(self, other: Part, rng: random.Random) -> None:
        """Merge other partial aggregates in."""
        at = np.array(rng.sample(range(len(self.records)), len(self.records)), np.int64)
        every = np.arange(len(at), dtype=np.int32)
        np.add.at(self.records, at, other.records[at])
        for state, table in self.tables.items():
            words = tuple(word[at] for word in other.words(state))
            dictionary = self._dictionary(state)
            into = Into((table, 0, at, 0, len(at)), every)
            accumulator_of(state).fold_partials(into, self.shape.form(state).facts, words, dictionary)

    def finish(self, function: AggregateFunction) -> list[Any]:
        states = {state: self.words(state) for state in self.tables}
        return self.column.values(function.finish(kept_of(NAME, self.records, states)), self.records > 0)


def states_for(function: AggregateFunction) -> list[State]:
    return list(dict.fromkeys(one.state(NAME) for one in (COUNTED, *function.needs)))


def growing(states: Iterable[State], kind: Kind) -> frozenset[State]:
    """Those that may be wide."""
    return frozenset(state for state in states if accumulator_of(state).grows(kind))


def shape_for(kind: Type, records: Records, wide: frozenset[State] = frozenset()) -> Shape:
    """Of a table that takes these records."""
    nullable = frozenset({NAME}) if any(value is None for _, value in records) else frozenset[str]()
    return Shape({NAME: kind.kind}, nullable, wide)
