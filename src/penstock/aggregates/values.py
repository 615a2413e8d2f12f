"""What accumulators are handed: value columns of a chunk, and the rows of a table that they are folded into.

`runtime.tables.chunk` makes them; the accumulators of this package pass them on to `kernels.tables.fold`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

Array = np.ndarray
EVERYTHING = np.empty(0, np.uint8)  # the mask of values that are all there


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
    def rows(self) -> Array:
        """Which records of the chunk are meant."""
        return self.where.rows

    @property
    def everything(self) -> Array:
        """The mask of partial states: all are there."""
        return EVERYTHING

    @property
    def doubles(self) -> tuple[Array, int, Array, int, int]:
        where = self.where
        return self.table.view(np.float64), self.column, where.at, where.start, where.stop
