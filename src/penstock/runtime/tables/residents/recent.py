"""Residents of a table that evicts the least recently used."""

from __future__ import annotations

import numpy as np

from penstock.kernels.tables import lru
from penstock.runtime.tables.residents.residents import Residents
from penstock.runtime.tables.rows import Format
from penstock.sharing.plan import Table

Array = np.ndarray


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
