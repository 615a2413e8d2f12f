"""The exact table of one relation: it holds every group of a task once.

A chunk is cut to the relation's key, probed and folded. The layout of keys and the shape of states may widen while a
task runs: a value outside its field, a first NULL, a sum that could outgrow 64 bits. `Leaf.rebuild` then rewrites the
rows, and no partial result is lost. `Leaf.pieces` hands the groups on as canonical columns.

A leaf that is full says so and waits. Whether it may grow is decided by the forest, which knows the memory of all
tables (`runtime.tables.forest`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from time import thread_time_ns

import numpy as np

from penstock.aggregates.shape import Shape
from penstock.aggregates.values import Rows
from penstock.kernels.dictionary import Dictionary
from penstock.kernels.tables import probe as tables
from penstock.relations.component import Component, Tag
from penstock.relations.layout import Layout
from penstock.relations.relation import Relation
from penstock.runtime.tables.chunk import Chunk, fold_chunk, pack_words
from penstock.runtime.tables.rows import Format, KeyCut
from penstock.state.segments.groups import Groups, blank_nulls

Array = np.ndarray
SMALL = 1 << 18
ALWAYS = 1 << 16  # a table may always grow to this many bytes, so that every leaf makes progress
MOST = 1 << 31  # rows: an index entry has their number in 32 bits
SPARE = 4  # rows are reserved for each that may be used: untouched they take no memory, and growing copies nothing
PIECE = 1 << 17  # table rows turned into columns at a time: bounds the memory of writing a large table


class Arrivals:
    """Records of a chunk, or partial aggregates of a table, on their way into a leaf. The first `done` are in."""

    def __init__(self, chunk: Chunk, rows: Array, keys: Array, hashes: Array) -> None:
        self.chunk, self.rows, self.keys, self.hashes = chunk, rows, keys, hashes
        self.at = np.empty(len(rows), np.int64)
        self.done = 0


class Leaf:
    """Exact groups of one relation in rows of key words, count(*) and states."""

    def __init__(self, relation: Relation, layout: Layout, shape: Shape, capacity: int) -> None:
        self.relation = relation
        self._components = [part.component for part in relation.parts]
        self._pane = relation.pane
        self.probes = self.nanoseconds = 0
        self._lay_out(layout, shape)
        self._clear(capacity)
        self.seen = 0  # groups of the runs that were written

    def _lay_out(self, layout: Layout, shape: Shape, key: Layout | None = None) -> None:
        self.format = Format(layout, self.relation.parts, self.relation.states, shape, key)

    @property
    def shape(self) -> Shape:
        return self.format.shape

    def _clear(self, capacity: int) -> None:
        capacity = max(4, capacity)
        self._reserved = np.empty((SPARE * capacity, self.format.width), np.uint64)
        self._allow(capacity)
        self.count = 0  # rows in use
        self._touched = 0  # rows that take memory, since some run has used them

    def _allow(self, capacity: int) -> None:
        """Rows that may be used, and an empty index of them."""
        self.rows, self.index = self._reserved[:capacity], self._empty_index(capacity)

    @property
    def nbytes(self) -> int:
        return int(self.rows.nbytes + self.index.nbytes)

    def arrivals(self, chunk: Chunk, rows: Array, cut: KeyCut | None = None) -> Arrivals:
        """The chosen rows of a chunk, with the relation's keys: of records, or of what a table passes on (`cut`)."""
        began = thread_time_ns()
        keys = (cut or self.format.cut).keys(chunk.words, rows)
        arrivals = Arrivals(chunk, rows, keys, self._hashed(keys))
        self.nanoseconds += thread_time_ns() - began
        return arrivals

    def absorb(self, arrivals: Arrivals) -> bool:
        """Fold in what is not in yet. Returns whether all is in; if not, the table is full."""
        began, start, rows = thread_time_ns(), arrivals.done, arrivals.rows
        done = self._probe(arrivals.keys, arrivals.hashes, start, arrivals.chunk.weights, arrivals.at)
        where = Rows(rows, arrivals.at, start, done)
        fold_chunk(self.rows, self.format.columns, arrivals.chunk, where)
        arrivals.done = done
        self.probes += done - start
        self.nanoseconds += thread_time_ns() - began
        return done == len(rows)

    def grow(self, room: int) -> bool:
        """Make the table larger, unless that takes more than `room` bytes beside it. Returns whether it did."""
        began = thread_time_ns()
        # Small tables grow fast: a new index costs more than their memory.
        factor = 4 if self.nbytes < SMALL else 2
        capacity = len(self.rows) * factor
        if self.nbytes * factor > max(room, ALWAYS) or capacity > MOST:
            return False
        if capacity > len(self._reserved):
            reserved = np.empty((SPARE * capacity, self.format.width), np.uint64)
            reserved[: self.count] = self.rows[: self.count]
            self._reserved = reserved
        self._allow(capacity)
        self._fill_index()
        self.nanoseconds += thread_time_ns() - began
        return True

    # -- how a row is found: what another kind of leaf does differently

    def _hashed(self, keys: Array) -> Array:
        return tables.hashed(keys)

    def _empty_index(self, capacity: int) -> Array:
        return tables.empty_index(capacity)

    def _fill_index(self) -> None:
        tables.fill_index(self.rows, self.count, self.format.words, self.index)

    def _probe(self, keys: Array, hashes: Array, start: int, weights: Array, at: Array) -> int:
        done, self.count = tables.probe_exact(
            keys, hashes, start, len(hashes), weights, self.count, self.format.fresh, self.index, self.rows, at
        )
        return int(done)

    # -- groups

    def pieces(self, dictionaries: Mapping[Component, Dictionary]) -> Iterator[Groups]:
        """All groups as canonical columns, a part of the table at a time; the table stays as it is."""
        for start in range(0, self.count, PIECE):
            yield self.groups(dictionaries, start, start + PIECE)

    def groups(self, dictionaries: Mapping[Component, Dictionary], start: int = 0, stop: int | None = None) -> Groups:
        """The groups in rows [start, stop) of the table."""
        dense = self.rows[start : min(self.count, self.count if stop is None else stop)]
        # Sieves that hold nothing back are left out: there is one for each choice of a union.
        names = [one for one in self._components if one.tag is not Tag.SIEVE or not self.format.places[one].zero]
        components, counts, states = self.format.taken_apart(dense, names)
        blank_nulls(components, self.shape.strings)
        panes = components.pop(self._pane)
        named = {*self.relation.coded_states.values(), *components}
        used = {name: dictionaries[name] for name in sorted(named & dictionaries.keys())}
        return Groups(panes, components, used, counts, states)

    def rebuild(self, layout: Layout, shape: Shape) -> None:
        """Move all groups to a new layout and shape; they stay where they are if their fields and states are as wide
        as before."""
        if self._fits(layout, shape):
            self._lay_out(layout, shape, self.format.cut.layout)
            return
        groups, capacity = self.groups({}), len(self.rows)
        self._lay_out(layout, shape)
        self._clear(capacity)
        components = {self._pane: groups.panes, **groups.components}
        everything = np.arange(len(groups), dtype=np.int32)
        keys = self.format.cut.keys(pack_words(layout, components, len(groups)), everything)
        at = np.empty(len(groups), np.int64)
        self._probe(keys, self._hashed(keys), 0, groups.count, at)
        numbers = self.rows.view(np.int64)
        for state, (form, column, _) in self.format.columns.items():
            words = groups.states.get(state, (groups.count,))
            if form.words > len(words):
                words = form.accumulator.widened(words)
            for w, word in enumerate(words):
                numbers[at, column + w] = word.view(np.int64)

    def _fits(self, layout: Layout, shape: Shape) -> bool:
        fields = ((layout.places[name], place) for name, place in self.format.places.items())
        states = self.relation.states
        return all(new.bits == old.bits and new.base == old.base for new, old in fields) and all(
            new.words == old.words
            for new, old in zip(shape.forms(states).values(), self.shape.forms(states).values(), strict=True)
        )

    def restart(self) -> None:
        """Forget all groups. Keep room for as many; the rest of the memory is free for other leaves."""
        self.seen += self.count
        self._touched = max(self._touched, self.count)
        if 2 * self.count < self._touched:
            self._clear(self.count)
        else:  # the same memory: fresh one would have to be cleared by the system
            self._allow(max(4, self.count))
            self.count = 0
