"""Spark batch: all aggregations as one GROUPING SETS query, to Parquet files or to the `noop` sink."""

from __future__ import annotations

from typing import Any

import pyarrow.compute as pc
import pyarrow.dataset as ds

from benchmarks.engines import session
from benchmarks.measure.cpu import spent
from benchmarks.measure.digest import digest_batches
from benchmarks.measure.job import PARQUET, Answer, EngineJob, elapsed, serve


def run(job: EngineJob) -> Answer:
    spark = session.start(job)
    try:
        spark.read.parquet(job.file).createOrReplaceTempView("flows")
        result = spark.sql(_query(job))
        out = f"{job.work}/out"
        session.write(result, job, out)
        cold = elapsed(job)
        warm, cpu, _ = spent(lambda: session.write(result, job, out))
        digests = _digests(out, job) if job.sink == PARQUET else ()
        return Answer(spark.version, warm, job.rows, cold, digests, cpu_seconds=cpu)
    finally:
        spark.stop()


def _query(job: EngineJob) -> str:
    names = ", ".join(job.attributes)
    sets = ", ".join(f"(w, {', '.join(job.names(n))})" for n in range(len(job.queries)))
    keys = ", ".join(f"{session.cut(one)} AS {one.name}" for one in job.keys)
    window = f"unix_micros({job.time}) div {job.window} AS w"
    return (
        f"SELECT {names}, grouping_id(w, {names}) AS kept, w * {job.window} AS window_start, "
        f"count(*) AS n, sum({job.value}) AS total "
        f"FROM (SELECT {keys}, {job.value}, {window} FROM flows) "
        f"GROUP BY GROUPING SETS ({sets})"
    )


def _digests(folder: str, job: EngineJob) -> tuple[str, ...]:
    # grouping_id has a bit per attribute, the first one highest, set where it is not grouped by; the window always is.
    place = {name: 1 << (len(job.attributes) - 1 - i) for i, name in enumerate(job.attributes)}
    every = sum(place.values())
    result: Any = ds.dataset(folder, format="parquet")
    digests = []
    for keys in map(job.names, range(len(job.queries))):
        names = [*keys, "window_start", "n", "total"]
        kept = every - sum(place[name] for name in keys)
        batches = result.to_batches(columns=names, filter=pc.field("kept") == kept)
        digests.append(str(digest_batches(batches, names)))
    return tuple(digests)


if __name__ == "__main__":
    serve(run)
