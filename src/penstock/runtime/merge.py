"""HFTA: merge the blocks of closed windows and finish them. Runs in Spark tasks, one item after the other.

An item is a range of windows and hash slots of one query, small enough for a task's memory (`merge_plan`).
Blocks come from any number of segments, runs, layouts and plans; they meet as canonical components: their
dictionaries are joined (only the strings that the item's rows use), a layout is made that holds all their
ranges, and the exact leaf does the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.faults import reach
from penstock.kernels.dictionary import Dictionary, gather
from penstock.logical.expressions import Column, Prefix
from penstock.logical.query import Query
from penstock.logical.types import Kind
from penstock.runtime.finish import finish
from penstock.runtime.folding import Chunk, Shape, pack_words
from penstock.runtime.leaf import Leaf
from penstock.runtime.lfta import BOUND
from penstock.runtime.merge_plan import MergeItem
from penstock.sharing.layout import Range, lay_out, union
from penstock.sharing.plan import Relation, State, column_of, relation, value_component, window_component
from penstock.state.groups import canonical_hashes, code_base
from penstock.state.segment import Block, Segment

Array = np.ndarray
PIECE = 1 << 16
UNBOUNDED = 1 << 62  # items are cut to fit beforehand
PASS_SHIFT = 40  # hash bits below the slot's that split one slot into passes


@dataclass
class Rows:
    """Some rows of a block: a range, or `index` into it."""

    block: Block
    start: int
    stop: int
    index: Array | None

    def column(self, name: str) -> Array:
        values = self.block.column(name, self.start, self.stop)
        return values if self.index is None else values[self.index]

    def windows(self) -> Array:
        windows, starts = self.block.windows(), self.block.starts()
        numbers = np.repeat(windows, np.diff(starts))[self.start : self.stop]
        return numbers if self.index is None else numbers[self.index]

    def __len__(self) -> int:
        return self.stop - self.start if self.index is None else len(self.index)


class Segments:
    """Segments opened once per task."""

    def __init__(self, folder: Path, references: list[dict[str, Any]]) -> None:
        self._folder, self._references = folder, references
        self._open: dict[str, Segment] = {}

    def blocks(self, query: str) -> Iterator[Block]:
        for reference in self._references:
            path = reference["path"]
            if path not in self._open:
                self._open[path] = Segment(self._folder / path, reference)
            yield from self._open[path].of(query)


def merge_item(query: Query, item: MergeItem, segments: Segments) -> pa.Table:
    """The finished result rows of one item."""
    parts = list(_rows(query, item, segments))
    merge = Merge(query, parts, item.passes)
    for part in parts:
        reach("merge.block")
        merge.absorb(part, item)
    return finish(query, merge.leaf.groups(merge.dictionaries))


def _rows(query: Query, item: MergeItem, segments: Segments) -> Iterator[Rows]:
    """The item's rows, in pieces of bounded size."""
    for block in segments.blocks(query.name):
        begin, end = block.row_range(item.first, item.beyond)
        everything = item.low == 0 and item.high == block.segment.index["slots"]
        for start in range(begin, end, PIECE):
            stop = min(start + PIECE, end)
            index = None
            if not everything:
                slots = block.slots(start, stop)
                index = np.flatnonzero((slots >= item.low) & (slots < item.high))
            rows = Rows(block, start, stop, index)
            if len(rows):
                yield rows


