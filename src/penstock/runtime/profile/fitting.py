"""Unit costs as a run's own counters have them: calibrated ones, corrected by what its tasks really took.

On a machine that is shared, or whose caches other work fills, everything is dearer than when it was calibrated, and a
probe more so than an insert, or less. The tasks of a batch tell both: nanoseconds of all tables against what their
probes and evictions were priced at, those of all leaves (seed smap, Sec. 8.2, fits c1 and c2 so), and of segments; and
merge tasks those of merging, rolling up and finishing. The middle task counts, and half of the way is gone at a time:
what disturbs one batch hardly changes the plan of the next.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import sqrt
from statistics import median

from penstock.relations.relation import EXACT, Relation
from penstock.runtime.meter import FINISH, MERGE, ROLL
from penstock.runtime.work import TABLE
from penstock.sharing.model.partial_groups import Handed, behind, columns_of
from penstock.sharing.model.unit_costs import CostBySize, Costs, PerRow
from penstock.sharing.plan import Basis, SharedPlan
from penstock.sharing.predicted import unit_prices
from penstock.state.protocol import Counts, TaskReport, Work

TABLES, LEAVES, SEGMENT = "tables", "leaves", "segment"  # parts of tasks; `runtime.meter` has those of merge tasks
LEAST = 100_000.0  # ns that a task should have taken for something, before it tells of its price
MOST = 4.0  # times as dear, or as cheap: more is a disturbance
Tasks = Sequence[TaskReport]
Priced = Callable[[TaskReport], tuple[float, float]]  # ns that a task took for something, and that it should have taken


def fitted(plan: SharedPlan, tasks: Tasks, closing: Sequence[Work] = ()) -> Costs | None:
    """The costs that a plan was priced with, corrected by tasks that ran it and by merge tasks; None where there is
    nothing to tell."""
    found = {part: sqrt(min(MOST, max(1.0 / MOST, times))) for part, times in factors(plan, tasks, closing).items()}
    if plan.basis is None or not {TABLES, LEAVES} & found.keys():
        return None
    first = found.get(TABLES) or found[LEAVES]
    second = found.get(LEAVES) or found[TABLES]
    return scaled(plan.basis.costs, first, second, found)


def factors(plan: SharedPlan, tasks: Tasks, closing: Sequence[Work] = ()) -> dict[str, float]:
    """How many times as long each part took as what was counted should have taken: in the middle one of tasks, and of
    merge tasks. Parts that took too little to tell are not there."""
    if plan.basis is None:
        return {}
    costs, kept = plan.basis.costs, {relation.name: relation for relation in plan.relations}
    of_tasks = {
        TABLES: _of_tables(plan, plan.basis),
        LEAVES: _of_leaves(plan, plan.basis),
        SEGMENT: _of_segments(plan, plan.basis),
    }
    found = {part: [one for task in tasks if (one := priced(task))[1] >= LEAST] for part, priced in of_tasks.items()}
    for part in (MERGE, ROLL, FINISH):
        every = [_closing(part, kept, work, costs) for work in closing]
        found[part] = [one for one in every if one[1] >= LEAST]
    times = {part: median(spent / due for spent, due in pairs) for part, pairs in found.items() if pairs}
    return {part: one for part, one in times.items() if one > 0.0}


def scaled(costs: Costs, probes: float, inserts: float, behind: Mapping[str, float]) -> Costs:
    """With tables, leaves and the parts behind these so many times as dear. What both tables and leaves do is as much
    dearer as the two on average; what was not counted, as segments are."""
    both, written = sqrt(probes * inserts), behind.get(SEGMENT, 1.0)
    merged, rolled, finished = (behind.get(part, written) for part in (MERGE, ROLL, FINISH))
    return replace(
        costs,
        probe=_curve(costs.probe, probes),
        recent=_curve(costs.recent, probes),
        passing=costs.passing * probes,
        insert=_curve(costs.insert, inserts),
        lone=_curve(costs.lone, inserts),
        appended=costs.appended * inserts,
        fresh=costs.fresh * inserts,
        fold=costs.fold * both,
        word=costs.word * both,
        segment=_per_row(costs.segment, written),
        block=costs.block * written,
        merge=_per_row(costs.merge, merged),
        overlapping=_per_row(costs.overlapping, merged),
        merging=costs.merging * merged,
        rolled=_per_row(costs.rolled, rolled),
        grouped=costs.grouped * rolled,
        read=costs.read * rolled,
        coding=costs.coding * rolled,
        finish=costs.finish * finished,
        shown=costs.shown * finished,
        close=costs.close * finished,
        spelled=costs.spelled * finished,
        ordered=costs.ordered * finished,
    )


def _closing(part: str, kept: Mapping[str, Relation], work: Work, costs: Costs) -> tuple[float, float]:
    """Nanoseconds that a merge task took for a part, and that it should have taken."""
    of, mine = {MERGE: _merged, ROLL: _rolled, FINISH: _finished}[part], work.keys() & kept.keys()
    due = sum(of(columns_of(kept[name]), defaultdict(int, work[name]), costs) for name in mine)
    return float(sum(work[name].get(part, 0) for name in mine)), due


def _merged(columns: int, did: Counts, costs: Costs) -> float:
    return did["merged"] * costs.merge.of(columns) + did["merges"] * costs.merging


def _rolled(columns: int, did: Counts, costs: Costs) -> float:
    rows = did["rolled"] * costs.rolled.row + did["coded"] * costs.rolled.column
    each = did["rollups"] * costs.read + did["codings"] * costs.coding
    return rows + did["filled"] * costs.grouped + each


def _finished(columns: int, did: Counts, costs: Costs) -> float:
    rows = did["cells"] * costs.finish + did["shown"] * costs.shown + did["ordered"] * costs.ordered
    return rows + did["closed"] * costs.close + did["spelled"] * costs.spelled


def _of_tables(plan: SharedPlan, basis: Basis) -> Priced:
    units, passing = unit_prices(basis).probe, basis.costs.passing
    names = [table.name for table in plan.tables if table.name in units]

    def priced(task: TaskReport) -> tuple[float, float]:
        work = [(units[name], task.work[TABLE + name]) for name in names if TABLE + name in task.work]
        left = sum(did["evictions"] + did["flushed"] for _, did in work)
        due = sum(unit * did["probes"] for unit, did in work) + passing * left
        return float(sum(did["nanoseconds"] for _, did in work)), due

    return priced


def _of_leaves(plan: SharedPlan, basis: Basis) -> Priced:
    units, fresh = unit_prices(basis).insert, basis.costs.fresh
    made = {relation.name for relation in plan.relations if relation.table == EXACT}

    def priced(task: TaskReport) -> tuple[float, float]:
        work = [(units[name], task.work[name]) for name in units if name in task.work]
        due = sum(unit * did["probes"] for unit, did in work)
        due += fresh * sum(task.work[name]["groups"] for name in made if name in task.work)
        return float(sum(did["nanoseconds"] for _, did in work)), due

    return priced


def _of_segments(plan: SharedPlan, basis: Basis) -> Priced:
    kept = {relation.name: relation for relation in plan.relations}

    def priced(task: TaskReport) -> tuple[float, float]:
        work = [(kept[name], task.work[name]) for name in kept if "segment" in task.work.get(name, {})]
        due = behind((Handed(relation, float(did["groups"])) for relation, did in work), 1.0, basis.costs).segment
        return float(sum(did["segment"] for _, did in work)), due

    return priced


def _curve(curve: CostBySize, factor: float) -> CostBySize:
    return tuple((size, cost * factor) for size, cost in curve)


def _per_row(one: PerRow, factor: float) -> PerRow:
    return PerRow(one.row * factor, one.column * factor)
