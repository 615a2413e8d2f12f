"""What is learnt of costs from the timings of batches."""

from __future__ import annotations

from random import Random

import pytest

from penstock.state.data import from_data, to_data
from penstock.triage.costs import Estimate, Timing, compaction, costs, measured, rows
from penstock.triage.plan import Costs

SEED = 18


def timed(true: Costs, read: int, left: int = 0, closed: int = 0, luck: float = 1.0, compacted: float = 0.0) -> Timing:
    """A batch whose constant costs a third each in its tasks, its merge and the rest."""
    part = true.batch / 3
    tasks = (part + read * true.full + left * true.skip) * luck
    merge = (part + closed * true.close) * luck + compacted
    whole = tasks + merge + part * luck
    return Timing(read, left, closed, compacted > 0, tasks, merge, whole, whole)


def learnt(true: Costs, dice: Random, batches: int, noise: float, skipping: bool = True) -> Estimate:
    found = Estimate()
    for number in range(batches):
        read = int(dice.random() * min(rows(found, 1 << 40), 2 / true.full))
        left = read * dice.choice((0, 0, 3, 30)) if skipping and number % 2 else 0
        luck = 1 + noise * (2 * dice.random() - 1)
        found = measured(found, timed(true, read, left, dice.choice((0, 0, 1, 2)), luck))
    return found


@pytest.mark.parametrize("full", [1e-7, 3e-6, 1e-4, 3e-3])
@pytest.mark.parametrize("ratio", [3, 15, 50])
def test_costs_of_any_size_are_found(full: float, ratio: float) -> None:
    true = Costs(0.2, full, full / ratio, 0.4)
    found = costs(learnt(true, Random(SEED), 120, 0.0))
    for name in ("full", "skip", "close"):
        assert getattr(found, name) / getattr(true, name) == pytest.approx(1.0, abs=0.3), f"{name}, seed {SEED}"
    assert 0.7 < found.batch / true.batch < 2, f"seed {SEED}"


def test_margins_grow_with_what_varies() -> None:
    true = Costs(0.2, 1e-6, 1e-7, 0.4)
    steady, varying = (costs(learnt(true, Random(SEED), 80, noise)) for noise in (0.02, 0.3))
    assert 1 < steady.margin < 1.1 < 1.2 < varying.margin < 1.5
    assert steady.full == pytest.approx(true.full, rel=0.05)
    assert varying.full == pytest.approx(true.full, rel=0.15)


def test_the_first_batches_are_small() -> None:
    assert rows(Estimate(), 1_000_000) == 1_000
    found = measured(Estimate(), timed(Costs(0.2, 1e-6, 1e-7, 0.4), 1_000))
    assert rows(found, 1_000_000) == 8_000
    assert rows(found, 500) == 500


def test_what_was_never_left_unread_costs_a_tenth() -> None:
    found = costs(learnt(Costs(0.2, 1e-4, 0.0, 0.4), Random(SEED), 40, 0.1, skipping=False))
    assert found.skip / found.full == pytest.approx(0.1, rel=0.1)


def test_a_stall_is_forgotten_soon_and_a_slower_machine_is_believed() -> None:
    true = Costs(0.2, 1e-6, 1e-7, 0.4)
    known = learnt(true, Random(SEED), 60, 0.05)
    before = costs(known).full
    stalled = measured(known, timed(true, 1_000_000, 0, 1, 50.0))
    assert costs(stalled).full < 2.5 * before
    for _ in range(12):
        stalled = measured(stalled, timed(true, 1_000_000, 0, 1))
    assert costs(stalled).full < 1.3 * before
    for _ in range(20):
        known = measured(known, timed(true, 1_000_000, 0, 1, 3.0))
    assert costs(known).full > 2.5 * true.full


def test_a_compaction_is_no_part_of_a_close() -> None:
    true = Costs(0.2, 1e-6, 1e-7, 0.4)
    known = learnt(true, Random(SEED), 60, 0.0)
    before = costs(known).close
    for _ in range(10):
        known = measured(known, timed(true, 100_000, 0, 1, compacted=2.0))
    assert costs(known).close == pytest.approx(before)
    assert 1.8 < compaction(known) < 4.2


def test_it_is_data() -> None:
    known = learnt(Costs(0.2, 1e-6, 1e-7, 0.4), Random(SEED), 5, 0.1)
    assert from_data(Estimate, to_data(known), "costs") == known


@pytest.mark.parametrize("compacted", [False, True])
def test_odd_timings_do_no_harm(compacted: bool) -> None:
    known = Estimate()
    for batch in (Timing(0, 0, 0, compacted, 0, 0, 0, 0), Timing(5, 9, 0, compacted, 3, 2, 1, 0)):
        known = measured(known, batch)
        assert all(0 < one < 10 for one in vars(costs(known)).values())
