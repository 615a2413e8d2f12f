"""Chunks of tuples, and how their values fold into the states of a table's rows.

`Shape` says how many words each state takes; `Chunk` carries packed keys and value columns, or partial
aggregates; `fold_chunk` picks the kernel for each state. Used by the exact leaf and the direct-mapped front.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from penstock.kernels.dictionary import Dictionary
from penstock.kernels.tables import fold, pack
from penstock.logical.types import Kind, Type
from penstock.relations.component import Component, inet6_component, value_component
from penstock.relations.layout import Layout
from penstock.relations.relation import State

Array = np.ndarray
GREATEST, LEAST = (1 << 63) - 1, -(1 << 63)
BOUND = 1 << 63  # a sum that may reach it needs two words
IPV6 = 1 << 32  # from here on the value of an address is the code of an IPv6 one


@dataclass(frozen=True)
class Shape:
    """What the columns of a task are known to need. Widens only.

    `floats`, `strings` and `addresses` are so by type; `nullable` columns have had a NULL; `wide` sums could leave
    64 bits.
    """

    floats: frozenset[str]
    strings: frozenset[str]
    addresses: frozenset[str] = frozenset()
    nullable: frozenset[str] = frozenset()
    wide: frozenset[str] = frozenset()

    @classmethod
    def of(cls, types: Mapping[str, Type]) -> Shape:
        """The shape of columns of these types before any value is known."""
        kinds = (Kind.DOUBLE, Kind.STRING, Kind.INET)
        return cls(*(frozenset(name for name, t in types.items() if t.kind is kind) for kind in kinds))

    def words(self, state: State) -> int:
        """64-bit words that a state takes in a row; a count of a column without NULLs is count(*)."""
        if state.kind == "count":
            return int(state.column in self.nullable)
        if state.kind == "moments":
            return 5
        return 2 if state.kind == "sum" and state.column in self.floats | self.wide else 1

    def floating(self, state: State) -> bool:
        """Whether the state's words are doubles."""
        return state.kind == "moments" or (state.kind == "sum" and state.column in self.floats)

    def coded(self, column: str) -> bool:
        """Whether extremes of the column are codes of a dictionary (addresses: from 2**32 on)."""
        return column in self.strings or column in self.addresses

    def fresh(self, state: State) -> list[int]:
        """A state before its first value."""
        if state.kind in ("min", "max"):
            if self.coded(state.column):
                return [-1]
            return [GREATEST if state.kind == "min" else LEAST]
        return [0] * self.words(state)

    def covers(self, other: Shape) -> bool:
        return self.nullable >= other.nullable and self.wide >= other.wide


@dataclass
class Values:
    """One value column of a chunk: order-preserving int64 (strings: codes), and floats where sums need them."""

    numbers: Array
    valid: Array
    floats: Array | None = None
    rest: Array | None = None  # what a float lacks of an integer beyond 53 bits


@dataclass
class Chunk:
    """Tuples, packed: key words and value columns. `weights` and `partials` only for partial aggregates."""

    words: Array
    values: dict[str, Values]
    dictionaries: Mapping[Component, Dictionary]
    weights: Array = field(default_factory=lambda: np.empty(0, np.int64))
    partials: dict[State, tuple[Array, ...]] | None = None


@dataclass(frozen=True)
class Rows:
    """Where the tuples [start, stop) of a probed chunk go: tuple rows[i] into table row at[i]."""

    rows: Array
    at: Array
    start: int
    stop: int

    @property
    def into(self) -> tuple[Array, int, int]:
        return self.at, self.start, self.stop


def fold_chunk(table: Array, columns: Mapping[State, int], shape: Shape, chunk: Chunk, where: Rows) -> None:
    """Fold every state of the table that stands in `columns`."""
    for state, column in columns.items():
        if chunk.partials is None:
            _fold_values(table, column, state, shape, chunk, where)
        else:
            _fold_partial(table, column, state, shape, chunk, where)


def _fold_values(table: Array, column: int, state: State, shape: Shape, chunk: Chunk, where: Rows) -> None:
    value, numbers = chunk.values[state.column], table.view(np.int64)
    if state.kind == "count":
        present = value.valid if len(value.valid) else np.ones(len(value.numbers), np.uint8)
        fold.add_count(numbers, column, *where.into, where.rows, present)
    elif state.kind == "moments":
        assert value.floats is not None
        rest = np.empty(0) if value.rest is None else value.rest
        fold.add_moments(table.view(np.float64), column, *where.into, where.rows, value.floats, rest, value.valid)
    elif shape.floating(state):
        assert value.floats is not None
        fold.add_float(table.view(np.float64), column, *where.into, where.rows, value.floats, value.valid)
    elif state.kind == "sum":
        add = fold.add_wide if shape.words(state) == 2 else fold.add_sum
        add(numbers, column, *where.into, where.rows, value.numbers, value.valid)
    else:
        _fold_extreme(numbers, column, state, shape, chunk, where, value)


def _fold_partial(table: Array, column: int, state: State, shape: Shape, chunk: Chunk, where: Rows) -> None:
    assert chunk.partials is not None
    numbers = table.view(np.int64)
    # A count that was left out (no NULLs there) is count(*).
    words = chunk.partials.get(state, (chunk.weights,))
    everything = pack.all_valid()
    if state.kind == "moments":
        fold.add_moments_partial(table.view(np.float64), column, *where.into, *words)
    elif shape.floating(state):
        fold.add_float_partial(table.view(np.float64), column, *where.into, *words)
    elif shape.words(state) == 2:
        high = words[1] if len(words) == 2 else words[0] >> 63
        fold.add_wide_partial(numbers, column, *where.into, words[0], high)
    elif state.kind in ("count", "sum"):
        fold.add_sum(numbers, column, *where.into, where.rows, words[0], everything)
    else:
        _fold_extreme(numbers, column, state, shape, chunk, where, Values(words[0], everything))


def _fold_extreme(
    numbers: Array, column: int, state: State, shape: Shape, chunk: Chunk, where: Rows, value: Values
) -> None:
    if shape.coded(state.column):
        text = state.column in shape.strings
        words = chunk.dictionaries[value_component(state.column) if text else inet6_component(state.column)]
        extreme_of = fold.fold_string if text else fold.fold_address
        sign = 1 if state.kind == "max" else -1
        extreme_of(
            numbers, column, *where.into, where.rows, value.numbers, value.valid, words.offsets, words.data, sign
        )
    else:
        extreme = fold.fold_max if state.kind == "max" else fold.fold_min
        extreme(numbers, column, *where.into, where.rows, value.numbers, value.valid)


def pack_words(layout: Layout, components: Mapping[Component, Array], rows: int) -> Array:
    """Pack components into the layout's words; where a column's NULL flag is set, its value packs as zero."""
    words = np.zeros((layout.words, rows), np.uint64)
    present: dict[Component, Array] = {}
    for name, values in components.items():
        place = layout.places[name]
        if not place.bits:
            continue
        flag = name.null
        valid = pack.all_valid()
        if name != flag and flag in components and layout.places[flag].bits:
            if flag not in present:
                present[flag] = (components[flag] == 0).astype(np.uint8)
            valid = present[flag]
        pack.pack_component(values, valid, place.base, place.shift, words[place.word])
    return words


def numbers(mask: Array | None, rows: int) -> Array:
    """Numbers (int32) of the tuples that a mask has."""
    return np.arange(rows, dtype=np.int32) if mask is None else np.flatnonzero(mask).astype(np.int32)
