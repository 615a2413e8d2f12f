"""Collision rates against thrown balls, against each other, and at their ends."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.sharing.model.collision import distinct, flow_length, occupied, rate, rates


def exact(groups: int, buckets: int) -> float:
    return 1 - buckets / groups * (1 - (1 - 1 / buckets) ** groups)


@pytest.mark.parametrize(("groups", "buckets"), [(2, 1), (3, 2), (10, 7), (1000, 1000), (3000, 1000), (20, 5000)])
def test_the_rate_is_equation_13(groups: int, buckets: int) -> None:
    assert rate(groups, buckets) == pytest.approx(exact(groups, buckets), rel=1e-9)


@pytest.mark.parametrize(("groups", "buckets"), [(500, 500), (2000, 1000), (300, 1000)])
def test_the_rate_is_what_random_tuples_show(groups: int, buckets: int) -> None:
    generator = np.random.default_rng(groups)
    shown = []
    for _ in range(100):
        bucket_of = generator.integers(0, buckets, groups)
        tuples = generator.integers(0, groups, 50 * groups)
        by_bucket = tuples[np.argsort(bucket_of[tuples], kind="stable")]
        same_bucket = np.diff(bucket_of[by_bucket]) == 0
        shown.append(np.sum((np.diff(by_bucket) != 0) & same_bucket) / np.sum(same_bucket))
    assert np.mean(shown) == pytest.approx(rate(groups, buckets), rel=0.04), f"seed {groups}"


def test_clustered_data_collide_less_by_the_length_of_flows() -> None:
    assert rate(1000, 500, 8.0) == pytest.approx(rate(1000, 500) / 8)
    assert flow_length(1000, 500, rate(1000, 500, 8.0)) == pytest.approx(8)


def test_arrays_get_the_same_rates() -> None:
    generator = np.random.default_rng(7)
    groups = np.concatenate([generator.uniform(0, 1e6, 200), [0.5, 1, 1, 2, 2, 5, 5]])
    buckets = np.concatenate([10 ** generator.uniform(-1, 6, 200), [3, 0, 1, 1, 0.5, 0, 1]])
    length = generator.uniform(1, 40, 207)
    single = [rate(g, b, length_) for g, b, length_ in zip(groups, buckets, length, strict=True)]
    assert rates(groups, buckets, length) == pytest.approx(single, rel=1e-9, abs=1e-12)
    assert rates(1000, [500, 0]).tolist() == pytest.approx([rate(1000, 500), 1])


def test_a_million_groups_and_buckets_lose_no_digits() -> None:
    assert rate(1e6, 1e6) == pytest.approx(np.exp(-1), rel=1e-5)
    assert rate(1e3, 1e9) == pytest.approx(999 / 2e9, rel=1e-5)


def test_the_rate_falls_steadily_with_buckets_and_stays_a_rate() -> None:
    buckets = np.concatenate([np.linspace(0, 3, 50), np.geomspace(3, 1e7, 200)])
    for groups in (1.5, 2, 10, 1e3, 1e6):
        found = rates(groups, buckets)
        assert np.all(np.diff(found) <= 1e-12)
        assert found[0] == 1
        assert np.all((found >= 0) & (found <= 1))


def test_no_table_lets_all_pass_and_one_group_never_collides() -> None:
    assert rate(10, 0) == rate(1, 0) == rate(10, 0, 8.0) == 1
    assert rate(1, 5) == rate(0.3, 5) == 0


def test_occupied_is_what_thrown_balls_cover() -> None:
    generator = np.random.default_rng(3)
    for groups, buckets in ((100, 50), (1000, 1000), (50, 1000)):
        thrown = [len(np.unique(generator.integers(0, buckets, groups))) for _ in range(200)]
        assert np.mean(thrown) == pytest.approx(occupied(groups, buckets), rel=0.02), "seed 3"


def test_occupied_is_bounded_by_buckets_and_by_groups() -> None:
    for groups in (0, 0.5, 1, 10, 1e6):
        for buckets in (0, 0.5, 1, 10, 1e6):
            assert 0 <= occupied(groups, buckets) <= min(groups, buckets) + 1e-9


def test_a_table_six_times_too_large_is_a_sixth_full() -> None:
    assert 6000 / occupied(1000, 6000) == pytest.approx(6, rel=0.1)  # what the paper's b overstates


def test_few_tuples_show_few_groups() -> None:
    assert distinct(1e6, 100) == pytest.approx(100, rel=1e-3)
    assert distinct(10, 1e6) == pytest.approx(10)
