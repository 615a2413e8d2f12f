"""The scheduler against a virtual clock: streams whose rates change, batches that take what their costs say.

Rates are constant between breaks, so what has arrived by an instant is one interpolation. A record's time is when it
arrives. Beside a run stands the clairvoyant: it knows all arrivals and costs, needs one batch for each window, and
gives the windows the steps of least error, which need not be powers of two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import floor, inf
from random import Random

import numpy as np

from penstock.triage import costs as costing
from penstock.triage.lessons import ENOUGH, Lesson, lesson_rows, lesson_seconds
from penstock.triage.picks import DROP
from penstock.triage.plan import greatest
from penstock.triage.scheduler import Costs, Due, Mode, Plan, Queue, planned

SOON = 0.01  # seconds until a scheduler that waits is asked again, at least
UNKNOWN = 1 << 62  # where a window ends whose end has not arrived
MANY = 30  # dues of a queue
MEASURED = 0.5  # seconds over which a rate is taken


@dataclass(frozen=True)
class Stream:
    """Arrivals as rates between breaks (seconds), and windows of `every` seconds; `delay` is the watermark's."""

    name: str
    breaks: tuple[float, ...]
    rates: tuple[float, ...]
    every: float
    promise: float = inf  # seconds after a window's end
    delay: float = 0.0
    most: int = 12

    @property
    def end(self) -> float:
        return self.breaks[-1]

    @property
    def windows(self) -> int:
        return round(self.end / self.every)

    def arrived(self, times: object) -> np.ndarray:
        return np.interp(times, self.breaks, self._counts())  # type: ignore[arg-type]

    def _counts(self) -> np.ndarray:
        return np.concatenate([[0.0], np.cumsum(np.diff(self.breaks) * self.rates)])


@dataclass
class Live:
    """A stream in a run: what was taken of it, and when its windows closed."""

    stream: Stream
    start: int = 0
    closed: int = 0
    late: list[float] = field(default_factory=list)  # seconds after the due time, by window
    stops: list[int] = field(default_factory=lambda: [0])
    steps: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        stream = self.stream
        self.counts = stream._counts()
        ends = np.arange(1, stream.windows + 1) * stream.every
        self.ends = ends
        self.ready = ends + stream.delay
        self.positions = np.ceil(np.interp(ends, stream.breaks, self.counts) - 1e-6).astype(int)
        self.needed = np.floor(np.interp(self.ready, stream.breaks, self.counts) + 1e-6).astype(int) + 1

    def arrived(self, now: float) -> int:
        return floor(float(np.interp(now, self.stream.breaks, self.counts)) + 1e-6)

    def due(self, now: float) -> float:
        """By when the results of the window under way must be there."""
        number = min(int(np.searchsorted(self.ends, now, "right")), len(self.ends) - 1)
        return float(self.ends[number]) + self.stream.promise

    def queue(self, now: float, horizon: float) -> Queue:
        """Its dues include that of the window under way, and those before the horizon."""
        arrived, before = self.arrived(now), self.arrived(now - MEASURED)
        dues = []
        for number in range(self.closed, len(self.ends)):
            stop, ready = int(self.needed[number]), float(self.ready[number])
            due = float(self.ends[number]) + self.stream.promise
            dues.append(Due(stop if stop <= arrived else UNKNOWN, ready, due, self.stream.most))
            after = float(self.ends[number]) + self.stream.every + self.stream.promise
            if self.ends[number] > now and (after > horizon or len(dues) >= MANY):
                break
        promised = self.stream.promise < inf
        return Queue(self.stream.name, self.start, arrived, (arrived - before) / MEASURED, tuple(dues), promised)

    def take(self, ranges: Sequence[tuple[int, int]]) -> tuple[int, int]:
        """Records that are read, and those left unread."""
        read = left = 0
        for stop, k in ranges:
            records = stop - self.start
            assert records > 0
            assert k in (0, DROP) or not (self.start | stop) & ((1 << k) - 1)
            reads = 0 if k == DROP else records >> k
            read, left = read + reads, left + records - reads
            self.stops.append(stop)
            self.steps.append(k)
            self.start = stop
        return read, left

    def closing(self, queue: Queue, now: float) -> int:
        """How many instants close with the batch that was just taken, planned at `now`."""
        count = 0
        for due in queue.dues:
            if self.start >= due.stop or (due.ready <= now and self.start >= min(due.stop, queue.arrived)):
                count += 1
            else:
                break
        return count

    def close(self, count: int, now: float) -> None:
        for number in range(self.closed, self.closed + count):
            self.late.append(now - float(self.ends[number]) - self.stream.promise)
        self.closed += count

    def variance(self) -> np.ndarray:
        """Of the count of each window, as if every record were counted: Σ records·(2^k − 1)."""
        weights = np.array([(1 << k) - 1 if k != DROP else np.inf for k in self.steps], float)
        sums = np.concatenate([[0.0], np.cumsum(np.diff(self.stops) * weights)])
        return np.diff(np.interp(np.concatenate([[0], self.positions]), self.stops, sums))


