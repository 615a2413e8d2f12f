"""Unit costs of the engine on this machine, in nanoseconds: c1 and c2 of seed smap, by the size of a table.

A probe of a table costs more the larger the table (c1), and so does an insert into an exact leaf (c2): a leaf by itself
by its own size, leaves that take turns by what they have together, since each finds the caches full of the others. A
record's key is cut out of its chunk for each of them. Each state that is folded adds to either. An entry that is
evicted is copied, and its key is cut out again for each table below (`passing`).

That is the way into a leaf. Whatever tables stand before it, a task hands on each of its groups once, and then a
*partial group* costs `segment` (out of the leaf and into the task's file, in order) and `merge` (read, met with those
of other tasks cell by cell, folded): a row and each of its columns (`Costs.partial`). Where it is rolled up, `rolled`
and `grouped` take the place of the merge. A row of a result costs `finish` besides, before a sink gets it.

`runtime.profile.calibrate` measures all of them.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from math import log2

CostBySize = tuple[tuple[float, float], ...]  # (bytes of a table, nanoseconds), by bytes


@dataclass(frozen=True)
class PerRow:
    """What is done with rows: nanoseconds of each, and of each column whose values differ."""

    row: float
    column: float

    def of(self, columns: float) -> float:
        """A row of so many columns.

        >>> PerRow(20.0, 5.0).of(3)
        35.0
        """
        return self.row + self.column * columns


@dataclass(frozen=True)
class Costs:
    """`probe` of a direct-mapped table, `recent` of one that evicts the least recently used: by bytes of the table;
    `insert` into leaves that take turns, by bytes of all of them, `lone` into one by itself, by its own; `fold` of one
    state, `word` of one more word of a key, `passing` of an evicted entry.

    `segment` and `merge` of a partial group, by its columns: attributes of the key, count(*) and words of states;
    `overlapping` the same of one that is merged into windows which overlap.
    `block` is what each stored relation takes of a task, however few groups it has.
    `appended` is a row of a leaf that looks nothing up (it stands where `insert` does); `fresh` what an insert takes
    more that makes a group: memory that was not touched before, and an index that grows.
    `rolled` is a row that queries are rolled up from: for each of them, and for each attribute that is coded; `grouped`
    a column of a group that comes out. However few rows an item has, a merge takes `merging` of it, a roll-up `read`
    and each attribute that is coded `coding`.
    `finish` is a column of a row of a result, `shown` an address among them, made text; `close` is what a query takes
    of each item, however few its results, and `spelled` each of its columns of addresses.
    `ordered` is a row of them that is put in order. `touched` is a byte of memory that a process has not used before.
    """

    probe: CostBySize
    recent: CostBySize
    insert: CostBySize
    fold: float
    word: float
    passing: float
    lone: CostBySize = ()
    segment: PerRow = PerRow(30.0, 4.0)
    merge: PerRow = PerRow(30.0, 5.0)
    overlapping: PerRow = PerRow(40.0, 7.0)
    appended: float = 4.0
    fresh: float = 12.0
    block: float = 60_000.0
    rolled: PerRow = PerRow(8.0, 12.0)
    grouped: float = 2.0
    read: float = 120_000.0
    finish: float = 2.0
    shown: float = 30.0
    close: float = 150_000.0
    merging: float = 250_000.0
    coding: float = 50_000.0
    spelled: float = 90_000.0
    ordered: float = 60.0
    touched: float = 0.1

    def probe_at(self, size: float) -> float:
        return at(self.probe, size)

    def recent_at(self, size: float) -> float:
        return at(self.recent, size)

    def insert_at(self, size: float, own: float = 0.0) -> float:
        """Into a leaf of its `own` bytes, one of several that have `size` together."""
        turning = at(self.insert, size)
        return max(turning, at(self.lone, own)) if self.lone and own else turning

    def partial(self, columns: float) -> float:
        """What a partial group of so many columns costs behind its leaf."""
        return self.segment.of(columns) + self.merge.of(columns)


# Of a server core of 2023, for machines that cannot be calibrated.
USUAL = Costs(
    probe=((16_384, 7.0), (262_144, 8.0), (1_048_576, 9.0), (8_388_608, 14.0)),
    recent=((16_384, 8.0), (262_144, 9.0), (1_048_576, 12.0), (8_388_608, 20.0)),
    insert=((16_384, 6.0), (262_144, 8.0), (1_048_576, 10.0), (8_388_608, 22.0), (67_108_864, 45.0)),
    fold=2.0,
    word=2.0,
    passing=25.0,
    lone=((16_384, 7.0), (262_144, 10.0), (1_048_576, 12.0), (8_388_608, 20.0), (33_554_432, 40.0)),
)


def at(curve: CostBySize, size: float) -> float:
    """Between two sizes as the logarithm of the size goes; beyond the ends as at the ends.

    >>> at(((1024, 4.0), (4096, 8.0)), 2048), at(((1024, 4.0), (4096, 8.0)), 1), at(((1024, 4.0), (4096, 8.0)), 1e9)
    (6.0, 4.0, 8.0)
    """
    sizes = [known for known, _ in curve]
    above = bisect_left(sizes, size)
    if above == 0 or above == len(curve):
        return curve[min(above, len(curve) - 1)][1]
    (low, less), (high, more) = curve[above - 1], curve[above]
    return less + (more - less) * log2(size / low) / log2(high / low)
