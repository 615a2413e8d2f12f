"""Memory at a price: the quick allocation, and the bounds that make the exact one quick.

With a price λ for each unit of memory, the least of cost + λ·memory needs no bookkeeping of memory: from the leaves up,

    V_i(n) = min over levels out of  out·h_i + λ·P_i(n, out) + Σ V_x(out)

P_i(n, out) being the least memory with which table i passes on at most `out` of n tuples, and x the tables it feeds
(symbols of seed aggregate-tree, Sec. VI; levels out = g_i β^ℓ are those of its Algorithm 2).  At the right price the
memory is just used up.  Whatever the price, V(n_R) − λ·M is at most the cost of any allocation within M, which tells
`fptas` what it need not look at; and what the price finds is mostly within a percent of the best (`lagrange`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.sharing.configuration import STREAM
from penstock.sharing.outflow import arrivals, curve, feeder, tree_cost, tree_costs
from penstock.sharing.tree import Tree, buckets_of

Array = NDArray[np.float64]
Ints = NDArray[np.intp]

COARSE = 1.05  # ratio of levels of the quick allocation
STEPS = 64  # numbers of entries that a curve is inverted with
ROUNDS = 24  # prices that are tried
MOVES = 24  # of memory from one table to another, in the end


@dataclass(frozen=True)
class Grid:
    """Tables of a tree (`nodes`, feeders first), what each feeds, and for each its levels and P (rows: what reaches it,
    the levels of its feeder)."""

    tree: Tree
    nodes: list[int]
    fed: dict[int, list[int]]
    levels: dict[int, Array]
    needed: dict[int, Array]
    arriving: list[float]


@dataclass(frozen=True)
class Priced:
    """Of a price: V of each table by what reaches it, the level it takes there, and what that uses of the memory."""

    price: float
    values: dict[int, Array]
    chosen: dict[int, Ints]
    cost: float
    memory: float

    @property
    def value(self) -> float:
        return self.cost + self.price * self.memory


def grid(tree: Tree, beta: float) -> Grid:
    nodes = [i for i, table in enumerate(tree.tables) if table]
    fed: dict[int, list[int]] = {STREAM: [], **{i: [] for i in nodes}}
    levels = {STREAM: np.array([float(tree.rows)])}
    needed = {}
    for i in nodes:
        above = feeder(tree, i)
        fed[above].append(i)
        levels[i] = _levels(tree, i, beta, float(levels[above][-1]))
        needed[i] = _needed(tree, i, levels[above], levels[i])
    return Grid(tree, nodes, fed, levels, needed, arrivals(tree))


def _levels(tree: Tree, i: int, beta: float, most: float) -> Array:
    """g_i β^ℓ, from the least that the table can pass on up to all that may come."""
    response = curve(tree, i)
    least = max(1.0, min(most, response.out(response.most, most)))
    steps = int(np.ceil(np.log(most / least) / np.log(beta) - 1e-9))
    return least * beta ** np.arange(max(0, steps) + 1)


def _needed(tree: Tree, i: int, tuples: Array, levels: Array) -> Array:
    """P: the least memory with which the table passes on each level at most (columns) of each number of tuples."""
    response = curve(tree, i)
    entries = response.grid(np.inf, STEPS)
    # The more entries the less comes out (and what does not obey that is no gain): from the right, it rises.
    rising = np.minimum.accumulate(response.outs(entries[None, :], tuples[:, None]), axis=1)[:, ::-1]
    falling = entries[::-1]
    reach = levels * (1.0 + 1e-9)
    needed = np.array([np.interp(reach, each, falling, left=np.inf, right=0.0) for each in rising])
    needed[reach[None, :] >= tuples[:, None]] = 0.0
    return needed * tree.entries[i]


def priced(grid: Grid, price: float) -> Priced:
    """The least of cost + price · memory."""
    values: dict[int, Array] = {}
    chosen: dict[int, Ints] = {}
    for i in reversed(grid.nodes):
        sums = weighed(grid, values, i, price)
        chosen[i] = sums.argmin(axis=1)
        values[i] = sums[np.arange(len(sums)), chosen[i]]
    levels = taken(grid, chosen)
    memory = sum(float(grid.needed[i][levels[feeder(grid.tree, i)], levels[i]]) for i in grid.nodes)
    value = sum(float(values[i][0]) for i in grid.fed[STREAM])
    return Priced(price, values, chosen, value - price * memory, memory)


def weighed(grid: Grid, values: dict[int, Array], i: int, price: float) -> Array:
    """Of a table, cost + price · memory of it and all below: by what reaches it, and by level."""
    below = grid.levels[i] * grid.arriving[i]
    for x in grid.fed[i]:
        below = below + values[x]
    needed = grid.needed[i]
    return below + (price * needed if price > 0.0 else np.where(np.isinf(needed), np.inf, 0.0))


def taken(grid: Grid, chosen: dict[int, Ints]) -> dict[int, int]:
    """The level that each table takes, from the stream down."""
    levels = {STREAM: 0}
    for i in grid.nodes:
        levels[i] = int(chosen[i][levels[feeder(grid.tree, i)]])
    return levels


def spaces_of(grid: Grid, chosen: dict[int, Ints]) -> Array:
    """Of every node of the tree."""
    levels = taken(grid, chosen)
    spaces = np.zeros(len(grid.tree.parents))
    for i in grid.nodes:
        spaces[i] = grid.needed[i][levels[feeder(grid.tree, i)], levels[i]]
    return spaces


def changing(grid: Grid, spaces: Sequence[float]) -> float:
    """The cost of an epoch but for what no allocation changes, what the stream itself meets: as V counts it."""
    tree = grid.tree
    whole = tree.rows * tree_cost(tree, buckets_of(tree, spaces))
    return whole - tree.rows * (grid.arriving[STREAM] + tree.each * len(grid.nodes))


def prices(grid: Grid) -> tuple[Priced, list[Priced]]:
    """The price with the highest bound, and of all that were tried those within the memory."""
    memory = grid.tree.memory
    free = priced(grid, 0.0)
    if free.memory <= memory:
        return free, [free]
    low, high = free, priced(grid, 2.0 * free.value / max(memory, 1e-9) + 1.0)
    best, fitting = free, [high] if high.memory <= memory else []
    for _ in range(ROUNDS):
        # Where the two lines cost + price · (memory − M) meet: the bound can be highest there only.
        middle = (high.cost - low.cost) / max(low.memory - high.memory, 1e-9)
        found = priced(grid, middle)
        bound = found.value - middle * memory
        if bound > best.value - best.price * memory:
            best = found
        if found.memory <= memory:
            fitting.append(found)
        if found.memory in (low.memory, high.memory) or found.value >= low.cost + middle * low.memory - 1e-9 * bound:
            break
        low, high = (low, found) if found.memory <= memory else (found, high)
    return best, fitting


def lagrange(tree: Tree, beta: float = COARSE) -> list[float]:
    """Spaces by price; they sum up to the memory at most."""
    laid = grid(tree, beta)
    if not laid.nodes:
        return [0.0] * len(tree.parents)
    _, fitting = prices(laid)
    found = np.array([spaces_of(laid, each.chosen) for each in fitting] or [np.zeros(len(tree.parents))])
    return finished(tree, laid.nodes, found)


def finished(tree: Tree, nodes: Sequence[int], spaces: Array) -> list[float]:
    """The best of these allocations, with what it leaves over given to the tables where it saves most, one by one."""
    entries = np.array(tree.entries)
    most = np.zeros(len(entries))
    most[list(nodes)] = [curve(tree, i).most * tree.entries[i] for i in nodes]
    best = spaces[int(np.argmin(tree_costs(tree, spaces / entries)))]
    for _ in nodes:
        left = max(0.0, tree.memory - float(best.sum()))
        if left <= 1e-9 * tree.memory:
            break
        tried = np.repeat(best[None, :], len(nodes), axis=0)
        at = np.arange(len(nodes)), list(nodes)
        tried[at] = np.maximum(tried[at], np.minimum(most[list(nodes)], tried[at] + left))
        costs = tree_costs(tree, np.concatenate([best[None, :], tried]) / entries)
        if costs.argmin() == 0 or costs.min() >= costs[0] * (1.0 - 1e-9):
            break
        best = tried[int(costs.argmin()) - 1]
    return [float(space) for space in best]


def descended(tree: Tree, nodes: Sequence[int], spaces: Sequence[float]) -> list[float]:
    """The same after moving memory between any two tables where that saves, less and less of it."""
    entries, here = np.array(tree.entries), np.array(spaces)
    most = np.array([curve(tree, i).most * tree.entries[i] for i in nodes])
    own = np.array(list(nodes))
    cost = float(tree_costs(tree, here[None, :] / entries)[0])
    share = 0.5
    for _ in range(MOVES):
        given = share * here[own]
        tried = np.repeat(here[None, :], len(own) ** 2, axis=0)
        giver, taker = np.divmod(np.arange(len(own) ** 2), len(own))
        moved = np.minimum(given[giver], np.maximum(0.0, most - here[own])[taker])
        moved[giver == taker] = 0.0
        rows = np.arange(len(tried))
        tried[rows, own[giver]] -= moved
        tried[rows, own[taker]] += moved
        costs = tree_costs(tree, tried / entries)
        if costs.min() < cost * (1.0 - 1e-6):
            cost, here = float(costs.min()), tried[int(costs.argmin())]
        elif share < 0.01:
            break
        else:
            share /= 2.0
    return [float(space) for space in here]
