"""One direct-mapped table of the tree: absorbs repeats in cache, evicts on collision (seed smap, Sec. 2.2).

A phantom, or the front of a query. What it evicts are partial aggregates in its own row format; they are gathered, and
fall to the leaves and tables below it many at a time (`runtime.tree`), in the order in which they were evicted.
At the end of the task, the epoch of the paper, all residents do.
"""

from __future__ import annotations

from collections.abc import Iterable
from time import thread_time_ns

import numpy as np

from penstock.kernels import tables
from penstock.runtime.folding import Chunk, Rows, Shape, fold_chunk
from penstock.runtime.rows import Format
from penstock.sharing.layout import Layout, Part
from penstock.sharing.plan import State, Table

Array = np.ndarray


class Branch:
    """`probes`, `evictions` (on collision), `flushed` (at the end of an epoch) count as the papers do."""

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
        self._entries = np.zeros((self.table.buckets, self.format.width), np.uint64)
        self._resident = np.arange(self.table.buckets, dtype=np.int32)
        self._credit = np.zeros(self.table.buckets, np.int32)
        self.size = self.nbytes

    @property
    def nbytes(self) -> int:
        return int(self._entries.nbytes + self._resident.nbytes + self._credit.nbytes)

    def absorb(self, chunk: Chunk, rows: Array) -> None:
        """Fold in the chosen tuples, or partial aggregates of the table above."""
        began, n = thread_time_ns(), len(rows)
        keys = self.format.cut.keys(chunk.words, rows)
        self._make_room(n)
        at, evicted, moved = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int32)
        hashes = np.empty(n, np.uint64)
        tables.hash_keys(keys, hashes)
        out = int(
            tables.probe_direct(
                keys, hashes, chunk.weights, self.format.fresh, int(self.table.keep),
                self._entries, self._resident, self._credit, at, evicted, moved,
            )
        )  # fmt: skip
        fold_chunk(self._entries, self.format.columns, self.format.shape, chunk, Rows(rows, at, 0, n))
        evictions = np.empty((out, self.format.width), np.uint64)
        tables.settle_direct(self._entries, evicted, moved, out, evictions, self._resident)
        self._gather(evictions)
        self.probes += n
        self.evictions += out
        self.nanoseconds += thread_time_ns() - began

    def _make_room(self, n: int) -> None:
        """Behind the residents, for an entry of every tuple of a chunk; kept for the chunks that follow."""
        room = len(self._entries) - self.table.buckets
        if room < n:  # doubled, so that a large table is not copied for every chunk that is a little larger
            entries = np.empty((self.table.buckets + max(n, 2 * room), self.format.width), np.uint64)
            entries[: self.table.buckets] = self._entries[: self.table.buckets]
            self._entries = entries

    def _gather(self, rows: Array) -> None:
        if len(rows):
            self._gathered.append(rows)
            self.waiting += len(rows)

    def taken(self) -> Array:
        """What was evicted since it was taken last, in order."""
        rows = self._gathered[0] if len(self._gathered) == 1 else np.concatenate(self._gathered)
        self._gathered, self.waiting = [], 0
        return rows

    def flush(self, start: int, stop: int) -> None:
        """Evict the residents of buckets [start, stop), in order."""
        stop = min(stop, self.table.buckets)
        residents = np.empty((max(0, stop - start), self.format.width), np.uint64)
        count = int(tables.drain_direct(self._entries[start:stop], self.format.words, residents))
        self.flushed += count
        self._gather(residents[:count])
