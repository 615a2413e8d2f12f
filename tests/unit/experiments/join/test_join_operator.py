"""The paper's operator: all 2^m plans, hash and nested loop, equal evaluation from scratch after every record."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence

import numpy as np
import pytest

from experiments.join import layout as at
from experiments.join.events import (
    LANDMARK,
    RELATION,
    SLIDING,
    TUMBLING,
    Records,
    TimeWindow,
    counted_events,
    drawn,
    spans,
    timed_events,
)
from experiments.join.operator import AggregationJoin, Function, JoinedStream, JoinQuery, Words, plan_name
from support.amounts import quick_and
from support.naive_join import Record, evaluate

NAMES = ("sum", "avg", "min", "max")
KINDS = (SLIDING, SLIDING, SLIDING, TUMBLING, LANDMARK, RELATION)


def all_functions(m: int) -> tuple[Function, ...]:
    return (Function("count"), *(Function(name, k) for k in range(m) for name in NAMES))


def random_records(rng: np.random.Generator, dice: random.Random, count: int, keys: int) -> Records:
    """Few values, so that extremes come twice; sums of zero, too."""
    times = np.sort(rng.integers(0, 10 * count, count))
    made = drawn(rng, times, dice.choice([1, 2, 5, 40]), keys, dice.choice([2, 7, 1000]))
    return Records(times, made.groups, made.keys, made.values - made.values.max() // 2)


class Naive:
    """The windows, as lists."""

    def __init__(self, m: int) -> None:
        self.windows: list[deque[Record]] = [deque() for _ in range(m)]

    def take(self, event: Sequence[int]) -> None:
        window = self.windows[event[at.STREAM]]
        if event[at.SIGN] > 0:
            window.append((event[at.EVENT_GROUP], event[at.EVENT_KEY], event[at.EVENT_VALUE]))
        else:
            window.popleft()


def assert_after_every_record(
    streams: Sequence[JoinedStream], functions: tuple[Function, ...], events: Words, buckets: int, place: str
) -> int:
    """How many groups were seen at most."""
    queries = [JoinQuery(tuple(streams), functions, hashed, buckets) for hashed in (True, False)]
    joins = [AggregationJoin(query, plan) for query in queries for plan in query.plans]
    naive, most = Naive(len(streams)), 0
    for number, event in enumerate(events.tolist()):
        naive.take(event)
        expected = evaluate([list(window) for window in naive.windows], [(f.name, f.stream) for f in functions])
        most = max(most, len(expected))
        for join in joins:
            join.run(events[number : number + 1])
            told = f"{place}: {plan_name(join.plan)}, hashed {join.query.hashed}, after event {number} {event}"
            assert join.groups() == expected, told
            assert join.out_size == len(expected), told
            assert join.sizes == tuple(map(len, naive.windows)), told
            for k, early in enumerate(join.plan):
                assert join.set_sizes[k] == (len({record[:2] for record in naive.windows[k]}) if early else 0), told
    return most


def check(seed: int, m: int, count: int) -> None:
    rng, dice = np.random.default_rng(seed), random.Random(seed)
    keys = dice.choice([1, 2, 3, 7][: 6 - m])
    records = [random_records(rng, dice, count, keys) for _ in range(m)]
    functions = all_functions(m) if dice.random() < 0.7 else tuple(dice.sample(all_functions(m), 2))
    if dice.random() < 0.3:
        sizes = [dice.randrange(1, 12 if m == 2 else 7) for _ in range(m)]
        streams = [JoinedStream(size + 1, 40, 7) for size in sizes]
        events = counted_events(records, sizes)[1]
        place = f"seed {seed}, the last {sizes} records"
    else:
        lengths = dice.sample([20, 40, 70, 100], m)
        windows = [TimeWindow(dice.choice(KINDS), length) for length in lengths]
        streams, events = spans(records, windows), timed_events(records, windows)[1]
        place = f"seed {seed}, {windows}"
    assert assert_after_every_record(streams, functions, events, dice.choice([1, 2, 1021]), place) > 0, place


@pytest.mark.parametrize("seed", quick_and(range(12), range(100, 400)))
def test_two_streams(seed: int) -> None:
    check(seed, 2, 40)


@pytest.mark.parametrize("seed", quick_and(range(8), range(100, 250)))
def test_three_streams(seed: int) -> None:
    check(seed, 3, 14)


@pytest.mark.parametrize("seed", quick_and(range(2), range(100, 130)))
def test_four_streams(seed: int) -> None:
    check(seed, 4, 8)


def test_room_for_groups_grows() -> None:
    """More groups than the operator has room for at first."""
    rng = np.random.default_rng(5)
    times = np.arange(300)
    records = [drawn(rng, times, 10_000, 2) for _ in range(2)]
    query = JoinQuery((JoinedStream(200, 10_000, 2),) * 2, (Function("sum", 0), Function("max", 1)))
    events = counted_events(records, [199, 199])[1]
    naive = Naive(2)
    for event in events.tolist():
        naive.take(event)
    expected = evaluate([list(window) for window in naive.windows], [("sum", 0), ("max", 1)])
    assert len(expected) > 10_000
    for plan in query.plans:
        join = AggregationJoin(query, plan)
        join.run(events)
        assert join.groups() == expected


def test_a_group_leaves_with_its_last_record_not_with_its_sum() -> None:
    records = [
        Records(np.array([0, 1, 50]), np.zeros(3, int), np.zeros(3, int), np.array([5, -5, 1])),
        Records(np.array([2]), np.zeros(1, int), np.zeros(1, int), np.array([9])),
    ]
    windows = [TimeWindow(SLIDING, 10), TimeWindow(LANDMARK)]
    query = JoinQuery(tuple(spans(records, windows)), (Function("sum", 0), Function("count")))
    times, events = timed_events(records, windows)
    for plan in query.plans:
        join = AggregationJoin(query, plan)
        join.run(events[times < 5])
        assert join.groups() == {(0, 0): (0, 2)}
        join.run(events[(times >= 5) & (times < 20)])
        assert join.groups() == {}
        join.run(events[times >= 20])
        assert join.groups() == {}  # it came at 50 and went at 60
