"""Explain a plan: as text for people, as a dict for `--json`.

Predictions follow the papers' cost (seed smap, Eq. 7): without phantoms every tuple is one probe of every
relation it reaches, and nothing is evicted unless a direct-mapped table stands before the leaf.
"""

from __future__ import annotations

from typing import Any

from penstock.logical.expressions import Computed
from penstock.logical.query import Attribute
from penstock.logical.render import render
from penstock.logical.window import ROWS, Window
from penstock.sharing.plan import Relation, SharedPlan

UNITS = ((86_400_000_000, "d"), (3_600_000_000, "h"), (60_000_000, "min"), (1_000_000, "s"), (1_000, "ms"), (1, "us"))


def explain_plan(plan: SharedPlan, rows: int | None, slots: int) -> dict[str, Any]:
    """The plan with its predicted work; `rows` of input, if the source knows them."""
    fronts = {query: table.buckets for table in plan.tables for query in table.queries}
    relations = [_explain_relation(relation, rows, fronts.get(relation.query, 0)) for relation in plan.relations]
    probes = sum(relation["predicted"]["probes_per_tuple"] for relation in relations)
    return {
        "stream": plan.stream.name,
        "source": plan.stream.source,
        "input_rows": rows,
        "configuration": plan.configuration,
        "phantoms": [],
        "slots": slots,
        "relations": relations,
        "cost": {
            "probes_per_tuple": probes,
            "without_sharing": float(len(relations)),
            "ratio": probes / len(relations),
        },
    }


def _explain_relation(relation: Relation, rows: int | None, buckets: int) -> dict[str, Any]:
    return {
        "query": relation.query,
        "group_by": [attribute_text(attribute) for attribute in relation.attributes],
        "window": window_text(relation.window),
        "where": render(relation.where) if relation.where is not None else None,
        "states": ["count(*)", *(f"{state.kind}({state.column.removeprefix('=')})" for state in relation.states)],
        "fed_by": "stream",
        "table": "direct + exact" if buckets else "exact",
        "buckets": buckets,
        "key_components": [part.component for part in relation.parts],
        "predicted": {"probes_per_tuple": 1.0, "probes": rows, "evictions": None if buckets else 0},
    }


def attribute_text(attribute: Attribute) -> str:
    return render(attribute.expression if isinstance(attribute, Computed) else attribute)


def window_text(window: Window) -> str:
    """
    >>> window_text(Window(60_000_000, 60_000_000)), window_text(Window(5, 2, ROWS)), window_text(Window(None, 1000))
    ('1 min', '5 rows every 2', 'all so far every 1 ms')
    """
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


def plan_text(explained: dict[str, Any]) -> str:
    """The explanation as text."""
    rows = explained["input_rows"]
    lines = [
        f"stream         {explained['stream']} from {explained['source']}"
        + (f", {rows:,} rows" if rows is not None else ""),
        f"configuration  {explained['configuration']}   (no phantoms: every query has its own table)",
        (
            f"cost           {explained['cost']['probes_per_tuple']:.0f} probes a tuple at most, "
            f"{explained['cost']['without_sharing']:.0f} without sharing"
        ),
        "",
    ]
    width = max(len(relation["query"]) for relation in explained["relations"])
    for relation in explained["relations"]:
        keys = ", ".join(relation["group_by"]) or "all tuples together"
        lines.append(f"{relation['query']:<{width}}  per {relation['window']}: {keys}")
        lines.append(f"{'':<{width}}    keeps {', '.join(relation['states'])} in {_table_text(relation)}")
        if relation["where"]:
            lines.append(f"{'':<{width}}    where {relation['where']}")
    return "\n".join(lines)


def _table_text(relation: dict[str, Any]) -> str:
    if relation["buckets"]:
        return f"a direct-mapped table of {relation['buckets']:,} buckets, then an exact one"
    return "an exact table"
