"""Phantom choosing: which phantoms to keep (seed smap, Sec. 4).

    gc     greedy by increasing collision rates: memory is allocated again for every candidate (Fig. 6)
    gp     greedy by increasing space: φ·g buckets for each relation, while any candidate fits (Fig. 5); φ is tuned
           unless it is told, and what is left over of the memory is spread (Sec. 8.4) or not (Fig. 5 as printed)
    epes   all sets of phantoms: the yardstick, for small sets of queries only
    tree   unions of siblings, for dozens and hundreds of queries (`aggregate_tree`; seed aggregate-tree, Sec. V)
    algorithm-1  the same as that paper prints it: memory is allocated for every pair of siblings (`printed_tree`)

Any chooser works with any allocator of `allocate.registry` and any kind of table.  `fronts` takes tables from queries
that do better without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import inf
from time import thread_time

from penstock.errors import ConfigError
from penstock.sharing.choose.aggregate_tree import aggregate_tree
from penstock.sharing.choose.printed_tree import printed_tree
from penstock.sharing.choose.search import ChosenTables, Objective, RelationForest, Search, Step
from penstock.sharing.graph.configuration import Configuration, arrange, arranged
from penstock.sharing.graph.grain import Grain
from penstock.sharing.model.figures import buckets_of, given, plant
from penstock.sharing.model.flow import flows, tuple_cost
from penstock.sharing.model.problem import Problem

# Subsets of more candidates than this take minutes.
MOST_EXHAUSTIVE = 16
# How many times other parents are tried.
MOST_SETTLING = 4
# φ that GP is tried with where none is told: Fig. 16 of seed smap goes from about 0.6 to 3.
TUNED = (1.0, 0.4, 0.6, 0.8, 1.2, 1.4, 1.6, 1.8, 2.0, 2.5, 3.0)


def choose(
    name: str,
    problem: Problem,
    alloc: str,
    *,
    phi: float | None = None,
    spread: bool = True,
    fronts: bool = True,
    objective: Objective = tuple_cost,
    phantoms: Iterable[Grain] | None = None,
    ends: float = inf,
    start: Configuration | None = None,
) -> ChosenTables:
    """The configuration that this chooser finds; `phi` is GP's φ (None: the one of `TUNED` with the least cost), and
    with `spread=False` its tables keep φ·g buckets.  `phantoms` are the candidates (None: all unions).

    `objective` is what becomes least: the cost of a record without flushes (`flow.tuple_cost`, Eq. 7 of seed smap), or
    with its part of them (`flow.tree_cost`, Eq. 2 of seed aggregate-tree).  With `fronts=False`, only relations that
    feed others have tables; in a `tree` that is always so, and its candidates are unions of siblings, whatever
    `phantoms` says.  All but EPES take what they have when the thread's processor time is `ends`; a tree may `start`
    from an earlier one.
    """
    if name == "tree":
        return aggregate_tree(problem, alloc, objective=objective, ends=ends, start=start)
    if name == "algorithm-1":
        return printed_tree(problem, alloc, objective=objective, ends=ends)
    search = Search(problem, alloc, fronts=fronts, objective=objective, phantoms=phantoms)
    if name == "gc":
        return _settled(search, *_increasing_collisions(search, ends))
    if name == "gp":
        first, *others = TUNED if phi is None else (phi,)
        best = _by_space(search, first, spread)
        for one in others:
            if thread_time() < ends:
                best = min(best, _by_space(search, one, spread), key=lambda found: found.cost)
        return best
    if name == "epes":
        return _all_subsets(search)
    raise ConfigError(f"no phantom chooser is named '{name}'", "choose one of gc, gp, epes, tree, algorithm-1")


def _increasing_collisions(search: Search, ends: float) -> tuple[RelationForest, list[Step]]:
    """Algorithm GC; after each addition phantoms with fewer than two children go.

    One that went may come back: the cost falls with every step, so there is an end.
    """
    forest = search.pruned(search.start)
    cost = search.price(forest)
    steps = [Step(None, cost)]
    choosable = search.choosable
    while True:
        best, best_cost, added = forest, cost, -1
        for candidate in choosable:
            bit = 1 << candidate
            if forest.feeding & bit or thread_time() >= ends:
                continue
            possible = search.pruned(forest.feeding | bit)
            if possible.feeding & bit and (possible_cost := search.price(possible)) < best_cost:
                best, best_cost, added = possible, possible_cost, candidate
        if added < 0:
            return forest, steps
        forest, cost = best, best_cost
        steps.append(Step(search.graph.relations[added], cost))


def _by_space(search: Search, phi: float, spread: bool) -> ChosenTables:
    """GP with this φ.  Where it is not spread, every table has φ·g buckets, less in proportion where even the queries'
    own do not fit (Fig. 5 then has no memory left and adds nothing)."""
    forest, steps = _increasing_space(search, phi)
    if spread:
        return _finished(search, forest, steps)
    configuration = arranged(search.graph, search.queries, forest.feeding)
    tree = plant(configuration, search.problem, _tables(search, configuration))
    wanted = [phi * g * h if table else 0.0 for g, h, table in zip(tree.groups, tree.entries, tree.tables, strict=True)]
    spaces = [min(1.0, search.problem.memory / max(sum(wanted), 1e-9)) * space for space in wanted]
    tree = given(tree, spaces)
    cost = search.objective(tree, buckets_of(tree, spaces))
    return ChosenTables(configuration, tuple(spaces), cost, tuple(steps))


def _increasing_space(search: Search, phi: float) -> tuple[RelationForest, list[Step]]:
    """Algorithm GP: benefit per space, added while anything fits, even where the benefit is negative (β ← −∞)."""

    def price(forest: RelationForest) -> float:
        tree = search.tree(forest)
        return search.objective(
            tree, [phi * g if table else 0.0 for g, table in zip(tree.groups, tree.tables, strict=True)]
        )

    needs = [phi * g * h for g, h in zip(search.groups, search.entries, strict=True)]
    forest = search.forest(search.start)
    memory = search.problem.memory - sum(needs[n] for n in forest.relations if search.start >> n & 1)
    steps = [Step(None, price(forest))]
    left = search.choosable
    while fitting := [n for n in left if memory > needs[n]]:
        forests = {n: search.forest(forest.feeding | 1 << n) for n in fitting}
        costs = {n: price(forests[n]) for n in fitting}
        added = max(fitting, key=lambda n: (steps[-1].cost - costs[n]) / needs[n])
        forest = forests[added]
        left.remove(added)
        memory -= needs[added]
        steps.append(Step(search.graph.relations[added], costs[added]))
    return search.forest(_without_childless(search, forest)), steps


def _without_childless(search: Search, forest: RelationForest) -> int:
    """What feeds, but for phantoms that nothing is left to be fed by: the paper's GP may add such."""
    while idle := [n for n in forest.relations if not search.wanted[n] and n not in forest.parents]:
        forest = search.forest(forest.feeding & ~search.graph.mask(search.graph.relations[n] for n in idle))
    return forest.feeding


