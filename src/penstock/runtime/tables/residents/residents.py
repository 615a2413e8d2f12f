"""The residents of one table, and how a newcomer finds room among them.

All kinds take a chunk in three steps, of which `runtime.tables.table` does the second:

1. `probe` finds or makes the entry of every row of the chunk. Newcomers stand behind the residents.
2. Aggregates are folded into `entries`.
3. `settle` copies out what was evicted, and moves newcomers that stay to their places.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from penstock.runtime.tables.rows import Format
from penstock.sharing.plan import Table

Array = np.ndarray


class Residents(ABC):
    """`entries` has the rows of all residents, and behind them room for one of every row of a chunk."""

    def __init__(self, table: Table, form: Format) -> None:
        self.buckets, self.format = table.buckets, form
        self.entries = np.zeros((table.buckets, form.width), np.uint64)

    @property
    @abstractmethod
    def nbytes(self) -> int: ...

    def probe(self, keys: Array, hashes: Array, weights: Array) -> Array:
        """The entry of every row. What is evicted stays where it is until `settle`."""
        n = len(hashes)
        self._make_room(n)
        at, self._evicted = np.empty(n, np.int64), np.empty(n, np.int64)
        self._out = self._probe(keys, hashes, weights, at)
        return at

    def settle(self) -> Array:
        """The evicted rows, in order. After this every resident stands in its own place."""
        evictions = np.empty((self._out, self.format.width), np.uint64)
        self._settle(evictions)
        return evictions

    @abstractmethod
    def drain(self, most: int) -> tuple[Array, bool]:
        """Take out the next residents, up to `most`; says whether there may be more."""

    @abstractmethod
    def _probe(self, keys: Array, hashes: Array, weights: Array, at: Array) -> int: ...

    @abstractmethod
    def _settle(self, evictions: Array) -> None: ...

    def _make_room(self, n: int) -> None:
        room = len(self.entries) - self.buckets
        if room < n:  # doubled, so that a large table is not copied for every chunk that is a little larger
            entries = np.empty((self.buckets + max(n, 2 * room), self.format.width), np.uint64)
            entries[: self.buckets] = self.entries[: self.buckets]
            self.entries = entries
