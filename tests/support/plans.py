"""Plans at random: any tree of tables gives the same answers, so tests try trees that no planner would choose."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace

from penstock.sharing.graph.configuration import STREAM
from penstock.sharing.model.kinds.direct import EVICT, KEEP
from penstock.sharing.model.kinds.lru import RECENT
from penstock.sharing.plan import SharedPlan, Table

BUCKETS = (1, 2, 7, 64, 1000)
POLICIES = (EVICT, EVICT, KEEP, RECENT, RECENT)


def random_plans(plans: Mapping[str, SharedPlan], rng: random.Random) -> dict[str, SharedPlan]:
    """The same relations, each stream with tables of its own."""
    return {name: replace(plan, tables=random_tables(plan, rng)) for name, plan in plans.items()}


def random_tables(plan: SharedPlan, rng: random.Random) -> tuple[Table, ...]:
    """A forest over some of the plan's relations; the others are fed by the stream."""
    count = rng.choice((0, 1, 1, 2, 3, 5))
    parents = [rng.choice((STREAM, *range(number))) for number in range(count)]
    fed: list[list[str]] = [[] for _ in range(count)]
    for relation in plan.relations:
        if relation.attributes and not relation.booked:
            continue  # how many picks there are: tasks that have none leave it out
        place = rng.randrange(-1, count)
        if place >= 0:
            fed[place].append(relation.name)
    while parents and not all(fed[n] or n in parents for n in range(len(parents))):
        bare = max(n for n in range(len(parents)) if not fed[n] and n not in parents)
        del parents[bare], fed[bare]
        parents = [parent - (parent > bare) for parent in parents]
    return tuple(
        Table(f"t{number}", parent, tuple(queries), rng.choice(BUCKETS), rng.choice(POLICIES))
        for number, (parent, queries) in enumerate(zip(parents, fed, strict=True))
    )
