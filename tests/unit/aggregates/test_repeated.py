"""States of records that are there several times: what a joined row has of a side."""

from __future__ import annotations

import random

import numpy as np
import pytest

from penstock.aggregates.base import Accumulator, Facts, TooMany
from penstock.aggregates.count import COUNTED
from penstock.aggregates.registry import ACCUMULATORS
from penstock.aggregates.values import EVERYTHING, Into, Values, measured
from penstock.logical.types import Kind

PLAIN = [one for one in ACCUMULATORS.values() if one.kind in ("count", "sum", "min", "max", "moments")]


def folded(accumulator: Accumulator, numbers: list[int], facts: Facts) -> tuple[np.ndarray, ...]:
    """One group of these values."""
    table = np.empty((1, accumulator.words(facts)), np.int64)
    table[:] = accumulator.fresh(facts)
    into = table.view(np.float64) if accumulator.floating(facts) else table
    values, n = np.array(numbers, np.int64), len(numbers)
    where = Into((into, 0, np.zeros(n, np.int64), 0, n), np.arange(n, dtype=np.int32))
    accumulator.fold(where, facts, Values(values, EVERYTHING, *measured(values)), None)
    return tuple(np.ascontiguousarray(into[:, word]) for word in range(into.shape[1]))


@pytest.mark.parametrize("accumulator", PLAIN, ids=lambda one: one.kind)
@pytest.mark.parametrize("seed", range(5))
def test_repeated_states_are_those_of_repeated_values(accumulator: Accumulator, seed: int) -> None:
    rng = random.Random(seed)
    facts = Facts(Kind.INTEGER, nullable=True)
    numbers, times = [rng.randrange(-1000, 1000) for _ in range(rng.randint(1, 9))], rng.randint(1, 40)
    found = accumulator.repeated(folded(accumulator, numbers, facts), np.array([times]))
    expected = folded(accumulator, numbers * times, facts)
    for one, other in zip(found, expected, strict=True):
        assert one[0] == pytest.approx(other[0], rel=1e-12, abs=1e-9)


def test_sums_become_wide_where_they_must() -> None:
    (summed,) = (one for one in PLAIN if one.kind == "sum")
    narrow = summed.repeated((np.array([5, -7]),), np.array([3, 4]))
    assert [word.tolist() for word in narrow] == [[15, -28]]
    low, high = summed.repeated((np.array([1 << 40, -(1 << 40)]),), np.array([1 << 30, 1 << 30]))
    assert [(int(h) << 64) + (int(lo) & ((1 << 64) - 1)) for lo, h in zip(low, high, strict=True)] == [
        1 << 70,
        -(1 << 70),
    ]


def test_more_records_than_can_be_counted_are_noticed() -> None:
    with pytest.raises(TooMany):
        COUNTED.repeated((np.array([1 << 40]),), np.array([1 << 40]))
