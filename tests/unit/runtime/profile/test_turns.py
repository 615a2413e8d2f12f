"""Panes that come one after the other: turns counted from a sample, and evictions predicted from them, against tables
that are simulated one record at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from penstock.logical.expressions import Column
from penstock.logical.types import BIGINT
from penstock.logical.window import TIME, Panes
from penstock.relations.component import component_of, pane_component
from penstock.relations.layout import Layout, Place
from penstock.runtime.profile.statistics import Known
from penstock.runtime.profile.survey import BLOCKS, Survey
from penstock.runtime.profile.turns import ONE_TURN, every, lasting, turns_of
from penstock.runtime.task.sampling import RECORDS, RUN
from penstock.sharing.graph.lattice import EVERY, Lattice
from penstock.sharing.model.eviction import Curve
from penstock.sharing.model.kinds.lru import LRU
from support.phantoms import NEWEST, RECENT, STREAM, Phantoms, Relation

Array = np.ndarray
PANES = Panes(TIME, 1_000_000)
GRAIN = frozenset({("value:k", 129), ("panes:0", 1), (EVERY, 1)})
NET = Lattice({"q": GRAIN}, {"value:k": Column("k", BIGINT)}, {("panes:0", 1): PANES})
N, GROUPS = 64_000, 800  # records of a task, groups of a pane
BITS = 24  # of a key beside its pane


def panes_of(count: int, disorder: float, seed: int, n: int = N) -> Array:
    """The pane of each record: as time goes by, each late by a random part of so many panes."""
    rng = np.random.default_rng(seed)
    late = rng.random(n) * disorder
    return np.maximum(0, np.floor(np.arange(n) * count / n - late)).astype(np.int64)


def sampled(values: Array) -> Array:
    """Runs from all over the task, as many as a sample has room for."""
    runs = [values[start : start + RUN] for start in range(0, len(values), RUN)]
    while len(runs) * RUN > RECORDS:
        runs = runs[::2]
    return np.concatenate(runs)


def known_of(panes: Array, keys: Array) -> Known:
    """What a planner knows once the groups of the task are counted."""
    pane = pane_component(PANES)
    places = {pane: Place(0, BITS, 20, 0), component_of("value:k"): Place(0, 0, BITS, 0)}
    layout = Layout({**places, component_of("null:k"): Place(0, 0, 0, 0)}, 1)
    words = panes << BITS | keys
    survey = Survey(layout, sampled(words).astype(np.uint64).reshape(1, -1))
    return Known(NET, survey, float(len(words)), {GRAIN: float(len(np.unique(words)))})


def passed_on(words: Array, buckets: int, policy: str) -> int:
    """Evictions and what is flushed at the end, in a table simulated one record at a time."""
    places = np.random.default_rng(5).integers(0, buckets, 1 << 22)
    table = Relation("q", STREAM, lambda key: key, buckets, True, policy)
    lfta = Phantoms([table], lambda number, key: int(places[hash((key, 7)) % len(places)]), ("add",))
    lfta.run((word, (1,)) for word in words.tolist())
    lfta.flush()
    return lfta.tables[0].counts.passed()


def keys_of(kind: str, seed: int, n: int = N) -> Array:
    rng = np.random.default_rng(seed)
    if kind == "even":
        return rng.integers(0, GROUPS, n)
    if kind == "flows":  # of ten records, one after the other
        return np.repeat(rng.integers(0, GROUPS, n // 10 + 1), 10)[:n]
    chance = np.arange(1.0, GROUPS + 1) ** -1.0
    return rng.choice(GROUPS, n, p=chance / chance.sum())


def direct(known: Known) -> Curve:
    return known.colliding(GRAIN, 1)


def recent(known: Known) -> Curve:
    assert LRU.curve is not None
    return LRU.curve(known, GRAIN, None, 1.0)


KINDS = {
    "even": 0.12,
    "flows": 0.25,
    "skewed": 0.25,
}  # how far off what is passed on may be; see `survey`, `popularity`
TABLES = pytest.mark.parametrize(("policy", "curve"), [(NEWEST, direct), (RECENT, recent)], ids=["direct", "lru"])


@pytest.mark.parametrize("count", [4, 10, 40])
@pytest.mark.parametrize("kind", list(KINDS))
@TABLES
def test_a_table_does_with_all_panes_what_it_does_with_one(
    policy: str, curve: Callable[[Known], Curve], kind: str, count: int
) -> None:
    panes, keys = panes_of(count, 0.0, 1), keys_of(kind, 2)
    known = known_of(panes, keys)
    for buckets in (GROUPS // 2, 2 * GROUPS):
        found = passed_on(panes << BITS | keys, buckets, policy)
        assert curve(known).out(buckets, N) == pytest.approx(found, rel=KINDS[kind]), f"{buckets} buckets, seeds 1, 2"


@pytest.mark.parametrize("disorder", [0.5, 3.0])
@TABLES
def test_late_records_keep_several_panes_alive(policy: str, curve: Callable[[Known], Curve], disorder: float) -> None:
    panes, keys = panes_of(10, disorder, 1), keys_of("even", 2)
    known = known_of(panes, keys)
    for buckets in (GROUPS // 2, 2 * GROUPS):
        found = passed_on(panes << BITS | keys, buckets, policy)
        assert curve(known).out(buckets, N) == pytest.approx(found, rel=0.15), f"{buckets} buckets, seeds 1, 2"


def test_without_turns_short_windows_look_unshareable() -> None:
    """Ten panes of 2,000 groups, each alive alone, in a table of 2,000: what was planned without knowing of turns."""
    rng = np.random.default_rng(3)
    panes, keys = panes_of(10, 0.0, 3, 200_000), rng.integers(0, 2000, 200_000)
    known = known_of(panes, keys)
    lru, collided = recent(known).out(2000, 200_000) / 200_000, direct(known).out(2000, 200_000) / 200_000
    assert lru == pytest.approx(0.1, abs=0.01)  # each group of a pane once
    assert collided == pytest.approx(0.43, abs=0.03)  # e^-1, and the first record of each bucket and pane


@pytest.mark.parametrize(("count", "disorder", "turns"), [(1, 0.0, 1), (2, 0.0, 2), (10, 0.0, 10), (300, 0.0, 300)])
def test_panes_in_order_are_turns(count: int, disorder: float, turns: float) -> None:
    """Also of a sample that meets but some of them."""
    found = turns_of(sampled(panes_of(count, disorder, 4)), BLOCKS)
    assert found.of(N / RECORDS) == pytest.approx(turns, rel=0.3)


def test_a_sample_of_the_first_records_tells_of_fewer_turns() -> None:
    found = turns_of(panes_of(40, 0.0, 4)[:RECORDS], BLOCKS)
    assert found.sampled == pytest.approx(40 * RECORDS / N, rel=0.15)
    assert found.of(N / RECORDS) <= 40


def test_panes_in_any_order_are_one_turn() -> None:
    rng = np.random.default_rng(5)
    assert turns_of(rng.permutation(panes_of(10, 0.0, 5)), BLOCKS).of(4.0) == pytest.approx(1.0, abs=0.05)
    assert turns_of(np.zeros(100, np.int64), BLOCKS) == ONE_TURN


def test_few_records_far_away_change_little() -> None:
    """A hundredth of the records comes any time later."""
    rng = np.random.default_rng(6)
    panes = panes_of(10, 0.0, 6)
    late = rng.integers(0, N, N // 100)
    panes[late] = rng.integers(0, panes[late] + 1)
    assert turns_of(sampled(panes), BLOCKS).of(N / RECORDS) > 7.0


def test_every_turn_has_large_groups_and_small_ones() -> None:
    counts = np.array([100] * 10 + [1] * 100)
    kept = every(counts, 10.0)
    assert sorted(kept.tolist()) == [1] * 10 + [100]
    assert every(counts, 1.0) is counts
    assert len(every(np.array([5]), 3.0)) == 1


def test_how_long_records_lasted() -> None:
    """Whatever comes late; and of a task that is one of several which the sample is of."""
    times = np.arange(16_000) * 10
    assert lasting(times, 16) == pytest.approx(160_000, rel=1e-3)
    times[::3] -= 100_000
    assert lasting(times, 16) == pytest.approx(160_000, rel=0.02)
    assert lasting(times[:5], 16) == 0.0
    assert lasting(-times, 16) == 0.0


def test_a_sample_of_a_batch_has_turns_of_all_its_tasks() -> None:
    found = turns_of(np.repeat(np.arange(8), 100), 16)
    assert found.of(50.0) == pytest.approx(8.0, rel=0.2)
    assert found.of(50.0, 2) == pytest.approx(found.of(50.0) / 2)
