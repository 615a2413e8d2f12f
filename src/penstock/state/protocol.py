"""What tasks tell the driver, and what the driver writes down: types that both sides and all files share.

    tasks ──► TaskReport ─┐                          ┌──► Manifest (`state.manifest`)
    merges ──► MergeReport ├──► driver of the batch ──┤
    compactions ──► CompactionReport ┘                └──► BatchReport (`runtime.batch.report`), for observers

They travel and are stored as `state.data` says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from penstock.state.account import TaskAccount
from penstock.state.data import sparse, stored
from penstock.triage.costs import Estimate

Origin = tuple[int | None, int]  # greatest time and position of the stream when a query was added to the running app
Counts = Mapping[str, int]
Work = Mapping[str, Counts]  # counters of tables and leaves, by the names of `runtime.work`


@dataclass(frozen=True)
class SegmentRef:
    """A segment as manifests name it. `panes` has the first and last pane by relation; segments of one `unit` were
    written together. `storages` tell which queries read what of it (`relations.storage`)."""

    path: str
    bytes: int
    checksum: int
    panes: Mapping[str, tuple[int, int]]
    unit: str = ""
    storages: tuple[int, ...] = (0,)


@dataclass(frozen=True)
class StreamState:
    """A stream (declared, or results that a query reads) after a batch: position, watermark, greatest and first time in
    microseconds (None: no record yet), and whether it has ended."""

    row: int = 0
    watermark: int | None = None
    greatest: int | None = None
    first: int | None = None
    ended: bool = False


def together(known: Sequence[StreamState]) -> StreamState:
    """Of several streams that one query reads: as far as all of them are. One that has ended holds nobody back."""
    if len(known) == 1:
        return known[0]
    moving = [state for state in known if not state.ended] or known
    watermarks = [state.watermark for state in moving]
    return StreamState(
        min(state.row for state in moving),
        min((w for w in watermarks if w is not None), default=None) if None not in watermarks else None,
        max((state.greatest for state in known if state.greatest is not None), default=None),
        min((state.first for state in known if state.first is not None), default=None),
        all(state.ended for state in known),
    )


@dataclass(frozen=True)
class Clock:
    """Ties the source's time to the wall's, in microseconds since 1970: at `wall` the stream has come to `source`, and
    goes on by `speed` seconds in a second."""

    wall: int
    source: int
    speed: float = 1.0


@dataclass(frozen=True)
class StreamOffset:
    """Where a batch ends in a stream, and what is known of the stream before the batch.

    The rest is of live streams. `ranges` are the batch's records as (stop, k): one of 2^k is read; none: all of them
    are. `reached` is the greatest time up to the end of the batch, read or not. `tick` is a time that the clock had
    passed when a window was due; no record before it is left in the queue. `arrived` is how far the stream had come
    when the batch was decided, at `rate` records a second.
    """

    row: int = 0
    end: bool = False
    watermark: int | None = stored("wm", default=None)
    greatest: int | None = stored("max", default=None)
    first: int | None = None
    ranges: tuple[tuple[int, int], ...] = sparse(())
    reached: int | None = sparse(None)
    tick: int | None = sparse(None)
    clock: Clock | None = sparse(None)
    arrived: int | None = sparse(None)
    rate: float | None = sparse(None)


@dataclass(frozen=True)
class TableVersion:
    """What a table that is read again holds: the digest of its content. `refused` counts contents that were met and not
    taken, `problem` says why the last one was not; empty: there is none newer."""

    digest: str
    refused: int = 0
    problem: str = ""


@dataclass(frozen=True)
class Offset:
    """What was decided about a batch before it ran: a replay does the same.

    `n` is the number of batches with this one, `plan` the version of the app, `end`: all streams have ended. `origins`
    is of queries that were added to the running app, `joined` the watermark before the batch of every side of a join,
    `tables` the versions of tables that are read again, by name. Where delays are promised, `slack` are the seconds
    that the batch has left for what can wait; `costs` is what was known of batches when it was decided.
    """

    n: int = 0
    plan: int = 0
    end: bool = False
    streams: Mapping[str, StreamOffset] = field(default_factory=dict)
    origins: Mapping[str, Origin] = field(default_factory=dict)
    joined: Mapping[str, int | None] = field(default_factory=dict)
    tables: Mapping[str, TableVersion] = field(default_factory=dict)
    slack: float | None = sparse(None)
    costs: Estimate | None = sparse(None)

    @property
    def contents(self) -> dict[str, str]:
        """Digests of what the tables hold, by name."""
        return {name: version.digest for name, version in self.tables.items()}

    @property
    def batch(self) -> int:
        return self.n - 1

    def stream(self, name: str) -> StreamOffset:
        """Of a stream that is new, its beginning."""
        return self.streams.get(name, StreamOffset())

    def moved(self, name: str, row: int) -> Offset:
        """The same, with another position in a stream."""
        return replace(self, streams={**self.streams, name: replace(self.stream(name), row=row)})


@dataclass(frozen=True)
class Staged:
    """A part of a query's results: its temporary name, and the one it gets when the batch is published."""

    query: str
    staged: str
    final: str


