"""Chunks: records whose keys are packed, with the columns that states are of; or partial aggregates.

`pack_words` and `chunk_values` make one of the columns that were read, `fold_chunk` folds it into the rows of a table:
the exact leaf's, or those of a table before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

import numpy as np

from penstock.aggregates.base import IPV6, State
from penstock.aggregates.shape import Form
from penstock.aggregates.values import Into, Rows, Values
from penstock.aggregates.values import measured as as_measured
from penstock.kernels.dictionary import Dictionary
from penstock.kernels.tables import pack
from penstock.relations.component import Component, inet6_component
from penstock.relations.layout import Layout

Array = np.ndarray
NO_WEIGHTS = np.empty(0, np.int64)


class StateColumn(NamedTuple):
    """A state in the rows of a table: its form, the word at which it begins, and the dictionary that it refers to."""

    form: Form
    at: int
    codes: Component | None


class Chunk(NamedTuple):
    """Records, packed: key words and value columns. `weights` and `partials` only for partial aggregates."""

    words: Array
    values: dict[str, Values]
    dictionaries: Mapping[Component, Dictionary]
    weights: Array = NO_WEIGHTS
    partials: dict[State, tuple[Array, ...]] | None = None


class ChunkColumn(Protocol):
    """A column of a chunk, as it was read."""

    @property
    def numbers(self) -> Array: ...
    @property
    def valid(self) -> Array: ...
    @property
    def floats(self) -> Array | None: ...
    @property
    def inet6(self) -> Array | None: ...


def chunk_values(name: str, column: ChunkColumn, measured: bool) -> Values:
    """A column as states fold it: addresses as one number, integers as doubles where they are measured."""
    numbers, floats, rest = column.numbers, column.floats, None
    if column.inet6 is not None:
        numbers = np.where(column.inet6 > 0, IPV6 + column.inet6 - inet6_component(name).code_base, numbers)
    if measured and floats is None:
        floats, rest = as_measured(numbers)
    return Values(numbers, column.valid, floats, rest)


def fold_chunk(table: Array, columns: Mapping[State, StateColumn], chunk: Chunk, where: Rows) -> None:
    """Fold every state of the table that stands in `columns`."""
    integers, doubles = table.view(np.int64), table.view(np.float64)
    for state, (form, at, codes) in columns.items():
        into = Into((doubles if form.floating else integers, at, where.at, where.start, where.stop), where.rows)
        dictionary = None if codes is None else chunk.dictionaries[codes]
        if chunk.partials is None:
            form.accumulator.fold(into, form.facts, chunk.values[state.column], dictionary)
        else:
            # A state that was left out is count(*).
            words = chunk.partials.get(state, (chunk.weights,))
            form.accumulator.fold_partials(into, form.facts, words, dictionary)


def pack_words(layout: Layout, components: Mapping[Component, Array], rows: int) -> Array:
    """Pack components into the layout's words; where a column's NULL flag is set, its value packs as zero."""
    words = np.zeros((layout.words, rows), np.uint64)
    present: dict[Component, Array] = {}
    for name, values in components.items():
        place = layout.places[name]
        if not place.bits:
            continue
        flag = name.null
        valid = pack.ALL_VALID
        if name != flag and flag in components and layout.places[flag].bits:
            if flag not in present:
                present[flag] = (components[flag] == 0).astype(np.uint8)
            valid = present[flag]
        pack.pack_component(values, valid, place.base, place.shift, words[place.word])
    return words
