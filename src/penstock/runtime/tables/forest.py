"""The forest of a task: the tables of its plan, and the leaves that end them.

    chunk ──► root tables ──► evictions ──► children ──► …  ──► leaves (`runtime.tables.leaf`)

Records go into the root tables. What a table evicts falls to its children, and in the end into a leaf. Leaves without a
table before them take the records themselves.

A chunk goes through one table after the other. Every table sees the same entries in the same order as if each record
were followed down at once (seed smap, Sec. 2.5), and the loops stay tight. Evictions are gathered until there are
enough of them to be worth a round of the children.

The key of a table has all that the relations below it need: their attributes, their panes, and for each different
choice of records a bit that says "not for these" (`sieve_component`). A component that never varies takes no bits
(`relations.layout`).

The forest knows its memory, but not where groups are written. `Forest.take` and `Forest.drain` are therefore iterators:
they stop at each leaf that is full and may not grow. The task writes all leaves and goes on with the iterator.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from penstock.aggregates.shape import Shape
from penstock.kernels.dictionary import Dictionary
from penstock.relations.component import Component, sieve_component
from penstock.relations.layout import Layout, Part
from penstock.relations.relation import Relation, joined_parts
from penstock.runtime.tables.append import leaf_of
from penstock.runtime.tables.chunk import Chunk
from penstock.runtime.tables.leaf import Leaf
from penstock.runtime.tables.rows import Format, KeyCut
from penstock.runtime.tables.table import Branch
from penstock.runtime.work import TABLE
from penstock.sharing.graph.configuration import STREAM
from penstock.sharing.plan import SharedPlan
from penstock.state.protocol import Counts, Work
from penstock.state.segments.groups import Groups

Array = np.ndarray
Dictionaries = Mapping[Component, Dictionary]
ENOUGH = 8192  # evicted rows that are worth a round of the children
PIECE = 1 << 15  # buckets that are flushed at a time: copies of a large table would take several times its memory


class Forest:
    """Tables and leaves of a plan; empty until a layout is known.

    `sieves` names for each relation the one that stands for all that choose the same records. `capacities` has the rows
    of each leaf at the start.
    """

    def __init__(self, plan: SharedPlan, sieves: Mapping[str, str], capacities: Mapping[str, int]) -> None:
        self._plan, self._sieves, self._capacities = plan, sieves, capacities
        self.branches = [
            Branch(table, _parts(below, sieves), dict.fromkeys(state for r in below for state in r.states))
            for table, below in zip(plan.tables, plan.below, strict=True)
        ]
        self._children = [
            [n for n, table in enumerate(plan.tables) if table.parent == number] for number in range(len(plan.tables))
        ]
        self._roots = [number for number, table in enumerate(plan.tables) if table.parent == STREAM]
        self.leaves: list[Leaf] = []
        self._unfed = {relation.name for relation in plan.unfed}

    @property
    def components(self) -> frozenset[Component]:
        """All components that keys of tables are made of."""
        return frozenset(part.component for branch in self.branches for part in branch.parts)

    @property
    def widest(self) -> frozenset[Component]:
        """The components of the root table that has most of them."""
        roots = [self.branches[number].parts for number in self._roots]
        return frozenset(part.component for part in max(roots, key=len, default=()))

    @property
    def nbytes(self) -> int:
        return sum(leaf.nbytes for leaf in self.leaves) + sum(branch.nbytes for branch in self.branches)

    def lay_out(self, layout: Layout, shape: Shape) -> None:
        """Move to another layout of keys and shape of states. Leaves keep their groups; tables must be drained."""
        for leaf in self.leaves:
            leaf.rebuild(layout, shape)
        if not self.leaves:
            self.leaves = [leaf_of(r, layout, shape, self._capacities[r.name]) for r in self._plan.relations]
        self._leaf = {leaf.relation.name: leaf for leaf in self.leaves}
        self._cuts: dict[str, KeyCut] = {}
        for branch in self.branches:
            parent = branch.table.parent
            above = layout if parent == STREAM else self.branches[parent].format.cut.layout
            branch.lay_out(above, shape)
            for name in branch.table.leaves:
                leaf = self._leaf[name]
                self._cuts[name] = KeyCut(branch.format.cut.layout, leaf.relation.parts, leaf.format.cut.layout)

    def take(self, chunk: Chunk, masks: Mapping[str, Array | None], memory: int) -> Iterator[Leaf]:
        """Aggregate a chunk of records. `masks` says for each relation which ones are its own (None: all).

        The forest may take `memory` bytes. Gives each leaf that is full: write and restart the leaves, then go on.
        """
        for number in self._roots:
            branch = self.branches[number]
            rows = _any_of([masks[r.name] for r in self._plan.below[number]], chunk.words.shape[1])
            if len(rows):
                branch.absorb(chunk, rows)
                if branch.waiting >= ENOUGH:
                    yield from self._fall(number, chunk.dictionaries, memory)
        chosen: dict[int, Array] = {}  # relations that choose alike share one mask
        for leaf in self.leaves:
            if leaf.relation.name in self._unfed:
                mask = masks[leaf.relation.name]
                if id(mask) not in chosen:
                    chosen[id(mask)] = _numbers(mask, chunk.words.shape[1])
                yield from self._insert(leaf, chunk, chosen[id(mask)], leaf.format.cut, memory)

    def drain(self, dictionaries: Dictionaries, memory: int) -> Iterator[Leaf]:
        """Flush all tables into the leaves, from the top down. Stops as `take` does."""
        for number, branch in enumerate(self.branches if self.leaves else ()):
            more = True
            while more:
                more = branch.flush(PIECE)
                if branch.waiting:
                    yield from self._fall(number, dictionaries, memory)

    def counts(self) -> dict[str, int]:
        """Groups of each relation that are in its leaf."""
        return {leaf.relation.name: leaf.count for leaf in self.leaves}

    def emptied(self, dictionaries: Dictionaries) -> Iterator[tuple[Relation, Groups]]:
        """The groups of all leaves, some at a time. A leaf whose groups are all out starts empty."""
        for leaf in self.leaves:
            for groups in leaf.pieces(dictionaries):
                yield leaf.relation, groups
            leaf.restart()

    def work(self) -> Work:
        """What each table and leaf did."""
        tables = {
            TABLE + branch.table.name: {
                "probes": branch.probes, "evictions": branch.evictions, "flushed": branch.flushed,
                "nanoseconds": branch.nanoseconds,
            }
            for branch in self.branches
        }  # fmt: skip
        return tables | {
            leaf.relation.name: {"probes": leaf.probes, "groups": leaf.seen, "nanoseconds": leaf.nanoseconds}
            for leaf in self.leaves
        }

    def sizes(self) -> Counts:
        """Bytes of each table and leaf, by the names of `work`."""
        tables = {TABLE + branch.table.name: branch.size for branch in self.branches}
        return tables | {leaf.relation.name: leaf.nbytes for leaf in self.leaves}

    def _fall(self, number: int, dictionaries: Dictionaries, memory: int) -> Iterator[Leaf]:
        """What a table has evicted reaches its leaves and the tables below it."""
        branch = self.branches[number]
        passed = Passed(branch.format, branch.taken(), dictionaries)
        for name in branch.table.leaves:
            chunk = passed.through({self._sieves[name]})
            yield from self._insert(self._leaf[name], chunk, passed.rows(chunk), self._cuts[name], memory)
        for child in self._children[number]:
            below = self.branches[child]
            chunk = passed.through({self._sieves[r.name] for r in self._plan.below[child]})
            if len(chunk.weights):
                below.absorb(chunk, passed.rows(chunk))
                if below.waiting >= ENOUGH:
                    yield from self._fall(child, dictionaries, memory)

    def _insert(self, leaf: Leaf, chunk: Chunk, rows: Array, cut: KeyCut, memory: int) -> Iterator[Leaf]:
        if not len(rows):
            return
        arrivals = leaf.arrivals(chunk, rows, cut)
        while not leaf.absorb(arrivals):
            if not leaf.grow(memory - self.nbytes):
                yield leaf


class Passed:
    """Rows that a table passes on, as partial aggregates: those that get through each sieve, made once."""

    def __init__(self, form: Format, rows: Array, dictionaries: Dictionaries) -> None:
        self._form, self._rows, self._dictionaries = form, rows, dictionaries
        self._through: dict[frozenset[str], Chunk] = {}

    def through(self, sieves: set[str]) -> Chunk:
        """Those that are for one of these at least."""
        # A sieve without a bit holds nothing back.
        held = frozenset(name for name in sieves if self._form.places[sieve_component(name)].bits)
        key = held if len(held) == len(sieves) else frozenset[str]()
        if key not in self._through:
            rows = self._rows
            if key:
                back = np.ones(len(rows), bool)
                for name in key:
                    back &= self._form.component(rows, sieve_component(name)) != 0
                rows = rows[~back]
            self._through[key] = self._form.partials(rows, self._dictionaries)
        return self._through[key]

    def rows(self, chunk: Chunk) -> Array:
        return np.arange(len(chunk.weights), dtype=np.int32)


def _parts(below: tuple[Relation, ...], sieves: Mapping[str, str]) -> tuple[Part, ...]:
    """The key of a table that feeds these relations."""
    bits = (Part(sieve_component(name)) for name in dict.fromkeys(sieves[r.name] for r in below))
    return joined_parts((*(part for r in below for part in r.parts), *bits))


def _any_of(masks: list[Array | None], rows: int) -> Array:
    """Numbers of the records that any mask has."""
    distinct = list({id(mask): mask for mask in masks}.values())
    found = distinct[0]
    for mask in distinct[1:]:
        found = None if found is None or mask is None else found | mask
    return _numbers(found, rows)


def _numbers(mask: Array | None, rows: int) -> Array:
    """Numbers (int32) of the records that a mask has."""
    return np.arange(rows, dtype=np.int32) if mask is None else np.flatnonzero(mask).astype(np.int32)
