"""What accumulators fold, and where to: value columns of a chunk, and rows of a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

Array = np.ndarray
IPV6 = 1 << 32  # from here on the value of an address is the code of an IPv6 one


@dataclass
class Values:
    """One value column of a chunk: order-preserving int64 (strings: codes), and doubles where states need them."""

    numbers: Array
    valid: Array  # uint8; empty: all are there
    floats: Array | None = None
    rest: Array | None = None  # what a double lacks of an integer beyond 53 bits


@dataclass(frozen=True)
class Rows:
    """Where the records [start, stop) of a probed chunk go: record rows[i] into table row at[i]."""

    rows: Array
    at: Array
    start: int
    stop: int


class Into(NamedTuple):
    """The state that begins at word `column` of a table's rows, and which of them records go to."""

    table: Array
    column: int
    where: Rows

    @property
    def integers(self) -> tuple[Array, int, Array, int, int]:
        """As kernels take it."""
        where = self.where
        return self.table.view(np.int64), self.column, where.at, where.start, where.stop

    @property
    def doubles(self) -> tuple[Array, int, Array, int, int]:
        where = self.where
        return self.table.view(np.float64), self.column, where.at, where.start, where.stop
