"""The scheduler through whole runs with a virtual clock: promises kept, nothing left unread without need."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from penstock.triage.costs import Estimate
from penstock.triage.scheduler import Costs, Mode, fixed_step
from tests.support.bursts import (
    Run,
    Stream,
    believing,
    clairvoyant,
    forced,
    random_costs,
    random_streams,
    simulated,
)

COSTS = Costs(batch=0.2, full=1e-6, skip=5e-8, close=0.3)
BELOW_PEAK = 0.9
GRACE = 0.02  # seconds: what an odd record and the pause of a scheduler that waits may take
SEED = 18


def steady(load: float, every: float = 10.0, promise: float = 2.0, windows: int = 12) -> Stream:
    """Arrivals at `load` times what can be read in full."""
    return Stream("s", (0.0, every * windows), (load / COSTS.full,), every, promise)


def checked(run: Run, context: str) -> None:
    assert all(len(live.late) == len(live.ends) for live in run.lives), context
    assert all(live.start == live.arrived(run.ended) for live in run.lives), context
    assert all(forced(told) for told in run.batches), context
    assert run.late <= run.longest, f"{context}: {run.late:.3f} s late, a batch takes {run.longest:.3f} s"


def patterns(first: int, count: int, noise: float, wrong: float) -> None:
    for number in range(first, first + count):
        dice = Random(SEED * 1_000_000 + number)
        costs = random_costs(dice)
        streams = random_streams(dice, costs, BELOW_PEAK * (1 - noise - wrong))
        factor = 1 + wrong * (2 * dice.random() - 1)
        believed = Costs(*(factor * one for one in (costs.batch, costs.full, costs.skip, costs.close)))
        run = simulated(streams, costs, noise=noise, believed=believed, dice=dice)
        checked(run, f"pattern {number} of seed {SEED}")


def learning(first: int, count: int, noise: float = 0.3, wrong: float = 0.3) -> None:
    """Costs are believed to be so much more or less than they are, and learnt by what a run learns them with."""
    for number in range(first, first + count):
        dice = Random(SEED * 1_000_000 + number)
        costs = random_costs(dice)
        streams = random_streams(dice, costs, BELOW_PEAK * (1 - noise - wrong))
        known = believing(costs, dice.choice((1 - wrong, 1 + wrong)))
        checked(simulated(streams, costs, noise=noise, estimate=known, dice=dice), f"pattern {number} of seed {SEED}")


def test_below_the_peak_no_window_is_late_and_each_step_is_forced() -> None:
    patterns(0, 250, 0.0, 0.0)


def test_also_with_costs_that_vary_or_are_wrong() -> None:
    patterns(0, 100, 0.3, 0.0)
    patterns(100, 100, 0.0, 0.3)


def test_also_with_wrong_costs_that_are_learnt_while_they_vary() -> None:
    learning(200, 60)


@pytest.mark.slow
def test_ten_thousand_patterns() -> None:
    patterns(1_000, 8_000, 0.0, 0.0)
    patterns(9_000, 1_000, 0.3, 0.0)
    patterns(10_000, 1_000, 0.0, 0.3)
    learning(11_000, 1_000)


@pytest.mark.parametrize("load", [2, 5, 10])
@pytest.mark.parametrize(("every", "promise"), [(10.0, 2.0), (60.0, 2.0), (60.0, 5.0), (10.0, 1.2), (10.0, 30.0)])
def test_under_lasting_overload_errors_are_near_the_best(load: int, every: float, promise: float) -> None:
    stream = steady(load, every, promise)
    run = simulated([stream], COSTS)
    checked(run, f"{load} × capacity, {every} s, {promise} s")
    assert run.late <= GRACE
    best = clairvoyant(stream, COSTS).sum()
    assert 0 < run.lives[0].variance().sum() <= 1.4**2 * best


LEARNT = 5  # windows


@pytest.mark.parametrize("factor", [0.7, 1.3])
@pytest.mark.parametrize(("every", "promise"), [(10.0, 2.0), (60.0, 2.0), (60.0, 5.0), (10.0, 30.0)])
def test_costs_that_are_believed_wrong_are_right_soon(every: float, promise: float, factor: float) -> None:
    """After some windows errors are as near the best as if costs had been known, whatever was believed."""
    stream = steady(10, every, promise, 20)
    run = simulated([stream], COSTS, estimate=believing(COSTS, factor), noise=0.1, dice=Random(SEED))
    variance, best = run.lives[0].variance()[LEARNT:].sum(), clairvoyant(stream, COSTS)[LEARNT:].sum()
    assert variance <= 1.4**2 * best, f"seed {SEED}: {np.sqrt(variance / best):.2f}"


# What luck of ± 30 % costs is kept of the time after a window's end: the less of it there is for records, the more.
@pytest.mark.parametrize(
    ("every", "promise", "most"), [(60.0, 5.0, 1.4), (60.0, 2.0, 1.4), (10.0, 30.0, 1.4), (10.0, 2.0, 1.6)]
)
def test_costs_that_vary_by_a_third_leave_errors_near_the_best(every: float, promise: float, most: float) -> None:
    stream = steady(10, every, promise, 30)
    found = []
    for seed in range(4):
        run = simulated([stream], COSTS, estimate=believing(COSTS, 1.0), noise=0.3, dice=Random(seed))
        found.append(run.lives[0].variance()[LEARNT:].sum() / clairvoyant(stream, COSTS)[LEARNT:].sum())
    assert np.mean(found) <= most**2, f"seeds 0-3: {np.sqrt(found)}"


@pytest.mark.parametrize("load", [0.1, 0.5, 0.8])
def test_what_can_be_read_in_time_is_read(load: float) -> None:
    run = simulated([steady(load)], COSTS)
    checked(run, f"{load} × capacity")
    assert run.late <= GRACE
    assert set(run.lives[0].steps) == {0}


def test_between_bursts_all_is_read() -> None:
    rates = tuple(load / COSTS.full for load in (0.3, 10, 0.3))
    stream = Stream("s", (0.0, 40.0, 60.0, 200.0), rates, 10.0, 2.0)
    run = simulated([stream], COSTS)
    checked(run, "a burst")
    assert run.late <= GRACE
    assert np.flatnonzero(run.lives[0].variance()).tolist() == [4, 5]


def test_a_light_load_gets_its_results_soon() -> None:
    stream = steady(0.05, promise=9.0)
    run = simulated([stream], COSTS)
    soon = 4 * COSTS.batch + COSTS.close
    assert max(run.lives[0].late) + stream.promise < soon


def test_the_rate_that_can_be_kept_up_with_is_near_the_peak() -> None:
    peak = (1 - COSTS.close / 60) / COSTS.skip
    reached = max(
        share
        for share in (0.8, 0.85, 0.9, 0.95)
        if simulated([steady(share * peak * COSTS.full, 60.0, 5.0, 6)], COSTS).late <= GRACE
    )
    assert reached >= 0.9


def test_streams_without_promise_stay_exact_and_take_what_time_is_left() -> None:
    owed = Stream("owed", (0.0, 60.0, 200.0), (0.5 / COSTS.full, 0.1 / COSTS.full), 10.0)
    rates = tuple(load / COSTS.full for load in (0.3, 10, 0.3))
    promised = Stream("s", (0.0, 40.0, 60.0, 200.0), rates, 10.0, 2.0)
    run = simulated([promised, owed], COSTS)
    checked(run, "with an owed stream")
    assert run.late <= GRACE
    assert set(run.lives[1].steps) == {0}
    assert {4, 5} <= set(np.flatnonzero(run.lives[0].variance())) <= {3, 4, 5}  # 3: what waited when the burst began


def test_without_promises_all_time_is_theirs() -> None:
    streams = [Stream(name, (0.0, 50.0), (0.4 / COSTS.full,), 10.0) for name in "ab"]
    run = simulated(streams, COSTS)
    assert run.ended < 54
    assert all(set(live.steps) == {0} for live in run.lives)


def test_a_queue_reads_all_and_grows_late() -> None:
    run = simulated([steady(2, windows=6)], COSTS, mode=Mode.QUEUE)
    assert set(run.lives[0].steps) == {0}
    assert run.late > 50


def test_dropping_keeps_promises_too() -> None:
    run = simulated([steady(5)], COSTS, mode=Mode.DROP)
    checked(run, "drop")
    assert run.late <= GRACE
    assert set(run.lives[0].steps) == {0, 63}


def test_a_fixed_step_is_that_of_the_peak_whatever_the_load() -> None:
    k = fixed_step(10 / COSTS.full, 10.0, COSTS)
    assert k == 5
    stream = Stream("s", (0.0, 60.0, 120.0), (0.2 / COSTS.full, 10 / COSTS.full), 10.0, 2.0)
    run = simulated([stream], COSTS, mode=Mode.SUMMARISE, fixed=k)
    assert run.late <= GRACE
    assert k in run.lives[0].steps[:3]
    assert run.lives[0].variance()[0] > 0


def test_a_batch_reads_no_more_than_it_may() -> None:
    most = 700_000
    run = simulated([steady(0.5)], COSTS, batch_rows=most)  # which `simulated` asserts
    checked(run, "small batches")
    assert set(run.lives[0].steps) == {0}


@pytest.mark.parametrize("load", [0.5, 5, 10])
def test_costs_are_learnt_on_the_way(load: float) -> None:
    dice = Random(SEED)
    stream = steady(load, windows=30)
    run = simulated([stream], COSTS, estimate=Estimate(), noise=0.1, dice=dice)
    late = run.lives[0].late
    assert max(late[3:]) <= 2 * COSTS.batch, f"seed {SEED}"
    variance, best = run.lives[0].variance()[3:].sum(), clairvoyant(stream, COSTS)[3:].sum()
    assert variance <= 1.4**2 * best, f"seed {SEED}"


def begun(full: float, load: float, every: float, promise: float, batch: float, seed: int) -> Run:
    """A run that begins at this load, and knows nothing of costs; its first batch takes half a second more."""
    costs = Costs(batch, full, full / 20, 0.1 if every < 2 else 0.3)
    stream = Stream("s", (0.0, every * 5), (load / full,), every, promise)
    return simulated([stream], costs, estimate=Estimate(), cold=0.5, noise=0.1, dice=Random(seed))


@pytest.mark.parametrize("full", [1e-6, 1e-5, 1e-4, 3e-4])
@pytest.mark.parametrize(("every", "promise"), [(1.0, 2.0), (2.0, 2.0), (5.0, 2.0), (10.0, 2.0), (10.0, 5.0)])
def test_the_first_windows_of_an_overload_are_in_time_whatever_records_cost(
    full: float, every: float, promise: float
) -> None:
    for seed, load in enumerate((2, 5, 10, 2, 5, 10)):
        late = begun(full, load, every, promise, 0.1 + 0.1 * (seed % 2), seed).lives[0].late
        assert max(late[:3]) <= 0.2, f"seed {seed}, {load} × capacity: {late}"


@pytest.mark.parametrize("full", [1e-6, 1e-5, 1e-4, 3e-4])
@pytest.mark.parametrize(("every", "promise"), [(1.0, 2.0), (2.0, 2.0), (5.0, 2.0), (10.0, 2.0), (10.0, 5.0)])
def test_what_can_be_read_in_time_is_read_from_the_first_record_on(full: float, every: float, promise: float) -> None:
    for seed in range(4):
        live = begun(full, 0.3, every, promise, 0.1 + 0.1 * (seed % 2), seed).lives[0]
        assert set(live.steps) == {0}, f"seed {seed}"
        assert max(live.late) <= 0, f"seed {seed}: {live.late}"
