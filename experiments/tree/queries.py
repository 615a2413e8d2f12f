"""aggregate-tree, Fig. 5: hash operations against the number of queries, and how long planning takes (Sec. VIII-B).

Query sets are drawn from the 78 pairs of 13 attributes; each is planned for three sizes of memory by every way and run
over an epoch; SLC also from the start at each size, as the paper ran it, for one set of each size. The smallest set is
planned by Algorithm 1 as it is printed as well. What Sec. VI-D and VII say of allocations is in `uniform`.
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
    """One query set at one memory (before scaling): hash operations a record, by way; of the first set of a size also
    from the start (`scratch`: SLC, `anew`: ours), and the seconds to plan ours so, all numbers of groups known."""

    count: int
    memory: int
    costs: dict[str, float]
    seconds: float

    def saved(self, way: str, to: str = "slc") -> float:
        return 1 - self.costs[way] / self.costs[to]


@dataclass(frozen=True)
class PrintedTrees:
    """One query set at one memory, ours and SLC: what trees of Algorithm 1 as printed cost over those of our greedy,
    predicted and counted, and the seconds of processor time of both (counting groups is in the first only)."""

    model: str
    predicted: float
    counted: float
    seconds: tuple[float, float]


@dataclass(frozen=True)
class QuerySetRuns:
    """One stream; `relations` are those whose groups were asked for, for the most queries; `printed`: by Algorithm 1 as
    it is printed, of the first and smallest set."""

    records: RecordStream
    cases: tuple[QuerySetCosts, ...]
    relations: int
    printed: tuple[PrintedTrees, ...]

    @property
    def name(self) -> str:
        return self.records.name

    def at(self, memory: int, count: int | None = None) -> list[QuerySetCosts]:
        return [case for case in self.cases if case.memory == memory and count in (None, case.count)]

    def mean(self, memory: int, count: int, what: str, to: str = "slc") -> float:
        """Of the query sets of a size: what is saved to SLC."""
        return float(np.mean([case.saved(what, to) for case in self.at(memory, count) if to in case.costs]))


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
            seconds = 0.0
            if all(case.memory != memory or case.count != len(some) for case in cases):
                ours, slc = (planner.plan(some, memory * records.scale, way) for way in ("ours", "slc"))
                costs["anew"], seconds = ours.run([epoch]).per_tuple, ours.seconds
                costs["scratch"] = tuned(slc, [epoch])[1].per_tuple
            cases.append(QuerySetCosts(len(some), memory, costs, seconds))
            before = plans
    tell(f"{records.name}, Algorithm 1 as printed")
    printed = [_printed(planner, queries[0], memories[0] * records.scale, model) for model in ("ours", "slc")]
    fresh = TreePlanner(epoch)
    fresh.plan(queries[-1], memories[len(memories) // 2] * records.scale)
    return QuerySetRuns(records, tuple(cases), len(fresh.groups), tuple(printed))


def _printed(planner: TreePlanner, queries: Sequence[str], memory: float, model: str) -> PrintedTrees:
    literal, ours = planner.printed(queries, memory, model), planner.plan(queries, memory, model)
    return PrintedTrees(
        model,
        literal.predicted / ours.predicted,
        literal.run([planner.epoch]).per_tuple / ours.run([planner.epoch]).per_tuple,
        (literal.seconds, ours.seconds),
    )


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
    for way, to, said in (
        ("ours", "slc", f"{LABELS['ours']} saves"),
        ("paper", "slc", f"{LABELS['paper']} saves"),
        ("anew", "scratch", f"both planned from the start: {LABELS['ours']} saves"),
        ("paper", "scratch", f"SLC from the start: {LABELS['paper']} saves"),
    ):
        many = "on average over query sets" if to == "slc" else "one query set each"
        for memory in memories:
            saved = {one.name: [one.mean(memory, count, way, to) for count in counts] for one in found}
            least = {one.name: min(case.saved(way, to) for case in one.at(memory) if to in case.costs) for one in found}
            claims.append(
                judged(
                    f"Fig. 5: {said} hash operations to SLC, whatever the number of queries (M = {memory:,})",
                    "consistently",
                    [
                        InputAnswer(name, ", ".join(f"{x:.0%}" for x in each), least[name] > 0)
                        for name, each in saved.items()
                    ],
                    f"for {', '.join(map(str, counts))} queries, {many}; holds if every set saves; "
                    "least: " + ", ".join(f"{name} {x:.0%}" for name, x in least.items()),
                )
            )
        most = {one.name: [one.mean(memories[-1], count, way, to) for count in counts] for one in found}
        claims.append(
            judged(
                f"Fig. 5: {said} 50 % to SLC at M = {memories[-1]:,}",
                "50 %",
                [
                    InputAnswer(name, f"{min(each):.0%} to {max(each):.0%}", min(each) >= 0.5)
                    for name, each in most.items()
                ],
                f"{many}; holds if all are 50 % or more",
            )
        )
    claims += _printed_claims(found, counts[0], memories[0])
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


def _printed_claims(found: Sequence[QuerySetRuns], count: int, memory: int) -> list[Claim]:
    labels = {"ours": LABELS["ours"], "slc": "SLC"}
    return [
        judged(
            "Sec. V: Algorithm 1 as printed finds no better trees than our greedy",
            "(ours)",
            [
                InputAnswer(
                    f"{one.name}, {labels[each.model]}",
                    f"{each.counted:.3f} × counted, {each.predicted:.3f} × predicted, {each.seconds[0]:.1f} s against "
                    f"{each.seconds[1]:.1f} s",
                    each.counted >= 0.99,
                )
                for one in found
                for each in one.printed
            ],
            f"a set of {count} queries, M = {memory:,}, memory allocated for every pair of siblings; hash operations "
            "over those of our tree, both from the start; seconds with counting groups; holds if not 1 % fewer",
        )
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
            scratch = f"{one.mean(memory, count, 'anew', 'scratch'):.0%}"
            told = f"{np.mean(saved):.0%}", spread(saved, 2), scratch, _seconds(one, count)
            rows.append((memory, count, *shares, *told))
    return table(
        f"Fig. 5: hash operations over the naive way, {one.name}",
        ("M", "queries", *(LABELS[way] for way in WAYS), "saved", "over the sets", "from the start", "planning (s)"),
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
