"""Explain a plan as data: the dict of `explain --json`, from which text (`sharing.explain_text`) and picture are made.

    SharedPlan ──► predict (`sharing.predicted`) ──┐
    counters of a run ──► Measured ────────────────┴──► explain_plan ──► --json, text, picture

All costs are nanoseconds a record of the stream, those of its task's end included. Where nothing was known of the
stream when the plan was made, predictions are None, and `why` says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.logical.query import WEIGHT, Attribute
from penstock.logical.render import render
from penstock.logical.window import ALL, ROWS, Panes, Window
from penstock.relations.closing import Finish, Reader
from penstock.relations.component import Tag
from penstock.relations.relation import IPV4_BITS, Relation, attribute_text, joined_parts
from penstock.sharing.explain_joins import MeasuredJoin, explain_join
from penstock.sharing.graph.configuration import STREAM
from penstock.sharing.model.kinds.registry import is_bounded
from penstock.sharing.model.unit_costs import Costs
from penstock.sharing.options import AUTO, EACH, NONE
from penstock.sharing.plan import Basis, SharedPlan
from penstock.sharing.planner import WORTH
from penstock.sharing.predicted import Predicted, gains, predict, without_sharing

UNITS = ((86_400_000_000, "d"), (3_600_000_000, "h"), (60_000_000, "min"), (1_000_000, "s"), (1_000, "ms"), (1, "us"))
Explained = dict[str, Any]
BEHIND = ("segment", "merge", "roll", "finish")  # parts of a record's way behind the leaves
WAY = ("tables", "leaves", *BEHIND)
# Exact aggregates of details, and what may take less.
APPROXIMATE = {
    "count(DISTINCT": "approx_count_distinct keeps at most 512 rows a group",
    "percentile(": "approx_percentile keeps two digits of a value",
    "median(": "approx_percentile keeps two digits of a value",
    "frequent(": "approx_frequent forgets rare values",
}


@dataclass(frozen=True)
class Measured:
    """Counters of a run of the plan, as `monitor.analyze` adds them up: figures of tables and leaves by name, unit
    costs fitted to them (None: too little was counted), joins by query, nanoseconds and rows of closing windows, a
    record, and how many times as long parts took as the same work was expected to."""

    rows: int
    tasks: int
    tables: Mapping[str, Explained]
    leaves: Mapping[str, Explained]
    fitted: Explained | None
    joins: Mapping[str, MeasuredJoin] = field(default_factory=dict)
    closed: Explained = field(default_factory=dict)
    factors: Mapping[str, float] = field(default_factory=dict)


def explain_plan(
    plan: SharedPlan, rows: int | None, slots: int, asked: str = AUTO, measured: Measured | None = None
) -> Explained:
    """The plan with its predicted work; `rows` of input, if the source knows them; `asked` is the plan asked for."""
    basis, predicted = plan.basis, predict(plan.basis) if plan.basis is not None else {}
    relations = [*_tables(plan, predicted, rows), *_leaves(plan, predicted, rows)]
    if measured is not None:
        for relation in relations:
            bounded = is_bounded(relation["table"])
            found, name = (measured.tables, "name") if bounded else (measured.leaves, "relation")
            relation["measured"] = found.get(relation[name])
    explained = {
        "stream": plan.stream.name,
        "source": plan.stream.source,
        "input_rows": rows,
        "task_rows": None if basis is None else basis.rows,
        "configuration": plan.configuration,
        "chosen": NONE if basis is None else basis.chosen,
        "why": _why(plan, asked),
        "considered": {} if basis is None else dict(basis.considered),
        "phantoms": _phantoms(plan, predicted),
        "stored": _stored(plan),
        "memory": _memory(relations),
        "slots": slots,
        "relations": relations,
        "cost": _cost(plan, predicted, relations),
        "behind": _behind(plan),
        "unit_costs": None if basis is None else _unit_costs(basis.costs),
        "joins": [explain_join(one, None if measured is None else measured.joins.get(one.query)) for one in plan.joins],
    }
    if measured is not None:
        explained["measured"] = _measured(measured, relations)
    explained["parts"] = _parts(explained, measured)
    return explained


def explained_dict(explained: list[Explained]) -> Explained:
    """Of one plan, its own; of several, a list."""
    return explained[0] if len(explained) == 1 else {"streams": explained}


def _tables(plan: SharedPlan, predicted: Mapping[str, Predicted], rows: int | None) -> list[Explained]:
    """The direct-mapped tables, parents first."""
    phantoms, names = _phantom_names(plan), [table.name for table in plan.tables]
    found = []
    for number, (table, below) in enumerate(zip(plan.tables, plan.below, strict=True)):
        known = predicted.get(table.name)
        children = [other.name for other in plan.tables if other.parent == number]
        found.append({
            "name": table.name,
            "kind": "phantom" if table.name in phantoms else "front",
            "table": table.kind,
            "parent": None if table.parent == STREAM else table.parent,
            "fed_by": "stream" if table.parent == STREAM else names[table.parent],
            "feeds": [*children, *(plan.stored.labels[name] for name in table.leaves)],
            "queries": _queries(plan, below),
            "key": _key(below),
            "states": _states(below),
            "buckets": table.buckets,
            "bytes": None if known is None else table.buckets * known.priced.entry,
            "replacement": table.policy,
            "predicted": _table_figures(known, rows),
        })  # fmt: skip
    return found


def _table_figures(known: Predicted | None, rows: int | None) -> Explained:
    if known is None:
        return {"probes": None, "evictions": None, "cost": None}
    return {
        "probes": _total(known.probes, rows),
        "evictions": _total(known.evictions, rows),
        "probes_per_tuple": known.probes,
        "evictions_per_tuple": known.evictions,
        "collision_rate": known.rate,
        "flushed_per_task": known.flushed,
        "groups": known.priced.groups,
        "flow_length": known.priced.length,
        "bytes": known.priced.buckets * known.priced.entry,
        "cost": known.table_cost,
    }


def _leaves(plan: SharedPlan, predicted: Mapping[str, Predicted], rows: int | None) -> list[Explained]:
    """The leaves, one for each stored relation."""
    feeders = {name: number for number, table in enumerate(plan.tables) for name in table.leaves}
    nodes = _nodes(predicted)
    found = []
    for relation in plan.relations:
        parent, readers = feeders.get(relation.name), plan.stored.reading(relation.name)
        found.append({
            "name": plan.stored.labels[relation.name],
            "relation": relation.name,
            "query": plan.stored.labels[relation.name],
            "queries": [reader.query for reader in readers],
            "kind": _kind(relation),
            "table": relation.table,
            "parent": parent,
            "fed_by": "stream" if parent is None else plan.tables[parent].name,
            "group_by": [attribute_text(attribute) for attribute in _keys(relation, readers) if attribute != WEIGHT],
            "panes": panes_text(relation.panes),
            "window": ", ".join(dict.fromkeys(window_text(reader.window) for reader in readers)),
            "closings": [_closing(reader) for reader in readers if reader.closing.relation == relation.name],
            "details": [
                {"query": reader.query, "asked": list(asked), "approximate": _approximate(asked)}
                for reader in readers
                if (asked := reader.asks(relation.name))
            ],
            "where": render(relation.choice.where) if relation.choice.where is not None else None,
            "states": _states((relation,)),
            "buckets": 0,
            "key_components": [part.component.text for part in relation.parts],
            "predicted": _leaf_figures(nodes.get(relation.name), rows, parent is not None),
        })  # fmt: skip
    return found


def _kind(relation: Relation) -> str:
    """Whose it is: that of queries, or of the engine itself."""
    if relation.booked or relation.of:
        return "query"
    return "picks" if WEIGHT in relation.attributes else "bounds"


def _keys(relation: Relation, readers: tuple[Reader, ...]) -> tuple[Attribute, ...]:
    """In the order of the first query that is finished from a relation."""
    finished = (reader.keys for reader in readers if isinstance(reader.closing, Finish))
    return next(finished, relation.attributes)


def _closing(reader: Reader) -> Explained:
    """How a query closes: its own groups, or finer ones rolled up."""
    return {
        "query": reader.query,
        "window": window_text(reader.window),
        "how": reader.closing.how,
        "group_by": [attribute_text(attribute) for attribute in reader.keys if attribute != WEIGHT],
        "joined": reader.joined,
        "grows": bool(reader.joined) and reader.window.landmark,
    }


def _queries(plan: SharedPlan, below: tuple[Relation, ...]) -> list[str]:
    """The queries that close from these relations, or need their rows."""
    found = (reader.query for relation in below for reader in plan.stored.reading(relation.name))
    return list(dict.fromkeys(found))


def _approximate(asked: tuple[str, ...]) -> list[str]:
    """What could be asked in place of exact aggregates of details."""
    return list(dict.fromkeys(name for text in asked for exact, name in APPROXIMATE.items() if text.startswith(exact)))


def _leaf_figures(node: tuple[Predicted, int] | None, rows: int | None, fed: bool) -> Explained:
    """Relations that have the same groups are one node: each has its part of the cost."""
    if node is None:
        each = None if fed else 1.0  # at most, where the stream feeds it
        return {"probes": _total(each, rows), "evictions": 0, "probes_per_tuple": each, "cost": None}
    known, number = node
    return {
        "probes": _total(known.inserts, rows),
        "evictions": 0,
        "probes_per_tuple": known.inserts,
        "groups": known.priced.groups,
        "bytes": known.leaf_bytes,
        "cost": known.leaf_cost / number,
        "cost_if_fed_by_stream": known.alone / number,
    }


def _nodes(predicted: Mapping[str, Predicted]) -> dict[str, tuple[Predicted, int]]:
    """For each relation its node, and how many relations that has."""
    found = {}
    for known in predicted.values():
        leaves = known.priced.leaves
        found.update(dict.fromkeys(leaves, (known, len(leaves))))
    return found


def _cost(plan: SharedPlan, predicted: Mapping[str, Predicted], relations: list[Explained]) -> Explained:
    """Of the whole plan; `end_of_task` is the peak load of the papers, in nanoseconds a task."""
    probes, nodes = [relation["predicted"].get("probes_per_tuple") for relation in relations], _nodes(predicted)
    shares = [nodes[r.name][0].priced.share if r.name in nodes else 1.0 for r in plan.relations]
    found = {
        "nanoseconds": None, "without_sharing": None, "ratio": None, "end_of_task": None, "of_no_relation": None,
        "probes_per_tuple": None if None in probes else sum(probes),
        "probes_without_sharing": sum(shares) + sum(len(union.relations) - 1 for union in plan.unions),
    }  # fmt: skip
    if plan.basis is not None:
        cost, alone = plan.basis.cost, without_sharing(plan.basis)
        found |= {
            "nanoseconds": cost, "without_sharing": alone, "ratio": cost / alone if alone else 1.0,
            "end_of_task": plan.basis.flushing,
            "of_no_relation": cost - sum(known.cost for known in predicted.values()),
        }  # fmt: skip
    return found


def _behind(plan: SharedPlan) -> Explained:
    """What the groups of a task cost behind their leaves, a record; the same whatever tables are before those."""
    found = plan.behind
    if found is None:
        return dict.fromkeys(("partials_per_tuple", "fresh", *BEHIND))
    return {"partials_per_tuple": found.partials, "fresh": found.fresh} | {
        part: getattr(found, part) for part in BEHIND
    }


def _parts(explained: Explained, measured: Measured | None) -> Explained:
    """The whole way of a record in nanoseconds, part by part: predicted, counted, and `fitted`: what was predicted, at
    what the same work took in this run. What sinks take is counted alone, and no part of the total."""
    bounded = [one for one in explained["relations"] if is_bounded(one["table"])]
    tables = sum(float(one["predicted"]["cost"] or 0.0) for one in bounded)
    cost = explained["cost"]["nanoseconds"]
    made = explained["behind"]["fresh"] or 0.0
    known = {"tables": tables, "leaves": cost - tables + made} if cost is not None else {}
    known |= {part: explained["behind"][part] for part in BEHIND if explained["behind"][part] is not None}
    found: dict[str, Explained] = {part: {"predicted": known.get(part)} for part in WAY}
    if measured is not None:
        counted = _counted(explained, measured)
        for part, one in found.items():
            times = measured.factors.get(part, 1.0)
            one |= {"fitted": None if part not in known else times * known[part], "counted": counted.get(part)}
    found["total"] = {name: _sum([one[name] for one in found.values()]) for name in found["leaves"]}
    if measured is not None:
        found["sink"] = {"counted": measured.closed.get("sink")}
    return found


def _sum(each: list[float | None]) -> float | None:
    known = [one for one in each if one is not None]
    return sum(known) if len(known) == len(each) else None


def _counted(explained: Explained, measured: Measured) -> Explained:
    tables = sum(one["cost"] for one in measured.tables.values())
    leaves = sum(one["cost"] for one in measured.leaves.values())
    found = {"merge": 0.0, "roll": 0.0, "finish": 0.0, "segment": explained["measured"]["behind"]["segment"]}
    return found | measured.closed | {"tables": tables, "leaves": leaves}


def _phantoms(plan: SharedPlan, predicted: Mapping[str, Predicted]) -> list[Explained]:
    """What each serves, and what that costs with it and without."""
    if plan.basis is None:
        return []
    names, costs = _phantom_names(plan), gains(plan.basis, predicted)
    return [
        {
            "name": table.name,
            "queries": _queries(plan, below),
            "cost": costs[table.name][0],
            "cost_if_fed_by_stream": costs[table.name][1],
        }
        for table, below in zip(plan.tables, plan.below, strict=True)
        if table.name in names
    ]


def _stored(plan: SharedPlan) -> Explained:
    """Which relations are stored as one, and what the ways of storing were priced at: a record's whole way to its
    groups."""
    wholes: dict[str, list[str]] = {name: [] for name in plan.stored.of} if plan.unions else {}
    for reader in plan.readers if plan.unions else ():
        wholes[reader.closing.relation].append(reader.query)
    unions = [
        {"name": plan.stored.labels[name], "queries": queries, "table": plan.stored.of[name].table}
        for name, queries in wholes.items()
        if len(queries) > 1
    ]
    return {"unions": unions, "ways": dict(plan.ways)}


def _phantom_names(plan: SharedPlan) -> set[str]:
    return set() if plan.basis is None else {one.name for one in plan.basis.relations if not one.leaves}


def _why(plan: SharedPlan, asked: str) -> str:
    """Why this plan, in one sentence."""
    basis = plan.basis
    if basis is None:
        if asked == NONE:
            return "asked for: every relation has its own table, fed by the stream; nothing is predicted"
        return "nothing is known of this stream before it runs: every relation has its own table, fed by the stream"
    alone = without_sharing(basis)
    saved = f"{basis.cost:.1f} ns a tuple, {_percent(1 - basis.cost / alone)} less than {alone:.1f} without sharing"
    if basis.cost > alone:
        saved = f"{basis.cost:.1f} ns a tuple, {_percent(basis.cost / alone - 1)} more than {alone:.1f} without sharing"
    if plan.unions and len(plan.ways) > 1:
        return _why_united(plan)
    if basis.chosen == NONE:
        return _why_unshared(plan, basis)
    if asked != AUTO:
        return f"asked for: {saved}"
    return f"the cheapest of {len(basis.considered)}: {saved}"


def _why_united(plan: SharedPlan) -> str:
    ways = dict(plan.ways)
    each, best = ways[EACH], min(ways.values())
    number = sum(len(union.relations) for union in plan.unions)
    return (
        f"{number} relations stored as {len(plan.unions)}: {best:.1f} ns a tuple from record to groups, "
        f"{_percent(1 - best / each)} less than {each:.1f} each by itself"
    )


def _why_unshared(plan: SharedPlan, basis: Basis) -> str:
    others = {name: cost for name, cost in basis.considered if name != NONE}
    if not others:
        one = sum(relation.booked for relation in plan.relations) == 1
        same = "queries close from one relation" if one else "relations have the same groups"
        return f"there is no phantom to choose: all {same}"
    best = min(others, key=lambda name: others[name])
    if others[best] >= basis.cost:
        return f"no phantom pays: the cheapest plan that has any, {best}, costs {others[best]:.1f} ns a tuple"
    gain = _percent(1 - others[best] / basis.cost)
    return f"{best} would save {gain} only: a shared plan has to promise {_percent(1 - WORTH)}"


def _percent(part: float) -> str:
    return f"{100 * part:.0f} %"


def _unit_costs(costs: Costs) -> Explained:
    """c1 and c2 by bytes of the table; all in nanoseconds."""
    return {
        "probe": [list(point) for point in costs.probe],
        "recent": [list(point) for point in costs.recent],
        "insert": [list(point) for point in costs.insert],
        "lone": [list(point) for point in costs.lone],
        "fold": costs.fold,
        "word": costs.word,
        "passing": costs.passing,
        "segment": {"row": costs.segment.row, "column": costs.segment.column},
        "merge": {"row": costs.merge.row, "column": costs.merge.column},
        "overlapping": {"row": costs.overlapping.row, "column": costs.overlapping.column},
        "rolled": {"row": costs.rolled.row, "column": costs.rolled.column},
        "grouped": costs.grouped,
        "merging": costs.merging,
        "read": costs.read,
        "coding": costs.coding,
        "appended": costs.appended,
        "fresh": costs.fresh,
        "finish": costs.finish,
        "shown": costs.shown,
        "ordered": costs.ordered,
        "close": costs.close,
        "spelled": costs.spelled,
        "touched": costs.touched,
        "block": costs.block,
    }


def _memory(relations: list[Explained]) -> float | None:
    """Bytes of all tables; None where they are not known yet."""
    sizes = [relation["bytes"] for relation in relations if is_bounded(relation["table"])]
    return None if None in sizes else sum(sizes)


def _measured(measured: Measured, relations: list[Explained]) -> Explained:
    found = [relation["measured"] for relation in relations if relation["measured"] is not None]
    return {
        "rows": measured.rows,
        "tasks": measured.tasks,
        "task_rows": measured.rows / measured.tasks if measured.tasks else None,
        "cost": sum(one["cost"] for one in found),
        "probes_per_tuple": sum(one["probes_per_tuple"] for one in found),
        "fitted": measured.fitted,
        "behind": {
            "partials_per_tuple": sum(one.get("partials_per_tuple", 0.0) for one in found),
            "segment": sum(one.get("segment", 0.0) for one in found),
            **measured.closed,
        },
    }


def _total(each: float | None, rows: int | None) -> int | None:
    return None if each is None or rows is None else round(each * rows)


def _key(below: tuple[Relation, ...]) -> Explained:
    """What a table's key tells apart: columns, panes, and which queries a record is for."""
    parts = joined_parts(part for relation in below for part in relation.parts)
    columns = [part for part in parts if part.component.tag is Tag.VALUE]
    choices = [None if relation.choice.where is None else render(relation.choice.where) for relation in below]
    return {
        "columns": [
            part.component.of.removeprefix("=") + (f"/{IPV4_BITS - part.drop}" if part.drop else "") for part in columns
        ],
        "panes": list(dict.fromkeys(panes_text(relation.panes) for relation in below)),
        "choices": [choice for choice in dict.fromkeys(choices) if choice is not None],
    }


