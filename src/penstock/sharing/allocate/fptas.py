"""Space allocation that is provably near the best: the FPTAS of seed aggregate-tree (Sec. VI, Algorithm 2).

For each table i and each number of records n that may reach it there is a *front*: allocations of i and all below it by
cost and memory, none both cheaper and smaller than another.  From the leaves up,

    front_i(n) = { (out·h_i + C, P_i(n, out) + M) :  (C, M) in the sum of front_x(out) over its children x }

over all levels out = g_i β^ℓ, with P_i the least memory b·s_i for which out_i(n, b) <= out (`Grid`); costs closer
together than β are one.  A level rounds out up by β at most, and so the cost below it (Lemma 9.1: it is concave
in n); a front rounds it once more.  With L levels of tables and β = (1 + ε/2)^{1/(2L+1)} the result is within 1 + ε/2
of the best; the other half of ε saves work.

As printed the algorithm goes wrong in three places: line 8 adds buckets, where it needs memory b_i·s_i;
MinSumChildren subtracts exponents, where costs must be; and the tables must go on two steps beyond C_max.  Fronts know
their costs, so they need no budget β²C − βc for the children, nor entries for costs that nobody asks for.

Mostly there is no need for fronts: at the best price λ of memory, V − λM is a bound for all allocations (`lagrange`),
and what the price finds is within 1 + ε of it.  Else the same is done on the levels,

    V_i(n) = min over levels out of  out·h_i + λ·P_i(n, out) + Σ V_x(out)

where V(n_R) − λ·M is at most the cost of any allocation on these levels that keeps within M.  An allocation whose
cost + λ·memory exceeds that bound by more than the gap between it and the cost that is looked for cannot be the one
(`_slack`), which leaves a few levels of each table.  The paper took minutes.  Where even that would take many seconds,
levels are coarser (`MOST_CELLS`), and what is certain is a larger ε.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.sharing.allocate.lagrange import ROUGH, Market, descended, finished
from penstock.sharing.graph.configuration import STREAM
from penstock.sharing.model.figures import PlantedTree, buckets_of
from penstock.sharing.model.flow import arrivals, curve, feeder, tree_cost

Array = NDArray[np.float64]
Ints = NDArray[np.intp]

EPSILON = 0.1
MOST_CELLS = 1_000_000  # of all P_i: about a second
STEPS = 64  # numbers of entries that a curve is inverted with
ROUNDS = 24  # prices that are tried
MOST_FINISHED = 64  # allocations of the last front, cheapest first, that are tried with what they leave over


@dataclass(frozen=True)
class Front:
    """Allocations by cost (ascending) and memory (descending); `spaces` has a column for each table."""

    costs: Array
    memory: Array
    spaces: Array


@dataclass(frozen=True)
class Grid:
    """Tables of a tree (`nodes`, feeders first), what each feeds, and for each its levels and P (rows: what reaches it,
    the levels of its feeder)."""

    tree: PlantedTree
    nodes: list[int]
    fed: dict[int, list[int]]
    levels: dict[int, Array]
    needed: dict[int, Array]
    arriving: list[float]


@dataclass(frozen=True)
class PricedLevels:
    """Of a price: V of each table by what reaches it, the level it takes there, and what that uses of the memory."""

    price: float
    values: dict[int, Array]
    chosen: dict[int, Ints]
    cost: float
    memory: float

    @property
    def value(self) -> float:
        return self.cost + self.price * self.memory


def fptas(tree: PlantedTree, epsilon: float = EPSILON) -> list[float]:
    """Spaces with which `flow.tree_cost` is within 1 + ε of the least; they sum up to the memory at most."""
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


def _by_fronts(tree: PlantedTree, known: list[float], cost: float, epsilon: float) -> list[float]:
    """Within 1 + ε, where an allocation of this cost (but for what all have) is known."""
    depth = _depth(tree)
    beta = (1.0 + epsilon / 2.0) ** (1.0 / (2 * depth + 1))
    beta **= max(1.0, _cells(tree, beta) / MOST_CELLS) ** 0.5
    laid = _grid(tree, beta)
    best, fitting = _prices(laid)
    spaces = [np.array(known), *(_spaces_of(laid, each.chosen) for each in fitting)]
    bound = best.value - best.price * tree.memory
    wanted = cost * (1.0 + epsilon / 2.0) / (1.0 + epsilon)  # what is not below this need not be found
    if wanted > bound:
        front = _whole(laid, best, wanted - bound, beta)
        found = np.zeros((len(front.costs), len(tree.parents)))
        found[:, laid.nodes] = front.spaces
        spaces += list(found[:MOST_FINISHED])
    return descended(tree, laid.nodes, finished(tree, laid.nodes, np.array(spaces)))


def _depth(tree: PlantedTree) -> int:
    """L: levels of tables."""
    depths = {STREAM: 0}
    for i, table in enumerate(tree.tables):
        if table:
            depths[i] = depths[feeder(tree, i)] + 1
    return max(depths.values())


def _whole(laid: Grid, best: PricedLevels, gap: float, beta: float) -> Front:
    """The front of all tables together."""
    slack = _slack(laid, best, gap)
    fronts: dict[int, dict[int, Front]] = {}
    for i in reversed(laid.nodes):
        reached = np.flatnonzero(slack[i] >= 0.0)
        weights = _weighed(laid, best.values, i, best.price)[reached]
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


def _slack(laid: Grid, best: PricedLevels, gap: float) -> dict[int, Array]:
    """By how much cost + λ·memory of a table and all below it may exceed the least, by what reaches the table.

    Excesses add up over the tree, and all of them together must stay within the gap; negative: not to be reached.
    """
    slack = {STREAM: np.array([gap])}
    for i in laid.nodes:
        slack[i] = np.full(len(laid.levels[feeder(laid.tree, i)]), -np.inf)
    for x in laid.fed[STREAM]:
        slack[x] = np.array([gap])
    for i in laid.nodes:
        excess = _weighed(laid, best.values, i, best.price) - best.values[i][:, None]
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


def _grid(tree: PlantedTree, beta: float) -> Grid:
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


def _cells(tree: PlantedTree, beta: float) -> float:
    """How many numbers the grid has, about: as 1/ln² β."""
    sizes, tops, total = {STREAM: 1}, {STREAM: float(tree.rows)}, 0.0
    for i, table in enumerate(tree.tables):
        if table:
            above = feeder(tree, i)
            levels = _levels(tree, i, beta, tops[above])
            sizes[i], tops[i] = len(levels), float(levels[-1])
            total += sizes[above] * sizes[i]
    return total


def _levels(tree: PlantedTree, i: int, beta: float, most: float) -> Array:
    """g_i β^ℓ, from the least that the table can pass on up to all that may come."""
    response = curve(tree, i)
    least = max(1.0, min(most, response.out(response.most, most)))
    steps = int(np.ceil(np.log(most / least) / np.log(beta) - 1e-9))
    return np.asarray(least * beta ** np.arange(max(0, steps) + 1), np.float64)


def _needed(tree: PlantedTree, i: int, tuples: Array, levels: Array) -> Array:
    """P: the least memory with which the table passes on each level at most (columns) of each number of records."""
    response = curve(tree, i)
    entries = response.grid(np.inf, STEPS)
    # The more entries the less comes out (and what does not obey that is no gain): from the right, it rises.
    rising = np.minimum.accumulate(response.outs(entries[None, :], tuples[:, None]), axis=1)[:, ::-1]
    falling = entries[::-1]
    reach = levels * (1.0 + 1e-9)
    needed = np.array([np.interp(reach, each, falling, left=np.inf, right=0.0) for each in rising])
    needed[reach[None, :] >= tuples[:, None]] = 0.0
    return np.asarray(needed * tree.entries[i], np.float64)


def _priced(laid: Grid, price: float) -> PricedLevels:
    """The least of cost + price · memory."""
    values: dict[int, Array] = {}
    chosen: dict[int, Ints] = {}
    for i in reversed(laid.nodes):
        sums = _weighed(laid, values, i, price)
        chosen[i] = sums.argmin(axis=1)
        values[i] = sums[np.arange(len(sums)), chosen[i]]
    levels = _taken(laid, chosen)
    memory = sum(float(laid.needed[i][levels[feeder(laid.tree, i)], levels[i]]) for i in laid.nodes)
    value = sum(float(values[i][0]) for i in laid.fed[STREAM])
    return PricedLevels(price, values, chosen, value - price * memory, memory)


def _weighed(laid: Grid, values: dict[int, Array], i: int, price: float) -> Array:
    """Of a table, cost + price · memory of it and all below: by what reaches it, and by level."""
    below = laid.levels[i] * laid.arriving[i]
    for x in laid.fed[i]:
        below = below + values[x]
    needed = laid.needed[i]
    return below + (price * needed if price > 0.0 else np.where(np.isinf(needed), np.inf, 0.0))


def _taken(laid: Grid, chosen: dict[int, Ints]) -> dict[int, int]:
    """The level that each table takes, from the stream down."""
    levels = {STREAM: 0}
    for i in laid.nodes:
        levels[i] = int(chosen[i][levels[feeder(laid.tree, i)]])
    return levels


def _spaces_of(laid: Grid, chosen: dict[int, Ints]) -> Array:
    """Of every node of the tree."""
    levels = _taken(laid, chosen)
    spaces = np.zeros(len(laid.tree.parents))
    for i in laid.nodes:
        spaces[i] = laid.needed[i][levels[feeder(laid.tree, i)], levels[i]]
    return spaces


def _prices(laid: Grid) -> tuple[PricedLevels, list[PricedLevels]]:
    """The price with the highest bound, and of all that were tried those within the memory."""
    memory = laid.tree.memory
    free = _priced(laid, 0.0)
    if free.memory <= memory:
        return free, [free]
    # At such a price nothing is bought.
    low, high = free, _priced(laid, 1e6 * (free.value + laid.tree.rows * sum(laid.arriving)))
    best, fitting = free, [high] if high.memory <= memory else []
    for _ in range(ROUNDS):
        # Where the two lines cost + price · (memory − M) meet: the bound can be highest there only.
        middle = (high.cost - low.cost) / max(low.memory - high.memory, 1e-9)
        found = _priced(laid, middle)
        bound = found.value - middle * memory
        if bound > best.value - best.price * memory:
            best = found
        if found.memory <= memory:
            fitting.append(found)
        if found.memory in (low.memory, high.memory) or found.value >= low.cost + middle * low.memory - 1e-9 * bound:
            break
        low, high = (low, found) if found.memory <= memory else (found, high)
    return best, fitting
