"""Sums that need more than 64 bits, floats and moments in any order, and the order of floats, strings, addresses."""

from __future__ import annotations

import ipaddress
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from penstock.kernels.dictionary import Dictionary
from penstock.kernels.tables import fold
from penstock.kernels.tables.pack import ALL_VALID

ROWS = np.zeros(0, np.int32)


def test_wide_sums_are_exact() -> None:
    rng = np.random.default_rng(1)
    values = rng.integers(-(1 << 63), (1 << 63) - 1, 1000, np.int64, endpoint=True)
    states = np.zeros((1, 2), np.int64)
    at = np.zeros(1000, np.int64)
    fold.add_wide(states, 0, at, 0, 1000, np.arange(1000, dtype=np.int32), values, ALL_VALID)
    total = (int(states[0, 1]) << 64) + int(states[0, 0].view(np.uint64))
    assert total == sum(int(v) for v in values)
    again = np.zeros((1, 2), np.int64)
    fold.add_wide_partial(again, 0, at, 0, 1, states[:, 0].copy(), states[:, 1].copy())
    assert (again == states).all()


def test_float_sums_do_not_depend_on_order() -> None:
    rng = np.random.default_rng(2)
    values = np.concatenate([rng.normal(0, 1e16, 500), rng.normal(0, 1e-3, 500)])
    results = set()
    for seed in range(5):
        shuffled = np.random.default_rng(seed).permutation(values)
        states = np.zeros((1, 2))
        rows = np.arange(1000, dtype=np.int32)
        fold.add_float(states, 0, np.zeros(1000, np.int64), 0, 1000, rows, shuffled, ALL_VALID)
        results.add(float(states[0, 0] + states[0, 1]))
    assert results == {math.fsum(values)}


def test_infinities_stay() -> None:
    for values, wanted in (([math.inf, 1.0], math.inf), ([math.inf, -math.inf], math.nan), ([math.nan, 1.0], math.nan)):
        states = np.zeros((1, 2))
        rows = np.arange(2, dtype=np.int32)
        fold.add_float(states, 0, np.zeros(2, np.int64), 0, 2, rows, np.array(values), ALL_VALID)
        assert str(states[0, 0]) == str(np.float64(wanted))


def test_order_bits_sort_as_numbers_with_nan_last() -> None:
    values = np.array([-math.inf, -1e300, -1.5, -5e-324, -0.0, 0.0, 5e-324, 1.5, 1e300, math.inf, math.nan])
    bits, back = np.empty(len(values), np.int64), np.empty(len(values))
    fold.order_bits(values, bits)
    assert bits[4] == bits[5]
    assert list(bits) == sorted(bits)
    assert len(set(bits.tolist())) == len(values) - 1
    fold.from_order_bits(bits, back)
    assert np.array_equal(back, values, equal_nan=True)
    negative_nan = np.array([-1], np.int64).view(np.float64)
    one = np.empty(1, np.int64)
    fold.order_bits(negative_nan, one)
    assert one[0] == bits[-1]


def test_extremes_of_strings_are_by_bytes() -> None:
    words = [b"", b"a", b"ab", b"b", "é".encode(), b"\x00", b"a\x00", b"zz" * 40]
    offsets = np.cumsum([0, *map(len, words)])
    data = np.frombuffer(b"".join(words), np.uint8)
    dictionary = Dictionary()
    codes = dictionary.intern(offsets, data)
    for chosen in itertools.combinations(range(len(words)), 3):
        states = np.full((1, 2), -1, np.int64)
        rows = np.arange(3, dtype=np.int32)
        for column, sign in ((0, -1), (1, 1)):
            fold.fold_string(
                states, column, np.zeros(3, np.int64), 0, 3, rows, codes[list(chosen)], ALL_VALID,
                dictionary.offsets, dictionary.data, sign,
            )  # fmt: skip
        picked = [words[i] for i in chosen]
        assert words[states[0, 0]] == min(picked)
        assert words[states[0, 1]] == max(picked)


# -- moments


def moments(values: np.ndarray, rest: np.ndarray | None = None, valid: np.ndarray | None = None) -> np.ndarray:
    """The five words of one group."""
    states, rows = np.zeros((1, 5)), np.arange(len(values), dtype=np.int32)
    left = np.empty(0) if rest is None else rest
    there = ALL_VALID if valid is None else valid
    fold.add_moments(states, 0, np.zeros(len(values), np.int64), 0, len(values), rows, values, left, there)
    return states[0]


def joined(parts: list[np.ndarray]) -> np.ndarray:
    """Partial moments merged in this order."""
    states = np.zeros((1, 5))
    words = (np.ascontiguousarray(column) for column in np.array(parts).T)
    fold.add_moments_partial(states, 0, np.zeros(len(parts), np.int64), 0, len(parts), *words)
    return states[0]


def deviations(values: list[Fraction]) -> tuple[Fraction, Fraction]:
    """Mean and sum of squared deviations, exactly."""
    mean = sum(values, Fraction(0)) / len(values)
    return mean, sum(((v - mean) ** 2 for v in values), Fraction(0))


