"""A batch in the making: segments in the order of their deadlines, as many records as it may hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf

from penstock.triage.deadlines import ODD, Outlook, Segment
from penstock.triage.plan import Costs
from penstock.triage.ranges import aligned


def filled(view: Outlook, costs: Costs, span: float, batch_rows: int, rate: float) -> Draft:
    """What the next batch takes of streams with promises; `rate` is that of all of them."""
    draft = Draft(view, costs, span, batch_rows)
    draft.fill(rate)
    return draft


@dataclass
class Draft:
    """A batch in the making. By deadline: the seconds to spare with all records read, and with the least of them."""

    view: Outlook
    costs: Costs
    span: float
    batch_rows: int
    taken: dict[str, list[tuple[int, float]]] = field(default_factory=dict)
    exact: list[float] = field(default_factory=list)
    least: list[float] = field(default_factory=list)
    spent: float = 0.0  # seconds, but for what each batch costs
    read: int = 0
    closes: int = 0

    def __post_init__(self) -> None:
        exact = least = 0.0
        for one, time in zip(self.view.segments, self.view.times, strict=True):
            records = one.records + one.coming
            exact += records * self.costs.full
            least += records * self.costs.price(one.steepest)
            self.exact.append(time - exact)
            self.least.append(time - least)

    def fill(self, rate: float) -> None:
        """Take segments in order, until one does not fit whole."""
        lost = _lost(self.view.segments, self.least)
        for number, one in enumerate(self.view.segments):
            step = self.view.steps[number] if number < self.view.forced else 1.0
            count = self._fitting(number, one, step, number < lost)
            soon = number >= self.view.forced and self.view.steps[number] > 1
            if one.records and soon and one.ready > -inf:  # of what can close now nothing more will come
                count = min(count, self._before_forced(number, rate))
            whole = count >= one.records
            self._take(number, one, count, step, whole)
            if not whole:
                return

    def _fitting(self, number: int, one: Segment, step: float, lost: bool) -> int:
        """How many of a segment's records may be in the batch; of those that are late anyway, what can be read."""
        price, least = self.costs.price(step), self.costs.price(one.steepest)
        seconds = inf
        if self.closes or one.ready > -inf:
            seconds = self.span - self.costs.batch - self.spent
        after = min((left for left in self.least[number:] if left >= 0), default=inf)
        if price > least:
            seconds = min(seconds, after * price / (price - least))
        if not lost:
            before = min(self.least[:number], default=inf)
            close = self.costs.close if one.closes and one.ready == -inf else 0.0
            seconds = min(seconds, before - close)
        if seconds <= 0:
            return -1
        seconds += ODD * self.costs.batch  # a rest costs a whole batch
        return int(min(float(one.records), seconds / price, (self.batch_rows - self.read) * step))

    def _before_forced(self, number: int, rate: float) -> int:
        """Where a step will be forced soon: what can be read until then, if that is worth a batch."""
        if self.spent > 0:
            return -1
        view, costs = self.view, self.costs
        records = coming = 0.0
        soon = inf
        for other, (one, time) in enumerate(zip(view.segments, view.times, strict=True)):
            records, coming = records + one.records, coming + one.coming
            if other >= number:
                spare = time - records * costs.full - coming * costs.skip
                soon = min(soon, spare / (rate * (costs.full - costs.skip)) if rate > 0 else inf)
        seconds = soon - costs.batch
        return -1 if seconds < costs.batch else int(min(seconds / costs.full, 1e18))

    def _take(self, number: int, one: Segment, count: int, step: float, whole: bool) -> None:
        if count < 0:
            return
        stop = one.stop if whole else one.start + count
        if not (whole and one.closes and one.ready == -inf):
            stop = aligned(one.start, stop, step)
        count = stop - one.start
        closing = self.costs.close if whole and one.closes and one.ready == -inf else 0.0
        price, seconds = self.costs.price(step), count * self.costs.price(step) + closing
        for other in range(len(self.exact)):
            if other < number:
                self.exact[other] -= seconds
                self.least[other] -= seconds
            else:
                self.exact[other] += count * (self.costs.full - price)
                self.least[other] -= count * (price - self.costs.price(one.steepest))
        self.spent += seconds
        self.read += round(count / step)
        self.closes += closing > 0
        if count:
            self.taken.setdefault(one.stream, []).append((stop, step))


def _lost(segments: Sequence[Segment], least: Sequence[float]) -> int:
    """How many segments stand before the end of those that can be closed, but too late: they go into one batch."""
    late = [n + 1 for n, one in enumerate(segments) if least[n] < 0 and one.ready == -inf]
    return max(late, default=0)
