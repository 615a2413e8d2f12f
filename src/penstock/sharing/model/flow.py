"""What an aggregate tree costs in an epoch: everything that flows, evictions and flushes together.

Seed aggregate-tree, Eq. 1 and 2: out_0 = n_R, out_i = b_i + f_i·out_p, C(T) = Σ out_i·h_i, h_i being what an entry that
leaves i costs where it arrives.  Here f and b come from the `Curve` of each table, so the same sums serve tables that
evict the least recently used, direct-mapped ones (for which C(T) is n_e·e_m + E_e of seed smap), and the paper's model.

    arriving at a table         probe (c1)
    arriving at a query's leaf  evict (c2): a query without a table is a leaf alone, one with a table has it below
    leaving a table             `passing`, beside what it costs where it arrives
    a table                     `each`, for each tuple of the stream

`tree_cost` is an objective for any chooser; `lagrange`, `fptas` and `aggregate_tree` make it least.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from penstock.sharing.graph.configuration import STREAM
from penstock.sharing.model.eviction import Curve, Direct
from penstock.sharing.model.figures import Tree, responses

Array = NDArray[np.float64]


def curve(tree: Tree, i: int) -> Curve:
    """How the table of a node responds."""
    own = tree.curves[i] if tree.curves else None
    return Direct(tree.groups[i], tree.lengths[i]) if own is None else own


def outs_of(tree: Tree, buckets: Sequence[float]) -> list[float]:
    """out_i of every node in an epoch (Eq. 1); all that comes, where there is no table."""
    out: list[float] = []
    for parent, (entries, x) in zip(tree.parents, responses(tree, buckets), strict=True):
        out.append(entries + x * (tree.rows if parent == STREAM else out[parent]))
    return out


def tree_cost(tree: Tree, buckets: Sequence[float]) -> float:
    """C(T) of Eq. 2, for each tuple of the stream."""
    out = outs_of(tree, buckets)
    total = 0.0
    for i, parent in enumerate(tree.parents):
        fed = tree.rows if parent == STREAM else out[parent]
        if tree.tables[i]:
            total += fed * tree.probe[i] + out[i] * (tree.passing + tree.evict[i]) + tree.each * tree.rows
        else:
            total += fed * tree.evict[i]
    return total / tree.rows


def tree_costs(tree: Tree, buckets: Array) -> Array:
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


def arrivals(tree: Tree) -> list[float]:
    """h_i, by node and last for the stream: what one entry costs at once that leaves it.

    Tables below take it in and pass on what they will; a node without one passes it straight on.
    """
    costs = [tree.passing + evict if table else 0.0 for evict, table in zip(tree.evict, tree.tables, strict=True)]
    costs.append(0.0)
    for i in range(len(tree.parents) - 1, -1, -1):
        costs[tree.parents[i]] += tree.probe[i] if tree.tables[i] else tree.evict[i] + costs[i]
    return costs


def feeder(tree: Tree, i: int) -> int:
    """The nearest node above that has a table."""
    parent = tree.parents[i]
    while parent != STREAM and not tree.tables[parent]:
        parent = tree.parents[parent]
    return parent
