"""Levels of what each table passes on: the grid that `fptas` works on, and memory at a price on it.

Symbols of seed aggregate-tree, Sec. VI.  Table i has levels out = g_i β^ℓ, which are what may reach the tables x it
feeds; P_i(n, out) is the least memory with which it passes on at most `out` of n tuples.  With a price λ for each unit
of memory, cost + λ·memory is least where

    V_i(n) = min over levels out of  out·h_i + λ·P_i(n, out) + Σ V_x(out)

and V(n_R) − λ·M is at most the cost of any allocation on these levels that keeps within M: that is how `fptas` knows
what it need not look at.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.sharing.graph.configuration import STREAM
from penstock.sharing.model.figures import Tree
from penstock.sharing.model.flow import arrivals, curve, feeder

Array = NDArray[np.float64]
Ints = NDArray[np.intp]

STEPS = 64  # numbers of entries that a curve is inverted with
ROUNDS = 24  # prices that are tried


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


def cells(tree: Tree, beta: float) -> float:
    """How many numbers the grid has, about: as 1/ln² β."""
    sizes, tops, total = {STREAM: 1}, {STREAM: float(tree.rows)}, 0.0
    for i, table in enumerate(tree.tables):
        if table:
            above = feeder(tree, i)
            levels = _levels(tree, i, beta, tops[above])
            sizes[i], tops[i] = len(levels), float(levels[-1])
            total += sizes[above] * sizes[i]
    return total


def _levels(tree: Tree, i: int, beta: float, most: float) -> Array:
    """g_i β^ℓ, from the least that the table can pass on up to all that may come."""
    response = curve(tree, i)
    least = max(1.0, min(most, response.out(response.most, most)))
    steps = int(np.ceil(np.log(most / least) / np.log(beta) - 1e-9))
    return np.asarray(least * beta ** np.arange(max(0, steps) + 1), np.float64)


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
    return np.asarray(needed * tree.entries[i], np.float64)


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


def prices(grid: Grid) -> tuple[Priced, list[Priced]]:
    """The price with the highest bound, and of all that were tried those within the memory."""
    memory = grid.tree.memory
    free = priced(grid, 0.0)
    if free.memory <= memory:
        return free, [free]
    # At such a price nothing is bought.
    low, high = free, priced(grid, 1e6 * (free.value + grid.tree.rows * sum(grid.arriving)))
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
