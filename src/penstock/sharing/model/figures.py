"""A configuration with its problem's figures, as plain lists: what the inner loops of planning work on.

Choosing phantoms costs thousands of allocations, so `flow` and `sharing.allocate` do their sums on these lists.
`plant` makes them from a configuration and a problem.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from penstock.sharing.graph.configuration import STREAM, Configuration
from penstock.sharing.graph.grain import Grain
from penstock.sharing.model.collision import occupied, rate
from penstock.sharing.model.eviction import Curve
from penstock.sharing.model.problem import Problem


class PlantedTree(NamedTuple):
    """Figures of each node, parents first.  `evict` is 0 for phantoms: what they pass on stays inside.

    `tables[i]` is false for a query without a table: whatever reaches it passes straight on.  `curves` is empty where
    all tables are direct-mapped, and has None for those that are.  `grains` tell which relations they are.
    """

    parents: Sequence[int]
    queries: Sequence[bool]
    tables: Sequence[bool]
    groups: Sequence[float]
    lengths: Sequence[float]
    entries: Sequence[float]
    probe: Sequence[float]
    evict: Sequence[float]
    memory: float
    rows: float
    curves: Sequence[Curve | None] = ()
    passing: float = 0.0
    each: float = 0.0
    grains: Sequence[Grain] = ()

    def leaves(self) -> list[bool]:
        feeding = set(self.parents)
        return [i not in feeding for i in range(len(self.parents))]


def plant(configuration: Configuration, problem: Problem, tables: Sequence[bool] | None = None) -> PlantedTree:
    """The tree of a configuration; all relations have tables unless told otherwise."""
    nodes = configuration.nodes
    depths: list[int] = []
    for node in nodes:
        depths.append(1 if node.parent == STREAM else depths[node.parent] + 1)
    grains, parents = [node.grain for node in nodes], [node.parent for node in nodes]
    tables = [True] * len(nodes) if tables is None else list(tables)
    return PlantedTree(
        parents=parents,
        queries=[node.query for node in nodes],
        tables=tables,
        groups=[problem.groups(node.grain) for node in nodes],
        lengths=[problem.length(node.grain, depth) for node, depth in zip(nodes, depths, strict=True)],
        entries=[problem.entry(node.grain) for node in nodes],
        probe=[problem.probe(node.grain) for node in nodes],
        evict=[problem.evict(node.grain) if node.query else 0.0 for node in nodes],
        memory=problem.memory,
        rows=problem.rows,
        curves=curves_of(problem, grains, parents, tables),
        passing=problem.passing,
        each=problem.each,
        grains=grains,
    )


def curves_of(
    problem: Problem, grains: Sequence[Grain], parents: Sequence[int], tables: Sequence[bool]
) -> list[Curve | None]:
    """Of the tables that there are: they are not asked for in vain, since each has to be counted."""
    if problem.curve is None:
        return []
    return [
        problem.curve(grain, None if parent == STREAM else grains[parent]) if table else None
        for grain, parent, table in zip(grains, parents, tables, strict=True)
    ]


def rates_of(tree: PlantedTree, buckets: Sequence[float]) -> list[float]:
    """x of every node; 1 where there is no table."""
    if tree.curves:
        return [slope for _, slope in responses(tree, buckets)]
    return [rate(g, b, length) for g, b, length in zip(tree.groups, buckets, tree.lengths, strict=True)]


def buckets_of(tree: PlantedTree, spaces: Sequence[float]) -> list[float]:
    """b = space/h of every node."""
    return [space / entry for space, entry in zip(spaces, tree.entries, strict=True)]


def given(tree: PlantedTree, spaces: Sequence[float]) -> PlantedTree:
    """The tree with tables where there is space for them: without any, all passes by unprobed."""
    return tree._replace(tables=[table and space > 0.0 for table, space in zip(tree.tables, spaces, strict=True)])


def responses(tree: PlantedTree, buckets: Sequence[float]) -> list[tuple[float, float]]:
    """(entries, x) of every node: in an epoch it passes on entries + x · what reaches it; (0, 1) without a table.

    Of a direct-mapped table, these are the entries that stand in it at the end.  A table that evicts the least recently
    used passes on b + f(n − t) (`eviction.Che`): x is f, and the entries b − f·t, for what has filled the table was not
    evicted.
    """
    found: list[tuple[float, float]] = []
    out: list[float] = []
    for i, parent in enumerate(tree.parents):
        fed = tree.rows if parent == STREAM else out[parent]
        curve = tree.curves[i] if tree.curves else None
        if not tree.tables[i]:
            each = (0.0, 1.0)
        elif curve is None:
            each = occupied(tree.groups[i], buckets[i]), rate(tree.groups[i], buckets[i], tree.lengths[i])
        else:
            each = curve.response(buckets[i], fed)
        found.append(each)
        out.append(each[0] + each[1] * fed)
    return found
