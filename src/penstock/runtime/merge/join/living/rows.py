"""The rows of a side for all instants of an item, each read once: a row *lives* at the instants whose windows hold its
pane.

    stored panes ──► rows as they stand, with their lives ──► pairs (`folding`)

Rows are not merged: a group may have several, of several panes and segments. Panes that live at all instants of the
item are read by their coarse levels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from penstock.aggregates.base import State
from penstock.aggregates.count import RECORDS
from penstock.logical.query import Attribute
from penstock.logical.window import Window
from penstock.relations.relation import attribute_parts
from penstock.runtime.merge.inputs import BlockRows, Piece
from penstock.runtime.merge.items import Cut
from penstock.runtime.merge.join.reading import SideReading
from penstock.runtime.merge.windows import TaskSegments, chosen_rows, pane_span
from penstock.state.segments.read import Block

Array = np.ndarray


@dataclass(frozen=True)
class Lives:
    """Classes of rows that live at the same instants: the first and the last of each, counted from the item's first."""

    born: Array
    last: Array

    def __len__(self) -> int:
        return len(self.born)

    def at(self, instant: int) -> Array:
        """Which of them live then."""
        return np.flatnonzero((self.born <= instant) & (self.last >= instant))

    @property
    def single(self) -> bool:
        """Whether each lives at one instant alone."""
        return bool((self.born == self.last).all())


@dataclass(frozen=True)
class LivingRows:
    """The rows of a side whose key is not NULL. `where` of the pieces is the life of each row."""

    reading: SideReading
    lives: Lives
    pieces: tuple[Piece, ...]

    @property
    def alias(self) -> str:
        return self.reading.side.alias

    @cached_property
    def edges(self) -> Array:
        return np.cumsum([0, *(len(piece) for piece in self.pieces)])

    def __len__(self) -> int:
        return int(self.edges[-1])

    @cached_property
    def of(self) -> Array:
        """The life of each row."""
        return np.concatenate([piece.windows for piece in self.pieces] or [np.empty(0, np.int64)])

    @cached_property
    def count(self) -> Array:
        counts = np.empty(len(self), np.int64)
        self._gather([RECORDS] * len(self.pieces), counts)
        return counts

    def values(self, states: Sequence[State]) -> Array | None:
        """[column, row]: count(*), and states of one word; None: some row has more words. A state that was left out
        is count(*)."""
        found = [[piece.rows.states.get(state, (RECORDS,)) for piece in self.pieces] for state in states]
        if any(len(names) != 1 for each in found for names in each):
            return None
        made = np.empty((1 + len(states), len(self)), np.int64)
        made[0] = self.count
        for names, out in zip(found, made[1:], strict=True):
            self._gather([name for (name,) in names], out)
        return made

    def _gather(self, names: Sequence[str], out: Array) -> None:
        """A column of whole numbers, of each row: what it is called in each piece."""
        for piece, name, start, stop in zip(self.pieces, names, self.edges[:-1], self.edges[1:], strict=True):
            values, base = piece.stored(name)
            if len(values):
                out[start:stop] = values.view(np.int64) if values.dtype == np.uint64 else values
                out[start:stop] += base
            else:
                out[start:stop] = base


def living_rows(one: SideReading, shift: int, cut: Cut, segments: TaskSegments, sliced: bool) -> LivingRows:
    """The rows of a side that live at some instant of a cut; its windows have the numbers of instants plus a shift.
    `sliced`: only those of the cut's slice."""
    window, many = one.side.window, cut.beyond - cut.first
    spans = [
        Span(level, begin, end, _lives_of(window, level, begin, end, cut, shift) if panes else many - 1)
        for source in one.sources
        for block in segments.blocks(source.relation.name, source.storages)
        for level, begin, end, panes in _stretches(window, block, cut, shift)
    ]
    found = np.unique(np.concatenate([span.classes for span in spans])) if spans else np.empty(0, np.int64)
    found = found[found >= 0]
    numbers = np.full(many * many + 1, -1, np.int64)  # the last is of rows that live at none
    numbers[found] = np.arange(len(found))
    pieces = [piece for span in spans for piece in span.pieces(numbers, cut, one)]
    if sliced:
        pieces = [piece.only(np.arange(cut.slice, len(piece), cut.slices)) for piece in pieces]
    return LivingRows(one, Lives(found // many, found % many), tuple(pieces))


@dataclass(frozen=True)
class Span:
    """Rows [begin, end) of a block; `lives` of each of its panes, or of all of them: born · instants + last, or -1."""

    block: Block
    begin: int
    end: int
    lives: Array | int

    @property
    def classes(self) -> Array:
        return np.atleast_1d(self.lives)

    def pieces(self, numbers: Array, cut: Cut, one: SideReading) -> Iterator[Piece]:
        for start, stop, index in chosen_rows(self.block, self.begin, self.end, cut, 1 << 62):
            of = numbers[self._of_rows(start, stop)]
            if index is not None:
                of = of[index]
            rows = BlockRows(self.block, start, stop)
            kept = _joinable(Piece(rows, of, index), one)
            if len(kept):
                yield kept

    def _of_rows(self, start: int, stop: int) -> Array:
        if not isinstance(self.lives, np.ndarray):
            return np.full(stop - start, self.lives)
        first = int(np.searchsorted(self.block.starts, self.begin, "right")) - 1
        low, high = np.searchsorted(self.block.starts, [start, stop - 1], "right") - 1
        counts = np.diff(np.clip(self.block.starts[low : high + 2], start, stop))
        return np.repeat(self.lives[low - first : high + 1 - first], counts)


def _stretches(window: Window, block: Block, cut: Cut, shift: int) -> Iterator[tuple[Block, int, int, bool]]:
    """(block or level, rows, whether by pane) that the instants of a cut hold; those that all of them hold need no
    panes, and are read by coarse levels where there are some."""
    first, last = cut.first + shift, cut.beyond - 1 + shift
    low, high = pane_span(window, first)[0], pane_span(window, last)[1]
    core = pane_span(window, last)[0], pane_span(window, first)[1]
    if len(block.levels) == 1 or core[0] >= core[1]:
        ranges = [(low, high)]
    else:
        ranges = [(low, core[0]), (core[1], high)]
        yield from ((level, begin, end, False) for level, begin, end in block.cover(*core))
    for a, b in ranges:
        begin, end = block.row_range(a, b) if a < b else (0, 0)
        if begin < end:
            yield block, begin, end, True


def _lives_of(window: Window, block: Block, begin: int, end: int, cut: Cut, shift: int) -> Array:
    """The life of each pane of some rows, which are whole panes."""
    a, b = np.searchsorted(block.starts, [begin, end])
    panes, many = block.panes[a:b], cut.beyond - cut.first
    born = np.maximum(window.first_window(panes) - shift - cut.first, 0)
    last = np.full(len(panes), many - 1)
    if not window.landmark:
        last = np.minimum(window.last_window(panes) - shift - cut.first, last)
    lives: Array = np.where(born <= last, born * many + last, -1)
    return lives


def _joinable(piece: Piece, one: SideReading) -> Piece:
    """Rows that live, without NULLs in the key, which equal nothing."""
    gone = piece.windows < 0
    some = bool(gone.any())
    for attribute in one.side.key:
        flag = _null_flag(attribute)
        if piece.rows.spans([flag])[0] != (0, 0):
            gone |= piece.column(flag) != 0
            some = True
    return piece.only(np.flatnonzero(~gone)) if some else piece


def _null_flag(attribute: Attribute) -> str:
    return attribute_parts(attribute)[-1].component.text
