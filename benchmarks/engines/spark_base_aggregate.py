"""Spark batch as a careful user would write it: one base aggregate by the finest keys, cached, and roll-ups from it.

The base has a group for each window and combination of the keys that all others can be told from; every aggregation
sums up its counts and sums.  Roll-ups are jobs of their own, as many at a time as there are threads.  Each execution
makes the base again.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.engines import session
from benchmarks.measure.cpu import spent
from benchmarks.measure.digest import digest_files
from benchmarks.measure.job import PARQUET, Answer, EngineJob, elapsed, serve
from benchmarks.measure.keys import Key, finest, keys_of


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
    finest_keys = finest(job.queries)
    flows = spark.read.parquet(job.file).select(*(session.key(one) for one in finest_keys), job.value, window)
    names = [one.name for one in finest_keys]
    base = flows.groupBy("window_start", *names).agg(f.count("*").alias("n"), f.sum(job.value).alias("total"))
    base = base.persist()
    groups: int = base.count()

    def roll_up(number: int) -> None:
        keys = [_rolled(f, one, finest_keys) for one in keys_of(job.queries[number])]
        sums = (f.sum("n").alias("n"), f.sum("total").alias("total"))
        session.write(base.groupBy("window_start", *keys).agg(*sums), job, f"{job.work}/out-{number}")

    with ThreadPoolExecutor(job.threads) as pool:
        list(pool.map(roll_up, range(len(job.queries))))
    base.unpersist(blocking=True)
    return groups


def _rolled(f: Any, key: Key, base: tuple[Key, ...]) -> Any:
    """A key from the base's."""
    finer = next(one for one in base if one.feeds(key))
    return f.expr(f"shiftright({finer.name}, {finer.cut(key)})").alias(key.name) if finer != key else f.col(key.name)


def _digests(job: EngineJob) -> tuple[str, ...]:
    rest = ("window_start", "n", "total")
    return tuple(
        str(digest_files(sorted(Path(f"{job.work}/out-{number}").glob("*.parquet")), [*job.names(number), *rest]))
        for number in range(len(job.queries))
    )


if __name__ == "__main__":
    serve(run)
