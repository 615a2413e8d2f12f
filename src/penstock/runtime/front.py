"""The direct-mapped table before a leaf: absorbs repeats in cache, evicts on collision (seed smap, Sec. 2.2).

What it evicts are partial aggregates in the leaf's own row format; they fall into the leaf, and at the end
of the task (the epoch of the paper) all residents do.
"""

from __future__ import annotations

import numpy as np

from penstock.kernels import tables
from penstock.runtime.folding import Chunk, Rows, fold_chunk
from penstock.runtime.leaf import Leaf

Array = np.ndarray


class Front:
    """`buckets` buckets before `leaf`; `evictions` and `probes` count as the papers do."""

    def __init__(self, leaf: Leaf, buckets: int) -> None:
        self.leaf, self.buckets = leaf, buckets
        self.probes = self.evictions = 0
        self.reset()

    def reset(self) -> None:
        """Start empty, in the leaf's current row format."""
        self._entries = np.zeros((self.buckets, self.leaf.width), np.uint64)
        self._resident = np.arange(self.buckets, dtype=np.int32)

    @property
    def nbytes(self) -> int:
        return int(self._entries.nbytes + self._resident.nbytes)

    def absorb(self, chunk: Chunk, rows: Array, keys: Array) -> Array:
        """Fold in the chosen tuples; returns the evicted rows in the order of eviction."""
        n, leaf = len(rows), self.leaf
        entries = np.zeros((self.buckets + n, leaf.width), np.uint64)
        entries[: self.buckets] = self._entries
        at, evicted = np.empty(n, np.int64), np.empty(n, np.int64)
        _, out = tables.probe_direct(keys, n, leaf.fresh, entries, self._resident, at, evicted)
        fold_chunk(entries, leaf.columns, leaf.shape, chunk, Rows(rows, at, 0, n))
        evictions = np.empty((out, leaf.width), np.uint64)
        tables.settle_direct(entries, evicted, out, evictions, self._resident)
        self._entries = entries[: self.buckets].copy()
        self.probes += n
        self.evictions += int(out)
        return evictions

    def drain(self) -> Array:
        """The residents, and an empty table."""
        rows: Array = self._entries[self._entries[:, self.leaf.words] != 0]
        self.evictions += len(rows)
        self.reset()
        return rows


def partial_chunk(leaf: Leaf, rows: Array, chunk: Chunk) -> tuple[Chunk, Array]:
    """Rows in the leaf's format as partial aggregates: (chunk, keys)."""
    keys = np.ascontiguousarray(rows[:, : leaf.words].T)
    weights = np.ascontiguousarray(rows[:, leaf.words]).view(np.int64)
    partials = {state: leaf.state_words(rows, state, column) for state, column in leaf.columns.items()}
    return Chunk(keys, {}, chunk.dictionaries, weights, partials), keys
