"""Polars in process: all aggregations as lazy frames over one scan, collected together or sunk to Parquet files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from benchmarks.measure.cpu import spent
from benchmarks.measure.job import PARQUET, Answer, EngineJob, elapsed, serve


def run(job: EngineJob) -> Answer:
    os.environ["POLARS_MAX_THREADS"] = str(job.threads)  # read when polars is imported
    import polars

    from benchmarks.measure.digest import counted, digest_files

    def execute() -> list[Any]:
        frames = _frames(polars, job)
        if job.sink == PARQUET:
            frames = [frame.sink_parquet(_place(job, number), lazy=True) for number, frame in enumerate(frames)]
        collected: list[Any] = polars.collect_all(frames, engine=job.mode or "auto")
        return collected

    execute()
    cold = elapsed(job)
    warm, cpu, results = spent(execute)
    if job.sink == PARQUET:
        rest = ["window_start", "n", "total"]
        digests = [digest_files([_place(job, number)], [*keys, *rest]) for number, keys in enumerate(job.queries)]
        found = tuple(map(str, digests))
    else:
        found = tuple(counted(frame.height) for frame in results)
    return Answer(polars.__version__, warm, job.rows, cold, found, cpu_seconds=cpu)


def _place(job: EngineJob, number: int) -> Path:
    return Path(job.work) / f"out-{number}.parquet"


def _frames(polars: Any, job: EngineJob) -> list[Any]:
    window = polars.col(job.time).dt.epoch("us") // job.window * job.window
    flows = polars.scan_parquet(job.file).select(
        *job.attributes, polars.col(job.value).cast(polars.Int64), window.alias("window_start")
    )
    aggregates = (polars.len().alias("n"), polars.col(job.value).sum().alias("total"))
    return [flows.group_by(*keys, "window_start").agg(*aggregates) for keys in job.queries]


if __name__ == "__main__":
    serve(run)
