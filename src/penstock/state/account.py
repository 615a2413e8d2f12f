"""The account: where every input record went. It closes: input = exact + triaged + late + filtered + malformed.

Tasks count (`runtime.task`), manifests carry the totals, `run --json` and `penstock state` show them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.logical.query import side_name

PLACES = 3  # of malformed records, remembered per reason


@dataclass(frozen=True)
class Entry:
    """Records of a stream, or as one query judged them; those that nobody looked at are triaged."""

    input: int = 0
    exact: int = 0
    triaged: int = 0
    late: int = 0
    filtered: int = 0
    malformed: int = 0

    def __add__(self, other: Entry) -> Entry:
        return Entry(
            self.input + other.input,
            self.exact + other.exact,
            self.triaged + other.triaged,
            self.late + other.late,
            self.filtered + other.filtered,
            self.malformed + other.malformed,
        )

    @property
    def closes(self) -> bool:
        return self.input == self.exact + self.triaged + self.late + self.filtered + self.malformed


def entry(rows: int, exact: int, late: int, filtered: int) -> Entry:
    """What is neither exact nor late nor filtered was malformed."""
    return Entry(rows, exact, 0, late, filtered, rows - exact - late - filtered)


@dataclass(frozen=True)
class TaskAccount:
    """What one task counted: its stream's records, as each query judged them, and the malformed ones by reason."""

    stream: Entry
    queries: Mapping[str, Entry] = field(default_factory=dict)
    malformed: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Account:
    """All records so far. `malformed` and `places` are by stream and reason: how many, and where the first stand."""

    streams: Mapping[str, Entry] = field(default_factory=dict)
    queries: Mapping[str, Entry] = field(default_factory=dict)
    malformed: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    places: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)

    def book(self, stream: str, task: TaskAccount, places: Mapping[str, tuple[str, ...]]) -> Account:
        """The account after a task on a stream; `places` says where its first malformed records stand."""
        queries = dict(self.queries)
        for name, one in task.queries.items():
            queries[name] = queries.get(name, Entry()) + one
        reasons, known = dict(self.malformed.get(stream, {})), dict(self.places.get(stream, {}))
        for reason, count in task.malformed.items():
            reasons[reason] = reasons.get(reason, 0) + count
            known[reason] = (known.get(reason, ()) + places.get(reason, ()))[:PLACES]
        return Account(
            {**self.streams, stream: self.of(stream) + task.stream},
            queries,
            {**self.malformed, stream: reasons},
            {**self.places, stream: known},
        )

    def of(self, stream: str) -> Entry:
        return self.streams.get(stream, Entry())


def by_side(query: str, accounting: Mapping[str, Any]) -> list[tuple[str, Mapping[str, int]]]:
    """What a query, or each side of a join, is called, with its account."""
    if "input" in accounting:
        return [(query, accounting)]
    return [(side_name(query, alias), entry) for alias, entry in accounting.items()]
