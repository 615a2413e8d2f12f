"""Space allocation for uniform data: all or nothing (seed aggregate-tree, Sec. VII).

Where all groups are equally frequent, what a table passes on falls in proportion to its memory (Eq. 5), so the cost of
two tables is c_0 − c_1 m_1 − c_2 m_2 + c_3 m_1 m_2 with c_3 >= 0: moving memory from one to the other never hurts in
one of the two directions.  So in some best allocation all tables are whole or have nothing, except for one at most
(Theorem 3).  Which ones is a knapsack: up to `EXACT` tables all sets are tried, each with every table that may have the
rest; with more, tables change places one and two at a time until nothing is gained.

Any tree is taken, whatever its curves; the allocation is the best there is where they are uniform.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock.sharing.model.figures import PlantedTree
from penstock.sharing.model.flow import curve, tree_costs

Array = NDArray[np.float64]
Bits = NDArray[np.bool_]

EXACT = 10
BATCH = 4096


def all_or_nothing(tree: PlantedTree) -> list[float]:
    """Spaces that are whole or 0 but for one."""
    nodes = [i for i, table in enumerate(tree.tables) if table]
    if not nodes:
        return [0.0] * len(tree.parents)
    whole = np.array([curve(tree, i).most * tree.entries[i] for i in nodes])
    if whole.sum() <= tree.memory:
        best = whole
    elif len(nodes) <= EXACT:
        sets = (np.arange(1 << len(nodes))[:, None] >> np.arange(len(nodes)) & 1).astype(bool)
        best, _ = _best(tree, nodes, whole, sets)
    else:
        best = _exchanged(tree, nodes, whole)
    spaces = np.zeros(len(tree.parents))
    spaces[nodes] = best
    return [float(space) for space in spaces]


def _best(tree: PlantedTree, nodes: list[int], whole: Array, sets: Bits) -> tuple[Array, float]:
    """The best allocation of those in which the tables of a set are whole and one other has the rest; and its cost."""
    sets = sets[sets @ whole <= tree.memory * (1.0 + 1e-12)]
    best, least = np.zeros(len(nodes)), np.inf
    for start in range(0, len(sets), BATCH):
        given = np.where(sets[start : start + BATCH], whole, 0.0)
        left = np.maximum(0.0, tree.memory - given.sum(axis=1))
        tried = [given]
        for k in range(len(nodes)):
            more = given.copy()
            more[:, k] = np.where(given[:, k] > 0.0, given[:, k], np.minimum(left, whole[k]))
            tried.append(more)
        together = np.concatenate(tried)
        buckets = np.zeros((len(together), len(tree.parents)))
        buckets[:, nodes] = together / np.array([tree.entries[i] for i in nodes])
        costs = tree_costs(tree, buckets)
        if costs.min() < least:
            best, least = together[int(costs.argmin())], float(costs.min())
    return best, least


def _exchanged(tree: PlantedTree, nodes: list[int], whole: Array) -> Array:
    """From the smallest tables on: take one in, leave one out, or change two, while that saves."""
    count = len(nodes)
    here = np.zeros(count, bool)
    here[np.argsort(whole)[: int((np.cumsum(np.sort(whole)) <= tree.memory).sum())]] = True
    best, cost = _best(tree, nodes, whole, here[None, :])
    single = np.eye(count, dtype=bool)
    pairs = np.array([single[a] | single[b] for a in range(count) for b in range(a)])
    changes = np.concatenate([single, pairs])
    while True:
        found, less = _best(tree, nodes, whole, here ^ changes)
        if less >= cost * (1.0 - 1e-9):
            return best
        best, cost = found, less
        here = best >= whole * (1.0 - 1e-12)
