"""Measure what a partial group costs behind its leaf on this machine: written into a segment, merged, finished.

A task hands on each of its groups once, whatever tables stand before the leaves. The engine's own leaves, segments and
merges are run here over some ten thousand groups, of few columns and of many: what both take tells the part of a row
and that of a column, and as many groups fewer leave out what a block, a merge or a query costs, however small it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import thread_time_ns

import numpy as np

from penstock.relations.layout import snug
from penstock.relations.relation import APPEND, Relation
from penstock.runtime.profile.trials import FEW, LEAST, LEAST_COLUMN, Trial, asked, chunk_of, middle, resolved
from penstock.runtime.tables.append import leaf_of
from penstock.runtime.tables.leaf import Leaf
from penstock.sharing.model.unit_costs import PerRow

GROUPS, FEWER = 131_072, 16_384
STEPS = 2  # chunks that are appended: together they do not fit the cache of a core


@dataclass(frozen=True)
class Partials:
    """Nanoseconds; `sharing.model.unit_costs.Costs` has them under these names."""

    segment: PerRow
    merge: PerRow
    appended: float
    fresh: float
    shown: float
    block: float


def measured_partials(folder: Path) -> Partials:
    """All of them, in a tenth of a second."""
    # One of few columns, one of many, and one of an address.
    queries = resolved([asked("narrow", "a"), asked("wide", "abcd", "efg"), asked("addresses", "h")])
    narrow, wide, addresses = (Trial(folder, query) for query in queries)
    segment, merge = (_by_columns((narrow, wide), way) for way in (Trial.segmented, Trial.merged))
    shown = max(LEAST_COLUMN, _slope(addresses.finished) - _slope(narrow.finished))
    block = max(LEAST, narrow.block())
    fresh = max(LEAST, _fresh(narrow.relation))
    return Partials(segment, merge, _appended(wide.relation), fresh, shown, block)


def _appended(relation: Relation) -> float:
    """ns of a row that a leaf appends."""
    kept = replace(relation, table=APPEND)
    chunk, ranges = chunk_of(kept, GROUPS)
    rows = np.arange(GROUPS, dtype=np.int32)

    def once() -> int:
        began = thread_time_ns()
        kind = leaf_of(kept, snug(ranges), kept.shape, STEPS * GROUPS)  # memory that is new is dearer
        for _ in range(STEPS):
            kind.absorb(kind.arrivals(chunk, rows))
        return thread_time_ns() - began

    return max(LEAST, middle(once) / (STEPS * GROUPS))


def _fresh(relation: Relation) -> float:
    """ns more of an insert that makes a group, in a leaf that grows as it needs to."""
    chunk, ranges = chunk_of(relation, GROUPS)
    rows, layout = np.arange(GROUPS, dtype=np.int32), snug(ranges)

    def spent(full: Leaf) -> int:
        arrivals = full.arrivals(chunk, rows)
        began = thread_time_ns()
        while not full.absorb(arrivals):
            full.grow(1 << 40)
        return thread_time_ns() - began

    full = leaf_of(relation, layout, relation.shape, FEW)
    spent(full)
    new = middle(lambda: spent(leaf_of(relation, layout, relation.shape, FEW)))
    return (new - middle(lambda: spent(full))) / GROUPS


def _by_columns(trials: Sequence[Trial], way: Callable[[Trial, int], float]) -> PerRow:
    """What a row costs, and each of its columns: by the queries of few and of many."""
    (few, narrow), (many, wide) = ((one.columns, _slope(partial(way, one))) for one in trials)
    column = max(LEAST_COLUMN, (wide - narrow) / (many - few))
    return PerRow(max(LEAST, narrow - few * column), column)


def _slope(spent: Callable[[int], float]) -> float:
    """ns of one more group."""
    return (spent(GROUPS) - spent(FEWER)) / (GROUPS - FEWER)
