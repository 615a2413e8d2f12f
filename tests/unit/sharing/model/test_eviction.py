"""Models of eviction: Che's approximation against tables at work, the paper's formulas by their numbers."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from experiments.models.curves import Lemma, below
from penstock.kernels.tables import lru
from penstock.kernels.tables import probe as tables
from penstock.sharing.model.collision import occupied, rate
from penstock.sharing.model.eviction import Che, Curve, DirectMapped, Taken
from penstock.sharing.model.popularity import (
    Popularity,
    estimated,
    exponent,
    fitted,
    harmonic,
    of_counts,
    uniform,
    urns,
    zipf,
)

Codes = NDArray[np.int64]
SAMPLE = 16_384


def drawn(seed: int, groups: int, alpha: float, tuples: int) -> Codes:
    print(f"seed {seed}")
    chances = np.cumsum(np.arange(1.0, groups + 1) ** -alpha)
    return np.searchsorted(chances / chances[-1], np.random.default_rng(seed).random(tuples))


def run(codes: Codes, capacity: int) -> tuple[Codes, int]:
    """What a table evicts, in order, and its residents at the end."""
    n = len(codes)
    keys = np.ascontiguousarray(codes.astype(np.uint64)[None, :])
    hashes, at = np.empty(n, np.uint64), np.empty(n, np.int64)
    evicted, places = np.empty(n, np.int64), np.empty(n, np.int64)
    tables.hash_keys(keys, hashes)
    entries, links = np.zeros((capacity + n, 2), np.uint64), lru.links(capacity)
    none, fresh = np.empty(0, np.int64), np.zeros(1, np.uint64)
    out = lru.probe_lru(keys, hashes, none, fresh, entries, *links, at, evicted, places)
    return entries[evicted[:out], 0].astype(np.int64), int(links.state[lru.SIZE])


def passed(codes: Codes, capacity: int) -> int:
    evicted, residents = run(codes, capacity)
    return len(evicted) + residents


@pytest.mark.parametrize("alpha", [0.0, 0.48, 0.67, 0.85, 1.0, 1.3])
@pytest.mark.parametrize("times", [1, 3, 10])
def test_the_model_is_what_tables_do(alpha: float, times: int) -> None:
    groups, tuples = 20_000, 20_000 * times
    codes = drawn(int(100 * alpha) + times, groups, alpha, tuples)
    curve = Che(zipf(groups, alpha), tuples)
    for share in (0.005, 0.03, 0.1, 0.4, 0.8, 1.0):
        capacity = int(share * groups)
        assert curve.out(capacity, tuples) == pytest.approx(passed(codes, capacity), rel=0.03)


@pytest.mark.parametrize("alpha", [0.0, 0.48, 0.67, 0.85, 1.0, 1.3])
def test_a_sample_is_enough(alpha: float) -> None:
    """Evictions within 10 % by the counts of 16,384 tuples and the number of groups; the exponent within 0.15."""
    groups, tuples = 50_000, 200_000
    codes = drawn(7, groups, alpha, tuples)
    counts = np.bincount(codes[:SAMPLE])
    counts = counts[counts > 0]
    seen = len(np.unique(codes))
    assert exponent(counts) == pytest.approx(alpha, abs=0.15 if alpha < 0.6 else 0.05)
    curve = Che(estimated(counts, tuples, seen), tuples)
    for share in (0.01, 0.1, 0.5):
        capacity = int(share * groups)
        assert curve.out(capacity, tuples) == pytest.approx(passed(codes, capacity), rel=0.10)


@pytest.mark.parametrize(("share", "flows"), [(0.25, 1), (1.0, 6), (0.5, 6)])
def test_filters_and_flows_before_a_table(share: float, flows: int) -> None:
    """A table that takes a part of the tuples, which come in flows: what it passes on of all that come to it."""
    groups, tuples = 5_000, 240_000
    drawn_flows = drawn(5, groups, 0.8, tuples // flows)
    taken = np.random.default_rng(1).random(len(drawn_flows)) < share
    codes = np.repeat(drawn_flows[taken], flows)
    law = Che(zipf(groups, 0.8), tuples)
    curve = Taken(law, share, flows)
    for capacity in (50, 500, 4_000):
        assert share * curve.out(capacity, tuples) == pytest.approx(passed(codes, capacity), rel=0.05)
        fixed, slope = curve.response(capacity, tuples)
        assert fixed + slope * tuples == pytest.approx(float(curve.outs(np.array([capacity]), np.array([tuples]))[0]))
    assert curve.response(0, tuples) == (0.0, 1.0)
    entries, fixed_parts, slopes, _ = curve.points
    assert (entries[0], fixed_parts[0], slopes[0]) == (0.0, 0.0, 1.0)
    assert curve.most == law.most


def test_the_paper_takes_lru_for_lfu() -> None:
    """α = 0.85 in a tenth of the space: Lemma 6.1 says 0.29, perfect LFU has 0.38, LRU 0.50."""
    groups, tuples, capacity = 10_000, 500_000, 1_000
    codes = drawn(1, groups, 0.85, tuples)
    assert float(Lemma(groups, 0.85).rates(capacity)) == pytest.approx(0.29, abs=0.005)
    frequent = float((codes >= capacity).mean())
    assert float(Lemma(groups, 0.85, exact=True).rates(capacity)) == pytest.approx(frequent, abs=0.005)
    assert frequent == pytest.approx(0.38, abs=0.005)
    measured = len(run(codes, capacity)[0]) / tuples
    assert measured == pytest.approx(0.50, abs=0.01)
    assert Che(zipf(groups, 0.85), tuples).response(capacity, tuples)[1] == pytest.approx(measured, abs=0.01)


def test_below_a_table_popularity_is_flatter() -> None:
    """Pairs of a skewed and an even attribute: the repeats of frequent pairs never reach a child of the skewed one."""
    tuples, capacity, small, partners = 300_000, 10_000, 40, 100
    first = drawn(4, 400, 1.0, tuples)
    codes = first * 100_000 + np.random.default_rng(3).integers(0, partners, tuples)
    evicted, residents = run(codes, capacity)
    inputs = len(evicted)
    child = len(run(evicted // 100_000, small)[0]) / inputs
    raw = Che(of_counts(np.bincount(first)[np.bincount(first) > 0]), tuples).response(small, tuples)[1]
    counted = np.bincount(evicted // 100_000)
    own = Che(of_counts(counted[counted > 0]), inputs).response(small, inputs)[1]
    once = np.unique(codes[:SAMPLE], return_index=True)[1]
    sampled = np.unique(first[once], return_counts=True)[1]
    seen = Che(estimated(sampled, inputs, 400.0), inputs).response(small, inputs)[1]
    assert seen == pytest.approx(child, rel=0.15)
    # Without looking: every group of the child consists of as many of the parent's.
    parent = Che(of_counts(np.unique(codes, return_counts=True)[1]), tuples)
    spread = below(zipf(400, 1.0), 0.0, 400.0 * partners, parent.time(capacity), tuples)
    told = Che(spread, inputs).response(small, inputs)[1]
    print(f"child evicts {child:.3f}; by its own input {own:.3f}, as told {told:.3f}, by the stream's {raw:.3f}")
    assert own == pytest.approx(child, rel=0.03)
    assert told == pytest.approx(child, rel=0.05)
    assert raw < 0.8 * child
    assert residents == capacity


def curves() -> list[Curve]:
    return [Che(zipf(5000, alpha), 50_000) for alpha in (0.0, 0.5, 1.0, 1.3)] + [
        DirectMapped(5000.0),
        DirectMapped(5000.0, 4.0),
    ]


@pytest.mark.parametrize("curve", curves(), ids=repr)
def test_more_entries_never_pass_on_more(curve: Curve) -> None:
    for tuples in (20_000.0, 50_000.0):
        entries = np.linspace(0, 1.2 * curve.most, 500)
        outs = curve.outs(entries, np.array(tuples))
        assert (np.diff(outs) <= 1e-3 * outs[:-1]).all()
        assert outs[0] == tuples
        each = [curve.out(float(b), tuples) for b in entries[::50]]
        assert outs[::50] == pytest.approx(each, rel=1e-9)


@pytest.mark.parametrize("curve", curves(), ids=repr)
def test_points_are_on_the_curve(curve: Curve) -> None:
    entries, fixed, slopes, floor = curve.points
    tuples = 50_000.0
    outs = np.maximum(fixed + slopes * tuples, floor)
    assert outs == pytest.approx([curve.out(float(b), tuples) for b in entries], rel=1e-6)


def test_direct_is_the_model_of_collisions() -> None:
    fixed, slope = DirectMapped(1000.0, 3.0).response(700.0, 1e5)
    assert (fixed, slope) == (occupied(1000.0, 700.0), rate(1000.0, 700.0, 3.0))


@pytest.mark.parametrize("alpha", [0.0, 0.3, 0.85, 1.0, 1.3, 2.0])
def test_harmonic_numbers(alpha: float) -> None:
    for count in (1, 3, 10, 11, 12, 100, 54_321):
        exact = float((np.arange(1.0, count + 1) ** -alpha).sum())
        assert float(harmonic(count, alpha)) == pytest.approx(exact, rel=1e-8)


@pytest.mark.parametrize("popularity", [zipf(1e7, 0.85), zipf(17, 1.3), uniform(3), fitted(5000, 0.7, 2e4)], ids=repr)
def test_classes_add_up(popularity: Popularity) -> None:
    assert float(popularity.chance @ popularity.groups) == pytest.approx(1.0)
    assert len(popularity.groups) < 100


@pytest.mark.parametrize("alpha", [0.0, 0.5, 0.85, 1.2])
def test_fitted_shows_as_many_groups_as_asked(alpha: float) -> None:
    for groups, tuples in ((5_000.0, 5_500.0), (5_000.0, 20_000.0), (5_000.0, 1e6)):
        assert float(fitted(groups, alpha, tuples).distinct(tuples)) == pytest.approx(groups, rel=0.02)


def test_classes_stand_for_single_groups() -> None:
    groups, alpha = 3000, 0.9
    single = np.arange(1.0, groups + 1) ** -alpha
    every = Popularity(np.ones(groups), single / single.sum())
    for tuples in (100.0, 3000.0, 50_000.0):
        assert float(zipf(groups, alpha).distinct(tuples)) == pytest.approx(float(every.distinct(tuples)), rel=0.002)


def test_urns_are_the_inverse_of_distinct() -> None:
    for groups, tuples in ((10.0, 1e6), (500.0, 1000.0), (990.0, 1000.0)):
        assert float(uniform(urns(groups, tuples)).distinct(tuples)) == pytest.approx(groups, rel=0.01)
