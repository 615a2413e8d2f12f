"""Merge partial aggregates into exact groups: the machinery of closing windows, compaction and coarser panes.

Rows come from blocks of any number of segments, runs, layouts and plans, or from groups in memory; they meet as
canonical components. Their dictionaries are joined (only the strings that the rows use), their keys packed as snugly as
their ranges allow, and their groups numbered cell by cell (`kernels.tables.merge`). Then each state is folded by those
numbers, a column at a time.

    pieces (rows of blocks, a window each) ──► Merge ──► groups ──► finish, or a segment again
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from penstock.aggregates.base import BOUND, State
from penstock.aggregates.count import RECORDS
from penstock.aggregates.shape import Form, Shape
from penstock.aggregates.values import Into
from penstock.faults import reach
from penstock.kernels.dictionary import Dictionary
from penstock.kernels.tables import merge as kernels
from penstock.kernels.tables.pack import ALL_VALID, pack_component
from penstock.relations.component import Component, Tag
from penstock.relations.layout import WORD, Layout, Place, Range, snug
from penstock.relations.relation import EXACT, Relation
from penstock.runtime.merge.inputs import Cells, GroupRows, Piece
from penstock.runtime.merge.shares import Share, of_pass
from penstock.runtime.merge.words import Words
from penstock.state.segments.groups import Groups, blank_nulls
from penstock.state.segments.vocabulary import Vocabulary

Array = np.ndarray
DENSE, FEW_CODES = 2, 1 << 12  # packed keys number places, if there are at most so many places for each row, or in all
LEAST_IN_CELL = 32  # rows: with fewer on average, the cells cost more than they save


def merge(
    relation: Relation, pieces: Sequence[Piece], share: Share | None = None, vocabulary: Vocabulary | None = None
) -> Groups:
    """The exact groups of these pieces (of one pass), with a dictionary of their own."""
    if share is not None and share.passes > 1:
        pieces = [of_pass(relation, piece, share) for piece in pieces]
    known = Vocabulary() if vocabulary is None else vocabulary
    known.trim()
    return Merge(relation, pieces, known).groups()


def regroup(relation: Relation, groups: Groups, panes: Array) -> Groups:
    """The same aggregates by other panes; codes and dictionaries stay as they are."""
    return regrouped(relation, groups, panes)[0]


def regrouped(relation: Relation, groups: Groups, panes: Array) -> tuple[Groups, Array]:
    """The same, and which of the groups made each of those given is in."""
    return Merge(relation, [Piece(GroupRows(groups), panes)], groups.dictionaries).placed()


def placed(relation: Relation, groups: Groups, rows: Groups) -> Array:
    """Which of these groups each row belongs to; both have keys of the relation, and every row has its group."""
    bare = replace(relation, arguments=(), states=())
    pieces = [Piece(GroupRows(one), one.panes) for one in (groups, rows)]
    return Merge(bare, pieces, Vocabulary()).numbers()[len(groups) :]


def folded(
    relation: Relation, pieces: Sequence[Piece], words: Mapping[Component, Dictionary], at: list[Array], groups: int
) -> tuple[Array, dict[State, tuple[Array, ...]]]:
    """count(*) and states of so many groups, made of rows whose groups are known; no piece is empty."""
    return Merge(relation, pieces, words).folded(at, groups)


def regrouped_numbers(relation: Relation, rows: Groups) -> Array:
    """The number of every row's group in a coarser relation, whose keys the rows have."""
    return Merge(relation, [Piece(GroupRows(rows), rows.panes)], rows.dictionaries).numbers()


@dataclass(frozen=True)
class Codes:
    """A number below `many` for the key of every row. `keys` are packed keys by number; None: a number is the packed
    key itself."""

    numbers: Array
    many: int
    layout: Layout
    keys: Array | None

    def components(self, numbers: Array) -> dict[Component, Array]:
        """The key that each of these numbers stands for; what a NULL's value is, `blank_nulls` says."""
        keys = numbers.view(np.uint64)[np.newaxis] if self.keys is None else np.take(self.keys, numbers, axis=1)
        return {name: _component(keys, place) for name, place in self.layout.places.items()}


