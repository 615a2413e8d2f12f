"""The index of a segment: which blocks there are and where their columns stand. Names are JSON, numbers are arrays.

    size of the JSON │ JSON: slots, shapes, dictionaries, sizes of what follows │ records │ numbers │ page checksums

A segment has thousands of columns; as JSON they would take longer to parse than to read. A *shape* is what blocks of a
relation have in common: its columns and states. A block's *record* is `HEAD` integers and five for each column; short
arrays (panes, where slots begin) stand among the *numbers*, so that nobody reads a page for them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from penstock.aggregates.base import State
from penstock.relations.component import Component, component_of

Array = np.ndarray
SHAPE, RUN, ROWS, LEVEL, SLOTTED, HEAD = range(6)  # of a record; SLOTTED: the slot of every row instead of cuts
PANES, STARTS, WHERE, COLUMNS = range(4)  # places among the columns of a record; the named ones come last
FLOATS, INLINE = -8, -1  # in place of the bytes of an integer: floats, and columns among the numbers
DTYPES = {FLOATS: np.dtype("f8")} | {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}  # of columns by size


class StoredColumn(NamedTuple):
    """`n` values from byte `at` on, in `size` bytes each, less the `base`; that is the least, `high` the greatest."""

    at: int
    n: int
    size: int
    base: int = 0
    high: int = 0


Dictionaries = dict[Component, tuple[StoredColumn, StoredColumn]]  # offsets and bytes, by component


@dataclass(frozen=True)
class BlockShape:
    """A relation's columns by name, in the order of their places, and how many words each of its states has."""

    relation: str
    names: tuple[str, ...]
    states: tuple[tuple[State, int], ...]

    @cached_property
    def places(self) -> dict[str, int]:
        return {name: COLUMNS + i for i, name in enumerate(self.names)}

    @cached_property
    def state_columns(self) -> dict[State, tuple[str, ...]]:
        """Column names of each state's words."""
        return {state: state_columns(state, words) for state, words in self.states}


@lru_cache(maxsize=4096)
def state_columns(state: State, words: int) -> tuple[str, ...]:
    """Column names of a state's words."""
    return tuple(f"{state.kind} {state.column} {word}" for word in range(words))


class IndexWriter:
    """Gathers what a segment's writer has written."""

    def __init__(self) -> None:
        self._shapes: dict[BlockShape, int] = {}
        self._records: list[int] = []
        self._numbers: list[int] = []
        self.dictionaries: list[Dictionaries] = []  # a run each

    def add(
        self, shape: BlockShape, rows: int, level: int, slotted: bool, columns: Sequence[StoredColumn | Array]
    ) -> None:
        """A block of the current run; its coarser levels come right after it. Arrays are stored in the index."""
        number = self._shapes.setdefault(shape, len(self._shapes))
        self._records += [number, len(self.dictionaries), rows, level, int(slotted)]
        for column in columns:
            self._records += column if isinstance(column, StoredColumn) else self.inline(column)

    def inline(self, values: Array) -> StoredColumn:
        """A short array, in the index itself."""
        low, high = (int(values.min()), int(values.max())) if len(values) else (0, 0)
        column = StoredColumn(len(self._numbers), len(values), INLINE, low, high)
        self._numbers += values.tolist()
        return column

    def encode(self, slots: int, pages: list[int]) -> bytes:
        names = json.dumps(
            {
                "slots": slots,
                "shapes": [[s.relation, s.names, [[t.kind, t.column, n] for t, n in s.states]] for s in self._shapes],
                "dictionaries": [{name.text: where for name, where in run.items()} for run in self.dictionaries],
                "sizes": [len(self._records), len(self._numbers), len(pages)],
            },
            separators=(",", ":"),
        ).encode()
        names += bytes(-len(names) % 8)
        arrays = (np.array(self._records, "<i8"), np.array(self._numbers, "<i8"), np.array(pages, "<u8"))
        return len(names).to_bytes(8, "little") + names + b"".join(array.tobytes() for array in arrays)


class Index:
    """The index of a segment, read."""

    def __init__(self, data: bytes) -> None:
        end = 8 + int.from_bytes(data[:8], "little")
        found = json.loads(data[8:end].rstrip(b"\0"))
        self.slots: int = found["slots"]
        self.shapes = [
            BlockShape(relation, tuple(names), tuple((State(kind, column), n) for kind, column, n in states))
            for relation, names, states in found["shapes"]
        ]
        self.dictionaries: list[Dictionaries] = [
            {
                component_of(name): (StoredColumn(*offsets), StoredColumn(*bytes_))
                for name, (offsets, bytes_) in run.items()
            }
            for run in found["dictionaries"]
        ]
        records, numbers, pages = found["sizes"]
        self.records = np.frombuffer(data, "<i8", records, end)
        self.numbers = np.frombuffer(data, "<i8", numbers, end + 8 * records)
        self.pages = np.frombuffer(data, "<u8", pages, end + 8 * (records + numbers))

    def blocks(self) -> list[list[int]]:
        """Where the record of each block begins, and those of its coarser levels."""
        found: list[list[int]] = []
        at = 0
        while at < len(self.records):
            if self.records[at + LEVEL] == 0:
                found.append([])
            found[-1].append(at)
            at += HEAD + 5 * (COLUMNS + len(self.shapes[self.records[at + SHAPE]].names))
        return found
