"""The next batch of live streams: what of them has arrived by now, and what the scheduler makes of it.

    clock ──► arrived, dues ──► triage.planned ──► ranges, tick ──► offset
                    measured costs ──┘

All that was decided stands in the offset: a replay reads the same records, and asks no clock. A run that begins, anew
or on a checkpoint, first has a batch without records (workers start, and that takes seconds); the clock starts with
the batch after it, where the stream was left: downtime does not count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite

import numpy as np

from penstock.clock import instant
from penstock.logical.query import QuerySet
from penstock.runtime.batch.job import END, Job
from penstock.runtime.batch.live.dues import MICROSECONDS, Seen, dues_of, under_way
from penstock.runtime.batch.live.given_up import kept_from, with_given_up
from penstock.runtime.batch.live.timings import Measured
from penstock.sources.base import Position, Source
from penstock.sources.live.contract import LiveSource, live, source_time
from penstock.state.manifest import Manifest
from penstock.state.protocol import Clock, Offset, StreamOffset, StreamState
from penstock.triage.costs import Estimate
from penstock.triage.lessons import lesson_seconds
from penstock.triage.picks import joined
from penstock.triage.plan import Due, Mode, Plan, Queue, fixed_step
from penstock.triage.scheduler import LEAST, planned

RECENTLY = 1.0  # seconds over which the rate of arrival is taken
BESIDE = 0.25  # seconds of a batch for streams that are not live
MOST_RANGES = 48  # of a stream in a batch: offsets stay small


@dataclass(frozen=True)
class Decided:
    """Where a batch ends in each live stream, the seconds it has left for what can wait, and what batches cost."""

    streams: Mapping[str, StreamOffset]
    slack: float | None = None
    costs: Estimate | None = None


class LiveDecider:
    """Decides about live streams, batch after batch; one for each run, in the process that decides."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self.sources: dict[str, LiveSource] = {n: source for n, source in job.sources.items() if live(source)}
        self._clocks: dict[str, Clock] = {}
        self._rows: dict[str, dict[int, Position]] = {}
        self._measured = Measured()
        self._begun = False
        self._fixed_k: int | None = None

    def decided(self, begin: Offset, before: Manifest | None, app: QuerySet) -> Decided | None:
        """The next batch; None: wait."""
        if not self._begun:  # workers start, and clocks after that
            self._begun = True
            self._measured.go_on(begin.costs)
            return self.none(begin)
        now = instant(self._job.origin)
        self._measured.take(before, now)
        seen = [self._seen(name, begin, before, app, now) for name in self.sources if not begin.stream(name).end]
        queues = [self._queue(app, one, before) for one in seen]
        if len(queues) > 1:
            until = max(under_way(queue.dues, now / MICROSECONDS) for queue in queues)
            queues = [self._queue(app, one, before, until) for one in seen]
        beginning = [queue for one, queue in zip(seen, queues, strict=True) if _beginning(app, one, before)]
        if not beginning:  # what is given up is no work
            kept = {q.stream: kept_from(one, q.promised) for one, q in zip(seen, queues, strict=True)}
            queues = [replace(queue, start=kept[queue.stream]) for queue in queues]
        plan = self._first(beginning) if beginning else self._planned(now, queues) or self._last(seen, queues)
        if plan is None:
            return None
        self._measured.decided(now)
        streams = {one.stream.name: self._cut(one, queue, plan) for one, queue in zip(seen, queues, strict=True)}
        slack = plan.slack if isfinite(plan.slack) else None
        return Decided({**self.none(begin).streams, **streams}, slack, self._measured.known)

    def none(self, begin: Offset) -> Decided:
        """A batch that takes nothing of live streams."""
        return Decided({name: _kept(begin.stream(name)) for name in self.sources}, costs=begin.costs)

    def rows_beside(self, app: QuerySet) -> int:
        """How many records of other streams a batch may read beside: where delays are promised, what takes no time to
        speak of."""
        if all(query.promise is None for query in app.queries):
            return self._job.batch_rows
        return max(1, min(self._measured.rows(self._job.batch_rows), int(BESIDE / self._measured.costs.sure.full)))

    def _clock(self, name: str, start: Position, before: Manifest | None, now: int) -> Clock:
        """The clock of a stream. In a run that goes on it begins where time had come to, with the lull that it was
        in."""
        if name not in self._clocks:
            source = self.sources[name]
            clock = source.anchored(now, start)
            come = None if before is None else before.stream(name).greatest
            self._clocks[name] = clock if come is None else replace(clock, source=min(clock.source, come))
        return self._clocks[name]

    def _seen(self, name: str, begin: Offset, before: Manifest | None, app: QuerySet, now: int) -> Seen:
        source, start = self.sources[name], Position(begin.stream(name).row)
        clock = self._clock(name, start, before, now)
        arrived = Position(max(start, source.arrived(clock, now)))
        since = max(clock.wall, now - int(RECENTLY * MICROSECONDS))
        seconds = max(0.1, (now - since) / MICROSECONDS)
        rate = max(0.0, (arrived - source.arrived(clock, since)) / seconds)
        rows = self._rows.setdefault(name, {})
        return Seen(app.stream(name), source, clock, now, start, arrived, rate, rows)

    def _queue(self, app: QuerySet, seen: Seen, before: Manifest | None, until: float = 0.0) -> Queue:
        known = StreamState() if before is None else before.stream(seen.stream.name)
        dues = dues_of(app, seen, known.watermark, until)
        promised = any(query.promise is not None for query in app.readers(seen.stream.name))
        return Queue(seen.stream.name, seen.start, seen.arrived, seen.rate, dues, promised)

    def _planned(self, now: int, queues: Sequence[Queue]) -> Plan | None:
        if self._measured.learning and any(queue.arrived > queue.start for queue in queues):
            return self._first(queues)
        costs, mode = self._measured.costs, self._job.overload
        fixed = 0
        if mode is Mode.SUMMARISE:
            fixed = self._fixed_k = self._fixed(queues) if self._fixed_k is None else self._fixed_k
        return planned(now / MICROSECONDS, queues, costs, mode, self._measured.rows(self._job.batch_rows), fixed)

    def _first(self, queues: Sequence[Queue]) -> Plan:
        """What there is, but not much of it: so it is soon known what batches cost, and nothing is left unread because
        nobody knew. Streams without promises wait for those that have some."""
        some, most = [queue for queue in queues if queue.promised] or queues, self._job.batch_rows
        learning = self._measured.learning
        most = self._measured.lesson_rows(most, lesson_seconds(some)) if learning else self._measured.rows(most)
        return _reading([(queue.stream, queue.start, queue.arrived) for queue in some], most)

    def _last(self, seen: Sequence[Seen], queues: Sequence[Queue]) -> Plan | None:
        """What is left of streams of which nothing will come any more, where that is too little to be ever worth a
        batch: more than that is the scheduler's."""
        known = self._measured.costs
        most = LEAST * known.batch / known.full
        over = [
            (queue.stream, Position(queue.start), one.arrived)
            for one, queue in zip(seen, queues, strict=True)
            if self._over(one, one.arrived) and one.arrived - queue.start <= most
        ]
        return _reading(over, self._measured.rows(self._job.batch_rows)) if over else None

    def _fixed(self, queues: Sequence[Queue]) -> int:
        """One k for all records: the least that keeps up with the streams' peaks."""
        peak = sum(_peak(self.sources[queue.stream]) for queue in queues if queue.promised)
        apart = [b.ready - a.ready for q in queues for a, b in zip(q.dues, q.dues[1:], strict=False)]
        return fixed_step(peak, max(min(apart, default=10.0), 1.0), self._measured.costs)

    def _cut(self, seen: Seen, queue: Queue, plan: Plan) -> StreamOffset:
        """The end of the batch in one stream. One that the plan says nothing of has no time to close windows."""
        planned = plan.ranges.get(queue.stream)
        kept = Position(seen.start if planned is None else queue.start)
        ranges = with_given_up(seen.start, kept, [(int(stop), k) for stop, k in planned or ()])[:MOST_RANGES]
        row = Position(ranges[-1][0] if ranges else seen.start)
        return StreamOffset(
            row,
            self._over(seen, row),
            ranges=joined(ranges) if any(k for _, k in ranges) else (),
            reached=seen.source.reached(row),
            tick=None if planned is None else _tick(seen, queue.dues, row),
            clock=seen.clock,
            arrived=seen.arrived,
            rate=round(seen.rate, 1),
        )

    def _over(self, seen: Seen, row: Position) -> bool:
        """Whether the stream has ended with this record."""
        return self._job.until == END and row >= seen.source.rows()


