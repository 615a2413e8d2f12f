"""Measure what a partial group costs behind its leaf on this machine: written into a segment, merged, finished.

A task hands on each of its groups once, whatever tables stand before the leaves. The engine's own leaves, segments and
merges are run here over some ten thousand groups, of few columns and of many: what both take tells the part of a row
and that of a column, and as many groups fewer leave out what a block costs, however small it is.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import thread_time_ns
from types import ModuleType

import numpy as np

from penstock.aggregates.values import EVERYTHING, Values
from penstock.kernels.tables import columns as column_kernels
from penstock.kernels.tables import merge as merge_kernels
from penstock.kernels.tables import order
from penstock.logical.query import Query
from penstock.logical.resolve.app import resolve_app
from penstock.relations.component import Component, Tag
from penstock.relations.layout import Range, snug
from penstock.relations.relation import APPEND, Relation, relation_of
from penstock.relations.storage import StoredSource
from penstock.runtime.merge import finish as finishing
from penstock.runtime.merge import merge as merging
from penstock.runtime.merge import windows
from penstock.runtime.merge.items import Cut
from penstock.runtime.settings import TaskSettings
from penstock.runtime.tables import append, leaf
from penstock.runtime.tables.append import leaf_of
from penstock.runtime.tables.chunk import Chunk, pack_words
from penstock.runtime.tables.leaf import Leaf
from penstock.sharing.model.unit_costs import PerRow
from penstock.state.protocol import SegmentRef
from penstock.state.segments import write
from penstock.state.segments.groups import Groups

Array = np.ndarray
GROUPS, FEWER = 40_960, 8_192
PARTS = 2  # segments that are merged: half of the groups of one are in the other
TIMES = 4  # that something is measured: what disturbs only adds
FEW, BLOCKS = 64, 16  # groups of a block, and blocks, that tell what one costs without groups
STEPS = 8  # chunks that are appended: together they do not fit the cache of a core
STREAM = "CREATE STREAM s (ts TIMESTAMP, {}) FROM 'csv:s' WATERMARK ts DELAY '0 s';"
QUERY = "CREATE QUERY {0} AS SELECT {1} FROM s [RANGE '1 s'] GROUP BY {2};"
NAMES = tuple("abcdefg")  # keys, then columns that are summed up
KEYS, SUMS = 4, 3
VALUES = 1 << 15
LEAST = 1.0  # ns of a row
LEAST_COLUMN = 0.2
# What is measured here: others cost something else.
MEASURED: tuple[ModuleType, ...] = (
    column_kernels, merge_kernels, order, leaf, append, write, merging, windows, finishing,
)  # fmt: skip


@dataclass(frozen=True)
class Partials:
    """Nanoseconds; `sharing.model.unit_costs.Costs` has them under these names."""

    segment: PerRow
    merge: PerRow
    appended: float
    finish: float
    block: float


def measured_partials() -> Partials:
    """All of them, in a tenth of a second."""
    narrow, wide = _queries()
    with tempfile.TemporaryDirectory(prefix="penstock-costs-") as folder:
        trials = [_Trial(Path(folder), query) for query in (narrow, wide)]
        segment, merge = (_by_columns(trials, way) for way in (_Trial.segmented, _Trial.merged))
        finish, block = max(LEAST, _slope(trials[1].finished)), max(LEAST, trials[0].block())
        return Partials(segment, merge, _appended(trials[0].relation), finish, block)


def _queries() -> Iterator[Query]:
    """One of few columns, one of many."""
    keys, sums = NAMES[:KEYS], NAMES[KEYS:]
    narrow = QUERY.format("narrow", f"{keys[0]}, count(*) AS n", keys[0])
    kept = ", ".join([*keys, "count(*) AS n", *(f"sum({name}) AS {name}s" for name in sums)])
    wide = QUERY.format("wide", kept, ", ".join(keys))
    text = STREAM.format(", ".join(f"{name} INT" for name in NAMES)) + narrow + wide
    app = resolve_app(text, "calibration", lambda uri, options: ())
    yield from (app.query(name) for name in ("narrow", "wide"))


class _Trial:
    """Groups of a query in leaves, segments and windows; files are written into the folder."""

    def __init__(self, folder: Path, query: Query) -> None:
        self._folder, self._query, self.relation = folder, query, relation_of(query)
        self._slots = TaskSettings().slots

    @property
    def columns(self) -> int:
        """Columns that differ from group to group: of the key, count(*), and words of states."""
        words = sum(form.words for form in self.relation.shape.forms(self.relation.states).values())
        return len(self.relation.attributes) + 1 + words

    def block(self) -> float:
        """ns of each block of a segment, where it has hardly any groups."""
        full = _filled(self.relation, FEW, 0)
        return (_best(lambda: self._written(full, 1 + BLOCKS)[1]) - _best(lambda: self._written(full)[1])) / BLOCKS

    def segmented(self, groups: int) -> float:
        """ns of writing so many groups of a leaf."""
        full = _filled(self.relation, groups, 0)
        return _best(lambda: self._written(full)[1])

    def merged(self, groups: int) -> float:
        """ns of merging so many stored groups."""
        read = self._stored(groups)

        def once() -> int:
            began = thread_time_ns()
            self._windows(read)
            return thread_time_ns() - began

        return _best(once)

    def finished(self, groups: int) -> float:
        """ns of making so many groups rows of a result."""
        found = self._windows(self._stored(groups * 4 // 3))  # a third of them are in both segments

        def once() -> int:
            began = thread_time_ns()
            finishing.finish(self._query, found, _Bounds())
            return thread_time_ns() - began

        return _best(once) * groups / len(found)

    def _stored(self, groups: int) -> list[SegmentRef]:
        return [self._written(_filled(self.relation, groups // PARTS, part))[0] for part in range(PARTS)]

    def _written(self, full: Leaf, blocks: int = 1) -> tuple[SegmentRef, int]:
        path = self._folder / f"{len(list(self._folder.iterdir()))}.seg"
        began = thread_time_ns()
        with write.SegmentWriter(path, self._slots) as writer:
            for groups in itertools.chain(*(full.pieces({}) for _ in range(blocks))):
                writer.add(self.relation.name, groups, (), self.relation.slot_key)
            writer.end_run({})
            return writer.close(), thread_time_ns() - began

    def _windows(self, read: list[SegmentRef]) -> Groups:
        cut, source = Cut(0, 0, 1, 0, self._slots), StoredSource(self.relation)
        with windows.TaskSegments(self._folder, read) as segments:
            return windows.merge_windows(self._query.window, source, cut, segments, merging.Share())


class _Bounds:
    """Of windows of a second."""

    def of(self, numbers: Array) -> tuple[Array, Array]:
        return numbers, numbers + 1_000_000


def _filled(relation: Relation, groups: int, part: int) -> Leaf:
    """A leaf with so many groups; those of two parts are half the same."""
    chunk, ranges = _chunk(relation, groups, part)
    full = leaf_of(relation, snug(ranges), relation.shape, groups)
    assert full.absorb(full.arrivals(chunk, np.arange(groups, dtype=np.int32)))
    return full


def _chunk(relation: Relation, groups: int, part: int) -> tuple[Chunk, Mapping[Component, Range]]:
    """Records of as many keys in any order, and what their components range over."""
    rng = np.random.default_rng(1)
    number = rng.permutation(PARTS * groups)[rng.permutation(groups) + part * groups // PARTS]
    found = {name: number * (2 * n + 1) % VALUES for n, name in enumerate(NAMES)} | {NAMES[0]: number}
    held = {part.component: found[part.component.of] for part in relation.parts[1:] if part.component.tag is Tag.VALUE}
    ranges = {part.component: (0, 0) for part in relation.parts} | dict.fromkeys(held, (0, PARTS * groups + VALUES))
    words = pack_words(snug(ranges), held, groups)
    values = {one.name: Values(found[one.name], EVERYTHING) for one in relation.arguments}
    return Chunk(words, values, {}), ranges


def _appended(relation: Relation) -> float:
    """ns of a row that a leaf appends."""
    kept = replace(relation, table=APPEND)
    chunk, ranges = _chunk(kept, GROUPS, 0)
    rows = np.arange(GROUPS, dtype=np.int32)
    kind = leaf_of(kept, snug(ranges), kept.shape, STEPS * GROUPS)
    arrivals = kind.arrivals(chunk, rows)

    def once() -> int:
        began = thread_time_ns()
        for _ in range(STEPS):
            arrivals.done = 0
            kind.absorb(arrivals)
        spent = thread_time_ns() - began
        kind.restart()
        return spent

    return max(LEAST, _best(once) / (STEPS * GROUPS))


def _by_columns(trials: Sequence[_Trial], way: Callable[[_Trial, int], float]) -> PerRow:
    """What a row costs, and each of its columns: by the queries of few and of many."""
    (few, narrow), (many, wide) = ((one.columns, _slope(partial(way, one))) for one in trials)
    column = max(LEAST_COLUMN, (wide - narrow) / (many - few))
    return PerRow(max(LEAST, narrow - few * column), column)


def _slope(spent: Callable[[int], float]) -> float:
    """ns of one more group."""
    return (spent(GROUPS) - spent(FEWER)) / (GROUPS - FEWER)


def _best(run: Callable[[], int]) -> float:
    return float(min(run() for _ in range(TIMES)))
