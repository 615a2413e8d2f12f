"""An explained plan for notebooks: text where text is asked for, tables where HTML is.

Works on the dicts of `sharing.explain.explain_plan` alone, as `sharing.explain_text` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.markup import html_pairs, html_table
from penstock.sharing.explain import Explained
from penstock.sharing.explain_joins import COLUMNS as PLAN_COLUMNS
from penstock.sharing.explain_joins import plan_rows, size
from penstock.sharing.explain_text import explained_text

COLUMNS = ("relation", "table", "fed by", "serves", "buckets", "memory", "groups", "probes", "evictions", "ns")
FIGURES = ("groups", "probes_per_tuple", "evictions_per_tuple", "cost")


class Explanation(str):
    """The plans of an app as text; a notebook shows them as tables. `plans` are the dicts behind both."""

    plans: Sequence[Explained]

    def __new__(cls, plans: Sequence[Explained]) -> Explanation:
        made = super().__new__(cls, explained_text(plans))
        made.plans = plans
        return made

    def __getnewargs__(self) -> tuple[Any, ...]:
        return (self.plans,)

    def _repr_html_(self) -> str:
        return "".join(map(plan_html, self.plans))


def plan_html(explained: Explained) -> str:
    """One plan: what was chosen and why, then its relations; figures are per record of the stream."""
    cost = explained["cost"]
    without = cost.get("without_sharing")
    head = html_pairs(
        f"plan of stream {explained['stream']}",
        [
            ("source", explained["source"]),
            ("configuration", explained["configuration"]),
            ("plan", f"{explained['chosen']}, {explained['why']}"),
            ("ns per record", cost["nanoseconds"]),
            ("without sharing", without),
            ("memory", size(explained["memory"]) if explained["memory"] else None),
        ],
    )
    rows = [_row(relation, "predicted") for relation in explained["relations"]]
    tables = [html_table("relations, as predicted", COLUMNS, rows)]
    if "measured" in explained:
        rows = [_row(relation, "measured") for relation in explained["relations"]]
        tables.append(html_table("relations, as measured", COLUMNS, rows))
    plans = [
        html_table(f"plans of join {one['query']}: {one['chosen']}, {one['why']}", PLAN_COLUMNS, plan_rows(one))
        for one in explained["joins"]
    ]
    return head + "".join([*tables, *plans])


def _row(relation: Explained, which: str) -> list[object]:
    figures = relation.get(which) or {}
    memory = figures.get("bytes")
    return [
        relation["name"],
        relation["table"],
        relation["fed_by"],
        ", ".join(relation["queries"]),
        relation["buckets"] or None,
        None if memory is None else size(memory),
        *(figures.get(name) for name in FIGURES),
    ]
