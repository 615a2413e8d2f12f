"""Shrink and shift: the peak is kept, with no more than is needed, and the cheaper of both is taken."""

from __future__ import annotations

from itertools import combinations

import pytest

from experiments.models.costs import end_of_epoch, flush_load, per_tuple
from experiments.models.notation import parse
from experiments.models.problems import paper_problem
from experiments.models.spaces import allocate
from penstock.sharing.allocate.peak_load import Load, shift, shrink, within_peak
from penstock.sharing.graph.configuration import Configuration
from penstock.sharing.model.figures import buckets_of, plant
from penstock.sharing.model.problem import Problem

GROUPS = {
    "".join(some): (552.0, 1846.0, 2117.0, 2837.0)[size - 1]
    for size in range(1, 5)
    for some in combinations("ABCD", size)
}
MADE = parse("ABCD(AB BCD(BC BD CD))")
PROBLEM = paper_problem(GROUPS, ["AB", "BC", "BD", "CD"], 40_000, c2=15, length=[40, 8, 4])
SPACES = allocate("sl", MADE, PROBLEM)
LOAD, PRINTED = flush_load(MADE, PROBLEM), flush_load(MADE, PROBLEM, printed=True)


def buckets(spaces: tuple[float, ...]) -> list[float]:
    return buckets_of(plant(MADE, PROBLEM), spaces)


def load(spaces: tuple[float, ...], printed: bool = False) -> float:
    return end_of_epoch(MADE, buckets(spaces), PROBLEM, printed=printed)


def per_tuple_of(made: Configuration, problem: Problem) -> Load:
    tree = plant(made, problem)
    return lambda spaces: per_tuple(made, buckets_of(tree, spaces), problem)


cost = per_tuple_of(MADE, PROBLEM)


@pytest.mark.parametrize("printed", [False, True])
@pytest.mark.parametrize("part", [0.95, 0.8, 0.5, 0.1])
def test_shrinking_meets_the_limit_and_no_more(part: float, printed: bool) -> None:
    limit = part * load(SPACES, printed)
    found = shrink(SPACES, flush_load(MADE, PROBLEM, printed=printed), limit)
    assert load(found, printed) == pytest.approx(limit, rel=1e-5)
    assert load(found, printed) <= limit
    factors = [after / before for after, before in zip(found, SPACES, strict=True)]
    assert factors == pytest.approx([factors[0]] * len(factors))


def test_the_peak_falls_more_slowly_than_tables_shrink() -> None:
    limit = 0.5 * load(SPACES)
    assert sum(shrink(SPACES, LOAD, limit)) < 0.5 * sum(SPACES)


@pytest.mark.parametrize("part", [0.98, 0.9])
def test_shifting_keeps_all_memory_and_meets_the_limit(part: float) -> None:
    limit = part * load(SPACES, True)
    found = shift(MADE, SPACES, PRINTED, limit)
    assert found is not None
    assert sum(found) == pytest.approx(sum(SPACES))
    assert load(found, True) <= limit
    assert load(found, True) == pytest.approx(limit, rel=1e-5)
    assert all((after < before) == node.query for after, before, node in zip(found, SPACES, MADE.nodes, strict=True))


def test_shifting_cannot_meet_every_limit() -> None:
    assert shift(MADE, SPACES, LOAD, 0.01 * load(SPACES)) is None


def test_shifting_may_raise_the_peak_and_is_not_used_then() -> None:
    """On random data small query tables let most of a flush through to the HFTA."""
    problem = paper_problem(GROUPS, ["AB", "BC", "BD", "CD"], 40_000, c2=15)
    spaces = allocate("sl", MADE, problem)
    limit = 0.99 * end_of_epoch(MADE, buckets(spaces), problem)
    flushing = flush_load(MADE, problem)
    assert shift(MADE, spaces, flushing, limit) is None
    assert within_peak(MADE, spaces, flushing, limit, per_tuple_of(MADE, problem)) == shrink(spaces, flushing, limit)


def test_without_phantoms_there_is_nothing_to_shift_to() -> None:
    made = parse("A B")
    problem = paper_problem(GROUPS, ["A", "B"], 4000)
    spaces = allocate("sl", made, problem)
    flushing = flush_load(made, problem)
    assert shift(made, spaces, flushing, 1.0) is None
    found = within_peak(made, spaces, flushing, 1000.0, per_tuple_of(made, problem))
    assert end_of_epoch(made, [s / 2 for s in found], problem) <= 1000


def test_what_meets_the_limit_stays() -> None:
    assert within_peak(MADE, SPACES, LOAD, 1.01 * load(SPACES), cost) == SPACES
    assert shrink(SPACES, LOAD, 1.01 * load(SPACES)) == SPACES


def test_the_cheaper_way_that_meets_the_limit_is_taken() -> None:
    """Fig. 22: shifting wins where little is to be done, shrinking where much is."""
    taken = []
    for part in (0.98, 0.9, 0.7, 0.4):
        limit = part * load(SPACES, True)
        small, moved = shrink(SPACES, PRINTED, limit), shift(MADE, SPACES, PRINTED, limit)
        found = within_peak(MADE, SPACES, PRINTED, limit, cost)
        assert load(found, True) <= limit
        assert cost(found) == min(cost(each) for each in (small, moved) if each is not None)
        taken.append("shift" if found == moved else "shrink")
    assert taken[0] == "shift"
    assert taken[-1] == "shrink"


def test_nothing_is_left_where_the_limit_is_nothing() -> None:
    assert load(within_peak(MADE, SPACES, LOAD, 0.0, cost)) == 0
