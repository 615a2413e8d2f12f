"""Costs of aggregation joins: Eq. 15 to 26 written out, what is derived in Appendix A, and three streams by hand."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

import numpy as np
import pytest

from experiments.models.join_costs import (
    PaperOperations,
    Plan,
    Sizes,
    StreamStatistics,
    UnitCosts,
    bounds,
    expected,
    expected_cost,
    paper_cost,
    unit_time,
)
from experiments.models.join_operations import MeasuredOperations, OperationCosts, better_cost

LAP, EA10, EA01, EA11 = (False, False), (True, False), (False, True), (True, True)


def random_statistics(dice: random.Random) -> StreamStatistics:
    keys = dice.choice([2, 10, 200, 2000])
    return StreamStatistics(dice.randrange(1, 900), dice.randrange(1, 9000), dice.choice([1, 3, 150, 9000]), 1 / keys)


def equations(
    one: StreamStatistics, two: StreamStatistics, units: UnitCosts, hashed: bool, most: int
) -> dict[Plan, float]:
    """Eq. 19 to 22 (nested loop) and 23 to 26 (hash) as printed, but for the slips; Appendix A above them."""
    l1, w1, g1, s1 = one.rate, one.window, one.groups, one.selectivity
    l2, w2, g2, s2 = two.rate, two.window, two.groups, two.selectivity
    P, U, Ug = units.probe, units.update, units.group
    a = min(w1, g1) * min(w2, g2)
    a1, a2 = min(w1, g1 / s1), min(w2, g2 / s2)
    m1, m2 = s1 * w1, s2 * w2
    n1, n2 = min(w1 * s1, g1), min(w2 * s2, g2)
    B1, B2, Bg = min(1 / s1, most), min(1 / s2, most), min(g1, most)
    if not hashed:
        return {
            LAP: l1 * (2 * w2 * P + 2 * U + 2 * m2 * a / Bg * Ug) + l2 * (2 * w1 * P + 2 * U + 2 * m1 * a / Bg * Ug),
            EA10: l1 * (2 * w2 * P + 2 * U + 2 * a1 / B1 * Ug + 2 * m2 * a / Bg * Ug)
            + l2 * (2 * a1 * P + 2 * U + 2 * n1 * a / Bg * Ug),
            EA01: l1 * (2 * a2 * P + 2 * U + 2 * n2 * a / Bg * Ug)
            + l2 * (2 * w1 * P + 2 * U + 2 * m1 * a / Bg * Ug + 2 * a2 / B2 * Ug),
            EA11: l1 * (2 * a2 * P + 2 * U + 2 * a1 / B1 * Ug + 2 * n2 * a / Bg * Ug)
            + l2 * (2 * a1 * P + 2 * U + 2 * a2 / B2 * Ug + 2 * n1 * a / Bg * Ug),
        }
    return {
        LAP: l1 * (2 * w2 / B2 * P + 2 * U + 2 * m2 * a / Bg * Ug)
        + l2 * (2 * w1 / B1 * P + 2 * U + 2 * m1 * a / Bg * Ug),
        EA10: l1 * (2 * w2 / B2 * P + 2 * U + 2 * a1 / B1 * Ug + 2 * m2 * a / Bg * Ug)
        + l2 * (2 * a1 / B1 * P + 2 * U + 2 * n1 * a / Bg * Ug),
        EA01: l1 * (2 * a2 / B2 * P + 2 * U + 2 * n2 * a / Bg * Ug)
        + l2 * (2 * w1 / B1 * P + 2 * U + 2 * a2 / B2 * Ug + 2 * m1 * a / Bg * Ug),
        EA11: l1 * (2 * a2 / B2 * P + 2 * U + 2 * a1 / B1 * Ug + 2 * n2 * a / Bg * Ug)
        + l2 * (2 * a1 / B1 * P + 2 * U + 2 * a2 / B2 * Ug + 2 * n1 * a / Bg * Ug),
    }


@pytest.mark.parametrize("hashed", [True, False])
@pytest.mark.parametrize("seed", range(20))
def test_two_streams_cost_what_the_equations_say(seed: int, hashed: bool) -> None:
    dice = random.Random(seed)
    streams = (random_statistics(dice), random_statistics(dice))
    units, most = UnitCosts(*(dice.uniform(1, 20) for _ in range(3))), dice.choice([16, 1021])
    for plan, cost in equations(*streams, units, hashed, most).items():
        assert paper_cost(plan, streams, units, hashed, most) == pytest.approx(cost), f"seed {seed}, {plan}"


@dataclass(frozen=True)
class Named:
    """Cost terms as primes, so that every sum is of one make only."""

    def update_window(self, stream: int) -> float:
        return (2.0, 3.0, 5.0)[stream]

    def find(self, stream: int, early: bool) -> float:
        return ((7.0, 11.0, 13.0), (17.0, 19.0, 23.0))[early][stream]

    def update_set(self, stream: int) -> float:
        return (29.0, 31.0, 37.0)[stream]

    def update_out(self, stream: int, plan: Plan) -> float:
        return 41.0


def test_the_generic_functions() -> None:
    """Eq. 15 to 18, with m_1, m_2 = 100, 1000 and n_1, n_2 = 10, 20; both parts of an equation twice, in and out."""
    streams = (StreamStatistics(1, 1, 1, 1), StreamStatistics(10_000, 1, 1, 1))
    sizes = Sizes(0, (0, 0), (100, 1000), (10, 20), (1, 1), 1)
    costs = {
        LAP: (2 + 11 + 1000 * 41) + 10_000 * (3 + 7 + 100 * 41),
        EA10: (2 + 11 + 1000 * 41 + 29) + 10_000 * (3 + 17 + 10 * 41),
        EA01: (2 + 19 + 20 * 41) + 10_000 * (3 + 7 + 100 * 41 + 31),
        EA11: (2 + 19 + 20 * 41 + 29) + 10_000 * (3 + 17 + 10 * 41 + 31),
    }
    for plan, cost in costs.items():
        assert unit_time(plan, streams, sizes, Named()) == 2 * cost


def test_three_streams_are_asked_from_left_to_right() -> None:
    one = StreamStatistics(1, 1, 1, 1)
    sizes = Sizes(0, (0, 0, 0), (100, 1000, 10_000), (10, 20, 30), (1, 1, 1), 1)
    plan = (True, False, True)
    first = 2 + 29 + 11 + 1000 * 23 + 1000 * 30 * 41
    second = 3 + 17 + 10 * 23 + 10 * 30 * 41
    third = 5 + 37 + 17 + 10 * 11 + 10 * 1000 * 41
    assert unit_time(plan, (one, one, one), sizes, Named()) == 2 * (first + second + third)


@pytest.mark.parametrize("seed", range(8))
def test_expected_sizes_are_those_of_random_windows(seed: int) -> None:
    dice, rng = random.Random(seed), np.random.default_rng(seed)
    m, keys = dice.choice([2, 3]), dice.choice([5, 30])
    streams = [StreamStatistics(1, dice.randrange(50, 400), dice.choice([1, 4, 20, 100]), 1 / keys) for _ in range(m)]
    sizes, most = expected(streams), bounds(streams)
    sets, outs = np.zeros(m), 0
    for _ in range(40):
        windows = [
            {*zip(rng.integers(0, s.groups, s.window).tolist(), rng.integers(0, keys, s.window).tolist(), strict=True)}
            for s in streams
        ]
        sets += [len(window) for window in windows]
        joined = {((group,), key) for group, key in windows[0]}
        for window in windows[1:]:
            joined = {((*groups, group), key) for groups, key in joined for group, other in window if other == key}
        outs += len({groups for groups, _ in joined})
    assert sizes.sets == pytest.approx((sets / 40).tolist(), rel=0.03), f"seed {seed}"
    assert sizes.out == pytest.approx(outs / 40, rel=0.08), f"seed {seed}"
    assert all(ours <= theirs * (1 + 1e-9) for ours, theirs in zip(sizes.sets, most.sets, strict=True))
    assert all(n == pytest.approx(size / keys) for n, size in zip(sizes.set_matches, sizes.sets, strict=True))


def test_expected_sizes_are_up_to_1_6_times_smaller() -> None:
    """models.md: α_i = 1500 of 1500 draws are 948 distinct."""
    stream = StreamStatistics(1, 1500, 150, 0.1)
    assert bounds([stream]).sets[0] / expected([stream]).sets[0] == pytest.approx(1.58, abs=0.01)


def test_with_sizes_that_agree_all_models_do() -> None:
    """Far more records than groups: the bounds are reached. Operations of one cost each are then the paper's."""
    streams = (StreamStatistics(300, 50_000, 1, 0.1), StreamStatistics(200, 50_000, 1, 0.1))
    units = UnitCosts(3.0, 5.0, 7.0)
    alike = OperationCosts(5.0, 3.0, 3.0, 0.0, 7.0, 0.0, 7.0, 7.0)
    for plan in (LAP, EA10, EA01, EA11):
        paper = paper_cost(plan, streams, units, True)
        assert expected_cost(plan, streams, units, True) == pytest.approx(paper)
        assert better_cost(plan, streams, alike, True) == pytest.approx(paper)


