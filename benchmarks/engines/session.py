"""The Spark session of the Spark peers, with the settings that help Spark on one machine, and where it writes."""

from __future__ import annotations

from typing import Any

from benchmarks.measure.job import PARQUET, EngineJob, JoinJob
from benchmarks.measure.keys import Key
from benchmarks.measure.machine import memory_bytes

CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"


def start(job: EngineJob | JoinJob) -> Any:
    """A local session on the job's threads, with half of the machine's memory (at most 8 GB)."""
    from pyspark.sql import SparkSession

    from penstock.runtime.spark.java import ensure_java

    ensure_java()
    heap = max(1, min(8, memory_bytes() // 2**31))
    settings = {
        "spark.driver.memory": f"{heap}g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.streaming.checkpointFileManagerClass": CHECKPOINTS,
        "spark.scheduler.mode": "FAIR",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.warehouse.dir": f"{job.work}/warehouse",
        "spark.local.dir": f"{job.work}/local",
        "spark.log.level": "ERROR",
    }
    if job.mode != "default":  # Spark ships with 200
        settings["spark.sql.shuffle.partitions"] = str(job.threads)
    builder = SparkSession.builder.master(f"local[{job.threads}]").appName("penstock-bench")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def cut(key: Key) -> str:
    """A key from its column; addresses are numbers of 64 bits here."""
    return f"shiftright({key.column}, {key.below})" if key.below else key.column


def key(one: Key) -> Any:
    """The same as a column."""
    from pyspark.sql import functions as f

    return f.expr(cut(one)).alias(one.name)


def write(result: Any, job: EngineJob, folder: str) -> None:
    """Compute a result to Parquet files, or to the sink that takes every row and drops it."""
    if job.sink == PARQUET:
        result.write.mode("overwrite").parquet(folder)
    else:
        result.write.format("noop").mode("overwrite").save()
