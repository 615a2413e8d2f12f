"""Space allocation: how much memory each table of a configuration gets (seed smap, Sec. 6).

    sl   supernodes, linear: a supernode's value is the sum of g·h of its members (heuristic 1)
    sr   supernodes, square root: √value is the sum of √(g·h) (heuristic 2)
    pl   proportional to g·h: all tables have about the same collision rate (heuristic 3)
    pr   proportional to √(g·h) (heuristic 4)
    es   exhaustive at 1 % of the memory, exact by dynamic programming (`exhaustive`)

and those of seed aggregate-tree (Sec. VI and VII), which make `flow.tree_cost` least and may leave memory over:

    fptas            within 1 + ε of the best, whatever the tables (`fptas`)
    lagrange         quicker: memory at a price (`lagrange`)
    all-or-nothing   the best for uniform data: all tables whole or not at all, but for one (`all_or_nothing`)

A new one is a function on a `PlantedTree`, one line in `ALLOCATORS`, and one test.  Throughout, g stands for g/l_a, as
in the paper.  Where c2 differs between queries, a query weighs g·h·c2 and a phantom g·h times the mean c2 below it;
where it does not, c2 cancels and what the paper prints remains.  Tables that a tree does not have get no space.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt

from penstock.errors import ConfigError
from penstock.sharing.allocate.all_or_nothing import all_or_nothing
from penstock.sharing.allocate.exhaustive import exhaustive
from penstock.sharing.allocate.fptas import fptas
from penstock.sharing.allocate.lagrange import lagrange
from penstock.sharing.graph.configuration import STREAM
from penstock.sharing.model.collision import MU
from penstock.sharing.model.figures import PlantedTree

Allocator = Callable[[PlantedTree], list[float]]


def allocator(name: str) -> Allocator:
    if name not in ALLOCATORS:
        raise ConfigError(f"no space allocation is named '{name}'", f"choose one of {', '.join(ALLOCATORS)}")
    return ALLOCATORS[name]


def supernodes(tree: PlantedTree, linear: bool) -> list[float]:
    """Heuristics SL and SR: every relation with all below it is taken for one leaf, then unfolded from the top.

    The raw relations share memory as leaves without a phantom do, by the square root of their values; inside, a
    supernode is divided by the optimum of two levels (Eq. 21 and 22): the phantom has more than half of its memory.
    """
    parents, tables = tree.parents, tree.tables
    count = len(parents)
    values = _weights(tree) if linear else [sqrt(weight) for weight in _weights(tree)]
    passing = list(tree.evict)
    shares = [0.0] * (count + 1)  # Σ √value of what each node feeds; the last one is the stream's
    roots = [0.0] * count
    for i in range(count - 1, -1, -1):
        parent = parents[i]
        root = roots[i] = sqrt(values[i]) if linear else values[i]
        shares[parent] += root
        if parent != STREAM:
            values[parent] += values[i]
            passing[parent] += tree.probe[i] if tables[i] else tree.evict[i]
    spaces = [0.0] * count
    scales = [0.0] * (count + 1)  # space per √value of what each node feeds
    scales[STREAM] = tree.memory / shares[STREAM] if shares[STREAM] else 0.0
    for i in range(count):
        space = scales[parents[i]] * roots[i]
        total = shares[i]
        if total:
            scale = scales[i] = space / (total + sqrt(total * total + passing[i] * space / MU))
            space -= scale * total
        spaces[i] = space
    return spaces


def proportional(tree: PlantedTree, linear: bool) -> list[float]:
    """Heuristics PL and PR: by g·h or by its square root, wherever the relation stands."""
    needs = [
        g * h / length if table else 0.0
        for g, h, length, table in zip(tree.groups, tree.entries, tree.lengths, tree.tables, strict=True)
    ]
    if not linear:
        needs = [sqrt(need) for need in needs]
    total = sum(needs)
    return [tree.memory * need / total if total else 0.0 for need in needs]


def _weights(tree: PlantedTree) -> list[float]:
    """g·h·c2 of every table; c2 of a phantom is the mean of the queries below it, for it has none of its own."""
    sums, queries = list(tree.evict), list(map(int, tree.queries))
    for i in range(len(sums) - 1, -1, -1):
        parent = tree.parents[i]
        if parent != STREAM:
            sums[parent] += sums[i]
            queries[parent] += queries[i]
    return [
        g * h / length * c2 / count if table and count else 0.0
        for g, h, length, table, c2, count in zip(
            tree.groups, tree.entries, tree.lengths, tree.tables, sums, queries, strict=True
        )
    ]


ALLOCATORS: dict[str, Allocator] = {
    "sl": lambda tree: supernodes(tree, linear=True),
    "sr": lambda tree: supernodes(tree, linear=False),
    "pl": lambda tree: proportional(tree, linear=True),
    "pr": lambda tree: proportional(tree, linear=False),
    "es": exhaustive,
    "fptas": fptas,
    "lagrange": lagrange,
    "all-or-nothing": all_or_nothing,
}
