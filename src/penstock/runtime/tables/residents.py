"""The residents of one table, and how a newcomer finds room among them: direct-mapped or least recently used.

Both kinds take a chunk in three steps, of which `runtime.tables.table` does the second:

1. `probe` finds or makes the entry of every row of the chunk. Newcomers stand behind the residents.
2. Aggregates are folded into `entries`.
3. `settle` copies out what was evicted, and moves newcomers that stay to their places.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from penstock.kernels.tables import lru
from penstock.kernels.tables import probe as tables
from penstock.runtime.tables.rows import Format
from penstock.sharing.model.kinds.direct import DIRECT, KEEP
from penstock.sharing.model.kinds.lru import LRU
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


class DirectResidents(Residents):
    """One bucket for each hash: what collides with a resident evicts it, or is evicted while that is more frequent."""

    def __init__(self, table: Table, form: Format) -> None:
        super().__init__(table, form)
        self._keep = int(table.policy == KEEP)
        self._resident = np.arange(table.buckets, dtype=np.int32)
        self._credit = np.zeros(table.buckets, np.int32)
        self._drained = 0

    @property
    def nbytes(self) -> int:
        return int(self.entries.nbytes + self._resident.nbytes + self._credit.nbytes)

    def _probe(self, keys: Array, hashes: Array, weights: Array, at: Array) -> int:
        self._moved = np.empty(len(at), np.int32)
        out = tables.probe_direct(
            keys, hashes, weights, self.format.fresh, self._keep,
            self.entries, self._resident, self._credit, at, self._evicted, self._moved,
        )  # fmt: skip
        return int(out)

    def _settle(self, evictions: Array) -> None:
        tables.settle_direct(self.entries, self._evicted, self._moved, self._out, evictions, self._resident)

    def drain(self, most: int) -> tuple[Array, bool]:
        start, stop = self._drained, min(self._drained + most, self.buckets)
        residents = np.empty((stop - start, self.format.width), np.uint64)
        count = int(tables.drain_direct(self.entries[start:stop], self.format.words, residents))
        self._drained = stop if stop < self.buckets else 0
        return residents[:count], stop < self.buckets


class RecentResidents(Residents):
    """Chained: nothing is evicted before the table is full, and then what was not met for longest."""

    def __init__(self, table: Table, form: Format) -> None:
        super().__init__(table, form)
        self._links = lru.links(table.buckets)

    @property
    def nbytes(self) -> int:
        return int(self.entries.nbytes + self._links.nbytes)

    def _probe(self, keys: Array, hashes: Array, weights: Array, at: Array) -> int:
        self._places = np.empty(len(at), np.int64)
        out = lru.probe_lru(
            keys, hashes, weights, self.format.fresh, self.entries, *self._links, at, self._evicted, self._places
        )
        return int(out)

    def _settle(self, evictions: Array) -> None:
        lru.settle_lru(self.entries, self._links.nodes, self._evicted, self._places, self._out, evictions)

    def drain(self, most: int) -> tuple[Array, bool]:
        heads, nodes, _, state = self._links
        left = int(state[lru.SIZE] - state[lru.DRAINED])
        residents = np.empty((min(most, left), self.format.width), np.uint64)
        if left:
            lru.drain_lru(self.entries, heads, nodes, state, residents)
        return residents, left > most


# By kind of table (`sharing.model.kinds.registry`), which knows nothing of compiled code.
RESIDENTS: dict[str, type[Residents]] = {DIRECT.name: DirectResidents, LRU.name: RecentResidents}


def residents(table: Table, form: Format) -> Residents:
    """Those of an empty table of the plan."""
    return RESIDENTS[table.kind](table, form)
