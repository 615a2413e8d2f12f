"""What tests of merging share: queries read from the relation that is stored for them."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from penstock.logical.query import Query
from penstock.relations.relation import Relation, relation_of
from penstock.relations.storage import StoredSource
from penstock.runtime.merge.all_items import items
from penstock.runtime.merge.due import due
from penstock.runtime.merge.item import merge_item
from penstock.runtime.merge.items import Cut, Due, Part, Reading, Wanting
from penstock.runtime.merge.windows import TaskSegments
from penstock.runtime.settings import TaskSettings
from penstock.sinks.schema import result_schema
from penstock.state.segments.read import Block


def reading_of(
    query: Query, sources: Iterable[Relation] = (), time: str = "ts", landmark: int | None = None
) -> Reading:
    """How a query's windows are read: from its own relation, or from these."""
    found = tuple(StoredSource(relation) for relation in sources) or (StoredSource(relation_of(query)),)
    return Reading(query.window, found, query.stream, time, landmark)


def wanting_of(reading: Reading, *queries: Query) -> tuple[Wanting, ...]:
    """Queries without details."""
    return tuple(Wanting(query, Part(relation_of(query), reading.sources)) for query in queries)


def due_of(
    reading: Reading, queries: tuple[Query, ...], blocks: Iterable[Block], first: int, beyond: int, last: int | None
) -> Due:
    return due(reading, wanting_of(reading, *queries), blocks, first, beyond, last)


def blocks_of(reading: Reading, segments: TaskSegments) -> list[Block]:
    return [block for source in reading.sources for block in segments.blocks(source.relation.name, source.storages)]


def closed_rows(one: Due, segments: TaskSegments, cuts: Iterable[tuple[tuple[str, ...], Cut]]) -> dict[str, pa.Table]:
    """The rows of each query in these cuts."""
    by_name = {wanting.query.name: wanting for wanting in one.wanting}
    found: dict[str, list[pa.Table]] = {name: [] for name in by_name}
    for names, cut in cuts:
        for merged in merge_item(one.reading, [by_name[name] for name in names], cut, segments):
            schema = result_schema(by_name[merged.query].query)
            found[merged.query].append(merged.table.cast(schema))
    return {
        name: pa.concat_tables(tables) if tables else result_schema(by_name[name].query).empty_table()
        for name, tables in found.items()
    }


def engine_cuts(one: Due, settings: TaskSettings, parallelism: int = 2) -> list[tuple[tuple[str, ...], Cut]]:
    """As the engine cuts a batch that has nothing else to close."""
    return [(item.names, item.cut) for item in items([one], settings, parallelism)]
