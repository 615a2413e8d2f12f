"""A second oracle, slow and simple: one tuple and one batch at a time, windows found by trying their numbers.

It checks `oracle` on small inputs, so it shares nothing with it but the window's own numbers: a query keeps the tuples
of its open windows, closes windows as batches end, and hands its rows to the query on top of it.  Values are a key
and a number; results are (start, end, key, count, sum).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from penstock.logical.window import ROWS, Window

NUMBERS = range(-70, 70)  # of the windows that are tried
Key = int | None
Record = tuple[int | None, Key, int]  # time, key, value
Row = tuple[int, int, Key, int, int]


@dataclass
class SimulatedQuery:
    """`after`, `first_row` and `first_batch` are those of a query that was added later."""

    window: Window
    passes: Callable[[int], bool] = lambda value: True
    malformed: Callable[[Key], bool] = lambda key: False
    after: int | None = None
    first_row: int | None = None
    first_batch: int = 0
    fates: Counter[str] = field(default_factory=Counter)
    results: list[Row] = field(default_factory=list)
    _held: dict[int, list[tuple[Key, int]]] = field(default_factory=lambda: defaultdict(list))
    _times: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))  # of windows of rows
    _seen: list[tuple[int, Key, int]] = field(default_factory=list)  # by landmark windows
    _emitted: set[int] = field(default_factory=set)
    _landmark: int | None = None
    _greatest: int | None = None
    _watermark: int | None = None  # of the batch before

    def pass_by(self, time: int) -> None:
        """A good time of the stream, also where the query does not read the tuple."""
        self._greatest = time if self._greatest is None else max(self._greatest, time)
        if self._landmark is None:
            slide = self.window.slide
            self._landmark = time // slide * slide if self.after is None else (self.after // slide + 1) * slide

    def take(self, time: int | None, position: int, key: Key, value: int) -> None:
        """One tuple of the stream; `time` None: it has no usable one."""
        if self.window.axis == ROWS and time is not None:
            for k in self._holding(position):
                self._times[k].append(time)
        if time is None or self.malformed(key):
            self.fates["malformed"] += 1
        elif self.window.range is None:
            self._accumulate(time, key, value)
        else:
            self._count(self._holding(position if self.window.axis == ROWS else time), key, value)

    def close(self, watermark: int | None, rows: int, over: bool) -> list[Row]:
        """The batch has ended: rows of the windows that it closes."""
        self._watermark = watermark
        found = []
        for k in NUMBERS:
            if k not in self._emitted and self._due(k, rows, over):
                self._emitted.add(k)
                found += self._rows(k)
        self.results += found
        return found

    def _holding(self, place: int) -> list[int]:
        size, slide = self.window.range or 0, self.window.slide
        return [k for k in NUMBERS if k * slide <= place < k * slide + size]

    def _count(self, holding: list[int], key: Key, value: int) -> None:
        if not self.passes(value) or not holding:
            self.fates["filtered"] += 1
            return
        open_ = [k for k in holding if self._exists(k) and k not in self._emitted and not self._closed(k)]
        self.fates["exact" if open_ else "late"] += 1
        for k in open_:
            self._held[k].append((key, value))

    def _accumulate(self, time: int, key: Key, value: int) -> None:
        if not self.passes(value):
            self.fates["filtered"] += 1
        elif self._landmark is not None and time >= self._landmark:
            self.fates["exact"] += 1
            self._seen.append((time, key, value))
        else:
            self.fates["late"] += 1

    def _exists(self, k: int) -> bool:
        start = k * self.window.slide
        if self.window.axis == ROWS:
            return self.first_row is None or start >= self.first_row
        return self.after is None or start > self.after

    def _end(self, k: int) -> int:
        return k * self.window.slide + (self.window.range or self.window.slide)

    def _closed(self, k: int) -> bool:
        return self.window.axis != ROWS and self._watermark is not None and self._end(k) <= self._watermark

    def _due(self, k: int, rows: int, over: bool) -> bool:
        if self.window.axis == ROWS:
            return over or self._end(k) <= rows
        if self.window.range is None:
            last = over and self._greatest is not None and k * self.window.slide <= self._greatest
            return last or self._closed(k)
        return over or self._closed(k)

    def _rows(self, k: int) -> list[Row]:
        start, end, tuples = k * self.window.slide, self._end(k), self._held[k]
        if self.window.range is None:
            start, tuples = self._landmark or 0, [(key, value) for time, key, value in self._seen if time < end]
        elif self.window.axis == ROWS and tuples:
            start, end = min(self._times[k]), max(self._times[k])
        groups: dict[Key, list[int]] = defaultdict(list)
        for key, value in tuples:
            groups[key].append(value)
        return [(start, end, key, len(values), sum(values)) for key, values in groups.items()]


def simulate(
    records: Sequence[Record],
    batches: Sequence[int],
    delay: int | None,
    ahead: int | None,
    query: SimulatedQuery,
    above: SimulatedQuery,
) -> None:
    """Run a query on a stream, and another one on its results, whose values are the counts."""
    greatest: int | None = None
    position = 0
    for n, count in enumerate(batches):
        for time, key, value in records[position : position + count]:
            if time is not None and ahead is not None and greatest is not None and time > greatest + ahead:
                time = None
            if time is not None:
                greatest = time if greatest is None else max(greatest, time)
                query.pass_by(time)
            if n >= query.first_batch:
                query.take(time, position, key, value)
            position += 1
        watermark = None if greatest is None or delay is None else greatest - delay
        over = n == len(batches) - 1
        for _, end, key, number, _ in sorted(query.close(watermark, position, over), key=lambda row: row[1]):
            above.pass_by(end)
            above.take(end, 0, key, number)
        above.close(watermark, 0, over)
