"""Groups to measure on: of made-up queries, in leaves, segments and windows of the engine's own.

    chunk_of ──► filled leaf ──► written segment ──► merged windows ──► finished rows

Times are of the processor; the middle one of several counts, with cold caches.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from time import thread_time_ns

import numpy as np

from penstock.aggregates.values import EVERYTHING, Values
from penstock.kernels.dictionary import Dictionary
from penstock.logical.query import Query
from penstock.logical.resolve.app import resolve_app
from penstock.logical.window import Window
from penstock.relations.component import Component, Tag
from penstock.relations.layout import Range, snug
from penstock.relations.relation import Relation, relation_of
from penstock.relations.storage import StoredSource
from penstock.runtime.machine import cache_size
from penstock.runtime.merge.items import Cut
from penstock.runtime.merge.results import finish as finishing
from penstock.runtime.merge.results.ordering import first_rows
from penstock.runtime.merge.results.tally import per_window, tally
from penstock.runtime.merge.shares import Share
from penstock.runtime.merge.windows import TaskSegments, merge_windows
from penstock.runtime.settings import TaskSettings
from penstock.runtime.tables.append import leaf_of
from penstock.runtime.tables.chunk import Chunk, pack_words
from penstock.runtime.tables.leaf import Leaf
from penstock.state.protocol import SegmentRef
from penstock.state.segments import write
from penstock.state.segments.groups import Groups

Array = np.ndarray
PARTS = 2  # segments that are merged: half of the groups of one are in the other
OVERLAP = 4  # windows that a pane is in
TIMES = 5  # that something is measured
FEW, BLOCKS = 64, 16  # groups of a block, and blocks, that tell what one costs without groups
STREAM = "CREATE STREAM s (ts TIMESTAMP, {}, h INET) FROM 'csv:s' WATERMARK ts DELAY '0 s';"
QUERY = "CREATE QUERY {0} AS SELECT {1} FROM s [RANGE '1 s'] GROUP BY {2};"
NAMES = (*"abcdefg", "h")  # columns; the last one is an address
SPAN = 1 << 15
MIX, SHIFT = 0x9E3779B97F4A7C1, 12  # make values that follow no order
EVERY = 1 << 30  # values: all numbers
VALUES = (EVERY, *(SPAN for _ in NAMES[1:-1]), EVERY)  # how many values columns have
LEAST = 1.0  # ns of a row
LEAST_COLUMN = 0.2


def asked(name: str, keys: Sequence[str], sums: Sequence[str] = (), order: str = "") -> str:
    """A query that counts and sums up by some columns, and may put its results in order."""
    outputs = ", ".join([*keys, "count(*) AS n", *(f"sum({one}) AS sum_{one}" for one in sums)])
    return QUERY.format(name, outputs, f"{', '.join(keys)} {order}".strip())


def resolved(texts: Iterable[str]) -> tuple[Query, ...]:
    text = STREAM.format(", ".join(f"{name} INT" for name in NAMES[:-1])) + "".join(texts)
    return resolve_app(text, "calibration", lambda uri, options: ()).queries


class Trial:
    """Groups of a query in leaves, segments and windows; files are written into the folder."""

    def __init__(
        self,
        folder: Path,
        query: Query,
        values: Sequence[int] = VALUES,
        relation: Relation | None = None,
        skew: int = 1,
    ) -> None:
        self._folder, self._query, self._values, self._skew = folder, query, values, skew
        self.relation = relation or relation_of(query)
        self.slots = TaskSettings().slots

    @property
    def columns(self) -> int:
        """Columns that differ from group to group: of the key, count(*), and words of states."""
        words = sum(form.words for form in self.relation.shape.forms(self.relation.states).values())
        return len(self.relation.attributes) + 1 + words

    def block(self) -> float:
        """ns of each block of a segment, where it has hardly any groups."""
        full = self.filled(FEW)
        return (middle(lambda: self.written(full, 1 + BLOCKS)[1]) - middle(lambda: self.written(full)[1])) / BLOCKS

    def segmented(self, groups: int) -> float:
        """ns of writing so many groups of a leaf."""
        full = self.filled(groups)
        return middle(lambda: self.written(full)[1])

    def overlapping(self, groups: int) -> float:
        """The same for windows that overlap, as many as a pane is in: each has all of these groups."""
        before = Cut(0, -OVERLAP, 1, 0, self.slots)  # with one more that has none, they have nothing in common
        window = replace(self._query.window, range=OVERLAP * self._query.window.slide)
        return self.merged(groups // OVERLAP, window, before)

    def merged(self, groups: int, window: Window | None = None, cut: Cut | None = None) -> float:
        """ns of merging so many stored groups, of segments that are open."""
        read, source = self.stored(groups), StoredSource(self.relation)
        window, cut = window or self._query.window, cut or Cut(0, 0, 1, 0, self.slots)

        def once() -> int:
            with TaskSegments(self._folder, read) as segments:
                list(segments.blocks(self.relation.name))
                return timed(lambda: merge_windows(window, source, cut, segments, Share()))

        return middle(once)

    def finished(self, groups: int) -> float:
        """ns of making so many groups rows of a result."""
        found = self.windows(self.stored(groups * 4 // 3))  # a third of them are in both segments

        def once() -> int:
            began = thread_time_ns()
            rows = first_rows(self._query, finishing.finish(self._query, found, Bounds()))
            tally([per_window(found.panes, found.count)], rows.windows, Bounds().of)
            return thread_time_ns() - began

        return middle(once) * groups / len(found)

    def stored(self, groups: int) -> list[SegmentRef]:
        return [self.written(self.filled(groups // PARTS, part))[0] for part in range(PARTS)]

    def written(self, full: Leaf, blocks: int = 1) -> tuple[SegmentRef, int]:
        path = self._folder / f"{len(list(self._folder.iterdir()))}.seg"
        dictionaries = {
            name: Dictionary() for name in self.relation.coded_parts
        }  # without strings: all addresses are short
        began = thread_time_ns()
        with write.SegmentWriter(path, self.slots) as writer:
            for groups in itertools.chain(*(full.pieces(dictionaries) for _ in range(blocks))):
                writer.add(self.relation.name, groups, (), self.relation.slot_key)
            writer.end_run(dictionaries)
            return writer.close(), thread_time_ns() - began

    def windows(self, read: list[SegmentRef]) -> Groups:
        cut, source = Cut(0, 0, 1, 0, self.slots), StoredSource(self.relation)
        with TaskSegments(self._folder, read) as segments:
            return merge_windows(self._query.window, source, cut, segments, Share())

    def filled(self, groups: int, part: int = 0) -> Leaf:
        """A leaf with so many groups; those of two parts are half the same."""
        chunk, ranges = chunk_of(self.relation, groups, part, self._values, self._skew)
        full = leaf_of(self.relation, snug(ranges), self.relation.shape, groups)
        assert full.absorb(full.arrivals(chunk, np.arange(groups, dtype=np.int32)))
        return full


class Bounds:
    """Of windows of a second."""

    def of(self, numbers: Array) -> tuple[Array, Array]:
        return numbers, numbers + 1_000_000


def chunk_of(
    relation: Relation, groups: int, part: int = 0, most: Sequence[int] = VALUES, skew: int = 1
) -> tuple[Chunk, Mapping[Component, Range]]:
    """Records of as many keys in any order, and what their components range over."""
    rng = np.random.default_rng(1)
    number = rng.permutation(PARTS * groups)[rng.permutation(groups) + part * groups // PARTS]
    return records_of(relation, number, max(PARTS * groups, *most[1:-1]), most, skew)


def records_of(
    relation: Relation, number: Array, highest: int, most: Sequence[int] = VALUES, skew: int = 1
) -> tuple[Chunk, Mapping[Component, Range]]:
    """Records whose first column is this number, which the others follow from; no column's value is above the highest,
    as keys are packed. With a `skew` low values of the others are more frequent, as in most streams."""

    def column(name: str) -> Array:
        n = NAMES.index(name)
        values: Array = number if not n else number * (MIX * (2 * n + 1) % EVERY) >> SHIFT
        if not n or skew == 1:
            return values % most[n]
        return (most[n] * (values % SPAN / SPAN) ** skew).astype(np.int64)

    named = [part.component for part in relation.parts[1:] if part.component.tag is Tag.VALUE]
    held = {component: column(component.of) for component in named}
    ranges = {part.component: (0, 0) for part in relation.parts} | dict.fromkeys(held, (0, highest))
    words = pack_words(snug(ranges), held, len(number))
    values = {one.name: Values(column(one.name), EVERYTHING) for one in relation.arguments}
    return Chunk(words, values, {}), ranges


def middle(run: Callable[[], int]) -> float:
    """Of several runs, between which others fill the caches, as they do where this is one part of many."""
    other, found = np.zeros(2 * cache_size() // 8), []
    for _ in range(TIMES):
        other += 1.0
        found.append(run())
    return float(median(found))


def timed(run: Callable[[], object]) -> int:
    """Nanoseconds of a call."""
    began = thread_time_ns()
    run()
    return thread_time_ns() - began
