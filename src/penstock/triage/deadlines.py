"""Deadlines of all streams in one order, what each still needs, and the step at which it can be met.

A *segment* holds the queued records of one stream that a deadline needs and no earlier one does. Deadlines are met in
the order of their due times. Of a stream that is also the order of its records: where a later window is due earlier,
all records before it are.

Two questions are asked of each prefix of segments. Is a step *forced*: would reading all that waits, and leaving
unread what is still to come, take longer than there is time? And which step suits it, if what is to come gets the same
one? The first alone decides whether records are left unread; a burst that ends may prove the second wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, inf, isinf

from penstock.triage.plan import Costs, Mode, Queue, greatest

LAST = 2.0  # batches of a window whose bad luck no other can make up for, each as long as from ready to due
ODD = 0.05  # of what a batch costs: for odd records, which are read in full


@dataclass(frozen=True)
class Segment:
    """Records [start, stop) of a stream, and those that its deadline still expects."""

    stream: str
    start: int
    stop: int
    coming: float
    ready: float  # from when on a batch that takes these records closes the windows; -inf: from now on
    due: float
    k: int  # the greatest
    closes: bool  # False: records behind the last due

    @property
    def records(self) -> int:
        return self.stop - self.start

    @property
    def steepest(self) -> float:
        return float(1 << self.k)


@dataclass(frozen=True)
class Outlook:
    """Segments by due time; of each prefix the seconds it has for records, of each segment the step that suits it.

    `forced` counts the segments whose records may be left unread.
    """

    segments: tuple[Segment, ...]
    times: tuple[float, ...]
    batches: tuple[int, ...]  # that each prefix needs at least
    steps: tuple[float, ...]
    forced: int


def outlook(
    now: float, queues: Sequence[Queue], costs: Costs, mode: Mode, batch_rows: int, fixed: int, span: float
) -> Outlook:
    """`span` is how long a batch may be."""
    segments = tuple(sorted((one for q in queues for one in segmented(now, q, mode, fixed)), key=lambda one: one.due))
    batches = tuple(_batches(now, segments, costs))
    closes, times, suited = 0, [], []
    for one, count in zip(segments, batches, strict=True):
        closes += one.closes
        left = _left(now, one, costs) - costs.close * closes
        times.append(left - costs.batch * count)
        more = max(count, 1 + ceil(max(0.0, one.ready - now) / span)) if left < inf else 0
        suited.append(left - costs.batch * (more + ODD))
    if mode is Mode.SUMMARISE:
        return Outlook(segments, tuple(times), batches, tuple(one.steepest for one in segments), len(segments))
    steps = tuple(_steps(segments, suited, costs))
    return Outlook(segments, tuple(times), batches, steps, _forced(segments, times, batches, costs, batch_rows))


def _left(now: float, one: Segment, costs: Costs) -> float:
    """The time until a segment is due, less what bad luck may take of its last batches."""
    left = one.due - now
    last = min(left, LAST * (one.due - one.ready)) if one.ready > now else left
    return left - max(0.0, last) * (1 - 1 / costs.margin) if left < inf else left


def segmented(now: float, queue: Queue, mode: Mode, fixed: int) -> list[Segment]:
    """The records of a stream by the deadline that needs them first."""
    dues = [due.due for due in queue.dues]
    for number in range(len(dues) - 2, -1, -1):
        dues[number] = min(dues[number], dues[number + 1])
    found: list[Segment] = []
    start, expected = queue.start, float(queue.arrived)
    for one, due in zip(queue.dues, dues, strict=True):
        stop = max(start, min(one.stop, queue.arrived))
        needed = min(float(one.stop), queue.arrived + queue.rate * max(0.0, one.ready - now))
        ready = -inf if one.ready <= now or one.stop <= queue.arrived else one.ready
        k = 0 if isinf(due) else greatest(mode, one.most, fixed)
        found.append(Segment(queue.stream, start, stop, max(0.0, needed - expected), ready, due, k, True))
        start, expected = stop, max(expected, needed)
    if start < queue.arrived:
        k = greatest(mode, queue.dues[-1].most, fixed) if mode is Mode.SUMMARISE and queue.dues else 0
        found.append(Segment(queue.stream, start, queue.arrived, 0.0, inf, inf, k, False))
    return found


def _batches(now: float, segments: Sequence[Segment], costs: Costs) -> list[int]:
    """How many each prefix needs at least: the next one, and one for each window that it is too early for."""
    found, count, last = [], 1, now
    for one in segments:
        if one.ready > last and one.closes and one.due < inf:
            count, last = count + 1, max(one.ready, one.due - costs.batch - costs.close)
        found.append(count)
    return found


def _forced(
    segments: Sequence[Segment], times: Sequence[float], batches: Sequence[int], costs: Costs, batch_rows: int
) -> int:
    """The longest prefix that would be late with all of it read."""
    found, records, coming = 0, 0, 0.0
    for number, one in enumerate(segments):
        records, coming = records + one.records, coming + one.coming
        more = max(0, ceil(records / batch_rows) - batches[number])
        if records * costs.full + more * costs.batch + coming * costs.skip > times[number]:
            found = number + 1
    return found


def _steps(segments: Sequence[Segment], times: Sequence[float], costs: Costs) -> list[float]:
    """The prefix that needs the greatest step gets it, then the prefix of what is behind it, and so on."""
    found = [1.0] * len(segments)
    start, used = 0, 0.0
    while start < len(segments):
        records: dict[int, float] = {}
        worst, stop = 1.0, start
        for number in range(start, len(segments)):
            one = segments[number]
            if isinf(one.due):
                break
            records[one.k] = records.get(one.k, 0.0) + one.records + one.coming
            step = _step(records, times[number] - used, costs)
            if step > 1 and step >= worst:
                worst, stop = step, number + 1
        if stop == start:
            break
        for number in range(start, stop):
            one = segments[number]
            found[number] = min(worst, one.steepest)
            used += (one.records + one.coming) * costs.price(found[number])
        start = stop
    return found


def _step(records: Mapping[int, float], time: float, costs: Costs) -> float:
    """The least step at which records, counted by their greatest k, are done in time; infinite if none is."""
    rest, fixed = sum(records.values()), 0.0
    for k in sorted(records):
        spare = time - fixed - rest * costs.skip
        if spare > 0:
            step = rest * (costs.full - costs.skip) / spare
            if step <= 1 << k:
                return max(1.0, step)
        rest -= records[k]
        fixed += records[k] * costs.price(1 << k)
    return inf if fixed > 0 else 1.0
