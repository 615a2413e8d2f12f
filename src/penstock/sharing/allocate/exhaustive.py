"""Exhaustive space allocation ES (seed smap, Sec. 6.3), exact by dynamic programming.

The paper tries every division of M in steps of 1 %, 10^9 of them for seven tables.  But what happens below a relation
does not depend on what stands above it: with F_R(s) the least cost of a record that reaches R when R and all below it
have s steps of memory,

    F_R(s) = min over s0 of  c1 + x_R(s0)·(c2 if R is a query + G_R(s − s0)),    G_R(s) = min Σ F_child(s_child)

so a table of 101 numbers for each relation does (2 ms).  The yardstick for the heuristics of `registry`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from penstock.sharing.graph.configuration import STREAM
from penstock.sharing.model.collision import rates
from penstock.sharing.model.figures import PlantedTree

Array = NDArray[np.float64]
STEPS = 100


def exhaustive(tree: PlantedTree, steps: int = STEPS, *, optional: bool = False) -> list[float]:
    """The best division of the memory into that many steps; every table gets at least one.

    With `optional`, a leaf query may have no table at all where that is cheaper.
    """
    count = len(tree.parents)
    grid = np.arange(steps + 1)
    fed: list[list[int]] = [[] for _ in range(count + 1)]  # by node; the last one is the stream's
    for i, parent in enumerate(tree.parents):
        fed[parent].append(i)
    best: list[Array] = [np.empty(0)] * count
    own: list[NDArray[np.intp]] = [np.empty(0, dtype=np.intp)] * count
    shares: dict[int, NDArray[np.intp]] = {}

    def feed(node: int) -> Array:
        """G of what a node feeds; `shares[child]` remembers what goes to the child and not to those before it."""
        total = np.zeros(steps + 1)
        for child in fed[node]:
            total, shares[child] = _join(total, best[child])
        return total

    for i in range(count - 1, -1, -1):
        below = tree.evict[i] + feed(i)
        if not tree.tables[i]:
            best[i], own[i] = below, np.zeros(steps + 1, dtype=np.intp)
            continue
        x = _rates(tree, i, grid * (tree.memory / steps / tree.entries[i]))
        probes = np.full(steps + 1, float(tree.probe[i]))
        probes[0] = 0.0 if optional and not fed[i] else np.inf
        best[i], own[i] = _divide(probes, x, below)
    feed(STREAM)
    return _unfold(tree, fed, own, shares, steps)


def _rates(tree: PlantedTree, i: int, buckets: NDArray[np.floating]) -> Array:
    """x of a table with each of these numbers of buckets."""
    curve = tree.curves[i] if tree.curves else None
    if curve is None:
        return rates(tree.groups[i], buckets, tree.lengths[i])
    return np.array([curve.response(float(b), tree.rows)[1] for b in buckets])


def _band(values: Array) -> Array:
    """values[s − s0] at [s, s0]; infinite where s0 > s."""
    size = len(values)
    padded = np.concatenate([np.full(size - 1, np.inf), values])
    windows = np.lib.stride_tricks.sliding_window_view(padded, size)
    return windows[:, ::-1]


def _join(one: Array, other: Array) -> tuple[Array, NDArray[np.intp]]:
    """min over t of one(s − t) + other(t), and the t of each s."""
    sums = _band(one) + other
    at = sums.argmin(axis=1)
    return sums[np.arange(len(one)), at], at


def _divide(probes: Array, x: Array, below: Array) -> tuple[Array, NDArray[np.intp]]:
    """min over s0 of probes(s0) + x(s0)·below(s − s0), and the s0 of each s."""
    # A rate of 0 times what cannot be divided so (∞) must stay infinite.
    costs = probes + np.maximum(x, np.finfo(float).tiny) * _band(below)
    at = costs.argmin(axis=1)
    return costs[np.arange(len(x)), at], at


def _unfold(
    tree: PlantedTree,
    fed: list[list[int]],
    own: list[NDArray[np.intp]],
    shares: dict[int, NDArray[np.intp]],
    steps: int,
) -> list[float]:
    """Hand the memory down: each node's steps to its table and, from the last child to the first, to what it feeds."""
    given = [0] * len(own)

    def hand(node: int, rest: int) -> None:
        for child in reversed(fed[node]):
            given[child] = int(shares[child][rest])
            rest -= given[child]

    hand(STREAM, steps)
    spaces = []
    for i in range(len(own)):
        table = int(own[i][given[i]])
        hand(i, given[i] - table)
        spaces.append(table * tree.memory / steps)
    return spaces
