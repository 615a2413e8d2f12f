"""What penstock's tasks on both streams of a join take, beside the least that there is to do: decode the columns, and
probe one exact table for each record.

| figure | what |
| --- | --- |
| tasks | from the file to the segment, in splits as large as those of a micro-batch: `runtime.task.task` |
| decode | the same splits and columns, read by the same source, and dropped |
| probe | keys of one word (join key, group, pane), packed beforehand, hashed and probed in a new table a split |

All is processor time of this process, without Spark and driver. Rounds of the three alternate; medians count, of all
rounds but the first. The job's mode is the value of `--joins`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.engines.joins.penstock import joins_of, opened
from benchmarks.engines.penstock import _version
from benchmarks.measure.job import Answer, JoinJob, elapsed, serve_joins
from penstock.kernels.tables.probe import empty_index, hashed, probe_exact
from penstock.runtime.batch.job import columns
from penstock.runtime.epoch import Epoch
from penstock.runtime.machine import without_huge_pages
from penstock.runtime.settings import TaskSettings
from penstock.runtime.task.task import run_task
from penstock.sharing.plan import SharedPlan
from penstock.sources.base import START, Source, Split

Array = np.ndarray
ROUNDS = 5
FRESH = np.zeros(2, np.uint64)  # count(*) and one state, as rows of a side have them
NO_WEIGHTS = np.empty(0, np.int64)


@dataclass(frozen=True)
class Side:
    """A stream with its plan, and the splits of its tasks: each with its packed keys, and their number."""

    source: Source
    plan: SharedPlan
    splits: tuple[tuple[Split, Array, int], ...]


def run(job: JoinJob) -> Answer:
    without_huge_pages()  # as workers do
    sides = list(_sides(job))
    path = Path(job.work) / "task.seg"
    parts: dict[str, Callable[[], None]] = {
        "tasks": lambda: _tasks(sides, path),
        "decode": lambda: _decode(sides),
        "probe": lambda: _probe(sides),
    }
    for action in parts.values():
        action()
    cold = elapsed(job)
    rounds = [{name: _spent(action) for name, action in parts.items()} for _ in range(ROUNDS)]
    seconds = {name: median(each[name] for each in rounds) for name in parts}
    ratio = median(each["tasks"] / (each["decode"] + each["probe"]) for each in rounds)
    figures = {f"{name}_ns": round(1e9 * spent / (2 * job.rows), 1) for name, spent in seconds.items()}
    extra = {**figures, "tasks_ratio": round(ratio, 3), "tasks": sum(len(side.splits) for side in sides)}
    return Answer(_version(), seconds["tasks"], 2 * job.rows, cold, (), extra=extra, cpu_seconds=seconds["tasks"])


def _spent(action: Callable[[], None]) -> float:
    began = time.process_time()
    action()
    return time.process_time() - began


def _sides(job: JoinJob) -> Iterator[Side]:
    app = opened(job)
    sources = app.inputs(app.query_set()).sources
    plans = app.plans(joins=joins_of(job.mode), batch_rows=job.batch_rows, parallelism=job.threads)
    by_stream = {plan.stream.name: plan for plan in plans}
    for name, file in (("a", job.left), ("b", job.right)):
        splits = _splits(sources[name], job)
        keys = packed(pq.read_table(file), job.slide)
        parts = [keys[:, split.start : split.stop] for split in splits]
        counts = [len(np.unique(part)) for part in parts]
        yield Side(sources[name], by_stream[name], tuple(zip(splits, parts, counts, strict=True)))


def _splits(source: Source, job: JoinJob) -> list[Split]:
    """Those of micro-batches of this stream alone."""
    found, at = list[Split](), START
    while at < job.rows:
        stop = source.cut(at, job.batch_rows)
        found += source.splits(at, stop, job.threads)
        at = stop
    return found


def packed(stream: pa.Table, slide: int) -> Array:
    """A word for each record: join key, group and pane, in fields that are as wide as they must be."""
    key, group = (stream.column(number).to_numpy().astype(np.int64) for number in (1, 2))
    panes = stream.column(0).cast(pa.int64()).to_numpy() // slide
    words = np.zeros(len(key), np.int64)
    for part in (key, group, panes - panes.min()):
        words = (words << int(part.max()).bit_length()) | part
    return words.view(np.uint64).reshape(1, -1)


def _tasks(sides: list[Side], path: Path) -> None:
    settings: Any = TaskSettings()
    for side in sides:
        names = columns(side.plan)
        for number, (split, _, _) in enumerate(side.splits):
            batches = side.source.read(split, names, settings.chunk_rows)
            run_task(side.plan, settings, Epoch(number, row=split.start), batches, path)
            path.unlink()


def _decode(sides: list[Side]) -> None:
    rows = TaskSettings().chunk_rows
    for side in sides:
        names = columns(side.plan)
        for split, _, _ in side.splits:
            for _ in side.source.read(split, names, rows):
                pass


def _probe(sides: list[Side]) -> None:
    for side in sides:
        for _, keys, groups in side.splits:
            probe_all(keys, groups)


def probe_all(keys: Array, groups: int) -> int:
    """Probe all keys in a new table with room for so many groups; returns the groups that there are."""
    rows, at = np.empty((groups, len(keys) + len(FRESH)), np.uint64), np.empty(keys.shape[1], np.int64)
    hashes = hashed(keys)
    done, count = probe_exact(keys, hashes, 0, len(at), NO_WEIGHTS, 0, FRESH, empty_index(groups), rows, at)
    assert done == len(at), "the table is full"
    return int(count)


if __name__ == "__main__":
    serve_joins(run)
