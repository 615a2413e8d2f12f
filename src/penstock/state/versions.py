"""Versions of an app: the queries and plans that batches run with, as files of the checkpoint.

    versions/00000000.json    the first app;  00000001.json    after queries were added or dropped;  …

The offset of a batch names its version, so a replay runs what was decided, whatever was changed since.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path

from penstock.errors import StateError
from penstock.logical.query import Query, QuerySet
from penstock.logical.window import ROWS, Window
from penstock.relations.relation import Relation, Wanted, bounds_relation, picks_relations, wanted_of
from penstock.relations.storage import Storage, first_storage, next_storages, part_sources, side_sources
from penstock.sharing.options import Planning
from penstock.sharing.plan import SharedPlan
from penstock.state import checked
from penstock.state.files import put_if_absent
from penstock.state.garbage import VERSIONS
from penstock.state.manifest import Manifest

FOLDER = VERSIONS


@dataclass(frozen=True)
class Version:
    """An app with a plan for every stream, and for every query whose results are read.

    `outputs` says where results go, `retired` are names that dropped queries had, `planning` what the plans were asked
    to be like. `since` has the version that brought each query. `storages` are what segments may hold that are still
    needed; the last is what this version stores.
    """

    number: int
    app: QuerySet
    plans: Mapping[str, SharedPlan]
    outputs: Mapping[str, str]
    retired: frozenset[str] = frozenset()
    planning: Planning = field(default_factory=Planning)
    since: Mapping[str, int] = field(default_factory=dict)
    storages: tuple[Storage, ...] = ()

    @property
    def storage(self) -> Storage:
        return self.storages[-1]

    @cached_property
    def wanted(self) -> dict[str, Wanted]:
        """What each query is finished from."""
        return {query.name: wanted_of(query, self.since.get(query.name, 0)) for query in self.app.queries}

    def reads(self, query: Query) -> tuple[tuple[Relation, Window], ...]:
        """All relations that a query reads in segments of any storage, each with the window that it reads there, which
        is made of the relation's panes."""
        return self._reads[query.name]

    @cached_property
    def _reads(self) -> dict[str, tuple[tuple[Relation, Window], ...]]:
        return {query.name: self._read_by(query) for query in self.app.queries}

    def _read_by(self, query: Query) -> tuple[tuple[Relation, Window], ...]:
        picks = tuple(picks_relations(query, self.since.get(query.name, 0)))
        if query.join is not None:
            sides = zip(query.join.streams, side_sources(self.storages, query.name, query.join), strict=True)
            found = ((source.relation, side.window) for side, of in sides for source in of)
            return tuple(dict.fromkeys((*found, *picks)))
        parts = part_sources(self.storages, query.name, len(self.wanted[query.name].relations))
        read = {source.relation.name: source.relation for part in parts for source in part}
        if query.window.axis == ROWS:
            bounds = bounds_relation(query.stream, query.window.panes, self.app.stream(query.stream).time)
            read[bounds.name] = bounds
        return (*((relation, query.window.over(relation.panes)) for relation in read.values()), *picks)


Plans = Mapping[str, SharedPlan]
Planned = Callable[[Mapping[str, int]], Plans]  # the plans of an app whose queries were brought by these versions


def first_version(app: QuerySet, planned: Planned, outputs: Mapping[str, str], planning: Planning) -> Version:
    """The app that a checkpoint begins with."""
    since = {query.name: 0 for query in app.queries}
    plans = planned(since)
    stored = first_storage(plan.stored for plan in plans.values())
    return Version(0, app, plans, dict(outputs), planning=planning, since=since, storages=(stored,))


def next_version(
    last: Version,
    app: QuerySet,
    planned: Planned,
    manifest: Manifest | None,
    outputs: Mapping[str, str] | None = None,
    planning: Planning | None = None,
) -> Version:
    """The app after queries were added or dropped; `manifest` is the newest."""
    number = last.number + 1
    since = {query.name: last.since.get(query.name, number) for query in app.queries}
    plans = planned(since)
    dropped = {query.name for query in last.app.queries} - {query.name for query in app.queries}
    return Version(
        number,
        app,
        plans,
        {**last.outputs, **(outputs or {})},
        last.retired | dropped,
        last.planning if planning is None else planning,
        since,
        next_storages(last.storages, [plan.stored for plan in plans.values()], number, _needed(last, manifest)),
    )


def restored(last: Version, plans: Plans, manifest: Manifest | None) -> Version:
    """The same app with plans that store something else; `manifest` is the newest."""
    number = last.number + 1
    stored = [plan.stored for plan in plans.values()]
    storages = next_storages(last.storages, stored, number, _needed(last, manifest))
    return replace(last, number=number, plans=plans, storages=storages)


def _needed(last: Version, manifest: Manifest | None) -> frozenset[int]:
    """Storages that segments may be of: those there are, and those that a batch under way writes."""
    numbers = [storage.number for storage in last.storages]
    if manifest is None:
        return frozenset(numbers)
    written = max((number for number in numbers if number <= manifest.offset.plan), default=0)
    found = {number for segment in manifest.segments for number in segment.storages}
    return frozenset(found | {number for number in numbers if number >= written})


def store(checkpoint: Path, version: Version) -> None:
    if not put_if_absent(path_of(checkpoint, version.number), checked.dump(version)):
        raise StateError(f"version {version.number} of the app in {checkpoint} was written by another run")


def load(checkpoint: Path, number: int) -> Version:
    """A version never changes once it is written; where a checkpoint was deleted, another may stand in its place."""
    path = path_of(checkpoint, number)
    try:
        found = path.stat()
    except FileNotFoundError:
        raise StateError(f"version {number} of the app is missing in {checkpoint}", "restore it from a copy") from None
    return _loaded(path, found.st_ino, found.st_mtime_ns)


@lru_cache(maxsize=8)
def _loaded(path: Path, file: int, written_at: int) -> Version:
    return checked.parse(path.read_bytes(), Version, path, "version")


def newest(checkpoint: Path) -> int | None:
    numbers = [int(path.stem) for path in (checkpoint / FOLDER).glob("[0-9]*.json")]
    return max(numbers, default=None)


def path_of(checkpoint: Path, number: int) -> Path:
    return checkpoint / FOLDER / f"{number:08d}.json"
