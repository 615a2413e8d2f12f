"""Chunks of tuples, and how their values fold into the states of a table's rows.

`Shape` says how many words each state takes; `Chunk` carries packed keys and value columns, or partial
aggregates; `fold_chunk` picks the kernel for each state. Used by the exact leaf and the direct-mapped front.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from penstock.kernels import fold, pack
from penstock.kernels.dictionary import Dictionary
from penstock.sharing.layout import Layout
from penstock.sharing.plan import State, column_of, null_component, value_component

Array = np.ndarray
GREATEST, LEAST = (1 << 63) - 1, -(1 << 63)


@dataclass(frozen=True)
class Shape:
    """What the columns of a task are known to need. Widens only.

    `floats` and `strings` are so by type; `nullable` columns have had a NULL; `wide` sums could leave 64 bits.
    """

    floats: frozenset[str]
    strings: frozenset[str]
    nullable: frozenset[str] = frozenset()
    wide: frozenset[str] = frozenset()

    def words(self, state: State) -> int:
        """64-bit words that a state takes in a row; a count of a column without NULLs is count(*)."""
        if state.kind == "count":
            return int(state.column in self.nullable)
        return 2 if state.kind == "sum" and state.column in self.floats | self.wide else 1

    def fresh(self, state: State) -> list[int]:
        """A state before its first value."""
        if state.kind in ("min", "max"):
            if state.column in self.strings:
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


@dataclass
class Chunk:
    """Tuples, packed: key words and value columns. `weights` and `partials` only for partial aggregates."""

    words: Array
    values: dict[str, Values]
    dictionaries: Mapping[str, Dictionary]
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
    elif state.kind == "sum" and value.floats is not None:
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
    if state.kind == "sum" and state.column in shape.floats:
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
    if state.column in shape.strings:
        words = chunk.dictionaries[value_component(state.column)]
        sign = 1 if state.kind == "max" else -1
        fold.fold_string(
            numbers, column, *where.into, where.rows, value.numbers, value.valid, words.offsets, words.data, sign
        )
    else:
        extreme = fold.fold_max if state.kind == "max" else fold.fold_min
        extreme(numbers, column, *where.into, where.rows, value.numbers, value.valid)


def pack_words(layout: Layout, components: Mapping[str, Array], rows: int) -> Array:
    """Pack components into the layout's words; where a column's NULL flag is set, its value packs as zero."""
    words = np.zeros((layout.words, rows), np.uint64)
    present: dict[str, Array] = {}
    for name, values in components.items():
        place = layout.places[name]
        if not place.bits:
            continue
        flag = null_component(column_of(name))
        valid = pack.all_valid()
        if name != flag and flag in components and layout.places[flag].bits:
            if flag not in present:
                present[flag] = (components[flag] == 0).astype(np.uint8)
            valid = present[flag]
        pack.pack_component(values, valid, place.base, place.shift, words[place.word])
    return words
