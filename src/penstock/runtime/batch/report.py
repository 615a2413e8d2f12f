"""What happened in a batch of a run, for its observers.

The driver makes a `BatchReport` after each commit. Progress (`monitor`), the run's own memory (`runtime.run.history`)
and the planner (`replan`) observe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from penstock.logical.owed import OWED
from penstock.state.manifest import Manifest
from penstock.state.protocol import JoinCounts, Memory, Offset, Spent, TaskReport, Volume, Work


@dataclass(frozen=True)
class Peaks:
    """The greatest memory of a batch's tasks and merge tasks, in bytes; `above` is without the process's baseline."""

    baseline: int = 0
    merge_peak: int = 0
    merge_above: int = 0
    lfta_peak: int = 0
    lfta_above: int = 0

    def __or__(self, other: Peaks) -> Peaks:
        """The greater of both, figure by figure."""
        return Peaks(
            max(self.baseline, other.baseline),
            max(self.merge_peak, other.merge_peak),
            max(self.merge_above, other.merge_above),
            max(self.lfta_peak, other.lfta_peak),
            max(self.lfta_above, other.lfta_above),
        )


def peaks(tasks: Iterable[Spent], merged: Iterable[Spent]) -> Peaks:
    first, second = [spent.memory for spent in tasks], [spent.memory for spent in merged]
    return Peaks(max((one.baseline for one in first), default=0), *_most(second), *_most(first))


def _most(memory: list[Memory]) -> tuple[int, int]:
    return max((m.peak for m in memory), default=0), max((m.peak - m.baseline for m in memory), default=0)


@dataclass(frozen=True)
class Arrival:
    """A live stream as a batch left it: records that waited, those that arrive in a second, how many seconds ago the
    newest arrived that a batch has taken (none: no record waits), and one of how many was read where fewest were."""

    queued: int
    rate: float
    lag: float
    step: int


@dataclass(frozen=True)
class Late:
    """Windows of a query that a batch closed: the greatest delay and what is promised, in seconds, and how many came
    later than that."""

    windows: int
    delay: float
    promise: float | None
    overdue: int


@dataclass(frozen=True)
class BatchReport:
    """`total` is the number of records in all, where that is known; `watermarks` are of the declared streams; `closed`
    windows; `finished_at` by the monotonic clock; `volume` and `kept` as of `state.manifest`, the first of this batch;
    `tasks` are those of streams, and of results that queries read; `joins` are what merge tasks
    found in joins, `closing` what each took, by stored relation. `arrivals` are of live streams,
    `late` of queries on them whose windows closed."""

    batch: int
    rows: int
    total: int | None
    offset: Offset
    watermarks: Mapping[str, int | None]
    closed: int
    finished_at: float
    task_seconds: float
    merge_seconds: float
    memory: Peaks
    volume: Volume
    kept: int
    tasks: tuple[TaskReport, ...] = ()
    joins: tuple[JoinCounts, ...] = ()
    closing: tuple[Work, ...] = ()
    arrivals: Mapping[str, Arrival] = field(default_factory=dict)
    late: Mapping[str, Late] = field(default_factory=dict)

    @property
    def behind(self) -> int | None:
        """Records that are known and not yet read, where that is known."""
        if self.total is None:
            return None
        return max(0, self.total - sum(state.row for state in self.offset.streams.values()))


def waiting_text(arrivals: Mapping[str, Arrival], late: Mapping[str, Late]) -> str:
    """Of live streams, for people: what arrives, what waits, what is read of it, and how late the newest results came.
    What is owed arrives once, and waits by itself."""
    rate = sum(one.rate for name, one in arrivals.items() if name.removesuffix(OWED) == name)
    step = max(one.step for one in arrivals.values())
    parts = [f"{rate:,.0f}/s arrive", f"{sum(one.queued for one in arrivals.values()):,} wait"]
    parts += [f"1 in {step} read"] if step > 1 else []
    parts += [f"delay {max(one.delay for one in late.values()):.1f} s"] if late else []
    return ", ".join(parts)


Observer = Callable[[BatchReport, Manifest], None]  # called after a batch is committed and published
