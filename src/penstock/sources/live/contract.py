"""Live streams: records that arrive as time goes by, whether somebody reads them or not.

A source that is live can tell where the stream has come to at an instant, before any of its records is read: decisions
about a batch are made of that. `Clock` ties the wall's time to the source's; it stands in the offset, so a replay of a
batch sees the same. All times are microseconds since 1970.

    wall:     ───────┼ clock.wall ──────────── now ─►
    source:   ───────┼ clock.source ────────── clock.source + (now − clock.wall) · clock.speed

A record arrives when the running greatest time of the stream reaches it: times that go back arrive with the record
before them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeGuard

import numpy as np

from penstock.sources.base import Position, Source
from penstock.state.protocol import Clock

Array = np.ndarray
BLOCK = 4_096  # records of a block of the index


@dataclass(frozen=True)
class Blocks:
    """A part of the index of a live stream: where blocks of records end, ascending, and the running greatest time at
    each end (before any usable time: the least int64)."""

    stops: Array
    greatest: Array


class LiveSource(Source, Protocol):
    """A source whose records arrive by the clock. It can be read again, so it is its own queue."""

    @property
    def speed(self) -> float:
        """Seconds of the source's time in a second of the wall's."""
        ...

    @property
    def kept_for(self) -> int | None:
        """How long records wait for queries without a promise, in microseconds on the wall; None: as long as it
        takes."""
        ...

    def prepare(self, time: str, ahead: int | None) -> LiveSource:
        """The source with its index, as far as it has one beforehand. `time` is the stream's time column; times further
        ahead than `ahead` of the greatest before them are malformed and no sign that time goes on."""
        ...

    def anchored(self, now: int, at: Position) -> Clock:
        """A clock by which the record at this position arrives now."""
        ...

    def arrived(self, clock: Clock, now: int) -> Position:
        """Where the stream has come to."""
        ...

    def row_at(self, time: int) -> Position:
        """The first record at which the running greatest time is this one or later, as far as is known; where the
        stream ends, if there is none."""
        ...

    def reached(self, at: Position) -> int | None:
        """The greatest time of the records before a position; None: none is usable."""
        ...

    def index(self, start: Position, stop: Position) -> Blocks:
        """The blocks that hold these records; the last may end before its 4,096 records, at `stop`."""
        ...


def live(source: Source) -> TypeGuard[LiveSource]:
    return source.abilities.live


def source_time(clock: Clock, now: int) -> int:
    """The source's time at an instant."""
    above, below = clock.speed.as_integer_ratio()  # exact: rounded times would let a window end a microsecond too late
    return clock.source + (now - clock.wall) * above // below


def wall_time(clock: Clock, time: int) -> int:
    """The first instant at which a time of the source is reached."""
    above, below = clock.speed.as_integer_ratio()
    return clock.wall - (clock.source - time) * below // above
