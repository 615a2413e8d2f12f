"""What flows through a tree of tables, and what that costs.

`tree_cost` is what the engine plans with: evictions and the flush at the end of an epoch together.  Seed
aggregate-tree, Eq. 1 and 2: out_0 = n_R, out_i = b_i + f_i·out_p, C(T) = Σ out_i·h_i, h_i being what an entry that
leaves i costs where it arrives.  Here f and b come from the `Curve` of each table, so the same sums serve every kind of
table; of direct-mapped ones C(T) is n_e·e_m + E_e of seed smap.

    arriving at a table         probe (c1)
    arriving at a query's leaf  evict (c2): a query without a table is a leaf alone, one with a table has it below
    leaving a table             `passing`, beside what it costs where it arrives
    a table                     `each`, for each record of the stream

The two parts have functions of their own (seed smap, Sec. 3.2): `tuple_cost` is a record's cost without the flush,
Eq. 7, and `flush_cost` that of the flush, Eq. 8; `flows` tells them by relation, `flush_bound` is the most that a
flush may cost.  `tree_cost` and `tuple_cost` are objectives for any chooser.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.sharing.graph.configuration import STREAM, Configuration
from penstock.sharing.model.collision import occupied
from penstock.sharing.model.eviction import Curve, DirectMapped
from penstock.sharing.model.figures import PlantedTree, plant, rates_of, responses
from penstock.sharing.model.problem import Problem

Array = NDArray[np.float64]


def curve(tree: PlantedTree, i: int) -> Curve:
    """How the table of a node responds."""
    own = tree.curves[i] if tree.curves else None
    return DirectMapped(tree.groups[i], tree.lengths[i]) if own is None else own


def outs_of(tree: PlantedTree, buckets: Sequence[float]) -> list[float]:
    """out_i of every node in an epoch (Eq. 1); all that comes, where there is no table."""
    out: list[float] = []
    for parent, (entries, x) in zip(tree.parents, responses(tree, buckets), strict=True):
        out.append(entries + x * (tree.rows if parent == STREAM else out[parent]))
    return out


def tree_cost(tree: PlantedTree, buckets: Sequence[float]) -> float:
    """C(T) of Eq. 2, for each record of the stream."""
    out = outs_of(tree, buckets)
    total = 0.0
    for i, parent in enumerate(tree.parents):
        fed = tree.rows if parent == STREAM else out[parent]
        if tree.tables[i]:
            total += fed * tree.probe[i] + out[i] * (tree.passing + tree.evict[i]) + tree.each * tree.rows
        else:
            total += fed * tree.evict[i]
    return total / tree.rows


def tree_costs(tree: PlantedTree, buckets: Array) -> Array:
    """`tree_cost` of many allocations at once: a row each, a column for each node."""
    out: list[Array] = []
    total = np.full(len(buckets), tree.each * tree.rows * sum(tree.tables))
    for i, parent in enumerate(tree.parents):
        fed = np.full(len(buckets), float(tree.rows)) if parent == STREAM else out[parent]
        if tree.tables[i]:
            out.append(curve(tree, i).outs(buckets[:, i], fed))
            total += fed * tree.probe[i] + out[i] * (tree.passing + tree.evict[i])
        else:
            out.append(fed)
            total += fed * tree.evict[i]
    return total / tree.rows


def arrivals(tree: PlantedTree) -> list[float]:
    """h_i, by node and last for the stream: what one entry costs at once that leaves it.

    Tables below take it in and pass on what they will; a node without one passes it straight on.
    """
    costs = [tree.passing + evict if table else 0.0 for evict, table in zip(tree.evict, tree.tables, strict=True)]
    costs.append(0.0)
    for i in range(len(tree.parents) - 1, -1, -1):
        costs[tree.parents[i]] += tree.probe[i] if tree.tables[i] else tree.evict[i] + costs[i]
    return costs


def feeder(tree: PlantedTree, i: int) -> int:
    """The nearest node above that has a table."""
    parent = tree.parents[i]
    while parent != STREAM and not tree.tables[parent]:
        parent = tree.parents[parent]
    return parent


@dataclass(frozen=True)
class Flow:
    """One relation, for each record of the stream: `fed` F_R, `rate` x_R, `evictions` F_R·x_R, `cost` in units of c1.

    `occupied` is the number of entries that stand in its table at the end of an epoch, or what counts as such
    (`figures.responses`).
    """

    fed: float
    rate: float
    evictions: float
    occupied: float
    cost: float


def flows(configuration: Configuration, buckets: Sequence[float], problem: Problem) -> tuple[Flow, ...]:
    """What happens at each relation; the costs sum up to `tuple_cost`."""
    tree = plant(configuration, problem, [b > 0 for b in buckets])
    found: list[Flow] = []
    entries = standing(tree, buckets)
    for i, x in enumerate(rates_of(tree, buckets)):
        parent = tree.parents[i]
        fed = 1.0 if parent == STREAM else found[parent].evictions
        probes = tree.probe[i] if tree.tables[i] else 0.0
        found.append(Flow(fed, x, fed * x, entries[i], fed * (probes + x * tree.evict[i])))
    return tuple(found)


def tuple_cost(tree: PlantedTree, buckets: Sequence[float]) -> float:
    """e_m, Eq. 7: what a record costs, the end of its epoch left out."""
    evicted: list[float] = []
    total = 0.0
    for parent, x, table, c1, c2 in zip(
        tree.parents, rates_of(tree, buckets), tree.tables, tree.probe, tree.evict, strict=True
    ):
        fed = 1.0 if parent == STREAM else evicted[parent]
        passed = fed * x
        evicted.append(passed)
        total += fed * c1 + passed * c2 if table else passed * c2
    return total


def standing(tree: PlantedTree, buckets: Sequence[float]) -> list[float]:
    """Entries in every table at the end of an epoch."""
    if tree.curves:
        return [entries for entries, _ in responses(tree, buckets)]
    return [occupied(g, b) for g, b in zip(tree.groups, buckets, strict=True)]


def flush_bound(tree: PlantedTree, buckets: Sequence[float], passing: float, doubt: float) -> float:
    """The most that a flush costs where there may be `doubt` times as many groups as expected: no entry finds its
    group in a table below, and each that leaves a table costs `passing` more."""
    leaving: list[float] = []
    total = 0.0
    for i, parent in enumerate(tree.parents):
        arriving = 0.0 if parent == STREAM else leaving[parent]
        leaving.append(min(buckets[i], doubt * tree.groups[i], tree.rows) + arriving)
        total += leaving[i] * tree.evict[i]
        total += arriving * tree.probe[i] + leaving[i] * passing if buckets[i] >= 1.0 else 0.0
    return total


def flush_cost(tree: PlantedTree, buckets: Sequence[float], entries: Sequence[float]) -> float:
    """What it costs to pass on these entries of every table, each through all that is below it."""
    leaving: list[float] = []
    total = 0.0
    for i, x in enumerate(rates_of(tree, buckets)):
        parent = tree.parents[i]
        arriving = 0.0 if parent == STREAM else leaving[parent]
        leaving.append(entries[i] + arriving * x)
        total += leaving[i] * tree.evict[i] + (arriving * tree.probe[i] if tree.tables[i] else 0.0)
    return total
