"""What the plans of joins really did: the counters of a run's tasks and merge tasks, for `explain --analyze`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.logical.query import Join, Query, QuerySet, side_name
from penstock.runtime.planning.join_costs import calibrated_joins
from penstock.runtime.profile.calibrate import calibrated
from penstock.runtime.profile.joined import measured_join
from penstock.sharing.explain_joins import MeasuredJoin
from penstock.sharing.joins.choice import JoinChoice
from penstock.sharing.joins.choose import considered
from penstock.sharing.joins.plans import joins_of, plans_of, side_tables
from penstock.sharing.joins.statistics import JoinStatistics
from penstock.sharing.joins.stored import stored_anyway
from penstock.sharing.plan import SharedPlan, joins_in
from penstock.state.protocol import JoinCounts, TaskReport


def measure_joins(
    app: QuerySet, plans: Mapping[str, SharedPlan], tasks: Sequence[TaskReport], counts: Sequence[JoinCounts]
) -> dict[str, MeasuredJoin]:
    """By query, of all joins that were carried out at some instant."""
    choices = joins_in(plans)
    found = {}
    for query, join in joins_of(app):
        mine = [one for one in counts if one.query == query.name]
        instants = sum(one.instants for one in mine)
        if instants and query.name in choices:
            known = _statistics(app, query, join, choices, tasks, mine)
            costs = calibrated_joins(), calibrated()
            found[query.name] = MeasuredJoin(
                instants,
                _stored_nanoseconds(query, join, plans, tasks) / instants,
                sum(one.nanoseconds for one in mine) / instants,
                known,
                () if known is None else considered(plans_of(join), known, *costs),
            )
    return found


def _statistics(
    app: QuerySet,
    query: Query,
    join: Join,
    choices: Mapping[str, JoinChoice],
    tasks: Sequence[TaskReport],
    counts: Sequence[JoinCounts],
) -> JoinStatistics | None:
    """By what was counted last."""
    held = [one for one in counts if one.held is not None]
    if not held:
        return None
    others = side_tables(choice for name, choice in choices.items() if name != query.name)
    stored = stored_anyway(app, query, join, others)
    return measured_join(query, join, stored, held[-1], tasks, choices[query.name].early)


def _stored_nanoseconds(
    query: Query, join: Join, plans: Mapping[str, SharedPlan], tasks: Sequence[TaskReport]
) -> float:
    """What tasks took for the relations of all sides."""
    names = {
        (side.stream, reader.closing.relation)
        for side in join.sides
        for reader in plans[side.stream].readers
        if reader.query == side_name(query.name, side.alias)
    }
    work = (task.work[name] for task in tasks for stream, name in names if task.stream == stream and name in task.work)
    return float(sum(counts["nanoseconds"] for counts in work))
