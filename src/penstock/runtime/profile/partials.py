"""Measure what a partial group costs behind its leaf on this machine: written into a segment, merged, finished.

A task hands on each of its groups once, whatever tables stand before the leaves. The engine's own leaves, segments and
merges are run here over some ten thousand groups, of few columns and of many: what both take tells the part of a row
and that of a column. The line through what many and fewer groups take begins with what a merge costs however small it
is, or an address among the columns of a result.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import mean, median
from time import thread_time_ns

import numpy as np

from penstock.relations.layout import snug
from penstock.relations.relation import APPEND, Relation
from penstock.runtime.profile.trials import (
    FEW,
    LEAST,
    LEAST_COLUMN,
    TIMES,
    Trial,
    asked,
    chunk_of,
    middle,
    resolved,
    timed,
)
from penstock.runtime.tables.append import leaf_of
from penstock.runtime.tables.leaf import Leaf
from penstock.sharing.model.unit_costs import PerRow

GROUPS, FEWER, SOME = 131_072, 8_192, 1_024
FRESH = 1 << 23  # bytes
STEPS = 2  # chunks that are appended: together they do not fit the cache of a core


@dataclass(frozen=True)
class Partials:
    """Nanoseconds; `sharing.model.unit_costs.Costs` has them under these names."""

    segment: PerRow
    merge: PerRow
    overlapping: PerRow
    appended: float
    fresh: float
    shown: float
    spelled: float
    ordered: float
    touched: float
    merging: float
    block: float


def measured_partials(folder: Path) -> Partials:
    """All of them, in a tenth of a second."""
    # One of few columns, one of many, one of an address, and one of the first rows.
    texts = asked("narrow", "a"), asked("wide", "abcd", "efg"), asked("addresses", "h")
    queries = resolved([*texts, asked("first", "a", order="ORDER BY n DESC LIMIT 10")])
    narrow, wide, addresses, first = (Trial(folder, query) for query in queries)
    ways = Trial.segmented, Trial.merged, Trial.overlapping
    segments, merges, overlapping = ([_line(partial(way, one)) for one in (narrow, wide)] for way in ways)
    plain = _line(narrow.finished).row
    shown = max(LEAST_COLUMN, _line(addresses.finished).row - plain)
    ordered = max(LEAST, _line(first.finished).row - plain)
    spelled = addresses.finished(SOME) - narrow.finished(SOME) - SOME * shown
    both = narrow.columns, wide.columns
    return Partials(
        _by_columns(both, [line.row for line in segments]),
        _by_columns(both, [line.row for line in merges]),
        _by_columns(both, [line.row for line in overlapping]),
        _appended(wide.relation),
        max(LEAST, _fresh(narrow.relation)),
        shown=shown,
        spelled=max(LEAST, spelled),
        ordered=ordered,
        touched=_touched(),
        merging=max(LEAST, mean(line.begin for line in merges)),
        block=max(LEAST, (narrow.block() + wide.block()) / 2),
    )


def _touched() -> float:
    """ns of a byte of memory that is new."""
    found = []
    for _ in range(TIMES):
        with mmap.mmap(-1, FRESH) as memory:
            new = np.frombuffer(memory, np.uint8)
            found.append(timed(lambda new=new: new.fill(1)))  # type: ignore[misc]
            del new
    return median(found) / FRESH


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


@dataclass(frozen=True)
class Line:
    """ns of something by its groups: what it begins with, and each one more."""

    begin: float
    row: float


def _line(spent: Callable[[int], float]) -> Line:
    """The one through few groups and many."""
    few, many = spent(FEWER), spent(GROUPS)
    row = (many - few) / (GROUPS - FEWER)
    return Line(few - row * FEWER, row)


def _by_columns(columns: tuple[int, int], rows: Sequence[float]) -> PerRow:
    """What a row costs, and each of its columns: by the queries of few and of many."""
    column = max(LEAST_COLUMN, (rows[1] - rows[0]) / (columns[1] - columns[0]))
    return PerRow(max(LEAST, rows[0] - columns[0] * column), column)
