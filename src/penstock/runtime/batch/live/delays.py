"""How long after the end of its windows a query's results came: published, less when the end was reached."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from penstock.logical.query import Query, QuerySet
from penstock.runtime.batch.report import Late
from penstock.sources.live.contract import wall_time
from penstock.state.manifest import Manifest
from penstock.state.protocol import Clock
from penstock.state.windows import write_delays

Array = np.ndarray
MICROSECONDS = 1_000_000


def clocks_of(app: QuerySet, query: Query, manifest: Manifest) -> list[Clock]:
    """The clocks of the live streams that a query reads."""
    offsets = (manifest.offset.stream(stream.name) for stream in app.roots(query))
    return [one.clock for one in offsets if one.clock is not None]


def delays(app: QuerySet, manifest: Manifest, closed: Mapping[str, Array], now: int) -> Iterator[tuple[Query, Array]]:
    """By query with windows that closed (accounts as of `state.windows`): the delay of each, in microseconds."""
    for query in app.queries:
        records = closed.get(query.name)
        clocks = clocks_of(app, query, manifest)
        if records is not None and len(records) and clocks:  # a window has ended when it has in all streams
            ends = [max(wall_time(clock, end) for clock in clocks) for end in records["end"].tolist()]
            yield query, now - np.array(ends, np.int64)


def write(
    checkpoint: Path, app: QuerySet, manifest: Manifest, closed: Mapping[str, Array], now: int
) -> dict[str, Late]:
    """Keep the delays of the windows that a batch closed; what they come to, by query."""
    found = {}
    for query, late in delays(app, manifest, closed, now):
        windows, number = closed[query.name]["window"], manifest.results[query.name].windows
        write_delays(checkpoint, query.name, number, windows, late, query.promise)
        promise = None if query.promise is None else query.promise / MICROSECONDS
        overdue = 0 if query.promise is None else int((late > query.promise).sum())
        found[query.name] = Late(len(late), int(late.max()) / MICROSECONDS, promise, overdue)
    return found
