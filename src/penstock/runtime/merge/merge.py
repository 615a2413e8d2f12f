"""Merge partial aggregates into exact groups: the machinery of closing windows, compaction and coarser panes.

Rows come from blocks of any number of segments, runs, layouts and plans, or from groups in memory; they meet as
canonical components. Their dictionaries are joined (only the strings that the rows use), their keys packed as snugly as
their ranges allow, and their groups numbered cell by cell (`kernels.tables.merge`). Then each state is folded by those
numbers, a column at a time.

    pieces (rows of blocks, a window each) ──► Merge ──► groups ──► runtime.finish, or a segment again
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np

from penstock.faults import reach
from penstock.kernels.dictionary import Dictionary, hash_strings
from penstock.kernels.tables import merge as kernels
from penstock.kernels.tables.pack import all_valid, pack_component
from penstock.logical.types import Kind
from penstock.relations.component import (
    Component,
    Tag,
    dictionary_component,
    pane_component,
    value_component,
)
from penstock.relations.layout import WORD, Layout, Place, Range, union
from penstock.relations.relation import Relation, State
from penstock.runtime.merge.inputs import Cells, GroupRows, Piece, Stored
from penstock.runtime.tables.accumulators import BOUND, IPV6, Chunk, Shape, fold_chunk
from penstock.runtime.tables.accumulators import Rows as Numbers
from penstock.state.segments.groups import Groups, blank_nulls, canonical_hashes
from penstock.state.segments.vocabulary import Vocabulary, compacted

Array = np.ndarray
PASS_SHIFT = 40  # hash bits below the slot's that split one slot into passes
LEAST_IN_CELL = 32  # rows: with fewer on average, the cells cost more than they save


@dataclass(frozen=True)
class Share:
    """One of several passes over the same rows: those whose finer hash bits give `turn`."""

    turn: int = 0
    passes: int = 1


def merge(
    relation: Relation, pieces: Sequence[Piece], share: Share | None = None, vocabulary: Vocabulary | None = None
) -> Groups:
    """The exact groups of these pieces (of one pass), with a dictionary of their own."""
    if share is not None and share.passes > 1:
        pieces = [_of_pass(relation, piece, share) for piece in pieces]
    known = Vocabulary() if vocabulary is None else vocabulary
    known.trim()
    return Merge(relation, [piece for piece in pieces if len(piece)], known).groups()


def regroup(relation: Relation, groups: Groups, panes: Array) -> Groups:
    """The same aggregates by other panes; codes and dictionaries stay as they are."""
    return Merge(relation, [Piece(GroupRows(groups), panes)], groups.dictionaries).groups()


def snug(ranges: Mapping[Component, Range]) -> Layout:
    """Fields as wide as the ranges and no wider, the widest first, each into the first word with room."""
    used, places = [0], {}
    bits = {name: (high - low).bit_length() for name, (low, high) in ranges.items()}
    for name in sorted(ranges, key=lambda name: (-bits[name], name)):
        word = next((w for w, taken in enumerate(used) if taken + bits[name] <= WORD), len(used))
        if word == len(used):
            used.append(0)
        places[name] = Place(word, used[word], bits[name], ranges[name][0])
        used[word] += bits[name]
    return Layout(places, len(used))


class Merge:
    """One merge. Codes of its pieces become those of a vocabulary; with dictionaries given, they are theirs already."""

    def __init__(
        self, relation: Relation, pieces: Sequence[Piece], known: Vocabulary | Mapping[Component, Dictionary]
    ) -> None:
        self._relation, self._pieces = relation, pieces
        types = relation.types
        shape = Shape.of(types)
        self._coded = coded_parts(relation)
        self._extremes = {
            state: dictionary_component(state.column, types[state.column].kind)
            for state in relation.states
            if state.kind in ("min", "max") and shape.coded(state.column)
        }
        self._addresses = {name for name in types if types[name].kind is Kind.INET}
        names = sorted({*self._coded, *self._extremes.values()})
        if isinstance(known, Vocabulary):
            self._joined = True
            self._recoded = [self._join_dictionaries(piece, known, names) for piece in pieces]
            for passing in {piece.rows.run for piece in pieces if isinstance(piece.rows, GroupRows)}:
                known.forget(passing)
            self._dictionaries = {name: known.dictionary(name) for name in names}
        else:
            self._joined = False
            self._recoded = [{} for _ in pieces]
            self._dictionaries = {name: known[name] for name in names if name in known}
        counted = frozenset(s.column for piece in pieces for s in piece.rows.states() if s.kind == "count")
        self._shape = replace(shape, nullable=counted, wide=self._wide(shape))

    # -- dictionaries

    def _join_dictionaries(self, piece: Piece, known: Vocabulary, names: Iterable[Component]) -> dict[str, Array]:
        """The columns of codes, in codes of the vocabulary."""
        rows, recoded = piece.rows, {}
        for component in names:
            words = partial(rows.dictionary, component)
            for column, base in self._code_columns(component, rows.states()):
                codes, size = piece.column(column), rows.words(component)
                recoded[column] = known.recoded(rows.run, component, size, words, codes, base)
        return recoded

    def _code_columns(self, component: Component, states: Mapping[State, list[str]]) -> list[tuple[str, int]]:
        """Columns that hold codes of this dictionary, with the value of code 0: the key, and extremes."""
        keys = [(component.text, component.code_base)] if component in self._coded else []
        return keys + [
            (states[state][0], self._extreme_base(state))
            for state, found in self._extremes.items()
            if found == component and state in states
        ]

    def _extreme_base(self, state: State) -> int:
        return IPV6 if state.column in self._addresses else 0

    def _with_own_words(self, groups: Groups) -> Groups:
        """The same groups with dictionaries of only the strings that they use."""
        dictionaries, components, states = {}, dict(groups.components), dict(groups.states)
        for name, dictionary in groups.dictionaries.items():
            keys = [(components[name], name.code_base)] if name in self._coded else []
            extremes = [state for state, found in self._extremes.items() if found == name and state in states]
            columns = keys + [(states[state][0], self._extreme_base(state)) for state in extremes]
            dictionaries[name], recoded = compacted(dictionary, columns)
            if keys:
                components[name] = recoded[0]
            for state, codes in zip(extremes, recoded[len(keys) :], strict=True):
                states[state] = (codes,)
        return replace(groups, components=components, dictionaries=dictionaries, states=states)

    def _column(self, number: int, name: str) -> Array:
        """A column of a piece, in codes of the merged dictionaries."""
        recoded = self._recoded[number]
        return recoded[name] if name in recoded else self._pieces[number].column(name)

    def _stored(self, number: int, name: str) -> Stored:
        """The same as it is stored."""
        recoded = self._recoded[number]
        return (recoded[name].view(np.uint64), 0) if name in recoded else self._pieces[number].stored(name)

    # -- groups

    def groups(self) -> Groups:
        """All groups, by cell where there are cells."""
        edges = np.cumsum([0, *map(len, self._pieces)])
        cells = self._cells(int(edges[-1]))
        layout = snug(self._ranges(cells is None))
        keys = np.zeros((layout.words, int(edges[-1])), np.uint64)
        for number, start in enumerate(edges[:-1]):
            reach("merge.block")
            self._pack(number, layout, keys[:, start : edges[number + 1]])
        found, at, ends = kernels.numbered(keys, self._starts(cells, edges), self._runs())
        components = {name: _component(found, place) for name, place in layout.places.items()}
        blank_nulls(components, self._shape.strings)
        if cells is None:
            panes = components.pop(self._pane)
        else:
            panes = np.repeat(cells, np.diff(ends[self._slots - 1 :: self._slots], prepend=0))
        keyed = {part.component: components[part.component] for part in self._relation.parts[1:]}
        named = sorted(self._dictionaries.keys() & {*self._extremes.values(), *keyed})
        counts, states = self._folded([at[a:b] for a, b in pairwise(edges)], found.shape[1])
        made = Groups(panes, keyed, {name: self._dictionaries[name] for name in named}, counts, states)
        return self._with_own_words(made) if self._joined else made

    @property
    def _pane(self) -> Component:
        return pane_component(self._relation.window.panes)

    @property
    def _slots(self) -> int:
        return next(piece.where.slots for piece in self._pieces if isinstance(piece.where, Cells))

    def _cells(self, rows: int) -> Array | None:
        """The windows of all pieces, if their rows can be grouped cell by cell and that pays."""
        places = [piece.where for piece in self._pieces if isinstance(piece.where, Cells)]
        if not places or len(places) < len(self._pieces):
            return None
        windows = np.unique(np.concatenate([place.windows for place in places]))
        return windows if len(windows) * self._slots * LEAST_IN_CELL <= rows else None

    def _starts(self, windows: Array | None, edges: Array) -> Array:
        """Where each piece's rows of each cell begin; without cells, all rows are in one."""
        if windows is None:
            return np.stack([edges[:-1], edges[1:]], 1)
        starts = np.zeros((len(self._pieces), len(windows) * self._slots + 1), np.int64)
        for number, piece in enumerate(self._pieces):
            assert isinstance(piece.where, Cells)
            counts = starts[number, 1:].reshape(len(windows), self._slots)
            counts[np.searchsorted(windows, piece.where.windows)] = piece.where.counts
        starts[:, 0] = edges[:-1]
        return np.cumsum(starts, 1, out=starts)

    def _runs(self) -> Array:
        """A number for the run of each piece; -1 where its rows may have equal keys."""
        numbers: dict[Hashable, int] = {}
        return np.array(
            [
                numbers.setdefault(piece.rows.run, len(numbers)) if isinstance(piece.where, Cells) else -1
                for piece in self._pieces
            ],
            np.int64,
        )

    def _ranges(self, pane: bool) -> dict[Component, Range]:
        """Ranges of the key's components; of the pane only if it is part of the key."""
        parts = [part.component for part in self._relation.parts[1:]]
        ranges: dict[Component, Range] = {}
        for piece in self._pieces:
            found = {name: piece.rows.span(name.text) for name in parts if name not in self._coded}
            ranges = union(ranges, found | ({self._pane: piece.span} if pane else {}))
        for name in self._coded:
            ranges[name] = 0, self._dictionaries[name].count
        for name in parts:
            flag = name.null
            if name != flag and ranges.get(flag) == (1, 1):  # nothing but NULLs
                ranges[name] = 0, 0
        names = [self._pane, *parts] if pane else parts
        return {name: ranges.get(name, (0, 0)) for name in names}

    def _pack(self, number: int, layout: Layout, words: Array) -> None:
        """Pack the keys of a piece; a NULL's value packs as zero."""
        fields = {name: place for name, place in layout.places.items() if place.bits}
        present: dict[Component, Array] = {}
        for name, place in fields.items():
            flag, word = name.null, words[place.word]
            if name == self._pane:
                pack_component(self._pieces[number].windows, all_valid(), place.base, place.shift, word)
            elif flag not in fields or name == flag:
                values, base = self._stored(number, name.text)
                above = np.uint64((base - place.base) % (1 << WORD))
                if len(values):
                    kernels.pack_stored(values, above, place.shift, word)
                else:
                    word |= above << np.uint64(place.shift)
            else:
                if flag not in present:
                    present[flag] = (self._column(number, flag.text) == 0).astype(np.uint8)
                pack_component(self._column(number, name.text), present[flag], place.base, place.shift, word)

    # -- states

    def _wide(self, shape: Shape) -> frozenset[str]:
        """Integer sums that two words must hold."""
        bounds: dict[str, int] = {}
        for piece in self._pieces:
            for state, columns in piece.rows.states().items():
                if state.kind != "sum" or state.column in shape.floats:
                    continue
                low, high = piece.rows.span(columns[0])
                bound = BOUND if len(columns) == 2 else len(piece) * max(abs(low), abs(high))
                bounds[state.column] = bounds.get(state.column, 0) + bound
        return frozenset(name for name, bound in bounds.items() if bound >= BOUND)

    def _folded(self, at: list[Array], groups: int) -> tuple[Array, dict[State, tuple[Array, ...]]]:
        """count(*) and the states of the groups."""
        kept = [state for state in self._relation.states if self._shape.words(state)]
        tables = {state: self._fresh(state, groups) for state in kept}
        counts = np.zeros(groups, np.int64)
        for number, rows in enumerate(at):
            kernels.add_stored(rows, *self._stored(number, "count"), counts)
            columns = self._pieces[number].rows.states()
            for state in kept:
                # A count that was left out (no NULLs there) is count(*).
                names = columns.get(state, ["count"])
                if state.kind in ("count", "sum") and self._shape.words(state) == 1:
                    kernels.add_stored(rows, *self._stored(number, names[0]), tables[state].reshape(-1))
                else:
                    self._fold(tables[state], state, rows, tuple(self._column(number, name) for name in names))
        return counts, {state: _words(table, self._shape.floating(state)) for state, table in tables.items()}

    def _fresh(self, state: State, groups: int) -> Array:
        table = np.empty((groups, self._shape.words(state)), np.int64)
        table[:] = self._shape.fresh(state)
        return table

    def _fold(self, table: Array, state: State, at: Array, words: tuple[Array, ...]) -> None:
        nothing = np.empty((0, 0), np.uint64)
        chunk = Chunk(nothing, {}, self._dictionaries, partials={state: words})
        rows = Numbers(np.arange(len(at), dtype=np.int32), at, 0, len(at))
        fold_chunk(table.view(np.uint64), {state: 0}, self._shape, chunk, rows)


