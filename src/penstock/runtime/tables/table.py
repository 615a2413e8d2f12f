"""One table of the forest: a phantom, or the front of a query (seed smap, Sec. 2.2; aggregate-tree, Sec. III-C).

It stays in the cache, folds what comes again into its residents, and evicts one where a newcomer finds no room. The
residents are direct-mapped or the most recently used ones (`runtime.tables.residents`).

Evicted are partial aggregates in the row format of the table. It gathers them, and they fall to the leaves and tables
below it many at a time, in the order of their eviction (`runtime.tables.forest`). When the task ends (the papers: the
epoch), all residents fall.
"""

from __future__ import annotations

from collections.abc import Iterable
from time import thread_time_ns

import numpy as np

from penstock.aggregates.base import State
from penstock.aggregates.shape import Shape
from penstock.aggregates.values import Rows
from penstock.kernels.tables import probe as tables
from penstock.relations.layout import Layout, Part
from penstock.runtime.tables.chunk import Chunk, fold_chunk
from penstock.runtime.tables.residents.registry import residents
from penstock.runtime.tables.rows import Format
from penstock.sharing.plan import Table

Array = np.ndarray


class Branch:
    """A table of a plan at work. `probes`, `evictions` (for want of room) and `flushed` (at the end of an epoch) count
    as the papers do."""

    def __init__(self, table: Table, parts: Iterable[Part], states: Iterable[State]) -> None:
        self.table, self.parts, self.states = table, tuple(parts), tuple(states)
        self.probes = self.evictions = self.flushed = self.nanoseconds = 0
        self.size = 0  # bytes of its buckets
        self._gathered: list[Array] = []
        self.waiting = 0

    def lay_out(self, layout: Layout, shape: Shape) -> None:
        """Start empty, in the row format that this layout (of the stream or of the table above) asks for."""
        assert not self.waiting
        self.format = Format(layout, self.parts, self.states, shape)
        self._residents = residents(self.table, self.format)
        self.size = self.nbytes

    @property
    def nbytes(self) -> int:
        return self._residents.nbytes

    def absorb(self, chunk: Chunk, rows: Array) -> None:
        """Fold in the chosen records, or partial aggregates of the table above."""
        began, n = thread_time_ns(), len(rows)
        keys = self.format.cut.keys(chunk.words, rows)
        hashes = np.empty(n, np.uint64)
        tables.hash_keys(keys, hashes)
        at = self._residents.probe(keys, hashes, chunk.weights)
        fold_chunk(self._residents.entries, self.format.columns, chunk, Rows(rows, at, 0, n))
        evictions = self._residents.settle()
        self._gather(evictions)
        self.probes += n
        self.evictions += len(evictions)
        self.nanoseconds += thread_time_ns() - began

    def _gather(self, rows: Array) -> None:
        if len(rows):
            self._gathered.append(rows)
            self.waiting += len(rows)

    def taken(self) -> Array:
        """What was evicted since it was taken last, in order."""
        rows = self._gathered[0] if len(self._gathered) == 1 else np.concatenate(self._gathered)
        self._gathered, self.waiting = [], 0
        return rows

    def flush(self, most: int) -> bool:
        """Evict up to `most` residents. Returns whether there may be more."""
        found, more = self._residents.drain(most)
        self.flushed += len(found)
        self._gather(found)
        return more