def _reading(some: Sequence[tuple[str, int, int]], most: int) -> Plan:
    """All of these records (stream, start, arrived), as many as a batch may have."""
    return Plan({name: ((min(arrived, start + most), 0),) for name, start, arrived in some}, 0.0, overdue=False)


def _kept(before: StreamOffset) -> StreamOffset:
    """Where a batch ends that takes nothing of a stream."""
    return StreamOffset(before.row, before.end, reached=before.reached, clock=before.clock)


def _beginning(app: QuerySet, seen: Seen, before: Manifest | None) -> bool:
    """Whether a landmark window begins at the first of the records that came: that is read, whatever the mode."""
    name = seen.stream.name
    known = StreamState() if before is None else before.stream(name)
    if known.first is not None or seen.arrived <= seen.start:
        return False
    return any(window.landmark for query in app.readers(name) for window in query.windows_on(name))


def _tick(seen: Seen, dues: Sequence[Due], row: Position) -> int | None:
    """The time that the clock has come to, where that closes a window and no record before it is left."""
    ready = any(due.ready <= seen.now / MICROSECONDS for due in dues)
    return source_time(seen.clock, seen.now) if row >= seen.arrived and ready else None


def _peak(source: Source) -> float:
    """The most records that arrive in a second of the wall, by the index."""
    assert live(source)
    blocks = source.index(Position(0), source.rows())
    at = blocks.greatest / MICROSECONDS / source.speed
    after = np.searchsorted(at, at + 1.0, "right") - 1
    rates = (blocks.stops[after] - blocks.stops) / np.maximum(at[after] - at, 1.0)
    return float(max(rates.max(initial=0.0), blocks.stops[-1] / max(1.0, at[-1] - at[0])))
