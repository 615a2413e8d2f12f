"""The tree of relations: tuples go into its roots, what tables evict falls to their children, all ends in the leaves.

    chunk ──► raw tables ──► evictions ──► children ──► …  ──► leaves (`runtime.tables.leaf`)

A relation at a time over a chunk, not a tuple at a time: every table sees the same entries in the same order
as if each tuple were followed down at once (seed smap, Sec. 2.5), and the loops stay tight. Evictions are gathered
until there are enough of them for the children to be worth calling.

A table's key has all that its queries need: their attributes, their panes, and for each different choice of tuples a
bit that says "not for these" (`sieve_component`). Components that never vary take no bits (`relations.layout`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from penstock.aggregates.shape import Shape
from penstock.kernels.dictionary import Dictionary
from penstock.relations.component import Component, sieve_component
from penstock.relations.layout import Layout, Part
from penstock.relations.relation import Relation, joined_parts
from penstock.runtime.tables.chunk import Chunk, numbers
from penstock.runtime.tables.leaf import Leaf
from penstock.runtime.tables.rows import Cut, Format
from penstock.runtime.tables.table import Branch
from penstock.sharing.graph.configuration import STREAM
from penstock.sharing.plan import SharedPlan

Array = np.ndarray
Absorb = Callable[[Leaf, Chunk, Array, Cut], None]
ENOUGH = 8192  # evicted rows that are worth a round of the children
PIECE = 1 << 15  # buckets that are flushed at a time: copies of a large table would take several times its memory


class Tree:
    """The tables of a plan. `sieves` names for each query the one that stands for all that choose the same tuples;
    `absorb` takes partial aggregates into a leaf."""

    def __init__(self, plan: SharedPlan, sieves: Mapping[str, str], absorb: Absorb) -> None:
        self._plan, self._sieves, self._absorb = plan, sieves, absorb
        self.branches = [
            Branch(table, _parts(below, sieves), dict.fromkeys(state for r in below for state in r.states))
            for table, below in zip(plan.tables, plan.below, strict=True)
        ]
        self._children = [
            [n for n, table in enumerate(plan.tables) if table.parent == number] for number in range(len(plan.tables))
        ]
        raw = [branch for branch in self.branches if branch.table.parent == STREAM]
        widest = max(raw, key=lambda branch: len(branch.parts), default=None)
        self.widest = (
            frozenset(part.component for part in widest.parts) if widest is not None else frozenset[Component]()
        )
        self.components = frozenset(part.component for branch in self.branches for part in branch.parts)

    @property
    def nbytes(self) -> int:
        return sum(branch.nbytes for branch in self.branches)

    def lay_out(self, layout: Layout, shape: Shape, leaves: list[Leaf]) -> None:
        """Start all tables anew; they must be drained."""
        self._leaves = {leaf.relation.name: leaf for leaf in leaves}
        self._cuts: dict[str, Cut] = {}
        for branch in self.branches:
            parent = branch.table.parent
            above = layout if parent == STREAM else self.branches[parent].format.cut.layout
            branch.lay_out(above, shape)
            for query in branch.table.leaves:
                leaf = self._leaves[query]
                self._cuts[query] = Cut(branch.format.cut.layout, leaf.relation.parts, leaf.format.cut.layout)

    def take(self, chunk: Chunk, masks: Mapping[str, Array | None]) -> None:
        """A chunk of the stream's tuples; `masks` says for each query which ones are its own (None: all)."""
        for number, branch in enumerate(self.branches):
            if branch.table.parent != STREAM:
                continue
            rows = _any_of([masks[r.name] for r in self._plan.below[number]], chunk.words.shape[1])
            if len(rows):
                branch.absorb(chunk, rows)
                if branch.waiting >= ENOUGH:
                    self._fall(number, chunk.dictionaries)

    def drain(self, dictionaries: Mapping[Component, Dictionary]) -> None:
        """End of the epoch: flush all tables, from the top down."""
        for number, branch in enumerate(self.branches):
            while branch.flush(PIECE) or branch.waiting:
                if branch.waiting:
                    self._fall(number, dictionaries)

    def _fall(self, number: int, dictionaries: Mapping[Component, Dictionary]) -> None:
        """What a table has evicted reaches its leaves and the tables below it."""
        branch = self.branches[number]
        passed = Passed(branch.format, branch.taken(), dictionaries)
        for query in branch.table.leaves:
            chunk = passed.through({self._sieves[query]})
            self._absorb(self._leaves[query], chunk, passed.rows(chunk), self._cuts[query])
        for child in self._children[number]:
            below = self.branches[child]
            chunk = passed.through({self._sieves[r.name] for r in self._plan.below[child]})
            if len(chunk.weights):
                below.absorb(chunk, passed.rows(chunk))
                if below.waiting >= ENOUGH:
                    self._fall(child, dictionaries)


class Passed:
    """Rows that a table passes on, as partial aggregates: those that get through each sieve, made once."""

    def __init__(self, form: Format, rows: Array, dictionaries: Mapping[Component, Dictionary]) -> None:
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
    """Numbers of the tuples that any mask has."""
    distinct = list({id(mask): mask for mask in masks}.values())
    found = distinct[0]
    for mask in distinct[1:]:
        found = None if found is None or mask is None else found | mask
    return numbers(found, rows)
