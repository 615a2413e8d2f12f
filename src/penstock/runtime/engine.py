"""Start and end a run: checkpoint, lease, sinks, source, streaming query, and its summary.

prepare (app.json, lease, roll forward, sinks) ──► writeStream.foreachBatch(BatchDriver) ──► Run
"""

from __future__ import annotations

import os
import re
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from penstock.errors import ConfigError, PenstockError, RunError, StateError
from penstock.faults import reach
from penstock.logical.query import Query, QuerySet
from penstock.logical.window import TIME
from penstock.runtime import version as versions
from penstock.runtime.changes import adopt, check_changes
from penstock.runtime.driver import BatchDriver, BatchReport, committed, publish, watermark_of
from penstock.runtime.feed import Feed, FusedFeed
from penstock.runtime.frames import FrameFeed, Once
from penstock.runtime.fused import FusedSource
from penstock.runtime.inputs import Inputs, check_files, continued
from penstock.runtime.job import END, STOPPED, Job, encode
from penstock.runtime.results import result_schema
from penstock.runtime.settings import TaskSettings
from penstock.runtime.summary import summarise
from penstock.sinks.base import Owner, Sink
from penstock.sinks.registry import check_claims, open_sink
from penstock.state import identity
from penstock.state import lease as leases
from penstock.state import manifest as manifests
from penstock.state.files import local_path
from penstock.state.garbage import SEGMENTS
from penstock.state.manifest import Manifest, first_manifest
from penstock.state.segment import RESTORE

Listener = Callable[[BatchReport, Manifest], None]
POLL = "100 milliseconds"  # how often a run that goes on looks for new records


@dataclass(frozen=True)
class RunSettings:
    """Options of one run; none of them changes a result."""

    checkpoint: str | None = None
    output: str = "penstock-out"
    overwrite: bool = False
    batch_rows: int = 1_000_000
    parallelism: int | None = None
    memory: int = 0
    until: str = END
    task: TaskSettings = field(default_factory=TaskSettings)


def start(
    spark: SparkSession,
    app: QuerySet,
    inputs: Inputs,
    functions: Mapping[str, Any],
    settings: RunSettings,
    listener: Listener,
    seconds: dict[str, float],
) -> Run:
    """Start the app's streaming query; returns at once. `functions` are sinks that are no URI, by query."""
    reach("driver.start")
    begun = time.time()
    checkpoint = _open_checkpoint(settings.checkpoint)
    sinks = _open_sinks(app, functions, settings.output, checkpoint)
    places = {name: sink.place() for name, sink in sinks.items()}
    _check(checkpoint, app, inputs, places)
    mine = _identify(checkpoint, inputs, settings)
    lease = leases.acquire(checkpoint, _processes(spark))
    try:
        owner = Owner(mine["id"], str(checkpoint))
        manifest = manifests.newest(checkpoint) or first_manifest()
        for sink in sinks.values():
            sink.bind(spark)
        # What Spark committed was published; consumers may have moved it away since.
        if manifest.batch >= 0 and not committed(checkpoint, manifest.batch):
            publish(manifest, sinks | _dropped_sinks(spark, checkpoint, manifest, sinks, settings.output))
        for sink in sinks.values():
            sink.prepare(owner, settings.overwrite)
        adopt(checkpoint, app, settings.memory, places)
        job = Job(
            continued(checkpoint, inputs.sources),
            replace(settings.task, slots=mine["slots"]),
            str(checkpoint),
            settings.batch_rows,
            settings.parallelism or spark.sparkContext.defaultParallelism,
            settings.until,
        )
        driver = BatchDriver(spark, job, _feed(job, inputs), owner, sinks, lease, manifest, listener)
        query = _start_query(spark, job, driver, inputs.frame)
        seconds["startup"] = seconds.get("startup", 0.0) + time.time() - begun
        return Run(spark, driver, query, settings, seconds)
    except BaseException:
        lease.release()
        raise


def check_start(app: QuerySet, functions: Mapping[str, Any], settings: RunSettings) -> None:
    """What can be refused before Spark is started: sinks, and how long to run."""
    _check_until(app, settings.until)
    _open_sinks(app, functions, settings.output, local_path(settings.checkpoint or ".", "checkpoint"))