class Merge:
    """One item's leaf and dictionaries."""

    def __init__(self, query: Query, parts: list[Rows], passes: int) -> None:
        self.relation: Relation = relation(query)
        types = {f.name: f.type.kind for f in _columns(query)}
        strings = frozenset(name for name, kind in types.items() if kind is Kind.STRING)
        coded = {p.component for p in self.relation.parts if p.component.startswith("inet6")}
        coded |= {p.component for p in self.relation.parts if p.component in map(value_component, strings)}
        extremes = {value_component(s.column) for s in self.relation.states if s.kind in ("min", "max")}
        self._coded = coded
        self.dictionaries = {
            name: Dictionary() for name in sorted(coded | (extremes & set(map(value_component, strings))))
        }
        self._strings = strings
        self._maps: dict[tuple[int, str], Array] = {}
        self._join_dictionaries(parts)
        shape = Shape(
            frozenset(name for name, kind in types.items() if kind is Kind.DOUBLE), strings,
            frozenset(s.column for part in parts for s in part.block.states() if s.kind == "count"),
            self._wide(parts),
        )  # fmt: skip
        self.layout = lay_out(self._ranges(parts))
        # Room for every row of a pass as a group of its own: mostly no growing, and the item was cut to fit.
        self.leaf = Leaf(self.relation, self.layout, shape, sum(map(len, parts)) // passes + 1)

    def _join_dictionaries(self, parts: list[Rows]) -> None:
        """Give every string that the rows use a code of the merged dictionary."""
        for part in parts:
            for component in self.dictionaries:
                offsets, data = part.block.dictionary(component)
                used = np.zeros(len(offsets) - 1, bool)
                for column in self._code_columns(component, part.block):
                    codes = part.column(column) - (code_base(component) if column == component else 0)
                    used[codes[codes >= 0]] = True
                known = self._maps.setdefault((id(part.block), component), np.full(len(used), -1, np.int64))
                new = np.flatnonzero(used & (known < 0))
                known[new] = self.dictionaries[component].intern(*gather(offsets, data, new))

    def _code_columns(self, component: str, block: Block) -> list[str]:
        """Columns of a block that hold codes of this dictionary: the key, and extremes of the string."""
        keys = [component] if component in self._coded else []
        strings = (state for state in block.states() if state.kind in ("min", "max") and state.column in self._strings)
        return keys + [block.states()[s][0] for s in strings if value_component(s.column) == component]

    def _recode(self, part: Rows, component: str, codes: Array, base: int) -> Array:
        known = self._maps[id(part.block), component]
        shifted = codes - base
        return np.where(shifted >= 0, known[np.maximum(shifted, 0)] if len(known) else -1, -1) + base

    def _ranges(self, parts: list[Rows]) -> dict[str, Range]:
        ranges: dict[str, Range] = {part.component: (0, 0) for part in self.relation.parts}
        ranges = {name: span for name, span in ranges.items() if not name.startswith(("window:", "value:"))}
        for part in parts:
            windows = part.block.windows()
            found = {window_component(self.relation.window): (int(windows[0]), int(windows[-1]))}
            for name in (p.component for p in self.relation.parts[1:]):
                found[name] = part.block.span(name)
            ranges = union(ranges, found)
        for name in self._coded:
            ranges[name] = 0, self.dictionaries[name].count
        for component in (p.component for p in self.relation.parts):
            if component.startswith("inet6"):
                value = value_component(column_of(component))
                ranges[value] = union({value: (0, 0)}, {value: ranges.get(value, (0, 0))})[value]
        return {p.component: ranges.get(p.component, (0, 0)) for p in self.relation.parts}

    def _wide(self, parts: list[Rows]) -> frozenset[str]:
        """Integer sums that two words must hold."""
        bounds: dict[str, int] = {}
        for part in parts:
            for state, columns in part.block.states().items():
                if state.kind != "sum" or part.block.meta["columns"][columns[0]]["kind"] == "f8":
                    continue
                low, high = part.block.span(columns[0])
                bound = BOUND if len(columns) == 2 else len(part) * max(abs(low), abs(high))
                bounds[state.column] = bounds.get(state.column, 0) + bound
        return frozenset(name for name, bound in bounds.items() if bound >= BOUND)

    def absorb(self, part: Rows, item: MergeItem) -> None:
        """Merge the rows of a piece that belong to the item's pass."""
        components = {p.component: part.column(p.component) for p in self.relation.parts[1:]}
        for name in self._coded:
            components[name] = self._recode(part, name, components[name], code_base(name))
        chunk_words = self._words(part, components)
        chunk = self._partials(part, chunk_words)
        rows = np.arange(len(part), dtype=np.int32)
        if item.passes > 1:
            hashes = canonical_hashes(components, self.dictionaries, len(part))
            turns = (hashes >> np.uint64(PASS_SHIFT)) % np.uint64(item.passes)
            rows = np.flatnonzero(turns == item.turn).astype(np.int32)
            chunk = _only(chunk, rows)
        keys = self.leaf.keys(chunk_words, rows)
        self.leaf.absorb(chunk, np.arange(len(rows), dtype=np.int32), keys, UNBOUNDED)

    def _words(self, part: Rows, components: dict[str, Array]) -> Array:
        window = {window_component(self.relation.window): part.windows()}
        return pack_words(self.layout, window | components, len(part))

    def _partials(self, part: Rows, words: Array) -> Chunk:
        partials: dict[State, tuple[Array, ...]] = {}
        for state, columns in part.block.states().items():
            values = tuple(part.column(column) for column in columns)
            if state.kind in ("min", "max") and state.column in self._strings:
                values = (self._recode(part, value_component(state.column), values[0], 0),)
            partials[state] = values
        return Chunk(words, {}, self.dictionaries, part.column("count"), partials)


def _only(chunk: Chunk, rows: Array) -> Chunk:
    """The partial aggregates of these rows."""
    assert chunk.partials is not None
    partials = {state: tuple(word[rows] for word in words) for state, words in chunk.partials.items()}
    return replace(chunk, weights=chunk.weights[rows], partials=partials)


def _columns(query: Query) -> list[Column]:
    """The stream columns that keys and aggregates of a query use, with their types."""
    keys = [key.attribute.column if isinstance(key.attribute, Prefix) else key.attribute for key in query.keys]
    return keys + [a.argument for a in query.aggregates if a.argument is not None]
