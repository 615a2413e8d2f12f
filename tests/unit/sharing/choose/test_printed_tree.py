"""Algorithm 1 as printed: against every single modification of a tree, tried by hand, and against our greedy."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest

from experiments.models.notation import parse
from penstock.sharing.allocate.registry import allocator
from penstock.sharing.choose.aggregate_tree import aggregate_tree
from penstock.sharing.choose.printed_tree import modified, printed_tree
from penstock.sharing.graph.configuration import STREAM, Configuration
from penstock.sharing.graph.grain import letters
from penstock.sharing.graph.notation import text
from penstock.sharing.model.figures import buckets_of, given, plant
from penstock.sharing.model.flow import tree_cost
from penstock.sharing.model.problem import Problem
from unit.sharing.choose.test_aggregate_tree import Figures, check, some_queries


def cost_of(configuration: Configuration, problem: Problem) -> float:
    tree = plant(configuration, problem, [bool(configuration.children(i)) for i in range(len(configuration.nodes))])
    spaces = allocator("lagrange")(tree)
    return tree_cost(given(tree, spaces), buckets_of(tree, spaces))


@pytest.mark.parametrize("seed", range(8))
def test_the_first_step_is_the_cheapest_union_of_two(seed: int) -> None:
    queries = some_queries(seed, "ABCDE", 5, 2)
    problem = Figures(seed, "ABCDE", 200.0).problem(queries, 20_000.0)
    found = printed_tree(problem, "lagrange")
    check(found.configuration, queries)
    names = ["".join(sorted(base for base, _ in query)) for query in queries]
    costs = {}
    for union in {"".join(sorted({*a, *b})) for a, b in combinations(names, 2)}:
        fed = [name for name in names if set(name) < set(union)]
        left = [name for name in names if name not in fed and name != union]
        configuration = parse(" ".join([f"{union}({' '.join(fed)})", *left]), queries=queries)
        costs[letters(union)] = cost_of(configuration, problem)
    none = cost_of(parse(" ".join(names)), problem)
    assert found.steps[0].cost == pytest.approx(none)
    if min(costs.values()) < none * (1 - 1e-3):
        assert found.steps[1].cost == pytest.approx(min(costs.values()))
        assert found.steps[1].cost == pytest.approx(costs[found.steps[1].added])  # type: ignore[index]
    else:
        assert len(found.steps) == 1


def test_every_step_saves_and_ours_is_not_behind() -> None:
    ratios = []
    for seed in range(12):
        queries = some_queries(seed, "ABCDE", 6, 3)
        problem = Figures(seed, "ABCDE", 200.0).problem(queries, 20_000.0)
        found = printed_tree(problem, "lagrange")
        check(found.configuration, queries)
        assert all(later.cost < before.cost * (1 - 1e-3) for before, later in pairwise(found.steps)), f"seed {seed}"
        assert found.cost == pytest.approx(found.steps[-1].cost)
        ratios.append(aggregate_tree(problem, "lagrange").cost / found.cost)
    print(ratios)
    assert sum(ratios) / len(ratios) <= 1.001
    assert max(ratios) <= 1.02


def test_what_a_step_may_make_of_a_tree() -> None:
    """Bits A 1, B 2, C 4, D 8. ABC(AB BC) CD D: unions of siblings adopt all that they contain (lines 4 to 14), an
    aggregate that is no query may go (lines 15 to 23)."""
    queries = frozenset({3, 6, 12, 8})
    tree = {7: STREAM, 3: 7, 6: 7, 12: STREAM, 8: STREAM}
    made = [(mask, dict(other)) for mask, other in modified(tree, queries)]
    assert made == [
        (15, {15: STREAM, 7: 15, 3: 7, 6: 7, 12: 15, 8: 15}),  # ABC and CD, or ABC and D
        (12, {7: STREAM, 3: 7, 6: 7, 12: STREAM, 8: 12}),  # CD and D: CD itself feeds; AB and BC give their parent
        (7, {3: STREAM, 6: STREAM, 12: STREAM, 8: STREAM}),
    ]


def test_a_query_that_contains_another_feeds_it() -> None:
    problem = Figures(1, "ABC", 20.0).problem([letters("AB"), letters("A")], 20_000.0)
    assert text(printed_tree(problem, "lagrange").configuration) == "AB(A)"


def test_it_takes_what_it_has_when_time_is_up() -> None:
    queries = some_queries(2, "ABCDE", 5, 2)
    problem = Figures(2, "ABCDE", 200.0).problem(queries, 20_000.0)
    assert len(printed_tree(problem, "lagrange", ends=0.0).steps) == 1
