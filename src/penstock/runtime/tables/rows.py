"""The row format of a table: key words, count(*), then the words of each state.

A format is made from a layout of key words (those of a packed chunk, or of a table that feeds this one), the parts of
the key and the states to keep. Leaves (`runtime.tables.leaf`) and the tables before them (`runtime.tables.table`) keep
such rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from penstock.aggregates.base import State
from penstock.aggregates.shape import Shape
from penstock.kernels.dictionary import Dictionary
from penstock.kernels.tables import pack
from penstock.relations.component import Component, dictionary_component
from penstock.relations.layout import Layout, Part, project
from penstock.runtime.tables.chunk import Chunk, StateColumn

Array = np.ndarray


class KeyCut:
    """How the key words of a relation are cut out of other words."""

    def __init__(self, layout: Layout, parts: Iterable[Part], target: Layout | None = None) -> None:
        projection = project(layout, parts, target)
        self.layout = Layout(projection.places, projection.words)
        terms = projection.terms
        self._terms = (
            np.array([t.source for t in terms], np.int64),
            np.array([t.mask for t in terms], np.uint64),
            np.array([t.turn for t in terms], np.int64),
            np.array([t.target for t in terms], np.int64),
        )

    def keys(self, words: Array, rows: Array) -> Array:
        """The key words of the chosen rows."""
        keys = np.empty((self.layout.words, len(rows)), np.uint64)
        pack.project(words, rows, *self._terms, keys)
        return keys


class Format:
    """Where things stand in a row of `width` words; `fresh` is a row without its key before its first record.

    The key goes to its places in `key`, if that is given.
    """

    def __init__(
        self, layout: Layout, parts: Iterable[Part], states: Iterable[State], shape: Shape, key: Layout | None = None
    ) -> None:
        self.cut, self.shape = KeyCut(layout, parts, key), shape
        self.places, self.words = self.cut.layout.places, self.cut.layout.words
        self.columns: dict[State, StateColumn] = {}
        fresh = [0]
        for state, form in shape.forms(states).items():
            if form.words:
                codes = dictionary_component(state.column, form.facts.kind) if form.coded else None
                self.columns[state] = StateColumn(form, self.words + len(fresh), codes)
                fresh += form.fresh
        self.fresh = np.array(fresh, np.int64).view(np.uint64)
        self.width = self.words + len(fresh)

    def counts(self, rows: Array) -> Array:
        return np.ascontiguousarray(rows[:, self.words]).view(np.int64)

    def state_words(self, rows: Array, state: State) -> tuple[Array, ...]:
        form, at, _ = self.columns[state]
        kind = np.float64 if form.floating else np.int64
        return tuple(np.ascontiguousarray(rows[:, at + word]).view(kind) for word in range(form.words))

    def component(self, rows: Array, name: Component) -> Array:
        """One component of the keys."""
        place = self.places[name]
        if not place.bits:
            return np.full(len(rows), place.base, np.int64) if place.base else np.zeros(len(rows), np.int64)
        values = np.empty(len(rows), np.int64)
        pack.extract(rows, place.word, place.shift, place.bits, place.base, values)
        return values

    def taken_apart(
        self, rows: Array, names: Iterable[Component]
    ) -> tuple[dict[Component, Array], Array, dict[State, tuple[Array, ...]]]:
        """These components of the keys, count(*), and the words of all states."""
        return {name: self.component(rows, name) for name in names}, self.counts(rows), self.states(rows)

    def states(self, rows: Array) -> dict[State, tuple[Array, ...]]:
        """The words of all states that the rows keep."""
        return {state: self.state_words(rows, state) for state in self.columns}

    def partials(self, rows: Array, dictionaries: Mapping[Component, Dictionary]) -> Chunk:
        """Rows as partial aggregates, for tables that they fall to."""
        keys = np.ascontiguousarray(rows[:, : self.words].T)
        return Chunk(keys, {}, dictionaries, self.counts(rows), self.states(rows))
