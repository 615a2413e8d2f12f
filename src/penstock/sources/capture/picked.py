"""Picks of a walk, put side by side.

Of the packets that a walker has at hand few are picked: to look at so few in one go would cost more than to walk over
all of them. Copies of the picks are kept until there are enough.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.kernels.packets.capture import LONGEST, PacketRecords
from penstock.kernels.packets.layers import room
from penstock.kernels.packets.picked import ROWS, put_aside
from penstock.sources.capture.columns import Packets

Array = np.ndarray[Any, Any]
BYTES = 1 << 18  # they stay in a core's cache


class Picked:
    """Room for some packets; at least one fits, whatever its length."""

    def __init__(self, most: int) -> None:
        self._data = np.empty(BYTES + LONGEST, np.uint8)
        self._records, self._layers, self._state = PacketRecords(most), room(most), np.zeros(2, np.int64)

    @property
    def rows(self) -> int:
        return int(self._state[ROWS])

    def take(self, data: Array, records: PacketRecords, rows: Array) -> int:
        """Put aside the first of these rows, as many as there is room for; says how many."""
        out = self._records.columns()
        return int(put_aside(data, records.columns(), rows, self._state, self._data, out))

    def packets(self) -> Packets:
        return Packets(self._data, self._records.part(0, self.rows), self._layers, self.rows)

    def clear(self) -> None:
        self._state[:] = 0
