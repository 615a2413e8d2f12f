"""Sums that need more than 64 bits, floats in any order, and the order of floats and strings."""

from __future__ import annotations

import itertools
import math

import numpy as np

from penstock.kernels import fold
from penstock.kernels.dictionary import Dictionary
from penstock.kernels.pack import all_valid

ROWS = np.zeros(0, np.int32)


def test_wide_sums_are_exact() -> None:
    rng = np.random.default_rng(1)
    values = rng.integers(-(1 << 63), (1 << 63) - 1, 1000, np.int64, endpoint=True)
    states = np.zeros((1, 2), np.int64)
    at = np.zeros(1000, np.int64)
    fold.add_wide(states, 0, at, 0, 1000, np.arange(1000, dtype=np.int32), values, all_valid())
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
        fold.add_float(states, 0, np.zeros(1000, np.int64), 0, 1000, rows, shuffled, all_valid())
        results.add(float(states[0, 0] + states[0, 1]))
    assert results == {math.fsum(values)}


def test_infinities_stay() -> None:
    for values, wanted in (([math.inf, 1.0], math.inf), ([math.inf, -math.inf], math.nan), ([math.nan, 1.0], math.nan)):
        states = np.zeros((1, 2))
        rows = np.arange(2, dtype=np.int32)
        fold.add_float(states, 0, np.zeros(2, np.int64), 0, 2, rows, np.array(values), all_valid())
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
                states, column, np.zeros(3, np.int64), 0, 3, rows, codes[list(chosen)], all_valid(),
                dictionary.offsets, dictionary.data, sign,
            )  # fmt: skip
        picked = [words[i] for i in chosen]
        assert words[states[0, 0]] == min(picked)
        assert words[states[0, 1]] == max(picked)