def _all_subsets(search: Search) -> ChosenTables:
    """EPES: every set of phantoms in which each feeds two or more."""
    choosable = search.choosable
    if len(choosable) > MOST_EXHAUSTIVE:
        raise ConfigError(
            f"{len(choosable)} candidate phantoms are too many for epes",
            f"it tries all sets of at most {MOST_EXHAUSTIVE}; choose gc",
        )
    priced = []
    for subset in range(1 << len(choosable)):
        feeding = search.start | sum(1 << n for i, n in enumerate(choosable) if subset >> i & 1)
        forest = search.pruned(feeding)
        if forest.feeding == feeding:
            priced.append((search.price(forest), feeding))
    return _settled(search, search.forest(min(priced)[1]), [])


def _finished(search: Search, forest: RelationForest, steps: Sequence[Step]) -> ChosenTables:
    configuration = arranged(search.graph, search.queries, forest.feeding)
    return _allocated(search, configuration, _tables(search, configuration), steps)


def _settled(search: Search, forest: RelationForest, steps: Sequence[Step]) -> ChosenTables:
    """The choice with each relation under the feeder that passes on the fewest records, F·x, where that is cheaper.

    The forest was made by numbers of groups; rates are known only now.
    """
    found = _finished(search, forest, steps)
    for _ in range(MOST_SETTLING):
        tree = plant(found.configuration, search.problem)
        passed = flows(found.configuration, buckets_of(tree, found.spaces), search.problem)
        passes = {node.grain: flow.evictions for node, flow in zip(found.configuration.nodes, passed, strict=True)}
        other = _rearranged(search, found.configuration, passes.__getitem__)
        if other == found.configuration:
            break
        moved = _allocated(search, other, _tables(search, other), steps)
        if moved.cost >= found.cost:
            break
        found = moved
    return found


def _rearranged(search: Search, before: Configuration, passes: Callable[[Grain], float]) -> Configuration:
    """The forest by other parents, without phantoms that are left with fewer than two children (as `Search.pruned`)."""
    feeding = [node.grain for i, node in enumerate(before.nodes) if before.children(i)]
    while True:
        made = arrange(search.problem.queries, feeding, passes, queries_feed=search.fronts)
        idle = [
            node.grain
            for i, node in enumerate(made.nodes)
            if node.grain in feeding and not (search.fronts and node.query) and len(made.children(i)) < 2 - node.query
        ]
        if not idle:
            return made
        feeding = [grain for grain in feeding if grain != idle[-1]]


def _tables(search: Search, configuration: Configuration) -> list[bool]:
    return [search.fronts or bool(configuration.children(i)) for i in range(len(configuration.nodes))]


def _allocated(
    search: Search, configuration: Configuration, tables: Sequence[bool], steps: Sequence[Step]
) -> ChosenTables:
    tree = plant(configuration, search.problem, tables)
    spaces = search.allocator(tree)
    tree = given(tree, spaces)
    return ChosenTables(configuration, tuple(spaces), search.objective(tree, buckets_of(tree, spaces)), tuple(steps))
