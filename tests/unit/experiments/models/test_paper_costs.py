"""The papers' costs of configurations: against the equations written out, and as printed against as corrected."""

from __future__ import annotations

from itertools import combinations
from math import prod

import pytest

from experiments.models.costs import end_of_epoch, epoch_cost, epochs_of, per_cycle, per_epoch, per_tuple
from experiments.models.notation import parse
from experiments.models.problems import paper_problem
from penstock.sharing.graph.configuration import Configuration, arrange
from penstock.sharing.graph.grain import Grain, letters
from penstock.sharing.model.collision import distinct, occupied, rate
from penstock.sharing.model.figures import plant
from penstock.sharing.model.flow import flows, tuple_cost
from penstock.sharing.model.problem import Problem

GROUPS = {
    "".join(some): (552.0, 1846.0, 2117.0, 2837.0)[size - 1]
    for size in range(1, 5)
    for some in combinations("ABCD", size)
}
FIG_3C = parse("ABCD(AB BCD(BC BD CD))")
BUCKETS = (3000.0, 900.0, 1500.0, 700.0, 800.0, 600.0)


def problem_of(configuration: Configuration, **more: float) -> Problem:
    names = ["".join(sorted(base for base, _ in grain)) for grain in configuration.queries]
    return paper_problem(GROUPS, names, 40_000, c1=2, c2=30, **more)


PROBLEM = problem_of(FIG_3C)


def rates_at(configuration: Configuration, buckets: tuple[float, ...], problem: Problem) -> list[float]:
    return [rate(problem.groups(node.grain), b) for node, b in zip(configuration.nodes, buckets, strict=True)]


def test_the_cost_of_one_phantom_is_equation_2() -> None:
    made = parse("ABC(A B C)")
    buckets = (2000.0, 500.0, 500.0, 500.0)
    x2, x1 = rate(2117, 2000), rate(552, 500)
    assert per_tuple(made, buckets, problem_of(made)) == pytest.approx(2 + 3 * x2 * 2 + 3 * x1 * x2 * 30)


def test_the_cost_without_phantoms_is_equation_1() -> None:
    made = parse("A B C")
    assert per_tuple(made, (500.0,) * 3, problem_of(made)) == pytest.approx(3 * 2 + 3 * rate(552, 500) * 30)


def test_the_cost_per_tuple_is_equation_7() -> None:
    x = rates_at(FIG_3C, BUCKETS, PROBLEM)
    reaching = [prod(x[a] for a in FIG_3C.ancestors(i)) for i in range(6)]
    wanted = sum(reaching) * 2 + sum(reaching[i] * x[i] for i in FIG_3C.leaves) * 30
    assert per_tuple(FIG_3C, BUCKETS, PROBLEM) == pytest.approx(wanted)
    assert per_tuple(FIG_3C, BUCKETS, PROBLEM, printed=True) == pytest.approx(wanted)
    assert tuple_cost(plant(FIG_3C, PROBLEM), BUCKETS) == pytest.approx(wanted)


@pytest.mark.parametrize("printed", [False, True])
def test_the_end_of_an_epoch_is_equation_8(printed: bool) -> None:
    x = rates_at(FIG_3C, BUCKETS, PROBLEM)
    sizes = [
        b if printed else occupied(PROBLEM.groups(node.grain), b) for node, b in zip(FIG_3C.nodes, BUCKETS, strict=True)
    ]

    def between(above: int, below: int, last: bool) -> float:
        nodes = [a for a in FIG_3C.ancestors(below) if a not in (above, *FIG_3C.ancestors(above))]
        return prod(x[a] for a in (*nodes, *([below] if last else [])))

    probes = sum(sizes[a] * between(a, i, False) for i in range(6) for a in FIG_3C.ancestors(i))
    evictions = sum(sizes[i] + sum(sizes[a] * between(a, i, True) for a in FIG_3C.ancestors(i)) for i in FIG_3C.leaves)
    wanted = probes * 2 + evictions * 30
    assert end_of_epoch(FIG_3C, BUCKETS, PROBLEM, printed=printed) == pytest.approx(wanted)
    whole = PROBLEM.rows * per_tuple(FIG_3C, BUCKETS, PROBLEM) + wanted
    assert per_epoch(FIG_3C, BUCKETS, PROBLEM, printed=printed) == pytest.approx(whole)
    if not printed:
        assert epoch_cost(plant(FIG_3C, PROBLEM), BUCKETS) == pytest.approx(whole / PROBLEM.rows)


