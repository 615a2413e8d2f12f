"""Memory at a price: the quick allocation, and a bound for all others.

With a price λ for each unit of memory, the least of cost + λ·memory needs no bookkeeping of memory: from the leaves up,

    V_i(n) = min over b of  out_i(n, b)·h_i + λ·b·s_i + Σ V_x(out_i(n, b))

x being the tables that i feeds (symbols of seed aggregate-tree, Sec. IV).  At the right price the memory is just used
up.  Whatever the price, V(n_R) − λ·M is at most the cost of any allocation within M: the bound that tells `fptas`
when it is done.

V is concave in n, the least of lines.  So a few dozen values of n do, with chords between them: they lie below V by the
square of the distance only, where rounding n itself would err by the distance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.sharing.graph.configuration import STREAM
from penstock.sharing.model.figures import PlantedTree
from penstock.sharing.model.flow import arrivals, curve, feeder, tree_costs

Array = NDArray[np.float64]

INPUTS = 32  # numbers of records for which V is kept
ROUNDS = 16  # prices that are tried
MOVES, FEW_MOVES = 32, 8  # of memory from one table to another, in the end
ROUGH = 0.003  # of the cost: how far the bound may be above the true one, for entries are tried in steps


@dataclass(frozen=True)
class MarketTable:
    """Of a node: what may reach it, numbers of entries with their memory, what it passes on (by both), and what an
    entry costs at once that leaves it."""

    inputs: Array
    entries: Array
    memory: Array
    outs: Array
    arriving: float
    children: list[int]


@dataclass(frozen=True)
class PricedSpaces:
    """Of a price: the least of cost + price · memory, and the allocation that has it, roughly."""

    price: float
    value: float
    cost: float
    memory: float
    spaces: Array


class Market:
    """The tables of a tree, feeders first."""

    def __init__(self, tree: PlantedTree) -> None:
        self.tree = tree
        self.tables: dict[int, MarketTable] = {}
        self.roots: list[int] = []
        costs = arrivals(tree)
        for i, table in enumerate(tree.tables):
            if table:
                above = feeder(tree, i)
                (self.roots if above == STREAM else self.tables[above].children).append(i)
                self.tables[i] = self._table(i, above, costs[i])

    def _table(self, i: int, above: int, arriving: float) -> MarketTable:
        response, rows = curve(self.tree, i), float(self.tree.rows)
        inputs = np.array([rows])
        if above != STREAM:
            outs = self.tables[above].outs
            inputs = np.unique(np.geomspace(max(1.0, float(outs.min())), max(1.0, float(outs.max())), INPUTS))
        entries = response.grid(np.inf)
        return MarketTable(
            inputs, entries, entries * self.tree.entries[i],
            response.outs(entries[None, :], inputs[:, None]), arriving, [],
        )  # fmt: skip

    def priced(self, price: float) -> PricedSpaces:
        values: dict[int, Array] = {}
        for i in reversed(self.tables):
            table = self.tables[i]
            values[i] = self._weighed(table, table.outs, price, values).min(axis=1)
        spaces, out, cost = np.zeros(len(self.tree.parents)), {STREAM: float(self.tree.rows)}, 0.0
        for i, table in self.tables.items():
            fed = out[feeder(self.tree, i)]
            outs = curve(self.tree, i).outs(table.entries, np.array(fed))
            best = int(self._weighed(table, outs, price, values).argmin())
            spaces[i], out[i] = table.memory[best], float(outs[best])
            cost += out[i] * table.arriving
        return PricedSpaces(price, sum(float(values[i][0]) for i in self.roots), cost, float(spaces.sum()), spaces)

    def _weighed(self, table: MarketTable, outs: Array, price: float, values: dict[int, Array]) -> Array:
        found = outs * table.arriving + price * table.memory
        for x in table.children:
            found = found + np.interp(outs, self.tables[x].inputs, values[x])
        return found

    def prices(self) -> tuple[float, list[PricedSpaces]]:
        """The highest bound, and of all that were tried those within the memory."""
        memory = self.tree.memory
        free = self.priced(0.0)
        if free.memory <= memory:
            return free.value, [free]
        nothing = sum(self.tree.rows * table.arriving for table in self.tables.values())
        low, high = free, PricedSpaces(np.inf, nothing, nothing, 0.0, np.zeros(len(self.tree.parents)))
        bound, fitting = free.value, [high]
        for _ in range(ROUNDS):
            # Where the lines cost + price · memory of the two meet: the bound is highest there, or between.
            price = max(0.0, high.cost - low.cost) / max(low.memory - high.memory, 1e-9)
            found = self.priced(price)
            bound = max(bound, found.value - price * memory)
            if found.memory <= memory:
                fitting.append(found)
            if found.memory <= high.memory or found.memory >= low.memory:
                break
            low, high = (low, found) if found.memory <= memory else (found, high)
        return bound, fitting


def lagrange(tree: PlantedTree) -> list[float]:
    """Spaces by price; they sum up to the memory at most."""
    market = Market(tree)
    if not market.tables:
        return [0.0] * len(tree.parents)
    _, fitting = market.prices()
    nodes = list(market.tables)
    found = finished(tree, nodes, np.array([each.spaces for each in fitting]))
    return descended(tree, nodes, found, FEW_MOVES)


def finished(tree: PlantedTree, nodes: Sequence[int], spaces: Array) -> list[float]:
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


def descended(tree: PlantedTree, nodes: Sequence[int], spaces: Sequence[float], moves: int = MOVES) -> list[float]:
    """The same after moving memory between any two tables where that saves, less and less of it."""
    entries, here = np.array(tree.entries), np.array(spaces)
    most = np.array([curve(tree, i).most * tree.entries[i] for i in nodes])
    own = np.array(list(nodes))
    cost = float(tree_costs(tree, here[None, :] / entries)[0])
    share = 0.5
    for _ in range(moves):
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