def _check_until(app: QuerySet, until: str) -> None:
    """A run that goes on needs watermarks, or it would never close a window of time."""
    if until not in (END, STOPPED):
        raise ConfigError(f"--until {until} is not possible", f"use {END} or {STOPPED}")
    for query in app.queries:
        stream = app.root(query)
        if until == STOPPED and stream.delay is None and query.window.axis == TIME:
            raise ConfigError(
                f"stream '{stream.name}' has no WATERMARK: until stopped, no window of '{query.name}' would close",
                "add WATERMARK column DELAY '...' to the stream, or run until its end",
            )


def _processes(spark: SparkSession) -> list[int]:
    """The lease waits for a dead driver's JVM to end, too."""
    jvm = spark._jvm
    return [os.getpid(), int(jvm.java.lang.ProcessHandle.current().pid())] if jvm is not None else [os.getpid()]


def _feed(job: Job, inputs: Inputs) -> Feed:
    checkpoint = Path(job.checkpoint)
    if inputs.frame is None:
        return FusedFeed(checkpoint, dict(job.sources), job.until)
    return FrameFeed(checkpoint, inputs.name, job.settings)


def _start_query(spark: SparkSession, job: Job, driver: BatchDriver, frame: DataFrame | None) -> Any:
    if frame is not None and not frame.isStreaming:
        return Once(partial(_run_static, driver, frame))
    if frame is None:
        spark.dataSource.register(FusedSource)
        frame = spark.readStream.format("penstock").option("job", encode(job)).load()
    elif driver.manifest.ended:
        return Once(lambda: None)
    writer = frame.writeStream.foreachBatch(driver)
    writer = writer.trigger(availableNow=True) if job.until == END else writer.trigger(processingTime=POLL)
    return writer.option("checkpointLocation", str(Path(job.checkpoint) / "spark")).start()


def _run_static(driver: BatchDriver, frame: DataFrame) -> None:
    """A static DataFrame is one batch, which ends the stream."""
    if not driver.manifest.ended:
        assert isinstance(driver.feed, FrameFeed)
        driver.feed.ending = True
        driver(frame, driver.manifest.batch + 1)


def _open_checkpoint(uri: str | None) -> Path:
    path = local_path(uri, "checkpoint") if uri else Path(tempfile.mkdtemp(prefix="penstock-"))
    try:
        (path / SEGMENTS).mkdir(parents=True, exist_ok=True)
        (path / manifests.FOLDER).mkdir(exist_ok=True)
        (path / versions.FOLDER).mkdir(exist_ok=True)
    except OSError as error:
        raise ConfigError(f"checkpoint {path} cannot be used: {error.strerror}", "choose another folder") from error
    return path


def _identify(checkpoint: Path, inputs: Inputs, settings: RunSettings) -> dict[str, Any]:
    """Whose checkpoint this is: written by its first run, compared by every later one."""
    mine = {
        "version": 2,
        "id": uuid.uuid4().hex,
        "sources": inputs.fingerprints(),
        "slots": settings.task.slots,
    }
    found = identity.claim(checkpoint, mine)
    if found["version"] != mine["version"]:
        raise StateError(
            f"checkpoint {checkpoint} was made by another version of penstock", "use that one, or another checkpoint"
        )
    for name, fingerprint in inputs.fingerprints().items():
        if found["sources"].get(name, fingerprint) != fingerprint:
            raise StateError(
                f"the source of stream '{name}' differs from the one that checkpoint {checkpoint} was made with",
                "restore it, or use another checkpoint",
            )
    return found


def _check(checkpoint: Path, app: QuerySet, inputs: Inputs, places: Mapping[str, str]) -> None:
    """Refuse what this checkpoint cannot go on with, before anything is touched."""
    number = versions.newest(checkpoint)
    if number is not None:
        check_changes(checkpoint, versions.load(checkpoint, number), app, places)
    manifest = manifests.newest(checkpoint)
    check_files(checkpoint, inputs.sources, manifest.streams if manifest else {})


def _open_sinks(app: QuerySet, functions: Mapping[str, Any], output: str, checkpoint: Path) -> dict[str, Sink]:
    sinks = {
        query.name: open_query_sink(query, functions.get(query.name), output, checkpoint)
        for query in app.queries
        if not query.hidden
    }
    check_claims(sinks)
    return sinks


def open_query_sink(query: Query, function: Any, output: str, checkpoint: Path) -> Sink:
    where = query.sink if function is None else function
    return open_sink(query.name, where, local_path(output, "output"), result_schema(query), checkpoint)