def test_the_printed_end_of_an_epoch_grows_without_bound_and_the_true_one_does_not() -> None:
    large = tuple(10 * b for b in BUCKETS)
    printed = end_of_epoch(FIG_3C, large, PROBLEM, printed=True) / end_of_epoch(FIG_3C, BUCKETS, PROBLEM, printed=True)
    true = end_of_epoch(FIG_3C, large, PROBLEM) / end_of_epoch(FIG_3C, BUCKETS, PROBLEM)
    assert printed > 4
    assert true < 2


def test_a_query_that_feeds_pays_for_what_it_passes_on() -> None:
    made = arrange([letters("AB"), letters("A")], [], len)
    problem = problem_of(made)
    x_ab, x_a = rate(1846, 1000), rate(552, 300)
    printed = 2 + x_ab * 2 + x_ab * x_a * 30
    assert per_tuple(made, (1000.0, 300.0), problem, printed=True) == pytest.approx(printed)
    assert per_tuple(made, (1000.0, 300.0), problem) == pytest.approx(printed + x_ab * 30)


def test_without_a_table_all_passes_on_for_c2() -> None:
    made = parse("AB(A B)")
    problem = problem_of(made)
    x = rate(1846, 1500)
    assert per_tuple(made, (1500.0, 0.0, 0.0), problem) == pytest.approx(2 + x * 60)
    assert end_of_epoch(made, (1500.0, 0.0, 0.0), problem) == pytest.approx(occupied(1846, 1500) * 60)
    found = flows(made, (1500.0, 0.0, 0.0), problem)
    assert found[1].rate == 1
    assert found[1].occupied == 0
    assert found[1].cost == pytest.approx(x * 30)


def test_costs_differ_by_relation() -> None:
    made = parse("AB(A B)")
    probe = {"AB": 1.0, "A": 2.0, "B": 3.0}
    evict = {"A": 5.0, "B": 7.0}
    plain = problem_of(made)

    def name(grain: Grain) -> str:
        return "".join(sorted(base for base, _ in grain))

    problem = Problem(
        plain.queries,
        plain.rows,
        plain.memory,
        plain.groups,
        plain.entry,
        plain.length,
        probe=lambda grain: probe[name(grain)],
        evict=lambda grain: evict[name(grain)],
    )
    x0, x1 = rate(1846, 1000), rate(552, 300)
    wanted = 1 + x0 * (2 + 3 + x1 * (5 + 7))
    assert per_tuple(made, (1000.0, 300.0, 300.0), problem) == pytest.approx(wanted)


def test_epochs_of_different_lengths_cost_equation_29() -> None:
    made = parse("ABC(AB(A B) C)")  # Fig. 14 (b)
    epochs = epochs_of({"A": 2, "B": 3, "C": 5})
    problem = paper_problem(GROUPS, ["A", "B", "C"], 40_000, c1=2, c2=30, rows=5000)
    buckets = (2000.0, 1000.0, 300.0, 300.0, 300.0)
    counts = [22, 20, 15, 10, 6]
    x = rates_at(made, buckets, problem)
    tuples = 30 * 5000.0
    for printed in (True, False):
        size = [
            b if printed else occupied(distinct(problem.groups(node.grain), tuples / n), b)
            for node, b, n in zip(made.nodes, buckets, counts, strict=True)
        ]
        flushes = [
            size[0] * (2 + x[1] * 2 * 2 + 2 + x[1] * (x[2] + x[3]) * 30 + x[4] * 30),
            size[1] * (2 * 2 + (x[2] + x[3]) * 30),
            size[2] * 30,
            size[3] * 30,
            size[4] * 30,
        ]
        wanted = tuples * per_tuple(made, buckets, problem) + sum(
            n * flush for n, flush in zip(counts, flushes, strict=True)
        )
        found = per_cycle(made, buckets, problem, epochs, printed=printed)
        assert found == pytest.approx(wanted), f"printed={printed}"


def test_a_cycle_of_equal_epochs_is_one_epoch_after_the_other() -> None:
    # 40 tuples a group: all groups are seen in each epoch.
    problem = problem_of(FIG_3C, rows=120_000)
    cycle = per_cycle(FIG_3C, BUCKETS, problem, dict.fromkeys(problem.queries, 1))
    assert cycle == pytest.approx(per_epoch(FIG_3C, BUCKETS, problem), rel=1e-6)
