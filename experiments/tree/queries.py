"""aggregate-tree, Fig. 5: hash operations against the number of queries, and how long planning takes (Sec. VIII-B).

Query sets are drawn from the 78 pairs of 13 attributes; each is planned for three sizes of memory by every way and run
over an epoch. What Sec. VI-D and VII say of allocations is in `uniform`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from experiments.kit.report import (
    Claim,
    ExperimentSettings,
    Findings,
    InputAnswer,
    Line,
    Numbers,
    Panel,
    Tell,
    judged,
    spread,
    table,
)
from experiments.tree.compared import LABELS
from experiments.tree.plans import TreePlan, TreePlanner, tuned
from experiments.tree.records import OTHER_ROWS, connections, netflow
from experiments.tree.streams import LETTERS, PAIRS, RecordStream
from experiments.tree.uniform import allocation_claims

MEMORY, QUICK_MEMORY = (50_000, 500_000, 5_000_000), (50_000, 5_000_000)
COUNTS, QUICK_COUNTS = (20, 50, 78), (26, 36)
SETS = 3
WAYS = ("ours", "paper", "slc")


@dataclass(frozen=True)
class QuerySetCosts:
    """One query set at one memory (before scaling): hash operations a record, by way, and of the first set of a size
    the seconds to plan ours from the start, all numbers of groups known."""

    count: int
    memory: int
    costs: dict[str, float]
    seconds: float

    def saved(self, way: str) -> float:
        return 1 - self.costs[way] / self.costs["slc"]


@dataclass(frozen=True)
class QuerySetRuns:
    """One stream; `relations` are those whose groups were asked for, for the most queries."""

    records: RecordStream
    cases: tuple[QuerySetCosts, ...]
    relations: int

    @property
    def name(self) -> str:
        return self.records.name

    def at(self, memory: int, count: int | None = None) -> list[QuerySetCosts]:
        return [case for case in self.cases if case.memory == memory and count in (None, case.count)]

    def mean(self, memory: int, count: int, what: str) -> float:
        """Of the query sets of a size: what is saved to SLC."""
        return float(np.mean([case.saved(what) for case in self.at(memory, count)]))


def query_sets(counts: Sequence[int], sets: int, seed: int) -> list[tuple[str, ...]]:
    """`sets` sets of each size; of all 78 queries there is one.

    >>> [len(queries) for queries in query_sets((20, 78), 2, 7)]
    [20, 20, 78]
    """
    rng = np.random.default_rng(seed)
    found = []
    for count in counts:
        for _ in range(sets if count < len(PAIRS) else 1):
            found.append(tuple(PAIRS[i] for i in sorted(rng.permutation(len(PAIRS))[:count])))
    return found


def measure(
    records: RecordStream, queries: Sequence[tuple[str, ...]], memories: Sequence[int], tell: Tell
) -> QuerySetRuns:
    planner, epoch = TreePlanner(records.usual), records.usual
    cases: list[QuerySetCosts] = []
    for some in queries:
        tell(f"{records.name}, {len(some)} queries")
        before: dict[str, TreePlan] = {}
        for memory in memories:
            plans = {way: planner.plan(some, memory * records.scale, way, before.get(way)) for way in WAYS}
            costs = {way: plans[way].run([epoch]).per_tuple for way in WAYS if way != "slc"}
            costs["slc"] = tuned(plans["slc"], [epoch])[1].per_tuple
            first = all(case.memory != memory or case.count != len(some) for case in cases)
            seconds = planner.plan(some, memory * records.scale).seconds if first else 0.0
            cases.append(QuerySetCosts(len(some), memory, costs, seconds))
            before = plans
    fresh = TreePlanner(epoch)
    fresh.plan(queries[-1], memories[len(memories) // 2] * records.scale)
    return QuerySetRuns(records, tuple(cases), len(fresh.groups))


def run(settings: ExperimentSettings, tell: Tell) -> Findings:
    memories, counts = (QUICK_MEMORY, QUICK_COUNTS) if settings.quick else (MEMORY, COUNTS)
    queries = query_sets(counts, 1 if settings.quick else SETS, settings.seed)
    streams = (netflow(settings, OTHER_ROWS, 1, settings.seed + 1), connections(settings, tell))
    found = [measure(records, queries, memories, tell) for records in streams]
    tell("random trees, uniform data")
    claims, numbers = allocation_claims(settings)
    return Findings(
        "cost against the number of queries, and allocations (aggregate-tree, Fig. 5, Sec. VI-D, VII)",
        (*_claims(found, memories, counts), *claims),
        (*(_table(one, memories, counts) for one in found), *numbers),
        (
            *(_saved_panel(one, memories, counts) for one in found),
            *(_cost_panel(one, memories, counts) for one in found),
            _time_panel(found, memories, counts),
        ),
        tuple(
            f"{one.name}: one epoch of {one.records.usual.rows:,} records, M × {one.records.scale:.2f}" for one in found
        ),
    )


def _claims(found: Sequence[QuerySetRuns], memories: Sequence[int], counts: Sequence[int]) -> list[Claim]:
    claims = []
    for way in ("ours", "paper"):
        for memory in memories:
            saved = {one.name: [one.mean(memory, count, way) for count in counts] for one in found}
            least = {one.name: min(case.saved(way) for case in one.at(memory)) for one in found}
            claims.append(
                judged(
                    f"Fig. 5: {LABELS[way]} saves hash operations to SLC, whatever the number of queries "
                    f"(M = {memory:,})",
                    "consistently",
                    [
                        InputAnswer(name, ", ".join(f"{x:.0%}" for x in each), least[name] > 0)
                        for name, each in saved.items()
                    ],
                    f"for {', '.join(map(str, counts))} queries, on average over query sets; holds if every set saves; "
                    "least: " + ", ".join(f"{name} {x:.0%}" for name, x in least.items()),
                )
            )
        most = {one.name: [one.mean(memories[-1], count, way) for count in counts] for one in found}
        claims.append(
            judged(
                f"Fig. 5: {LABELS[way]} saves 50 % to SLC at M = {memories[-1]:,}",
                "50 %",
                [
                    InputAnswer(name, f"{min(each):.0%} to {max(each):.0%}", min(each) >= 0.5)
                    for name, each in most.items()
                ],
                "averages over query sets of a size; holds if all are 50 % or more",
            )
        )
    seconds = {one.name: [_seconds(one, count) for count in counts] for one in found}
    every = 2 ** len(LETTERS) - len(LETTERS) - 1
    return [
        *claims,
        judged(
            "Sec. VIII-A: planning takes only a few minutes",
            "a few minutes (ε = 0.05)",
            [
                InputAnswer(name, ", ".join(f"{x:.2f}" for x in each) + " s", max(each) < 180)
                for name, each in seconds.items()
            ],
            f"processor time for {', '.join(map(str, counts))} queries, numbers of groups known; the slowest of the "
            "memories; the paper's machine had a Xeon of 3 GHz",
        ),
        judged(
            "Sec. II: planning does not enumerate all aggregates",
            "pairs of siblings only",
            [
                InputAnswer(
                    one.name, f"groups of {one.relations:,} of {every:,} relations asked for", one.relations < every / 2
                )
                for one in found
            ],
            f"{counts[-1]} queries, the middle M, planned from the start; holds if less than half",
        ),
    ]


def _seconds(one: QuerySetRuns, count: int) -> float:
    return max(case.seconds for case in one.cases if case.count == count)


def _table(one: QuerySetRuns, memories: Sequence[int], counts: Sequence[int]) -> Numbers:
    rows = []
    for memory in memories:
        for count in counts:
            cases = one.at(memory, count)
            shares = [float(np.mean([case.costs[way] for case in cases])) / count for way in WAYS]
            saved = [case.saved("ours") for case in cases]
            rows.append((memory, count, *shares, f"{np.mean(saved):.0%}", spread(saved, 2), _seconds(one, count)))
    return table(
        f"Fig. 5: hash operations over the naive way, {one.name}",
        ("M", "queries", *(LABELS[way] for way in WAYS), "saved", "over the sets", "planning (s)"),
        rows,
    )


def _saved_panel(one: QuerySetRuns, memories: Sequence[int], counts: Sequence[int]) -> Panel:
    lines = [
        Line(
            f"{LABELS[way]}, M = {memory:,}",
            counts,
            [100 * one.mean(memory, count, way) for count in counts],
            dashed=way == "paper",
        )
        for way in ("ours", "paper")
        for memory in memories
    ]
    return Panel(f"Fig. 5: {one.name}", "queries", "hash operations saved to SLC (%)", tuple(lines))


def _cost_panel(one: QuerySetRuns, memories: Sequence[int], counts: Sequence[int]) -> Panel:
    lines = [
        Line(
            f"{LABELS[way]}, M = {memory:,}",
            counts,
            [float(np.mean([case.costs[way] for case in one.at(memory, count)])) for count in counts],
            dashed=way == "slc",
        )
        for way in ("ours", "slc")
        for memory in memories
    ]
    naive = Line("naive", counts, list(counts))
    return Panel(f"cost: {one.name}", "queries", "hash operations a tuple", (naive, *lines), bottom=0)


def _time_panel(found: Sequence[QuerySetRuns], memories: Sequence[int], counts: Sequence[int]) -> Panel:
    lines = [
        Line(
            f"{one.name}, M = {memory:,}",
            counts,
            [max(case.seconds for case in one.at(memory, count)) for count in counts],
        )
        for one in found
        for memory in memories
    ]
    return Panel("planning, numbers of groups known", "queries", "seconds", tuple(lines), bottom=0)
