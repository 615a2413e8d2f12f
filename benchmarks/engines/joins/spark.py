"""Spark Structured Streaming: two streams joined by (window, key), then grouped by window; state in the default store.

Each stream is a folder of part files, one a micro-batch. The last part holds one record much later, which closes every
window; its own is left out of the answer. The store in memory was faster here than RocksDB (mode `rocksdb`).
Warm are all micro-batches after the first, with those that close the last windows.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.engines import session
from benchmarks.engines.spark_streaming import _history, warm_part
from benchmarks.measure.cpu import session_seconds
from benchmarks.measure.digest import digest_batches
from benchmarks.measure.job import JOINED, Answer, JoinJob, elapsed, serve_joins

NOTE = "without the first micro-batch"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def run(job: JoinJob) -> Answer:
    spark = session.start(job)
    try:
        if job.mode == "rocksdb":
            spark.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
        query = _start(spark, job)
        query.awaitTermination()
        cold, cpu = elapsed(job), session_seconds()
        history = _history(query)
        state = max(sum(each.memoryUsedBytes for each in p.stateOperators) for p in query.recentProgress)
        version = spark.version
    finally:
        spark.stop()
    seconds, rows = warm_part([history])
    extra = {"batches": len(history), "cpu_seconds_cold": cpu, "state_bytes": state}
    return Answer(version, seconds, rows, cold, (_digest(job),), NOTE, extra)


def _start(spark: Any, job: JoinJob) -> Any:
    from pyspark.sql import functions as f

    a, b = (_side(spark, job, name, folder) for name, folder in (("a", job.left), ("b", job.right)))
    pairs = a.join(b, (f.col("a.w") == f.col("b.w")) & (f.col("a.k") == f.col("b.k")))
    groups = pairs.groupBy(f.col("a.w").alias("w"), "g", "h").agg(
        f.count("*").alias("n"), f.sum("x").alias("total"), f.max("y").alias("most")
    )
    result = groups.withColumn("window_start", f.col("w.start")).select(*JOINED)
    writer = result.writeStream.outputMode("append").trigger(availableNow=True)
    return writer.option("checkpointLocation", f"{job.work}/state").format("parquet").start(f"{job.work}/out")


def _side(spark: Any, job: JoinJob, name: str, folder: str) -> Any:
    from pyspark.sql import functions as f

    schema = spark.read.parquet(folder).schema
    stream = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(folder)
    window = f.window("ts", f"{job.range_seconds} seconds", f"{job.slide_seconds} seconds").alias("w")
    columns = [column for column in stream.columns if column != "ts"]
    return stream.withWatermark("ts", "0 seconds").select(window, *columns).alias(name)


def _digest(job: JoinJob) -> str:
    last = max(Path(job.left).glob("*.parquet"), key=os.path.basename)
    closing = pq.read_table(last, columns=["ts"])["ts"][0].cast(pa.int64()).as_py()
    # Each file alone: the folder also has Spark's own log of files.
    tables = [pq.read_table(path, columns=list(JOINED)) for path in Path(f"{job.work}/out").glob("*.parquet")]
    result = pa.concat_tables(tables)
    start = result["window_start"].cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    return str(digest_batches(result.filter(pc.less(start, closing - job.range)).to_batches(), JOINED))


if __name__ == "__main__":
    serve_joins(run)
