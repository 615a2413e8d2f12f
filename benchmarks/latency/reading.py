"""Undragged: nanoseconds of one core for each record that arrives, through whole tasks of a dozen queries, by source.

    all records read ──► C_full        one of 64, one of 1,024 read ──► C_skip, but for the few that are read

A task is what a worker does of a batch: source, keys, tables, segment. Files are in the system's cache; of some
repetitions the best counts. Time is that of the processor, because others may use the machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import penstock
from benchmarks.latency import queries
from penstock.app.record_files import writer_of
from penstock.runtime.batch.job import columns
from penstock.runtime.epoch import Epoch
from penstock.runtime.settings import TaskSettings
from penstock.sharing.plan import SharedPlan
from penstock.sources.base import START, Position, Source, Split
from penstock.sources.live.picking import read_picks
from penstock.sources.registry import open_source
from penstock.triage.picks import MOST, Picks

Progress = Callable[[str], None]

ROWS = 4_000_000
STEPS = (6, 10)  # k
GOAL = 10.0  # times as cheap, of mapped Arrow files
TIMES = 3
KEY = 0x5EED
SOURCES = ("arrow", "pcap", "generate", "parquet")
SIZES = {"pcap": "length"}  # the column that is summed up


def measured(work: Path, rows: int, tell: Progress) -> Iterator[dict[str, Any]]:
    """A line for each source."""
    rows = max(rows >> MOST, 1) << MOST
    for kind, place in written(work, rows, tell).items():
        tell(f"reading {kind}: {rows:,} records through {len(queries.SELECTS)} queries")
        yield line(kind, place, rows)


def written(work: Path, rows: int, tell: Progress) -> dict[str, str]:
    """The same flow records in files of every kind."""
    generated, work = open_source("generate:flows", {"rows": str(rows)}), work / "reading"
    work.mkdir(parents=True, exist_ok=True)
    for suffix in ("parquet", "pcap"):
        path = work / f"{rows}.{suffix}"
        if not path.exists():
            tell(f"reading: writing {path.name}")
            writer_of(path)(generated, path, lambda done: None)
    mapped = work / f"{rows}.arrow"
    if not mapped.exists():
        table = pq.read_table(work / f"{rows}.parquet")
        with pa.OSFile(str(mapped), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=65_536)
    files = {"arrow": mapped, "pcap": work / f"{rows}.pcap", "parquet": work / f"{rows}.parquet"}
    return {kind: f"{kind}:{files[kind]}" if kind in files else "generate:flows" for kind in SOURCES}


def line(kind: str, place: str, rows: int) -> dict[str, Any]:
    options = {"rows": str(rows)} if kind == "generate" else {}
    plan, source = _plan(kind, place, options), open_source(place, options)
    split, settings = Split(START, Position(rows)), TaskSettings()
    full = _best(
        partial(_task, plan.exact, lambda: source.read(split, columns(plan.exact), settings.chunk_rows), 0, None)
    )
    found: dict[str, Any] = {
        "engine": kind,
        "version": "",
        "work": f"{len(queries.SELECTS)} queries, whole tasks",
        "part": "reading",
        "rows": rows,
        "seconds": round(full, 4),
        "ratio_to_penstock": None,
        "same_answer": None,
        "full_ns": round(1e9 * full / rows, 2),
        "note": "",
    }
    for k in STEPS:
        seconds = _best(partial(_picked, plan, source, split, k))
        found |= {f"ns_1_in_{1 << k}": round(1e9 * seconds / rows, 2), f"ratio_1_in_{1 << k}": round(full / seconds, 2)}
    return found


def _plan(kind: str, place: str, options: dict[str, str]) -> SharedPlan:
    """The shared plan that a run would begin with."""
    text = queries.app_text(SIZES.get(kind, "bytes"))
    more = "".join(f", {name} = {value}" for name, value in options.items())
    text = text.replace("WITH (speed = ${speed})", "WITH (speed = ${speed}" + more + ")")
    app = penstock.App().sql(text, "latency.sql", {"stream": place, "speed": "1", "promise": "2"})
    (plan,) = app.plans()
    return plan


def _picked(plan: SharedPlan, source: Source, split: Split, k: int) -> float:
    picks = Picks(k, KEY)
    rows = TaskSettings().chunk_rows
    return _task(
        plan, lambda: read_picks(source, split, columns(plan), rows, picks), k, picks.rows(split.start, split.stop)
    )


def _task(plan: SharedPlan, reading: Callable[[], Iterator[pa.RecordBatch]], k: int, picked: Any) -> float:
    from penstock.runtime.task.task import run_task  # numba is slow to load

    with TemporaryDirectory(prefix="reading-") as folder:
        began = time.process_time()
        run_task(plan, TaskSettings(), Epoch(0, step=k), reading(), Path(folder) / "0.seg", picked=picked)
        return time.process_time() - began


def _best(task: Callable[[], float]) -> float:
    """The first time also compiles kernels."""
    return min(task() for _ in range(TIMES + 1))
