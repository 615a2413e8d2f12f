"""Start and end a run: checkpoint, lease, sinks, source, streaming query, and its summary.

prepare (app.json, lease, roll forward, sinks) ──► writeStream.foreachBatch(BatchDriver) ──► Run
"""

from __future__ import annotations

import os
import tempfile
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import xxhash
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery

from penstock.errors import ConfigError, PenstockError, RunError, StateError
from penstock.faults import reach
from penstock.logical.query import QuerySet
from penstock.runtime.driver import BatchDriver, BatchReport, committed, publish
from penstock.runtime.fused import FusedSource
from penstock.runtime.job import Job, encode
from penstock.runtime.results import result_schema
from penstock.runtime.settings import TaskSettings
from penstock.runtime.summary import summarise
from penstock.sharing.plan import SharedPlan
from penstock.sinks.base import Owner, Sink
from penstock.sinks.registry import open_sink
from penstock.sources.base import Source
from penstock.state import identity
from penstock.state import lease as leases
from penstock.state import manifest as manifests
from penstock.state.files import local_path
from penstock.state.garbage import SEGMENTS
from penstock.state.manifest import Manifest, first_manifest

Listener = Callable[[BatchReport, Manifest], None]


@dataclass(frozen=True)
class RunSettings:
    """Options of one run; none of them changes a result."""

    checkpoint: str | None = None
    output: str = "penstock-out"
    overwrite: bool = False
    batch_rows: int = 1_000_000
    parallelism: int | None = None
    task: TaskSettings = field(default_factory=TaskSettings)


def start(
    spark: SparkSession,
    app: QuerySet,
    plan: SharedPlan,
    source: Source,
    settings: RunSettings,
    listener: Listener,
    seconds: dict[str, float],
) -> Run:
    """Start the app's streaming query; returns at once."""
    reach("driver.start")
    begun = time.time()
    checkpoint = _open_checkpoint(settings.checkpoint)
    sinks = _open_sinks(app, settings.output)
    mine = _identify(checkpoint, app, source, settings, sinks)
    jvm = spark._jvm  # the lease waits for a dead driver's JVM to end
    processes = [os.getpid(), int(jvm.java.lang.ProcessHandle.current().pid())] if jvm is not None else [os.getpid()]
    lease = leases.acquire(checkpoint, processes)
    try:
        owner = Owner(mine["id"], str(checkpoint))
        manifest = manifests.newest(checkpoint)
        # What Spark committed was published; consumers may have moved it away since.
        if manifest is not None and not committed(checkpoint, manifest.batch):
            publish(manifest, sinks)
        for sink in sinks.values():
            sink.prepare(owner, settings.overwrite)
        slots = replace(settings.task, slots=mine["slots"])
        parallelism = settings.parallelism or spark.sparkContext.defaultParallelism
        job = Job(plan, source, slots, str(checkpoint), settings.batch_rows, parallelism)
        manifest = manifest or first_manifest([query.name for query in app.queries])
        driver = BatchDriver(spark, app, job, mine["app"], owner, sinks, lease, manifest, listener)
        query = _start_query(spark, job, driver)
        seconds["startup"] = seconds.get("startup", 0.0) + time.time() - begun
        return Run(spark, driver, query, sinks, seconds)
    except BaseException:
        lease.release()
        raise


def _start_query(spark: SparkSession, job: Job, driver: BatchDriver) -> StreamingQuery:
    spark.dataSource.register(FusedSource)
    stream = spark.readStream.format("penstock").option("job", encode(job)).load()
    writer = stream.writeStream.foreachBatch(driver).trigger(availableNow=True)
    return writer.option("checkpointLocation", str(Path(job.checkpoint) / "spark")).start()


def _open_checkpoint(uri: str | None) -> Path:
    path = local_path(uri, "checkpoint") if uri else Path(tempfile.mkdtemp(prefix="penstock-"))
    try:
        (path / SEGMENTS).mkdir(parents=True, exist_ok=True)
        (path / manifests.FOLDER).mkdir(exist_ok=True)
    except OSError as error:
        raise ConfigError(f"checkpoint {path} cannot be used: {error.strerror}", "choose another folder") from error
    return path


