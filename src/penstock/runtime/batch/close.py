"""Which windows a batch closes, level by level, and the jobs that close them: the driver's side of `runtime.merge`.

segments ──► spans (watermark) ──► closing windows ──► items ──► merge job ──► staged results, segments of readers
                                       ▲                                                    │
                                       └───────── next level: queries on these results ◄────┘
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from penstock.logical.query import Query, QuerySet, Side, side_name
from penstock.logical.window import ROWS, Window
from penstock.relations.closing import part_name
from penstock.relations.joining import placing_key, side_relation
from penstock.relations.relation import named, picks_relations
from penstock.relations.storage import Storage, side_sources, side_table
from penstock.runtime.batch.context import Context, Streams, inputs_state, roots_state
from penstock.runtime.batch.merge_job import Closed, How, ShareWork, merge_share
from penstock.runtime.epoch import Epoch, first_window, landmark_start
from penstock.runtime.merge.all_items import AnyDue, items
from penstock.runtime.merge.due import span
from penstock.runtime.merge.items import FOREVER, MergeItem, Part, Reading, Wanting, share_out
from penstock.runtime.merge.join.floor import first_needed
from penstock.runtime.merge.join.reading import JoinDue, JoinReading, JoinWanting, SideReading, join_due
from penstock.runtime.merge.results.tally import gathered, least_kept
from penstock.runtime.merge.together.asked import Asked
from penstock.runtime.sent import Sent
from penstock.sinks.base import Sink
from penstock.state.protocol import (
    MergeReport,
    Origin,
    Results,
    SegmentRef,
    Staged,
    StreamState,
    TaskReport,
    WindowCounts,
)
from penstock.state.segments.opened import Segments
from penstock.state.segments.read import Block
from penstock.state.versions import Version

Array = np.ndarray
Span = tuple[int, int, int | None, int | None]  # windows [first, beyond), the last one of all, where landmarks begin
COUNTED = 2  # what joins hold is counted in the first batches and then in each of so many: it takes milliseconds


@dataclass
class Hfta:
    """The closing of one batch (the papers call it the HFTA). `streams` and `segments` are the state after its tasks,
    and grow by what queries read of others."""

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
            self._run([one for one in self._dues(level) if len(one.windows)])

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

    def _dues(self, level: tuple[Query, ...]) -> list[AnyDue]:
        """The windows that close of the queries of a level; queries with the same windows ask for them once."""
        storages = self._storages()
        joins = [self._join_due(query, storages) for query in level if query.join is not None and self._emitted(query)]
        asked: dict[tuple[int, Span], Asked] = {}
        spans: dict[tuple[int, Origin | None], Span] = {}
        plain = list[AnyDue]()
        for one in self.context.readings.of(self.context.version, storages, level):
            by_span: dict[Span, list[Wanting]] = {}
            for wanting in one.wanting:
                query = wanting.query
                if self._emitted(query):
                    same = one.place, self.context.offset.origins.get(query.name)
                    if same not in spans:
                        spans[same] = (*self.span(query), self._last(query), self.landmark(query))
                    by_span.setdefault(spans[same], []).append(wanting)
            for closing, some in by_span.items():
                first, beyond, last, landmark = closing
                reading = one.reading if landmark is None else replace(one.reading, landmark=landmark)
                windows = asked.setdefault((one.place, closing), Asked(first, beyond, last))
                plain.append(windows.due(reading, tuple(some), self._blocks(reading, beyond)))
        return [*plain, *joins]

    def _join_due(self, query: Query, storages: list[Storage]) -> JoinDue:
        join, version = query.join, self.context.version
        assert join is not None
        wanted, since = version.wanted[query.name], self._since(query)
        found = side_sources(storages, query.name, join)
        sides = tuple(
            SideReading(
                side,
                side_relation(query, side, wanted, since, side_table(version.storage, query.name, side)),
                sources,
                self._landmark_of(query, side),
                placing_key(side, join),
            )
            for side, sources in zip(join.streams, found, strict=True)
        )
        # Two joins, or groups and details of one, may want the same; parts of all of them may stand in one segment.
        groups, *details = (
            Part(named(replace(one, of=part_name(query.name, number))), ())
            for number, one in enumerate(wanted.relations)
        )
        wanting = JoinWanting(query, groups, tuple(details))
        number = self.context.offset.n
        counted = number <= COUNTED or number % COUNTED == 0
        picks = next((one for one, _ in picks_relations(query, since)), None)
        sides, inner = sides[: len(join.sides)], sides[len(join.sides) :]
        reading = JoinReading(query.window, sides, inner=inner, counted=counted, picks=picks)
        first, beyond = self.span(query)

        def blocks(side: SideReading) -> Iterator[Block]:
            return (
                block for source in side.sources for block in self.opened.blocks(source.relation.name, source.storages)
            )

        return join_due(reading, wanting, blocks, first, beyond, self._last(query))

    def _landmark_of(self, query: Query, side: Side) -> int | None:
        """Where the window until now of a side begins."""
        if not side.window.landmark:
            return None
        first = self.streams.get(side.stream, StreamState()).first
        return landmark_start(side.window, first, self.context.offset.origins.get(side_name(query.name, side.alias)))

    def _storages(self) -> list[Storage]:
        """Those that there are segments of."""
        numbers = {number for segment in self.segments for number in segment.storages}
        return [storage for storage in self.context.version.storages if storage.number in numbers]

    def _since(self, query: Query) -> int:
        """The version that brought a query."""
        return self.context.version.since.get(query.name, 0)

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
        windows = [query.window] if query.join is None else [side.window for side in query.join.sides]
        if any(not window.landmark and not window.counted for window in windows) or not roots.ended:
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

    def _blocks(self, reading: Reading, beyond: int) -> Iterator[Block]:
        for source in reading.sources:
            window = reading.over(source.relation.name)
            limit = FOREVER if window.landmark or beyond >= FOREVER else window.beyond_pane(beyond - 1)
            yield from self.opened.blocks(source.relation.name, source.storages, limit)

    def _run(self, dues: list[AnyDue]) -> None:
        """Merge and stage the windows of one level. Joins that are too large for a task take a second job."""
        context = self.context
        cut = items(dues, context.settings, context.executor.parallelism, context.before.results)
        closing = [(one, wanting) for one in dues for wanting in one.wanting]
        for one, wanting in closing:
            self.windows[wanting.query.name] = len(one.windows)
        if not cut:
            return
        closed = {name: query for one in dues for name, query in self._closed(one)}
        named = {name for one in dues for name in one.reading.relations}
        affected = tuple(segment for segment in self.segments if named & segment.panes.keys())
        reports = self._job(closed, affected, cut)
        if any(report.held for report in reports):
            reports += self._spread(closed, reports, 1 + max(item.cut.part for item in cut))
        self.reports += reports
        told: dict[str, list[WindowCounts]] = {}
        for counts in (counts for report in reports for counts in report.windows):
            told.setdefault(counts.query, []).append(counts)
        for one, wanting in closing:
            if not wanting.query.hidden:
                self._account(one, wanting, told.get(wanting.query.name, []))
        for feed in (feed for report in reports for feed in report.feeds):
            self._take(feed)

    def _job(
        self, closed: Mapping[str, Closed], segments: tuple[SegmentRef, ...], cut: list[MergeItem]
    ) -> list[MergeReport]:
        context = self.context
        shares = share_out(cut, context.executor.parallelism)
        work = ShareWork(closed, str(context.folder), segments, context.settings, context.batch)
        return context.executor.run_shares(len(shares), partial(merge_share, shares, work), MergeReport)

    def _account(self, one: AnyDue, wanting: Wanting | JoinWanting, told: list[WindowCounts]) -> None:
        """The account of a query's windows, from what tasks told of them."""
        name, windows = wanting.query.name, one.windows
        # Some may hold nothing that can be joined, or nothing that this query of several takes: tasks tell.
        if isinstance(one, JoinDue) or any(source.relation.sieved for source in one.reading.sources):
            every = np.array([w for counts in told for w in counts.windows], np.int64)
            windows = np.unique(every)
            # A window that is cut is told of by each of its items.
            self.windows[name] = sum(counts.closed for counts in told) - len(every) + len(windows)
        self.accounts[name] = gathered(windows, told)

    def _spread(self, closed: Mapping[str, Closed], reports: list[MergeReport], part: int) -> list[MergeReport]:
        """Merge the groups of joins whose parts several tasks have joined; `part` numbers their results."""
        from penstock.runtime.merge.join.spread import gathered_parts, spread_items

        parts = tuple(segment for report in reports for segment in report.joined)
        opened = Segments(self.context.folder, parts)
        again, cut = dict[str, Closed](), list[MergeItem]()
        for number, name in enumerate(dict.fromkeys(held.query for report in reports for held in report.held)):
            one = closed[name]
            assert isinstance(one.reading, JoinReading)
            assert isinstance(one.wanting, JoinWanting)
            reading = gathered_parts(one.reading, [held for r in reports for held in r.held if held.query == name])
            again[name] = replace(one, together=Sent({name: How(reading, one.wanting, one.sink)}))
            blocks = [block for each in one.wanting.parts for block in opened.blocks(each.wanted.name)]
            cut += spread_items(number, reading, one.wanting, blocks, self.context.settings, part)
        return self._job(again, parts, cut) if cut else []

    def _closed(self, one: AnyDue) -> Iterator[tuple[str, Closed]]:
        wanted: tuple[Wanting | JoinWanting, ...] = one.wanting
        names = [wanting.query.name for wanting in wanted]
        hows: Mapping[str, How] = {
            name: How(one.reading, wanting, self.sinks.get(name)) for name, wanting in zip(names, wanted, strict=True)
        }
        together, least = self.context.sent(names[0], hows), least_kept(one.windows)
        for wanting in wanted:
            query = wanting.query
            plan = self.context.version.plans.get(query.name)
            yield query.name, Closed(query.name, together, plan, self._epoch(query), least)

    def _epoch(self, query: Query) -> Epoch:
        """For the readers of a query. Results of windows of time come after the watermark; those of windows of
        rows may be late."""
        before, offset = self.context.before, self.context.offset
        watermark = roots_state(self.app, query, before.streams).watermark
        first = before.stream(query.name).first
        return Epoch(
            offset.batch, watermark, first=first, origins=offset.origins, ordered=False, joined=offset.joined,
            tables=offset.contents,
        )  # fmt: skip

    def _take(self, feed: TaskReport) -> None:
        """What a task aggregated for the readers of a query."""
        segment = self.context.stored(feed.segment)
        self.segments.append(segment)
        self.opened.add([segment])
        known = self.streams.get(feed.stream, StreamState())
        self.streams[feed.stream] = replace(
            known,
            greatest=max(_known(known.greatest, feed.greatest), default=None),
            # Windows close in order, so the least time of the first results is the first of all.
            first=min(_known(known.first, feed.least), default=None),
        )


