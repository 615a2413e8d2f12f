"""Aggregates of details on their rows alone: ranks, buckets, registers and entropies against plain Python."""

from __future__ import annotations

import math
import random
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from penstock.aggregates.base import BadParameter
from penstock.aggregates.details.buckets import APPROX_PERCENTILE, kept_bits, middles
from penstock.aggregates.details.entropy import ENTROPY
from penstock.aggregates.details.frequent import APPROX_FREQUENT, FREQUENT
from penstock.aggregates.details.function import DetailRows
from penstock.aggregates.details.percentiles import MEDIAN, PERCENTILE, ranks
from penstock.aggregates.details.registers import APPROX_COUNT_DISTINCT, REGISTERS, precision
from penstock.kernels.tables.fold import order_bits
from penstock.kernels.tables.order import hash_values
from penstock.kernels.tables.registers import LANES, leading_marks, mark_registers, merge_registers
from penstock.logical.types import BIGINT
from penstock.testing.oracle.details import bucket_middle, entropy

GROUPS = 5


def rows_of(records: list[tuple[int, int]]) -> DetailRows:
    """Rows of (group, value), counted, in any order."""
    counted = list(Counter(records).items())
    random.Random(1).shuffle(counted)
    at, numbers = (np.array([key[n] for key, _ in counted], np.int64) for n in (0, 1))
    counts = np.array([count for _, count in counted], np.int64)
    return DetailRows(at, numbers, counts, np.ones(len(counts), np.int64), {})


@pytest.mark.parametrize("share", [0.0, 0.07, 0.5, 0.99, 0.999999999, 1.0, 1e-9])
def test_ranks_are_computed_in_decimal(share: float) -> None:
    counts = [1, 2, 3, 7, 99, 100, 101, 10**9 - 1, 10**9, 10**9 + 1, 10**12 + 7]
    exact = Fraction(repr(share))
    assert ranks(np.array(counts), share).tolist() == [max(1, math.ceil(exact * count)) for count in counts]


@pytest.mark.parametrize("seed", range(20))
def test_percentiles_are_values_of_their_rank(seed: int) -> None:
    rng = random.Random(seed)
    records = [(rng.randrange(GROUPS), rng.randint(-50, 50) << rng.choice([0, 50])) for _ in range(rng.randint(1, 300))]
    share = rng.choice([0.0, 0.1, 0.5, 0.9, 1.0])
    found = PERCENTILE.reduce(rows_of(records), GROUPS, BIGINT, (share,))
    middle = MEDIAN.reduce(rows_of(records), GROUPS, BIGINT, ())
    for group in range(GROUPS):
        values = sorted(value for at, value in records if at == group)
        there = found.valid is None or bool(found.valid[group])
        assert there == bool(values)
        if values:
            assert found.values[group] == values[max(1, math.ceil(Fraction(repr(share)) * len(values))) - 1]
            assert middle.values[group] == values[math.ceil(len(values) / 2) - 1]


@pytest.mark.parametrize("accuracy", [0.5, 0.1, 0.01, 0.000001])
def test_buckets_keep_their_accuracy(accuracy: float) -> None:
    rng = np.random.default_rng(3)
    values = np.concatenate([rng.normal(0, 10.0 ** rng.integers(-300, 300, 400)), [0.0, 1.0, -1.0, 2.0**1023, 3.5]])
    bits, order = kept_bits(accuracy), np.empty(len(values), np.int64)
    order_bits(values, order)
    found = middles(order >> (52 - bits), bits)
    assert (np.abs(found - values) <= accuracy * np.abs(values)).all()
    assert found.tolist() == [bucket_middle(value, accuracy) for value in values.tolist()]


def test_buckets_of_what_is_no_number() -> None:
    values, order = np.array([np.inf, -np.inf, np.nan, 0.0]), np.empty(4, np.int64)
    order_bits(values, order)
    found = middles(order >> 46, 6)
    assert found[:2].tolist() == [np.inf, -np.inf]
    assert math.isnan(found[2])
    assert found[3] == 0.0


