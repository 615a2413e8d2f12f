"""Plans at work on the paper's streams, and how long a unit of time takes them (aggregation-join, Sec. 7.1.2, 7.2).

Windows are those of the last w_i records, full before the clock starts. All plans take in the same records; in every
round each of them runs the same units of time, one plan after the other, in an order that turns from round to round. A
run has several rounds, and its time is their median; runs differ in records and in where arrays lie in memory. Times
are process times, for a unit of time.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from experiments.join.events import Records, counted_events, drawn
from experiments.join.operator import AggregationJoin, Function, JoinedStream, JoinQuery, Plan, Words
from experiments.models.join_costs import BUCKETS, StreamStatistics

UNIT = 1_000_000


@dataclass(frozen=True)
class JoinSetting:
    """Inputs of one point of a figure. The query is that of Fig. 3: SUM of every stream, grouped by all G_i."""

    streams: tuple[StreamStatistics, ...]
    hashed: bool = True
    buckets: int = BUCKETS
    out_buckets: int = BUCKETS

    @property
    def query(self) -> JoinQuery:
        return JoinQuery(
            tuple(JoinedStream(s.window + 1, s.groups, s.keys) for s in self.streams),
            tuple(Function("sum", k) for k in range(len(self.streams))),
            self.hashed,
            self.buckets,
            self.out_buckets,
        )


@dataclass(frozen=True)
class PlanTimes:
    """Seconds that a unit of time took, by plan and run."""

    seconds: dict[Plan, tuple[float, ...]]

    def median(self, plan: Plan) -> float:
        return median(self.seconds[plan])

    def tied(self, one: Plan, other: Plan) -> bool:
        """Whether repeated runs leave open which of two plans is faster: some run of each was faster than some run of
        the other."""
        a, b = self.seconds[one], self.seconds[other]
        return min(a) <= max(b) and min(b) <= max(a)

    def wins(self, one: Plan, other: Plan) -> int:
        """Runs in which the first was faster: plans take turns in a run, so other work slows both."""
        return sum(a < b for a, b in zip(self.seconds[one], self.seconds[other], strict=True))


def records_of(stream: StreamStatistics, units: float, number: int, rng: np.random.Generator) -> Records:
    """A full window before time 0, then `units` units of time."""
    rate, offset = stream.rate, (number + 1) / 10
    before = np.arange(-stream.window, 0) / stream.window - 1
    after = (np.arange(round(rate * units)) + offset) / rate
    times = (np.concatenate([before, after]) * UNIT).astype(np.int64)
    return drawn(rng, times, stream.groups, stream.keys)


def measure(setting: JoinSetting, runs: int, rounds: int, units: float, seed: int) -> PlanTimes:
    """Run all plans `runs` times, with other records and other places in memory each time."""
    rng = np.random.default_rng(seed)
    found = [_run(setting, rounds, units, rng) for _ in range(runs)]
    return PlanTimes({plan: tuple(median(run[plan]) for run in found) for plan in found[0]})


def _run(setting: JoinSetting, rounds: int, units: float, rng: np.random.Generator) -> dict[Plan, list[float]]:
    records = [records_of(one, rounds * units, k, rng) for k, one in enumerate(setting.streams)]
    times, events = counted_events(records, [one.window for one in setting.streams])
    query = setting.query
    joins = {plan: AggregationJoin(query, plan, rng) for plan in query.plans}
    for join in joins.values():
        join.run(events[times < 0])
    seconds: dict[Plan, list[float]] = {plan: [] for plan in joins}
    edges = np.searchsorted(times, np.arange(rounds + 1) * units * UNIT)
    for number in range(rounds):
        part = events[edges[number] : edges[number + 1]]
        for plan in _turned(query.plans, number):
            seconds[plan].append(timed(joins[plan], part) / units)
    return seconds


def same_results(setting: JoinSetting, seed: int) -> bool:
    """Whether all plans have the same AS_out, with full windows and a unit of time later."""
    rng = np.random.default_rng(seed)
    records = [records_of(one, 1, k, rng) for k, one in enumerate(setting.streams)]
    events = counted_events(records, [one.window for one in setting.streams])[1]
    found = []
    for plan in setting.query.plans:
        join = AggregationJoin(setting.query, plan)
        join.run(events)
        found.append(join.groups())
    return all(groups == found[0] for groups in found[1:]) and bool(found[0])


def timed(join: AggregationJoin, events: Words) -> float:
    start = time.process_time()
    join.run(events)
    return time.process_time() - start


def _turned(plans: Sequence[Plan], number: int) -> Sequence[Plan]:
    """Another plan first in each round, every other round backwards."""
    cut = number % len(plans)
    turned = [*plans[cut:], *plans[:cut]]
    return turned[::-1] if number % 2 else turned
