"""The exact table of one relation: every group of a task once.

A chunk is projected to the relation's key, probed and folded. Layout and shape may widen while a task runs
(a new value range, a first NULL, a sum that could outgrow 64 bits): `rebuild` then rewrites the rows, and no
partial result is given up. `groups` hands the finished groups on as canonical columns.

Neighbour: `runtime.task.task` drives leaves over chunks of tuples, and of what tables evict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from time import thread_time_ns

import numpy as np

from penstock.aggregates.registry import accumulator_of
from penstock.aggregates.shape import Shape
from penstock.aggregates.values import Rows
from penstock.kernels.dictionary import Dictionary
from penstock.kernels.tables import probe as tables
from penstock.relations.component import Component
from penstock.relations.layout import Layout
from penstock.relations.relation import Relation
from penstock.runtime.tables.chunk import Chunk, coded_states, fold_chunk, pack_words
from penstock.runtime.tables.rows import Cut, Format
from penstock.state.segments.groups import Groups, blank_nulls

Array = np.ndarray
SMALL = 1 << 18
ALWAYS = 1 << 16  # a table may always grow to this many bytes, so that every leaf makes progress
MOST = 1 << 31  # rows: an index entry has their number in 32 bits
SPARE = 4  # rows are reserved for each that may be used: untouched they take no memory, and growing copies nothing
PIECE = 1 << 17  # table rows turned into columns at a time: bounds the memory of writing a large table


class Leaf:
    """Exact groups of one relation in rows of key words, count(*) and states."""

    def __init__(self, relation: Relation, layout: Layout, shape: Shape, capacity: int) -> None:
        self.relation = relation
        self.probes = self.nanoseconds = 0
        self._lay_out(layout, shape)
        self._clear(capacity)
        self.seen = 0  # groups of tables that were given up for new ones

    def _lay_out(self, layout: Layout, shape: Shape, key: Layout | None = None) -> None:
        self.format = Format(layout, self.relation.parts, self.relation.states, shape, key)

    @property
    def shape(self) -> Shape:
        return self.format.shape

    def _clear(self, capacity: int) -> None:
        capacity = max(4, capacity)
        self._reserved = np.empty((SPARE * capacity, self.format.width), np.uint64)
        self._allow(capacity)
        self.count = self._used = 0  # rows in use, and those that take memory from before

    def _allow(self, capacity: int) -> None:
        """Rows that may be used, and an empty index of them."""
        self.rows, self.index = self._reserved[:capacity], tables.empty_index(capacity)

    @property
    def nbytes(self) -> int:
        return int(self.rows.nbytes + self.index.nbytes)

    def keys(self, words: Array, rows: Array, cut: Cut | None = None) -> Array:
        """The relation's key words of the chosen tuples of the stream, or of what a table passes on (`cut`)."""
        began = thread_time_ns()
        keys = (cut or self.format.cut).keys(words, rows)
        self.nanoseconds += thread_time_ns() - began
        return keys

    def absorb(self, chunk: Chunk, rows: Array, keys: Array, room: Callable[[], int], done: int = 0) -> int:
        """Fold in the chosen tuples from the `done`-th on. Returns where it ended: at all of them, unless the
        table would need more bytes beside itself than there is `room` to grow."""
        began, at, begin, hashes = thread_time_ns(), np.empty(len(rows), np.int64), done, tables.hashed(keys)
        while done < len(rows):
            start, done = done, self._probe(keys, hashes, done, chunk.weights, at)
            fold_chunk(self.rows, self.format.columns, self.shape, chunk, Rows(rows, at, start, done))
            if done < len(rows) and not self._grow(room()):
                break
        self.probes += done - begin
        self.nanoseconds += thread_time_ns() - began
        return done

    def _probe(self, keys: Array, hashes: Array, start: int, weights: Array, at: Array) -> int:
        done, self.count = tables.probe_exact(
            keys, hashes, start, len(hashes), weights, self.count, self.format.fresh, self.index, self.rows, at
        )
        return int(done)

    def _grow(self, room: int) -> bool:
        # Small tables grow fast: indexing them anew costs more than their memory.
        factor = 4 if self.nbytes < SMALL else 2
        if self.nbytes * factor > max(room, ALWAYS) or len(self.rows) * factor > MOST:
            return False
        capacity = len(self.rows) * factor
        if capacity > len(self._reserved):
            reserved = np.empty((SPARE * capacity, self.format.width), np.uint64)
            reserved[: self.count] = self.rows[: self.count]
            self._reserved = reserved
        self._allow(capacity)
        tables.fill_index(self.rows, self.count, self.format.words, self.index)
        return True

    def pieces(self, dictionaries: Mapping[Component, Dictionary]) -> Iterator[Groups]:
        """All groups as canonical columns, a part of the table at a time; the table stays as it is."""
        for start in range(0, self.count, PIECE):
            yield self.groups(dictionaries, start, start + PIECE)

    def groups(self, dictionaries: Mapping[Component, Dictionary], start: int = 0, stop: int | None = None) -> Groups:
        """The groups in rows [start, stop) of the table."""
        dense = self.rows[start : min(self.count, self.count if stop is None else stop)]
        components = {part.component: self.format.component(dense, part.component) for part in self.relation.parts}
        blank_nulls(components, self.shape.strings)
        panes = components.pop(self.relation.pane)
        states = {state: self.format.state_words(dense, state) for state in self.format.columns}
        named = {*coded_states(self.relation).values(), *components}
        used = {name: dictionaries[name] for name in sorted(named & dictionaries.keys())}
        return Groups(panes, components, used, self.format.counts(dense), states)

    def rebuild(self, layout: Layout, shape: Shape) -> None:
        """Move all groups to a new layout and shape; they stay where they are if their fields and states are as wide
        as before."""
        if self._fits(layout, shape):
            self._lay_out(layout, shape, self.format.cut.layout)
            return
        groups, capacity = self.groups({}), len(self.rows)
        self._lay_out(layout, shape)
        self._clear(capacity)
        components = {self.relation.pane: groups.panes, **groups.components}
        everything = np.arange(len(groups), dtype=np.int32)
        keys = self.keys(pack_words(layout, components, len(groups)), everything)
        at = np.empty(len(groups), np.int64)
        self._probe(keys, tables.hashed(keys), 0, groups.count, at)
        numbers = self.rows.view(np.int64)
        for state, column in self.format.columns.items():
            words = groups.states.get(state, (groups.count,))
            if shape.words(state) > len(words):
                words = accumulator_of(state).widened(words)
            for w, word in enumerate(words):
                numbers[at, column + w] = word.view(np.int64)

    def _fits(self, layout: Layout, shape: Shape) -> bool:
        fields = ((layout.places[name], place) for name, place in self.format.places.items())
        return all(new.bits == old.bits and new.base == old.base for new, old in fields) and all(
            shape.words(state) == self.shape.words(state) for state in self.relation.states
        )

    def restart(self) -> None:
        """Forget all groups; room for as many again, what else there was is free for other leaves."""
        self.seen += self.count
        self._used = max(self._used, self.count)
        if 2 * self.count < self._used:
            self._clear(self.count)
        else:  # the same memory: fresh one would have to be cleared by the system
            self._allow(max(4, self.count))
            self.count = 0
