"""Merge partial aggregates into exact groups: the machinery of closing windows, compaction and coarser panes.

Rows come from blocks of any number of segments, runs, layouts and plans, or from groups in memory; they meet as
canonical components. Their dictionaries are joined (only the strings that the rows use), a layout is made that
holds all their ranges, and the exact leaf does the rest. Every row says which window (or pane) it goes to.

    pieces (rows of blocks, a window each) ──► Merge ──► groups ──► runtime.finish, or a segment again
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from penstock.faults import reach
from penstock.kernels.dictionary import Dictionary, gather
from penstock.logical.types import Kind
from penstock.runtime.folding import BOUND, IPV6, Chunk, Shape, pack_words
from penstock.runtime.leaf import Leaf
from penstock.sharing.layout import Range, lay_out, union
from penstock.sharing.plan import (
    Relation,
    State,
    column_of,
    dictionary_component,
    pane_component,
    value_component,
)
from penstock.state.groups import Groups, canonical_hashes, code_base
from penstock.state.segment import Block, state_columns

Array = np.ndarray
UNBOUNDED = 1 << 62  # items are cut to fit beforehand
PASS_SHIFT = 40  # hash bits below the slot's that split one slot into passes


class Rows(Protocol):
    """Partial aggregates in columns: rows of a block, or groups in memory."""

    def __len__(self) -> int: ...

    @property
    def origin(self) -> int:
        """The same for all rows whose codes are of the same dictionaries."""
        ...

    def column(self, name: str) -> Array: ...

    def span(self, name: str) -> Range: ...

    def states(self) -> dict[State, list[str]]: ...

    def dictionary(self, component: str) -> tuple[Array, Array]: ...


@dataclass(frozen=True)
class BlockRows:
    """Rows [start, stop) of a block; read when asked for, and not kept."""

    block: Block
    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start

    @property
    def origin(self) -> int:
        return id(self.block)

    def column(self, name: str) -> Array:
        return self.block.column(name, self.start, self.stop)

    def span(self, name: str) -> Range:
        return self.block.span(name)

    def states(self) -> dict[State, list[str]]:
        return self.block.states()

    def dictionary(self, component: str) -> tuple[Array, Array]:
        return self.block.dictionary(component)


@dataclass(frozen=True)
class GroupRows:
    """Groups in memory."""

    groups: Groups

    def __len__(self) -> int:
        return len(self.groups)

    @property
    def origin(self) -> int:
        return id(self.groups)

    def column(self, name: str) -> Array:
        if name == "count":
            return self.groups.count
        if name in self.groups.components:
            return self.groups.components[name]
        for state, names in self.states().items():
            if name in names:
                return self.groups.states[state][names.index(name)]
        raise KeyError(name)

    def span(self, name: str) -> Range:
        values = self.column(name)
        return (int(values.min()), int(values.max())) if len(values) else (0, 0)

    def states(self) -> dict[State, list[str]]:
        return {state: state_columns(state, len(words)) for state, words in self.groups.states.items()}

    def dictionary(self, component: str) -> tuple[Array, Array]:
        words = self.groups.dictionaries[component]
        return words.offsets, words.data


@dataclass(frozen=True)
class Piece:
    """Rows and the window (or pane) that each goes to; `index` chooses and repeats rows (None: all, once)."""

    rows: Rows
    windows: Array
    index: Array | None = None

    def __len__(self) -> int:
        return len(self.windows)

    def column(self, name: str) -> Array:
        values = self.rows.column(name)
        return values if self.index is None else values[self.index]


@dataclass(frozen=True)
class Share:
    """One of several passes over the same rows: those whose finer hash bits give `turn`."""

    turn: int = 0
    passes: int = 1


def merge(relation: Relation, pieces: Sequence[Piece], share: Share | None = None) -> Groups:
    """The exact groups of these pieces (of one pass), with a dictionary of their own."""
    merging = Merge(relation, pieces, share or Share())
    for piece in pieces:
        reach("merge.block")
        merging.absorb(piece)
    return merging.leaf.groups(merging.dictionaries)


def regroup(relation: Relation, groups: Groups, panes: Array) -> Groups:
    """The same aggregates by other panes; codes and dictionaries stay as they are."""
    piece = Piece(GroupRows(groups), panes)
    merging = Merge(relation, [piece], Share(), groups.dictionaries)
    merging.absorb(piece)
    return merging.leaf.groups(groups.dictionaries)


class Merge:
    """One merge's leaf and dictionaries; with dictionaries given, all codes are theirs already."""

    def __init__(
        self,
        relation: Relation,
        pieces: Sequence[Piece],
        share: Share,
        given: Mapping[str, Dictionary] | None = None,
    ) -> None:
        self.relation, self._share = relation, share
        types = relation.types
        shape = Shape.of(types)
        parts = {part.component for part in relation.parts}
        self._coded = {name for name in parts if name.startswith("inet6")}
        self._coded |= parts & {value_component(name) for name in shape.strings}
        self._extremes = {
            state: dictionary_component(state.column, types[state.column].kind)
            for state in relation.states
            if state.kind in ("min", "max") and shape.coded(state.column)
        }
        self._recoded = given is None
        names = sorted(self._coded | set(self._extremes.values()))
        self.dictionaries: Mapping[str, Dictionary] = {name: Dictionary() for name in names} if given is None else given
        self._addresses = {name for name in types if types[name].kind is Kind.INET}
        self._maps: dict[tuple[int, str], Array] = {}
        if self._recoded:
            for piece in pieces:
                self._join_dictionaries(piece)
        counted = frozenset(s.column for piece in pieces for s in piece.rows.states() if s.kind == "count")
        self.layout = lay_out(self._ranges(pieces))
        # Room for every row of a pass as a group of its own: mostly no growing, and the item was cut to fit.
        rows = sum(map(len, pieces)) // share.passes + 1
        self.leaf = Leaf(relation, self.layout, replace(shape, nullable=counted, wide=self._wide(pieces)), rows)

    def _join_dictionaries(self, piece: Piece) -> None:
        """Give every string that the rows use a code of the merged dictionary."""
        for component, dictionary in self.dictionaries.items():
            offsets, data = piece.rows.dictionary(component)
            used = np.zeros(len(offsets) - 1, bool)
            for column, base in self._code_columns(component, piece.rows):
                codes = piece.column(column) - base
                used[codes[codes >= 0]] = True
            known = self._maps.setdefault((piece.rows.origin, component), np.full(len(used), -1, np.int64))
            new = np.flatnonzero(used & (known < 0))
            known[new] = dictionary.intern(*gather(offsets, data, new))

    def _code_columns(self, component: str, rows: Rows) -> list[tuple[str, int]]:
        """Columns that hold codes of this dictionary, with the value of code 0: the key, and extremes."""
        keys = [(component, code_base(component))] if component in self._coded else []
        names = rows.states()
        return keys + [
            (names[state][0], self._extreme_base(state))
            for state, found in self._extremes.items()
            if found == component and state in names
        ]

    def _extreme_base(self, state: State) -> int:
        return IPV6 if state.column in self._addresses else 0

    def _recode(self, rows: Rows, component: str, codes: Array, base: int) -> Array:
        """Codes of the merged dictionary; what is below the base is none and stays."""
        if not self._recoded:
            return codes
        known = self._maps[rows.origin, component]
        shifted = codes - base
        return np.where(shifted >= 0, (known[np.maximum(shifted, 0)] if len(known) else -1) + base, codes)

    def _ranges(self, pieces: Sequence[Piece]) -> dict[str, Range]:
        parts = [part.component for part in self.relation.parts]
        pane = pane_component(self.relation.window.panes)
        ranges: dict[str, Range] = {}
        for piece in pieces:
            found = {name: piece.rows.span(name) for name in parts if name != pane and name not in self._coded}
            if len(piece):
                found[pane] = int(piece.windows.min()), int(piece.windows.max())
            ranges = union(ranges, found)
        for name in self._coded:
            ranges[name] = 0, self.dictionaries[name].count
        for component in parts:
            # Prefixes mask an address's own bits: its field starts at zero.
            value = value_component(column_of(component))
            if component.startswith("inet6") and value in ranges:
                ranges[value] = min(0, ranges[value][0]), ranges[value][1]
        return {name: ranges.get(name, (0, 0)) for name in parts}

    def _wide(self, pieces: Sequence[Piece]) -> frozenset[str]:
        """Integer sums that two words must hold."""
        bounds: dict[str, int] = {}
        floats = self._floats()
        for piece in pieces:
            for state, columns in piece.rows.states().items():
                if state.kind != "sum" or state.column in floats:
                    continue
                low, high = piece.rows.span(columns[0])
                bound = BOUND if len(columns) == 2 else len(piece) * max(abs(low), abs(high))
                bounds[state.column] = bounds.get(state.column, 0) + bound
        return frozenset(name for name, bound in bounds.items() if bound >= BOUND)

    def _floats(self) -> frozenset[str]:
        return Shape.of(self.relation.types).floats

    def absorb(self, piece: Piece) -> None:
        """Merge the rows of a piece that belong to the pass."""
        components = {p.component: piece.column(p.component) for p in self.relation.parts[1:]}
        for name in self._coded:
            components[name] = self._recode(piece.rows, name, components[name], code_base(name))
        rows = np.arange(len(piece), dtype=np.int32)
        words = self._words(piece, components)
        chunk = self._partials(piece, words)
        if self._share.passes > 1:
            hashes = canonical_hashes(components, self.dictionaries, len(piece))
            turns = (hashes >> np.uint64(PASS_SHIFT)) % np.uint64(self._share.passes)
            rows = np.flatnonzero(turns == self._share.turn).astype(np.int32)
            chunk = _only(chunk, rows)
        keys = self.leaf.keys(words, rows)
        self.leaf.absorb(chunk, np.arange(len(rows), dtype=np.int32), keys, UNBOUNDED)

    def _words(self, piece: Piece, components: dict[str, Array]) -> Array:
        pane = {pane_component(self.relation.window.panes): piece.windows}
        return pack_words(self.layout, pane | components, len(piece))

    def _partials(self, piece: Piece, words: Array) -> Chunk:
        partials: dict[State, tuple[Array, ...]] = {}
        for state, columns in piece.rows.states().items():
            values = tuple(piece.column(column) for column in columns)
            if state in self._extremes:
                values = (self._recode(piece.rows, self._extremes[state], values[0], self._extreme_base(state)),)
            partials[state] = values
        return Chunk(words, {}, self.dictionaries, piece.column("count"), partials)


def _only(chunk: Chunk, rows: Array) -> Chunk:
    """The partial aggregates of these rows."""
    assert chunk.partials is not None
    partials = {state: tuple(word[rows] for word in words) for state, words in chunk.partials.items()}
    return replace(chunk, weights=chunk.weights[rows], partials=partials)