@pytest.mark.parametrize("seed", range(10))
def test_entropies_do_not_depend_on_the_order_of_rows(seed: int) -> None:
    rng = random.Random(seed)
    records = [(rng.randrange(GROUPS), int(rng.paretovariate(1))) for _ in range(rng.randint(1, 2_000))]
    rows = rows_of(records)
    found = ENTROPY.reduce(rows, GROUPS, BIGINT, ()).values
    turned = np.argsort(np.random.default_rng(seed).random(len(rows)))
    other = DetailRows(rows.at[turned], rows.numbers[turned], rows.counts[turned], rows.weights[turned], {})
    assert ENTROPY.reduce(other, GROUPS, BIGINT, ()).values.tolist() == found.tolist()
    squeezed = ENTROPY.reduce(ENTROPY.squeeze(other), GROUPS, BIGINT, ()).values
    assert squeezed.tolist() == found.tolist()
    for group in range(GROUPS):
        values = [value for at, value in records if at == group]
        assert not values or math.isclose(found[group], entropy(values), rel_tol=1e-12, abs_tol=1e-15)


def hashes_of(values: np.ndarray) -> np.ndarray:
    hashes = np.zeros(len(values), np.uint64)
    hash_values(np.ascontiguousarray(values, np.int64), hashes)
    return hashes


def test_marks_are_the_places_of_first_ones() -> None:
    hashes, bits = hashes_of(np.arange(2_000)), 12
    hashes[:2] = 0, 2**64 - 1
    marks = np.empty(len(hashes), np.int64)
    leading_marks(hashes, bits, marks)
    for one, mark in zip(hashes.tolist(), marks.tolist(), strict=True):
        text = f"{one:064b}"
        rest = text[bits:]
        assert mark & 7 == int(text[:bits], 2) % 8
        assert mark >> 3 == (rest.index("1") + 1 if "1" in rest else len(rest) + 1)


def test_registers_merge_by_the_greater() -> None:
    rng = np.random.default_rng(5)
    words = rng.integers(0, 60, (2, 100, LANES)).astype(np.uint8)
    table = np.ascontiguousarray(words[0]).view(np.int64).copy()
    merge_registers(table, 0, np.arange(100), 0, 100, np.ascontiguousarray(words[1]).view(np.int64).reshape(-1))
    assert (table.view(np.uint8).reshape(100, LANES) == words.max(axis=0)).all()


def registers_of(values: np.ndarray, bits: int) -> DetailRows:
    """The rows that a group of these values has."""
    hashes = hashes_of(values)
    rows, marks = (hashes >> np.uint64(64 - bits + 3)).astype(np.int64), np.empty(len(values), np.int64)
    leading_marks(hashes, bits, marks)
    numbers, at = np.unique(rows, return_inverse=True)
    table = np.zeros((len(numbers), 1), np.int64)
    mark_registers(table, 0, at, 0, len(values), np.arange(len(values), dtype=np.int32), marks, np.empty(0, np.uint8))
    state = {REGISTERS.state("x"): (table[:, 0].copy(),)}
    ones = np.ones(len(numbers), np.int64)
    return DetailRows(np.zeros(len(numbers), np.int64), numbers, ones, ones, state)


@pytest.mark.parametrize("error", [0.02, 0.1])
@pytest.mark.parametrize("number", [1, 2, 10, 100, 3_000, 50_000, 400_000])
def test_distinct_counts_are_near(number: int, error: float) -> None:
    bits, off = precision(error), []
    for seed in range(8):
        values = np.random.default_rng(seed).integers(0, 1 << 60, number)
        found = APPROX_COUNT_DISTINCT.reduce(registers_of(values, bits), 1, BIGINT, (error,))
        off.append((int(found.values[0]) - number) / number)
    sigma = 1.04 / math.sqrt(1 << bits)
    assert max(map(abs, off)) <= max(5 * sigma, 1.5 / number)
    assert abs(float(np.mean(off))) <= max(3 * sigma / math.sqrt(8), 1.5 / number)


