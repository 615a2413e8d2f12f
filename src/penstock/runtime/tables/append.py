"""A leaf that appends: a row for everything that falls to it, and nothing is looked up.

Where groups hardly repeat, a probe that waits for memory finds nothing. Rows with equal keys then stand side by side
until they are merged: merges take the rows of such a relation as ones that may repeat (`runtime.merge.merge`). The late
side of a join is stored like this, too: a row for each record.

`leaf_of` makes the leaf that a relation asks for.
"""

from __future__ import annotations

import numpy as np

from penstock.aggregates.shape import Shape
from penstock.relations.layout import Layout
from penstock.relations.relation import APPEND, EXACT, Relation
from penstock.runtime.tables.leaf import Leaf

Array = np.ndarray
NOTHING = np.empty(0, np.uint64)


class AppendLeaf(Leaf):
    """Rows in the order in which they came."""

    def _hashed(self, keys: Array) -> Array:
        return NOTHING

    def _empty_index(self, capacity: int) -> Array:
        return NOTHING

    def _fill_index(self) -> None:
        """There is none."""

    def _probe(self, keys: Array, hashes: Array, start: int, weights: Array, at: Array) -> int:
        first, words = self.count, self.format.words
        beyond = min(len(self.rows), first + len(at) - start)
        done = start + beyond - first
        rows = self.rows[first:beyond]
        rows[:, :words] = keys[:, start:done].T
        rows[:, words:] = self.format.fresh
        rows[:, words] = weights[start:done] if len(weights) else 1
        at[start:done] = np.arange(first, beyond)
        self.count = beyond
        return done


LEAVES: dict[str, type[Leaf]] = {EXACT: Leaf, APPEND: AppendLeaf}


def leaf_of(relation: Relation, layout: Layout, shape: Shape, capacity: int) -> Leaf:
    """An empty leaf of the kind that the relation is stored by."""
    return LEAVES[relation.table](relation, layout, shape, capacity)