@dataclass
class Told:
    """One batch: when it was planned and what for."""

    now: float
    queues: Sequence[Queue]
    costs: Costs
    plan: Plan
    seconds: float
    closed: int


@dataclass
class Run:
    lives: list[Live]
    batches: list[Told]
    ended: float

    @property
    def late(self) -> float:
        """The most that a promised window was late."""
        return max((late for live in self.lives if live.stream.promise < inf for late in live.late), default=-inf)

    @property
    def longest(self) -> float:
        return max(told.seconds for told in self.batches)


def simulated(
    streams: Sequence[Stream],
    costs: Costs,
    *,
    mode: Mode = Mode.TRIAGE,
    batch_rows: int = 1 << 40,
    fixed: int = 0,
    noise: float = 0.0,
    believed: Costs | None = None,
    estimate: costing.Estimate | None = None,
    cold: float | None = None,
    dice: Random | None = None,
    patience: float = inf,
) -> Run:
    """Until all windows are closed, or `patience` seconds after the last record.

    The scheduler goes by `believed` costs, or by what `estimate` measures; a batch's true costs vary by `noise`. With
    `cold` seconds more for the first batch, the first ones are lessons, as in a run that begins.
    """
    lives = [Live(stream) for stream in streams]
    batches: list[Told] = []
    now, end = 0.0, max(stream.end for stream in streams)
    lesson, lessons = None, 0 if cold is None else ENOUGH + 1
    breaks = np.unique(np.concatenate([stream.breaks for stream in streams]))
    while any(live.closed < len(live.ends) for live in lives) and now < end + patience:
        horizon = max((live.due(now) for live in lives if live.stream.promise < inf), default=0.0)
        queues = [live.queue(now, horizon) for live in lives]
        known = costing.costs(estimate) if estimate else believed or costs
        rows = costing.rows(estimate, batch_rows) if estimate else batch_rows
        if lessons and any(queue.arrived > queue.start for queue in queues):
            plan = taught(queues, lesson)
        else:
            plan = planned(now, queues, known, mode, rows, fixed)
        if plan is None:
            now += _pause(now, queues, known, breaks)
            continue
        read = left = closed = 0
        closing = []
        for live, queue in zip(lives, queues, strict=True):
            reads, lefts = live.take(plan.ranges.get(queue.stream, ()))
            read, left = read + reads, left + lefts
            closing.append(live.closing(queue, now) if queue.stream in plan.ranges else 0)
        odd = rows // 100 if estimate else 0  # on top, where few are allowed at first
        assert read <= rows + odd or lessons or cold is not None, (read, rows, plan)
        closed = sum(closing)
        assert read or left or closed, (now, queues, plan)
        luck = 1 + noise * (2 * dice.random() - 1) if dice else 1.0
        tasks, merge = costs.reading(read + left, read) * luck, costs.close * closed * luck
        if estimate:  # a third of what a batch costs is its tasks', as much its merge's
            tasks, merge = (part + costs.batch / 3 * luck for part in (tasks, merge))
        extra = cold if cold is not None and not batches else 0.0
        seconds = costs.batch * luck / (3 if estimate else 1) + tasks + merge + extra
        batches.append(Told(now, queues, known, plan, seconds, closed))
        now += seconds
        for live, count in zip(lives, closing, strict=True):
            live.close(count, now)
        lesson, lessons = Lesson(read, tasks + extra), max(0, lessons - 1)
        if estimate and not extra:
            timing = costing.Timing(read, left, closed, False, tasks, merge, seconds, seconds)
            estimate = costing.measured(estimate, timing)
    return Run(lives, batches, now)


