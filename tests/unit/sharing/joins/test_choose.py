"""The cost of plans and the choice among them: what they must say whatever the machine."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import product
from math import prod

import pytest

from penstock.sharing.joins.choice import CHEAPEST, ESTIMATED, JoinChoice
from penstock.sharing.joins.choose import cheapest, considered, repriced
from penstock.sharing.joins.cost import USUAL, JoinCosts, priced
from penstock.sharing.joins.statistics import ALONE, FREE, SHARED, JoinStatistics, SideFigures, contained, distinct
from penstock.sharing.model.unit_costs import USUAL as UNITS

BOTH = list(product((False, True), repeat=2))


def side(held: float, groups: float, **more: object) -> SideFigures:
    return SideFigures(records=held, held=held, groups=groups, rows=groups, codes=min(groups, 10), **more)  # type: ignore[arg-type]


def known(one: SideFigures, other: SideFigures, keys: float = 100.0) -> JoinStatistics:
    """Rows spread evenly over the keys."""
    sizes = {False: [one.held, other.held], True: [one.groups, other.groups]}
    pairs = {
        "".join("01"[early] for early in plan): keys * prod(sizes[early][n] / keys for n, early in enumerate(plan))
        for plan in BOTH
    }
    return JoinStatistics((one, other), pairs, keys, states=2, made=100, measured=True)


def chosen(stats: JoinStatistics) -> tuple[bool, ...]:
    return considered(BOTH, stats, USUAL, UNITS)[0].early


def test_a_side_with_few_groups_is_early_and_one_without_groups_is_late() -> None:
    many, few = side(1e5, 1e5), side(1e5, 200)
    assert chosen(known(few, few)) == (True, True)
    assert chosen(known(few, many)) == (True, False)
    assert chosen(known(many, few)) == (False, True)
    assert chosen(known(many, many)) == (False, False)


def test_all_plans_are_listed_by_cost_with_the_bytes_that_they_keep() -> None:
    found = considered(BOTH, known(side(1e5, 200), side(1e5, 200)), USUAL, UNITS)
    assert sorted(one.early for one in found) == BOTH
    assert [one.cost for one in found] == sorted(one.cost for one in found)
    sizes = {one.early: one.bytes for one in found}
    assert sizes[False, False] == pytest.approx(500 * sizes[True, True])
    assert all(one.cost == pytest.approx(one.tasks + one.rows + one.combined) for one in found)


def test_what_is_stored_anyway_costs_tasks_nothing_and_is_never_late() -> None:
    alone, shared, free = (side(1e5, 1e5, stored=stored, kept=1) for stored in (ALONE, SHARED, FREE))
    other = side(1e5, 1e5)
    assert chosen(known(alone, other)) == (False, False)
    found = considered(BOTH, known(free, other), USUAL, UNITS)
    assert {one.early for one in found} == {(True, False), (True, True)}
    costs = [priced((True, False), known(one, other), USUAL, UNITS).tasks for one in (alone, shared, free)]
    assert costs[0] > costs[1] > costs[2]
    assert (
        priced((True, False), known(free, other), USUAL, UNITS).bytes
        < priced((True, False), known(alone, other), USUAL, UNITS).bytes
    )


@pytest.mark.parametrize("seed", range(20))
def test_more_of_anything_never_costs_less(seed: int) -> None:
    rng = random.Random(seed)
    one, other = (side(rng.uniform(10, 1e6), rng.uniform(1, 10), panes=rng.randint(1, 10)) for _ in range(2))
    stats = replace(known(one, other, rng.randint(1, 10)), together=rng.randint(1, 64), living=rng.random() < 0.7)
    for plan in BOTH:
        cost = priced(plan, stats, USUAL, UNITS).cost
        for name in JoinCosts.__dataclass_fields__:
            assert priced(plan, stats, replace(USUAL, **{name: 2 * getattr(USUAL, name)}), UNITS).cost >= cost
        assert priced(plan, replace(stats, pairs={k: 2 * n for k, n in stats.pairs.items()}), USUAL, UNITS).cost >= cost


def test_of_many_streams_one_after_the_other_becomes_early() -> None:
    """As good as the best of all plans, where sides do not depend on each other."""
    rng = random.Random(7)
    sides = tuple(side(1e4, rng.choice([10, 1e4]), panes=1) for _ in range(6))
    single = {"000000": 1e6}
    for n, one in enumerate(sides):
        single["".join("01"[m == n] for m in range(6))] = 1e6 * one.groups / one.held
    stats = JoinStatistics(sides, single, 100.0, 1, living=False)
    plans = list(product((False, True), repeat=6))
    found = considered(plans, stats, USUAL, UNITS)
    best = min((priced(plan, stats, USUAL, UNITS) for plan in plans), key=lambda one: one.cost)
    assert len(found) < len(plans)
    assert found[0].cost == pytest.approx(best.cost)


def test_combinations_that_were_not_counted_follow_from_those_of_single_sides() -> None:
    stats = JoinStatistics((), {"000": 1000.0, "100": 100.0, "010": 500.0, "001": 1000.0})
    assert stats.pairs_of((True, False, False)) == 100
    assert stats.pairs_of((True, True, False)) == pytest.approx(50)
    assert stats.pairs_of((True, True, True)) == pytest.approx(50)


def test_a_choice_says_by_what_it_was_made() -> None:
    stats = known(side(1e5, 200), side(1e5, 1e5))
    choice = JoinChoice("j", ("A", "B"), (True, True))
    found = cheapest(choice, BOTH, stats, USUAL, UNITS)
    assert (found.early, found.why, found.statistics) == ((True, False), CHEAPEST, stats)
    assert found.late == ("j:B",)
    assert found.priced is not None
    assert found.priced == found.considered[0]
    assert cheapest(choice, BOTH, replace(stats, measured=False), USUAL, UNITS).why == ESTIMATED
    kept = repriced(choice, BOTH, stats, USUAL, UNITS)
    assert (kept.early, len(kept.considered)) == (choice.early, 4)


@pytest.mark.parametrize(("records", "groups", "of"), [(1000, 50, 10_000), (100, 5000, 10_000), (2500, 9000, 10_000)])
def test_groups_of_a_part_of_the_records(records: int, groups: int, of: int) -> None:
    """Against draws: where all groups are as likely, within a few per cent."""
    rng = random.Random(records)
    there = next(n for n in range(groups, 10**6, max(1, groups // 50)) if n * (1 - (1 - 1 / n) ** of) >= groups)
    drawn = [len({rng.randrange(there) for _ in range(records)}) for _ in range(20)]
    assert distinct(records, groups, of) == pytest.approx(sum(drawn) / len(drawn), rel=0.06)


def test_keys_of_the_side_with_the_fewest_are_taken_to_be_in_all() -> None:
    assert contained([100, 10], [1000, 10]) == 100
    assert contained([5], [42]) == 42
