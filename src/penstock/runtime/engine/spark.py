"""Spark as the engine: its streaming query calls the driver, its Python workers run the tasks.

sources of penstock's own ──► `engine.source`  ─┐
DataFrames ──► `batch.frames`                  ─┴─► writeStream.foreachBatch(BatchDriver) ──► SparkLoop
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

import pyarrow as pa

from penstock.errors import PenstockError, RunError
from penstock.runtime.batch.driver import BatchDriver
from penstock.runtime.batch.executor import R, share_told
from penstock.runtime.batch.feed import Feed, FusedFeed
from penstock.runtime.batch.frames import FrameFeed
from penstock.runtime.batch.job import END, Job, encode
from penstock.runtime.batch.outcome import heard, told_batch
from penstock.runtime.engine.base import SPARK
from penstock.runtime.engine.inputs import Inputs
from penstock.runtime.engine.jobs import Numbered, collected, shares_workers
from penstock.runtime.engine.once import Once
from penstock.runtime.engine.places import Places
from penstock.runtime.engine.slots import SlotsFile, slots_now
from penstock.runtime.expressions.refreshing import Refresher
from penstock.runtime.spark.conf import in_one_process
from penstock.runtime.spark.gone import jvm_gone, tells_of_it
from penstock.runtime.spark.master import Tell
from penstock.runtime.spark.probe import probe, told_by_spark
from penstock.sources.live.contract import live
from penstock.state.checked import RESTORE
from penstock.state.protocol import TaskReport

if TYPE_CHECKING:
    from pyspark.errors import PySparkException
    from pyspark.sql import DataFrame, SparkSession

_registered: WeakSet[SparkSession] = WeakSet()
POLL = "100 milliseconds"  # how often a run that goes on looks for new records
AT_ONCE = "0 seconds"  # Spark asks again as soon as it has an answer
LOOK = 0.1  # seconds between looks whether a live stream has ended
LEAST_WAIT = 0.001  # Spark counts milliseconds, and refuses to wait for none


@dataclass(frozen=True)
class SparkExecutor:
    """`asked` is the parallelism that the user asked for, if any."""

    spark: SparkSession
    asked: int | None = None

    @cached_property
    def jobs(self) -> Numbered | None:
        """How shares run; None: as rows of a DataFrame, which has workers of its own in a session of the user's."""
        context = self.spark.sparkContext
        return Numbered(context) if shares_workers(context) else None

    @property
    def parallelism(self) -> int:
        return self.asked or slots_now(self.spark.sparkContext)

    def run_tasks(self, given: DataFrame) -> list[TaskReport]:
        """`given` has a row for each task, with what it tells."""
        return heard(collected(given), TaskReport)

    def run_shares(self, count: int, run: Callable[[int], R], kind: type[R]) -> list[R]:
        if self.jobs is not None:
            return heard(self.jobs.told(count, partial(share_told, run)), kind)

        def tasks(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for numbered in numbers:
                for number in numbered.column(0).to_pylist():
                    yield told_batch("report", share_told(run, number))

        rows = self.spark.range(0, count, 1, count).mapInArrow(tasks, "report string").collect()
        return heard((row.report for row in rows), kind)


class SparkEngine:
    """A session, the parallelism that was asked for, and who is told what Spark is waiting for."""

    name = SPARK

    def __init__(self, session: SparkSession, asked: int | None = None, tell: Tell = lambda phase: None) -> None:
        self.session, self._asked, self._tell = session, asked, tell
        self._executor = SparkExecutor(session, asked)
        self._slots: SlotsFile | None = None

    @property
    def version(self) -> str:
        return self.session.version

    @property
    def executor(self) -> SparkExecutor:
        return self._executor

    @property
    def spread(self) -> bool:
        return not in_one_process(self.session.sparkContext.master or "")

    def probe(self, places: Places) -> None:
        probe(self.session.sparkContext, places.folders, places.files, self._tell)

    def processes(self) -> list[int]:
        """The lease waits for a dead driver's JVM to end, too."""
        jvm = self.session._jvm
        return [os.getpid(), int(jvm.java.lang.ProcessHandle.current().pid())] if jvm is not None else [os.getpid()]

    def feed(self, job: Job, inputs: Inputs) -> Feed[DataFrame]:
        checkpoint = Path(job.checkpoint)
        if inputs.frame is None:
            return FusedFeed(self.executor, checkpoint, dict(job.sources), job.until)
        refresher = Refresher(checkpoint, job.tables)
        return FrameFeed(
            self.executor, checkpoint, inputs.name, job.settings, sampling=job.sampling, refresher=refresher
        )

    def start(self, job: Job, driver: BatchDriver[DataFrame], inputs: Inputs) -> SparkLoop:
        from pyspark.errors import PySparkException

        python = self.session.sparkContext.pythonExec
        try:
            return SparkLoop(self._query(job, driver, inputs.frame), driver, job, python)
        except PySparkException as error:
            raise _failure(error, python) from None

    def _query(self, job: Job, driver: BatchDriver[DataFrame], frame: DataFrame | None) -> Any:
        if frame is not None and not frame.isStreaming:
            return Once(partial(_run_static, driver, frame))
        if frame is None:
            from penstock.runtime.engine.registered import FusedSource

            if self.spread and self._asked is None:
                self._slots = SlotsFile(self.session.sparkContext)
                job = replace(job, live=self._slots.path)
            if self.session not in _registered:  # Spark warns of a second time
                self.session.dataSource.register(FusedSource)
                _registered.add(self.session)
            frame = self.session.readStream.format("penstock").option("job", encode(job)).load()
        elif driver.manifest.ended:
            return Once(lambda: None)
        writer = frame.writeStream.foreachBatch(driver)
        if any(live(source) for source in job.sources.values()):  # the end is not when nothing has arrived
            writer = writer.trigger(processingTime=AT_ONCE)
        else:
            writer = writer.trigger(availableNow=True) if job.until == END else writer.trigger(processingTime=POLL)
        return writer.option("checkpointLocation", str(Path(job.checkpoint) / "spark")).start()

    def close(self) -> None:
        """The session stays: it may be the user's, and results are read with it."""
        if self._slots is not None:
            self._slots.close()


def _run_static(driver: BatchDriver[DataFrame], frame: DataFrame) -> None:
    """A static DataFrame is one batch, which ends the stream."""
    if not driver.manifest.ended and driver.feed.end_batch():
        driver(frame, driver.manifest.batch + 1)


class SparkLoop:
    """A streaming query of Spark's (or what behaves like one), the driver that it calls, and the Python of workers."""

    def __init__(self, query: Any, driver: BatchDriver[DataFrame], job: Job, python: str) -> None:
        self._query, self._driver, self._until, self._python = query, driver, job.until, python
        self._live = any(live(source) for source in job.sources.values())

    def wait(self, timeout: float | None = None) -> bool:
        from pyspark.errors import PySparkException

        try:
            ended = self._awaited(timeout)
            if ended:
                self._end_stream()
        except (PySparkException, PenstockError) as error:
            if self._driver.failure is None and not isinstance(error, PenstockError) and tells_of_it(error):
                raise jvm_gone() from error
            raise self._driver.failure or _failure(error, self._python) from None
        except Exception as error:  # py4j's network errors when the JVM is gone have no common root
            if tells_of_it(error):
                raise jvm_gone() from error
            raise RunError(
                f"Spark ended unexpectedly: {type(error).__name__}", "run again: it goes on from the checkpoint"
            ) from error
        return ended

    def _awaited(self, timeout: float | None) -> bool:
        """Whether the query ended in time. One on live streams never ends by itself."""
        if not (self._live and self._until == END):
            return bool(self._query.awaitTermination(timeout)) or timeout is None
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        while (left := deadline - time.monotonic()) > 0:
            if self._query.awaitTermination(max(min(left, LOOK), LEAST_WAIT)):
                return True
            if self._driver.manifest.ended:
                self.stop()
                return True
        return False

    def _end_stream(self) -> None:
        """The end of a stream may be a batch that Spark knows nothing of."""
        driver = self._driver
        if self._until == END and not driver.manifest.ended and driver.feed.end_batch():
            driver(None, driver.manifest.batch + 1)

    def waiting(self) -> bool:
        """By what Spark says between two triggers: `Waiting for next trigger`, or `... for data to arrive`."""
        if self._until == END:
            return False
        with contextlib.suppress(Exception):  # of a JVM that is gone: whoever waits for the end is told
            return str(self._query.status.get("message", "")).startswith("Waiting")
        return False

    def stop(self) -> None:
        before = self._driver.done
        deadline = time.monotonic() + 30
        # A stop inside foreachBatch trips over a bug of Spark's: wait for the end of the batch.
        while self._query.isActive and self._driver.done == before and time.monotonic() < deadline:
            if not self._query.status["isTriggerActive"]:
                break
            time.sleep(0.01)
        self._query.stop()


def _failure(error: PySparkException | PenstockError, python: str) -> PenstockError:
    """One sentence out of Spark's report."""
    if isinstance(error, PenstockError):
        return error
    text = str(error)
    ours = re.search(r"penstock\.errors\.\w+: (.+)(?:\n\s*hint: (.+))?", text)
    if ours is not None:  # raised in the source's process, and wrapped by Spark
        return RunError(ours[1].strip(), (ours[2] or "see penstock state --checkpoint").strip())
    workers = told_by_spark(text, python)
    if workers is not None:
        return workers
    damaged = re.search(r"Checksum error: file:(\S+)", text)
    if damaged is not None:
        return RunError(f"Spark's log {damaged[1]} is damaged", RESTORE)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    cause = next(
        (line for line in reversed(lines) if "Error" in line or "Exception" in line), lines[0] if lines else text
    )
    return RunError(f"Spark stopped the run: {cause[:500]}", "run again: it goes on from the checkpoint")
