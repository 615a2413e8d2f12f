"""Space allocation: closed forms against a numeric optimiser, dynamic programming against brute force."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations
from math import sqrt

import numpy as np
import pytest
from numpy.typing import NDArray

from experiments.models.notation import parse
from experiments.models.problems import paper_problem
from experiments.models.spaces import allocate, two_level
from penstock.errors import ConfigError
from penstock.sharing.allocate.exhaustive import exhaustive
from penstock.sharing.allocate.registry import ALLOCATORS
from penstock.sharing.choose.search import Search
from penstock.sharing.graph.configuration import STREAM, Configuration
from penstock.sharing.graph.grain import Grain, letters
from penstock.sharing.graph.notation import name_letters
from penstock.sharing.model.collision import MU, rates
from penstock.sharing.model.figures import PlantedTree, buckets_of, plant
from penstock.sharing.model.flow import tuple_cost
from penstock.sharing.model.problem import Problem

GROUPS = {
    "".join(some): (552.0, 1846.0, 2117.0, 2837.0)[size - 1]
    for size in range(1, 5)
    for some in combinations("ABCD", size)
}
SMAP = ("es", "pl", "pr", "sl", "sr")  # those of seed aggregate-tree may leave tables without any (`test_fptas`)
Rates = Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]


def line(groups: NDArray[np.float64], buckets: NDArray[np.float64]) -> NDArray[np.float64]:
    return MU * groups / buckets


def costs_at(tree: PlantedTree, spaces: NDArray[np.float64], model: Rates) -> NDArray[np.float64]:
    """Eq. 7 of many allocations at once: `spaces` has one row for each node."""
    passed: list[NDArray[np.float64]] = []
    total = np.zeros(spaces.shape[1])
    for i, parent in enumerate(tree.parents):
        fed = np.ones_like(total) if parent == STREAM else passed[parent]
        passed.append(fed * model(np.array(tree.groups[i]), spaces[i] / tree.entries[i]) / tree.lengths[i])
        total += fed * tree.probe[i] + passed[i] * tree.evict[i]
    return total


def optimum(tree: PlantedTree, model: Rates, seed: int, least: float = 0.0) -> float:
    """The reference optimiser: moves space between the two tables where it saves most, less and less of it.

    Every table keeps more than `least`: else, where memory is short, the best is to starve some to nothing.
    """
    generator = np.random.default_rng(seed)
    count = len(tree.parents)
    moves = np.array([np.eye(count)[i] - np.eye(count)[j] for i in range(count) for j in range(count) if i != j]).T
    best = np.inf
    for _ in range(4):
        here = least + generator.dirichlet(np.ones(count)) * (tree.memory - least * count)
        cost, step = np.inf, tree.memory / 4
        while step > tree.memory * 2e-4:
            tried = here[:, None] + step * moves
            tried = np.where((tried > least).all(axis=0), tried, here[:, None])
            found = costs_at(tree, tried, model)
            if found.min() < cost * (1 - 1e-9):
                cost, here = float(found.min()), tried[:, int(found.argmin())]
            else:
                step /= 2
        best = min(best, cost)
    return best


def cost_of(tree: PlantedTree, spaces: list[float] | tuple[float, ...]) -> float:
    return tuple_cost(tree, buckets_of(tree, spaces))


def some_tree(seed: int, most: int = 7, memory: float = 40_000) -> PlantedTree:
    """A random forest with random figures."""
    random_ = random.Random(seed)
    count = random_.randint(2, most)
    parents = [random_.randint(-1, i - 1) for i in range(count)]
    queries = [i not in parents or random_.random() < 0.2 for i in range(count)]
    return PlantedTree(
        parents=parents,
        queries=queries,
        tables=[True] * count,
        groups=[random_.uniform(200, 4000) for _ in range(count)],
        lengths=[random_.choice((1.0, 1.0, 4.0, 30.0)) for _ in range(count)],
        entries=[random_.choice((2.0, 3.0, 4.0, 5.0)) for _ in range(count)],
        probe=[random_.uniform(0.5, 2) for _ in range(count)],
        evict=[random_.uniform(5, 50) if query else 0.0 for query in queries],
        memory=memory,
        rows=1e6,
    )


def sampled_problem(seed: int) -> Problem:
    random_ = random.Random(seed)
    names = sorted(GROUPS)
    queries = random_.sample([name for name in names if len(name) < 4], random_.randint(2, 5))
    groups = {name: GROUPS[name] * random_.uniform(0.7, 1.4) for name in names}
    return paper_problem(
        groups,
        queries,
        random_.choice((20_000, 40_000, 100_000)),
        c2=random_.choice((15, 50)),
        length=random_.choice(([1], [20, 3, 1])),
    )


def some_configuration(problem: Problem, seed: int) -> PlantedTree:
    random_ = random.Random(seed)
    search = Search(problem)
    chosen = random_.sample(search.choosable, min(2, len(search.choosable)))
    return search.tree(search.pruned(search.start | sum(1 << n for n in chosen)))


def divisions(steps: int, parts: int) -> Iterator[tuple[int, ...]]:
    """All ways to divide steps into that many parts of at least one."""
    for cuts in combinations(range(1, steps), parts - 1):
        yield tuple(b - a for a, b in zip((0, *cuts), (*cuts, steps), strict=True))


def brute_force(tree: PlantedTree, steps: int) -> float:
    unit = tree.memory / steps
    ways = np.array(list(divisions(steps, len(tree.parents))), dtype=float).T * unit
    return float(costs_at(tree, ways, lambda g, b: rates(g, b)).min())


@pytest.mark.parametrize("name", SMAP)
def test_all_memory_is_allocated_and_every_table_gets_some(name: str) -> None:
    for seed in range(60):
        tree = some_tree(seed)
        spaces = ALLOCATORS[name](tree)
        assert sum(spaces) == pytest.approx(tree.memory), f"seed {seed}"
        idle = [i for i, space in enumerate(spaces) if space <= 0]
        assert not idle, f"seed {seed}"


@pytest.mark.parametrize("name", SMAP)
def test_what_has_no_table_gets_no_space(name: str) -> None:
    for seed in range(60):
        tree = some_tree(seed)
        tree = tree._replace(tables=[not leaf or i % 2 == 0 for i, leaf in enumerate(tree.leaves())])
        if not any(tree.tables):
            continue
        spaces = ALLOCATORS[name](tree)
        assert [space > 0 for space in spaces] == list(tree.tables), f"seed {seed}"
        assert sum(spaces) == pytest.approx(tree.memory), f"seed {seed}"


@pytest.mark.parametrize("name", ["sl", "sr", "pr"])
def test_without_phantoms_space_goes_by_the_root_of_groups(name: str) -> None:
    problem = paper_problem({"A": 100, "BC": 1600, "D": 900}, ["A", "BC", "D"], 10_000)
    spaces = allocate(name, parse("A BC D"), problem)
    roots = [sqrt(100 * 2), sqrt(1600 * 3), sqrt(900 * 2)]
    assert spaces == pytest.approx([10_000 * root / sum(roots) for root in roots])


def test_without_phantoms_the_root_is_the_optimum_of_the_line() -> None:
    for seed in range(10):
        tree = some_tree(seed)
        tree = tree._replace(parents=[STREAM] * len(tree.parents), queries=[True] * len(tree.parents), evict=tree.probe)
        found = costs_at(tree, np.array(ALLOCATORS["sl"](tree))[:, None], line)[0]
        assert found == pytest.approx(optimum(tree, line, seed), rel=1e-3), f"seed {seed}"


def test_two_levels_are_what_the_paper_prints() -> None:
    """Eq. 21 and 22 with c1 = 1, c2 = 15 and equal entries."""
    memory, groups = 5000.0, [300.0, 500.0, 800.0]
    total = sum(map(sqrt, groups))
    below = MU * 15 * total + sqrt(MU**2 * 15**2 * total**2 + 3 * MU * 1 * 15 * memory)
    wanted = [MU * 15 * memory * sqrt(g) / below for g in groups]
    found = two_level(memory, [g * 15 for g in groups], 3.0)
    assert found == pytest.approx([memory - sum(wanted), *wanted])
    assert found[0] > memory / 2


@pytest.mark.parametrize("name", ["sl", "sr"])
def test_supernodes_are_the_closed_form_where_there_are_two_levels(name: str) -> None:
    problem = paper_problem(GROUPS, list("ABCD"), 40_000, c2=15)
    spaces = allocate(name, parse("ABCD(A B C D)"), problem)
    assert spaces == pytest.approx(two_level(40_000, [552 * 2 * 15.0] * 4, 4.0))


def test_the_closed_form_is_the_optimum() -> None:
    """Exactly so where x = μ g/b, whatever the costs of relations and whether the phantom is a query."""
    for seed in range(20):
        random_ = random.Random(seed)
        tree = some_tree(seed)
        count = len(tree.parents)
        tree = tree._replace(
            parents=[STREAM] + [0] * (count - 1),
            queries=[random_.random() < 0.5] + [True] * (count - 1),
            groups=[random_.uniform(1500, 3000), *(random_.uniform(400, 2000) for _ in range(count - 1))],
            lengths=[1.0] * count,
        )
        tree = tree._replace(evict=[random_.uniform(10, 50) if query else 0.0 for query in tree.queries])
        spaces = np.array(ALLOCATORS["sl"](tree))[:, None]
        assert costs_at(tree, spaces, line)[0] == pytest.approx(optimum(tree, line, seed), rel=1e-3), f"seed {seed}"


@pytest.mark.parametrize("memory", [20_000, 40_000, 60_000, 100_000])
@pytest.mark.parametrize("written", ["ABC(A B C)", "ABCD(A B C D)", "AB(A B)", "BCD(BC BD CD)"])
def test_the_closed_form_is_near_the_optimum_of_true_rates(written: str, memory: float) -> None:
    made = parse(written)
    names = [name_letters(grain) for grain in made.queries]
    tree = plant(made, paper_problem(GROUPS, names, memory, c2=15))
    assert cost_of(tree, ALLOCATORS["sl"](tree)) <= 1.03 * cost_of(tree, exhaustive(tree, 400))


def test_a_supernode_is_valued_by_the_sum_or_by_the_roots() -> None:
    """Fig. 13: ABCD(ABC(AB(A B) C) D), unfolded by hand."""
    problem = paper_problem(GROUPS, list("ABCD"), 40_000, c2=15)
    made = parse("ABCD(ABC(AB(A B) C) D)")
    ab, c, d = (1846 * 3 + 2 * 552 * 2) * 15.0, 552 * 2 * 15.0, 552 * 2 * 15.0
    abc = ab + c + 2117 * 4 * 15
    top, in_abc, in_d = two_level(40_000, [abc, d], 2.0)
    abc_own, in_ab, in_c = two_level(in_abc, [ab, c], 2.0)
    wanted = [top, abc_own, *two_level(in_ab, [552 * 2 * 15.0] * 2, 2.0), in_c, in_d]
    assert allocate("sl", made, problem) == pytest.approx(wanted)

    ab = (sqrt(1846 * 3) + 2 * sqrt(552 * 2)) ** 2 * 15
    abc = (sqrt(ab) + sqrt(c) + sqrt(2117 * 4 * 15)) ** 2
    top, in_abc, in_d = two_level(40_000, [abc, d], 2.0)
    abc_own, in_ab, in_c = two_level(in_abc, [ab, c], 2.0)
    wanted = [top, abc_own, *two_level(in_ab, [552 * 2 * 15.0] * 2, 2.0), in_c, in_d]
    assert allocate("sr", made, problem) == pytest.approx(wanted)


def test_proportional_space_gives_equal_rates() -> None:
    tree = plant(parse("ABCD(AB BCD(BC BD CD))"), paper_problem(GROUPS, ["AB", "BC", "BD", "CD"], 40_000))
    buckets = buckets_of(tree, ALLOCATORS["pl"](tree))
    assert [b / g for g, b in zip(tree.groups, buckets, strict=True)] == pytest.approx([buckets[0] / 2837] * 6)


def test_costly_queries_get_more_and_equal_costs_cancel() -> None:
    made = parse("AB(A B)")
    plain = paper_problem(GROUPS, ["A", "B"], 10_000, c2=15)

    def with_costs(a: float, b: float) -> tuple[float, ...]:
        costs: dict[Grain, float] = {letters("A"): a, letters("B"): b}
        return allocate("sl", made, replace(plain, evict=costs.__getitem__))

    assert with_costs(15, 15) == pytest.approx(allocate("sl", made, plain))
    uneven = with_costs(60, 15)
    assert uneven[1] == pytest.approx(2 * uneven[2])


def test_dynamic_programming_finds_what_brute_force_finds() -> None:
    for seed in range(40):
        tree = some_tree(seed, most=5)
        steps = 14
        spaces = exhaustive(tree, steps)
        assert cost_of(tree, spaces) == pytest.approx(brute_force(tree, steps), rel=1e-9), f"seed {seed}"


def test_no_heuristic_beats_exhaustive_allocation_by_more_than_its_grain() -> None:
    for seed in range(60):
        tree = some_tree(seed)
        least = cost_of(tree, ALLOCATORS["es"](tree))
        for name in ("sl", "sr", "pl", "pr"):
            assert cost_of(tree, ALLOCATORS[name](tree)) > 0.98 * least, f"seed {seed}, {name}"


def test_exhaustive_allocation_is_the_numeric_optimum_on_sampled_query_sets() -> None:
    for seed in range(60):
        tree = some_configuration(sampled_problem(seed), seed)
        fine = optimum(tree, lambda g, b: rates(g, b), seed, least=tree.memory / 100)
        found = cost_of(tree, exhaustive(tree))
        assert fine * (1 - 1e-3) <= found <= fine * 1.003, f"seed {seed}"


def test_where_tables_are_optional_leaves_may_do_without() -> None:
    tree = plant(parse("AB(A B)"), paper_problem(GROUPS, ["A", "B"], 40_000, c1=1, c2=1.05))
    spaces = exhaustive(tree, optional=True)
    assert spaces == pytest.approx([40_000, 0, 0])
    costly = plant(parse("AB(A B)"), paper_problem(GROUPS, ["A", "B"], 40_000, c1=1, c2=50))
    assert exhaustive(costly, optional=True) == exhaustive(costly)


def forests(problem: Problem) -> Iterator[PlantedTree]:
    """All configurations with phantoms that feed two or more each."""
    search = Search(problem)
    choosable = search.choosable
    for subset in range(1, 1 << len(choosable)):
        feeding = search.start | sum(1 << n for i, n in enumerate(choosable) if subset >> i & 1)
        forest = search.pruned(feeding)
        if forest.feeding == feeding:
            yield search.tree(forest)


@pytest.mark.parametrize(("memory", "average"), [(20_000, 1.024), (60_000, 1.010), (100_000, 1.010)])
def test_supernodes_come_near_the_optimum_as_the_paper_claims(memory: float, average: float) -> None:
    """Table 3, on clustered data: SL is the best of the four on average."""
    relative: dict[str, list[float]] = {name: [] for name in SMAP}
    for queries in (list("ABCD"), ["AB", "BC", "BD", "CD"]):
        for tree in forests(paper_problem(GROUPS, queries, memory, c2=15, length=[40, 4, 1])):
            least = cost_of(tree, ALLOCATORS["es"](tree))
            for name, allocator in ((name, ALLOCATORS[name]) for name in SMAP):
                relative[name].append(cost_of(tree, allocator(tree)) / least)
    means = {name: float(np.mean(found)) for name, found in relative.items()}
    assert len(relative["sl"]) > 50
    assert means["sl"] < average
    assert means["sl"] < min(means["sr"], means["pl"], means["pr"])


def test_names_of_the_problem_are_those_of_the_paper() -> None:
    problem = paper_problem({"A": 5}, ["A"], 100)
    assert [name_letters(query) for query in problem.queries] == ["A"]
    with pytest.raises(KeyError, match="AB"):
        problem.groups(letters("AB"))
    assert allocate("sl", Configuration(()), problem) == ()


def test_an_unknown_name_is_told() -> None:
    with pytest.raises(ConfigError, match="no space allocation is named 'best'"):
        allocate("best", parse("A"), paper_problem({"A": 5}, ["A"], 100))
