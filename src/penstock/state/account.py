"""The account: where every input tuple went. It closes: input = exact + triaged + late + filtered + malformed.

Tasks count (`runtime.task.task`), manifests carry the totals, `run --json` and `penstock state` show them.
"""

from __future__ import annotations

from typing import Any

PLACES = 3  # of malformed records, remembered per reason
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


def opening() -> dict[str, Any]:
    """{streams: {name: entry}, queries: {name: entry}, malformed: {stream: {reason: count}}, places: the same}"""
    return {"streams": {}, "queries": {}, "malformed": {}, "places": {}}


def book(before: dict[str, Any], stream: str, task: dict[str, Any], places: dict[str, list[str]]) -> dict[str, Any]:
    """The account after a task on a stream; `places` says where its first malformed records stand."""
    streams = before["streams"] | {stream: add(before["streams"].get(stream, empty()), task["stream"])}
    queries = dict(before["queries"])
    for name, one in task["queries"].items():
        queries[name] = add(queries.get(name, empty()), one)
    reasons = dict(before["malformed"].get(stream, {}))
    known = dict(before["places"].get(stream, {}))
    for reason, count in task["malformed"].items():
        reasons[reason] = reasons.get(reason, 0) + count
        known[reason] = (known.get(reason, []) + places.get(reason, []))[:PLACES]
    return {
        "streams": streams,
        "queries": queries,
        "malformed": before["malformed"] | {stream: reasons},
        "places": before["places"] | {stream: known},
    }
