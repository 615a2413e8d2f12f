"""Which windows of a live stream are to close, from which instant on, and by when their results must be there.

    window ends ──► once records, or the clock, have come to its end and the watermark's delay: `ready`
                ──► end + promise on the wall: `due`

Queries that promise different delays share one queue: of windows that end together the tightest promise counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from penstock.logical.query import KEPT, Query, QuerySet, Stream
from penstock.logical.window import TIME, Window
from penstock.sources.base import Position
from penstock.sources.live.contract import LiveSource, source_time, wall_time
from penstock.state.protocol import Clock
from penstock.triage.picks import MOST
from penstock.triage.plan import Due

NEAR, SPARSE = 16, 48  # windows in the queue that are looked at one by one, and some of those after them
MICROSECONDS = 1_000_000
FAR = 1 << 62  # no record has come so far
AIM = 0.95  # of the time from ready to due: the last batch of a window may take longer than any before it
REMEMBERED = 1 << 14  # places of times


@dataclass(frozen=True)
class Seen:
    """A live stream at this instant: its clock, where it has come to, and the first record that no batch has taken.
    `rows` are the places of times that were asked before: what has arrived does not change."""

    stream: Stream
    source: LiveSource
    clock: Clock
    now: int
    start: Position
    arrived: Position
    rate: float
    rows: dict[int, Position] = field(default_factory=dict)

    def row_at(self, time: int) -> Position:
        """The first record that had come at a time; of a time to come nothing is known but what has arrived."""
        if time > source_time(self.clock, self.now):
            return self.arrived
        if time not in self.rows:
            if len(self.rows) >= REMEMBERED:
                self.rows.clear()
            self.rows[time] = self.source.row_at(time)
        return self.rows[time]

    def seconds(self, time: int) -> float:
        """When a time of the source is reached, in wall seconds."""
        return wall_time(self.clock, time) / MICROSECONDS

    @property
    def delay(self) -> int:
        return self.stream.delay or 0


def dues_of(app: QuerySet, seen: Seen, watermark: int | None, until: float = 0.0) -> tuple[Due, ...]:
    """The windows that are open now, by the instant at which they end, and later ones that end before a wall second: a
    loose deadline must know what tight ones of other streams will need before it."""
    ends: dict[int, float] = {}
    spans: dict[int, int] = {}
    for query, window in _windows(app, seen.stream.name):
        promise = math.inf if query.promise is None else query.promise / MICROSECONDS
        for end in _ends(window, seen, watermark, until):
            ends[end] = min(promise, ends.get(end, math.inf))
            length = 0 if window.landmark else window.length
            spans[end] = min(length or FAR, spans.get(end, FAR))
    return tuple(_due(seen, end, ends[end], spans[end]) for end in sorted(ends))


def _windows(app: QuerySet, stream: str) -> Iterator[tuple[Query, Window]]:
    """Queries on a stream, through results too, with windows of time that tell when they close."""
    for query in app.queries:
        if stream in {root.name for root in app.roots(query)} and query.window.axis == TIME:
            yield query, query.window


def under_way(dues: Sequence[Due], now: float) -> float:
    """By when the windows must be there that are under way."""
    return max((due.due for due in dues if now < due.ready and due.due < math.inf), default=0.0)


def _ends(window: Window, seen: Seen, watermark: int | None, until: float) -> list[int]:
    """Ends of open windows up to the first that has not come yet; where there are many, not all of them."""
    begun = _begun(seen, watermark)
    first = window.first_open(begun)
    to = max(seen.now, int(until * MICROSECONDS))
    last = window.first_open(source_time(seen.clock, to) - seen.delay)
    if first is None or last is None:
        return []
    numbers = range(first, max(first, last) + 1)
    step = max(1, (len(numbers) - NEAR) // (SPARSE - NEAR))
    chosen = [*numbers[:NEAR], *numbers[NEAR::step], numbers[-1]]
    return [window.end(number) for number in dict.fromkeys(chosen)]


def _begun(seen: Seen, watermark: int | None) -> int:
    """Windows that end by then are closed, or had no records."""
    if watermark is not None:
        return watermark
    reached = seen.source.reached(Position(min(seen.start + 1, seen.source.rows())))
    return seen.clock.source if reached is None else reached


def _due(seen: Seen, end: int, promise: float, length: int) -> Due:
    """The windows that end together."""
    ready = seen.seconds(end + seen.delay)
    row = seen.row_at(end + seen.delay)
    stop = row + 1 if row < seen.arrived else FAR
    if stop == FAR and ready <= seen.now / MICROSECONDS:  # nothing came after it: the clock closes it
        stop = seen.arrived
    due = ready + AIM * (seen.seconds(end) + promise - ready) if promise < math.inf else math.inf
    return Due(max(stop, seen.start), ready, due, _most(seen, end, length))


def _most(seen: Seen, end: int, length: int) -> int:
    """The greatest k that leaves a window as many picks as it should be estimated from."""
    beyond = min(seen.row_at(end), seen.arrived)
    first = min(seen.row_at(end - length), beyond) if length < FAR else seen.start
    coming = max(0.0, seen.seconds(end) - seen.now / MICROSECONDS) * seen.rate
    records, keep = beyond - first + coming, seen.stream.keep or KEPT
    return max(0, min(MOST, int(math.log2(records / keep)))) if records >= keep else 0
