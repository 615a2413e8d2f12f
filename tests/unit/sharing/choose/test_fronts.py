"""Queries without tables of their own: which do without, who gets the memory, and choices where none has one."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import combinations, product

import pytest

from experiments.models.costs import per_tuple
from experiments.models.notation import parse
from experiments.models.problems import paper_problem
from experiments.models.spaces import allocate
from penstock.sharing.allocate.registry import ALLOCATORS
from penstock.sharing.choose.choice import choose
from penstock.sharing.choose.fronts import without_fronts
from penstock.sharing.graph.configuration import Configuration, arrange
from penstock.sharing.graph.grain import letters
from penstock.sharing.graph.notation import text
from penstock.sharing.model.collision import rate
from penstock.sharing.model.figures import buckets_of, plant
from penstock.sharing.model.problem import Problem

GROUPS = {
    "".join(some): (552.0, 1846.0, 2117.0, 2837.0)[size - 1]
    for size in range(1, 5)
    for some in combinations("ABCD", size)
}
MADE = parse("ABCD(AB BCD(BC BD CD))")
PAIRS = ["AB", "BC", "BD", "CD"]


def cost(configuration: Configuration, spaces: tuple[float, ...], problem: Problem) -> float:
    return per_tuple(configuration, buckets_of(plant(configuration, problem), spaces), problem)


def test_tables_that_pay_stay() -> None:
    problem = paper_problem(GROUPS, PAIRS, 400_000, c2=50)
    assert without_fronts(MADE, problem) == pytest.approx(allocate("sl", MADE, problem))


def test_where_c2_is_c1_no_leaf_has_a_table() -> None:
    problem = paper_problem(GROUPS, PAIRS, 40_000, c1=1, c2=1)
    spaces = without_fronts(MADE, problem)
    assert [space > 0 for space in spaces] == [True, False, True, False, False, False]
    assert sum(spaces) == pytest.approx(40_000)


def test_no_table_is_left_that_does_not_pay() -> None:
    for seed in range(60):
        random_ = random.Random(seed)
        problem = paper_problem(GROUPS, PAIRS, random_.uniform(5000, 60_000), c2=random_.uniform(1.1, 8))
        costs = {letters(name): random_.uniform(1.1, 8) for name in PAIRS}
        problem = replace(problem, evict=costs.__getitem__)
        spaces = without_fronts(MADE, problem)
        assert sum(spaces) == pytest.approx(problem.memory), f"seed {seed}"
        assert cost(MADE, spaces, problem) <= cost(MADE, allocate("sl", MADE, problem), problem) * (1 + 1e-9)
        for node, space in zip(MADE.nodes, spaces, strict=True):
            if node.query and space:
                c2 = problem.evict(node.grain)
                x = rate(problem.groups(node.grain), space / problem.entry(node.grain))
                assert problem.probe(node.grain) + x * c2 < c2, f"seed {seed}"


def test_the_best_set_of_tables_is_found_or_nearly() -> None:
    worst = 1.0
    for seed in range(40):
        random_ = random.Random(seed)
        problem = paper_problem(GROUPS, PAIRS, random_.uniform(5000, 60_000), c2=random_.uniform(1.1, 20))
        every = [
            allocate("sl", MADE, problem, tables=[True, ab, True, *rest])
            for ab, *rest in product((True, False), repeat=4)
        ]
        best = min(cost(MADE, spaces, problem) for spaces in every)
        worst = max(worst, cost(MADE, without_fronts(MADE, problem), problem) / best)
    assert worst < 1.02


def test_a_query_that_feeds_keeps_its_table() -> None:
    made = arrange([letters("AB"), letters("A"), letters("B")], [], len)
    problem = paper_problem(GROUPS, ["AB", "A", "B"], 20_000, c1=1, c2=1)
    assert without_fronts(made, problem) == pytest.approx((20_000, 0, 0))


def test_where_nothing_feeds_and_nothing_pays_there_are_no_tables() -> None:
    problem = paper_problem(GROUPS, ["A", "B"], 20_000, c1=1, c2=0.9)
    assert without_fronts(parse("A B"), problem) == (0, 0)


@pytest.mark.parametrize("alloc", sorted(ALLOCATORS))
@pytest.mark.parametrize("chooser", ["gc", "gp", "epes"])
def test_choosing_without_fronts_gives_tables_to_those_that_feed_only(chooser: str, alloc: str) -> None:
    problem = paper_problem(GROUPS, PAIRS, 40_000, c2=3)
    found = choose(chooser, problem, alloc, fronts=False)
    made = found.configuration
    feeding = [bool(made.children(i)) for i in range(len(made.nodes))]
    if alloc in ("fptas", "lagrange", "all-or-nothing"):  # which may leave even these without
        assert all(feeds or not space for space, feeds in zip(found.spaces, feeding, strict=True))
    else:
        assert [space > 0 for space in found.spaces] == feeding
    assert found.cost == pytest.approx(cost(made, found.spaces, problem))


def test_without_fronts_a_phantom_takes_all_memory() -> None:
    problem = paper_problem(GROUPS, ["A", "B"], 10_000, c1=1, c2=3)
    found = choose("gc", problem, "sl", fronts=False)
    assert text(found.configuration) == "AB(A B)"
    assert found.spaces == pytest.approx((10_000, 0, 0))
    assert found.cost == pytest.approx(1 + rate(1846, 10_000 / 3) * 6)
    assert found.steps[0].cost == pytest.approx(6)


def test_without_fronts_a_query_gets_a_table_if_it_pays_to_feed() -> None:
    problem = paper_problem(GROUPS, ["AB", "A"], 10_000, c1=1, c2=3)
    found = choose("gc", problem, "sl", fronts=False)
    assert text(found.configuration) == "AB(A)"
    assert found.spaces == pytest.approx((10_000, 0))
    assert found.configuration.nodes[0].query
    scarce = choose("gc", paper_problem(GROUPS, ["AB", "A"], 300, c1=1, c2=1.1), "sl", fronts=False)
    assert text(scarce.configuration) == "A AB"
    assert scarce.spaces == (0, 0)


def test_greedy_choice_without_fronts_is_near_the_best() -> None:
    for seed in range(30):
        random_ = random.Random(seed)
        queries = random_.sample([name for name in sorted(GROUPS) if len(name) < 4], 4)
        problem = paper_problem(GROUPS, queries, random_.choice((10_000, 40_000)), c2=random_.uniform(1.5, 10))
        best = choose("epes", problem, "es", fronts=False).cost
        found = choose("gc", problem, "sl", fronts=False).cost
        assert best * (1 - 5e-3) <= found <= 1.15 * best, f"seed {seed}: {queries}"