def _identify(
    checkpoint: Path, app: QuerySet, source: Source, settings: RunSettings, sinks: dict[str, Sink]
) -> dict[str, Any]:
    """Whose checkpoint this is: written by its first run, compared by every later one."""
    mine = {
        "version": 1,
        "id": uuid.uuid4().hex,
        "app": xxhash.xxh3_64_hexdigest(repr(app).encode()),
        "source": source.fingerprint(),
        "slots": settings.task.slots,
        "queries": [query.name for query in app.queries],
        "outputs": {name: sink.place() for name, sink in sinks.items()},
    }
    found = identity.claim(checkpoint, mine)
    if found["app"] != mine["app"]:
        raise StateError(
            f"checkpoint {checkpoint} belongs to another app: its streams or queries differ from these",
            "run the app it was made with, or use another checkpoint",
        )
    if found["source"] != mine["source"]:
        raise StateError(
            f"the records of the source differ from those that checkpoint {checkpoint} was made with",
            "restore the files, or use another checkpoint",
        )
    for name, place in sinks.items():
        if found["outputs"][name] != place.place():
            raise StateError(
                f"query '{name}' of checkpoint {checkpoint} writes to {found['outputs'][name]}, not {place.place()}",
                "give the same --output as before, or use another checkpoint",
            )
    return found


def _open_sinks(app: QuerySet, output: str) -> dict[str, Sink]:
    sinks = {query.name: open_sink(query.name, query.sink, local_path(output, "output")) for query in app.queries}
    folders: dict[str, str] = {}
    for name, sink in sinks.items():
        other = folders.setdefault(sink.place(), name)
        if other != name:
            raise ConfigError(
                f"queries '{other}' and '{name}' both write to {sink.place()}", "give each its own folder"
            )
    return sinks


class Run:
    """A running app: `await_end`, `stop`, `progress`, `results`, `summary`."""

    def __init__(
        self,
        spark: SparkSession,
        driver: BatchDriver,
        query: StreamingQuery,
        sinks: dict[str, Sink],
        seconds: dict[str, float],
    ) -> None:
        self._spark, self._driver, self._query, self._sinks = spark, driver, query, sinks
        self._started_at, self._seconds = time.time(), seconds
        self._ended_at: float | None = None

    @property
    def checkpoint(self) -> str:
        return self._driver.job.checkpoint

    def await_end(self, timeout: int | None = None) -> bool:
        """Wait until the source has ended; False if `timeout` seconds passed first. Raises what went wrong."""
        if self._ended_at is not None:
            return True
        try:
            ended = True if timeout is None else bool(self._query.awaitTermination(timeout))
            if timeout is None:
                self._query.awaitTermination()
        except PySparkException as error:
            self._close()
            raise self._driver.failure or _failure(error) from None
        except Exception as error:  # py4j's network errors when the JVM is gone have no common root
            self._close()
            raise RunError(
                f"Spark ended unexpectedly: {type(error).__name__}", "run again: it goes on from the checkpoint"
            ) from error
        if ended:
            self._close()
        return ended

    def stop(self) -> None:
        """Stop between two batches; a later run on the checkpoint goes on from there."""
        before = len(self._driver.reports)
        deadline = time.monotonic() + 30
        # A stop inside foreachBatch trips over a bug of Spark's: wait for the end of the batch.
        while self._query.isActive and len(self._driver.reports) == before and time.monotonic() < deadline:
            time.sleep(0.01)
        self._query.stop()
        self._close()

    def _close(self) -> None:
        if self._ended_at is None:
            self._ended_at = time.time()
            if self._driver.failure is None:
                self._driver.collect_garbage()
            self._driver.lease.release()

    def progress(self) -> dict[str, Any]:
        """Rows so far, rows in all, windows closed, watermark."""
        manifest = self._driver.manifest
        return {
            "batch": manifest.batch,
            "rows": manifest.account["stream"]["input"],
            "total": self._driver.job.source.rows(),
            "windows": sum(r["windows"] for r in manifest.results.values()),
            "watermark": manifest.watermark,
            "active": self._ended_at is None,
        }

    def results(self, name: str) -> DataFrame:
        """A query's results so far as a Spark DataFrame."""
        if name not in self._sinks:
            raise ConfigError(f"there is no query '{name}'", f"queries are {', '.join(sorted(self._sinks))}")
        files = self._sinks[name].files()
        if files:
            return self._spark.read.parquet(*files)
        query = next(query for query in self._driver.app.queries if query.name == name)
        return self._spark.createDataFrame([], from_arrow_schema(result_schema(query)))

    def summary(self) -> dict[str, Any]:
        """What `run --json` prints."""
        return summarise(
            self._driver,
            self._sinks,
            self._started_at,
            self._ended_at or time.time(),
            self._seconds,
            self._spark.version,
        )


def _failure(error: PySparkException) -> PenstockError:
    """One sentence out of Spark's report."""
    text = str(error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    cause = next(
        (line for line in reversed(lines) if "Error" in line or "Exception" in line), lines[0] if lines else text
    )
    return RunError(f"Spark stopped the run: {cause[:500]}", "run again: it goes on from the checkpoint")