def test_estimates_of_several_groups() -> None:
    values = np.random.default_rng(9).integers(0, 1 << 60, 900)
    one, other = registers_of(values, 10), registers_of(values[:40], 10)
    ((first,), (second,)) = (rows.states[REGISTERS.state("x")] for rows in (one, other))
    at = np.concatenate([np.full(len(first), 3), np.full(len(second), 1)])
    words, error = np.concatenate([first, second]), 1.04 / 2**5
    alone = [APPROX_COUNT_DISTINCT.reduce(rows, 1, BIGINT, (error,)) for rows in (one, other)]
    for seed in range(5):  # rows of a group come in any order, and between those of others
        order = np.random.default_rng(seed).permutation(len(at))
        rows = DetailRows(at[order], words[order], words[order], words[order], {REGISTERS.state("x"): (words[order],)})
        found = APPROX_COUNT_DISTINCT.reduce(rows, GROUPS, BIGINT, (error,)).values
        assert found[[0, 2, 4]].tolist() == [0, 0, 0]
        assert found[[3, 1]].tolist() == [answer.values[0] for answer in alone]
    assert abs(found[3] - 900) < 150
    assert abs(found[1] - 40) <= 6


def ertl(registers: list[int], bits: int) -> float:
    """Ertl 2017, algorithm 6, in plain Python."""
    m, most, tally = 1 << bits, 64 - bits, Counter(registers)
    x, y, sigma, before = tally[0] / m, 1.0, tally[0] / m, -1.0
    while sigma != before and x < 1:
        x, before = x * x, sigma
        sigma, y = sigma + x * y, 2 * y
    x, y, tau, before = 1 - tally[most + 1] / m, 1.0, tally[most + 1] / m, -1.0
    while tau != before and 0 < x < 1:
        x, before, y = math.sqrt(x), tau, y / 2
        tau -= (1 - x) ** 2 * y
    z = m * tau / 3 if 0 < 1 - tally[most + 1] / m < 1 else 0.0
    for value in range(most, 0, -1):
        z = (z + tally[value]) / 2
    return m * m / (2 * math.log(2)) / (z + m * sigma)


@pytest.mark.parametrize(
    "top", [1, 2, 9, 40, 58, 59]
)  # 58 bits are left of a hash, and 59 says that none of them is one
def test_estimates_are_those_of_the_paper(top: int) -> None:
    bits, rng = 6, np.random.default_rng(top)
    for share in (0.2, 0.9, 1.0):
        registers = np.where(rng.random(64) < share, rng.integers(1, top + 1, 64), 0).astype(np.uint8)
        words = registers.view(np.int64)
        ones = np.ones(8, np.int64)
        rows = DetailRows(np.zeros(8, np.int64), ones, ones, ones, {REGISTERS.state("x"): (words,)})
        (found,) = APPROX_COUNT_DISTINCT.reduce(rows, 1, BIGINT, (1.04 / 8,)).values.tolist()
        assert math.isclose(found, ertl(registers.tolist(), bits), rel_tol=1e-12, abs_tol=0.5)


def test_what_frequent_takes() -> None:
    assert FREQUENT.completed((0.1,)) == (0.1, 0, 0)
    assert APPROX_FREQUENT.completed((0.1,)) == (0.1, 0.01, 0)
    assert APPROX_FREQUENT.completed((0.1, 0.05)) == (0.1, 0.05, 0)
    support, error, cap = APPROX_FREQUENT.completed((0.1, "64KiB"))
    assert (support, cap) == (0.1, 1024)
    assert 7 / 1024 <= error < 7 / 1024 + 2e-9
    for given in ((0,), (1.5,), (0.1, 0.1), (0.1, "1KiB"), (0.1, "much"), ("x",)):
        with pytest.raises(BadParameter):
            APPROX_FREQUENT.completed(given)
    assert APPROX_PERCENTILE.completed((0.5,)) == (0.5, 0.01)
