"""Queries without a table of their own: which query tables do not pay, and who gets their memory.

The paper gives every query a table before its leaf.  A record that reaches a query's table costs c1 + x·c2; without the
table it costs c2.  So where collisions are many or c2 is near c1, a leaf query does better without.  A query that feeds
others keeps its table.  `choice` with `fronts=False` is the other end: no leaf query has one.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.sharing.allocate.registry import Allocator, allocator
from penstock.sharing.choose.search import Objective
from penstock.sharing.graph.configuration import Configuration
from penstock.sharing.model.figures import PlantedTree, buckets_of, plant, rates_of
from penstock.sharing.model.flow import tuple_cost
from penstock.sharing.model.problem import Problem


def without_fronts(
    configuration: Configuration, problem: Problem, alloc: str = "sl", *, objective: Objective = tuple_cost
) -> tuple[float, ...]:
    """Spaces with 0 for leaf queries that do better without a table; the others share the memory.

    First go the tables with c1 + x·c2 >= c2, the worst first, for each that goes makes the others larger: this is
    quick.  Then any table goes whose memory saves more elsewhere.
    """
    divide = allocator(alloc)
    tree = plant(configuration, problem)
    leaves = tree.leaves()
    spaces = divide(tree)
    while (worst := _worst(tree, spaces, leaves)) is not None:
        tree = _without(tree, worst)
        spaces = divide(tree)
    return tuple(_saving(tree, leaves, divide, objective))


def _worst(tree: PlantedTree, spaces: Sequence[float], leaves: Sequence[bool]) -> int | None:
    """The leaf table that loses most per record that reaches it; None if all pay."""
    losses = {
        i: tree.probe[i] + x * tree.evict[i] - tree.evict[i]
        for i, x in enumerate(rates_of(tree, buckets_of(tree, spaces)))
        if leaves[i] and tree.tables[i]
    }
    worst = max(losses, key=losses.__getitem__, default=None)
    return worst if worst is not None and losses[worst] >= 0 else None


def _saving(tree: PlantedTree, leaves: Sequence[bool], divide: Allocator, objective: Objective) -> list[float]:
    """Give up leaf tables one by one, the best first, while the whole becomes cheaper."""
    spaces = divide(tree)
    cost = objective(tree, buckets_of(tree, spaces))
    while True:
        fewer = [_without(tree, i) for i, leaf in enumerate(leaves) if leaf and tree.tables[i]]
        tried = [(objective(each, buckets_of(each, given)), given, each) for each in fewer for given in [divide(each)]]
        best = min(tried, key=lambda each: each[0], default=None)
        if best is None or best[0] >= cost:
            return spaces
        cost, spaces, tree = best


def _without(tree: PlantedTree, i: int) -> PlantedTree:
    return tree._replace(tables=[table and j != i for j, table in enumerate(tree.tables)])
