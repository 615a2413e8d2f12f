"""ORDER BY and LIMIT: the engine's order of every type, per window, ties by the keys."""

from __future__ import annotations

import ipaddress
import math
import random
from functools import cmp_to_key
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from penstock.logical.expressions import Aggregate, Column
from penstock.logical.query import Key, Order, OutputColumn, Query
from penstock.logical.types import BIGINT
from penstock.logical.window import Window
from penstock.runtime.expressions.operands import Addresses, Operand
from penstock.runtime.merge.results.ordering import Ranked, first_rows

X = Column("x", BIGINT)
COUNT = Aggregate("count", None, BIGINT)

FLOATS = [None, -math.inf, -1e300, -1.5, -5e-324, 0.0, 5e-324, 1.5, 1e300, math.inf, math.nan]
INTEGERS = [None, -(1 << 63), -1, 0, 1, (1 << 53) + 1, (1 << 63) - 1]
STRINGS = [None, "", "\0", "A", "Z", "a", "a\0", "aa", "b", "é", "\uffff", "\U0001f600"]  # as UTF-8 bytes
ADDRESSES = [None, "0.0.0.0", "9.255.0.1", "10.0.0.1", "255.255.255.255", "::", "::1", "2001:db8::", "8000::", "ffff::"]
BOOLEANS = [None, False, True]
KINDS = {"float": FLOATS, "integer": INTEGERS, "string": STRINGS, "address": ADDRESSES, "boolean": BOOLEANS}


def query(order: tuple[Order, ...] = (Order(X),), limit: int | None = None) -> Query:
    output = (OutputColumn("at", COUNT),)
    return Query("q", "s", Window(60, 60), None, (Key("x", X),), output, None, (COUNT,), None, order, limit)


def operand(kind: str, values: list[Any]) -> Operand:
    """Values as the engine computes them; a NULL has some value below it that must not matter."""
    there = np.array([value is not None for value in values], bool)
    valid = None if there.all() else there
    filled = [KINDS[kind][-1] if value is None else value for value in values]
    if kind == "string":
        return Operand(pa.array(filled).dictionary_encode(), valid)
    if kind == "address":
        parsed = [ipaddress.ip_address(value) for value in filled]
        version = np.array([address.version for address in parsed], np.uint8)
        halves = [divmod(int(address), 1 << 64) for address in parsed]
        high, low = (np.array([half[i] for half in halves], np.uint64) for i in range(2))
        return Operand(Addresses(version, high, low), valid)
    return Operand(np.array(filled, {"float": np.float64, "integer": np.int64, "boolean": np.bool_}[kind]), valid)


def ranked(windows: list[int], *columns: tuple[Operand, bool]) -> Ranked:
    return Ranked(pa.table({"at": np.arange(len(windows))}), np.array(windows, np.int64), columns)


def places(found: Ranked) -> list[int]:
    return found.table["at"].to_pylist()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("descending", [False, True])
def test_every_type_in_the_engines_order(kind: str, descending: bool) -> None:
    """NULL below everything, NaN above every number, strings by their bytes, IPv4 before IPv6; or all of it turned."""
    values = KINDS[kind]
    for seed in range(5):
        shuffled = random.Random(seed).sample(values, len(values))
        found = first_rows(query(), ranked([0] * len(values), (operand(kind, shuffled), descending)))
        wanted = values[::-1] if descending else values
        assert [repr(shuffled[at]) for at in places(found)] == [repr(value) for value in wanted], (kind, seed)


@pytest.mark.parametrize("kind", KINDS)
def test_without_nulls(kind: str) -> None:
    values = KINDS[kind][1:]
    found = first_rows(query(), ranked([0] * len(values), (operand(kind, values[::-1]), False)))
    assert places(found) == list(range(len(values)))[::-1]


def test_both_zeros_and_all_nans_are_ties() -> None:
    negative_nan = np.array([-1], np.int64).view(np.float64)[0]
    floats = Operand(np.array([0.0, -0.0, math.nan, negative_nan, 0.0]))
    tie = Operand(np.array([3, 1, 9, 2, 2]))
    assert places(first_rows(query(), ranked([0] * 5, (floats, False), (tie, False)))) == [1, 4, 0, 3, 2]


def test_all_nulls() -> None:
    for kind in KINDS:
        found = first_rows(
            query(), ranked([0] * 3, (operand(kind, [None] * 3), True), (Operand(np.array([2, 3, 1])), False))
        )
        assert places(found) == [2, 0, 1]


def test_nothing_at_all() -> None:
    for kind in KINDS:
        for limit in (None, 3):
            assert places(first_rows(query(limit=limit), ranked([], (operand(kind, []), False)))) == []


def test_without_order_and_limit_rows_stay_as_they_are() -> None:
    assert places(first_rows(query(order=()), ranked([2, 1, 2]))) == [0, 1, 2]


def test_a_limit_alone_goes_by_the_keys() -> None:
    """`finish` gives the keys as the only columns then."""
    found = first_rows(query(order=(), limit=2), ranked([0] * 4, (Operand(np.array([7, 5, 9, 6])), False)))
    assert places(found) == [1, 3]


# -- windows, ties and limits against plain Python


def compared(a: Any, b: Any, kind: str) -> int:
    order = KINDS[kind]
    return order.index(a) - order.index(b)


def random_values(kind: str, rng: random.Random, n: int) -> list[Any]:
    return [rng.choice(KINDS[kind]) for _ in range(n)]


@pytest.mark.parametrize("seed", range(40))
def test_first_rows_of_every_window(seed: int) -> None:
    rng = random.Random(seed)
    n = rng.choice([0, 1, 30, 200])
    windows = [rng.randint(-3, 3) for _ in range(n)]
    kinds = [rng.choice(list(KINDS)) for _ in range(rng.randint(1, 3))]
    columns = [(kind, random_values(kind, rng, n), rng.random() < 0.5) for kind in kinds]
    columns.append(("integer", [*range(n)], False))  # the key: no two rows are alike
    limit = rng.choice([None, 0, 1, 3, 1000])

    def compare(a: int, b: int) -> int:
        for kind, values, descending in columns[:-1]:
            known = compared(values[a], values[b], kind)
            if known:
                return -known if descending else known
        return a - b

    wanted: list[int] = []
    for window in sorted(set(windows)):
        inside = sorted((at for at in range(n) if windows[at] == window), key=cmp_to_key(compare))
        wanted += inside[:limit]
    given = [(operand(kind, values), descending) for kind, values, descending in columns]
    found = first_rows(query(limit=limit), ranked(windows, *given))
    assert places(found) == wanted, seed
    assert found.windows.tolist() == [windows[at] for at in wanted]
    # In passes: the first rows of each, then of all of them together.
    cut = sorted({0, n, rng.randint(0, n)})
    everything = ranked(windows, *given)
    parts = [first_rows(query(limit=limit), everything.take(np.arange(a, b))) for a, b in pairwise(cut)]
    if parts:
        assert places(first_rows(query(limit=limit), parts[0].joined(parts[1:]))) == wanted, seed


def test_passes_with_and_without_nulls_join() -> None:
    for kind in KINDS:
        values = KINDS[kind]
        one = ranked([0], (operand(kind, [values[1]]), False))
        other = ranked([0], (operand(kind, [None]), False))
        joined = one.joined([other, one])
        assert joined.columns[0][0].valid is not None
        assert joined.columns[0][0].valid.tolist() == [True, False, True]
        assert first_rows(query(), joined).windows.tolist() == [0, 0, 0]
        assert places(first_rows(query(limit=1), other.joined([one]))) == [0]
