"""How penstock's memory grows with the stream: the same queries on n and on 10 n records of the same rate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.comparisons.peers import run_engine
from benchmarks.data import files as data
from benchmarks.measure import jobs
from benchmarks.measure.job import DISCARD, Answer

TIMES = 10
MOST_ROWS = 1_000_000  # of the shorter stream
PEAKS = ("lfta_peak_bytes", "merge_peak_bytes")


def growth(
    work: Path, rows: int, queries: int, progress: Callable[[str], None], timeout: float = 3600.0
) -> dict[str, Any]:
    """Peak memory of tasks at `rows` and ten times as many, and the quotients; `note` where a run has no figures."""
    rows = min(rows, MOST_ROWS)
    short = data.flows(work, rows, progress)
    runs: list[dict[str, Any]] = []
    for count in (rows, rows * TIMES):
        file = data.flow_file(work, count, rows / data.SPAN, progress)
        progress(f"penstock: memory at {count:,} records")
        # The same micro-batches in both runs: only the length of the stream differs.
        given = replace(short, file=file, rows=count)
        job = replace(jobs.job_of(given, queries, work), mode="auto", sink=DISCARD, batch_rows=max(1, rows // 10))
        answer = run_engine("penstock", "", job, timeout)
        if not isinstance(answer, Answer):
            return {"note": answer}
        if "memory" not in answer.extra:
            return {"note": "the engine gave no memory figures"}
        runs.append({"rows": count, **answer.extra["memory"]})
    return {"queries": queries, "runs": runs, "growth": _quotients(*runs)}


def _quotients(small: dict[str, Any], large: dict[str, Any]) -> dict[str, float]:
    """Peak above what a worker has before its first task, where the engine says that, against the same."""
    quotients = {}
    for name in PEAKS:
        before, after = (run.get(name, 0) - run.get("baseline_bytes", 0) for run in (small, large))
        if before > 0:
            quotients[name] = round(after / before, 3)
    return quotients
