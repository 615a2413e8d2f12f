"""What a worker process remembers of its last tasks: ranges of key components, and numbers of groups.

A task that starts with them lays out its keys once and has tables of the right size. They are a cache: wrong or missing
figures cost time, never a result. Nothing else outlives a task.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

from penstock.relations.component import Component
from penstock.relations.layout import Range
from penstock.relations.relation import Relation

PLANS, TASKS = 16, 8  # sets of relations, and tasks of each, that are remembered
Ranges = Mapping[Component, Range]

_groups: dict[str, int] = {}
_ranges: dict[tuple[Relation, ...], deque[Ranges]] = {}


def ranges_of(relations: tuple[Relation, ...]) -> Iterable[Ranges]:
    """Ranges that the last tasks with these relations met."""
    return _ranges.get(relations, ())


def note_ranges(relations: tuple[Relation, ...], met: Ranges) -> None:
    if len(_ranges) >= PLANS:
        _ranges.clear()
    _ranges.setdefault(relations, deque(maxlen=TASKS)).append(met)


def groups_of(relation: str) -> int:
    """Groups that a relation had in the last runs."""
    return _groups.get(relation, 0)


def note_groups(counts: Mapping[str, int]) -> None:
    """Groups of each relation in a run that was written."""
    for relation, groups in counts.items():
        # A task's last run is often short: forget slowly.
        _groups[relation] = max(groups, _groups.get(relation, 0) * 3 // 4)


def forget() -> None:
    """Begin like a fresh worker."""
    _groups.clear()
    _ranges.clear()
