"""What the scheduler is told, and what it decides: data alone.

Times are wall seconds on one clock; positions count the records of a stream from its beginning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from penstock.triage.picks import DROP, MOST

Range = tuple[int, int]  # (stop, k): the records up to `stop`, after those of the range before


class Mode(StrEnum):
    """What happens to records that time is too short for."""

    TRIAGE = "triage"  # one in 2^k is read and stands for its neighbours
    DROP = "drop"  # the excess is not read, and nothing stands for it
    SUMMARISE = "summarise"  # one fixed k for all records, whatever the load
    QUEUE = "queue"  # all are read, however late


@dataclass(frozen=True)
class Costs:
    """Seconds of wall time while all tasks of the run work in parallel.

    These are averages, and the margin stands beside them: over many batches luck evens out, and what one of them took
    too long the next can make up for by a greater step. After the last batch of a window there is none. So only the
    time in which that runs is divided by the margin.
    """

    batch: float  # a micro-batch, whatever is in it
    full: float  # a record that is read
    skip: float  # a record that arrives and is left unread
    close: float  # closing the windows that end at one instant
    margin: float = 1.0  # how many times as long a batch may take

    def price(self, step: float) -> float:
        """A record of a range of which one in `step` is read."""
        return self.skip + (self.full - self.skip) / step

    @property
    def sure(self) -> Costs:
        """The same with the margin in them."""
        return Costs(*(one * self.margin for one in (self.batch, self.full, self.skip, self.close)))

    def reading(self, records: float, reads: float) -> float:
        return reads * self.full + (records - reads) * self.skip


@dataclass(frozen=True)
class Due:
    """The windows of one instant, possibly of several queries: they close together.

    Records before position `stop` must have been taken. If fewer have arrived so far, all those are needed that will
    have arrived at `ready`, which is when the windows can close: their end and the watermark's delay, on the source's
    clock. By `due` their results must be there (infinite: nothing is promised). `most` is the greatest k of the
    records before `stop`; of records that several windows share, the least that any of them allows.
    """

    stop: int
    ready: float
    due: float
    most: int = MOST


@dataclass(frozen=True)
class Queue:
    """One live stream at this moment: records [start, arrived) wait, `rate` more arrive in a second.

    Its dues ascend by `ready`: those that are still open, the one under way, and the next ones as long as they are due
    before those under way of other streams (some tens at most): what they will need is kept for them. Without
    `promised` the stream stays exact and takes what time the others leave.
    """

    stream: str
    start: int
    arrived: int
    rate: float
    dues: tuple[Due, ...]
    promised: bool = True


@dataclass(frozen=True)
class Plan:
    """What the next batch does: by stream ranges (stop, k) from `Queue.start` on, none of what stays in the queue.

    A stream that is missing is left alone by the clock, too: there is no time to close its windows.
    `slack` are the seconds left for what can wait, such as compaction, with all that is not in the batch read in full:
    negative under overload, infinite where nothing is promised. `overdue`: some deadline cannot be kept.
    """

    ranges: Mapping[str, tuple[Range, ...]]
    slack: float
    overdue: bool


def fixed_step(peak: float, every: float, costs: Costs) -> int:
    """The k of `summarise`: the least that keeps up with `peak` records a second, windows closing every `every`."""
    sure = costs.sure
    time = 1 - (sure.close + 2 * sure.batch) / every
    return next((k for k in range(MOST) if peak * sure.price(1 << k) <= time), MOST)


def greatest(mode: Mode, most: int, fixed: int) -> int:
    """The greatest k that a record may get."""
    return {Mode.TRIAGE: most, Mode.DROP: DROP, Mode.SUMMARISE: min(fixed, most), Mode.QUEUE: 0}[mode]
