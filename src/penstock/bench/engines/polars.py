"""Polars in process: all aggregations as lazy frames over one scan, collected together."""

from __future__ import annotations

import os
from typing import Any

from penstock.bench.job import Answer, Job, elapsed, serve, timed


def run(job: Job) -> Answer:
    os.environ["POLARS_MAX_THREADS"] = str(job.threads)  # read when polars is imported
    import polars

    from penstock.bench.digest import digest_batches

    def execute() -> list[Any]:
        engine = "streaming" if job.mode == "streaming" else "auto"
        frames: list[Any] = polars.collect_all(_frames(polars, job), engine=engine)
        return frames

    results = execute()
    cold = elapsed(job)
    digests = tuple(
        str(digest_batches(frame.to_arrow().to_batches(), [*keys, "window_start", "n", "total"]))
        for keys, frame in zip(job.queries, results, strict=True)
    )
    del results
    warm, _ = timed(execute)
    return Answer(polars.__version__, warm, job.rows, cold, digests)


def _frames(polars: Any, job: Job) -> list[Any]:
    window = polars.col(job.time).dt.epoch("us") // job.window * job.window
    flows = polars.scan_parquet(job.file).select(
        *job.attributes, polars.col(job.value).cast(polars.Int64), window.alias("window_start")
    )
    aggregates = (polars.len().alias("n"), polars.col(job.value).sum().alias("total"))
    return [flows.group_by(*keys, "window_start").agg(*aggregates) for keys in job.queries]


if __name__ == "__main__":
    serve(run)
