"""Allocations of seed aggregate-tree against brute force, and their cost against the memory."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from experiments.models.costs import epoch_cost
from experiments.models.curves import Lemma
from penstock.sharing.allocate.all_or_nothing import _exchanged, all_or_nothing
from penstock.sharing.allocate.fptas import _by_fronts, fptas
from penstock.sharing.allocate.lagrange import Market, lagrange
from penstock.sharing.graph.configuration import STREAM
from penstock.sharing.model.eviction import Che, Curve
from penstock.sharing.model.figures import PlantedTree, buckets_of
from penstock.sharing.model.flow import arrivals, curve, outs_of, tree_cost, tree_costs
from penstock.sharing.model.popularity import fitted

ROWS = 100_000.0
KINDS = ("che", "paper", "uniform", "direct", "mixed")
Make = Callable[[random.Random, float], Curve | None]


def curve_of(kind: str, random_: random.Random, groups: float) -> Curve | None:
    alpha = random_.uniform(0.0, 1.2)
    if kind == "mixed":
        kind = random_.choice(("che", "direct"))
    if kind == "che":
        return Che(fitted(groups, alpha, ROWS), ROWS)
    return {"paper": Lemma(groups, min(alpha, 0.9), exact=True), "uniform": Lemma(groups, 0.0), "direct": None}[kind]


def some_tree(seed: int, tables: int, kind: str, share: float | None = None) -> PlantedTree:
    """Tables in a random tree, each with some queries that have none, in a share of the memory that all would need."""
    print(f"seed {seed}")
    random_ = random.Random(seed)
    parents: list[int] = []
    groups: list[float] = []
    for i in range(tables):
        parents.append(random_.randint(-1, i - 1))
        groups.append(max(20.0, (ROWS if parents[i] == STREAM else groups[parents[i]]) * random_.uniform(0.05, 0.8)))
    for i in range(tables):
        for _ in range(random_.randint(1, 4)):
            parents.append(i)
            groups.append(groups[i] * random_.uniform(0.1, 0.9))
    count = len(parents)
    entries = [random_.choice((2.0, 3.0, 4.0)) for _ in range(count)]
    need = sum(g * h for g, h in zip(groups[:tables], entries[:tables], strict=True))
    return PlantedTree(
        parents=parents,
        queries=[i >= tables for i in range(count)],
        tables=[i < tables for i in range(count)],
        groups=groups,
        lengths=[1.0] * count,
        entries=entries,
        probe=[random_.uniform(0.5, 1.5) for _ in range(count)],
        evict=[random_.uniform(0.5, 1.5) if i >= tables else 0.0 for i in range(count)],
        memory=need * (random_.choice((0.05, 0.2, 0.5)) if share is None else share),
        rows=ROWS,
        curves=[curve_of(kind, random_, g) if i < tables else None for i, g in enumerate(groups)],
        passing=random_.choice((0.0, 0.5)),
        each=random_.choice((0.0, 0.01)),
    )


def cost_of(tree: PlantedTree, spaces: Sequence[float]) -> float:
    return tree_cost(tree, buckets_of(tree, spaces))


def brute_force(tree: PlantedTree, steps: int) -> float:
    """The least cost of all divisions of the memory into so many parts."""
    nodes = [i for i, table in enumerate(tree.tables) if table]
    every = np.array([parts for parts in product(range(steps + 1), repeat=len(nodes)) if sum(parts) <= steps])
    spaces = np.zeros((len(every), len(tree.parents)))
    spaces[:, nodes] = every * (tree.memory / steps)
    return float(tree_costs(tree, spaces / np.array(tree.entries)).min())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("epsilon", [0.05, 0.3])
def test_fptas_is_within_epsilon_of_the_best(seed: int, kind: str, epsilon: float) -> None:
    tree = some_tree(seed, 4, kind)
    spaces = fptas(tree, epsilon)
    assert sum(spaces) <= tree.memory * (1 + 1e-9)
    assert min(spaces) >= 0.0
    assert [space for space, table in zip(spaces, tree.tables, strict=True) if not table] == [0.0] * (
        len(spaces) - sum(tree.tables)
    )
    assert cost_of(tree, spaces) <= (1 + epsilon) * brute_force(tree, 20)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_fronts_alone_are_within_epsilon(seed: int, kind: str) -> None:
    """Prices mostly make fronts needless; from an allocation that has nothing, they must find their way as well."""
    epsilon, tree = 0.3, some_tree(seed, 3, kind)
    nothing = [0.0] * len(tree.parents)
    fixed = ROWS * (arrivals(tree)[STREAM] + tree.each * sum(tree.tables))
    spaces = _by_fronts(tree, nothing, ROWS * cost_of(tree, nothing) - fixed, epsilon)
    assert sum(spaces) <= tree.memory * (1 + 1e-9)
    assert cost_of(tree, spaces) <= (1 + epsilon) * brute_force(tree, 40)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(5))
def test_the_bound_is_a_bound(seed: int, kind: str) -> None:
    """No allocation costs less than what the best price of memory says."""
    tree = some_tree(seed, 4, kind)
    bound, _ = Market(tree).prices()
    fixed = ROWS * (arrivals(tree)[STREAM] + tree.each * sum(tree.tables))
    least = brute_force(tree, 20)
    assert (fixed + bound) / ROWS <= least * 1.004
    assert cost_of(tree, lagrange(tree)) <= 1.05 * least


@pytest.mark.parametrize("seed", range(200))
def test_all_or_nothing_is_the_best_for_uniform_data(seed: int) -> None:
    """Seed aggregate-tree, Theorem 3; against all divisions into steps and random ones."""
    tree = some_tree(seed, 1 + seed % 4, "uniform")
    spaces = all_or_nothing(tree)
    nodes = [i for i, table in enumerate(tree.tables) if table]
    whole = [tree.groups[i] * tree.entries[i] for i in nodes]
    parts = [i for i, space in zip(nodes, whole, strict=True) if 1e-9 * space < spaces[i] < (1 - 1e-9) * space]
    assert len(parts) <= 1
    assert sum(spaces) <= tree.memory * (1 + 1e-9)
    shares = np.random.default_rng(seed).dirichlet(np.ones(len(nodes)), 300)
    tried = np.zeros((300, len(tree.parents)))
    tried[:, nodes] = np.minimum(shares * tree.memory, whole)
    least = min(brute_force(tree, 12), float(tree_costs(tree, tried / np.array(tree.entries)).min()))
    assert cost_of(tree, spaces) <= least * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_exchanging_tables_finds_what_trying_all_sets_does(seed: int) -> None:
    tree = some_tree(seed, 8, "uniform", 0.3)
    nodes = [i for i, table in enumerate(tree.tables) if table]
    spaces = np.zeros(len(tree.parents))
    spaces[nodes] = _exchanged(tree, nodes, np.array([tree.groups[i] * tree.entries[i] for i in nodes]))
    assert cost_of(tree, list(spaces)) <= 1.02 * cost_of(tree, all_or_nothing(tree))


@pytest.mark.parametrize("kind", ["che", "uniform", "direct"])
@pytest.mark.parametrize("seed", [3, 4])
def test_cost_never_rises_with_memory(seed: int, kind: str) -> None:
    tree = some_tree(seed, 7, kind, 1.0)
    for allocate in (fptas, all_or_nothing) if kind == "uniform" else (fptas,):
        sizes = np.geomspace(0.003, 1.5, 50) * tree.memory
        trees = [tree._replace(memory=float(size)) for size in sizes]
        costs = np.array([cost_of(each, allocate(each)) for each in trees])
        assert (costs[1:] <= costs[:-1] * (1 + 1e-6)).all(), costs[1:] / costs[:-1]
        assert costs[-1] < 0.9 * costs[0]


@pytest.mark.parametrize("seed", range(5))
def test_many_allocations_at_once_cost_what_each_does(seed: int) -> None:
    tree = some_tree(seed, 5, "mixed")
    generator = np.random.default_rng(seed)
    buckets = generator.uniform(0.0, 1.5, (20, len(tree.parents))) * np.array(tree.groups)
    each = [tree_cost(tree, [float(b) for b in row]) for row in buckets]
    assert tree_costs(tree, buckets) == pytest.approx(each, rel=1e-6)


def test_direct_tables_cost_what_the_first_paper_says() -> None:
    """C(T) of seed aggregate-tree is n_e·e_m + E_e of seed smap."""
    tree = some_tree(2, 5, "direct")._replace(passing=0.0, each=0.0)
    buckets = [0.7 * g for g in tree.groups]
    buckets = [b if table else 0.0 for b, table in zip(buckets, tree.tables, strict=True)]
    assert tree_cost(tree, buckets) == pytest.approx(epoch_cost(tree._replace(curves=()), buckets))


def test_what_flows_by_hand() -> None:
    """Example 1 of the seed, strategy 3: n + 2 (b + f n) + 2 (b' + f' (b + f n)), uniform data."""
    tree = PlantedTree(
        parents=[-1, 0, 0, 1, 1], queries=[False, True, False, True, True], tables=[True, False, True, False, False],
        groups=[1000.0, 10.0, 200.0, 10.0, 10.0], lengths=[1.0] * 5, entries=[1.0] * 5, probe=[1.0] * 5,
        evict=[0.0, 1.0, 0.0, 1.0, 1.0], memory=600.0, rows=10_000.0,
        curves=[Lemma(1000.0, 0.0), None, Lemma(200.0, 0.0), None, None],
    )  # fmt: skip
    tree = tree._replace(parents=[-1, 0, 0, 2, 2])
    first = 500 + 0.5 * 10_000
    second = 100 + 0.5 * first
    assert outs_of(tree, [500.0, 0.0, 100.0, 0.0, 0.0])[:3] == [first, first, second]
    assert tree_cost(tree, [500.0, 0.0, 100.0, 0.0, 0.0]) == pytest.approx((10_000 + 2 * first + 2 * second) / 10_000)


def test_curves_of_trees_without_any_are_direct() -> None:
    tree = some_tree(1, 3, "direct")
    assert curve(tree, 0) == curve(tree._replace(curves=()), 0)


@pytest.mark.parametrize("allocate", [fptas, lagrange, all_or_nothing, partial(fptas, epsilon=0.02)])
def test_there_is_always_an_allocation(allocate: Callable[[PlantedTree], list[float]]) -> None:
    none = some_tree(1, 2, "che")
    assert allocate(none._replace(tables=[False] * len(none.parents))) == [0.0] * len(none.parents)
    for memory in (0.0, 1e-3, 1e12):
        spaces: NDArray[np.float64] = np.array(allocate(none._replace(memory=memory)))
        assert spaces.sum() <= memory * (1 + 1e-9)
        assert np.isfinite(spaces).all()
