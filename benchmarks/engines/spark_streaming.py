"""Spark Structured Streaming: one streaming query per aggregation, all running at once in one session.

Each reads the folder of part files itself (one file a micro-batch), keeps its windows in the default state store
and appends closed windows to Parquet files, as penstock does, or to the `noop` sink.  The last part holds one record
much later, which closes every window; its own window is left out of the answer.  Warm are all micro-batches after each
query's first, with those that close the last windows, as for penstock.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.engines import session
from benchmarks.measure.cpu import session_seconds
from benchmarks.measure.digest import counted, digest_batches
from benchmarks.measure.job import PARQUET, Answer, EngineJob, elapsed, serve
from benchmarks.measure.keys import keys_of

NOTE = "without each query's first micro-batch"
PATIENCE = 60 * 24 * 3600  # seconds that a watermark is behind where windows close at the end only


@dataclass(frozen=True)
class Batch:
    """One micro-batch of one query: seconds since 1970, rows read, and rows written where the sink counts them."""

    begin: float
    end: float
    rows: int
    written: int = 0


def run(job: EngineJob) -> Answer:
    spark = session.start(job)
    try:
        schema = spark.read.parquet(job.file).schema
        started = [_start(spark, schema, job, number) for number in range(len(job.queries))]
        for query in started:
            query.awaitTermination()
        cold, cpu = elapsed(job), session_seconds()
        histories = [_history(query) for query in started]
        version = spark.version
    finally:
        spark.stop()
    seconds, rows = warm_part(histories)
    if job.sink == PARQUET:
        digests = tuple(_digest(job, number) for number in range(len(job.queries)))
    else:
        digests = tuple(counted(sum(batch.written for batch in batches)) for batches in histories)
    extra = {"batches": len(histories[0]), "cpu_seconds_cold": cpu}
    return Answer(version, seconds, rows, cold, digests, NOTE, extra)


def _start(spark: Any, schema: Any, job: EngineJob, number: int) -> Any:
    from pyspark.sql import functions as f

    keys = job.names(number)
    flows = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(job.file)
    cut = (session.key(one) for one in keys_of(job.queries[number]))
    needed = flows.select(job.time, job.value, *cut).withWatermark(job.time, f"{delay(job)} seconds")
    window = f.window(job.time, f"{job.window_seconds} seconds").alias("w")
    groups = needed.groupBy(window, *keys).agg(f.count("*").alias("n"), f.sum(job.value).alias("total"))
    result = groups.select(*keys, f.col("w.start").alias("window_start"), "n", "total")
    writer = result.writeStream.outputMode("append").trigger(availableNow=True)
    writer = writer.option("checkpointLocation", f"{job.work}/state-{number}")
    # Each query its own pool: in one pool the first ones would finish before the last ones begin.
    spark.sparkContext.setLocalProperty("spark.scheduler.pool", f"query-{number}")
    if job.sink == PARQUET:
        return writer.format("parquet").start(f"{job.work}/out-{number}")
    return writer.format("noop").start()


def delay(job: EngineJob) -> int:
    """Seconds that the watermark is behind."""
    return PATIENCE if job.delay_seconds is None else job.delay_seconds


def _history(query: Any) -> list[Batch]:
    batches = []
    for progress in query.recentProgress:
        begin = datetime.fromisoformat(progress.timestamp).timestamp()
        seconds = progress.batchDuration / 1000
        written = max(0, progress.sink.numOutputRows)  # -1: the sink does not count
        batches.append(Batch(begin, begin + seconds, progress.numInputRows, written))
    return batches


def warm_part(histories: Sequence[Sequence[Batch]]) -> tuple[float, int]:
    """Wall time of the micro-batches after each query's first, and the rows per query they read.

    The queries do not keep step, so each moment is shared equally by the micro-batches that run in it, and the
    shares of the warm ones are added up.
    """
    every = [batch for batches in histories for batch in batches]
    warm = [batch for batches in histories for batch in batches[1:]]
    seconds = 0.0
    for begin, end in pairwise(sorted({moment for batch in every for moment in (batch.begin, batch.end)})):
        running = sum(batch.begin <= begin and end <= batch.end for batch in every)
        counted = sum(batch.begin <= begin and end <= batch.end for batch in warm)
        seconds += (end - begin) * counted / running if running else 0.0
    return seconds, sum(batch.rows for batch in warm) // len(histories)


def _digest(job: EngineJob, number: int) -> str:
    last = max(Path(job.file).glob("*.parquet"), key=os.path.basename)
    closing = pq.read_table(last, columns=[job.time])[job.time][0].cast(pa.int64()).as_py()
    names = [*job.names(number), "window_start", "n", "total"]
    # Each file alone: the folder also has Spark's own log of files.
    tables = [pq.read_table(path, columns=names) for path in Path(f"{job.work}/out-{number}").glob("*.parquet")]
    result = pa.concat_tables(tables)
    start = result["window_start"].cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    real = result.filter(pc.less(start, closing - job.window))
    return str(digest_batches(real.to_batches(), names))


if __name__ == "__main__":
    serve(run)
