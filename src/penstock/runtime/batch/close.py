"""The driver's side of the HFTA: which windows a batch closes, level by level, and the jobs that close them.

segments ──► spans (watermark) ──► closing windows ──► items ──► merge job ──► staged results, segments of readers
                                       ▲                                                    │
                                       └───────── next level: queries on these results ◄────┘
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from penstock.logical.query import Query, QuerySet
from penstock.logical.window import ROWS, TIME
from penstock.relations.relation import bounds_of
from penstock.runtime.batch.context import Context, Streams, inputs_state, roots_state
from penstock.runtime.batch.merge_job import Closed, ShareWork, merge_share
from penstock.runtime.epoch import Epoch, first_window, landmark_start
from penstock.runtime.merge.items import FOREVER, Closing, closing, items, share_out, span
from penstock.runtime.merge.tally import gathered, least_kept
from penstock.sinks.base import Sink
from penstock.state.protocol import MergeReport, SegmentRef, StreamState, TaskReport
from penstock.state.segments.opened import Segments
from penstock.state.segments.read import Block
from penstock.state.versions import Version

Array = np.ndarray


@dataclass
class Hfta:
    """One batch: `streams` and `segments` are the state after its tasks, and grow by what queries read of others."""

    context: Context
    sinks: Mapping[str, Sink]
    streams: dict[str, StreamState]
    segments: list[SegmentRef]
    opened: Segments
    reports: list[MergeReport] = field(default_factory=list)
    windows: dict[str, int] = field(default_factory=dict)
    accounts: dict[str, Array] = field(default_factory=dict)  # of these windows, records of `state.windows`

    def close(self) -> None:
        """Merge and stage all windows that the batch closes."""
        for level in self.app.levels:
            closings = [self._closing(query) for query in level if self._emitted(query)]
            self._run([one for one in closings if len(one.windows)])

    @property
    def app(self) -> QuerySet:
        return self.context.version.app

    @property
    def feeds(self) -> list[TaskReport]:
        """What was aggregated for queries that read results."""
        return [feed for report in self.reports for feed in report.feeds]

    def _emitted(self, query: Query) -> bool:
        """A query without a sink was dropped since the batch was decided; its windows are discarded."""
        return query.hidden or query.name in self.sinks

    def _closing(self, query: Query) -> Closing:
        first, beyond = self.span(query)
        return closing(query, self._blocks(query, beyond), first, beyond, self._last(query))

    def span(self, query: Query) -> tuple[int, int]:
        """The windows of a query that this batch closes."""
        old = roots_state(self.app, query, self.context.before.streams)
        new = roots_state(self.app, query, self.streams)
        if old.ended:
            return 0, 0
        least = first_window(query.window, self.context.offset.origins.get(query.name))
        if query.window.axis == ROWS:
            return span(query.window, old.row, new.row, new.ended, least)
        return span(query.window, old.watermark, new.watermark, new.ended, least)

    def _last(self, query: Query) -> int | None:
        """At its end a stream's last landmark window is the one with its greatest time."""
        roots = roots_state(self.app, query, self.streams)
        if not query.window.landmark or not roots.ended:
            return None
        greatest = inputs_state(query, self.streams).greatest
        # Over results the watermark may have gone further than they have.
        closed = query.window.first_open(roots.watermark)
        last = -FOREVER if greatest is None else greatest // query.window.slide
        return last if closed is None else max(last, closed - 1)

    def landmark(self, query: Query) -> int | None:
        if not query.window.landmark:
            return None
        first = inputs_state(query, self.streams).first
        return landmark_start(query.window, first, self.context.offset.origins.get(query.name))

    def _blocks(self, query: Query, beyond: int) -> Iterator[Block]:
        limit = FOREVER if query.window.landmark or beyond >= FOREVER else query.window.beyond_pane(beyond - 1)
        return self.opened.blocks(query.name, limit)

    def _run(self, closings: list[Closing]) -> None:
        context = self.context
        tasks = context.executor.parallelism
        shares = share_out(items(closings, context.settings, tasks), tasks)
        for one in closings:
            self.windows[one.query.name] = len(one.windows)
        if not shares:
            return
        closed = {one.query.name: self._closed(one) for one in closings}
        named = set(closed) | {bounds.query for c in closed.values() if (bounds := bounds_of(c.query, c.time))}
        affected = tuple(segment for segment in self.segments if named & segment.panes.keys())
        work = ShareWork(closed, str(context.folder), affected, context.settings, context.batch)
        reports = context.executor.run_shares(len(shares), partial(merge_share, shares, work), MergeReport)
        self.reports += reports
        for one in closings:
            if not one.query.hidden:
                name = one.query.name
                told = (counts for report in reports for counts in report.windows if counts.query == name)
                self.accounts[name] = gathered(one.windows, told)
        for feed in (feed for report in reports for feed in report.feeds):
            self._take(feed)

    def _closed(self, one: Closing) -> Closed:
        query = one.query
        return Closed(
            query,
            self.sinks.get(query.name),
            self.app.stream(query.stream).time,
            self.landmark(query),
            self.context.version.plans.get(query.name),
            self._epoch(query),
            least_kept(one.windows),
        )

    def _epoch(self, query: Query) -> Epoch:
        """For the readers of a query. Results of windows of time come after the watermark; those of windows of
        rows may be late."""
        before, offset = self.context.before, self.context.offset
        watermark = roots_state(self.app, query, before.streams).watermark
        first = before.stream(query.name).first
        return Epoch(offset.batch, watermark, first=first, origins=offset.origins, ordered=False)

    def _take(self, feed: TaskReport) -> None:
        """What a task aggregated for the readers of a query."""
        self.segments.append(feed.segment)
        self.opened.add([feed.segment])
        known = self.streams.get(feed.stream, StreamState())
        self.streams[feed.stream] = replace(
            known,
            greatest=max(_known(known.greatest, feed.greatest), default=None),
            # Windows close in order, so the least time of the first results is the first of all.
            first=min(_known(known.first, feed.least), default=None),
        )


def _known(*times: int | None) -> list[int]:
    return [time for time in times if time is not None]


def open_panes(version: Version, streams: Streams) -> dict[str, int]:
    """Per relation the first pane that some window which is still open holds; ended streams have none."""
    floors: dict[str, int] = {}
    for query in version.app.queries:
        roots = roots_state(version.app, query, streams)
        floor = FOREVER if roots.ended else -FOREVER
        window = query.window
        place = roots.row if window.axis == ROWS else roots.watermark
        if not roots.ended and not window.landmark and place is not None:
            first = window.first_open(place)
            assert first is not None
            floor = window.first_pane(first)
        floors[query.name] = floor
        bounds = bounds_of(query, TIME)
        if bounds is not None:
            floors[bounds.query] = min(floor, floors.get(bounds.query, floor))
    return floors


def live(segments: Iterable[SegmentRef], floors: Mapping[str, int]) -> list[SegmentRef]:
    """Segments that hold a pane of an open window."""
    return [s for s in segments if any(last >= floors.get(name, FOREVER) for name, (_, last) in s.panes.items())]