def assert_moments(words: np.ndarray, values: list[Fraction], context: str = "") -> None:
    mean, squares = deviations(values)
    assert words[0] == len(values), context
    found = Fraction(float(words[1])) + Fraction(float(words[2]))
    scale = max((abs(v) for v in values), default=Fraction(0))
    assert abs(found - mean) <= scale * Fraction(1, 10**28), context
    found = Fraction(float(words[3])) + Fraction(float(words[4]))
    # What is left of two cancelling squares of the greatest value, in double-double.
    assert abs(found - squares) <= squares / 10**15 + scale**2 * len(values) / Fraction(10**28), context


@pytest.mark.parametrize("centre", [0.0, 1.0, -1e6, 1e15, -1e15, 1e-300, 1e100])
@pytest.mark.parametrize("spread", [0.0, 1e-3, 1.0, 1e6])
def test_moments_are_those_of_fractions(centre: float, spread: float) -> None:
    rng = np.random.default_rng(7)
    values = centre + rng.normal(0, 1, 300) * spread
    exact = [Fraction(float(v)) for v in values]
    assert_moments(moments(values), exact)


@pytest.mark.parametrize("seed", range(8))
def test_moments_do_not_depend_on_cuts_and_order(seed: int) -> None:
    """Values around 10**15 with small deviations: plain doubles would have no digit of the variance."""
    rng = np.random.default_rng(seed)
    values = 1e15 + rng.integers(-3, 4, 400).astype(np.float64)
    exact = [Fraction(float(v)) for v in values]
    _, squares = deviations(exact)
    found = set()
    for turn in range(6):
        shuffled = np.random.default_rng((seed, turn)).permutation(values)
        edges = sorted({0, 400, *rng.integers(0, 401, 9).tolist()})
        parts = [moments(shuffled[a:b]) for a, b in itertools.pairwise(edges)]
        while len(parts) > 1:  # a random tree of merges
            chosen = sorted(rng.choice(len(parts), 2, replace=False).tolist(), reverse=True)
            parts.append(joined([parts.pop(at) for at in chosen]))
        assert_moments(parts[0], exact, f"seed {seed}, turn {turn}")
        found.add(float(parts[0][3] + parts[0][4]))
    assert all(math.isclose(one, float(squares), rel_tol=1e-15) for one in found), (seed, found)


def test_moments_of_integers_beyond_53_bits() -> None:
    """What a double lacks of an integer comes beside it."""
    rng = np.random.default_rng(4)
    numbers = (1 << 62) + rng.integers(-40, 40, 200)
    floats = numbers.astype(np.float64)
    rest = (numbers - floats.astype(np.int64)).astype(np.float64)
    exact = [Fraction(int(v)) for v in numbers]
    words = moments(floats, rest)
    assert_moments(words, exact)
    assert math.isclose(words[3] + words[4], float(deviations(exact)[1]), rel_tol=1e-6)


def test_moments_leave_out_what_is_not_there() -> None:
    values, valid = np.array([5.0, 1e300, 7.0]), np.array([1, 0, 1], np.uint8)
    assert moments(values, valid=valid).tolist() == [2.0, 6.0, 0.0, 2.0, 0.0]
    assert moments(values, valid=np.zeros(3, np.uint8)).tolist() == [0.0] * 5
    assert joined([np.zeros(5), moments(values, valid=valid), np.zeros(5)]).tolist() == [2.0, 6.0, 0.0, 2.0, 0.0]


def test_one_value_has_no_deviation() -> None:
    for value in (0.0, -0.1, 1e308, 5e-324):
        assert moments(np.array([value])).tolist() == [1.0, value, 0.0, 0.0, 0.0]


# -- addresses


def test_extremes_of_addresses_are_by_version_then_bytes() -> None:
    texts = ["::", "::1", "2001:db8::", "2001:db8::1", "ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"]
    packed = [ipaddress.IPv6Address(text).packed for text in texts]
    shuffled = [packed[i] for i in (3, 0, 5, 1, 4, 2)]  # codes are in order of arrival
    dictionary = Dictionary()
    codes = dictionary.intern(np.arange(7) * 16, np.frombuffer(b"".join(shuffled), np.uint8))
    known: list[tuple[int, bytes, int]] = [(4, n.to_bytes(4, "big"), n) for n in (0, 1, 255, 1 << 31, (1 << 32) - 1)]
    known += [(6, data, (1 << 32) + int(code)) for data, code in zip(shuffled, codes, strict=True)]
    for chosen in itertools.permutations(known, 3):
        for column, sign, best in ((0, -1, min), (1, 1, max)):
            states = np.full((1, 2), -1, np.int64)
            values = np.array([-1, *(value for _, _, value in chosen)])  # none yet, as a partial extreme has it
            fold.fold_address(
                states, column, np.zeros(4, np.int64), 0, 4, np.arange(4, dtype=np.int32), values, ALL_VALID,
                dictionary.offsets, dictionary.data, sign,
            )  # fmt: skip
            assert states[0, column] == best(chosen)[2]
            assert states[0, 1 - column] == -1


def test_extremes_of_addresses_leave_out_nulls() -> None:
    states, valid = np.full((1, 1), -1, np.int64), np.array([0, 1, 0], np.uint8)
    arguments = (np.arange(3, dtype=np.int32), np.array([1, 5, 9]), valid, np.zeros(1, np.int64), np.empty(0, np.uint8))
    fold.fold_address(states, 0, np.zeros(3, np.int64), 0, 3, *arguments, 1)
    assert states[0, 0] == 5
