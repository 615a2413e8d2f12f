"""The driver's side of the HFTA: which windows a batch closes, level by level, and the jobs that close them.

segments ──► spans (watermark) ──► closing windows ──► items ──► merge job ──► staged results, segments of readers
                                       ▲                                                    │
                                       └───────── next level: queries on these results ◄────┘
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from pyspark.sql import SparkSession

from penstock.logical.query import Query, QuerySet
from penstock.logical.window import ROWS, TIME
from penstock.relations.relation import bounds_of
from penstock.runtime.batch.job import Job
from penstock.runtime.batch.offsets import Offset, origins_of
from penstock.runtime.batch.spark_job import Closed, MergeWork, merge_share, run_job
from penstock.runtime.epoch import Epoch, first_window, landmark_start
from penstock.runtime.merge.items import FOREVER, Closing, closing, items, share_out, span
from penstock.runtime.merge.tally import gathered, least_kept, of_query
from penstock.sinks.base import Sink
from penstock.state.garbage import SEGMENTS
from penstock.state.manifest import Manifest, stream_state
from penstock.state.segments.opened import Segments
from penstock.state.segments.read import Block
from penstock.state.versions import Version, levels

Streams = dict[str, dict[str, Any]]
Array = np.ndarray


@dataclass
class Hfta:
    """One batch: `streams` and `segments` are the state after its tasks, and grow by what queries read of others."""

    spark: SparkSession
    job: Job
    version: Version
    sinks: dict[str, Sink]
    before: Manifest
    offset: Offset
    streams: Streams
    segments: list[dict[str, Any]]
    opened: Segments
    reports: list[dict[str, Any]] = field(default_factory=list)
    feeds: list[dict[str, Any]] = field(default_factory=list)
    windows: dict[str, int] = field(default_factory=dict)
    accounts: dict[str, Array] = field(default_factory=dict)  # of these windows, records of `state.windows`

    def close(self) -> None:
        """Merge and stage all windows that the batch closes."""
        for level in levels(self.version.app):
            closings = [self._closing(query) for query in level if self._emitted(query)]
            self._run([one for one in closings if len(one.windows)])

    @property
    def app(self) -> QuerySet:
        return self.version.app

    @property
    def folder(self) -> Path:
        return Path(self.job.checkpoint) / SEGMENTS

    def _emitted(self, query: Query) -> bool:
        """A query without a sink was dropped since the batch was decided; its windows are discarded."""
        return query.hidden or query.name in self.sinks

    def _closing(self, query: Query) -> Closing:
        first, beyond = self.span(query)
        return closing(query, self._blocks(query, beyond), first, beyond, self._last(query))

    def span(self, query: Query) -> tuple[int, int]:
        """The windows of a query that this batch closes."""
        root = self.app.root(query).name
        old, new = stream_state(self.before, root), self.streams[root]
        if old["ended"]:
            return 0, 0
        place = "row" if query.window.axis == ROWS else "watermark"
        least = first_window(query.window, origins_of(self.offset).get(query.name))
        return span(query.window, old[place], new[place], new["ended"], least)

    def _last(self, query: Query) -> int | None:
        """At its end a stream's last landmark window is the one with its greatest time."""
        if not query.window.landmark or not self.streams[self.app.root(query).name]["ended"]:
            return None
        greatest = self.streams.get(query.stream, {}).get("greatest")
        # Over results the watermark may have gone further than they have.
        closed = query.window.first_open(self.streams[self.app.root(query).name]["watermark"])
        last = -FOREVER if greatest is None else greatest // query.window.slide
        return last if closed is None else max(last, closed - 1)

    def landmark(self, query: Query) -> int | None:
        if not query.window.landmark:
            return None
        first = self.streams.get(query.stream, {}).get("first")
        return landmark_start(query.window, first, origins_of(self.offset).get(query.name))

    def _blocks(self, query: Query, beyond: int) -> Iterator[Block]:
        limit = FOREVER if query.window.landmark or beyond >= FOREVER else query.window.beyond_pane(beyond - 1)
        return self.opened.blocks(query.name, limit)

    def _run(self, closings: list[Closing]) -> None:
        tasks = max(1, self.job.parallelism)
        shares = share_out(items(closings, self.job.settings, tasks), tasks)
        for one in closings:
            self.windows[one.query.name] = len(one.windows)
        if not shares:
            return
        closed = {one.query.name: self._closed(one) for one in closings}
        named = set(closed) | {bounds.query for c in closed.values() if (bounds := bounds_of(c.query, c.time))}
        affected = [s for s in self.segments if named & s["panes"].keys()]
        work = MergeWork(closed, str(self.folder), affected, self.job.settings, self.offset["n"] - 1)
        reports = run_job(self.spark, len(shares), partial(merge_share, shares, work))
        self.reports += reports
        for one in closings:
            if not one.query.hidden:
                self.accounts[one.query.name] = gathered(one.windows, of_query(one.query.name, reports))
        for feed in (feed for report in reports for feed in report["feeds"]):
            self._take(feed)

    def _closed(self, one: Closing) -> Closed:
        query = one.query
        return Closed(
            query,
            self.sinks.get(query.name),
            self.app.stream(query.stream).time,
            self.landmark(query),
            self.version.plans.get(query.name),
            self._epoch(query),
            least_kept(one.windows),
        )

    def _epoch(self, query: Query) -> Epoch:
        """For the readers of a query. Results of windows of time come after the watermark; those of windows of
        rows may be late."""
        root = stream_state(self.before, self.app.root(query).name)
        first = stream_state(self.before, query.name)["first"]
        origins = origins_of(self.offset)
        return Epoch(self.offset["n"] - 1, root["watermark"], first=first, origins=origins, ordered=False)

    def _take(self, feed: dict[str, Any]) -> None:
        """What a task aggregated for the readers of a query."""
        self.feeds.append(feed)
        self.segments.append(feed["segment"])
        self.opened.add([feed["segment"]])
        known = self.streams.get(feed["stream"]) or stream_state(None, feed["stream"])
        self.streams[feed["stream"]] = known | {
            "greatest": _most(max, known["greatest"], feed["greatest"]),
            # Windows close in order, so the least time of the first results is the first of all.
            "first": _most(min, known["first"], feed["least"]),
        }


def _most(choose: Any, one: int | None, other: int | None) -> int | None:
    return choose([value for value in (one, other) if value is not None], default=None)  # type: ignore[no-any-return]


def open_panes(version: Version, streams: Streams) -> dict[str, int]:
    """Per relation the first pane that some window which is still open holds; ended streams have none."""
    floors: dict[str, int] = {}
    for query in version.app.queries:
        root = streams[version.app.root(query).name]
        floor = FOREVER if root["ended"] else -FOREVER
        window = query.window
        place = root["row"] if window.axis == ROWS else root["watermark"]
        if not root["ended"] and not window.landmark and place is not None:
            first = window.first_open(place)
            assert first is not None
            floor = window.first_pane(first)
        floors[query.name] = floor
        bounds = bounds_of(query, TIME)
        if bounds is not None:
            floors[bounds.query] = min(floor, floors.get(bounds.query, floor))
    return floors


def live(segments: list[dict[str, Any]], floors: dict[str, int]) -> list[dict[str, Any]]:
    """Segments that hold a pane of an open window."""
    return [s for s in segments if any(panes[1] >= floors.get(name, FOREVER) for name, panes in s["panes"].items())]
