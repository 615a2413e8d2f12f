"""Residents of a direct-mapped table."""

from __future__ import annotations

import numpy as np

from penstock.kernels.tables import probe as tables
from penstock.runtime.tables.residents.residents import Residents
from penstock.runtime.tables.rows import Format
from penstock.sharing.model.kinds.direct import KEEP
from penstock.sharing.plan import Table

Array = np.ndarray


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
