"""A segment: the partial aggregates of one task in one immutable, checksummed, columnar file.

    magic │ run 0: block (relation) … dictionaries │ run 1: … │ index │ tail: size of the index, its checksum, magic

A task that outgrows its memory writes its groups early and starts a new *run*; a run brings its own dictionaries. A
*block* holds one relation's groups ordered by (pane, hash slot): the pane numbers with their first rows, where each
slot begins in each pane (of short panes: the slot of every row), and each column in the fewest bytes that hold its
range. So a reader finds the rows of any panes and slots, and reads only those bytes. Groups of a run differ.

Checksums are per page of the file, so that any byte range can be verified when it is read, and a damaged
file is reported by name and offset.

This module reads segments (and imports no kernels: the driver reads indexes), `write` writes them,
`index` is their index.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

import numpy as np
import xxhash

from penstock.aggregates.base import State
from penstock.errors import StateError, why
from penstock.relations.component import Component, Tag, component_of
from penstock.state.checked import RESTORE
from penstock.state.protocol import SegmentRef
from penstock.state.segments.index import (
    DTYPES,
    FLOATS,
    HEAD,
    INLINE,
    PANES,
    ROWS,
    RUN,
    SHAPE,
    SLOTTED,
    STARTS,
    WHERE,
    BlockShape,
    Index,
    StoredColumn,
)

Array = np.ndarray
MAGIC = b"PENSTK02"
PAGE = 1 << 14
HELD = 64  # files that a task holds open
KEPT = 64  # verified pages that an open segment remembers: small reads mostly stay near each other
FAN = 8  # panes to a node of the next coarser level
LEAST, GREATEST = -(1 << 63), (1 << 63) - 1
TAIL = struct.Struct("<QQ8s")
ALL_ZERO = StoredColumn(0, 0, 0)


def cover(first: int, beyond: int, level: int) -> Iterator[tuple[int, int, int]]:
    """(level, low, high): ranges of nodes, FAN**level panes each, that cover panes [first, beyond), coarsest first.

    >>> list(cover(6, 34, 1)), list(cover(6, 7, 2))
    ([(1, 1, 4), (0, 6, 8), (0, 32, 34)], [(0, 6, 7)])
    """
    if first >= beyond:
        return
    size = FAN**level
    low, high = -(-first // size), beyond // size
    if level == 0:
        yield 0, first, beyond
    elif low >= high:
        yield from cover(first, beyond, level - 1)
    else:
        yield level, low, high
        yield from cover(first, low * size, level - 1)
        yield from cover(high * size, beyond, level - 1)


@dataclass(frozen=True)
class Block:
    """One relation's groups of one run, readable by row range; `records` are its own in the index and those of its
    coarser levels."""

    segment: Segment
    records: tuple[int, ...]

    @cached_property
    def shape(self) -> BlockShape:
        return self.segment.index.shapes[self._head(SHAPE)]

    @property
    def relation(self) -> str:
        return self.shape.relation

    @property
    def run(self) -> int:
        return self._head(RUN)

    @property
    def rows(self) -> int:
        return self._head(ROWS)

    def _head(self, place: int) -> int:
        return int(self.segment.index.records[self.records[0] + place])

    def where(self, name: str) -> StoredColumn:
        """Where a column stands."""
        found = self._found.get(name)
        if found is None:
            place = self.shape.places.get(name)
            missing = place is None and component_of(name).tag is Tag.SIEVE  # it holds nothing back
            found = self._found[name] = ALL_ZERO if missing else self._place(self.shape.places[name])
        return found

    @cached_property
    def _found(self) -> dict[str, StoredColumn]:
        return {}

    def _place(self, place: int) -> StoredColumn:
        at = self.records[0] + HEAD + 5 * place
        return StoredColumn(*self.segment.index.records[at : at + 5].tolist())

    @cached_property
    def panes(self) -> Array:
        return self.segment.integers(self._place(PANES))

    @cached_property
    def starts(self) -> Array:
        """First row of each pane, and the number of rows."""
        return self.segment.integers(self._place(STARTS))

    def row_range(self, first: int, beyond: int) -> tuple[int, int]:
        """Rows of the panes numbered [first, beyond)."""
        # The bounds may lie beyond 64 bits: from the beginning, to the end of time.
        low, high = (np.searchsorted(self.panes, min(max(bound, LEAST), GREATEST)) for bound in (first, beyond))
        if beyond > GREATEST:
            high = np.intp(len(self.panes))
        return int(self.starts[low]), int(self.starts[high])

    def pane_numbers(self, start: int, stop: int) -> Array:
        """The pane of each of the rows [start, stop)."""
        first, last = np.searchsorted(self.starts, [start, stop - 1], "right") - 1
        counts = np.diff(np.clip(self.starts[first : last + 2], start, stop))
        return np.repeat(self.panes[first : last + 1], counts)

    @cached_property
    def levels(self) -> tuple[Block, ...]:
        """This block, and the same groups by FAN, FAN² … panes together."""
        return (self, *(Block(self.segment, (record,)) for record in self.records[1:]))

    @cached_property
    def extent(self) -> tuple[int, int]:
        """Panes [low, high) within which all rows lie: whole nodes of the coarsest level, so that a range which
        holds them all is read from that level alone."""
        size, panes = FAN ** (len(self.records) - 1), self._place(PANES)
        return max(LEAST, panes.base // size * size), min(GREATEST, (panes.high // size + 1) * size)

    def cover(self, first: int, beyond: int) -> list[tuple[Block, int, int]]:
        """Row ranges of this block's levels that together hold the panes [first, beyond) once."""
        low, high = self.extent
        first, beyond = max(first, low), min(beyond, high)
        found = []
        for level, low, high in cover(first, beyond, len(self.levels) - 1):
            block = self.levels[level]
            start, stop = block.row_range(low, high)
            if start < stop:
                found.append((block, start, stop))
        return found

    @property
    def slotted(self) -> bool:
        """Whether the slot of every row is stored, and not where slots begin."""
        return bool(self._head(SLOTTED))

    @cached_property
    def cuts(self) -> Array:
        """Where the rows of a (pane, slot) begin, pane by pane, and the number of rows."""
        stored, slots = self.segment.integers(self._place(WHERE)), self.segment.slots
        if not self.slotted:
            return stored
        cells = np.repeat(np.arange(len(self.panes)) * slots, np.diff(self.starts)) + stored
        return np.concatenate([[0], np.cumsum(np.bincount(cells, minlength=len(self.panes) * slots))])

    def runs(self, begin: int, end: int, low: int, high: int) -> tuple[Array, Array]:
        """(starts, stops) of the rows of slots [low, high) in the panes whose rows are [begin, end)."""
        first, last = np.searchsorted(self.starts, [begin, end])
        at = np.arange(first, last) * self.segment.slots
        return self.cuts[at + low], self.cuts[at + high]

    def spans(self, names: Iterable[str]) -> list[tuple[int, int]]:
        """Least and greatest value of integer columns of the whole block."""
        return [(column.base, column.high) for column in map(self.where, names)]

    def column(self, name: str, start: int, stop: int) -> Array:
        column = self.where(name)
        read = self.segment.stored if column.size == FLOATS else self.segment.integers
        return read(column, start, stop)

    def stored(self, name: str, start: int, stop: int) -> tuple[Array, int]:
        """Integers as they are stored, and what to add to each; no integers where all are the same."""
        column = self.where(name)
        if column.size == 0:
            return np.empty(0, np.uint8), column.base
        return self.segment.stored(column, start, stop), column.base

    @property
    def states(self) -> dict[State, tuple[str, ...]]:
        """Column names of each state's words."""
        return self.shape.state_columns

    def words(self, name: Component) -> int:
        """How many strings a dictionary of this block's run has."""
        return self.segment.index.dictionaries[self.run][name][0].n - 1

    def dictionary(self, name: Component) -> tuple[Array, Array]:
        """(offsets, bytes) of a dictionary of this block's run."""
        offsets, data = self.segment.index.dictionaries[self.run][name]
        return self.segment.integers(offsets), self.segment.stored(data)


