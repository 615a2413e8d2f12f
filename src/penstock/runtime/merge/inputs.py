"""What a merge is made of: rows of blocks or of groups in memory, and the window (or pane) that each goes to.

Between `runtime.merge.windows`, which says which rows, and `runtime.merge.merge`, which asks for their columns.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from penstock.aggregates.base import State
from penstock.aggregates.count import RECORDS
from penstock.relations.component import Component, Tag, component_of
from penstock.relations.layout import Range
from penstock.state.segments.groups import Groups
from penstock.state.segments.index import state_columns
from penstock.state.segments.read import Block

Array = np.ndarray


Stored = tuple[Array, int]  # integers less a base, in as few bytes as they need; none where all are the base


class PartialRows(Protocol):
    """Partial aggregates in columns: rows of a block, or groups in memory."""

    def __len__(self) -> int: ...

    @property
    def run(self) -> Hashable:
        """The same for all rows whose codes are of the same dictionaries."""
        ...

    def column(self, name: str) -> Array: ...

    def stored(self, name: str) -> Stored: ...

    def spans(self, names: Sequence[str]) -> list[Range]:
        """Least and greatest value of these columns of integers, or something beyond."""
        ...

    @property
    def states(self) -> Mapping[State, Sequence[str]]:
        """The columns of each state that is stored."""
        ...

    def words(self, component: Component) -> int:
        """How many strings the dictionary has."""
        ...

    def dictionary(self, component: Component) -> tuple[Array, Array]: ...


@dataclass(frozen=True)
class BlockRows:
    """Rows [start, stop) of a block; read when asked for, and not kept."""

    block: Block
    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start

    @cached_property
    def run(self) -> Hashable:
        return id(self.block.segment), self.block.run

    def column(self, name: str) -> Array:
        return self.block.column(name, self.start, self.stop)

    def stored(self, name: str) -> Stored:
        return self.block.stored(name, self.start, self.stop)

    def spans(self, names: Sequence[str]) -> list[Range]:
        return self.block.spans(names)

    @cached_property
    def states(self) -> Mapping[State, Sequence[str]]:
        return self.block.states

    def words(self, component: Component) -> int:
        return self.block.words(component)

    def dictionary(self, component: Component) -> tuple[Array, Array]:
        return self.block.dictionary(component)


@dataclass(frozen=True)
class GroupRows:
    """Groups in memory."""

    groups: Groups

    def __len__(self) -> int:
        return len(self.groups)

    @property
    def run(self) -> Hashable:
        return id(self.groups)

    def column(self, name: str) -> Array:
        if name == RECORDS:
            return self.groups.count
        for state, names in self.states.items():
            if name in names:
                return self.groups.states[state][names.index(name)]
        component = component_of(name)
        if component.tag is Tag.SIEVE and component not in self.groups.components:  # it holds nothing back
            return np.zeros(len(self.groups), np.int64)
        return self.groups.components[component]

    def stored(self, name: str) -> Stored:
        return self.column(name).view(np.uint64), 0

    def spans(self, names: Sequence[str]) -> list[Range]:
        columns = (self.column(name) for name in names)
        return [(int(values.min()), int(values.max())) if len(values) else (0, 0) for values in columns]

    @cached_property
    def states(self) -> Mapping[State, Sequence[str]]:
        return {state: state_columns(state, len(words)) for state, words in self.groups.states.items()}

    def words(self, component: Component) -> int:
        return self.groups.dictionaries[component].count

    def dictionary(self, component: Component) -> tuple[Array, Array]:
        words = self.groups.dictionaries[component]
        return words.offsets, words.data


@dataclass(frozen=True)
class RenamedRows:
    """The same rows with components called otherwise: `names` has what they are called there, by what they are called
    here. They have no states."""

    rows: PartialRows
    names: Mapping[Component, Component]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def run(self) -> Hashable:
        return self.rows.run

    def column(self, name: str) -> Array:
        return self.rows.column(self._there(name))

    def stored(self, name: str) -> Stored:
        return self.rows.stored(self._there(name))

    def spans(self, names: Sequence[str]) -> list[Range]:
        return self.rows.spans([self._there(name) for name in names])

    @property
    def states(self) -> Mapping[State, Sequence[str]]:
        return {}

    def words(self, component: Component) -> int:
        return self.rows.words(self.names[component])

    def dictionary(self, component: Component) -> tuple[Array, Array]:
        return self.rows.dictionary(self.names[component])

    def _there(self, name: str) -> str:
        return self.names[component_of(name)].text


@dataclass(frozen=True)
class Cells:
    """Rows that stand by window and slot and differ in window or key: where the rows of each (window, slot) begin."""

    windows: Array  # ascending
    slots: int
    starts: Array  # windows times slots, and the number of rows

    @property
    def counts(self) -> Array:
        """Rows by window and slot."""
        counts: Array = np.diff(self.starts).reshape(len(self.windows), self.slots)
        return counts


@dataclass(frozen=True)
class Piece:
    """Rows and where they go: the window (or pane) of each, or cells; `index` chooses and repeats rows (None: all)."""

    rows: PartialRows
    where: Array | Cells
    index: Array | None = None

    def __len__(self) -> int:
        return int(self.where.starts[-1]) if isinstance(self.where, Cells) else len(self.where)

    @property
    def windows(self) -> Array:
        """The window of each row."""
        if isinstance(self.where, Cells):
            return np.repeat(self.where.windows, self.where.counts.sum(1))
        return self.where

    @property
    def span(self) -> Range:
        """The first and the last window."""
        numbers = self.where.windows if isinstance(self.where, Cells) else self.where
        return int(numbers.min()), int(numbers.max())

    def column(self, name: str) -> Array:
        values = self.rows.column(name)
        return values if self.index is None else values[self.index]

    def stored(self, name: str) -> Stored:
        """A column of integers as it is stored."""
        values, base = self.rows.stored(name)
        return (values if self.index is None or not len(values) else values[self.index]), base

    def only(self, rows: Array) -> Piece:
        """Some of these rows."""
        return Piece(self.rows, self.windows[rows], rows if self.index is None else self.index[rows])


def cells_of(block: Block, start: int, stop: int, index: Array | None) -> Cells:
    """The cells of some rows of a block: of all in [start, stop), or of those at `index` (ascending) from start on."""
    first, last = np.searchsorted(block.starts, [start, stop - 1], "right") - 1
    slots = block.segment.slots
    cuts = np.clip(block.cuts[first * slots : (last + 1) * slots + 1], start, stop) - start
    return Cells(block.panes[first : last + 1], slots, cuts if index is None else np.searchsorted(index, cuts))
