"""Counters of work: what each relation did in the tasks of a batch, and added up over all batches.

Names of tables begin with `TABLE`; leaves have the names of their relations. A plan that was replaced leaves the work
of its tables and relations under `EARLIER`: counters do not grow with the number of plans.
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.sharing.plan import SharedPlan
from penstock.state.protocol import Counts, TaskReport, Work

TABLE = "@"
EARLIER = "@"


def added(before: Work, plans: Iterable[SharedPlan], tasks: Iterable[TaskReport]) -> Work:
    """All work so far, of tasks that ran these plans."""
    made = list(plans)
    known = {TABLE + table.name for plan in made for table in plan.tables}
    known |= {relation.name for plan in made for relation in plan.relations}
    work: dict[str, Counts] = {}
    for name, counts in before.items():
        kept = name if name in known else EARLIER
        work[kept] = _sum(work.get(kept, {}), counts)
    for task in tasks:
        for name, counts in task.work.items():
            work[name] = _sum(work.get(name, {}), counts)
    return work


def totals(work: Work) -> dict[str, int]:
    """As the papers count: every probe or insert of a record or group is a hash operation; entries leave a table by
    collision or when an epoch ends."""
    probes = sum(counts.get("probes", 0) for counts in work.values())
    evicted = sum(counts.get("evictions", 0) + counts.get("flushed", 0) for counts in work.values())
    return {"probes": probes, "evictions": evicted, "hash_operations": probes}


def _sum(one: Counts, other: Counts) -> Counts:
    return {name: one.get(name, 0) + other.get(name, 0) for name in (*one, *(n for n in other if n not in one))}