def taught(queues: Sequence[Queue], last: Lesson | None) -> Plan:
    """One of the first batches."""
    most = lesson_rows(last, lesson_seconds(queues))
    ranges = {q.stream: ((min(q.arrived, q.start + most), 0),) for q in queues if q.arrived > q.start}
    return Plan(ranges, 0.0, False)


def _pause(now: float, queues: Sequence[Queue], costs: Costs, breaks: np.ndarray) -> float:
    """Until something may have changed: a window can close, a rate changes, or there is work for a batch."""
    ready = min((due.ready for queue in queues for due in queue.dues if due.ready > now), default=inf)
    after = int(np.searchsorted(breaks, now + 1e-9))
    changes = float(breaks[after]) if after < len(breaks) else inf
    work = sum(queue.arrived - queue.start for queue in queues) * costs.full
    rate = sum(queue.rate for queue in queues) * costs.full
    full = (2 * costs.batch - work) / rate if rate > 0 else 0.0
    return max(SOON, min(ready - now, changes - now, full if full > 0 else SOON, 1.0))


def clairvoyant(stream: Stream, costs: Costs) -> np.ndarray:
    """The variance of each window's count with the best steps: equal ones, as long as no deadline forbids.

    Σ records·step is least, with Σ records/step given by the deadlines, along the tightest string below them.
    """
    live = Live(stream)
    records = np.diff(np.concatenate([[0], live.positions])).astype(float)
    each = costs.close + costs.batch
    times = live.ends + stream.promise - each * np.arange(1, len(records) + 1)
    spare = np.diff(np.concatenate([[0.0], times - np.cumsum(records) * costs.skip]))
    found = np.zeros(len(records))
    start = 0
    while start < len(records):
        work, time = np.cumsum(records[start:]) * (costs.full - costs.skip), np.cumsum(spare[start:])
        steps = np.where(time > 0, work / np.where(time > 0, time, 1.0), np.where(work > 0, np.inf, 0.0))
        stop = start + int(np.argmax(steps)) + 1
        found[start:stop] = steps[stop - start - 1]
        start = stop
    most = float(1 << greatest(Mode.TRIAGE, stream.most, 0))
    return records * (np.clip(found, 1.0, most) - 1)


def believing(costs: Costs, factor: float) -> costing.Estimate:
    """A run that goes on, and believes all costs to be so many times what they are."""
    part, small = costs.batch / 3 * factor, 0.1
    tasks = costing.Fit((part, costs.full * factor, costs.skip * factor), tuple(small * np.eye(3).ravel()))
    merge = costing.Fit((part, costs.close * factor), tuple(small * np.eye(2).ravel()))
    return costing.Estimate(tasks, merge, costing.Fit((part,), (small,)), most_read=1 << 40)


# -- arrivals


def random_streams(dice: Random, costs: Costs, load: float) -> list[Stream]:
    """One to three streams that together stay below `load` of what can be left unread in the time."""
    count = dice.choice((1, 1, 1, 2, 3))
    end = 0.0
    found = []
    for number in range(count):
        every = dice.choice((2.0, 3.0, 5.0, 10.0, 20.0))
        if count == 1 and dice.random() < 0.2:
            every = 1.0
        end = end or every * dice.randint(4, 12)
        found.append((number, every))
    end = max(end, 2 * max(every for _, every in found))
    closing = sum((costs.close + 2 * costs.batch) / every for _, every in found)
    peak = load * max(0.05, 1 - closing) / costs.skip / count
    streams = []
    for number, every in found:
        windows = int(end / every)
        least = 2 * costs.batch + count * costs.close + costs.batch
        promise = dice.choice((1.0, 1.5, 3.0, 10.0)) * least
        delay = dice.choice((0.0, 0.0, 0.5))
        breaks, rates = pattern(dice, windows * every, peak, 1 / costs.full / count)
        streams.append(Stream(f"s{number}", breaks, rates, every, promise + delay, delay))
    return streams


