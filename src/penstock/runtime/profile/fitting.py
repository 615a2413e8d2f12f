"""Unit costs as a run's own counters have them: calibrated ones, corrected by what its tasks really took.

On a machine that is shared, or whose caches other work fills, everything is dearer than when it was calibrated, and a
probe more so than an insert, or less. The tasks of a batch tell both: nanoseconds of all tables against what their
probes and evictions were priced at, and those of all leaves (seed smap, Sec. 8.2, fits c1 and c2 so). The middle task
counts, and half of the way is gone at a time: what disturbs one batch hardly changes the plan of the next.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import sqrt
from statistics import median

from penstock.runtime.work import TABLE
from penstock.sharing.model.partial_groups import Handed, behind
from penstock.sharing.model.unit_costs import CostBySize, Costs, PerRow
from penstock.sharing.plan import Basis, SharedPlan
from penstock.sharing.predicted import unit_prices
from penstock.state.protocol import TaskReport

LEAST = 100_000.0  # ns that a task should have taken for something, before it tells of its price
MOST = 4.0  # times as dear, or as cheap: more is a disturbance
Tasks = Sequence[TaskReport]
Priced = Callable[[TaskReport], tuple[float, float]]  # ns that a task took for something, and that it should have taken


def fitted(plan: SharedPlan, tasks: Tasks) -> Costs | None:
    """The costs that a plan was priced with, corrected by tasks that ran it; None where there is nothing to tell."""
    basis = plan.basis
    if basis is None:
        return None
    probes, inserts = _factor(tasks, _of_tables(plan, basis)), _factor(tasks, _of_leaves(plan, basis))
    written = _factor(tasks, _of_segments(plan, basis))
    if probes is None and inserts is None:
        return None
    first, second = (one or other or 1.0 for one, other in ((probes, inserts), (inserts, probes)))
    return scaled(basis.costs, first, second, written or 1.0)


def scaled(costs: Costs, probes: float, inserts: float, written: float) -> Costs:
    """With tables, leaves and what is behind these so many times as dear. What both tables and leaves do is as much
    dearer as the two on average."""
    both = sqrt(probes * inserts)
    return replace(
        costs,
        probe=_curve(costs.probe, probes),
        recent=_curve(costs.recent, probes),
        passing=costs.passing * probes,
        insert=_curve(costs.insert, inserts),
        appended=costs.appended * inserts,
        fold=costs.fold * both,
        word=costs.word * both,
        segment=_per_row(costs.segment, written),
        merge=_per_row(costs.merge, written),
        rolled=_per_row(costs.rolled, written),
        finish=costs.finish * written,
        block=costs.block * written,
    )


def _factor(tasks: Tasks, priced: Priced) -> float | None:
    """Half of the way, as a factor, from what something should have cost to what the middle task took."""
    found = [taken / due for taken, due in map(priced, tasks) if due >= LEAST]
    return sqrt(min(MOST, max(1.0 / MOST, median(found)))) if found and median(found) > 0.0 else None


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
    units = unit_prices(basis).insert

    def priced(task: TaskReport) -> tuple[float, float]:
        work = [(units[name], task.work[name]) for name in units if name in task.work]
        return float(sum(did["nanoseconds"] for _, did in work)), sum(unit * did["probes"] for unit, did in work)

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