class Merge:
    """One merge. Codes of its pieces become those of a vocabulary; with dictionaries given, they are theirs already."""

    def __init__(
        self, relation: Relation, pieces: Sequence[Piece], known: Vocabulary | Mapping[Component, Dictionary]
    ) -> None:
        sized = [(piece, size) for piece in pieces if (size := len(piece))]
        self._pieces, self._sizes = [piece for piece, _ in sized], [size for _, size in sized]
        self._relation, self._pane = relation, relation.pane
        self._coded, self._coded_states = relation.coded_parts, relation.coded_states
        self._words = Words(relation, self._pieces, known)
        self._shape = self._widened(relation.shape)

    # -- groups

    def numbers(self) -> Array:
        """The number of every row's group, in the order in which groups are met."""
        edges = self.edges
        keys = self._packed(edges, snug(self._ranges(True)))
        _, at, _ = kernels.numbered(keys, self._starts(None, edges), self._runs())
        return at

    def codes(self, panes: bool) -> Codes:
        """A number for the key of every row, with its pane or without: packed keys themselves, where they are dense
        enough to number places by them."""
        edges = self.edges
        layout = snug(self._ranges(panes))
        keys = self._packed(edges, layout)
        bits = sum(place.bits for place in layout.places.values())
        if layout.words == 1 and 1 << bits <= max(DENSE * int(edges[-1]), FEW_CODES):
            numbers = keys[0].view(np.int64)
            return Codes(numbers, int(numbers.max(initial=0)) + 1, layout, None)
        found, at, _ = kernels.numbered(keys, self._starts(None, edges), np.full(len(self._pieces), -1))
        return Codes(at, found.shape[1], layout, found)

    # -- whole columns, for roll-ups

    @property
    def rows(self) -> int:
        return sum(self._sizes)

    @property
    def edges(self) -> Array:
        """Where the rows of each piece begin, and where the last ones end."""
        return np.cumsum([0, *self._sizes])

    def windows(self) -> Array:
        """The window of every row."""
        return _stacked([piece.windows for piece in self._pieces])

    def stacked(self, name: str) -> Array:
        """A column of all rows, in codes of the merged dictionaries."""
        return _stacked([self._words.column(number, name) for number in range(len(self._pieces))])

    def all_zero(self, name: str) -> bool:
        """Whether a column of integers is nothing but zeros."""
        return all(piece.rows.spans([name]) == [(0, 0)] for piece in self._pieces)

    def stacked_state(self, state: State) -> Array:
        """A state that adds, of all rows; where it was left out it is count(*)."""
        found = []
        for number, piece in enumerate(self._pieces):
            names = piece.rows.states.get(state, [RECORDS])
            found.append(self._words.column(number, names[0]))
        return _stacked(found)

    def kept(self, states: Collection[State]) -> dict[State, Form]:
        """The forms of those states that groups of these rows keep."""
        met = {state for piece in self._pieces for state in piece.rows.states}
        forms = self._shape.forms(states).items()
        return {s: form for s, form in forms if form.words and (s in met or not form.accumulator.picked)}

    @property
    def dictionaries(self) -> dict[Component, Dictionary]:
        """What codes among the components refer to."""
        return self._words.dictionaries

    def _packed(self, edges: Array, layout: Layout) -> Array:
        keys = np.zeros((layout.words, int(edges[-1])), np.uint64)
        for number, start in enumerate(edges[:-1]):
            reach("merge.block")
            self._pack(number, layout, keys[:, start : edges[number + 1]])
        return keys

    def groups(self) -> Groups:
        """All groups, by cell where there are cells."""
        return self.placed()[0]

    def placed(self) -> tuple[Groups, Array]:
        """The same, and the group of every row."""
        edges = self.edges
        cells = self._cells(int(edges[-1]))
        layout = snug(self._ranges(cells is None))
        keys = self._packed(edges, layout)
        found, at, ends = kernels.numbered(keys, self._starts(cells, edges), self._runs())
        components = {name: _component(found, place) for name, place in layout.places.items()}
        blank_nulls(components, self._shape.strings)
        if cells is None:
            panes = components.pop(self._pane)
        else:
            panes = np.repeat(cells, np.diff(ends[self._slots - 1 :: self._slots], prepend=0))
        parts = [part.component for part in self._relation.parts[1:]]
        kept = [one for one in parts if one.tag is not Tag.SIEVE or not layout.places[one].zero]
        keyed = {one: components[one] for one in kept}
        named = sorted(self._words.dictionaries.keys() & {*self._coded_states.values(), *keyed})
        counts, states = self.folded([at[a:b] for a, b in pairwise(edges)], found.shape[1])
        made = Groups(panes, keyed, {name: self._words.dictionaries[name] for name in named}, counts, states)
        return self._words.own(made), at

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
        distinct = self._relation.table == EXACT
        return np.array(
            [
                numbers.setdefault(piece.rows.run, len(numbers)) if distinct and isinstance(piece.where, Cells) else -1
                for piece in self._pieces
            ],
            np.int64,
        )

    def _ranges(self, pane: bool) -> dict[Component, Range]:
        """Ranges of the key's components; of the pane only if it is part of the key."""
        parts = [part.component for part in self._relation.parts[1:]]
        plain = [name for name in parts if name not in self._coded]
        texts = [name.text for name in plain]
        each = {id(piece.rows): piece.rows for piece in self._pieces}.values()  # the same rows may go to many windows
        spans = list(zip(*(rows.spans(texts) for rows in each), strict=True))
        ranges = {name: _joined(found) for name, found in zip(plain, spans, strict=False)}
        if pane and self._pieces:
            ranges[self._pane] = _joined([piece.span for piece in self._pieces])
        for name in self._coded:
            ranges[name] = 0, self._words.dictionaries[name].count
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
                pack_component(self._pieces[number].windows, ALL_VALID, place.base, place.shift, word)
            elif flag not in fields or name == flag:
                values, base = self._words.stored(number, name.text)
                above = np.uint64((base - place.base) % (1 << WORD))
                if len(values):
                    kernels.pack_stored(values, above, place.shift, word)
                else:
                    word |= above << np.uint64(place.shift)
            else:
                if flag not in present:
                    present[flag] = (self._words.column(number, flag.text) == 0).astype(np.uint8)
                pack_component(self._words.column(number, name.text), present[flag], place.base, place.shift, word)

    # -- states

    def _widened(self, narrow: Shape) -> Shape:
        """The shape that all pieces fit into.

        A column has had a NULL where a state of it is stored that otherwise is count(*).
        """
        nullable, wide = set[str](), set[State]()
        for state, form in narrow.forms(self._relation.states).items():
            bound = 0
            for piece, size in zip(self._pieces, self._sizes, strict=True):
                columns = piece.rows.states.get(state)
                if columns is None:
                    continue
                if not form.words:
                    nullable.add(state.column)
                elif len(columns) > form.words:
                    bound = BOUND
                elif form.grows:
                    bound += form.accumulator.bound(size, *piece.rows.spans(columns[:1])[0])
            if form.grows and bound >= BOUND:
                wide.add(state)
        return narrow.widened(frozenset(nullable), frozenset(wide))

    def folded(
        self, at: list[Array], groups: int, states: Collection[State] | None = None
    ) -> tuple[Array, dict[State, tuple[Array, ...]]]:
        """count(*) and the states of the groups, or some of them."""
        kept = self.kept(self._relation.states if states is None else states)
        tables = {state: _fresh(form, groups) for state, form in kept.items()}
        adding = {state for state, form in kept.items() if form.accumulator.adds(form.facts)}
        counts = np.zeros(groups, np.int64)
        for number, rows in enumerate(at):
            kernels.add_stored(rows, *self._words.stored(number, RECORDS), counts)
            stored = self._pieces[number].rows.states
            for state, form in kept.items():
                if form.accumulator.picked and state not in stored:
                    continue
                names = stored.get(state, [RECORDS])  # a state that was left out is count(*)
                if state in adding:
                    kernels.add_stored(rows, *self._words.stored(number, names[0]), tables[state].reshape(-1))
                else:
                    words = tuple(self._words.column(number, name) for name in names)
                    self._fold(tables[state], state, form, words, rows)
        return counts, {state: _words(table) for state, table in tables.items()}

    def _fold(self, table: Array, state: State, form: Form, words: tuple[Array, ...], at: Array) -> None:
        """Fold a state of a piece into those of the groups."""
        into = Into((table, 0, at, 0, len(at)), np.arange(len(at), dtype=np.int32))
        coded = self._coded_states.get(state)
        dictionary = None if coded is None else self._words.dictionaries[coded]
        form.accumulator.fold_partials(into, form.facts, words, dictionary)


def _fresh(form: Form, groups: int) -> Array:
    """A state of all groups, before its first value."""
    table = np.empty((groups, form.words), np.int64)
    table[:] = form.fresh
    return table.view(np.float64) if form.floating else table


def _stacked(parts: Sequence[Array]) -> Array:
    return parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else np.empty(0, np.int64)


def _joined(spans: Sequence[Range]) -> Range:
    """The range that covers these."""
    return min(low for low, _ in spans), max(high for _, high in spans)


def _component(keys: Array, place: Place) -> Array:
    """One component of the groups' keys."""
    if not place.bits:
        return np.full(keys.shape[1], place.base, np.int64)
    values = np.empty(keys.shape[1], np.int64)
    kernels.field_of(keys[place.word], place.shift, place.bits, place.base, values)
    return values


def _words(table: Array) -> tuple[Array, ...]:
    """The words of a state, each in a column of its own."""
    return tuple(np.ascontiguousarray(table[:, word]) for word in range(table.shape[1]))
