"""Promises that a run cannot keep, by what its batches cost: the log says so once for each query.

    LIMIT DELAY TO  <  DELAY of the watermark / speed  +  2 batches  +  closing windows

What batches cost is known only while they run: these are medians over the last of them. The cost of a batch is what it
takes whatever is in it. It is what all of the driver's work takes but tasks and closing, and the constant part of the
tasks: where lines through two batches each, one with far more records than the other, begin.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from itertools import permutations
from logging import WARNING
from statistics import median

from penstock.lang.durations import format_duration
from penstock.logical.query import Query
from penstock.logs import tell
from penstock.runtime.batch.held import Held
from penstock.runtime.batch.report import BatchReport
from penstock.state.manifest import Manifest
from penstock.state.protocol import Timings

LAST, ENOUGH = 8, 4  # batches that are remembered; before that many nothing is said
APART = 2  # so many times the records of another batch tell what records cost
MICROSECONDS = 1_000_000


@dataclass
class TellPromises:
    """An observer of batches."""

    held: Held
    read: deque[Timings] = field(default_factory=lambda: deque(maxlen=LAST))  # batches that have read all records
    closed: deque[Timings] = field(default_factory=lambda: deque(maxlen=LAST))  # those that have closed windows
    told: set[str] = field(default_factory=set)
    cold: bool = True

    def __call__(self, report: BatchReport, manifest: Manifest) -> None:
        if manifest.timings is None:
            return
        self._take(manifest.timings)
        if not report.late or min(len(self.read), len(self.closed)) < ENOUGH:
            return
        fresh = {name for name, late in report.late.items() if late.promise is not None} - self.told
        if not fresh:
            return
        app = self.held.version.app
        batch, close = batch_cost(self.read), close_cost(self.closed)
        for query in app.queries:
            stream = app.roots(query)[0]  # the only one, where a delay is promised
            clock = report.offset.stream(stream.name).clock
            if query.name in fresh and clock is not None and stream.delay is not None:
                self._judge(query, stream.delay / MICROSECONDS / clock.speed, batch, close)

    def _take(self, timings: Timings) -> None:
        if self.cold:  # its workers loaded what they run
            self.cold = not timings.read
            return
        if timings.read and not timings.left:
            self.read.append(timings)
        if timings.instants and not timings.compacted:
            self.closed.append(timings)

    def _judge(self, query: Query, watermark: float, batch: float, close: float) -> None:
        least = watermark + 2 * batch + close
        promise = (query.promise or 0) / MICROSECONDS
        if promise >= least:
            return
        self.told.add(query.name)
        long = format_duration(query.promise or 0)
        text = (
            f"query '{query.name}' promises a delay of {long}, {least - promise:.2f} s less than its results take: "
            f"{watermark:.2f} s until the watermark passes, 2 batches of {batch:.2f} s, {close:.2f} s to close windows"
        )
        hint = "; promise a longer delay (LIMIT DELAY TO), run fewer queries, or give the run more cores"
        facts = {"query": query.name, "promise": promise, "least": round(least, 6)}
        parts = {"watermark": round(watermark, 6), "batch": round(batch, 6), "close": round(close, 6)}
        tell("promise", text + hint, WARNING, **facts, **parts)


def batch_cost(batches: deque[Timings]) -> float:
    """Seconds of a batch, whatever is in it. Where all batches are about as large, no part of their tasks."""
    starts = [
        (few.tasks * many.read - many.tasks * few.read) / (many.read - few.read)
        for few, many in permutations(batches, 2)
        if many.read >= APART * few.read
    ]
    constant = max(0.0, median(starts)) if starts else 0.0
    return constant + median(max(0.0, one.seconds - one.tasks - one.merge) for one in batches)


def close_cost(batches: deque[Timings]) -> float:
    """Seconds to close the windows that end at an instant."""
    return median(one.merge / one.instants for one in batches)
