"""From data and a number of queries to a job for an engine; used by all benchmarks on streams of records."""

from __future__ import annotations

from pathlib import Path

from benchmarks.data.files import Data
from benchmarks.measure import machine
from benchmarks.measure.job import EngineJob

BATCH_ROWS = 1_000_000  # fewer where there would be none after the first


def job_of(given: Data, queries: int, work: Path) -> EngineJob:
    """All records of these data, through the first `queries` queries."""
    return EngineJob(
        str(given.file), given.rows, given.queries[:queries], str(work), machine.cores(), 0.0,
        value=given.value, window_seconds=given.window_seconds, delay_seconds=given.delay_seconds,
        batch_rows=min(BATCH_ROWS, max(1, given.rows // 3)),
    )  # fmt: skip