def _states(below: tuple[Relation, ...]) -> list[str]:
    states = dict.fromkeys(state for relation in below for state in relation.states)
    return ["count(*)", *(f"{state.kind}({state.column.removeprefix('=')})" for state in states)]


def panes_text(panes: Panes) -> str:
    """
    >>> panes_text(Window(25_000_000, 10_000_000).panes), panes_text(Window(100, 50, ROWS).panes)
    ('10 s cut at 5 s', '50 rows')
    """
    if panes.axis == ALL:
        return "all records"
    if panes.axis == ROWS:
        return f"{panes.slide} rows" + (f" cut at {panes.cut}" if panes.cut else "")
    return duration_text(panes.slide) + (f" cut at {duration_text(panes.cut)}" if panes.cut else "")


def window_text(window: Window) -> str:
    """
    >>> window_text(Window(60_000_000, 60_000_000)), window_text(Window(5, 2, ROWS)), window_text(Window(None, 1000))
    ('1 min', '5 rows every 2', 'all so far every 1 ms')
    """
    if window.whole:
        return "all records"
    if window.axis == ROWS:
        return f"{window.range} rows" + ("" if window.tumbling else f" every {window.slide}")
    if window.range is None:
        return f"all so far every {duration_text(window.slide)}"
    return duration_text(window.range) + ("" if window.tumbling else f" every {duration_text(window.slide)}")


def duration_text(microseconds: int) -> str:
    """
    >>> duration_text(300_000_000), duration_text(90_000_000), duration_text(1500)
    ('5 min', '90 s', '1500 us')
    """
    size, unit = next((size, unit) for size, unit in UNITS if microseconds % size == 0)
    return f"{microseconds // size} {unit}"