class Handles:
    """Files held open between two reads, the newest ones. Whoever has them closes them: a file that was deleted takes
    room as long as somebody holds it."""

    def __init__(self) -> None:
        self._open: dict[Path, BinaryIO] = {}

    def of(self, path: Path) -> int:
        """The descriptor of a file."""
        file = self._open.pop(path, None)
        if file is None:
            file = open(path, "rb", buffering=0)  # noqa: SIM115 - closed below, or by close()
            if len(self._open) >= HELD:
                self._open.pop(next(iter(self._open))).close()
        self._open[path] = file
        return file.fileno()

    def close(self) -> None:
        for file in self._open.values():
            file.close()
        self._open.clear()

    def __del__(self) -> None:
        self.close()


class Segment:
    """A segment opened for reading; what is read is verified page by page.

    Bytes are read, not mapped: mapped pages would count as the task's memory, and a file that shrinks under a
    mapping kills the process.
    """

    def __init__(self, path: Path, reference: SegmentRef | None = None, handles: Handles | None = None) -> None:
        self.path = path
        self.bytes_read = 0
        self._handles = handles
        self._kept: dict[int, bytes] = {}
        try:
            self._size = path.stat().st_size
            self.index = self._read_index(reference)
        except OSError as error:
            raise StateError(f"segment {path} cannot be read: {why(error)}", RESTORE) from error
        self.slots = self.index.slots
        self.blocks = [Block(self, tuple(records)) for records in self.index.blocks()]
        self._of: dict[str, list[Block]] = {}
        for block in self.blocks:
            self._of.setdefault(block.relation, []).append(block)

    def of(self, relation: str) -> list[Block]:
        return self._of.get(relation, [])

    def integers(self, column: StoredColumn, start: int = 0, stop: int | None = None) -> Array:
        """Values [start, stop) of an integer column as int64."""
        stop = column.n if stop is None else stop
        if column.size == INLINE:
            return self.index.numbers[column.at + start : column.at + stop]
        if column.size == 0:
            return np.full(stop - start, column.base, np.int64)
        # Wraps around for ranges beyond 63 bits, as it did when stored.
        values = self.stored(column, start, stop).astype(np.uint64).view(np.int64)
        values += np.int64(column.base)
        return values

    def stored(self, column: StoredColumn, start: int = 0, stop: int | None = None) -> Array:
        """Values [start, stop) of a column as stored."""
        stop = column.n if stop is None else stop
        dtype = DTYPES[column.size]
        if start >= stop:  # no page: an empty one must not be remembered in place of a whole one
            return np.empty(0, dtype)
        begin, end = (column.at + row * dtype.itemsize for row in (start, stop))
        first = begin // PAGE * PAGE
        data = self._pages(first, min(-(-end // PAGE) * PAGE, self._end))
        return np.frombuffer(data, dtype, stop - start, begin - first)

    def _pages(self, first: int, end: int) -> bytes:
        """Verified pages; single ones are remembered for a while."""
        if end - first > PAGE:
            data = self._read(first, end)
            self._verify(first, data)
            return data
        kept = self._kept.pop(first, None)
        if kept is None:
            kept = self._read(first, end)
            self._verify(first, kept)
        self._kept[first] = kept
        if len(self._kept) > KEPT:
            del self._kept[next(iter(self._kept))]
        return kept

    def _read(self, start: int, stop: int) -> bytes:
        try:
            if self._handles is not None:
                data = os.pread(self._handles.of(self.path), stop - start, start)
            else:
                with open(self.path, "rb", buffering=0) as file:
                    data = os.pread(file.fileno(), stop - start, start)
        except OSError as error:
            raise StateError(f"segment {self.path} cannot be read: {why(error)}", RESTORE) from error
        if len(data) != stop - start:
            raise StateError(f"segment {self.path} ends before byte {stop}", RESTORE)
        self.bytes_read += len(data)
        return data

    def _verify(self, first: int, data: bytes) -> None:
        view, number = memoryview(data), first // PAGE
        for at in range(0, len(data), PAGE):
            page = view[at : at + PAGE]
            if xxhash.xxh3_64_intdigest(page) != self.index.pages[number + at // PAGE]:
                begin = first + at
                raise StateError(
                    f"segment {self.path} is damaged between bytes {begin} and {begin + len(page)}", RESTORE
                )

    def _read_index(self, reference: SegmentRef | None) -> Index:
        size = self._size
        if reference is not None and size != reference.bytes:
            raise StateError(f"segment {self.path} has {size} bytes, {reference.bytes} were written", RESTORE)
        tail = self._read(size - TAIL.size, size) if size >= TAIL.size else b""
        length, checksum, magic = TAIL.unpack(tail) if tail else (0, 0, b"")
        self._end = size - TAIL.size - length
        wrong = magic != MAGIC or self._end < 0 or (reference is not None and checksum != reference.checksum)
        data = b"" if wrong else self._read(self._end, size - TAIL.size)
        if wrong or xxhash.xxh3_64_intdigest(data) != checksum:
            raise StateError(f"segment {self.path} is damaged in its index, after byte {max(0, self._end)}", RESTORE)
        return Index(data)
