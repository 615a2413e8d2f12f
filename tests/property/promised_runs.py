"""Runs of queries that promise delays, by a clock and a scheduler that are dice; and what they must show.

What the scheduler would decide depends on the machine. Here any records are left unread: whatever was logged, rows,
accounts and windows must be what the oracle makes of it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from in_process import Engine

from penstock.logical.types import TIMESTAMP
from penstock.runtime.batch import compaction, fused
from penstock.runtime.batch.live import decide
from penstock.testing.asserts import assert_account_closes, assert_same_account, assert_same_rows
from penstock.testing.oracle.columns import read_column
from penstock.testing.oracle.expected import Expected
from penstock.testing.oracle.triage import whole_run
from penstock.testing.oracle.triage.reading import Range
from penstock.triage.picks import DROP, MOST, exact_ends, joined
from penstock.triage.plan import Costs, Mode, Plan, Queue

START = 1_800_000_000_000_000  # microseconds since 1970 on the clock of all runs here
WINDOW = ("window", "start", "end", "rows", "exact", "triaged")


class Clock:
    """The instants that decisions are made at: each run needs about so many of them for its whole stream."""

    def __init__(self, dice: random.Random, time: pa.ChunkedArray, speed: float) -> None:
        self._dice, self._now = dice, START
        self._step = max(1, reach_of(time, speed) // dice.choice([1, 3, 8, 20]))

    def __call__(self, origin: int) -> int:
        self._now += self._dice.randint(0, 2 * self._step)
        return self._now


class Chance:
    """A scheduler that takes any records, of which one in any 2^k is read."""

    def __init__(self, dice: random.Random, rows: int, drop: float) -> None:
        self._dice, self._drop = dice, drop
        self._most = max(1, rows // dice.choice([1, 2, 4, 8]))
        self._piece = max(1, rows // dice.choice([1, 5, 20, 50]))
        self._steps = dice.choice([range(1), range(1, 4), range(7), range(MOST + 1)])

    def __call__(
        self, now: float, queues: Sequence[Queue], costs: Costs, mode: Mode, batch_rows: int, fixed: int = 0
    ) -> Plan | None:
        if self._dice.random() < 0.1:
            return None
        ranges = {queue.stream: self._ranges(queue) for queue in queues}
        return Plan(ranges, self._dice.choice([-1.0, 0.001, float("inf")]), False)

    def _ranges(self, queue: Queue) -> tuple[Range, ...]:
        left = queue.arrived - queue.start
        count = self._dice.choice([left, self._dice.randint(0, left)])
        start, stop = queue.start, queue.start + min(count, self._most)
        if not queue.promised:
            return ((stop, 0),) if stop > start else ()
        found: list[Range] = []
        while start < stop:
            end = min(stop, start + self._dice.randint(1, self._piece))
            dropped = self._dice.random() < self._drop
            found += [(end, DROP)] if dropped else exact_ends(start, end, self._dice.choice(self._steps))
            start = end
        return joined(found)


@contextmanager
def by_chance(patch: pytest.MonkeyPatch, clock: Clock, chance: Chance, dice: random.Random) -> Iterator[None]:
    """Decide so; small ranges have several tasks, too, and there is compaction all the time."""
    with patch.context() as patched:
        patched.setattr(compaction, "MOST", dice.choice([1, 2, 4, 12]))
        patched.setattr(compaction, "FORCED", dice.choice([3, 12, 48]))
        patched.setattr(decide, "instant", clock)
        patched.setattr(decide, "planned", chance)
        patched.setattr(decide.Measured, "learning", False)
        patched.setattr(fused, "LEAST_LIVE", dice.choice([1, 7, 500, fused.LEAST_LIVE]))
        yield


@contextmanager
def at_these_costs(patch: pytest.MonkeyPatch, clock: Clock, costs: Costs) -> Iterator[None]:
    """Decide as the scheduler does, if batches cost so much."""
    with patch.context() as patched:
        patched.setattr(decide, "instant", clock)
        patched.setattr(decide.Measured, "learning", False)
        patched.setattr(decide.Measured, "costs", costs)
        patched.setattr(decide.Measured, "rows", lambda measured, most: most)
        yield


def run_to_end(engine: Engine) -> None:
    """All batches, until the streams have ended."""
    while not engine.driver.manifest.ended:
        engine.step()
    engine.finish()


@dataclass(frozen=True)
class Logged:
    """What a run says of a stream: the records of each batch, their ranges, watermarks after each."""

    batches: tuple[int, ...]
    ranges: tuple[Range, ...]
    watermarks: tuple[int | None, ...]

    @property
    def dropped(self) -> bool:
        return any(k == DROP for _, k in self.ranges)


def logged(summary: Mapping[str, Any], stream: str) -> Logged:
    """By the positions that were decided, not by what tasks told."""
    offsets = [batch["offsets"]["streams"][stream] for batch in summary["batches"]]
    ends = [offset["row"] for offset in offsets]
    batches = [end - start for start, end in zip([0, *ends], ends, strict=False)]
    ranges = [[(stop, k) for stop, k in offset.get("ranges", ())] for offset in offsets]
    marks = [batch["watermark"] for batch in summary["batches"]]
    found = [mark[stream] if isinstance(mark, Mapping) else mark for mark in marks]
    # Of a batch without records there is no range.
    some = [(rows, own) for rows, own in zip(batches, ranges, strict=True) if rows]
    whole = whole_run([rows for rows, _ in some], [own for _, own in some])
    return Logged(tuple(batches), tuple(whole), tuple(found))


def assert_as_expected(
    summary: Mapping[str, Any],
    rows: Mapping[str, pa.Table | None],
    windows: Mapping[str, Sequence[Mapping[str, Any]]],
    expected: Expected,
    log: Logged,
    context: str,
) -> None:
    """Of records that were dropped a run knows about when they came: what windows lost is not compared then."""
    assert_account_closes(summary)
    for name, wanted in expected.rows.items():
        place = f"{context}\nquery {name}"
        assert_rows(rows[name], wanted, log, place)
        told = summary["queries"][name]
        assert told["rows"] == wanted.num_rows, f"{place}: the summary says {told['rows']} rows"
        assert_same_account(told["accounting"], expected.accounts[name], place)
        assert_windows(windows[name], expected.windows[name], log, place)
    assert_same_account(summary["accounting"], expected.stream, f"{context}\nstream")


def assert_rows(actual: pa.Table | None, expected: pa.Table, log: Logged, place: str, errors: bool = True) -> None:
    """With `errors`, unless records were dropped. An estimate of a DOUBLE is a difference, as good as its whole."""
    found = expected.slice(0, 0) if actual is None else actual
    names = [name for name in expected.schema.names if name.startswith("error_")]
    differences = [
        field.name
        for field in expected.schema
        if field.name.startswith("estimated_") and pa.types.is_floating(field.type)
    ]
    left = [*differences, *([] if errors and not log.dropped else names)]
    assert found.schema.names == expected.schema.names, place
    assert_same_rows(found.drop_columns(left), expected.drop_columns(left), place)
    for name in differences:
        assert found.column(name).null_count == expected.column(name).null_count, f"{place}\n{name}"
        of = name.removeprefix("estimated_")
        columns = (found.column(one).to_numpy(zero_copy_only=False) for one in (of, f"exact_{of}", name))
        whole, read, estimated = (column.astype(float) for column in columns)
        known = np.isfinite(whole) & np.isfinite(read) & np.isfinite(estimated)
        off = np.abs(whole[known] - read[known] - estimated[known])
        assert (off <= 1e-9 * np.maximum(np.abs(whole), np.abs(read))[known]).all(), f"{place}\n{name}"


def assert_windows(
    actual: Sequence[Mapping[str, Any]], expected: Sequence[Mapping[str, Any]], log: Logged, place: str
) -> None:
    told = WINDOW[:-1] if log.dropped else WINDOW
    parts = [part for part in told if not expected or part in expected[0]]  # of joins, windows have no number
    theirs, ours = ([{part: one[part] for part in parts} for one in found] for found in (actual, expected))
    for one, other in zip(theirs, ours, strict=False):
        assert one == other, f"{place}: window {one}, expected {other}"
    assert len(theirs) == len(ours), f"{place}: {len(theirs)} windows have an account, expected {len(ours)}"


def reach_of(time: pa.ChunkedArray, speed: float) -> int:
    """Microseconds on the clock for all of a stream, by its times."""
    known = read_column(time, TIMESTAMP).array.drop_null().to_numpy(zero_copy_only=False)
    return int((int(known.max()) - int(known.min())) / speed) + 1