def test_how_often_the_group_changes() -> None:
    """Counted on tuples in the order in which nested loops make them."""
    rng = np.random.default_rng(3)
    streams = [StreamStatistics(1, 60, groups, 0.1) for groups in (4, 1, 3)]
    sizes = expected(streams)
    for stream in range(3):
        changed = made = 0
        before: tuple[int, ...] | None = None
        loops = [j for j in range(3) if j != stream]
        for _ in range(400):
            own = int(rng.integers(0, streams[stream].groups))
            outer = rng.integers(0, streams[loops[0]].groups, 6)
            inner = rng.integers(0, streams[loops[1]].groups, 6)
            for a in outer.tolist():
                for b in inner.tolist():
                    group = (own, a, b)
                    changed, made, before = changed + (group != before), made + 1, group
        costs = MeasuredOperations(streams, sizes, OperationCosts(*[0.0] * 8), True)
        assert costs.changes(stream, (False, False, False)) == pytest.approx(changed / made, abs=0.05)


def test_what_an_operation_costs_in_all() -> None:
    streams = (StreamStatistics(300, 5000, 150, 0.1), StreamStatistics(300, 5000, 1, 0.1))
    sizes = replace(expected(streams), sets=(1500.0, 10.0))
    costs = MeasuredOperations(streams, sizes, OperationCosts(1, 2, 3, 4, 5, 6, 7, 8), True)
    assert costs.find(1, False) == 500 * 2
    assert costs.find(0, True) == 150 * 3
    # All groups are there: half of the chain, coming and going.
    assert costs.update_set(0) == pytest.approx(5 + 151 / 2 * 4)
    assert PaperOperations(streams, sizes, UnitCosts(2, 1, 5), False).find(1, False) == 5000 * 2
