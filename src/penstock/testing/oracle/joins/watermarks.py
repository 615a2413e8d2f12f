"""Time in a run of several streams: what each query's watermark is after each batch.

WM_q(N) is the least watermark of the query's streams that have not ended by batch N; where all have, everything
closes.  A stream without a WATERMARK clause, or without a record so far, holds back all instants until it ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.logical.query import Stream
from penstock.logical.types import TIMESTAMP
from penstock.testing.oracle.columns import Flags, Numbers, read_column
from penstock.testing.oracle.joins.spec import RunLog, StreamSpec
from penstock.testing.oracle.timeline import NOTHING_CLOSED, follow_time

EVERYTHING = (1 << 62) - 1  # later than all times that the oracle takes


@dataclass(frozen=True)
class Course:
    """Of a stream, or of results of a query. Per record: its time (0 where that is not good) and batch.

    `first` is the time at whose slide landmark windows start, None without any good time.
    """

    times: Numbers
    good: Flags
    arrived: Numbers
    first: int | None

    @property
    def greatest(self) -> int | None:
        return int(self.times[self.good].max()) if self.good.any() else None


@dataclass(frozen=True)
class StreamCourse(Course):
    """Also WM(N) by batch, None while unknown."""

    watermarks: tuple[int | None, ...] = ()


def stream_course(stream: StreamSpec, data: pa.Table, log: RunLog) -> StreamCourse:
    """Of a declared stream, by its logged batches."""
    named = Stream(stream.name, (), "", (), stream.time, stream.delay, stream.ahead)
    followed = follow_time(named, read_column(data.column(stream.time), TIMESTAMP), log.rows[stream.name])
    return StreamCourse(followed.times, followed.good, followed.arrived, followed.landmark, followed.watermarks)


def results_course(ends: Numbers, arrived: Numbers) -> Course:
    """Of results: each row comes at the end of its window, in the batch that evaluated it."""
    first = int(ends[arrived == arrived.min()].min()) if len(ends) else None
    return Course(ends, np.ones(len(ends), np.bool_), arrived, first)


def reached(streams: Mapping[str, StreamCourse], roots: Iterable[str], log: RunLog) -> Numbers:
    """WM_q(N) by batch, of a query on these streams."""
    found = np.full(log.batches, NOTHING_CLOSED, np.int64)
    for batch in range(log.batches):
        open_streams = [name for name in roots if log.ended[name] > batch]
        marks = [streams[name].watermarks[batch] for name in open_streams]
        known = [mark for mark in marks if mark is not None]
        if not open_streams:
            found[batch] = EVERYTHING
        elif len(known) == len(marks):
            found[batch] = min(known)
    return found


def closed_before(marks: Numbers, arrived: Numbers) -> Numbers:
    """Per record WM_q(N - 1)."""
    before = np.concatenate(([NOTHING_CLOSED], marks)).astype(np.int64)
    return np.asarray(before[arrived], np.int64)


def evaluated_in(marks: Numbers, instants: Numbers) -> Numbers:
    """The batch in which each instant is evaluated: the first N with t <= WM_q(N)."""
    return np.searchsorted(marks, instants, side="left").astype(np.int64)
