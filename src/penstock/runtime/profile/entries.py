"""Measure what a record costs on its way into groups on this machine: in tables before the leaves, and in leaves.

    random keys ──► chunk ──► the engine's own table, or leaf ──► the nanoseconds that it counts, as in a run

So all is in them that a record costs there: its key is cut out of the words of its chunk and hashed, its group is
found, states are folded. A query of a key of two words and one state is the measure; others tell what one more of each
takes. The middle chunk of several counts; before each of them something else has filled the caches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from time import thread_time_ns

import numpy as np

from penstock.relations.layout import Layout, snug
from penstock.relations.relation import Relation, relation_of
from penstock.runtime.machine import cache_size
from penstock.runtime.profile.trials import asked, records_of, resolved
from penstock.runtime.settings import TaskSettings
from penstock.runtime.tables.append import leaf_of
from penstock.runtime.tables.chunk import Chunk
from penstock.runtime.tables.leaf import Leaf
from penstock.runtime.tables.table import Branch
from penstock.sharing.graph.configuration import STREAM
from penstock.sharing.model.engine_problem import INDEX
from penstock.sharing.model.kinds.direct import EVICT
from penstock.sharing.model.kinds.lru import LRU, RECENT
from penstock.sharing.model.unit_costs import CostBySize
from penstock.sharing.plan import Table

Array = np.ndarray
RECORDS = TaskSettings().chunk_rows
TIMES = 5  # chunks that are measured
PROBED = (1 << 14, 1 << 18, 1 << 20, 1 << 23, 1 << 25)  # bytes of tables before leaves
TURNING = (1 << 14, 1 << 18, 1 << 20, 1 << 23, 1 << 27)  # of all leaves that take turns
TURNS = 16  # leaves that do
LONE = PROBED  # of a leaf by itself
HIGHEST = (1 << 29) - 1  # value of an attribute: four of them are two words
SOME = 1 << 14  # groups, where their number is no matter
BUCKETS = 4096  # of a table where entries are evicted
QUARTER = 4  # buckets of a direct-mapped table for each group: few are evicted


@dataclass(frozen=True)
class Entries:
    """Nanoseconds; `sharing.model.unit_costs.Costs` has them under these names."""

    probe: CostBySize
    recent: CostBySize
    insert: CostBySize
    lone: CostBySize
    fold: float
    word: float
    passing: float


def measured_entries() -> Entries:
    """All of them, in half a second."""
    texts = [asked("usual", "abcd", "e"), asked("wide", "abcdefg", "e"), asked("more", "abcd", "efg")]
    usual, wide, more = map(relation_of, resolved(texts))
    alone = inserted(usual, SOME)
    word = max(0.2, (inserted(wide, SOME) - alone) / (words_of(wide) - words_of(usual)))
    folded = max(0.2, (inserted(more, SOME) - alone) / 2)
    passing = max(1.0, passed(usual))

    def by_size(sizes: Sequence[int], cost: Callable[[int], float]) -> CostBySize:
        return rising([(float(size), max(1.0, cost(size) - folded)) for size in sizes])

    entry = 8 * _width(usual)

    def into(size: int, leaves: int) -> float:
        return inserted(usual, max(1, size // (entry + INDEX) // leaves), leaves)

    return Entries(
        by_size(PROBED, lambda size: probed(usual, size // entry, EVICT, passing)),
        by_size(PROBED, lambda size: probed(usual, size // (entry + LRU.links), RECENT, passing)),
        by_size(TURNING, lambda size: into(size, TURNS)),
        by_size(LONE, lambda size: into(size, 1)),
        folded,
        word,
        passing,
    )


def inserted(relation: Relation, groups: int, leaves: int = 1) -> float:
    """ns of a record whose group is there, in one of some leaves of so many groups each, which take turns."""
    keys = _Keys(relation)
    full = [_filled(keys, groups) for _ in range(leaves)]
    found = list[int]()
    for records in keys.random(groups, max(2, TIMES // leaves)):
        for one in full:
            before = one.nanoseconds
            assert one.absorb(one.arrivals(records, keys.rows))
            found.append(one.nanoseconds - before)
    return float(median(found)) / RECORDS


def probed(relation: Relation, buckets: int, policy: str, passing: float) -> float:
    """ns of a record whose group is there, in a direct-mapped table with room for more, or a full LRU table."""
    keys = _Keys(relation)
    groups = max(1, buckets // QUARTER if policy == EVICT else buckets)
    one = keys.table(buckets, policy)
    for records in keys.all(groups):
        _taken(one, records, keys.rows)
    found = list[float]()
    for records in keys.random(groups, TIMES):
        before, out = one.nanoseconds, one.evictions
        _taken(one, records, keys.rows)
        found.append(one.nanoseconds - before - passing * (one.evictions - out))
    return median(found) / RECORDS


def passed(relation: Relation) -> float:
    """ns more of an entry that is evicted, to be copied out of its table and made ready for others."""
    keys, buckets, ready = _Keys(relation), BUCKETS, list[int]()
    hits, misses = (keys.table(buckets, EVICT) for _ in range(2))
    spent: dict[Branch, list[int]] = {hits: [], misses: []}
    for one, groups in ((hits, buckets // 64), (misses, HIGHEST)):
        for records in keys.random(groups, 1 + TIMES):
            before = one.nanoseconds
            found = _taken(one, records, keys.rows)
            spent[one].append(one.nanoseconds - before)
            if one is misses:
                began = thread_time_ns()
                one.format.partials(found, {})
                ready.append(thread_time_ns() - began)
    more = median(spent[misses][1:]) - median(spent[hits][1:])
    return (more + median(ready[1:])) / RECORDS


def rising(curve: Sequence[tuple[float, float]]) -> CostBySize:
    """A larger table is never cheaper: where it looks so, the machine was disturbed."""
    most, kept = 0.0, []
    for size, cost in curve:
        most = max(most, cost)
        kept.append((size, most))
    return tuple(kept)


def words_of(relation: Relation) -> int:
    """Of its key."""
    return _Keys(relation).layout.words


class _Keys:
    """Chunks of records of a relation."""

    def __init__(self, relation: Relation) -> None:
        self.relation, self._rng = relation, np.random.default_rng(1)
        self.rows = np.arange(RECORDS, dtype=np.int32)
        self.layout: Layout = snug(records_of(relation, np.arange(1), HIGHEST)[1])
        self._other = np.zeros(2 * cache_size() // 8)

    def all(self, groups: int) -> Iterator[Chunk]:
        """Each group once, or more often."""
        for start in range(0, groups, RECORDS):
            yield self._chunk(np.arange(start, start + RECORDS) % groups)

    def random(self, groups: int, times: int) -> Iterator[Chunk]:
        for _ in range(times):
            records = self._chunk(self._rng.integers(0, groups, RECORDS))
            self._other += 1.0
            yield records

    def table(self, buckets: int, policy: str) -> Branch:
        plan = Table("calibrated", STREAM, (), max(1, buckets), policy)
        one = Branch(plan, self.relation.parts, self.relation.states)
        one.lay_out(self.layout, self.relation.shape)
        return one

    def _chunk(self, number: Array) -> Chunk:
        return records_of(self.relation, number, HIGHEST)[0]


def _filled(keys: _Keys, groups: int) -> Leaf:
    full = leaf_of(keys.relation, keys.layout, keys.relation.shape, groups)
    for records in keys.all(groups):
        assert full.absorb(full.arrivals(records, keys.rows))
    return full


def _taken(one: Branch, records: Chunk, rows_of: Array) -> Array:
    """What a table evicts for these records."""
    one.absorb(records, rows_of)
    return one.taken() if one.waiting else np.empty((0, one.format.width), np.uint64)


def _width(relation: Relation) -> int:
    """Words of an entry: key, count(*), states."""
    return words_of(relation) + 1 + sum(form.words for form in relation.shape.forms(relation.states).values())