def coded_parts(relation: Relation) -> list[Component]:
    """Components of the key that are codes of a dictionary."""
    strings = {value_component(name) for name in Shape.of(relation.types).strings}
    names = (part.component for part in relation.parts)
    return [name for name in names if name.tag is Tag.INET6 or name in strings]


def _of_pass(relation: Relation, piece: Piece, share: Share) -> Piece:
    """The rows of a piece that belong to a pass."""
    components = {part.component: piece.column(part.component.text) for part in relation.parts[1:]}
    by_code = {name: hash_strings(*piece.rows.dictionary(name)) for name in coded_parts(relation)}
    turns = (canonical_hashes(components, by_code, len(piece)) >> np.uint64(PASS_SHIFT)) % np.uint64(share.passes)
    return piece.only(np.flatnonzero(turns == share.turn))


def _component(keys: Array, place: Place) -> Array:
    """One component of the groups' keys."""
    if not place.bits:
        return np.full(keys.shape[1], place.base, np.int64)
    values = np.empty(keys.shape[1], np.int64)
    kernels.field_of(keys[place.word], place.shift, place.mask, place.base, values)
    return values


def _words(table: Array, floating: bool) -> tuple[Array, ...]:
    """The words of a state, each in a column of its own."""
    columns: Iterable[Array] = (np.ascontiguousarray(table[:, word]) for word in range(table.shape[1]))
    return tuple(column.view(np.float64) if floating else column for column in columns)
