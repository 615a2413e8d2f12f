"""Space allocation that is provably near the best: the FPTAS of seed aggregate-tree (Sec. VI, Algorithm 2).

For each table i and each number of tuples n that may reach it there is a *front*: allocations of i and all below it by
cost and memory, none both cheaper and smaller than another.  From the leaves up,

    front_i(n) = { (out·h_i + C, P_i(n, out) + M) :  (C, M) in the sum of front_x(out) over its children x }

over all levels out = g_i β^ℓ, with P_i the least memory b·s_i for which out_i(n, b) <= out (`levels`); costs
closer together than β are one.  A level rounds out up by β at most, and so the cost below it (Lemma 9.1: it is concave
in n); a front rounds it once more.  With L levels of tables and β = (1 + ε/2)^{1/(2L+1)} the result is within 1 + ε/2
of the best; the other half of ε saves work.

As printed the algorithm goes wrong in three places: line 8 adds buckets, where it needs memory b_i·s_i;
MinSumChildren subtracts exponents, where costs must be; and the tables must go on two steps beyond C_max.  Fronts know
their costs, so they need no budget β²C − βc for the children, nor entries for costs that nobody asks for.

Mostly there is no need for fronts: at the best price λ of memory, V − λM is a bound for all allocations (`lagrange`),
and what the price finds is within 1 + ε of it.  Else an allocation whose cost + λ·memory exceeds the bound by more than
the gap between it and the cost that is looked for cannot be the one (`_slack`), which leaves a few levels of each
table.  The paper took minutes.  Where even that would take many seconds, levels are coarser (`MOST_CELLS`), and what is
certain is a larger ε.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.sharing.allocate.lagrange import ROUGH, Market, descended, finished
from penstock.sharing.allocate.levels import Grid, Priced, cells, grid, prices, spaces_of, weighed
from penstock.sharing.graph.configuration import STREAM
from penstock.sharing.model.figures import Tree, buckets_of
from penstock.sharing.model.flow import arrivals, feeder, tree_cost

Array = NDArray[np.float64]
Ints = NDArray[np.intp]

EPSILON = 0.1
MOST_CELLS = 1_000_000  # of all P_i: about a second
MOST_FINISHED = 64  # allocations of the last front, cheapest first, that are tried with what they leave over


@dataclass(frozen=True)
class Front:
    """Allocations by cost (ascending) and memory (descending); `spaces` has a column for each table."""

    costs: Array
    memory: Array
    spaces: Array


def fptas(tree: Tree, epsilon: float = EPSILON) -> list[float]:
    """Spaces with which `outflow.tree_cost` is within 1 + ε of the least; they sum up to the memory at most."""
    market = Market(tree)
    nodes = list(market.tables)
    if not nodes:
        return [0.0] * len(tree.parents)
    bound, fitting = market.prices()
    known = finished(tree, nodes, np.array([each.spaces for each in fitting]))
    known = descended(tree, nodes, known)
    spent = tree.rows * (arrivals(tree)[STREAM] + tree.each * len(nodes))  # whatever the allocation
    cost = tree.rows * tree_cost(tree, buckets_of(tree, known))
    if cost <= (1.0 + epsilon) * (spent + bound * (1.0 - ROUGH)):
        return known
    return _by_fronts(tree, known, cost - spent, epsilon)


def _by_fronts(tree: Tree, known: list[float], cost: float, epsilon: float) -> list[float]:
    """Within 1 + ε, where an allocation of this cost (but for what all have) is known."""
    depth = _depth(tree)
    beta = (1.0 + epsilon / 2.0) ** (1.0 / (2 * depth + 1))
    beta **= max(1.0, cells(tree, beta) / MOST_CELLS) ** 0.5
    laid = grid(tree, beta)
    best, fitting = prices(laid)
    spaces = [np.array(known), *(spaces_of(laid, each.chosen) for each in fitting)]
    bound = best.value - best.price * tree.memory
    wanted = cost * (1.0 + epsilon / 2.0) / (1.0 + epsilon)  # what is not below this need not be found
    if wanted > bound:
        front = _whole(laid, best, wanted - bound, beta)
        found = np.zeros((len(front.costs), len(tree.parents)))
        found[:, laid.nodes] = front.spaces
        spaces += list(found[:MOST_FINISHED])
    return descended(tree, laid.nodes, finished(tree, laid.nodes, np.array(spaces)))


def _depth(tree: Tree) -> int:
    """L: levels of tables."""
    depths = {STREAM: 0}
    for i, table in enumerate(tree.tables):
        if table:
            depths[i] = depths[feeder(tree, i)] + 1
    return max(depths.values())


def _whole(laid: Grid, best: Priced, gap: float, beta: float) -> Front:
    """The front of all tables together."""
    slack = _slack(laid, best, gap)
    fronts: dict[int, dict[int, Front]] = {}
    for i in reversed(laid.nodes):
        reached = np.flatnonzero(slack[i] >= 0.0)
        weights = weighed(laid, best.values, i, best.price)[reached]
        near = weights <= (best.values[i] + slack[i])[reached, None]
        below = {
            int(level): _joined(laid, [fronts[x][int(level)] for x in laid.fed[i]], beta)
            for level in np.flatnonzero(near.any(axis=0))
        }
        fronts[i] = {}
        for row, n in enumerate(reached):
            levels = np.flatnonzero(near[row])
            limit, under = float(best.values[i][n] + slack[i][n]), [below[int(k)] for k in levels]
            fronts[i][int(n)] = _front(laid, i, int(n), levels, under, best.price, limit, beta)
    return _joined(laid, [fronts[x][0] for x in laid.fed[STREAM]], beta)


def _slack(laid: Grid, best: Priced, gap: float) -> dict[int, Array]:
    """By how much cost + λ·memory of a table and all below it may exceed the least, by what reaches the table.

    Excesses add up over the tree, and all of them together must stay within the gap; negative: not to be reached.
    """
    slack = {STREAM: np.array([gap])}
    for i in laid.nodes:
        slack[i] = np.full(len(laid.levels[feeder(laid.tree, i)]), -np.inf)
    for x in laid.fed[STREAM]:
        slack[x] = np.array([gap])
    for i in laid.nodes:
        excess = weighed(laid, best.values, i, best.price) - best.values[i][:, None]
        left = (slack[i][:, None] - excess).max(axis=0)
        for x in laid.fed[i]:
            slack[x] = left
    return slack


def _front(
    laid: Grid, i: int, n: int, levels: Ints, below: list[Front], price: float, limit: float, beta: float
) -> Front:
    """Of a table and all below it, when the n-th level of its feeder reaches it."""
    level = np.repeat(levels, [len(front.costs) for front in below])
    costs = np.concatenate([front.costs for front in below]) + laid.levels[i][level] * laid.arriving[i]
    needed = laid.needed[i][n, level]
    memory = np.concatenate([front.memory for front in below]) + needed
    kept = _kept(costs, memory, beta, np.flatnonzero((costs + price * memory <= limit) & (memory <= laid.tree.memory)))
    spaces = np.concatenate([front.spaces for front in below])[kept]
    spaces[:, laid.nodes.index(i)] = needed[kept]
    return Front(costs[kept], memory[kept], spaces)


def _joined(laid: Grid, fronts: list[Front], beta: float) -> Front:
    """Allocations of several children: sums of one of each.  Half by half, so that rounding adds up as rarely as it
    can."""
    if not fronts:
        return Front(np.zeros(1), np.zeros(1), np.zeros((1, len(laid.nodes))))
    finer = beta ** (1.0 / max(1, int(np.ceil(np.log2(len(fronts))))))
    while len(fronts) > 1:
        pairs = [_sum(laid, fronts[k], fronts[k + 1], finer) for k in range(0, len(fronts) - 1, 2)]
        fronts = pairs + fronts[len(pairs) * 2 :]
    return fronts[0]


def _sum(laid: Grid, one: Front, other: Front, beta: float) -> Front:
    costs = np.add.outer(one.costs, other.costs).ravel()
    memory = np.add.outer(one.memory, other.memory).ravel()
    kept = _kept(costs, memory, beta, np.flatnonzero(memory <= laid.tree.memory))
    first, second = np.divmod(kept, max(1, len(other.costs)))
    return Front(costs[kept], memory[kept], one.spaces[first] + other.spaces[second])


def _kept(costs: Array, memory: Array, beta: float, among: Ints) -> Ints:
    """Of those with the same power of β in their cost the one of least memory, if all that are cheaper need more."""
    if not len(among):
        return among
    order = among[np.lexsort((memory[among], costs[among]))]
    powers = np.floor(np.log(np.maximum(costs[order], 1e-300)) / np.log(beta))
    starts = np.flatnonzero(np.concatenate([[True], powers[1:] != powers[:-1]]))
    least = np.minimum.reduceat(memory[order], starts)
    before = np.concatenate([[np.inf], np.minimum.accumulate(least)[:-1]])
    wanted = np.repeat(np.where(least < before, least, -1.0), np.diff(starts, append=len(order)))
    at = np.flatnonzero(memory[order] == wanted)
    cells = np.searchsorted(starts, at, side="right")
    return order[at[np.diff(cells, prepend=0) > 0]]
