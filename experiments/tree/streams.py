"""Streams of the experiments of the aggregate-tree paper, as tables and planners look at them: epochs of records.

Attributes are the letters A to M. A group is told by its *first* row in the epoch: entries of a table are then row
numbers, from which the groups of all that the table feeds follow (`tables`). `records` makes or reads them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.kernels.tables import probe as tables
from penstock.kernels.tables import survey

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]

LETTERS = "ABCDEFGHIJKLM"
PAIRS = tuple(a + b for a, b in combinations(LETTERS, 2))  # the 78 queries
EPOCH_ROWS = 400_000  # of the paper's epochs (Sec. VIII-A)
KEPT, KEPT_BELOW = 40, 24  # groupings of an epoch that are kept, and samples below feeders
RUNS, RUN = 16, 2048  # of a sample: its runs, and the successive records of each


class RowGroups(NamedTuple):
    """Of a relation in an epoch: the number of each row's group, from 0 in order of arrival, and each group's first
    row."""

    number: NDArray[np.int32]
    first: NDArray[np.int32]


class RecordEpoch:
    """The records of an epoch; `columns` has a random word for each value of an attribute, by letter."""

    def __init__(self, columns: Mapping[str, Words]) -> None:
        self.columns = dict(columns)
        self.rows = len(next(iter(self.columns.values())))
        self._kept: OrderedDict[str, RowGroups] = OrderedDict()
        self._below: OrderedDict[str, RecordEpoch] = OrderedDict()
        self._groups: dict[str, int] = {}

    def grouping(self, letters: str) -> RowGroups:
        """The last ones asked for are kept."""
        if letters in self._kept:
            self._kept.move_to_end(letters)
        else:
            self._kept[letters] = grouped(self.words(letters))
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return self._kept[letters]

    def groups(self, letters: str) -> int:
        if letters not in self._groups:
            self._groups[letters] = len(self.counts(letters))
        return self._groups[letters]

    def counts(self, letters: str) -> Ints:
        """How often each group comes, in no order."""
        return run_lengths(self.words(letters))

    def sampled(self, letters: str, feeder: str = "") -> Ints:
        """The same of a sample: of the stream's records, or of the first ones of the groups of a feeder."""
        if not feeder:
            return run_lengths(self._sample.words(letters))
        if feeder not in self._below:
            first = self.grouping(feeder).first
            self._below[feeder] = self._at(first[:: max(1, -(-len(first) // (RUNS * RUN)))])
            while len(self._below) > KEPT_BELOW:
                self._below.popitem(last=False)
        return run_lengths(self._below[feeder].words(letters))

    def locality(self, letters: str) -> float:
        """How many times fewer entries a table passes on because records of a group come close together: against the
        same records in any order, as the engine's planner sees it (`runtime.profile.survey`)."""
        together = self._sample.words(letters)
        apart = together[self._any_order]
        buckets = max(64, len(run_lengths(apart.copy())) // 2)
        evicted, at_random = (
            int(survey.count_evictions(each, np.zeros(buckets, np.uint64))) for each in (together, apart)
        )
        return max(1.0, at_random / evicted) if evicted else 1.0

    def words(self, letters: str) -> Words:
        """A word for the group of each row: two groups have the same with a chance of 2^-64."""
        total = np.zeros(self.rows, np.uint64)
        if 2 * len(letters) <= len(self.columns):
            for letter in letters:
                total += self.columns[letter]
            return total
        total += self._all  # fewer to take away than to add
        for letter in self.columns.keys() - set(letters):
            total -= self.columns[letter]
        return total

    @cached_property
    def _sample(self) -> RecordEpoch:
        """Runs of successive records from all over the epoch."""
        length = max(1, min(self.rows // RUNS, RUN))
        starts = np.linspace(0, self.rows - length, RUNS).astype(np.int64)
        return self._at((starts[:, None] + np.arange(length)).ravel())

    @cached_property
    def _any_order(self) -> Ints:
        return np.random.default_rng(0).permutation(self._sample.rows)

    def _at(self, rows: NDArray[Any]) -> RecordEpoch:
        return RecordEpoch({letter: column[rows] for letter, column in self.columns.items()})

    @cached_property
    def _all(self) -> Words:
        return np.asarray(np.sum(list(self.columns.values()), axis=0, dtype=np.uint64))


def run_lengths(words: Words) -> Ints:
    """How often each word comes; leaves them sorted.

    >>> run_lengths(np.array([7, 9, 7, 8], np.uint64)).tolist()
    [2, 1, 1]
    """
    words.sort()
    return np.diff(np.flatnonzero(np.append(words[1:] != words[:-1], True)), prepend=-1)


def grouped(words: Words) -> RowGroups:
    """Number equal words equally, from 0 in order of arrival.

    >>> [each.tolist() for each in grouped(np.array([7, 9, 7, 8], np.uint64))]
    [[0, 1, 0, 2], [0, 1, 3]]
    """
    count, keys = len(words), words.reshape(1, -1)
    index = tables.empty_index(count + 1)
    rows, number = np.empty((count, 2), np.uint64), np.empty(count, np.int64)
    none, fresh = np.empty(0, np.int64), np.zeros(1, np.uint64)
    tables.probe_exact(keys, tables.hashed(keys), 0, count, none, 0, fresh, index, rows, number)
    first = np.flatnonzero(np.diff(np.maximum.accumulate(number), prepend=-1))
    return RowGroups(number.astype(np.int32), first.astype(np.int32))


@dataclass(frozen=True)
class RecordStream:
    """A stream, epoch by epoch; `attributes` are the names behind the letters, `hosts` the source and the
    destination."""

    name: str
    attributes: tuple[str, ...]
    hosts: str
    epochs: tuple[RecordEpoch, ...]

    @property
    def rows(self) -> int:
        return sum(epoch.rows for epoch in self.epochs)

    @cached_property
    def usual(self) -> RecordEpoch:
        """The epoch of median size: the one that plans are made for."""
        return sorted(self.epochs, key=lambda epoch: epoch.rows)[len(self.epochs) // 2]

    @property
    def scale(self) -> float:
        """Records of an epoch over the paper's: memory is taken in that proportion."""
        return self.usual.rows / EPOCH_ROWS

    def some(self, count: int) -> list[RecordEpoch]:
        """`count` epochs, evenly spaced, of those that are not cut short."""
        whole = [epoch for epoch in self.epochs if epoch.rows > self.usual.rows / 2]
        return whole[:: -(-len(whole) // count)]

    def named(self) -> dict[str, str]:
        """The relations of Fig. 2."""
        return {"source": self.hosts[0], "source, destination": self.hosts, "4-tuple": "ABCD"}

    def legend(self) -> str:
        return ", ".join(f"{letter} {name}" for letter, name in zip(LETTERS, self.attributes, strict=True))
