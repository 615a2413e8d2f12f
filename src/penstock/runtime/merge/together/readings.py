"""Which queries are read together: those whose windows are the same and that read the same relations.

That follows from the version of the app and from the storages that there are segments of. To find it out compares
relations in full, so it is done when one of the two changes. What moves with the stream comes later: where landmark
windows begin, and which windows close.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from penstock.logical.query import Query
from penstock.logical.window import Window
from penstock.relations.relation import picks_relations
from penstock.relations.storage import Storage, part_sources
from penstock.runtime.merge.items import Reading, Wanting, wanting_of
from penstock.state.versions import Version


@dataclass(frozen=True)
class Together:
    """Queries that are read together. Those of the same `place` have windows that are the same, on the same stream."""

    place: int
    reading: Reading
    wanting: tuple[Wanting, ...]


@dataclass
class Readings:
    """What was found out about a version and some storages, by level."""

    _version: Version | None = None
    _storages: tuple[int, ...] = ()
    _levels: dict[tuple[str, ...], tuple[Together, ...]] = field(default_factory=dict)

    def of(self, version: Version, storages: list[Storage], level: tuple[Query, ...]) -> tuple[Together, ...]:
        """The queries of a level but for joins."""
        numbers = tuple(storage.number for storage in storages)
        if self._version is not version or self._storages != numbers:
            self._version, self._storages, self._levels = version, numbers, {}
        names = tuple(query.name for query in level)
        if names not in self._levels:
            self._levels[names] = tuple(_together(version, storages, level))
        return self._levels[names]


def _together(version: Version, storages: list[Storage], level: tuple[Query, ...]) -> Iterator[Together]:
    found: dict[Reading, list[Wanting]] = {}
    for query in level:
        if query.join is None:
            wanted = version.wanted[query.name]
            wanting = wanting_of(query, wanted, part_sources(storages, query.name, len(wanted.relations)))
            found.setdefault(_reading(version, wanting), []).append(wanting)
    places: dict[tuple[Window, str], int] = {}
    for reading, same in found.items():
        yield Together(places.setdefault((reading.window, reading.stream), len(places)), reading, tuple(same))


def _reading(version: Version, wanting: Wanting) -> Reading:
    query = wanting.query
    stream = version.app.stream(query.stream)
    picks = next((one for one, _ in picks_relations(query, version.since.get(query.name, 0))), None)
    return Reading(query.window, wanting.sources, stream.name, stream.time, None, picks)
