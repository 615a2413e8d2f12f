"""Spark batch as a careful user would write it: one base aggregate by all attributes, cached, and roll-ups from it.

The base has a group for each window and combination of all attributes; every aggregation sums up its counts and sums.
Roll-ups are jobs of their own, as many at a time as there are threads.  Each execution makes the base again.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.engines import session
from benchmarks.measure.cpu import spent
from benchmarks.measure.digest import digest_files
from benchmarks.measure.job import PARQUET, Answer, EngineJob, elapsed, serve


def run(job: EngineJob) -> Answer:
    spark = session.start(job)
    try:
        _execute(spark, job)
        cold = elapsed(job)
        warm, cpu, groups = spent(lambda: _execute(spark, job))
        digests = _digests(job) if job.sink == PARQUET else ()
        return Answer(spark.version, warm, job.rows, cold, digests, extra={"base_groups": groups}, cpu_seconds=cpu)
    finally:
        spark.stop()


def _execute(spark: Any, job: EngineJob) -> int:
    """Base and roll-ups; returns the number of groups of the base."""
    from pyspark.sql import functions as f

    window = f.expr(f"unix_micros({job.time}) div {job.window} * {job.window}").alias("window_start")
    flows = spark.read.parquet(job.file).select(*job.attributes, job.value, window)
    base = flows.groupBy("window_start", *job.attributes).agg(f.count("*").alias("n"), f.sum(job.value).alias("total"))
    base = base.persist()
    groups: int = base.count()

    def roll_up(number: int) -> None:
        keys = job.queries[number]
        sums = (f.sum("n").alias("n"), f.sum("total").alias("total"))
        session.write(base.groupBy("window_start", *keys).agg(*sums), job, f"{job.work}/out-{number}")

    with ThreadPoolExecutor(job.threads) as pool:
        list(pool.map(roll_up, range(len(job.queries))))
    base.unpersist(blocking=True)
    return groups


def _digests(job: EngineJob) -> tuple[str, ...]:
    rest = ("window_start", "n", "total")
    return tuple(
        str(digest_files(sorted(Path(f"{job.work}/out-{number}").glob("*.parquet")), [*keys, *rest]))
        for number, keys in enumerate(job.queries)
    )


if __name__ == "__main__":
    serve(run)
