"""The table that evicts the least recently used, against an OrderedDict that takes one tuple at a time."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import pytest

from penstock.kernels.tables import fold, lru
from penstock.kernels.tables import probe as tables

Array = np.ndarray
Entry = tuple[tuple[int, ...], int, int]  # key, count(*), maximum
FRESH = np.array([0, -(1 << 63)], np.int64).view(np.uint64)  # of count(*) and a maximum


class Reference:
    """Residents by key, the least recently used first."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.residents: OrderedDict[tuple[int, ...], tuple[int, int]] = OrderedDict()
        self.evicted: list[Entry] = []

    def take(self, key: tuple[int, ...], weight: int, value: int) -> None:
        if key in self.residents:
            count, most = self.residents.pop(key)
            self.residents[key] = (count + weight, max(most, value))
            return
        if len(self.residents) == self.capacity:
            old, (count, most) = self.residents.popitem(last=False)
            self.evicted.append((old, count, most))
        self.residents[key] = (weight, value)


class Table:
    """The kernels at work, as a branch of the engine uses them."""

    def __init__(self, capacity: int, words: int, room: int, buckets: int | None = None) -> None:
        self.capacity, self.words = capacity, words
        self.entries = np.zeros((capacity + room, words + 2), np.uint64)
        self.links = lru.links(capacity, buckets)
        self.evicted: list[Entry] = []

    def take(self, keys: Array, weights: Array, values: Array) -> Array:
        n = keys.shape[1]
        hashes, at = np.empty(n, np.uint64), np.empty(n, np.int64)
        evicted, places = np.empty(n, np.int64), np.empty(n, np.int64)
        tables.hash_keys(keys, hashes)
        out = lru.probe_lru(keys, hashes, weights, FRESH, self.entries, *self.links, at, evicted, places)
        states = self.entries.view(np.int64)
        rows = np.arange(n, dtype=np.int32)
        fold.fold_max(states, self.words + 1, at, 0, n, rows, values, np.empty(0, np.uint8))
        evictions = np.empty((out, self.entries.shape[1]), np.uint64)
        lru.settle_lru(self.entries, self.links.nodes, evicted, places, out, evictions)
        self.evicted += [self._entry(row) for row in evictions]
        return at

    def _entry(self, row: Array) -> Entry:
        key = tuple(int(word) for word in row[: self.words])
        count, most = row[self.words :].view(np.int64)
        return key, int(count), int(most)

    def residents(self) -> list[Entry]:
        """The least recently used first."""
        order = np.empty(self.capacity, np.int64)
        count = lru.recency(self.links.log, self.links.state, order)
        return [self._entry(self.entries[place - 1]) for place in order[:count]]

    def drain(self, piece: int) -> list[Entry]:
        found: list[Entry] = []
        while True:
            rows = np.empty((piece, self.entries.shape[1]), np.uint64)
            count = lru.drain_lru(self.entries, self.links.heads, self.links.nodes, self.links.state, rows)
            if not count:
                return found
            found += [self._entry(row) for row in rows[:count]]


def stream(rng: np.random.Generator, n: int, words: int) -> tuple[Array, Array, Array]:
    """Keys of few or many groups, evenly, with favourites, or in runs."""
    groups = int(rng.choice([3, 30, 300, 3000]))
    shape = int(rng.integers(3))
    if shape == 0:
        codes = rng.integers(0, groups, n)
    elif shape == 1:
        codes = np.minimum(rng.zipf(1.2, n), groups) - 1
    else:
        codes = np.repeat(rng.integers(0, groups, n), rng.geometric(0.3, n))[:n]
    keys = np.empty((words, n), np.uint64)
    left = codes.astype(np.uint64)
    for word in range(words):  # keys that agree in all words but one are common
        keys[word], left = left % np.uint64(7) if word < words - 1 else left, left // np.uint64(7)
    weights = rng.integers(1, 9, n) if rng.random() < 0.5 else np.empty(0, np.int64)
    return keys, weights, rng.integers(-1000, 1000, n)


def check(table: Table, reference: Reference) -> None:
    assert table.evicted == reference.evicted
    assert table.residents() == [(key, *states) for key, states in reference.residents.items()]


@pytest.mark.parametrize("seed", range(60))
def test_it_evicts_as_an_ordered_dict_does(seed: int) -> None:
    print(f"seed {seed}")
    rng = np.random.default_rng(seed)
    capacity = int(rng.choice([1, 2, 3, 10, 100, 1000]))
    words = int(rng.integers(1, 4))
    buckets = None if seed % 3 else int(rng.integers(1, 2 * capacity + 1))  # few buckets: long chains
    table, reference = Table(capacity, words, 4000, buckets), Reference(capacity)
    for _ in range(int(rng.integers(1, 5))):
        keys, weights, values = stream(rng, int(rng.integers(0, 4000)), words)
        at = table.take(keys, weights, values)
        for i in range(keys.shape[1]):
            key = tuple(int(word) for word in keys[:, i])
            reference.take(key, int(weights[i]) if len(weights) else 1, int(values[i]))
        assert at.min(initial=0) >= 0
        check(table, reference)
    left = sorted(table.residents())
    drained = table.drain(int(rng.integers(1, 600)))
    assert sorted(drained) == left
    assert table.residents() == []
    # An emptied table is as new.
    reference.residents.clear()
    keys, weights, values = stream(rng, 2000, words)
    table.take(keys, weights, values)
    for i in range(keys.shape[1]):
        key = tuple(int(word) for word in keys[:, i])
        reference.take(key, int(weights[i]) if len(weights) else 1, int(values[i]))
    check(table, reference)


def test_nothing_is_evicted_before_the_table_is_full() -> None:
    table = Table(500, 1, 10_000)
    keys = np.random.default_rng(1).integers(0, 500, (1, 10_000)).astype(np.uint64)
    table.take(keys, np.empty(0, np.int64), np.zeros(10_000, np.int64))
    assert table.evicted == []
    assert len(table.residents()) == 500


def test_chains_are_as_short_as_the_paper_found() -> None:
    """Seed aggregate-tree, Sec. III-C: of 10,000 to 100,000 entries the longest has 6 to 8, the average is 1.6."""
    capacity = 20_000
    table = Table(capacity, 1, capacity, buckets=capacity)
    keys = np.arange(capacity, dtype=np.uint64)[None, :]
    table.take(keys, np.empty(0, np.int64), np.zeros(capacity, np.int64))
    lengths = np.empty(capacity, np.int64)
    lru.chain_lengths(table.links.heads, table.links.nodes, lengths)
    assert lengths.sum() == capacity
    assert 6 <= lengths.max() <= 9
    assert lengths[lengths > 0].mean() == pytest.approx(1.58, abs=0.03)
