"""What a run said of the windows of a burst, beside what is true: the figures that demo and picture show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from penstock.app.demos.burst import SECOND, START
from penstock.errors import RunError

Array = np.ndarray
MEASURES = ("bytes", "exact_bytes", "estimated_bytes", "error_bytes")


@dataclass(frozen=True)
class Told:
    """A window of a query without groups. Times in seconds from the beginning of the trace; `late` is its delay."""

    start: float
    end: float
    read: int
    estimated: int
    late: float
    overdue: bool
    bytes: float
    error: float
    truth: float

    @property
    def off(self) -> float:
        """How far the sum is from the truth, as a part of that."""
        return (self.bytes - self.truth) / self.truth

    @property
    def promised(self) -> float:
        """One standard error, as a part of the sum."""
        return self.error / self.bytes


def told(kept: Sequence[Mapping[str, Any]], results: pa.Table, truth: pa.Table) -> list[Told]:
    """By window: its account, its only row, and that of the truth (`burst.sums`), all in order."""
    rows = results.sort_by("window_start").select(["bytes", "error_bytes"]).to_pylist()
    return [
        Told(
            (one["start"] - START) / SECOND,
            (one["end"] - START) / SECOND,
            one["exact"],
            one["triaged"],
            one.get("delay", 0) / SECOND,
            bool(one.get("overdue")),
            row["bytes"],
            row["error_bytes"] or 0.0,
            true,
        )
        for one, row, true in zip(kept, rows, truth["bytes"].to_pylist(), strict=True)
    ]


def read_results(folder: Path, query: str) -> pa.Table:
    """All rows that a query has written."""
    files = sorted((folder / "results" / query).glob("*.parquet"))
    if not files:
        raise RunError(f"query '{query}' wrote no rows", "run the demo again")
    return pa.concat_tables([pq.read_table(file) for file in files])


def group_windows(results: pa.Table, truth: pa.Table, key: str, value: int, seconds: int) -> dict[str, Array]:
    """One group over time: `MEASURES` and `truth` of each window, 0 where it has no row."""
    size = int(pc.max(truth["window"]).as_py()) + 1
    mine, true = (table.filter(pc.equal(table[key], value)) for table in (results, truth))
    at = (mine["window_start"].cast(pa.int64()).to_numpy() - START) // (seconds * SECOND)
    found = {name: _placed(size, at, mine[name].to_numpy()) for name in MEASURES}
    return found | {"truth": _placed(size, true["window"].to_numpy(), true["bytes"].to_numpy())}


def _placed(size: int, at: Array, values: Array) -> Array:
    placed = np.zeros(size)
    placed[at] = values
    return placed


def reading(batches: Sequence[Mapping[str, Any]], stream: str, times: Array) -> tuple[Array, Array]:
    """By batch: when it was decided, in seconds of the trace, and how many records it read. `times` are the trace's."""
    at, reads, start = [], [], 0
    for batch in batches:
        offset = batch["offsets"]["streams"][stream]
        if "arrived" in offset:
            ranges = offset.get("ranges") or [(offset["row"], 0)]
            at.append((times[min(offset["arrived"], len(times)) - 1] - START) / SECOND if offset["arrived"] else 0.0)
            reads.append(_read(start, ranges))
        start = offset["row"]
    return np.array(at), np.array(reads)


def _read(start: int, ranges: Sequence[Sequence[int]]) -> int:
    count = 0
    for stop, k in ranges:
        count += (stop - start) >> k
        start = stop
    return count
