"""The plans of a join: each of its m streams is aggregated early or late (seed aggregation-join, Sec. 3).

A plan is named as in the paper: LAP aggregates after the join alone, EAP10 the first of two streams before it. The
last records of a stream, `[ROWS n]`, are stored one by one whatever the plan, so a join of m streams has a plan for
every choice among the others.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

from penstock.logical.query import Join, Query, QuerySet
from penstock.relations.sides import SideTables, is_counted
from penstock.sharing.joins.choice import JoinChoice

Early = tuple[bool, ...]  # for every stream of a join, in the order of FROM: whether it is aggregated early
LATE_PLAN, EARLY_PLAN = "LAP", "EAP"


def plan_name(early: Early) -> str:
    """
    >>> plan_name((True, False)), plan_name((False, False))
    ('EAP10', 'LAP')
    """
    return EARLY_PLAN + "".join("01"[one] for one in early) if any(early) else LATE_PLAN


def plans_of(join: Join) -> list[Early]:
    """All plans of a join, LAP first."""
    return list(product(*((False,) if is_counted(side) else (False, True) for side in join.sides)))


def all_early(join: Join) -> Early:
    """The plan that aggregates whatever can be aggregated."""
    return tuple(not is_counted(side) for side in join.sides)


def joins_of(app: QuerySet) -> list[tuple[Query, Join]]:
    return [(query, query.join) for query in app.queries if query.join is not None]


def side_tables(choices: Iterable[JoinChoice]) -> SideTables:
    """What these plans say of each side."""
    return SideTables(frozenset(name for one in choices for name in one.late))
