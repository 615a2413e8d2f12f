"""Kernels of joins against plain Python: combinations of rows, and states of repeated records."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest

from penstock.kernels.tables.joining import expand, list_rows, multiply, repeat_double, repeat_wide


def lists_of(keys: list[list[int]], count: int) -> tuple[np.ndarray, np.ndarray]:
    starts, rows = np.zeros((len(keys), count + 2), np.int64), np.zeros((len(keys), max(map(len, keys))), np.int64)
    for side, of in enumerate(keys):
        list_rows(np.array(of, np.int64), starts[side], rows[side])
    return np.ascontiguousarray(starts[:, :-1]), rows


@pytest.mark.parametrize("seed", range(20))
def test_combinations_are_those_of_equal_keys(seed: int) -> None:
    """Whatever the room: they come in pieces that fit it, each once."""
    rng = random.Random(seed)
    sides, count = rng.randint(1, 4), rng.randint(1, 6)
    keys = [[rng.randrange(count) for _ in range(rng.randint(1, 12))] for _ in range(sides)]
    starts, rows = lists_of(keys, count)
    for side, of in enumerate(keys):
        for key in range(count):
            listed = rows[side, starts[side, key] : starts[side, key + 1]].tolist()
            assert listed == [row for row, one in enumerate(of) if one == key]
    expected = [
        combination
        for combination in itertools.product(*(range(len(of)) for of in keys))
        if len({of[row] for of, row in zip(keys, combination, strict=True)}) == 1
    ]
    place, found, room = np.zeros(2, np.int64), [], rng.choice([1, 2, 3, 7, 1000])
    while True:
        out = np.full((sides, room), -1, np.int64)
        written = expand(starts, rows, place, out)
        assert written <= room
        if not written:
            break
        found += list(zip(*out[:, :written].tolist(), strict=True))
    assert sorted(found) == sorted(expected)


def test_products_that_leave_64_bits_are_noticed() -> None:
    for a, b in [(0, 5), (3, 7), (1 << 31, 1 << 31), ((1 << 62) - 1, 2), ((1 << 63) - 1, 1)]:
        numbers = np.array([1, a], np.int64)
        assert multiply(numbers, np.array([1, b], np.int64)) == 0
        assert numbers[1] == a * b
    for a, b in [(1 << 32, 1 << 31), ((1 << 62), 2), ((1 << 63) - 1, (1 << 63) - 1), (3, (1 << 62))]:
        assert multiply(np.array([a], np.int64), np.array([b], np.int64)) == 1


@pytest.mark.parametrize("seed", range(20))
def test_wide_sums_are_exact(seed: int) -> None:
    rng = random.Random(seed)
    sums = [rng.randrange(-(1 << 90), 1 << 90) >> rng.randrange(90) for _ in range(50)]
    times = [rng.randrange(1 << 36) >> rng.randrange(36) for _ in sums]
    low = np.array([number & ((1 << 64) - 1) for number in sums], np.uint64).view(np.int64)
    high = np.array([number >> 64 for number in sums], np.int64)
    out = np.empty(50, np.int64), np.empty(50, np.int64)
    repeat_wide(low, high, np.array(times, np.int64), *out)
    made = [(int(h) << 64) + (int(lo) & ((1 << 64) - 1)) for lo, h in zip(*out, strict=True)]
    assert made == [number * k for number, k in zip(sums, times, strict=True)]


@pytest.mark.parametrize("seed", range(20))
def test_double_sums_lose_next_to_nothing(seed: int) -> None:
    rng = random.Random(seed)
    values = [rng.uniform(-1, 1) * 10 ** rng.randint(-200, 200) for _ in range(50)]
    rests = [math.ulp(value) * rng.uniform(-0.5, 0.5) for value in values]
    times = [rng.randrange(1, 1 << 40) for _ in values]
    out = np.empty(50), np.empty(50)
    repeat_double(np.array(values), np.array(rests), np.array(times, np.int64), *out)
    for value, rest, k, made, lost in zip(values, rests, times, *(o.tolist() for o in out), strict=True):
        exact = (Fraction(value) + Fraction(rest)) * k
        assert abs(Fraction(made) + Fraction(lost) - exact) <= abs(exact) * Fraction(1, 10**29)


def test_infinities_and_nan_stay() -> None:
    out = np.empty(4), np.empty(4)
    repeat_double(np.array([np.inf, -np.inf, np.nan, 1e308]), np.zeros(4), np.array([3, 2, 5, 100], np.int64), *out)
    assert out[0][:2].tolist() == [np.inf, -np.inf]
    assert np.isnan(out[0][2])
    assert out[0][3] == np.inf
    assert out[1].tolist() == [0.0, 0.0, 0.0, 0.0]
