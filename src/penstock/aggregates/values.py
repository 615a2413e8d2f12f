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
    """Where a state is folded, as kernels take it.

    `words`: the table, as doubles or integers as the state's words are; the word at which the state begins; which rows
    records go to, from where to where (`Rows`). `rows` are the records of the chunk that are meant.
    """

    words: tuple[Array, int, Array, int, int]
    rows: Array
    everything: Array = EVERYTHING  # the mask of partial states: all are there


def measured(numbers: Array) -> tuple[Array, Array]:
    """Integers as doubles, and what those lack of integers beyond 53 bits."""
    floats = numbers.astype(np.float64)
    with np.errstate(all="ignore"):  # the difference is right also where the cast back wraps around
        return floats, (numbers - floats.astype(np.int64)).astype(np.float64)
