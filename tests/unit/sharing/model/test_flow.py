"""What flows through a tree, relation by relation."""

from __future__ import annotations

from itertools import combinations

import pytest

from experiments.models.costs import per_tuple
from experiments.models.notation import parse
from experiments.models.problems import paper_problem
from penstock.sharing.graph.configuration import Configuration
from penstock.sharing.model.collision import occupied, rate
from penstock.sharing.model.flow import flows
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


def test_flows_follow_the_tuples_down() -> None:
    found = flows(FIG_3C, BUCKETS, PROBLEM)
    x = rates_at(FIG_3C, BUCKETS, PROBLEM)
    assert [flow.rate for flow in found] == pytest.approx(x)
    assert [flow.fed for flow in found] == pytest.approx([1, x[0], x[0], x[0] * x[2], x[0] * x[2], x[0] * x[2]])
    assert [flow.evictions for flow in found] == pytest.approx([flow.fed * flow.rate for flow in found])
    assert found[0].occupied == pytest.approx(occupied(2837, 3000))
    assert found[0].cost == pytest.approx(2)
    assert found[1].cost == pytest.approx(x[0] * (2 + x[1] * 30))
    assert sum(flow.cost for flow in found) == pytest.approx(per_tuple(FIG_3C, BUCKETS, PROBLEM))


def test_flow_lengths_are_those_of_the_depth() -> None:
    made = parse("AB(A B)")
    problem = paper_problem(GROUPS, ["A", "B"], 40_000, length=[40, 4])
    found = flows(made, (1000.0, 300.0, 300.0), problem)
    assert [flow.rate for flow in found] == pytest.approx([rate(1846, 1000) / 40, *[rate(552, 300) / 4] * 2])
