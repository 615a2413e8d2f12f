"""The account: where every input tuple went. It closes: input = exact + triaged + late + filtered + malformed.

Tasks count (`runtime.lfta`), manifests carry the totals, `run --json` and `penstock state` show them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

PARTS = ("exact", "triaged", "late", "filtered", "malformed")

Entry = dict[str, int]


def empty() -> Entry:
    return dict.fromkeys(("input", *PARTS), 0)


def entry(rows: int, exact: int, late: int, filtered: int) -> Entry:
    """What is neither exact nor late nor filtered was malformed (nothing is triaged yet)."""
    return empty() | {
        "input": rows,
        "exact": exact,
        "late": late,
        "filtered": filtered,
        "malformed": rows - exact - late - filtered,
    }


def add(one: Entry, other: Entry) -> Entry:
    return {part: one[part] + other[part] for part in one}


def closes(entry: Entry) -> bool:
    return entry["input"] == sum(entry[part] for part in PARTS)


def total(accounts: Iterable[dict[str, Any]], before: dict[str, Any]) -> dict[str, Any]:
    """The account after some tasks: {stream: entry, queries: {name: entry}, malformed: {reason: count}}."""
    stream, queries, reasons = before["stream"], dict(before["queries"]), dict(before["malformed"])
    for account in accounts:
        stream = add(stream, account["stream"])
        for name, one in account["queries"].items():
            queries[name] = add(queries.get(name, empty()), one)
        for reason, count in account["malformed"].items():
            reasons[reason] = reasons.get(reason, 0) + count
    return {"stream": stream, "queries": queries, "malformed": reasons}


def opening(queries: Iterable[str]) -> dict[str, Any]:
    return {"stream": empty(), "queries": {name: empty() for name in queries}, "malformed": {}}
