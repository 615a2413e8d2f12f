"""Events for the operator: increments and decrements of windows, in the order in which they happen.

| window | a record comes | and goes |
| --- | --- | --- |
| sliding, T | at its time ts | at ts + T |
| tumbling, T | at ts | at the next multiple of T |
| landmark | at ts | never |
| relation | before everything | never |
| the last w records | at ts | with the w-th record after it |

At an instant t a window holds what came before t and has not gone before t: [t − T, t) of a sliding one (Definition 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from experiments.join import layout as at
from experiments.join.operator import JoinedStream, Words

NEVER = np.iinfo(np.int64).max
SLIDING, TUMBLING, LANDMARK, RELATION = "sliding", "tumbling", "landmark", "relation"


@dataclass(frozen=True)
class Records:
    """Of one stream, by time: G, J, A of each."""

    times: Words
    groups: Words
    keys: Words
    values: Words

    def __len__(self) -> int:
        return len(self.times)


@dataclass(frozen=True)
class TimeWindow:
    kind: str
    length: int = 0

    def comes(self, times: Words) -> Words:
        return np.full(len(times), -NEVER, np.int64) if self.kind == RELATION else times

    def goes(self, times: Words) -> Words:
        if self.kind == SLIDING:
            return times + self.length
        if self.kind == TUMBLING:
            return (times // self.length + 1) * self.length
        return np.full(len(times), NEVER, np.int64)


def drawn(rng: np.random.Generator, times: Words, groups: int, keys: int, values: int = 1000) -> Records:
    """As the paper's generator: attributes independent and uniform."""
    count = len(times)
    return Records(times, rng.integers(0, groups, count), rng.integers(0, keys, count), rng.integers(0, values, count))


def at_rate(rate: int, units: int, phase: float = 0.0) -> Words:
    """Times of records that come evenly, `rate` in each of so many units of time (of a million)."""
    return ((np.arange(rate * units) + phase) * 1_000_000 / rate).astype(np.int64)


def timed_events(streams: Sequence[Records], windows: Sequence[TimeWindow]) -> tuple[Words, Words]:
    """When, and what; at equal times records go before others come."""
    parts = []
    for k, (records, window) in enumerate(zip(streams, windows, strict=True)):
        goes = window.goes(records.times)
        parts += [_coming(k, records, window.comes(records.times)), _going(k, goes[goes < NEVER])]
    times, events = (np.concatenate(part) for part in zip(*parts, strict=True))
    order = np.lexsort((events[:, at.SIGN], times))
    return times[order], events[order]


def counted_events(streams: Sequence[Records], sizes: Sequence[int]) -> tuple[Words, Words]:
    """Windows of the last w records: one comes, then the oldest goes (Algorithm 1)."""
    parts, steps = [], []
    for k, (records, size) in enumerate(zip(streams, sizes, strict=True)):
        parts += [_coming(k, records, records.times), _going(k, records.times[size:])]
        steps += [np.arange(len(records)) * 2, np.arange(size, max(size, len(records))) * 2 + 1]
    times, events = (np.concatenate(part) for part in zip(*parts, strict=True))
    order = np.lexsort((np.concatenate(steps), events[:, at.STREAM], times))
    return times[order], events[order]


def spans(streams: Sequence[Records], windows: Sequence[TimeWindow]) -> list[JoinedStream]:
    """What the operator must have room for."""
    found = []
    for records, window in zip(streams, windows, strict=True):
        comes, goes = np.sort(window.comes(records.times)), np.sort(window.goes(records.times))
        held = np.arange(1, len(records) + 1) - np.searchsorted(goes, comes, "right")
        found.append(
            JoinedStream(
                max(1, int(held.max(initial=0))), int(records.groups.max(initial=0)) + 1,
                int(records.keys.max(initial=0)) + 1,
            )
        )  # fmt: skip
    return found


def _coming(k: int, records: Records, times: Words) -> tuple[Words, Words]:
    made = np.empty((len(records), at.EVENT_COLUMNS), np.int64)
    made[:, at.STREAM], made[:, at.SIGN] = k, 1
    made[:, at.EVENT_GROUP], made[:, at.EVENT_KEY] = records.groups, records.keys
    made[:, at.EVENT_VALUE] = records.values
    return times, made


def _going(k: int, times: NDArray[np.int64]) -> tuple[Words, Words]:
    made = np.zeros((len(times), at.EVENT_COLUMNS), np.int64)
    made[:, at.STREAM], made[:, at.SIGN] = k, -1
    return times, made
