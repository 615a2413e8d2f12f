"""What a plan really did: the counters of a run's tasks, for `explain --analyze`.

Measured figures have the names of the predicted ones (`sharing.explain`). Unit costs are fitted as in seed smap,
Sec. 8.2, where the time of the tables is c1·(records in) + c2·(records out), and c1 and c2 follow by least squares from
logs. The engine counts time by relation, so each relation of each task is one equation:

    of a table     ns = c1·probes + p·evictions
    of a leaf      ns = c2·inserts

c1 and c2 have the folding of states in them; what `runtime.profile.calibrate` leads one to expect of the same
relations, in the same mix, is put beside them. Times are of the processor, and those of the middle task count: workers
that have just started, and machines that are disturbed, take many times as long now and then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median

import numpy as np

from penstock.runtime.meter import FINISH, PARTS, ROWS
from penstock.runtime.profile.fitting import factors
from penstock.runtime.work import TABLE
from penstock.sharing.explain import Explained, Measured
from penstock.sharing.explain_joins import MeasuredJoin
from penstock.sharing.plan import SharedPlan
from penstock.sharing.predicted import Units, unit_prices
from penstock.state.protocol import TaskReport, Work

LEAST = 1000  # probes of a relation in a task, before its time is believed
DISTURBED = 2.0  # times what a probe takes in the relation's faster tasks: left out of the fit


def measure(
    plan: SharedPlan,
    tasks: Iterable[TaskReport],
    joins: Mapping[str, MeasuredJoin] | None = None,
    closing: Sequence[Work] = (),
) -> Measured:
    """The counters of the tasks that ran this plan, and of merge tasks (`closing`); there may be others among them, of
    other streams. `joins` are of all."""
    mine = [task for task in tasks if task.stream == plan.stream.name and task.rows]
    rows = sum(task.rows for task in mine)
    tables = {table.name: _summed(TABLE + table.name, mine, rows) for table in plan.tables}
    leaves = {relation.name: _summed(relation.name, mine, rows) for relation in plan.relations}
    return Measured(
        rows,
        len(mine),
        {name: _table(found) for name, found in tables.items() if found},
        {name: found for name, found in leaves.items() if found},
        fit(plan, mine),
        joins or {},
        _closed(plan, rows, closing),
        factors(plan, mine, closing),
    )


def _closed(plan: SharedPlan, rows: int, closing: Sequence[Work]) -> Explained:
    """What merge tasks took for the relations of a plan, for each record that its tasks read: all rows that a part had,
    at what the middle task took for one. And groups that became rows of results."""
    names = [relation.name for relation in plan.relations]
    mine = [[work[name] for name in names if name in work] for work in closing]
    if not rows or not any(mine):
        return {}

    def of_tasks(what: str) -> list[int]:
        return [sum(counts.get(what, 0) for counts in each) for each in mine]

    found = {ROWS[FINISH]: sum(of_tasks(ROWS[FINISH])) / rows}
    for part in PARTS:
        counts = of_tasks(ROWS[part])
        each = [spent / count for spent, count in zip(of_tasks(part), counts, strict=True) if count]
        found[part] = median(each) * sum(counts) / rows if each else 0.0
    return found


def _summed(name: str, tasks: Sequence[TaskReport], rows: int) -> Explained:
    """A relation's figures; nothing if no task had it. `nanoseconds` are of all tasks, `cost` of the middle one."""
    work = [task.work[name] for task in tasks if name in task.work]
    if not work:
        return {}
    costs = [task.work[name]["nanoseconds"] / task.rows for task in tasks if name in task.work]
    total = {what: sum(int(counts.get(what, 0)) for counts in work) for what in ("probes", "evictions", "nanoseconds")}
    found = total | {
        "probes_per_tuple": total["probes"] / rows,
        "bytes": max(int(task.bytes.get(name, 0)) for task in tasks),
        "cost": median(costs),
    }
    for what, figure in (("groups", "groups"), ("flushed", "flushed_per_task")):
        if any(what in counts for counts in work):
            found[figure] = sum(int(counts.get(what, 0)) for counts in work) / len(work)
    if any("segment" in counts for counts in work):
        found["partials_per_tuple"] = sum(int(counts["groups"]) for counts in work) / rows
        found["segment"] = median(task.work[name].get("segment", 0) / task.rows for task in tasks if name in task.work)
    return found | {"evictions_per_tuple": total["evictions"] / rows} if "flushed_per_task" in found else found


def _table(found: Explained) -> Explained:
    return found | {"collision_rate": found["evictions"] / found["probes"] if found["probes"] else None}


def fit(plan: SharedPlan, tasks: Sequence[TaskReport]) -> Explained | None:
    """c1, c2 and their ratio; None where nothing ran long enough to tell."""
    tables = [(table.name, TABLE + table.name) for table in plan.tables]
    leaves = [(relation.name, relation.name) for relation in plan.relations]
    units = Units({}, {}) if plan.basis is None else unit_prices(plan.basis)
    probe = _fitted(_equations(tables, tasks), units.probe, passing=True)
    insert = _fitted(_equations(leaves, tasks), units.insert)
    if probe is None and insert is None:
        return None
    ratio = insert["cost"] / probe["cost"] if probe and insert and probe["cost"] else None
    return {"probe": probe, "insert": insert, "ratio": ratio}


Equation = tuple[str, int, int, int]  # relation, nanoseconds, probes, evictions


def _equations(names: Iterable[tuple[str, str]], tasks: Iterable[TaskReport]) -> list[Equation]:
    found = [(name, task.work.get(key)) for task in tasks for name, key in names]
    return [
        (name, counts["nanoseconds"], counts["probes"], counts.get("evictions", 0))
        for name, counts in found
        if counts is not None and counts["probes"] >= LEAST
    ]


def _fitted(equations: list[Equation], units: Mapping[str, float], passing: bool = False) -> Explained | None:
    """Least squares; `error` is the root of the mean square of what is left, in parts of that of the times."""
    given, equations = len(equations), _undisturbed(equations)
    if not equations:
        return None
    time, probes, evictions = (np.array([one[i] for one in equations], float) for i in (1, 2, 3))
    columns = np.stack([probes, evictions] if passing else [probes], axis=1)
    found, _, rank, _ = np.linalg.lstsq(columns, time)
    if passing and (rank < 2 or found.min() < 0):  # evictions in step with probes, or too few, tell nothing
        columns = columns[:, :1]
        found = np.linalg.lstsq(columns, time)[0]
    left = time - columns @ found
    known = [(one[2], units[one[0]]) for one in equations if one[0] in units]
    weight = sum(probes for probes, _ in known)
    return {
        "cost": float(found[0]),
        "expected": sum(probes * unit for probes, unit in known) / weight if weight else None,
        "passing": float(found[1]) if len(found) > 1 else None,
        "points": len(equations),
        "left_out": given - len(equations),
        "error": float(np.sqrt((left @ left) / (time @ time))) if time.any() else 0.0,
    }


def _undisturbed(equations: list[Equation]) -> list[Equation]:
    each: dict[str, list[float]] = {}
    for name, time, probes, _ in equations:
        each.setdefault(name, []).append(time / probes)
    limits = {name: DISTURBED * sorted(found)[len(found) // 4] for name, found in each.items()}
    return [one for one in equations if one[1] <= limits[one[0]] * one[2]]
