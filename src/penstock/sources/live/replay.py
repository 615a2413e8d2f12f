"""Replays: any source of penstock's own, arriving at a multiple of the speed at which it was recorded.

    FROM 'replay:pcap:trace.pcap' WITH (speed = 10)    ten seconds of the trace in one second

| option | default | |
| --- | --- | --- |
| `speed` | `1` | seconds of the source's time in a second of the wall's |
| `kept` | for ever | how long, on the wall, records wait for queries that promise no delay |
| others | | are the source's own |

With `speed = 'max'` the source is read as fast as it can be: then it is just the source itself.
A record arrives when the running greatest time of the stream reaches it. `prepare` reads the time column once, and
keeps that time at the end of each block; where an instant falls within a block, the block's times are read again.
Tasks know nothing of all this: they get the wrapped source.

Delivery: as of the wrapped source. Its files are those that were there when it was opened, and part of the fingerprint.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.errors import SourceError
from penstock.lang.durations import LONGEST, parse_duration
from penstock.logical.query import Field
from penstock.logical.types import TIMESTAMP
from penstock.sources.base import Abilities, Position, Source, Split, growing
from penstock.sources.fit import check_fields
from penstock.sources.live.contract import BLOCK, Blocks, source_time
from penstock.sources.live.times import LEAST, block_ends, running
from penstock.sources.options import Options
from penstock.state.protocol import Clock

Array = np.ndarray
SPEED, MAX, KEPT = "speed", "max", "kept"
AS_RECORDED: float | None = 1.0
FOR_EVER: int | None = None
SHORTEST = 1_000_000  # of `kept`: no batch is shorter than it takes
SLOWEST, FASTEST = 1e-6, 1e9
MOST = (1 << 63) - 1
RECENT = 4  # blocks whose times are kept: where the stream has come to, where windows end
# What cannot be replayed, and what to do instead.
FRAMES = "write it to files first, then replay these: replay:parquet:FOLDER"
REFUSED = {
    "stdin": "what is piped in cannot be read again after a restart: save it first, then replay:csv:FILE",
    "replay": "one replay: is enough; it has one speed",
    "spark": FRAMES, "frame": FRAMES, "table": FRAMES,
}  # fmt: skip


@dataclass(frozen=True)
class Marks:
    """The index of a stream: the running greatest time at the end of each block of records."""

    time: str
    ahead: int | None
    greatest: Array = field(repr=False, compare=False)

    def before(self, block: int) -> int:
        return int(self.greatest[block - 1]) if block else LEAST


@dataclass(frozen=True)
class ReplaySource:
    """The wrapped source, by the clock. Positions are the wrapped source's."""

    name: str
    wrapped: Source
    speed: float
    marks: Marks | None = None
    kept_for: int | None = None

    @property
    def abilities(self) -> Abilities:
        return replace(self.wrapped.abilities, grows=False, live=True)

    def schema(self) -> pa.Schema:
        return self.wrapped.schema()

    def rows(self) -> Position:
        return self.wrapped.rows()

    def cut(self, start: Position, limit: int) -> Position:
        return self.wrapped.cut(start, limit)

    def splits(self, start: Position, stop: Position, parallelism: int) -> list[Split]:
        return self.wrapped.splits(start, stop, parallelism)

    def read(self, split: Split, columns: Sequence[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
        return self.wrapped.read(split, columns, batch_rows)

    def place(self, at: Position) -> str:
        return self.wrapped.place(at)

    def narrowed(self, split: Split) -> Source:
        return self.wrapped.narrowed(split)

    def fingerprint(self) -> str:
        """Of the records, whatever the speed; files count, because they do not grow in number as elsewhere."""
        files = [(e.rows, e.size, e.digest) for e in self.wrapped.entries] if growing(self.wrapped) else []
        told = f"replay {self.wrapped.fingerprint()} {files!r}"
        return hashlib.blake2b(told.encode(), digest_size=16).hexdigest()

    def prepare(self, time: str, ahead: int | None) -> ReplaySource:
        if not time:
            raise SourceError(
                f"'{self.name}' cannot be replayed: its stream has no time column",
                "records arrive by their times: declare a TIMESTAMP column, and say WATERMARK column DELAY '1 second'",
            )
        check_fields((Field(time, TIMESTAMP),), self.schema(), f"'{self.name}'")
        if not self.rows():
            raise SourceError(
                f"'{self.name}' cannot be replayed: it has no records", "a replay does not wait for files: record first"
            )
        greatest = block_ends(self.wrapped, time, ahead)
        if greatest[-1] == LEAST:
            raise SourceError(
                f"'{self.name}' cannot be replayed: none of its {self.rows()} records has a usable {time}",
                "records arrive by their times: see that this is the right column, and how its times are written",
            )
        return replace(self, marks=Marks(time, ahead, greatest))

    def anchored(self, now: int, at: Position) -> Clock:
        # Records before the first usable time arrive with it; at the end the last time has come.
        record = max(at, self.row_at(LEAST + 1))
        reached = self.reached(min(Position(record + 1), self.rows()))
        assert reached is not None  # `prepare` has seen a usable time
        return Clock(now, reached, self.speed)

    def arrived(self, clock: Clock, now: int) -> Position:
        return self.row_at(source_time(clock, now) + 1)

    def row_at(self, time: int) -> Position:
        marks, bounded = self._marks, min(max(time, LEAST + 1), MOST)
        block = int(np.searchsorted(marks.greatest, bounded))
        if time > bounded or block == len(marks.greatest):
            return self.rows()
        return Position(block * BLOCK + int(np.searchsorted(self._running(block), bounded)))

    def reached(self, at: Position) -> int | None:
        block, row = divmod(at, BLOCK)
        greatest = self._marks.before(block)
        if row:
            greatest = int(self._running(block)[row - 1]) if at < self.rows() else int(self._marks.greatest[-1])
        return None if greatest == LEAST else greatest

    def index(self, start: Position, stop: Position) -> Blocks:
        first, last = start // BLOCK, -(-stop // BLOCK)
        if stop <= start:
            return Blocks(np.empty(0, np.int64), np.empty(0, np.int64))
        stops, greatest = np.arange(first + 1, last + 1) * BLOCK, self._marks.greatest[first:last].copy()
        reached = self.reached(stop)
        stops[-1], greatest[-1] = stop, LEAST if reached is None else reached
        return Blocks(stops, greatest)

    @property
    def _marks(self) -> Marks:
        assert self.marks is not None  # `prepare` comes first
        return self.marks

    def _running(self, block: int) -> Array:
        """The running greatest time at each record of a block."""
        recent, marks = self._recent, self._marks
        found = recent.pop(block, None)
        if found is None:
            split = Split(Position(block * BLOCK), min(Position((block + 1) * BLOCK), self.rows()))
            narrow = self.wrapped.narrowed(split)
            found = running(narrow, split, marks.time, marks.ahead, marks.before(block))
        recent[block] = found  # the newest last
        if len(recent) > RECENT:
            del recent[next(iter(recent))]
        return found

    @cached_property
    def _recent(self) -> dict[int, Array]:
        return {}

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_recent"}


def open_replay(uri: str, options: Mapping[str, str], declared: tuple[Field, ...] | None = None) -> Source:
    """Open the source that is named after `replay:`, with what is left of the options."""
    from penstock.sources.registry import ELSEWHERE, open_source
    from penstock.sources.registry import FRAMES as BY_SPARK

    name, scheme = f"replay:{uri}", uri.partition(":")[0].lower()
    if scheme in REFUSED or ELSEWHERE.get(scheme) == BY_SPARK:
        raise SourceError(f"'{name}' cannot be replayed", REFUSED.get(scheme, FRAMES))
    if not uri:
        raise SourceError("nothing to replay is given", "name a source after it, like replay:pcap:trace.pcap")
    mine = {key: text for key, text in options.items() if key.lower() in (SPEED, KEPT)}
    given = Options("replay", mine)
    speed, kept = given.take(SPEED, _speed, AS_RECORDED), given.take(KEPT, _kept, FOR_EVER)
    wrapped = open_source(uri, {key: text for key, text in options.items() if key not in mine}, declared)
    return wrapped if speed is None else ReplaySource(name, wrapped, speed, kept_for=kept)


def _speed(text: str) -> float | None:
    """None: as fast as possible."""
    if text.strip().lower() == MAX:
        return None
    try:
        speed = float(text)
    except ValueError:
        speed = 0.0
    if not SLOWEST <= speed <= FASTEST:
        raise ValueError(f"a number of seconds to play in one second, from {SLOWEST:g} to {FASTEST:g}, or '{MAX}'")
    return speed


def _kept(text: str) -> int:
    try:
        kept = parse_duration(text)
    except ValueError:
        kept = 0
    if not SHORTEST <= kept <= LONGEST:
        raise ValueError("a duration of a second or more, like '10 minutes'")
    return kept
