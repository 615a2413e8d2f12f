"""Tables of an aggregate tree at work: an epoch of records through them, every hash operation counted.

These are the engine's own tables: `kernels.tables.lru`, which evicts the least recently used when it is full
(aggregate-tree, Sec. III-C), and the direct-mapped one of `kernels.tables.probe`, which evicts on every collision (seed
smap). A table's input is all that its parent passes on, in order, so tables run one after the other, a whole epoch at a
time, as in `experiments.kit.measure`. Entries are told by the first row of their group; what a child makes of one
follows from that row.

At the end of the epoch tables are flushed from the stream down: each takes in what its parent flushes, evicting as
ever, and then gives away all it holds. Queries hold all their groups (Sec. III-D): each entry that arrives is one
operation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from experiments.tree.streams import RecordEpoch
from penstock.kernels.tables import lru
from penstock.kernels.tables import probe as tables
from penstock.sharing.graph.configuration import STREAM, Configuration
from penstock.sharing.graph.notation import name_letters

Ints = NDArray[np.int64]

CHUNK = 1 << 16
ROW_BITS = 40  # of a key: the row; above them the table's number, so that each has a hash function of its own
NONE, FRESH = np.empty(0, np.int64), np.zeros(1, np.uint64)
NOTHING = np.empty(0, np.int64)


class EntryTable(ABC):
    """A table of a fixed number of entries; keys go in and come out."""

    @abstractmethod
    def __init__(self, capacity: int) -> None: ...

    @abstractmethod
    def take(self, keys: Ints) -> Ints:
        """Probe them all; returns what was evicted, in order."""

    @abstractmethod
    def drain(self) -> Ints:
        """All residents; the table is not used again."""


class LruTable(EntryTable):
    """Chained; `buckets` as many as entries in the paper, more in the engine."""

    def __init__(self, capacity: int, buckets: int | None = None) -> None:
        self.capacity = capacity
        self.entries = np.zeros((capacity + CHUNK, 2), np.uint64)
        self.links = lru.links(capacity, buckets)

    def take(self, keys: Ints) -> Ints:
        out = [self._chunk(keys[start : start + CHUNK]) for start in range(0, len(keys), CHUNK)]
        return np.concatenate(out) if out else NOTHING

    def _chunk(self, keys: Ints) -> Ints:
        count = len(keys)
        words = np.ascontiguousarray(keys.view(np.uint64)[None, :])
        hashes, at = np.empty(count, np.uint64), np.empty(count, np.int64)
        evicted, places = np.empty(count, np.int64), np.empty(count, np.int64)
        tables.hash_keys(words, hashes)
        out = lru.probe_lru(words, hashes, NONE, FRESH, self.entries, *self.links, at, evicted, places)
        left = np.empty((out, 2), np.uint64)
        lru.settle_lru(self.entries, self.links.nodes, evicted, places, out, left)
        return left[:, 0].view(np.int64)

    def drain(self) -> Ints:
        return self.entries[: self.links.state[lru.SIZE], 0].view(np.int64).copy()

    def chains(self) -> Ints:
        """The length of each bucket's chain."""
        lengths = np.empty(len(self.links.heads), np.int64)
        lru.chain_lengths(self.links.heads, self.links.nodes, lengths)
        return lengths


class DirectTable(EntryTable):
    def __init__(self, capacity: int) -> None:
        self.entries = np.zeros((capacity + CHUNK, 2), np.uint64)
        self.resident = np.arange(capacity, dtype=np.int32)
        self.credit = np.zeros(capacity, np.int32)

    def take(self, keys: Ints) -> Ints:
        out = [self._chunk(keys[start : start + CHUNK]) for start in range(0, len(keys), CHUNK)]
        return np.concatenate(out) if out else NOTHING

    def _chunk(self, keys: Ints) -> Ints:
        count = len(keys)
        words = np.ascontiguousarray(keys.view(np.uint64)[None, :])
        hashes, at = np.empty(count, np.uint64), np.empty(count, np.int64)
        evicted, moved = np.empty(count, np.int64), np.empty(count, np.int32)
        tables.hash_keys(words, hashes)
        out = tables.probe_direct(
            words, hashes, NONE, FRESH, 0, self.entries, self.resident, self.credit, at, evicted, moved
        )
        left = np.empty((out, 2), np.uint64)
        tables.settle_direct(self.entries, evicted, moved, out, left, self.resident)
        return left[:, 0].view(np.int64)

    def drain(self) -> Ints:
        residents = np.empty((len(self.resident), 2), np.uint64)
        count = tables.drain_direct(self.entries, 1, residents)
        return residents[:count, 0].view(np.int64).copy()


@dataclass(frozen=True)
class PassedRows:
    """Rows that a node passes on, in order: evicted during the epoch, and at its end."""

    during: Ints
    end: Ints

    @property
    def total(self) -> int:
        return len(self.during) + len(self.end)


@dataclass(frozen=True)
class CountedTree:
    """Hash operations of an epoch or more: during them and at their ends; `outs` of each node, tables only."""

    rows: int
    during: int
    end: int
    outs: tuple[int, ...]

    @property
    def total(self) -> int:
        return self.during + self.end

    @property
    def per_tuple(self) -> float:
        return self.total / self.rows


def run_tree(
    epoch: RecordEpoch, configuration: Configuration, entries: Sequence[float], kind: type[EntryTable] = LruTable
) -> CountedTree:
    """The epoch through tables of the given numbers of entries (0: none, all passes by); leaf queries count what
    arrives."""
    during = end = 0
    passed: list[PassedRows] = []
    stream = PassedRows(np.arange(epoch.rows), NOTHING)
    for i, node in enumerate(configuration.nodes):
        fed = stream if node.parent == STREAM else passed[node.parent]
        leaf, capacity = not configuration.children(i), int(entries[i])
        if leaf or capacity:
            during += len(fed.during)
            end += len(fed.end)
        if leaf or not capacity:
            passed.append(PassedRows(NOTHING, NOTHING) if leaf else fed)
            continue
        passed.append(_through(kind(capacity), epoch, name_letters(node.grain), i, fed))
    return CountedTree(epoch.rows, during, end, tuple(one.total for one in passed))


def _through(table: EntryTable, epoch: RecordEpoch, letters: str, number: int, fed: PassedRows) -> PassedRows:
    """What a table passes on of what it is fed."""
    grouping = epoch.grouping(letters)
    salt = np.int64(number + 1) << np.int64(ROW_BITS)
    rows = np.int64((1 << ROW_BITS) - 1)

    def keys(of: Ints) -> Ints:
        return np.asarray(grouping.first[grouping.number[of]] | salt)

    during = table.take(keys(fed.during))
    evicted = table.take(keys(fed.end))
    return PassedRows(during & rows, np.concatenate([evicted, table.drain()]) & rows)


def together(counted: Iterable[CountedTree]) -> CountedTree:
    """Of several epochs."""
    each = list(counted)
    return CountedTree(
        sum(one.rows for one in each),
        sum(one.during for one in each),
        sum(one.end for one in each),
        tuple(map(sum, zip(*(one.outs for one in each), strict=True))),
    )