def _dropped_sinks(
    spark: SparkSession, checkpoint: Path, manifest: Manifest, sinks: Mapping[str, Sink], output: str
) -> dict[str, Sink]:
    """Sinks of queries that this app has no more, for what a killed run has committed but not published."""
    old = versions.load(checkpoint, manifest.offset["plan"])
    found = {}
    for query in old.app.queries:
        lost = query.name not in sinks and not query.hidden
        if lost and not old.outputs[query.name].startswith(("function ", "writer ")):
            found[query.name] = open_query_sink(query, None, output, checkpoint)
            found[query.name].bind(spark)
    return found


class Run:
    """A running app: `await_end`, `stop`, `progress`, `results`, `summary`, `add_query`, `drop_query`."""

    def __init__(
        self, spark: SparkSession, driver: BatchDriver, query: Any, settings: RunSettings, seconds: dict[str, float]
    ) -> None:
        self._spark, self._driver, self._query, self._settings = spark, driver, query, settings
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
            if ended:
                self._end_frame()
        except (PySparkException, PenstockError) as error:
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

    def _end_frame(self) -> None:
        """A streaming DataFrame that has ended closes its windows in a batch of its own."""
        driver = self._driver
        if isinstance(driver.feed, FrameFeed) and driver.job.until == END and not driver.manifest.ended:
            driver.feed.ending = True
            driver(None, driver.manifest.batch + 1)

    def stop(self) -> None:
        """Stop between two batches; a later run on the checkpoint goes on from there."""
        before = self._driver.done
        deadline = time.monotonic() + 30
        # A stop inside foreachBatch trips over a bug of Spark's: wait for the end of the batch.
        while self._query.isActive and self._driver.done == before and time.monotonic() < deadline:
            if not self._query.status["isTriggerActive"]:
                break
            time.sleep(0.01)
        self._query.stop()
        self._close()

    def add_query(self, name: str, select: str, sink: Any = None) -> None:
        """Add a query from the next batch on: its first window starts after the greatest time seen."""
        from penstock.runtime.amend import added

        self._driver.amend(added(self._driver, name, select, sink, self._settings))

    def drop_query(self, name: str) -> None:
        """Drop a query from the next batch on; its open windows are discarded."""
        from penstock.runtime.amend import dropped

        self._driver.amend(dropped(self._driver, name, self._settings))

    def _close(self) -> None:
        if self._ended_at is None:
            self._ended_at = time.time()
            if self._driver.failure is None:
                self._driver.collect_garbage()
            self._driver.lease.release()

    def progress(self) -> dict[str, Any]:
        """Rows so far, rows in all, windows closed, watermark."""
        manifest = self._driver.manifest
        declared = manifest.offset.get("streams", {})
        return {
            "batch": manifest.batch,
            "rows": sum(entry["input"] for name, entry in manifest.account["streams"].items() if name in declared),
            "total": self._driver.feed.total(),
            "windows": sum(r["windows"] for r in manifest.results.values()),
            "watermark": watermark_of(manifest),
            "active": self._ended_at is None,
        }

    def results(self, name: str) -> DataFrame:
        """A query's results so far as a Spark DataFrame."""
        sinks = self._driver.sinks
        if name not in sinks:
            raise ConfigError(f"there is no query '{name}'", f"queries are {', '.join(sorted(sinks))}")
        return sinks[name].results(self._spark)

    def summary(self) -> dict[str, Any]:
        """What `run --json` prints."""
        return summarise(
            self._driver,
            self._started_at,
            self._ended_at or time.time(),
            self._seconds,
            self._spark.version,
        )


def _failure(error: PySparkException | PenstockError) -> PenstockError:
    """One sentence out of Spark's report."""
    if isinstance(error, PenstockError):
        return error
    text = str(error)
    ours = re.search(r"penstock\.errors\.\w+: (.+)(?:\n\s*hint: (.+))?", text)
    if ours is not None:  # raised in the source's process, and wrapped by Spark
        return RunError(ours[1].strip(), (ours[2] or "see penstock state --checkpoint").strip())
    damaged = re.search(r"Checksum error: file:(\S+)", text)
    if damaged is not None:
        return RunError(f"Spark's log {damaged[1]} is damaged", RESTORE)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    cause = next(
        (line for line in reversed(lines) if "Error" in line or "Exception" in line), lines[0] if lines else text
    )
    return RunError(f"Spark stopped the run: {cause[:500]}", "run again: it goes on from the checkpoint")
