"""Storages: what was stored by the versions of an app, and from which relation each query reads it.

Queries come and go, and the stored relations change with them, while windows are open that hold panes of before. What a
segment has is therefore read as the version that wrote it says. A *storage* is what versions that store the same have
in common; segments name the storages that they are of.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from penstock.logical.query import Join, Side, side_name
from penstock.relations.closing import part_name
from penstock.relations.relation import Relation
from penstock.relations.storing import Stored


@dataclass(frozen=True)
class Storage:
    """`reads` has the relation of every query, and of its details (`part_name`); `relations` are those of all
    streams."""

    number: int
    relations: tuple[Relation, ...]
    reads: Mapping[str, str]

    @cached_property
    def of(self) -> dict[str, Relation]:
        """Relations by name."""
        return {relation.name: relation for relation in self.relations}


@dataclass(frozen=True)
class StoredSource:
    """A relation that a query reads, in segments of these storages (None: of all)."""

    relation: Relation
    storages: frozenset[int] | None = None


def first_storage(plans: Iterable[Stored], number: int = 0) -> Storage:
    """What these plans store."""
    made = list(plans)
    reads = {
        part_name(reader.query, number): closing.relation
        for one in made
        for reader in one.readers
        for number, closing in enumerate((reader.closing, *reader.details))
    }
    return Storage(number, tuple(relation for one in made for relation in one.relations), reads)


def next_storages(
    last: Sequence[Storage], plans: Iterable[Stored], number: int, needed: Collection[int]
) -> tuple[Storage, ...]:
    """The storages of a new version: those before that are `needed`, and what its plans store, which comes last.

    A version that stores what the one before does has the same storage.
    """
    new, before = first_storage(plans, number), last[-1]
    if (set(new.relations), new.reads) == (set(before.relations), before.reads):
        return tuple(one for one in last if one.number in needed or one is before)
    return (*(one for one in last if one.number in needed or one is before), new)


def part_sources(storages: Sequence[Storage], query: str, parts: int) -> list[tuple[StoredSource, ...]]:
    """What a query reads for each of its parts: its groups, and its details."""
    return [sources(storages, part_name(query, number)) for number in range(parts)]


def side_table(storage: Storage, query: str, side: Side) -> str:
    """How a side of a join is stored: as groups, or record by record."""
    return storage.of[storage.reads[side_name(query, side.alias)]].table


def side_sources(storages: Sequence[Storage], query: str, join: Join) -> list[tuple[StoredSource, ...]]:
    """What a join reads for each of its sides."""
    return [sources(storages, side_name(query, side.alias)) for side in join.streams]


def sources(storages: Iterable[Storage], part: str) -> tuple[StoredSource, ...]:
    """The relations that a query reads for its groups, or for one of its details, in the order of storages."""
    found: dict[str, set[int]] = {}
    known: dict[str, Relation] = {}
    for storage in storages:
        if part in storage.reads:
            name = storage.reads[part]
            found.setdefault(name, set()).add(storage.number)
            known[name] = storage.of[name]
    return tuple(StoredSource(known[name], frozenset(numbers)) for name, numbers in found.items())


def mixable(one: Storage, other: Storage) -> bool:
    """Whether segments of both can be merged into one: no query would read a relation that it must not read there."""
    common = one.reads.keys() & other.reads.keys()
    # A query that only one of them knows was dropped since, or added: its windows begin after all that was stored.
    return all(
        one.reads[query] == other.reads[query]
        or (one.reads[query] not in other.of and other.reads[query] not in one.of)
        for query in common
    )
