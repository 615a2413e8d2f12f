"""What a run may change on a checkpoint: queries may be added and dropped; anything else is refused, with advice."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from penstock.errors import StateError
from penstock.logical.query import Query, QuerySet
from penstock.sharing.options import Planning
from penstock.sharing.plan import SharedPlan
from penstock.state import versions
from penstock.state.versions import Version

Plans = Mapping[str, SharedPlan]
ADVICE = "drop it and add the changed one under a new name, or use another checkpoint"


def adopt(
    checkpoint: Path, app: QuerySet, planning: Planning, planned: Callable[[], Plans], outputs: Mapping[str, str]
) -> Version:
    """The version that a run goes on with: the newest, if app and planning are the same, else a new one."""
    number = versions.newest(checkpoint)
    if number is None:
        first = Version(0, app, planned(), dict(outputs), planning=planning)
        versions.store(checkpoint, first)
        return first
    last = versions.load(checkpoint, number)
    if app == last.app and planning == last.planning:
        return last
    dropped = {q.name for q in last.app.queries} - {q.name for q in app.queries}
    new = Version(number + 1, app, planned(), {**last.outputs, **outputs}, last.retired | dropped, planning)
    versions.store(checkpoint, new)
    return new


def check_changes(checkpoint: Path, last: Version, app: QuerySet, outputs: Mapping[str, str]) -> None:
    for stream in app.streams:
        for old in last.app.streams:
            if old.name == stream.name and old != stream:
                raise StateError(
                    f"stream '{stream.name}' differs from the one that checkpoint {checkpoint} was made with: "
                    f"{_difference(old, stream)}",
                    "run the app with the stream as it was, or use another checkpoint",
                )
    for old in last.app.streams:
        if old.name not in {stream.name for stream in app.streams}:
            raise StateError(
                f"checkpoint {checkpoint} reads stream '{old.name}', but no query of this app does",
                "keep at least one of its queries, or use another checkpoint",
            )
    old_queries = {query.name: query for query in last.app.queries}
    for query in app.queries:
        _check_query(checkpoint, last, old_queries.get(query.name), query, outputs)


def _check_query(checkpoint: Path, last: Version, old: Query | None, query: Query, outputs: Mapping[str, str]) -> None:
    if old is None:
        if query.name.casefold() in {name.casefold() for name in last.retired}:
            raise StateError(
                f"checkpoint {checkpoint} had a query '{query.name}' that was dropped", "add it under a new name"
            )
        return
    if old != query:
        raise StateError(
            f"query '{query.name}' differs from the one that checkpoint {checkpoint} was made with: "
            f"{_difference(old, query)}",
            ADVICE,
        )
    place = last.outputs.get(query.name)
    if query.name in outputs and place != outputs[query.name]:
        raise StateError(
            f"query '{query.name}' of checkpoint {checkpoint} writes to {place}, not {outputs[query.name]}",
            "give the same --output as before, or use another checkpoint",
        )


def _difference(old: object, new: object) -> str:
    """The first part that differs, in the words of SQL."""
    words = {
        "fields": "its columns", "source": "its source", "options": "its options", "time": "its time column",
        "delay": "its watermark delay", "ahead": "its MAX AHEAD", "window": "its window", "where": "its WHERE",
        "keys": "its GROUP BY", "select": "its select list", "having": "its HAVING", "stream": "what it reads",
        "sink": "its sink", "order": "its ORDER BY", "limit": "its LIMIT", "per_tuple": "its DISTINCT",
    }  # fmt: skip
    for name in old.__dataclass_fields__:  # type: ignore[attr-defined]
        if name != "aggregates" and getattr(old, name) != getattr(new, name):  # those follow from the others
            return f"{words.get(name, name)} changed"
    return "it changed"