def pattern(dice: Random, end: float, peak: float, capacity: float) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Breaks and the rates between them: at most `peak`, in several shapes around what can be read in full."""
    kind = dice.choice(("steady", "step", "on and off", "bursts", "sinusoid", "random", "stairs"))
    pieces = 1 if kind == "steady" else dice.randint(2, 24)
    if kind in ("bursts", "random"):
        inner = sorted(dice.uniform(0, end) for _ in range(pieces - 1))
    else:
        inner = [end * number / pieces for number in range(1, pieces)]
    top = min(peak, capacity * dice.choice((0.5, 0.9, 1.1, 2, 5, 10, 30)))
    low = capacity * dice.choice((0.0, 0.1, 0.5, 0.9))
    match kind:
        case "steady":
            rates = [top]
        case "step":
            rates = [low if number < pieces // 2 else top for number in range(pieces)]
        case "on and off" | "bursts":
            rates = [top if number % 2 else low for number in range(pieces)]
        case "sinusoid":
            waves = dice.uniform(0.5, 4)
            rates = [top * (1 - np.cos(2 * np.pi * waves * number / pieces)) / 2 for number in range(pieces)]
        case "random":
            rates = [dice.uniform(0, 1) ** 3 * top for _ in range(pieces)]
        case _:
            rates = [top * number / pieces for number in range(pieces)]
    return (0.0, *inner, end), tuple(min(float(rate), peak) for rate in rates)


def random_costs(dice: Random) -> Costs:
    full = 10 ** dice.uniform(-7, -5)
    batch = dice.uniform(0.05, 0.4)
    return Costs(batch, full, full / dice.uniform(3, 20), dice.uniform(0.05, 0.5))


def forced(told: Told) -> bool:
    """Whether each record that a batch leaves unread lies before a deadline that reading all would miss.

    Worked out again, from what the scheduler was told: all that waits is read, what is to come is left unread.
    """
    promised = [queue for queue in told.queues if queue.promised]
    dues = sorted({due.due for queue in promised for due in queue.dues})
    allowed = {queue.stream: queue.start for queue in promised}
    costs, now = told.costs, told.now
    for instant in dues:
        mine = {q.stream: [due for due in q.dues if due.due <= instant] for q in promised}
        records = coming = 0.0
        reach = {}
        for queue in promised:
            if mine[queue.stream]:
                last = mine[queue.stream][-1]
                reach[queue.stream] = stop = max(queue.start, min(last.stop, queue.arrived))
                records += stop - queue.start
                if last.stop > queue.arrived:
                    coming += queue.rate * max(0.0, last.ready - now)
        work = records * costs.full + coming * costs.skip + sum(map(len, mine.values())) * costs.close
        later = sorted((d for q in promised for d in mine[q.stream] if d.stop > q.arrived), key=lambda due: due.due)
        luck = _kept_for_luck(instant, now, [d for q in promised for d in mine[q.stream] if d.due == instant], costs)
        if work + _batches(now, later, costs) * costs.batch > instant - now - luck - 1e-9:
            allowed.update(reach)
    ranges = ((queue.stream, stop, k) for queue in promised for stop, k in told.plan.ranges[queue.stream])
    return all(stop <= allowed[stream] for stream, stop, k in ranges if k)


def _kept_for_luck(due: float, now: float, dues: Sequence[Due], costs: Costs) -> float:
    """What the last two batches of a window may take longer than others."""
    ready = max(one.ready for one in dues)
    last = min(due - now, 2 * (due - ready)) if ready > now else due - now
    return max(0.0, last) * (1 - 1 / costs.margin)


def _batches(now: float, dues: Sequence[Due], costs: Costs) -> int:
    """The next one, and one for each window that ends too late for the one before."""
    count, last = 1, now
    for due in dues:
        if due.ready > last:
            count, last = count + 1, max(due.ready, due.due - costs.batch - costs.close)
    return count
