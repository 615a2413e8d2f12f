"""Phantoms chosen where flushes count: the end of an epoch, and epochs of different lengths (smap, Sec. 7 and 8.6)."""

from __future__ import annotations

import random
from functools import partial
from itertools import combinations

import pytest

from experiments.models.costs import cycle_cost, epoch_cost, epochs_of, per_cycle, per_epoch
from experiments.models.problems import paper_problem
from penstock.sharing.choose.choice import choose
from penstock.sharing.model.figures import buckets_of, plant

GROUPS = {
    "".join(some): (552.0, 1846.0, 2117.0, 2837.0)[size - 1]
    for size in range(1, 5)
    for some in combinations("ABCD", size)
}
SINGLE = list("ABCD")


def uniform_groups(values: int, seed: int = 1, groups: int = 2837) -> dict[str, float]:
    """The paper's synthetic data: random tuples of four attributes with so many values each."""
    random_ = random.Random(seed)
    tuples: set[tuple[int, ...]] = set()
    while len(tuples) < groups:
        tuples.add(tuple(random_.randrange(values) for _ in range(4)))
    return {
        "".join("ABCD"[i] for i in some): float(len({tuple(each[i] for i in some) for each in tuples}))
        for size in range(1, 5)
        for some in combinations(range(4), size)
    }


def test_the_end_of_epochs_can_be_part_of_what_is_made_least() -> None:
    """A phantom over epochs of few tuples is flushed too often to pay."""
    short = paper_problem(GROUPS, SINGLE, 40_000, c2=15, rows=1500)
    found = choose("gc", short, "sl", objective=epoch_cost)
    buckets = buckets_of(plant(found.configuration, short), found.spaces)
    assert found.cost == pytest.approx(per_epoch(found.configuration, buckets, short) / 1500)
    assert len(found.configuration.phantoms) < len(choose("gc", short, "sl").configuration.phantoms)


def test_epochs_of_different_lengths_are_planned_for() -> None:
    """Sec. 8.6.2: {A, B, C, D} with epochs of 2, 3, 5 and 6; GCSL stays near the best and below GP."""
    epochs = epochs_of({"A": 2, "B": 3, "C": 5, "D": 6})
    problem = paper_problem(uniform_groups(12), SINGLE, 40_000, c2=15)
    objective = partial(cycle_cost, epochs=epochs)
    greedy = choose("gc", problem, "sl", objective=objective)
    buckets = buckets_of(plant(greedy.configuration, problem), greedy.spaces)
    assert greedy.cost * 30 * problem.rows == pytest.approx(per_cycle(greedy.configuration, buckets, problem, epochs))
    best = choose("epes", problem, "es", objective=objective).cost
    assert greedy.cost <= 1.04 * best
    assert all(greedy.cost < choose("gp", problem, "pl", phi=phi, objective=objective).cost for phi in (0.4, 1.2, 2.0))


def test_frequent_flushes_make_a_shared_phantom_dear() -> None:
    """Where each query is flushed at times of its own, a phantom over all is flushed at all of them."""
    problem = paper_problem(GROUPS, SINGLE, 40_000, c2=15, rows=2000)

    def cost(epochs: dict[str, int]) -> float:
        return choose("gc", problem, "sl", objective=partial(cycle_cost, epochs=epochs_of(epochs))).cost

    assert cost({"A": 2, "B": 3, "C": 5, "D": 7}) > 1.2 * cost(dict.fromkeys(SINGLE, 30))