def _known(*times: int | None) -> list[int]:
    return [time for time in times if time is not None]


def stage_empty(
    context: Context, streams: Streams, results: Mapping[str, Results], sinks: Mapping[str, Sink]
) -> list[Staged]:
    """Parts without rows, of queries that this batch ends without any: readers find their columns. `streams` and
    `results` are those after it. The manifest names them as any other: they appear once, whenever a run is killed. A
    run that goes on until it is stopped ends no query."""
    app, attempt = context.version.app, uuid.uuid4().hex[:8]
    ended = [
        query.name
        for query in app.queries
        if query.name in sinks
        and roots_state(app, query, streams).ended
        and not roots_state(app, query, context.before.streams).ended
        and not results[query.name].rows
    ]
    parts = {name: sinks[name].stage_empty(context.batch, attempt) for name in ended}
    return [Staged(name, *part) for name, part in parts.items() if part]


def open_panes(version: Version, streams: Streams, opened: Segments) -> dict[str, int]:
    """By relation the first pane that some window which is still open holds; ended streams have none."""
    floors: dict[str, int] = {}
    for query in version.app.queries:
        for relation, window in version.reads(query):
            floor = open_floor(version.app, query, window, streams)
            if window.counted and floor < FOREVER:
                next_open = window.first_open(roots_state(version.app, query, streams).watermark)
                beyond = -FOREVER if next_open is None else window.beyond_pane(next_open)
                floor = first_needed(list(opened.blocks(relation.name)), beyond, window.range or 0)
            floors[relation.name] = min(floor, floors.get(relation.name, floor))
    return floors


def open_floor(app: QuerySet, query: Query, window: Window, streams: Streams) -> int:
    """The first pane that an open window of a query holds; `window` is that of the side, of a join."""
    roots = roots_state(app, query, streams)
    place = roots.row if window.axis == ROWS else roots.watermark
    if roots.ended:
        return FOREVER
    first = None if window.landmark or window.counted else window.first_open(place)
    return -FOREVER if first is None else window.first_pane(first)


def live(segments: Iterable[SegmentRef], floors: Mapping[str, int]) -> list[SegmentRef]:
    """Segments that hold a pane of an open window."""
    return [s for s in segments if any(last >= floors.get(name, FOREVER) for name, (_, last) in s.panes.items())]
