"""Apps whose queries may be stored as one: windows of a few lengths that are made of each other, few WHEREs."""

from __future__ import annotations

import random
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from penstock.logical.query import Query, QuerySet
from penstock.logical.window import TIME, Window

MOST = 60  # windows of the shortest kind
RANGES = ((1, 1), (1, 1), (2, 2), (6, 6), (3, 1), (4, 2), (6, 2), (12, 6))  # and slides, in units


def windowed_alike(app: QuerySet, data: pa.Table, rng: random.Random) -> QuerySet:
    """The same app with other windows in place of those of time."""
    streams = {stream.name: stream for stream in app.streams}
    times = {name: data.column(stream.time) for name, stream in streams.items() if stream.time in data.column_names}
    units = {name: _unit(column, rng) for name, column in times.items()}
    chosen = rng.sample(RANGES, rng.randint(1, 4))

    def changed(query: Query) -> Query:
        window = query.window
        if query.stream not in units or query.join is not None or window.axis != TIME or window.landmark:
            return query
        length, slide = (units[query.stream] * size for size in rng.choice(chosen))
        return replace(query, window=Window(length, slide), where=query.where if rng.random() < 0.3 else None)

    return replace(app, queries=tuple(changed(query) for query in app.queries))


def _unit(times: pa.ChunkedArray, rng: random.Random) -> int:
    numbers = times.cast(pa.int64())
    span = (pc.max(numbers).as_py() or 0) - (pc.min(numbers).as_py() or 0)
    return max(1, span // rng.choice((3, 12, MOST)) + rng.randrange(1, 7))