@dataclass(frozen=True)
class Results:
    """Of a query: windows that closed, and rows that they gave."""

    windows: int = 0
    rows: int = 0


@dataclass(frozen=True)
class Timings:
    """What a batch on live streams took: records that were read, and left unread; instants at which windows closed;
    whether segments were compacted; seconds of the tasks, of closing and compaction, and of all that the driver did."""

    read: int
    left: int
    instants: int
    compacted: bool
    tasks: float
    merge: float
    seconds: float


@dataclass(frozen=True)
class Volume:
    """Bytes of segments that tasks wrote, that were read to close windows, that compactions wrote; bytes of results
    given to sinks; the number of compactions."""

    written: int = 0
    read: int = 0
    compacted: int = 0
    results: int = 0
    compactions: int = 0

    def __sub__(self, other: Volume) -> Volume:
        return Volume(
            self.written - other.written,
            self.read - other.read,
            self.compacted - other.compacted,
            self.results - other.results,
            self.compactions - other.compactions,
        )


# -- reports


@dataclass(frozen=True)
class Memory:
    """Bytes of a task's process: before its first task, and the most it ever had."""

    baseline: int = 0
    peak: int = 0


@dataclass(frozen=True)
class Spent:
    seconds: float = 0.0
    memory: Memory = Memory()


@dataclass(frozen=True)
class TaskReport:
    """A task on a stream. `places` are the rows of its first malformed records by reason; `greatest`, `least` and
    `first` times; `work` and `bytes` are by the names of `runtime.work`; `lfta_seconds` are without reading."""

    stream: str
    segment: SegmentRef
    account: TaskAccount
    places: Mapping[str, tuple[int, ...]]
    greatest: int | None
    least: int | None
    first: int | None
    work: Work
    bytes: Counts
    lfta_seconds: float = 0.0
    spent: Spent = Spent()

    @property
    def rows(self) -> int:
        return self.account.stream.input


@dataclass(frozen=True)
class WindowCounts:
    """Closed windows of a query in columns: number, start and end in microseconds, rows emitted, exact records; and
    about how many were triaged, if any were."""

    query: str
    windows: tuple[int, ...]
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    rows: tuple[int, ...]
    exact: tuple[int, ...]
    closed: int = 0  # windows that there were, also those too old to be listed
    triaged: tuple[int, ...] = sparse(())


@dataclass(frozen=True)
class SideCounts:
    """Of a side of a join at an instant: records, different groups, stored rows, and the different values that the
    groups of a key are told apart by."""

    records: float
    groups: float
    rows: float
    codes: float


@dataclass(frozen=True)
class HeldAt:
    """What a join holds at an instant: keys that all sides have, the sides in the order of FROM, and by the bits of
    each plan (1: aggregated early) how many combinations of rows it would go through."""

    keys: float
    sides: tuple[SideCounts, ...]
    pairs: Mapping[str, float]


@dataclass(frozen=True)
class JoinCounts:
    """Work of a join: instants of an item, groups made, the processor's nanoseconds, and whether rows were joined as
    they are stored, once for all instants (`living`), or merged for each. `held`, of some items, is at an instant."""

    query: str
    instants: int
    made: int
    nanoseconds: int
    living: bool
    held: HeldAt | None = None

    def __add__(self, other: JoinCounts) -> JoinCounts:
        """Of the same join."""
        return JoinCounts(
            self.query,
            self.instants + other.instants,
            self.made + other.made,
            self.nanoseconds + other.nanoseconds,
            self.living and other.living,
            self.held or other.held,
        )


@dataclass(frozen=True)
class HeldCounts:
    """Records that the sides of a join hold at instants, as far as one part of it has seen: (instants, counts) each.
    Where delays are promised, all its picks: (instant, weight, records)."""

    query: str
    sides: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]
    counts: JoinCounts
    picks: tuple[tuple[int, int, int], ...] = sparse(())


@dataclass(frozen=True)
class MergeReport:
    """A task that closed windows: parts of results and their bytes, rows by query, the windows, bytes read, and what
    was aggregated of the results for queries that read them. Of joins that are too large for one task: the groups of
    its part, and what its sides hold. `joins`: their work. `work` is that of the rest, by stored relation
    (`runtime.meter`)."""

    staged: tuple[Staged, ...] = ()
    staged_bytes: int = 0
    rows: Counts = field(default_factory=dict)
    windows: tuple[WindowCounts, ...] = ()
    read: int = 0
    feeds: tuple[TaskReport, ...] = ()
    spent: Spent = Spent()
    joined: tuple[SegmentRef, ...] = ()
    held: tuple[HeldCounts, ...] = ()
    joins: tuple[JoinCounts, ...] = ()
    work: Work = field(default_factory=dict)


@dataclass(frozen=True)
class CompactionReport:
    """A task that merged small segments into a new one."""

    segment: SegmentRef
    read: int = 0
    spent: Spent = Spent()
